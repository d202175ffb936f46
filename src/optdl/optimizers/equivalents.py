"""The same steps in torch."""

from __future__ import annotations

from typing import Any

from optdl.optimizers.adadelta import AdaDelta
from optdl.optimizers.adagrad import AdaGrad
from optdl.optimizers.adam import Adam
from optdl.optimizers.adamw import AdamW
from optdl.optimizers.base import Optimizer
from optdl.optimizers.momentum import Momentum
from optdl.optimizers.muon import Muon
from optdl.optimizers.nesterov import Nesterov
from optdl.optimizers.rmsprop import RMSProp
from optdl.optimizers.rmsprop_nesterov import RMSPropNesterov
from optdl.optimizers.sgd import SGD

__all__ = ["torch_equivalent"]


def torch_equivalent(opt: Optimizer) -> tuple[str, dict[str, Any]]:
    """Return the class of ``torch.optim``, with its arguments, that takes the same steps.

    For Nesterov what torch calls the parameters is our interim point, ``interim(theta, state)``.
    Where there is none it raises ValueError, with the reason.
    Source: L1-24, L1-26, L1-27, L1-29, L1-30, L2-05, L2-06, F-05.

    >>> torch_equivalent(AdaGrad(lr=0.1, delta=1e-7))
    ('Adagrad', {'lr': 0.1, 'eps': 1e-07})
    """
    if callable(opt.lr):
        remedy = "use lr_scheduler there"
        if isinstance(opt, Momentum) and opt.alpha:
            # its velocity is not scaled by the rate, so that an old gradient moves at the new rate
            remedy = "its momentum with lr_scheduler takes other steps"
        raise ValueError(f"torch.optim takes a number as lr, got a schedule: {remedy}")
    lr: dict[str, Any] = {"lr": opt.lr}
    match opt:
        case SGD():
            return "SGD", lr
        case Nesterov() if opt.alpha:  # torch refuses Nesterov without momentum
            return "SGD", lr | {"momentum": opt.alpha, "nesterov": True}
        case Momentum():
            return "SGD", lr | {"momentum": opt.alpha}
        case RMSProp(delta=0):
            return "RMSprop", lr | {"alpha": opt.rho, "eps": 0.0}
        case AdaGrad():
            return "Adagrad", lr | {"eps": opt.delta}
        case AdaDelta():
            return "Adadelta", lr | {"rho": opt.rho, "eps": opt.delta}
        case Adam():
            moments = lr | {"betas": (opt.beta1, opt.beta2), "eps": opt.delta}
            if isinstance(opt, AdamW):
                return "AdamW", moments | {"weight_decay": opt.decay}
            return "Adam", moments
    raise ValueError(f"torch.optim has no equal of {opt}; {_difference(opt)}")


def _difference(opt: Optimizer) -> str:
    if isinstance(opt, RMSPropNesterov):
        return "its RMSprop takes the gradient at θ, not at the interim point"
    if isinstance(opt, RMSProp):
        return "its RMSprop adds eps outside the root; only delta=0 is the same"
    if isinstance(opt, Muon):
        return "its Muon computes in bfloat16, and takes matrices only"
    return f"it has no {type(opt).__name__}"
