"""The k-th power of a diagonalizable matrix, through its eigenvalues."""

import numpy as np

from optdl.checks.exercise import answer_to
from optdl.observation import observe, products
from optdl.quadratic import eigen_power


@answer_to("L2-01", eigen_power, rtol=1e-8, atol=1e-10)
def exercise(weight, k):
    eigenvalues, V = np.linalg.eig(weight)
    power = V @ np.diag(eigenvalues**k) @ np.linalg.inv(V)
    return power.real


@exercise.cases
def _(rng):
    n, some, many = rng.integers([2, 2, 6], [5, 5, 12]).tolist()
    for size, k, pairs in ((n, 0, 0), (n, some, 0), (2, 1, 1), (n, many, 1), (5, some, 2)):
        eigenvalues = np.linspace(-1.2, 1.3, size) + rng.uniform(-0.1, 0.1, size=size)
        D = np.diag(rng.permutation(eigenvalues))
        for i in range(0, 2 * pairs, 2):
            # a pair of complex eigenvalues a ± bi
            D[i + 1, i + 1] = D[i, i]
            D[i, i + 1] = rng.uniform(0.5, 1)
            D[i + 1, i] = -D[i, i + 1]
        V = np.eye(size) + 0.3 * rng.normal(size=(size, size))
        yield {"weight": V @ D @ np.linalg.inv(V), "k": k}


@exercise.fact("the first power is the matrix itself")
def _(function, rng):
    W = rng.normal(size=(5, 5))
    return np.allclose(function(W, 1), W)


@exercise.fact("for k = 1000 at most five products of matrices are made", is_visible=True)
def _(function, rng):
    return observe(products, function, 0.5 * rng.normal(size=(4, 4)), 1000) < 6


exercise.help(r"""
1. Write $W^2$ as $V\,\mathrm{diag}(\lambda)\,V^{-1}\;V\,\mathrm{diag}(\lambda)\,V^{-1}$. What
   cancels in the middle, and what is the $k$-th power of a diagonal matrix?
2. In $W^k$ each $V^{-1}V$ cancels, so it is $V$ times a diagonal matrix of powers times $V^{-1}$.
3. Compute the eigenvalues and eigenvectors of a general square matrix, raise the eigenvalues to the
   power, multiply the three matrices, and take the real part at the very end.
you use Vᵀ; V is not orthogonal here, so it takes the inverse V⁻¹
    np.linalg.inv(V) → V.T
your answer is k W, as if eigenvalues were multiplied by k; raise them to the power k
    eigenvalues**k → eigenvalues * k
you exchanged V and V⁻¹; W = V diag(λ) V⁻¹
    V @ np.diag(eigenvalues**k) @ np.linalg.inv(V) → np.linalg.inv(V) @ np.diag(eigenvalues**k) @ V
your λᵏ is not transformed back with V · … · V⁻¹, or it scales the columns of V⁻¹ and not its rows
    V @ np.diag(eigenvalues**k) @ np.linalg.inv(V) → np.diag(eigenvalues**k)
`eigh` is for symmetric matrices and reads one triangle of W; use `eig`
    np.linalg.eig( → np.linalg.eigh(
you drop the imaginary parts of eigenvalues and V before you multiply; only the product is real
    np.linalg.eig(weight) → (part.real for part in np.linalg.eig(weight))
you drop the eigenvalues' imaginary parts before you raise them to k; only the product is real
    eigenvalues**k → eigenvalues.real**k
you raise each entry of W to the power k; the matrix power multiplies k factors W
    V @ np.diag(eigenvalues**k) @ np.linalg.inv(V) → weight**k
you take the conjugate transpose of V for its inverse; V is not unitary here
    np.linalg.inv(V) → V.conj().T
you drop the imaginary parts of λᵏ before you multiply; only the product is real
    eigenvalues**k → (eigenvalues**k).real
""")
