"""Newton's method: steps by the curvature itself."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from optdl.optimizers.base import Gradient, Optimizer, State, Steps
from optdl.optimizers.schedules import Schedule
from optdl.optimizers.trees import Array, Tree, require_gradient, tree_map

__all__ = ["Newton"]


@dataclass(frozen=True, kw_only=True)
class Newton(Optimizer):
    r"""Newton's method, with a rate and with damping (Source: L1-32, L2-07, F-17).

    .. math:: \theta \leftarrow \theta - \eta\,(H + \mu I)^{-1} \nabla J(\theta)

    The inverse is never formed; a linear system is solved. With η = 1 and μ = 0 one step reaches
    the minimum of a quadratic. On :math:`\theta \cdot A\theta` a rate shrinks every direction
    alike, :math:`\theta^{(t)} = (1 - \eta)\,\theta^{(t-1)}`, whatever A and whatever linear
    coordinates.

    The step is sure to go downhill only where H is positive definite. Elsewhere it leads to the
    critical point of the quadratic model, which may be a saddle or a maximum. Damping with μ above
    −λ_min makes it a descent direction again; for large μ it is a short step of gradient descent.
    Raises ValueError where H has another shape or H + μI is singular.

    Parameters
    ----------
    hessian : callable
        θ ↦ H, an (n, n) array of the same kind as θ. n counts all entries of θ, in the order
        in which they stand in it.

    Examples
    --------
    >>> import numpy as np
    >>> from optdl.optimizers import run
    >>> H = np.array([[2.0, 1.0], [1.0, 3.0]])
    >>> opt = Newton(hessian=lambda theta: H)
    >>> run(opt, lambda theta: H @ theta - np.array([3.0, 4.0]), np.zeros(2), steps=1)
    array([[0., 0.],
           [1., 1.]])
    """

    hessian: Callable[[Tree], Array]
    lr: float | Schedule = 1.0
    damping: float = 0.0

    def step(
        self, theta: Tree, state: State, grad: Gradient, *, check_finite: bool = True
    ) -> tuple[Tree, State]:
        """Take one step; see :meth:`Optimizer.step`."""
        t = state.t + 1
        g = grad(theta)
        require_gradient(theta, g, t, check_finite)
        row, slope = _ravel(theta, theta), _ravel(theta, g)
        return _unravel(theta, self.update(t, row, slope, self._hessian(theta, len(row)))), Steps(t)

    def update(self, t: int, theta: Array, g: Array, H: Array) -> Array:
        """Return θ after step t, all its n entries in a row."""
        damped = H + self.damping * _identity(H)
        return theta - self.rate(t) * solve(damped, g)

    def _hessian(self, theta: Tree, n: int) -> Array:
        H = self.hessian(theta)
        if tuple(H.shape) != (n, n):
            raise ValueError(
                f"the Hessian of {n} parameters must have shape ({n}, {n}), "
                f"got {tuple(H.shape)}; reshape what hessian returns"
            )
        return H


def _ravel(theta: Tree, tree: Tree) -> Array:
    """Return the entries of all arrays in a row, in the order of θ."""
    rows: list[Array] = []
    tree_map(lambda _, array: rows.append(array.reshape(-1)), theta, tree)
    return np.concatenate(rows) if isinstance(rows[0], np.ndarray) else _torch().cat(rows)


def _unravel(theta: Tree, row: Array) -> Tree:
    """Return the tree like θ whose entries stand in a row."""

    def take(array: Array) -> Array:
        nonlocal row
        size = math.prod(array.shape)
        part, row = row[:size], row[size:]
        return part.reshape(array.shape)

    return tree_map(take, theta)


def _identity(H: Array) -> Array:
    """Return the identity matrix, of the kind and precision of H."""
    if isinstance(H, np.ndarray):
        return np.eye(len(H), dtype=H.dtype)
    return _torch().eye(len(H), dtype=H.dtype, device=H.device)


def _torch() -> Any:
    """Return torch, which is loaded for tensors only: it takes a second."""
    import torch

    return torch


def solve(H: Array, g: Array) -> Array:
    """Return H⁻¹g."""
    linalg = np.linalg if isinstance(g, np.ndarray) else _torch().linalg
    try:
        return linalg.solve(H, g)
    except linalg.LinAlgError:
        raise ValueError(
            "the Hessian is singular: some direction is flat, and no step along it is best; "
            "use damping > 0"
        ) from None
