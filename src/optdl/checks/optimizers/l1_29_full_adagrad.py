"""Compute the path of AdaGrad with the whole matrix of products in place of its diagonal."""

import numpy as np

from optdl.checks.exercise import answer_to
from optdl.checks.optimizers.shared import objective, random_paths, random_start


@answer_to("L1-29", "full_adagrad")
def exercise(gradient, start, lr, delta, steps):
    theta, path = start, [start]
    S = delta * np.eye(len(start))
    for _ in range(steps):
        g = gradient(theta)
        S = S + np.outer(g, g)
        values, vectors = np.linalg.eigh(S)
        theta = theta - lr * vectors @ ((vectors.T @ g) / np.sqrt(values))
        path.append(theta)
    return np.array(path)


@exercise.cases
def _(rng):
    # with four parameters δ is an eigenvalue twice, and rounding chooses its eigenvectors
    for _ in range(2):
        yield from [*random_paths(rng, lr=(0.1, 0.3), delta=(0.1, 0.4))][:2]


@exercise.fact("a rotation of the surface rotates the path, and changes nothing else")
def _(function, rng):
    gradient, start = objective(rng, 3), random_start(rng, 3)
    Q, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    path = np.asarray(function(gradient, start, 0.2, 0.1, 6))
    rotated = function(lambda theta: Q @ gradient(Q.T @ theta), Q @ start, 0.2, 0.1, 6)
    return np.allclose(rotated, path @ Q.T, rtol=1e-8)


exercise.help(r"""
1. What does $S^{-1/2}$ do to a vector that points along an eigenvector of $S$?
2. Let the columns of $Q$ be the eigenvectors and $\Lambda$ the diagonal matrix of the eigenvalues.
   Then $S = Q \Lambda Q^T$ and $S^{-1/2} g = Q \Lambda^{-1/2} Q^T g$.
3. Multiply $g$ by $Q^T$, divide by the roots of the eigenvalues, and multiply by $Q$.
you take the root of each entry of S; that of a matrix takes the roots of its eigenvalues
    values, vectors = np.linalg.eigh(S) → vectors = np.sqrt(S)
    vectors @ ((vectors.T @ g) / np.sqrt(values)) → np.linalg.solve(vectors, g)
you use Cholesky's factor of S, which depends on the axes; take the symmetric root (eigenvectors)
    vectors @ ((vectors.T @ g) / np.sqrt(values)) → np.linalg.solve(np.linalg.cholesky(S), g)
your step is S⁻¹g; AdaGrad divides by the root of the sum: S^(−1/2) g
    / np.sqrt(values) → / values
you multiply by the root of S; divide by it
    / np.sqrt(values) → * np.sqrt(values)
your path is that of AdaGrad with one rate for each entry; S and its root are whole matrices
    np.outer(g, g) → np.diag(g * g)
you add the number g·g to each entry of S; add the matrix g gᵀ, np.outer(g, g)
    np.outer(g, g) → g @ g
your S has the newest product alone; add to the S of the step before
    S = S + np → S = delta * np.eye(len(g)) + np
you divide by the S of the earlier steps; add the newest g gᵀ first
    eigh(S) → eigh(S - np.outer(g, g))
your eigenvectors are transposed; they are the columns of what eigh returns
    vectors @ ((vectors.T @ g) / np.sqrt(values)) → vectors.T @ ((vectors @ g) / np.sqrt(values))
you forget to turn back: the quotient belongs to the eigenvectors; multiply by their matrix
    vectors @ ((vectors.T @ g) / np.sqrt(values)) → ((vectors.T @ g) / np.sqrt(values))
you add δI in each step; S starts at δI, and only products g gᵀ are added
    S = delta * → S = 0 * ; np.outer(g, g) → np.outer(g, g) + delta * np.eye(len(g))
you take the power of each entry of S; that of a matrix acts on its eigenvalues
    values, vectors = np.linalg.eigh(S) → vectors = S**-0.5
    vectors @ ((vectors.T @ g) / np.sqrt(values)) → vectors @ g
""")
