"""Train a network by gradient descent, with a dropout mask for each minibatch."""

import numpy as np

from optdl.checks.exercise import answer_to
from optdl.dropout import dropout_sgd


@answer_to("L2-18", dropout_sgd, parts=("W", "V"))
def exercise(W, V, x, y, masks, lr):
    for inputs, labels, mask in zip(x, y, masks, strict=True):
        z = inputs @ W.T
        hidden = mask * np.maximum(z, 0)
        scores = np.exp(hidden @ V.T)
        probabilities = scores / scores.sum(axis=1, keepdims=True)
        error = (probabilities - np.eye(len(V))[labels]) / len(labels)
        back = error @ V * mask * (z > 0)
        W, V = W - lr * back.T @ inputs, V - lr * error.T @ hidden
    return W, V


@exercise.cases
def _(rng):
    few, more = rng.integers(2, 4), rng.integers(4, 6)
    # After one step, a mistake in the gradient of V has not reached W.
    for t, m, n, h, c in ((1, more, 1, 3, few), (3, few, 2, more, 2), (few + 1, 1, 3, 2, more)):
        keep = float(rng.choice([0.4, 0.6, 0.7]))
        masks = (rng.random((t, m, h)) < keep) / keep
        masks[:, 0, 0], masks[0, :, 1] = 1 / keep, 0.0
        W, V, x = (rng.normal(size=shape).round(2) for shape in ((h, n), (c, h), (t, m, n)))
        yield W, V, x, rng.integers(c, size=(t, m)), masks, float(rng.choice([0.2, 0.3, 0.5]))


@exercise.fact("from V = 0 a step leaves W as it is, and gives V = lr (Y − 1/c)ᵀ H / m")
def _(function, rng):
    W, x = rng.normal(size=(3, 2)), rng.normal(size=(4, 2))
    mask = 2.0 * rng.integers(2, size=(4, 3))
    Y = np.eye(2)[labels := np.array([0, 1, 1, 0])]
    new_W, new_V = function(W, np.zeros((2, 3)), x[None], labels[None], mask[None], 0.3)
    step = 0.3 / 4 * (Y - 1 / 2).T @ (mask * np.maximum(x @ W.T, 0))
    return np.array_equal(new_W, W) and np.allclose(new_V, step)


exercise.help(r"""
1. Which two of $X_t$, $H$ and $(P - Y)/m$, one transposed, have a product of the shape of $V$?
2. The rows of the identity matrix at the labels form $Y$. With $\delta = (P - Y)/m$, the gradient
   with respect to $V$ is $\delta^T H$, and the gradient with respect to $H$ is $\delta V$.
3. Multiply $\delta V$ entry by entry by the mask, and set it to 0 where $Z \le 0$. The transpose of
   the result times $X_t$ is the gradient with respect to $W$. Then update both weights.
your gradient of W lacks the scale 1/(1 − p); multiply by the mask, which includes it
    * mask * (z > 0) → * (hidden > 0)
the derivative of the ReLU is missing in your gradient of W; multiply by (Z > 0)
    * (z > 0) →
the mask is missing in your gradient of V; its factor is H, not max(Z, 0)
    error.T @ hidden → error.T @ np.maximum(z, 0)
you add up the gradients of the examples; the loss is a mean, so divide by m
    / len(labels) →
your softmax runs over the examples; the probabilities of each row add up to 1
    axis=1, keepdims=True → axis=0
your softmax runs over the whole minibatch; the probabilities of each row add up to 1
    axis=1, keepdims=True →
you use the new V in the gradient of W; compute both gradients, then update both weights
    error @ V → error @ (V - lr * error.T @ hidden)
you compute all gradients at the first weights; each step starts from the weights of the step before
    for inputs → new_W, new_V = W, V\n    for inputs
    W, V = W - lr * back.T @ inputs, V - → new_W, new_V = new_W - lr * back.T @ inputs, new_V -
    return W, V → return new_W, new_V
the mask is missing in your gradient of W; H is the mask times max(Z, 0), so the way back has it too
    V * mask * → V *
""")
