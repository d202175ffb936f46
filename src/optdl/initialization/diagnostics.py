"""What a network tells about its health: outputs by layer, dead units, and the size of updates.

The functions count; which module of a network is worth a look, the caller says. Nothing here
imports torch: a network and its tensors are only called and read.

Axis letters, fixed for the module: ``m`` examples, ``h`` units, ``l`` layers, ``k`` bins.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float

__all__ = [
    "UpdateRatioHook",
    "dead_share",
    "layer_outputs",
    "output_histograms",
    "update_to_weight_ratio",
]

Array = Float[np.ndarray, "..."]


def layer_outputs(model: Any, inputs: Any) -> dict[str, Array]:
    """Return the output of every module without children, in the order of the forward pass.

    The outputs of linear modules are pre-activations, those of activation modules activations. The
    names are those of ``model.named_modules()``; a module that is called twice appears once, with
    its last output. The model's mode stays as it is. The outputs are float64 arrays with a row for
    each example. Source: F-06.

    >>> import torch
    >>> model = torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Flatten())
    >>> layer_outputs(model, torch.tensor([[-1.0, 2.0]]))
    {'0': array([[0., 2.]]), '1': array([[0., 2.]])}
    """
    outputs: dict[str, Array] = {}

    def keep(name: str) -> Any:
        def hook(module: Any, given: Any, output: Any) -> None:
            # a copy: a later in-place module would overwrite what is kept
            outputs[name] = output.detach().double().cpu().numpy().copy()

        return hook

    leaves = [(name, part) for name, part in model.named_modules() if not list(part.children())]
    handles = [part.register_forward_hook(keep(name)) for name, part in leaves]
    try:
        model(inputs)
    finally:
        for handle in handles:
            handle.remove()
    return outputs


def output_histograms(
    outputs: Mapping[str, Array], edges: Float[np.ndarray, " _"]
) -> Float[np.ndarray, "l k"]:
    """Return the share of each layer's outputs in each bin (Source: F-06).

    A value beyond the first or the last edge counts in the first or the last bin, so each row adds
    up to 1. A row belongs to a layer; the ``edges`` of the k bins are k + 1 ascending numbers.

    >>> outputs = {"tanh": np.array([-0.9, -0.8, 0.1, 7.0])}
    >>> output_histograms(outputs, np.array([-1.0, 0.0, 1.0]))
    array([[0.5, 0.5]])
    """
    counts = [
        np.histogram(np.clip(values, edges[0], edges[-1]), edges)[0] / values.size
        for values in outputs.values()
    ]
    return np.array(counts)


def dead_share(activations: Float[np.ndarray, "m h"]) -> float:
    r"""Return the share of units whose activation is zero for every example (Source: F-06).

    .. math:: \frac1h\,\bigl\lvert\{j : a_{ij} = 0 \text{ for all } i\}\bigr\rvert

    A ReLU unit that is dead on all training examples has zero gradient in its incoming weights
    and in its bias: gradient descent cannot change it while its inputs stay as they are.

    >>> dead_share(np.array([[0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 3.0, 0.0]]))
    0.5
    """
    return float(np.mean(np.all(activations == 0, axis=0)))


def update_to_weight_ratio(before: Array, after: Array) -> float:
    r"""Return the size of an update relative to the size of what it changed (Source: F-06).

    .. math:: \frac{\lVert\theta_{t+1} - \theta_t\rVert}{\lVert\theta_t\rVert}

    For stochastic gradient descent this is :math:`\eta\lVert g\rVert / \lVert\theta\rVert`. Raises
    ValueError where all entries of ``before`` are zero: there is no ratio then.

    >>> update_to_weight_ratio(np.array([3.0, 4.0]), np.array([3.0, 4.5]))
    0.1
    """
    size = np.linalg.norm(before)
    if np.shape(before) != np.shape(after):
        raise ValueError(f"expected one shape; got {np.shape(before)} and {np.shape(after)}")
    if size == 0:
        raise ValueError(
            "the weight before the step is zero, so the ratio is not defined; "
            "leave out parameters that start at zero, such as biases"
        )
    return float(np.linalg.norm(after - before) / size)


class UpdateRatioHook:
    """Record the update-to-weight ratio of every weight of a network, epoch by epoch.

    A hook for ``optdl.training.train``. For each parameter with two axes or more it adds the curve
    ``update_ratio NAME``: the median over the steps of an epoch. Biases, which usually start at
    zero, are left out. Source: F-06.
    """

    def __init__(self) -> None:
        self.before: dict[str, Array] = {}
        self.ratios: dict[str, list[float]] = {}

    def after_backward(self, state: Any) -> None:
        """Keep the weights as they are before the step."""
        self.before = _weights(state.model)

    def after_step(self, state: Any) -> None:
        """Compare them with those after the step."""
        for name, after in _weights(state.model).items():
            ratio = update_to_weight_ratio(self.before[name], after)
            self.ratios.setdefault(name, []).append(ratio)

    def after_epoch(self, state: Any) -> None:
        """Record the medians, and begin anew."""
        for name, ratios in self.ratios.items():
            state.curves.setdefault(f"update_ratio {name}", []).append(float(np.median(ratios)))
        self.ratios = {}


def _weights(model: Any) -> dict[str, Array]:
    return {
        name: parameter.detach().double().cpu().numpy().copy()
        for name, parameter in model.named_parameters()
        if parameter.ndim >= 2
    }
