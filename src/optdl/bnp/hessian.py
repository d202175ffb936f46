r"""The Hessian of one layer, and the preconditioner P = UD that improves its condition number.

Axis letters: ``N`` rows of H (examples), ``n`` features of the input, ``o`` outputs.
"""

from __future__ import annotations

import numpy as np

from optdl.bnp.algorithm import Float, Matrix, Vector, batch_statistics, smoothed_variance


def extended_activations(H: Matrix) -> Float[np.ndarray, "N n+1"]:
    r"""Return :math:`\hat H = [e, H]`: a column of ones, for the bias, and the inputs.

    Source: P-09

    >>> extended_activations(np.array([[2.0], [3.0]]))
    array([[1., 2.],
           [1., 3.]])
    """
    return np.column_stack([np.ones(len(H)), H])


def layer_hessian(H: Matrix, curvatures: Float[np.ndarray, " N"]) -> Float[np.ndarray, "n+1 n+1"]:
    r"""Return the Hessian of the mean loss in the weights of one output unit (Source: P-09, P-10).

    .. math:: \nabla^2_{\hat w} \mathcal L = \hat H^T S \hat H, \qquad
        S = \tfrac1N \operatorname{diag}\bigl(L''(\hat w^T \hat h_j)\bigr)

    The bias comes first. Where all curvatures :math:`L''` are positive the condition number is at
    most :math:`\kappa(\hat H)^2\,\kappa(S)`. The curvatures are the second derivatives of each
    example's loss in the output of the unit.

    >>> layer_hessian(np.array([[2.0], [4.0]]), np.ones(2))
    array([[ 1.,  3.],
           [ 3., 10.]])
    """
    extended = extended_activations(H)
    return (extended.T * (curvatures / len(H))) @ extended


def preconditioner(
    mean: Vector, std: Vector
) -> tuple[Float[np.ndarray, "n+1 n+1"], Float[np.ndarray, "n+1 n+1"]]:
    r"""Return U, which centers, and D, which scales; the preconditioner is P = UD (Source: P-11).

    .. math:: U = \begin{bmatrix} 1 & -\mu^T \\ 0 & I \end{bmatrix}, \qquad
        D = \begin{bmatrix} 1 & 0 \\ 0 & \operatorname{diag}(\sigma) \end{bmatrix}^{-1}

    A deviation that is not positive raises ValueError: D does not exist for a constant feature.

    >>> U, D = preconditioner(np.array([3.0]), np.array([2.0]))
    >>> U @ D
    array([[ 1. , -1.5],
           [ 0. ,  0.5]])
    """
    _require_positive(std)
    U = np.eye(len(mean) + 1)
    U[0, 1:] = -mean
    return U, np.diag(np.concatenate([[1.0], 1.0 / std]))


def normalized_activations(H: Matrix) -> Float[np.ndarray, "N n+1"]:
    r"""Return :math:`\hat G = \hat H P`, that is :math:`[e, (h - \mu_H)/\sigma_H]` (Source: P-11).

    Raises ValueError where a feature is constant.

    >>> normalized_activations(np.array([[1.0], [3.0]]))
    array([[ 1., -1.],
           [ 1.,  1.]])
    """
    mean, var = batch_statistics(H)
    U, D = preconditioner(mean, np.sqrt(var))
    return extended_activations(H) @ U @ D


def condition_numbers(H: Matrix) -> tuple[float, float, float]:
    r"""Return :math:`\kappa(\hat H)`, :math:`\kappa(\hat HU)` and :math:`\kappa(\hat HUD)`.

    Where :math:`\hat H` has full column rank, centering never makes it worse,
    :math:`\kappa(\hat HU) \le \kappa(\hat H)`, and scaling by D comes within a factor
    :math:`\sqrt{n+1}` of the best invertible diagonal matrix. A constant feature raises ValueError,
    as D does not exist then. Each is the largest singular value over the smallest nonzero one.
    Source: P-12.

    >>> H = np.array([[13.0, 1.0], [17.0, 1.0], [13.0, -1.0], [17.0, -1.0]])
    >>> [round(kappa, 2) for kappa in condition_numbers(H)]
    [114.99, 2.0, 1.0]
    """
    from optdl.conditioning import condition_number  # with its chapter's needs

    mean, var = batch_statistics(H)
    U, D = preconditioner(mean, np.sqrt(var))
    centered = extended_activations(H) @ U
    return (
        condition_number(extended_activations(H)),
        condition_number(centered),
        condition_number(centered @ D),
    )


def hessian_condition_numbers(
    H: Matrix, curvatures: Float[np.ndarray, " N"], eps1: float = 1e-2, eps2: float = 1e-4
) -> tuple[float, float, float]:
    r"""Return κ of the Hessian of one unit, of :math:`P^T\nabla^2\mathcal L\,P`, and of D.

    P is that of a step of BNP: its deviations are the root of :func:`smoothed_variance`. The
    curvatures are those of :func:`layer_hessian`. Each is the largest singular value over the
    smallest nonzero one. Source: P-18.

    >>> H = np.array([[13.0, 1.0], [17.0, 1.0], [13.0, -1.0], [17.0, -1.0]])
    >>> kappas = hessian_condition_numbers(H, np.ones(4), eps1=0.0, eps2=0.0)
    >>> [round(kappa) for kappa in kappas]
    [13223, 1, 2]
    """
    from optdl.conditioning import condition_number

    mean, var = batch_statistics(H)
    U, D = preconditioner(mean, np.sqrt(smoothed_variance(var, eps1, eps2)))
    hessian, P = layer_hessian(H, curvatures), U @ D
    after = condition_number(P.T @ hessian @ P)
    return condition_number(hessian), after, condition_number(D)


def absorb_normalization(
    W: Float[np.ndarray, "o n"], b: Float[np.ndarray, " o"], mean: Vector, std: Vector
) -> tuple[Float[np.ndarray, "o n"], Float[np.ndarray, " o"]]:
    r"""Return the plain layer that equals a layer behind batch normalization (Source: P-17).

    .. math:: W\,\frac{h-\mu_H}{\sigma_H} + b = \hat W h + \hat b, \qquad
        \hat W = W\operatorname{diag}(1/\sigma_H), \quad \hat b = b - \hat W\mu_H

    With the statistics held constant, one step of gradient descent on :math:`W, b` is one step of
    BNP, with :math:`q = 1`, on :math:`\hat W, \hat b`. A deviation that is not positive raises
    ValueError. The results are :math:`\hat W` and :math:`\hat b`.

    >>> absorb_normalization(np.array([[6.0]]), np.array([1.0]), np.array([5.0]), np.array([2.0]))
    (array([[3.]]), array([-14.]))
    """
    _require_positive(std)
    absorbed = W / std
    return absorbed, b - absorbed @ mean


def _require_positive(std: Vector) -> None:
    """Refuse to divide by the standard deviation of a constant feature."""
    if not np.all(std > 0):
        raise ValueError(
            f"std must be positive; got {float(np.min(std)):.3g} in feature {int(np.argmin(std))}: "
            "a constant feature cannot be scaled (smoothed_variance keeps it away from zero)"
        )
