"""Compute the iterates of Newton and Schulz that lead to the polar factor of a matrix."""

import numpy as np

from optdl.checks.exercise import answer_to


@answer_to("F-13", "polar_iterates")
def exercise(matrix, steps):
    X = matrix / np.linalg.norm(matrix)
    path = [X]
    for _ in range(steps):
        X = 1.5 * X - 0.5 * X @ X.T @ X
        path.append(X)
    return np.array(path)


@exercise.cases
def _(rng):
    few, many = rng.integers([2, 4], [4, 6]).tolist()
    for rows, columns in ((1, few), (2, 2), (few, many), (many, 2), (1, 1)):
        matrix = rng.normal(size=(rows, columns)).round(1) + 0.05
        yield {"matrix": matrix, "steps": int(rng.integers(3, 7))}


@exercise.fact("with the singular values 5, 0.5 and 0.01, row 40 is UVᵀ up to rounding")
def _(function, rng):
    U, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    V, _ = np.linalg.qr(rng.normal(size=(5, 3)))
    path = function(U @ np.diag([5.0, 0.5, 0.01]) @ V.T, 40)
    return np.allclose(np.asarray(path)[-1], U @ V.T, atol=1e-9)


@exercise.fact("a matrix of nan gives nan everywhere, as nothing is decomposed", is_visible=True)
def _(function, rng):
    return np.isnan(np.asarray(function(np.full((2, 3), np.nan), 2))).all()


exercise.help(r"""
1. Which two equations for $a$ and $b$ follow from $p(1) = 1$ and $p'(1) = 0$?
2. $p(s) = as + bs^3$ asks for $a + b = 1$ and $a + 3b = 0$: subtract one from the other.
3. Before the loop, divide the matrix by its Frobenius norm, which `np.linalg.norm` returns. In each
   step, add $a$ times $X$ and $b$ times the matrix product of $X$, $X^T$ and $X$.
you start with the matrix as it is; divide by its Frobenius norm, so that no s is above 1
    matrix / np.linalg.norm(matrix) → matrix
you divide by the largest singular value; divide by the Frobenius norm, which costs less
    np.linalg.norm(matrix) → np.linalg.norm(matrix, 2)
you cube each entry; the odd power of a matrix that cubes its singular values is X Xᵀ X
    X @ X.T @ X → X**3
your polynomial is 2s − s³: its slope at 1 is −1; both conditions together give 3/2 and −1/2
    1.5 * X - 0.5 * X → 2 * X - X
your polynomial is Muon's quintic, which ends near 1 only; p is cubic, p(1) = 1 and p′(1) = 0
    1.5 * X - 0.5 * X @ X.T @ X → 3.4445 * X - 4.775 * X @ X.T @ X + 2.0315 * X @ X.T @ X @ X.T @ X
your path begins with the matrix; its first entry is the matrix over its norm
    path = [X] → path = [matrix]
your a and b are exchanged; a = 3/2 multiplies X, and b = −1/2 the cube
    1.5 * X - 0.5 * X → -0.5 * X + 1.5 * X
""")
