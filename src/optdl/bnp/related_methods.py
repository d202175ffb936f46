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
    :math:`PP^T`, the matrix by which BNP multiplies the gradient of each output unit.

    Source: F-09

    Parameters
    ----------
    H : (N, n) array
        The inputs of the layer, one example a row.
    diagonal : bool
        Whether the covariances between different features are set to zero.

    Returns
    -------
    (n + 1, n + 1) array
        The bias comes first.

    Examples
    --------
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
    """Return the leading operations by which each method exceeds gradient descent, for one step.

    Products of matrices count; inverses and roots, which are renewed every so many steps, do not.
    FOOF forms the n × n second moment of the inputs and multiplies the gradient by its inverse.
    K-FAC does so on both sides, with the o × o second moment of the gradients of the outputs.
    Shampoo takes its two factors from the gradient itself.

    Source: P-29

    Parameters
    ----------
    features, outputs, rows : int
        n and o of the layer, and N.

    Returns
    -------
    dict of str to int
        Names of methods to numbers of operations.

    Examples
    --------
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
