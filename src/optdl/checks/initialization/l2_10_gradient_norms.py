"""Compute the norm of the gradient at every layer of a deep network."""

from itertools import pairwise

import numpy as np

from optdl.checks.exercise import answer_to
from optdl.initialization import gradient_norms


@answer_to("L2-10", gradient_norms)
def exercise(weights, x, upstream, name):
    activation, slope = {
        "sigmoid": (lambda z: 1 / (1 + np.exp(-z)), lambda z: np.exp(-z) / (1 + np.exp(-z)) ** 2),
        "tanh": (np.tanh, lambda z: 1 - np.tanh(z) ** 2),
        "relu": (lambda z: np.maximum(z, 0), lambda z: 1.0 * (z > 0)),
    }[name]
    h, slopes = x, []
    for W in weights:
        z = W @ h
        h = activation(z)
        slopes.append(slope(z))
    norms = [np.linalg.norm(upstream)]
    for W, s in zip(weights[::-1], slopes[::-1], strict=True):
        delta = s * upstream
        upstream = W.T @ delta
        norms.append(np.linalg.norm(upstream))
    return np.array(norms[::-1])


@exercise.cases
def _(rng):
    names = ("tanh", 2), ("sigmoid", 3), ("relu", 2), ("relu", 1), ("relu", 4), ("tanh", 3)
    for number, (name, layers) in enumerate(names, 1):
        sizes = rng.permutation([3, 4, 5, 6, 7])[: layers + 1]
        if number == len(names):
            sizes[:] = sizes[0]  # square weights, which differ from their transposes
        weights = [rng.normal(size=(o, n)).round(2) for n, o in pairwise(sizes)]
        x = rng.normal(size=sizes[0]).round(2)
        if name == "relu" and layers > 1:
            # the first units have a z of 0, a small one above 0 and one below
            x[:2], weights[0][:3] = (0, 0.05), 0
            weights[0][0, 0], weights[0][1:3, 1] = 1.5, (1, -1)
        upstream = rng.uniform(1, 3, size=sizes[-1]).round(2)
        yield {"weights": weights, "x": x, "upstream": upstream, "name": name}


@exercise.fact("with orthogonal weights and the sigmoid each norm is at most a quarter of the next")
def _(function, rng):
    orthogonal = [np.linalg.qr(rng.normal(size=(4, 4)))[0] for _ in range(5)]
    norms = np.asarray(function(orthogonal, rng.normal(size=4), rng.normal(size=4), "sigmoid"))
    return np.all(norms[:-1] <= norms[1:] / 4 + 1e-12)


exercise.help(r"""
1. Which quantities of the forward pass does the way back need, and in which order does it go?
2. Go forward once and keep the slopes $\phi'(z_\ell)$ of every layer: $\phi(1-\phi)$ for the
   sigmoid, $1-\phi^2$ for tanh. Then apply the formula from layer $L$ down to layer 1.
3. Begin a list with the norm of `upstream`. For each layer, from last to first, multiply by the
   slopes entry by entry, then by the transposed weight, and append the norm. Reverse the list.
you go back through the weights alone; multiply by the slope φ′(z), too
    delta = s * upstream → delta = upstream
you evaluate φ′ at the activation h; evaluate it at the pre-activation z = W h
    slope(z) → slope(h)
you return the norms of ∂L/∂z; return those of ∂L/∂h
    norms.append(np.linalg.norm(upstream)) → norms.append(np.linalg.norm(delta))
the slope of the ReLU at 0 is 0; test z > 0
    z > 0 → z >= 0
you multiply by W_ℓᵀ, then by φ′ of layer ℓ − 1; multiply by φ′(z_ℓ) first, then by W_ℓᵀ
    slopes[::-1], strict → [*slopes[-2::-1], 1], strict ; delta = s * upstream → delta = upstream
    W.T @ delta → s * (W.T @ delta)
""")
