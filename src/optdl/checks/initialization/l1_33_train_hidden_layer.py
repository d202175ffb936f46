"""Compute the hidden weights of a small tanh network at each step of gradient descent."""

import numpy as np

from optdl.checks.exercise import Exercise
from optdl.initialization import train_hidden_layer

exercise = Exercise("L1-33", train_hidden_layer)


@exercise.cases
def _(rng):
    sizes = rng.integers([[3, 1, 4], [1, 2, 5]], [[5, 3, 8], [4, 5, 7]])
    for h, n, m in ((2, 1, 3), *sizes, (3, 2, 1)):
        drawn = {"W": (h, n), "v": h, "x": (m, n), "y": m}
        case = {name: rng.normal(size=shape).round(2) for name, shape in drawn.items()}
        lr, steps = round(rng.uniform(0.2, 0.5), 2), int(rng.integers(3, 6))
        yield {**case, "lr": lr, "steps": steps}


@exercise.fact("the first step of W agrees with finite differences of the loss")
def _(function, rng):
    W, v, x, y = (rng.normal(size=shape) for shape in ((2, 2), 2, (5, 2), 5))

    def loss(W: np.ndarray) -> float:
        return float(np.mean((np.tanh(x @ W.T) @ v - y) ** 2) / 2)

    slope = [(loss(W + e) - loss(W - e)) / 2e-6 for e in 1e-6 * np.eye(4).reshape(4, 2, 2)]
    first = np.asarray(function(W, v, x, y, 0.1, 1))[1]
    return np.allclose(first, W - 0.1 * np.reshape(slope, (2, 2)), rtol=0, atol=1e-8)


exercise.help(r"""
1. Through which quantities does an entry of $W$, and one of $v$, affect the loss of an example?
2. With $e=f(x)-y$ one example gives $e\,h$ for $v$, and $e\,(v\odot(1-h^2))\,x^T$ for $W$.
3. For `W`, take all examples at once: the outer product of residuals and `v`, times the slopes, has
   one row for each example. Its transpose times `x`, divided by $m$, is the gradient.
you compute the gradient of W after v was updated; compute both gradients first
    np.outer(residual, v) → np.outer(residual, v - lr * hidden.T @ residual)
you compute the gradient of v after W was updated; compute both gradients first
    W, v = W - lr * back.T @ x, v - lr * hidden.T @ residual
    → W = W - lr * back.T @ x\n
            hidden = np.tanh(x @ W.T)\n
            residual = (hidden @ v - y) / len(y)\n
            v = v - lr * hidden.T @ residual
your v stays constant; update both layers
    W, v = W - lr * back.T @ x, v - lr * hidden.T @ residual → W = W - lr * back.T @ x
you add up the examples' gradients; the loss is a mean over the examples
    / len(y) →
the slope of tanh, 1 − tanh², is missing from the gradient of W
    * (1 - hidden**2) →
your slope of tanh lacks the square; it is 1 − tanh²
    1 - hidden**2 → 1 - hidden
your slope is 1 − tanh(h)², at the activation h; h is a tanh already, so it is 1 − h²
    1 - hidden**2 → 1 - np.tanh(hidden) ** 2
""")
