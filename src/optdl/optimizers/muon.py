"""Momentum whose singular values are all made equal."""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass

from optdl.optimizers.base import FirstOrder
from optdl.optimizers.trees import Array
from optdl.optimizers.validation import require

__all__ = ["Muon", "newton_schulz"]

TINY = 1e-30
"""Keeps a matrix of zeros from 0/0; the norm of any other is the same with it."""


GradientSum = namedtuple("GradientSum", ["t", "m"])
"""State of Muon."""


@dataclass(frozen=True)
class Muon(FirstOrder):
    r"""Momentum that is orthogonalized: it moves a matrix equally in every direction.

    .. math:: m \leftarrow \alpha m + g, \qquad d = g + \alpha m, \qquad
        \theta \leftarrow \theta - \eta\,\sqrt{\max(1, a/b)}\;\mathrm{NS}(d)

    θ is an a × b matrix, and NS is :func:`newton_schulz`: of the singular value decomposition d =
    UΣVᵀ about UVᵀ remains. With ``nesterov=False`` d is m. Any other array than a matrix, such as a
    vector of biases, takes the step θ ← θ − ηd, which is that of
    ``torch.optim.SGD(momentum=alpha, nesterov=nesterov)``. Source: F-13.

    Two options serve beside AdamW (Source: F-19). With ``match_adamw`` the factor of NS(d) is
    0.2 √max(a, b), so that the root mean square of a step is about 0.2 η where d has full rank, a
    size that AdamW's steps often have. And a matrix is first multiplied by 1 − ηω, where ω is the
    ``decay``.

    On matrices it is ``torch.optim.Muon(momentum=alpha, weight_decay=decay)``, ``match_adamw`` its
    ``adjust_lr_fn="match_rms_adamw"``. That class averages, m ← αm + (1 − α)g, which makes no
    difference, because NS does not depend on the length of d; it computes NS in bfloat16; and its
    ``weight_decay`` is 0.1 when not given.

    >>> import numpy as np
    >>> opt, theta = Muon(lr=1.0), np.zeros((2, 2))
    >>> theta, _ = opt.step(theta, opt.init(theta), grad=lambda theta: np.diag([3.0, 1.0]))
    >>> theta.round(1) + 0.0
    array([[-0.8,  0. ],
           [ 0. , -1.1]])
    """

    alpha: float = 0.95
    nesterov: bool = True
    steps: int = 5
    match_adamw: bool = False
    decay: float = 0.0

    memory = GradientSum

    def update(self, t: int, theta: Array, g: Array, m: Array) -> tuple[Array, ...]:
        """Return θ and m after step t."""
        m = self.alpha * m + g
        d = g + self.alpha * m if self.nesterov else m
        if theta.ndim == 2:
            rows, columns = theta.shape
            matched = 0.2 * max(rows, columns) ** 0.5
            scale = matched if self.match_adamw else max(1, rows / columns) ** 0.5
            d = scale * newton_schulz(d, self.steps)
            theta = (1 - self.rate(t) * self.decay) * theta
        return theta - self.rate(t) * d, m


def newton_schulz(matrix: Array, steps: int = 5) -> Array:
    r"""Return about the polar factor UVᵀ of a matrix UΣVᵀ, by products of matrices alone.

    .. math:: X_0 = \frac{G}{\lVert G\rVert_F}, \qquad
        X_{k+1} = 3.4445\, X_k - 4.775\, X_k X_k^T X_k + 2.0315\, (X_k X_k^T)^2 X_k

    An odd polynomial of a matrix applies to its singular values alone: σ ↦ 3.4445 σ − 4.775 σ³ +
    2.0315 σ⁵. Its slope at zero is steep, so that small values grow fast; it has no fixed point at
    1, so that after 5 steps all values above 0.002 ‖G‖_F are between 0.68 and 1.21, and more steps
    do not bring them closer to 1. The matrix of zeros stays as it is. The result has the kind and
    the precision of G. Raises ValueError where G is not a matrix, or ``steps`` is less than 1.
    Source: F-13.

    >>> import numpy as np
    >>> G = np.array([[0.0, 5.0, 0.0], [1.0, 0.0, 0.0]])
    >>> newton_schulz(G).round(2)
    array([[0.  , 0.72, 0.  ],
           [0.8 , 0.  , 0.  ]])
    """
    require("steps", steps)
    if len(matrix.shape) != 2:
        raise ValueError(f"expected a matrix, got an array of shape {tuple(matrix.shape)}")
    rows, columns = matrix.shape
    if rows > columns:  # the smaller of the two Gram matrices costs less
        return newton_schulz(matrix.T, steps).T
    # the norm of torch, as half precision has no room for the sum of squares
    norm = matrix.norm() if hasattr(matrix, "norm") else (matrix * matrix).sum() ** 0.5
    X = matrix / (norm + TINY)
    for _ in range(steps):
        A = X @ X.T
        X = 3.4445 * X + (-4.775 * A + 2.0315 * A @ A) @ X
    return X
