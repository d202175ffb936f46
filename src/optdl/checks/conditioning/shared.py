"""What several exercises on this topic have in common."""

from collections.abc import Callable
from typing import Any

import numpy as np

from optdl.objectives import cubic_gradient, linear, named


def gradient_of_quadratic(H: np.ndarray) -> Callable[..., Any]:
    """Return w ↦ Hw."""
    return named(f"w ↦ H @ w, H = {H.tolist()}", linear, H)


def gradient_of_quartic(rng: np.random.Generator, n: int) -> Callable[..., Any]:
    """Return the gradient of ¼ Σ (Aw)⁴, whose Hessian changes from point to point."""
    A = rng.uniform(0.5, 1.5, size=(n + 1, n)).round(1)
    return named(f"w ↦ A.T @ (A @ w) ** 3, A = {A.tolist()}", cubic_gradient, A)
