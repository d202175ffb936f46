"""The factor by which a Newton step amplifies the relative error of a gradient."""

from collections.abc import Iterator

import numpy as np

from optdl.checks.exercise import Case, Exercise, Function
from optdl.erm import error_amplification
from optdl.observation import calls, observe, without_inverse

exercise = Exercise("L1-10", error_amplification, use=without_inverse)


@exercise.answer
def _(hessian, gradient, error):
    norm = np.linalg.norm
    solve = np.linalg.solve
    after = norm(solve(hessian, error)) / norm(solve(hessian, gradient))
    return after / (norm(error) / norm(gradient))


def _stiff_hessian(rng: np.random.Generator, p: int) -> np.ndarray:
    """Return a symmetric matrix with eigenvalues from 1 to 50."""
    rotation, _ = np.linalg.qr(rng.normal(size=(p, p)))
    H = (rotation * np.geomspace(1, 50, p)) @ rotation.T
    return ((H + H.T) / 2).round(3)


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    diagonal = np.diag([50.0, 2.0])
    yield {"hessian": diagonal, "gradient": np.array([4.0, 1.0]), "error": np.array([0.1, 0.3])}
    for p in (2, 3, 6):
        yield {
            "hessian": _stiff_hessian(rng, p),
            "gradient": rng.normal(size=p).round(2),
            "error": rng.normal(scale=0.1, size=p).round(3),
        }


@exercise.fact("it is never above κ(H)")
def _(amplify: Function, rng: np.random.Generator) -> bool:
    H = _stiff_hessian(rng, 4)
    kappa = np.linalg.cond(H)
    pairs = [(H, rng.normal(size=4), rng.normal(size=4)) for _ in range(50)]
    gains = observe(calls, amplify, *pairs)
    return bool(np.all(np.array(gains) <= kappa * (1 + 1e-9)) and max(gains) > 1)


@exercise.fact("the worst directions attain κ(H)")
def _(amplify: Function, rng: np.random.Generator) -> bool:
    H = _stiff_hessian(rng, 4)
    _, u = np.linalg.eigh(H)
    return bool(np.isclose(amplify(H, u[:, -1], 0.01 * u[:, 0]), np.linalg.cond(H)))


@exercise.fact("the scales of H, g and e do not matter")
def _(amplify: Function, rng: np.random.Generator) -> bool:
    H, g, e = _stiff_hessian(rng, 3), rng.normal(size=3), rng.normal(size=3)
    return bool(np.isclose(amplify(7 * H, 3 * g, 0.1 * e), amplify(H, g, e)))


exercise.mistake(
    "you multiply by H; a Newton step needs H⁻¹g", ("solve = np.linalg.solve", "solve = np.matmul")
)

exercise.mistake(
    "you compare absolute errors; divide each by the norm of its own vector",
    (" / norm(solve(hessian, gradient))", ""),
    ("(norm(error) / norm(gradient))", "norm(error)"),
)

exercise.mistake(
    "you return the relative error of H⁻¹g; divide it by that of g",
    (" / (norm(error) / norm(gradient))", ""),
)

exercise.mistake(
    "your ratio is upside down; divide the relative error of H⁻¹g by that of g",
    ("after / (norm(error) / norm(gradient))", "(norm(error) / norm(gradient)) / after"),
)

exercise.mistake(
    "you divide by the norm of the estimate g + e; a relative error refers to the exact g",
    ("solve(hessian, gradient)", "solve(hessian, gradient + error)"),
    ("norm(gradient)", "norm(gradient + error)"),
)

exercise.mistake(
    "your norm adds up the absolute values; ‖·‖ is the Euclidean norm",
    ("norm = np.linalg.norm", "norm = lambda v: np.abs(v).sum()"),
)

exercise.mistake(
    "you compute the inverse; solve the two linear systems, with np.linalg.solve",
    ("solve = np.linalg.solve", "solve = lambda H, b: np.linalg.inv(H) @ b"),
)


@exercise.mistake(
    "you return the bound κ(H); compute the amplification of this error, which may be smaller"
)
def _(hessian, gradient, error):
    return np.linalg.cond(hessian)
