r"""Batch Normalization Preconditioning: the mathematics, and ``BNP(model)`` for any training loop.

A layer computes :math:`a = W h + b` from its input h. Its Hessian with respect to one row of
:math:`[b, W]` is :math:`\hat H^T S \hat H`; the rows of :math:`\hat H = [e, H]` are the
inputs of the minibatch. Features far from zero, or of very different sizes, make it
ill-conditioned. Batch normalization changes the network so that the features are centered and
scaled. BNP leaves the network as it is and transforms the gradient, with the same effect on the
Hessian.

* ``hessian``: the Hessian of a layer, and the preconditioner P = UD;
* ``hessians``: the Hessian of all parameters of a small network, and P for it;
* ``algorithm``: one step in a dense layer, as Algorithm 2 writes it, and what it costs;
* ``convolution``: one step in a convolution, as Algorithm 3 writes it;
* ``related_methods``: the factor of the inputs in K-FAC, of which P is a diagonal form, and costs;
* ``model``: :class:`BNP`, on top of ``layers`` (what a layer reads, and P for it),
  ``coordinates`` (θ = Pz), ``support`` (which layers), ``processes`` (training on several), and
  ``optimizers`` (those that are attached, and those that are looked at).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from optdl.bnp.algorithm import (
    batch_statistics,
    bn_flops,
    bnp_flops,
    precondition_dense,
    running_statistics,
    scale_dense,
    smoothed_variance,
    split_adam_step,
    update_statistics,
)
from optdl.bnp.hessian import (
    absorb_normalization,
    condition_numbers,
    extended_activations,
    hessian_condition_numbers,
    layer_hessian,
    normalized_activations,
    preconditioner,
)
from optdl.bnp.related_methods import input_factor, preconditioning_flops

if TYPE_CHECKING:
    from optdl.bnp.convolution import precondition_conv, scale_conv
    from optdl.bnp.hessians import NetworkHessian, network_hessian, unit_steepness
    from optdl.bnp.model import BNP

__all__ = [
    "BNP",
    "NetworkHessian",
    "absorb_normalization",
    "batch_statistics",
    "bn_flops",
    "bnp_flops",
    "condition_numbers",
    "extended_activations",
    "hessian_condition_numbers",
    "input_factor",
    "layer_hessian",
    "network_hessian",
    "normalized_activations",
    "precondition_conv",
    "precondition_dense",
    "preconditioner",
    "preconditioning_flops",
    "running_statistics",
    "scale_conv",
    "scale_dense",
    "smoothed_variance",
    "split_adam_step",
    "unit_steepness",
    "update_statistics",
]


def __getattr__(name: str) -> Any:
    """Import what needs torch, and the step of a convolution, when it is asked for."""
    home = {"BNP": "model"} | dict.fromkeys(("precondition_conv", "scale_conv"), "convolution")
    home |= dict.fromkeys(("NetworkHessian", "network_hessian", "unit_steepness"), "hessians")
    if name not in home:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"optdl.bnp.{home[name]}"), name)
