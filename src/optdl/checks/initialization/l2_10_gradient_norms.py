"""Gradients on their way back."""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from optdl.checks.exercise import Case, Exercise, Function
from optdl.initialization import gradient_norms

exercise = Exercise("L2-10", gradient_norms)


@exercise.answer
def _(weights, x, upstream, name):
    h, slopes = (x, [])
    for W in weights:
        z = W @ h
        h = {"sigmoid": 1 / (1 + np.exp(-z)), "tanh": np.tanh(z), "relu": np.maximum(z, 0)}[name]
        slopes.append({"sigmoid": h * (1 - h), "tanh": 1 - h**2, "relu": 1.0 * (z > 0)}[name])
    norms = [np.linalg.norm(upstream)]
    for W, s in zip(weights[::-1], slopes[::-1], strict=True):
        upstream = W.T @ (s * upstream)
        norms.append(np.linalg.norm(upstream))
    return np.array(norms[::-1])


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    for name, sizes in (("tanh", (2, 3, 1)), ("sigmoid", (3, 2, 4, 2)), ("relu", (4, 6, 5, 3))):
        yield {
            "weights": [rng.normal(size=(o, n)).round(2) for n, o in pairwise(sizes)],
            "x": rng.normal(size=sizes[0]).round(2),
            "upstream": rng.uniform(1, 3, size=sizes[-1]).round(2),
            "name": name,
        }


@exercise.fact("with orthogonal weights a sigmoid layer passes at most a quarter of the norm")
def _(function: Function, rng: np.random.Generator) -> bool:
    orthogonal = [np.linalg.qr(rng.normal(size=(4, 4)))[0] for _ in range(5)]
    norms = np.asarray(function(orthogonal, rng.normal(size=4), rng.normal(size=4), "sigmoid"))
    return bool(np.all(norms[:-1] <= norms[1:] / 4 + 1e-12))


@exercise.mistake("you go back through the weights alone; multiply by the slope φ′(z), too")
def _(weights, x, upstream, name):
    norms = [np.linalg.norm(upstream)]
    for W in weights[::-1]:
        upstream = W.T @ upstream
        norms.append(np.linalg.norm(upstream))
    return np.array(norms[::-1])


exercise.mistake(
    "you evaluate φ′ at the activation h; evaluate it at the pre-activation z = W h",
    (
        'slopes.append({"sigmoid": h * (1 - h), "tanh": 1 - h**2, "relu": 1.0 * (z > 0)}[name])',
        'slope = {"sigmoid": np.exp(-h) / (1 + np.exp(-h)) ** 2, "tanh": 1 / '
        "np.cosh(h) ** 2}\n"
        "        slopes.append(slope.get(name, 1.0 * (h > 0)))",
    ),
)

exercise.mistake(
    "your norms run from the output to the input; reverse their order", ("norms[::-1]", "norms")
)

exercise.mistake(
    "you return squared norms; take the root",
    ("[np.linalg.norm(upstream)", "[upstream @ upstream"),
    ("(np.linalg.norm(upstream)", "(upstream @ upstream"),
)
