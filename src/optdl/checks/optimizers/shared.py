"""What several exercises on this topic have in common."""

from collections.abc import Callable, Iterator

import numpy as np

from optdl.checks.exercise import Case
from optdl.objectives import log_cosh_gradient, named

Gradient = Callable[[np.ndarray], np.ndarray]


def objective(rng: np.random.Generator, n: int) -> Gradient:
    """Return the gradient of Σ log cosh(Aw − b) + ½‖w‖²: convex, smooth, not quadratic."""
    A = rng.uniform(0.5, 2.0, size=(n, n)).round(1) * rng.choice([-1, 1], size=(n, n))
    b = rng.uniform(-1, 1, size=n).round(1)
    formula = f"w ↦ A.T @ tanh(A @ w - b) + w, A = {A.tolist()}, b = {b.tolist()}"
    return named(formula, log_cosh_gradient, A, b)


def random_start(rng: np.random.Generator, n: int) -> np.ndarray:
    """Return a start away from zero in each coordinate."""
    return rng.uniform(1.0, 2.0, size=n).round(1) * rng.choice([-1, 1], size=n)


def random_paths(rng: np.random.Generator, **ranges: tuple[float, float]) -> Iterator[Case]:
    """Yield a short path of one parameter and two longer ones, with settings from their ranges."""
    sizes, steps = rng.integers([[1, 2, 4], [3, 5, 8]], [[2, 4, 6], [5, 8, 11]]).tolist()
    for n, count in zip(sizes, steps, strict=True):
        drawn = {name: round(rng.uniform(*limits), 2) for name, limits in ranges.items()}
        case = {"gradient": objective(rng, n), "start": random_start(rng, n)}
        yield {**case, **drawn, "steps": count}
