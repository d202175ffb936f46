"""The factor by which a damped Newton step amplifies the relative error of a gradient."""

import numpy as np

from optdl.checks.exercise import answer_to
from optdl.erm import error_amplification
from optdl.observation import without_inverse


@answer_to("L1-10", error_amplification, use=without_inverse)
def exercise(hessian, gradient, error, damping):
    norm = np.linalg.norm
    solve = np.linalg.solve
    H = hessian + damping * np.eye(len(gradient))
    after = norm(solve(H, error)) / norm(solve(H, gradient))
    return after / (norm(error) / norm(gradient))


def _stiff_hessian(rng: np.random.Generator, p: int) -> np.ndarray:
    """Return a symmetric matrix with eigenvalues from 1 to 50."""
    rotation, _ = np.linalg.qr(rng.normal(size=(p, p)))
    H = (rotation * np.geomspace(1, 50, p)) @ rotation.T
    return ((H + H.T) / 2).round(3)


@exercise.cases
def _(rng):
    for low, high, damping in ((2, 3, 1), (2, 5, 0), (5, 8, 1)):
        p = int(rng.integers(low, high))
        gradient, error = rng.normal(size=p).round(2), rng.normal(scale=0.1, size=p).round(3)
        mu = damping * round(float(rng.uniform(0.3, 5)), 1)
        yield _stiff_hessian(rng, p), gradient, error, mu


@exercise.fact("with g steepest and e flattest of the eigenvectors it is (λ_max + μ)/(λ_min + μ)")
def _(amplify, rng):
    H = _stiff_hessian(rng, 4)
    _, u = np.linalg.eigh(H)
    bound = np.linalg.cond(H + 3 * np.eye(4))
    return np.isclose(amplify(H, u[:, -1], 0.01 * u[:, 0], 3.0), bound)


exercise.help(r"""
1. Which linear systems do the exact step and the one from $g+e$ solve, and what is the difference?
2. The error of the step solves $(H+\mu I)\,u=e$, and the exact step solves $(H+\mu I)\,v=g$.
   Compare $\lVert u\rVert/\lVert v\rVert$ with $\lVert e\rVert/\lVert g\rVert$.
3. Build the damped matrix and solve with it for `error` and for `gradient`. Form two ratios of
   norms, one for the step and one for the gradient, and divide the first by the second.
you add μ to every entry of H; add it to the diagonal, μI
    np.eye(len(gradient)) → 1
you multiply by H + μI; the step solves a linear system with it
    solve = np.linalg.solve → solve = np.matmul
you return the relative error of the step; divide it by that of g
    / (norm(error) / norm(gradient)) →
you solve for the estimate g + e; the error of the step is (H + μI)⁻¹e
    solve(H, error) → solve(H, gradient + error)
you return the condition number of H + μI, a bound; compute the amplification of this error
    after / (norm(error) / norm(gradient)) → np.linalg.cond(H)
""")
