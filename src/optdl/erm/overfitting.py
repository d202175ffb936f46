"""Overfitting: curves, polynomials, and a risk with several minima."""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy.polynomial import legendre

__all__ = ["NoisyCurve", "capacity_sweep", "fit_polynomial", "sine_risk"]


@dataclass(frozen=True)
class NoisyCurve:
    r"""Noisy values of a curve: x uniform on [−1, 1], and y given x ~ N(h(x), noise²).

    The risk of the squared loss (f(x) − y)² is an integral:

    .. math:: J^*(f) = \tfrac12\int_{-1}^1 \bigl(f(x) - h(x)\bigr)^2 dx + \text{noise}^2

    The integral is a Gauss–Legendre sum with 200 nodes, exact to rounding for smooth curves.
    ``curve`` is h, a function of arrays, and ``noise`` the standard deviation of the labels.
    Source: L1-02.

    >>> population = NoisyCurve(lambda x: x, noise=0.5)
    >>> round(population.risk(lambda x: 0 * x), 12)     # 1/3 + 1/4
    0.583333333333
    """

    curve: Callable[[np.ndarray], np.ndarray]
    noise: float

    def __post_init__(self) -> None:
        if not self.noise >= 0:
            raise ValueError(f"the noise is a standard deviation, at least 0; got {self.noise}")

    def sample(
        self, m: int, rng: np.random.Generator
    ) -> tuple[Float[np.ndarray, " m"], Float[np.ndarray, " m"]]:
        """Draw m independent examples."""
        x = rng.uniform(-1, 1, size=m)
        return x, self.curve(x) + self.noise * rng.normal(size=m)

    def risk(self, predict: Callable[[np.ndarray], np.ndarray]) -> float:
        """Return J* of the function ``predict``."""
        nodes, weights = _quadrature(200)
        return float(weights @ (predict(nodes) - self.curve(nodes)) ** 2 / 2 + self.noise**2)


@functools.cache
def _quadrature(count: int) -> tuple[Float[np.ndarray, " q"], Float[np.ndarray, " q"]]:
    """Return nodes and weights of the Gauss–Legendre rule on [−1, 1]."""
    return legendre.leggauss(count)


def fit_polynomial(
    x: Float[np.ndarray, " m"], y: Float[np.ndarray, " m"], degree: int
) -> legendre.Legendre:
    """Return the polynomial of a given degree with the smallest empirical risk (Source: L1-02).

    The basis of Legendre polynomials keeps the least squares problem well conditioned. x lies in
    [−1, 1]. Raises ValueError where the degree is not in 0 … m − 1: above it the fit is not unique.

    >>> line = fit_polynomial(np.array([-1.0, 0.0, 1.0]), np.array([0.0, 1.0, 2.0]), degree=1)
    >>> round(float(line(0.5)), 12)
    1.5
    """
    if not 0 <= degree < len(x):
        raise ValueError(
            f"the degree of a unique fit to {len(x)} points is 0 to {len(x) - 1}; got {degree}"
        )
    design = legendre.legvander(x, degree)
    return legendre.Legendre(np.linalg.lstsq(design, y, rcond=None)[0])


def capacity_sweep(
    population: NoisyCurve,
    x: Float[np.ndarray, " m"],
    y: Float[np.ndarray, " m"],
    degrees: Sequence[int],
) -> tuple[Float[np.ndarray, " s"], Float[np.ndarray, " s"]]:
    """Fit polynomials of each degree to one sample; return their empirical risks and risks.

    The empirical risk never rises with the degree and is 0 at degree m − 1. Raises ValueError where
    a degree is not in 0 … m − 1. Source: L1-02.

    >>> population = NoisyCurve(np.sin, noise=0.1)
    >>> sample = population.sample(4, np.random.default_rng(0))
    >>> J, risk = capacity_sweep(population, *sample, degrees=[1, 3])
    >>> bool(J[1] < 1e-20), bool(risk[1] > 0.01)
    (True, True)
    """
    fits = [fit_polynomial(x, y, degree) for degree in degrees]
    J = np.array([np.mean((fit(x) - y) ** 2) for fit in fits])
    return J, np.array([population.risk(fit) for fit in fits])


def sine_risk(
    frequencies: Float[np.ndarray, " s"], x: Float[np.ndarray, " m"], y: Float[np.ndarray, " m"]
) -> tuple[Float[np.ndarray, " s"], Float[np.ndarray, " s"]]:
    r"""Return the empirical risk of sin(πθx) at each frequency θ, and its derivative.

    .. math:: J(\theta) = \frac1m \sum_{i=1}^m \bigl(\sin(\pi\theta x^{(i)}) - y^{(i)}\bigr)^2

    It has many minima in its one parameter. On two waves of about equal size the two best minima
    are about equally low. Source: L1-38.

    >>> J, slope = sine_risk(np.array([0.0, 1.0]), np.array([0.5, 0.5]), np.array([1.0, 1.0]))
    >>> J.round(6)
    array([1., 0.])
    """
    phase = np.pi * np.outer(frequencies, x)
    residual = np.sin(phase) - y
    slopes = 2 * np.pi * residual * np.cos(phase) * x
    return np.mean(residual**2, axis=1), np.mean(slopes, axis=1)
