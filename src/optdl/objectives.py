"""Losses, models and derivatives that a check calls an answer with.

An answer may live in another process than its check. A function of this module, and a
``functools.partial`` of one, goes there by its name and runs beside the answer. So none of them is
what an exercise asks for.
"""

from collections.abc import Callable
from functools import partial, update_wrapper
from typing import Any

import numpy as np

__all__ = [
    "affine",
    "constant",
    "cubic_gradient",
    "example_gradient",
    "gradient_of_quadratic",
    "gradient_of_quartic",
    "line",
    "linear",
    "log_cosh",
    "log_cosh_gradient",
    "log_cosh_hessian",
    "named",
    "pinball",
    "quadratic",
    "squared_error",
    "sum_exp",
    "sum_exp_gradient",
    "sum_exp_hessian",
    "times",
]


Numbers = np.ndarray | float
"""One prediction or label, or one for each example."""


def named(formula: str, function: Callable[..., Any], *first: Any) -> Callable[..., Any]:
    """Fix the first arguments, and say in the name what is computed: a failing case shows it."""
    fixed = update_wrapper(partial(function, *first), function)
    fixed.__name__ = formula
    return fixed


def constant(value: np.ndarray, *arguments: Any) -> np.ndarray:
    """Return a copy of a value, whatever else is given."""
    return np.array(value)


def times(factor: float, function: Callable[..., Any], *arguments: Any) -> Any:
    """Return a multiple of what a function gives."""
    return factor * function(*arguments)


def squared_error(f: Numbers, y: Numbers) -> Any:
    """Return (f − y)² of each example."""
    return (f - y) ** 2


def pinball(f: Numbers, y: Numbers) -> Any:
    """Return a loss that weighs predictions below the label three times as much."""
    return np.maximum(3 * (y - f), f - y)


def line(x: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """Return θ₀ + θ₁ x."""
    return theta[0] + theta[1] * x


def example_gradient(theta: np.ndarray, example: np.ndarray) -> np.ndarray:
    """Return the gradient of ½(xᵀθ − y)², where the example is x followed by y."""
    *x, y = example
    return (np.array(x) @ theta - y) * np.array(x)


def linear(A: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Return Aw."""
    return A @ w


def ramp(w: np.ndarray) -> np.ndarray:
    """Return max(w, 0), the gradient of a loss that is flat where w is negative."""
    return np.maximum(w, 0)


def affine(c: np.ndarray, A: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Return c + Aw."""
    return c + A @ w


def quadratic(a: float, c: np.ndarray, H: np.ndarray, w: np.ndarray) -> float:
    """Return a + cᵀw + ½ wᵀHw."""
    return float(a + c @ w + 0.5 * w @ H @ w)


def cubic_gradient(A: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Return the gradient of ¼ Σ (Aw)⁴."""
    return A.T @ (A @ w) ** 3


def log_cosh(A: np.ndarray, b: np.ndarray, w: np.ndarray) -> float:
    """Return Σ log cosh(Aw − b) + ½‖w‖²."""
    z = A @ w - b
    return float(np.sum(np.logaddexp(z, -z) - np.log(2)) + w @ w / 2)


def log_cosh_gradient(A: np.ndarray, b: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Return the gradient of Σ log cosh(Aw − b) + ½‖w‖²."""
    return A.T @ np.tanh(A @ w - b) + w


def log_cosh_hessian(A: np.ndarray, b: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Return the Hessian of Σ log cosh(Aw − b) + ½‖w‖²."""
    return (A.T / np.cosh(A @ w - b) ** 2) @ A + np.eye(len(w))


def sum_exp(A: np.ndarray, w: np.ndarray) -> float:
    """Return Σ exp(Aw)."""
    return float(np.exp(A @ w).sum())


def sum_exp_gradient(A: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Return the gradient of Σ exp(Aw)."""
    return A.T @ np.exp(A @ w)


def sum_exp_hessian(A: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Return the Hessian of Σ exp(Aw)."""
    return (A.T * np.exp(A @ w)) @ A


def gradient_of_quadratic(H: np.ndarray) -> Callable[..., Any]:
    """Return w ↦ Hw."""
    return named(f"w ↦ H @ w, H = {H.tolist()}", linear, H)


def gradient_of_quartic(rng: np.random.Generator, n: int) -> Callable[..., Any]:
    """Return the gradient of ¼ Σ (Aw)⁴, whose Hessian changes from point to point."""
    A = rng.uniform(0.5, 1.5, size=(n + 1, n)).round(1)
    return named(f"w ↦ A.T @ (A @ w) ** 3, A = {A.tolist()}", cubic_gradient, A)
