r"""The Hessian of all parameters of a small network, and P for all of its dense units at once.

Axis letters: ``m`` examples, ``p`` parameters of the network, ``k`` of one unit.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from optdl.bnp.algorithm import Float, batch_statistics, scale_dense, smoothed_variance
from optdl.bnp.hessian import preconditioner

__all__ = ["NetworkHessian", "network_hessian", "unit_steepness"]


class NetworkHessian(NamedTuple):
    """The Hessian M of all parameters, P by dense units, and the units (Source: P-09, P-11)."""

    matrix: Float[np.ndarray, "p p"]
    """M, in the order of ``model.parameters()``."""
    P: Float[np.ndarray, "p p"]
    """UD / q of each unit's inputs, in the rows and columns of its bias and weights; else 0."""
    units: list[np.ndarray]
    """For each unit the k indices of its bias, which comes first, and its weights."""


def network_hessian(model: nn.Sequential, x: Tensor, y: Tensor) -> NetworkHessian:
    r"""Return the Hessian of the mean cross-entropy in all parameters, and P for it.

    :math:`P^TMP` is the Hessian in the coordinates of BNP. P is that of these examples:
    :math:`\tfrac1q UD` with their :func:`batch_statistics`, :func:`smoothed_variance` and
    :func:`scale_dense`. The layers with parameters are dense ones, with a bias; M has p² entries.
    ``x`` has m rows, ``y`` their classes. Source: P-09, P-11.

    >>> model = nn.Sequential(nn.Linear(1, 2, dtype=torch.float64))
    >>> for parameter in model.parameters():
    ...     _ = nn.init.zeros_(parameter)  # both classes have the probability 1/2
    >>> x, y = torch.tensor([[0.0], [4.0]], dtype=torch.float64), torch.tensor([0, 1])
    >>> M, P, units = network_hessian(model, x, y)
    >>> [unit.tolist() for unit in units], M[np.ix_(units[0], units[0])]
    ([[2, 0], [3, 1]], array([[0.25, 0.5 ],
           [0.5 , 2.  ]]))
    >>> (P.T @ M @ P)[np.ix_(units[0], units[0])].round(2)
    array([[0.25, 0.  ],
           [0.  , 0.25]])
    """
    named = dict(model.named_parameters())

    def mean_loss(theta: Tensor) -> Tensor:
        parts = torch.split(theta, [p.numel() for p in named.values()])
        moved = {n: v.reshape(p.shape) for (n, p), v in zip(named.items(), parts, strict=True)}
        return nn.functional.cross_entropy(torch.func.functional_call(model, moved, x), y)

    theta = nn.utils.parameters_to_vector(named.values()).detach()
    hessian: Any = torch.autograd.functional.hessian  # which has no types
    M = hessian(mean_loss, theta, vectorize=True).numpy()
    P, units, first = np.zeros_like(M), [], 0
    for layer in model:
        if isinstance(layer, nn.Linear):
            o, n = layer.weight.shape
            mean, var = batch_statistics(x.detach().numpy())
            U, D = preconditioner(mean, np.sqrt(smoothed_variance(var)))
            for i in range(o):
                unit = np.r_[first + o * n + i, first + i * n : first + (i + 1) * n]
                P[np.ix_(unit, unit)] = U @ D / np.sqrt(scale_dense(n, len(x)))
                units.append(unit)
            first += o * (n + 1)
        x = layer(x)
    return NetworkHessian(M, P, units)


def unit_steepness(M: Float[np.ndarray, "p p"], units: list[np.ndarray]) -> tuple[float, int]:
    r"""Return how much steeper a Hessian is than its steepest unit, and in how many directions.

    .. math:: \frac{\lambda_{max}(M)}{\max_k \lVert M_{kk}\rVert_2} \qquad\text{and}\qquad
        \Bigl\lvert\bigl\{i : \lambda_i(M) > \tfrac1{100}\lambda_{max}(M)\bigr\}\Bigr\rvert

    The blocks :math:`M_{kk}` are those of the ``units``. If M has no negative eigenvalue, the first
    number lies between 1, where the steepest block alone matters, and the number of units.
    Source: P-09.

    >>> M = np.array([[2.0, 2.0, 0.0], [2.0, 2.0, 0.0], [0.0, 0.0, 0.1]])
    >>> steepness, directions = unit_steepness(M, [np.array([0]), np.array([1, 2])])
    >>> round(steepness, 9), directions
    (2.0, 2)
    """
    values = np.linalg.eigvalsh(M)
    steepest = max(np.linalg.norm(M[np.ix_(unit, unit)], 2) for unit in units)
    return float(values[-1] / steepest), int(np.sum(values > values[-1] / 100))
