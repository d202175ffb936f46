r"""What BNP has in common with other methods that precondition the gradient of a dense layer.

Axis letters: ``N`` rows of H (examples), ``n`` features of the input, ``o`` outputs.
"""

from __future__ import annotations

import numpy as np

from optdl.bnp.algorithm import Float, Matrix, batch_statistics, bnp_flops


def input_factor(H: Matrix, diagonal: bool = False) -> Float[np.ndarray, "n+1 n+1"]:
    r"""Return the second moment of :math:`[1, h]`, the factor of the inputs in K-FAC.

    .. math:: A = \tfrac1N \hat H^T\hat H
        = \begin{bmatrix} 1 & \mu^T \\ \mu & \Sigma + \mu\mu^T \end{bmatrix}

    With ``diagonal`` the covariance Σ is replaced by its diagonal. The inverse is then
    :math:`PP^T`, the matrix by which BNP multiplies the gradient of each output unit. The bias
    comes first. Source: F-09.

    >>> H = np.array([[1.0, 0.0], [3.0, 2.0]])
    >>> input_factor(H)
    array([[1., 2., 1.],
           [2., 5., 3.],
           [1., 3., 2.]])
    >>> input_factor(H, diagonal=True)
    array([[1., 2., 1.],
           [2., 5., 2.],
           [1., 2., 2.]])
    """
    mean, var = batch_statistics(H)
    center = np.concatenate([[1.0], mean])
    covariance = np.diag(var) if diagonal else np.cov(H, rowvar=False, ddof=0).reshape(len(var), -1)
    factor = np.outer(center, center)
    factor[1:, 1:] += covariance
    return factor


def preconditioning_flops(features: int, outputs: int, rows: int) -> dict[str, int]:
    """Return the leading operations of a step by which each method exceeds gradient descent.

    Products of matrices count; inverses and roots, which are renewed every so many steps, do not.
    FOOF forms the n × n second moment of the inputs and multiplies the gradient by its inverse.
    K-FAC does so on both sides, with the o × o second moment of the gradients of the outputs.
    Shampoo takes its two factors from the gradient itself. Here n, o and N are ``features``,
    ``outputs`` and ``rows``; the result has the number of operations by the name of the method.
    Source: P-29.

    >>> preconditioning_flops(100, 100, 60)["K-FAC"]
    6400000
    """
    n, o, N = features, outputs, rows
    inputs, signals = 2 * n * n * N, 2 * o * o * N
    left, right = 2 * o * o * n, 2 * o * n * n
    return {
        "BNP": bnp_flops(n, o, N),
        "FOOF": inputs + right,
        "K-FAC": inputs + signals + left + right,
        "Shampoo": 2 * (left + right),
    }
