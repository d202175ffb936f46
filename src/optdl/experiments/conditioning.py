"""What a preconditioner does to the Hessian of one output unit, while a network trains."""

from __future__ import annotations

import numpy as np

from optdl.bnp import batch_statistics, layer_hessian, preconditioner, smoothed_variance
from optdl.conditioning import condition_number
from optdl.ensembles import Ensemble

__all__ = ["STATISTICS", "last_unit_conditioning"]

EPS1 = (1e-2, 0.0)
EPS2 = 1e-4
STATISTICS = ("running", "minibatch")
"""Of which mean and variance P is made: the averages that the step used, or its own rows'."""


def last_unit_conditioning(ensemble: Ensemble) -> list[dict[str, float]]:
    r"""Return for each member the conditioning of the first output unit, for the step just taken.

    The Hessian :math:`\hat H^T S\hat H` of its bias and weights, over the minibatch of the step:
    ``hessian`` is its condition number, ``rank`` the rank of :math:`\hat H`. With P of the
    running or the minibatch's statistics, ε₁ = 10⁻² or 0, and ε₂ = 10⁻⁴, ``running P 0.01`` is
    the condition number of :math:`P^T\hat H^T S\hat HP` and ``running D 0.01`` that of D.

    Notes
    -----
    Source: P-18
    """
    assert ensemble.last is not None
    layer, found = ensemble.dense[-1], []
    inputs, scores = (part.double().cpu() for part in ensemble.last)
    for member in range(len(inputs)):
        H, p = inputs[member].numpy(), scores[member].softmax(1)[:, 0].numpy()
        hessian = layer_hessian(H, p * (1 - p))
        own = {"hessian": condition_number(hessian), "rank": float(_rank(H))}
        running = (layer.mean[member, 0], layer.var[member, 0])  # type: ignore[attr-defined]
        used = tuple(part.double().cpu().numpy() for part in running)
        for name, (mean, var) in zip(STATISTICS, (used, batch_statistics(H)), strict=True):
            for eps1 in EPS1:
                U, D = preconditioner(mean, np.sqrt(smoothed_variance(var, eps1, EPS2)))
                own[f"{name} P {eps1:g}"] = condition_number((U @ D).T @ hessian @ U @ D)
                own[f"{name} D {eps1:g}"] = condition_number(D)
        found.append({name: float(f"{value:.4g}") for name, value in own.items()})
    return found


def _rank(H: np.ndarray) -> int:
    return int(np.linalg.matrix_rank(np.column_stack([np.ones(len(H)), H])))
