"""The iterates of SGD that passes once through a stream of examples."""

import numpy as np

from optdl.checks.exercise import answer_to
from optdl.erm import stream_sgd
from optdl.observation import calls, observe


@answer_to("L1-11", stream_sgd)
def exercise(w, x, y, lr, n):
    path = [w]
    for start in range(0, len(y), n):
        now = slice(start, start + n)
        residual = x[now] @ path[-1] - y[now]
        path.append(path[-1] - lr * x[now].T @ residual / n)
    return np.array(path)


@exercise.cases
def _(rng):
    for low, high in (((2, 3, 1), (3, 5, 2)), ((1, 4, 2), (2, 7, 4)), ((5, 3, 2), (9, 6, 5))):
        n, steps, d = rng.integers(low, high).tolist()
        x = rng.normal(size=(n * steps, d)).round(1)
        y = (x @ rng.normal(size=d) + rng.normal(size=n * steps)).round(1)
        lr = round(float(rng.uniform(0.1, 0.3)), 2)
        yield {"w": rng.normal(size=d).round(1), "x": x, "y": y, "lr": lr, "n": n}


@exercise.fact("the mean end of 100 streams is near that of gradient descent on the risk")
def _(run, rng):
    x, w = np.ones((100, 4, 1)), np.array([3.0])
    x *= rng.choice([-1.0, 1.0], size=x.shape)
    y = x[:, :, 0] * 1.0 + rng.normal(size=(100, 4))
    streams = [(w, stream, labels, 0.5, 2) for stream, labels in zip(x, y, strict=True)]
    ends = [path[-1][0] for path in observe(calls, run, *streams)]
    # ∇J*(w) = w − 1, so that two steps with η = ½ leave a quarter of the distance
    return abs(np.mean(ends) - 1.5) < 5 * np.std(ends) / np.sqrt(100)


exercise.help(r"""
1. Which rows of `x` and entries of `y` does step $t$ use, and at which weights is its gradient?
2. The gradient is $(w^Tx-y)\,x$; a product of the transposed rows with the residuals adds them up.
3. In a loop over the starts of the minibatches, take a slice of `x` and `y`, compute the residuals
   at the newest weights, and append these weights minus `lr` times the mean gradient.
you add up the gradients of a minibatch; take their mean
    / n →
you use all the data in each step; a stream gives n new examples for each step
    slice(start, start + n) → slice(None) ; residual / n → residual / len(y)
you use the same minibatch in every step; move on by n examples
    slice(start, start + n) → slice(n)
you take all gradients at the start; take each at the current w
    x[now] @ path[-1] → x[now] @ w
your gradient is twice too large; the loss is ½(wᵀx − y)²
    - lr * → - 2 * lr *
you make an update for each example; a step uses the mean of n gradients at one w
    path.append(path[-1] - lr * x[now].T @ residual / n) → path.append(path[-1])\n
            for a, b in zip(x[now], y[now]):\n
                path[-1] = path[-1] - lr * (a @ path[-1] - b) * a
you divide by the length of the stream; take the mean over the n examples of a minibatch
    residual / n → residual / len(y)
you make an update for each example, with 1/n of its gradient; a step uses n gradients at one w
    path.append(path[-1] - lr * x[now].T @ residual / n) → path.append(path[-1])\n
            for a, b in zip(x[now], y[now]):\n
                path[-1] = path[-1] - lr / n * (a @ path[-1] - b) * a
""")
