r"""What adaptive methods divide by, beside the two diagonals for which it is often taken.

The gradients of m examples at one point θ are the rows of an (m, n) array. Letters: m examples, n
parameters, gᵢ the gradient of example i, ḡ their mean, B a minibatch of b examples, g_B its mean
gradient, F the empirical Fisher matrix, G the diagonal matrix of AdaGrad and RMSProp.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from jaxtyping import Float

if TYPE_CHECKING:
    import torch

__all__ = ["Diagonals", "adaptive_diagonal", "fisher_diagonal", "network_diagonals"]

Gradients = Float[np.ndarray, "m n"]
Vector = Float[np.ndarray, " n"]


def fisher_diagonal(gradients: Gradients) -> Vector:
    r"""Return the diagonal of the empirical Fisher matrix (Source: F-03).

    .. math:: \operatorname{diag} F = \frac1m \sum_{i=1}^m g_i \odot g_i

    Here g_i is the gradient of the loss of example i, at the label of the data.

    >>> fisher_diagonal(np.array([[1.0, 2.0], [-1.0, 4.0]]))
    array([ 1., 10.])
    """
    return np.mean(gradients**2, axis=0)


def adaptive_diagonal(gradients: Gradients, batch: int) -> Vector:
    r"""Return the root of the expected squared gradient of a minibatch, at one point.

    .. math:: G_{jj}^2 = \mathbb E\bigl[(g_B)_j^2\bigr] = \bar g_j^2
        + \frac1b\, \frac{m - b}{m - 1}\, \bigl(F_{jj} - \bar g_j^2\bigr)

    It is what the root of RMSProp's average approaches while θ stays in its place. With b = 1 it is
    the root of the Fisher diagonal, with b = m the size of the gradient of the full batch. Neither
    is a curvature. A ``batch`` of b examples is drawn without repetition. Raises ValueError where b
    is not in 1 … m. Source: F-03.

    >>> gradients = np.array([[3.0], [-1.0]])
    >>> adaptive_diagonal(gradients, batch=1) ** 2, adaptive_diagonal(gradients, batch=2)
    (array([5.]), array([1.]))
    """
    m = len(gradients)
    if not 1 <= batch <= m:
        raise ValueError(f"a minibatch has 1 to m = {m} examples; got batch = {batch}")
    mean = np.mean(gradients, axis=0)
    variance = np.mean((gradients - mean) ** 2, axis=0)
    return np.sqrt(mean**2 + variance / batch * ((m - batch) / max(m - 1, 1)))


class Diagonals(NamedTuple):
    """Three numbers for each parameter of a network, at one point (Source: F-03)."""

    adaptive: Vector
    """G, by which RMSProp divides, in the limit of many minibatches."""
    hessian: Vector
    """The diagonal of the Hessian of the mean loss."""
    fisher: Vector
    """The diagonal of the empirical Fisher matrix."""


def network_diagonals(
    model: torch.nn.Module, x: torch.Tensor, y: torch.Tensor, batch: int
) -> Diagonals:
    """Return the three diagonals of a small network with the cross-entropy loss (Source: F-03).

    They have the order of ``model.parameters()``. Each parameter costs a product with the Hessian.
    All is computed in float64, and ``batch`` is that of :func:`adaptive_diagonal`, with its error.

    >>> import torch
    >>> model = torch.nn.Linear(1, 2, bias=False).double()
    >>> _ = torch.nn.init.zeros_(model.weight)
    >>> x, y = torch.tensor([[2.0], [2.0]], dtype=torch.float64), torch.tensor([0, 1])
    >>> network_diagonals(model, x, y, batch=2)
    Diagonals(adaptive=array([0., 0.]), hessian=array([1., 1.]), fisher=array([1., 1.]))
    """
    import torch

    model, x = copy.deepcopy(model).double(), x.double()
    leaves = list(model.parameters())

    grad = torch.autograd.grad

    def loss(rows: slice) -> torch.Tensor:
        return torch.nn.functional.cross_entropy(model(x[rows]), y[rows])

    def flat(parts: Sequence[torch.Tensor]) -> torch.Tensor:
        return torch.cat([part.reshape(-1) for part in parts])

    each = torch.stack([flat(grad(loss(slice(i, i + 1)), leaves)) for i in range(len(y))]).numpy()
    hessian = []
    for leaf, g in zip(leaves, grad(loss(slice(None)), leaves, create_graph=True), strict=True):
        entries = g.reshape(-1)
        for i in range(len(entries)):  # row i of the leaf's own block, and entry i of it
            hessian.append(grad(entries[i], leaf, retain_graph=True)[0].reshape(-1)[i].item())
    return Diagonals(adaptive_diagonal(each, batch), np.array(hessian), fisher_diagonal(each))
