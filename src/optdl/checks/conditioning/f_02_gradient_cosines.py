"""The cosines of the angles between consecutive gradients of a descent."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from optdl.checks.conditioning.shared import random_positive
from optdl.checks.exercise import Case, Exercise, Function
from optdl.conditioning import gradient_cosines
from optdl.objectives import cubic_gradient, linear, named

exercise = Exercise("F-02", gradient_cosines)


@exercise.answer
def _(gradient, w, lr, steps):
    cosines, g = [], gradient(w)
    for _ in range(steps):
        w = w - lr * g
        last, g = g, gradient(w)
        cosines.append(last @ g / (np.linalg.norm(last) * np.linalg.norm(g)))
    return np.array(cosines)


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    for lr, steps in ((0.6, 3), (0.2, 4)):
        H = np.diag([1.0, 4.0])
        yield {
            "gradient": named(f"w ↦ H @ w, H = {H.tolist()}", linear, H),
            "w": np.array([2.0, 1.0]),
            "lr": lr,
            "steps": steps,
        }
    A = rng.uniform(0.5, 1.5, size=(4, 3)).round(1)
    yield {
        "gradient": named(f"w ↦ A.T @ (A @ w) ** 3, A = {A.tolist()}", cubic_gradient, A),
        "w": rng.uniform(0.2, 0.4, size=3).round(2),
        "lr": 0.02,
        "steps": 5,
    }


@exercise.fact("along one eigenvector the cosine is 1 for η < 1/λ and −1 for η > 1/λ")
def _(function: Function, rng: np.random.Generator) -> bool:
    values, U = np.linalg.eigh(random_positive(rng, 3))
    H = partial(linear, U * values @ U.T)
    signs = [np.asarray(function(H, U[:, 1], c / values[1], 3)) for c in (0.5, 1.5)]
    return bool(np.allclose(signs, [[1, 1, 1], [-1, -1, -1]]))


exercise.hints(
    "Which two gradients does each cosine compare, and how many gradients have to be computed in "
    "all for `steps` cosines?",
    r"The cosine of the angle between $g$ and $g'$ is $g^Tg'/(\lVert g\rVert\,\lVert g'\rVert)$. "
    r"The gradient after one step is the gradient before the next, so compute it only once.",
    "Compute the gradient at the start. In each round take the step, keep the old gradient under "
    "a second name, compute the new one, and append the cosine of the two.",
)

exercise.mistakes(r"""
you return inner products; divide each by the norms of both gradients
    / (np.linalg.norm(last) * np.linalg.norm(g)) →
you divide by the square of one norm; the gradients before and after a step have different norms
    np.linalg.norm(last) * np.linalg.norm(g) → last @ last
you compare each gradient with the first one; compare it with the gradient before the step
    last, g = g, gradient(w) → last, g = (g, gradient(w)) if not cosines else (last, gradient(w))
you climb; a step goes against the gradient
    w - lr → w + lr
you return the angles; return their cosines
    last @ g / (np.linalg.norm(last) * np.linalg.norm(g))
    → np.arccos(last @ g / (np.linalg.norm(last) * np.linalg.norm(g)))
each of your steps uses the gradient of the start; use that of the present point
    w = w - lr * g → start = g if not cosines else start\n        w = w - lr * start
""")


@exercise.mistake("you compare the weights before and after a step; compare the gradients there")
def _(gradient, w, lr, steps):
    cosines = []
    for _ in range(steps):
        last, w = w, w - lr * gradient(w)
        cosines.append(last @ w / (np.linalg.norm(last) * np.linalg.norm(w)))
    return np.array(cosines)
