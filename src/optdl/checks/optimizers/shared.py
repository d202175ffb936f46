"""What several exercises on this topic have in common."""

from collections.abc import Callable, Iterator

import numpy as np

from optdl.checks.exercise import Case
from optdl.objectives import log_cosh_gradient, log_cosh_hessian, named

Gradient = Callable[[np.ndarray], np.ndarray]


def objective(rng: np.random.Generator, n: int) -> tuple[Gradient, Callable[..., np.ndarray]]:
    """Return gradient and Hessian of Σ log cosh(Aw − b) + ½‖w‖²: convex, smooth, not quadratic."""
    A = rng.uniform(0.5, 2.0, size=(n, n)).round(1) * rng.choice([-1, 1], size=(n, n))
    b = rng.uniform(-1, 1, size=n).round(1)
    where = f"A = {A.tolist()}, b = {b.tolist()}"
    hessian = f"w ↦ A.T @ diag(1 / cosh(A @ w - b)**2) @ A + I, {where}"
    return (
        named(f"w ↦ A.T @ tanh(A @ w - b) + w, {where}", log_cosh_gradient, A, b),
        named(hessian, log_cosh_hessian, A, b),
    )


def random_start(rng: np.random.Generator, n: int) -> np.ndarray:
    """Return a start away from zero in each coordinate."""
    return rng.uniform(1.0, 2.0, size=n).round(1) * rng.choice([-1, 1], size=n)


def random_paths(rng: np.random.Generator, **settings: tuple[float, ...]) -> Iterator[Case]:
    """Yield paths of 3, 5 and 8 steps; each setting has a value for each of them."""
    for number, (n, steps) in enumerate(((1, 3), (2, 5), (4, 8))):
        gradient, _ = objective(rng, n)
        chosen = {name: values[number] for name, values in settings.items()}
        yield {"gradient": gradient, "start": random_start(rng, n), **chosen, "steps": steps}
