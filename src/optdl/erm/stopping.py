"""Hooks that measure margins, gradients and their noise in training, and early stopping."""

import copy
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from optdl.erm.arrays import Classes, require_labels
from optdl.erm.noise import gradient_spread, standard_error

__all__ = [
    "EarlyStopping",
    "GradientNoiseHook",
    "GradientNormHook",
    "MarginHook",
    "classification_margins",
    "early_stopping",
]


def classification_margins(
    scores: Float[np.ndarray, "m c"], labels: Classes
) -> Float[np.ndarray, " m"]:
    """Return the score of the right class minus the largest other score (Source: L1-04).

    The 0–1 loss is 1 where this margin is at most 0.

    >>> classification_margins(np.array([[3.0, 1.0, 2.0], [0.0, 1.0, 5.0]]), np.array([0, 1]))
    array([ 1., -4.])
    """
    require_labels(labels, scores, "a class 0 … c−1", labels >= 0)
    rows = np.arange(len(labels))
    others = scores.astype(float)
    others[rows, labels] = -np.inf
    return scores[rows, labels] - others.max(axis=1)


class MarginHook:
    """Record the training margins of a network after each epoch (Source: L1-04).

    A hook for ``optdl.training.train``. It adds three curves to the record:

    - ``median_margin`` and ``smallest_margin``, of :func:`classification_margins`;
    - ``normalized_margin``, the smallest one over the product of the Frobenius norms
      ‖W₁‖ ⋯ ‖W_L‖ of the weight matrices.

    In a ReLU network without biases, multiplying the weights of a layer by a > 0 multiplies every
    margin by a. The normalized margin does not change. ``inputs`` is a tensor with the m training
    images in rows, ``labels`` an array of their classes.

    >>> import torch
    >>> hook = MarginHook(torch.ones(1, 2), np.array([0]))
    """

    def __init__(self, inputs: Any, labels: Classes) -> None:
        self.inputs = inputs
        self.labels = labels

    def after_epoch(self, state: Any) -> None:
        """Record the margins of ``state.model``."""
        scores = state.model(self.inputs).detach().double().cpu().numpy()
        values = classification_margins(scores, self.labels)
        smallest = float(values.min())
        norms = (float(p.detach().norm()) for p in state.model.parameters() if p.ndim == 2)
        state.curves.setdefault("median_margin", []).append(float(np.median(values)))
        state.curves.setdefault("smallest_margin", []).append(smallest)
        state.curves.setdefault("normalized_margin", []).append(smallest / math.prod(norms))


class GradientNormHook:
    """Record the norm of the gradient over all training examples after each epoch (Source: L1-05).

    A hook for ``optdl.training.train``. It adds the curve ``batch_gradient_norm``, which has none
    of the noise of minibatch gradients. ``loss`` maps scores and labels to their mean loss.
    ``inputs`` and ``labels`` are tensors with all training examples.

    >>> import torch
    >>> squared = torch.nn.functional.mse_loss
    >>> hook = GradientNormHook(torch.ones(1, 1), torch.ones(1, 1), squared)
    """

    def __init__(self, inputs: Any, labels: Any, loss: Callable[[Any, Any], Any]) -> None:
        self.inputs = inputs
        self.labels = labels
        self.loss = loss

    def after_epoch(self, state: Any) -> None:
        """Record ‖∇J‖ at the current parameters, then reset the gradients."""
        state.optimizer.zero_grad()
        self.loss(state.model(self.inputs), self.labels).backward()
        squares = sum(float(p.grad.square().sum()) for p in state.model.parameters())
        state.curves.setdefault("batch_gradient_norm", []).append(math.sqrt(squares))
        state.optimizer.zero_grad()


class GradientNoiseHook:
    r"""Record the norm of the gradient and the noise of a minibatch's gradient after each epoch.

    A hook for ``optdl.training.train``. From the gradient of each of the m training examples it
    adds two curves: ``batch_gradient_norm``, and ``gradient_noise``, the root mean square of
    :math:`\lVert g - \nabla J\rVert` for the gradient g of ``batch_size`` different examples,

    .. math:: \lVert\nabla J\rVert \qquad\text{and}\qquad
        \sqrt{\frac{m-n}{n(m-1)}\,\frac1m\sum_i\lVert g_i - \nabla J\rVert^2}, \qquad
        n = \text{batch\_size}.

    The gradients gᵢ are stored together, m × p numbers. ``loss`` maps scores and labels to their
    mean loss; ``inputs`` and ``labels`` are tensors with all training examples. It raises
    ValueError where n is less than 1 or above m. Source: L1-07.

    >>> import torch
    >>> from optdl.training import State
    >>> x, y, w = torch.ones(2, 1), torch.tensor([[1.0], [3.0]]), torch.nn.Linear(1, 1, bias=False)
    >>> state = State(w, torch.optim.SGD(w.parameters()), {})
    >>> hook = GradientNoiseHook(x, y, torch.nn.functional.mse_loss, batch_size=1)
    >>> w.weight.data.zero_(), hook.after_epoch(state)  # the gradients are −2 and −6
    (tensor([[0.]]), None)
    >>> state.curves
    {'batch_gradient_norm': [4.0], 'gradient_noise': [2.0]}
    """

    def __init__(
        self, inputs: Any, labels: Any, loss: Callable[[Any, Any], Any], batch_size: int
    ) -> None:
        self.inputs, self.labels, self.loss, self.batch_size = inputs, labels, loss, batch_size

    def after_epoch(self, state: Any) -> None:
        """Record norm and noise at the current parameters; gradients stay as they are."""
        from torch import cat, func

        def loss(parameters: Any, x: Any, y: Any) -> Any:
            scores = func.functional_call(state.model, parameters, x[None])
            return self.loss(scores, y[None])

        parameters = {name: p.detach() for name, p in state.model.named_parameters()}
        single = func.vmap(func.grad(loss), (None, 0, 0))
        each = single(parameters, self.inputs, self.labels).values()
        gradients = cat([g.flatten(1) for g in each], dim=1).double().cpu().numpy()
        noise = standard_error(gradient_spread(gradients), self.batch_size, len(gradients))
        norm = float(np.linalg.norm(gradients.mean(0)))
        state.curves.setdefault("batch_gradient_norm", []).append(norm)
        state.curves.setdefault("gradient_noise", []).append(noise)


def early_stopping(validation_errors: Sequence[float], patience: int) -> tuple[int, int]:
    """Return the epoch to keep and the epoch at which training halts, counted from 0.

    The best epoch so far is the first one with the lowest error; a tie is no improvement, and NaN
    counts as infinite. Training halts once ``patience`` epochs in a row have not improved on it.
    The halt is the last epoch if patience never runs out. Errors after the halt are not read.
    Raises ValueError where there is no epoch, or ``patience`` is less than 1. Source: L1-05.

    >>> early_stopping([0.5, 0.3, 0.4, 0.3, 0.1], patience=2)
    (1, 3)
    """
    if patience < 1 or len(validation_errors) == 0:
        raise ValueError(
            f"expected at least one epoch and patience of at least 1; "
            f"got {len(validation_errors)} epochs and patience {patience}"
        )
    best, errors = 0, np.nan_to_num(validation_errors, nan=np.inf, posinf=np.inf)
    for epoch, error in enumerate(errors):
        if error < errors[best]:
            best = epoch
        if epoch - best == patience:
            return best, epoch
    return best, len(validation_errors) - 1


class EarlyStopping:
    """Halt training by the rule of :func:`early_stopping`, and keep the best weights.

    A hook for ``optdl.training.train``. It reads the curve ``validation_error`` after each epoch,
    and sets ``state.stop`` when patience runs out. ``best`` is the epoch to keep, ``best_weights``
    the model's ``state_dict`` after it. Epochs are counted from 0, and the weights are copies, None
    before the first epoch. Raises ValueError where ``patience`` is less than 1. Source: L1-05.

    >>> EarlyStopping(patience=3).best_weights is None
    True
    """

    def __init__(self, patience: int) -> None:
        if patience < 1:
            raise ValueError(f"expected patience of at least 1 epoch; got {patience}")
        self.patience = patience
        self.best = -1
        self.best_weights: dict[str, Any] | None = None

    def after_epoch(self, state: Any) -> None:
        """Keep the weights if the epoch is the best so far; halt if patience has run out."""
        errors = state.curves["validation_error"]
        best, halt = early_stopping(errors, self.patience)
        if best == len(errors) - 1:
            self.best = best
            self.best_weights = copy.deepcopy(state.model.state_dict())
        if halt - best == self.patience:
            state.stop = f"no better validation error for {self.patience} epochs"
