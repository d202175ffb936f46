"""The iterates of SGD that passes once through a stream of examples."""

from collections.abc import Iterator

import numpy as np

from optdl.checks.exercise import Case, Exercise, Function
from optdl.erm import stream_sgd
from optdl.observation import calls, observe

exercise = Exercise("L1-11", stream_sgd)


@exercise.answer
def _(w, x, y, lr, n):
    path = [w]
    for start in range(0, len(y), n):
        now = slice(start, start + n)
        residual = x[now] @ path[-1] - y[now]
        path.append(path[-1] - lr * x[now].T @ residual / n)
    return np.array(path)


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    for m, d, n in ((6, 1, 2), (12, 2, 3), (40, 3, 8)):
        x = rng.normal(size=(m, d)).round(1)
        y = (x @ rng.normal(size=d) + rng.normal(size=m)).round(1)
        yield {"w": rng.normal(size=d).round(1), "x": x, "y": y, "lr": 0.2, "n": n}


@exercise.fact("a step uses its own examples and no later ones")
def _(run: Function, rng: np.random.Generator) -> bool:
    x, y, w = rng.normal(size=(12, 2)), rng.normal(size=12), rng.normal(size=2)
    later = y.copy()
    later[4:] += 5.0
    before, after = np.asarray(run(w, x, y, 0.1, 4)), np.asarray(run(w, x, later, 0.1, 4))
    return bool(np.allclose(before[:2], after[:2]) and not np.allclose(before[2], after[2]))


@exercise.fact("on average it follows the gradient of the risk")
def _(run: Function, rng: np.random.Generator) -> bool:
    x, w = np.ones((100, 4, 1)), np.array([3.0])
    x *= rng.choice([-1.0, 1.0], size=x.shape)
    y = x[:, :, 0] * 1.0 + rng.normal(size=(100, 4))
    streams = [(w, stream, labels, 0.5, 2) for stream, labels in zip(x, y, strict=True)]
    ends = [path[-1][0] for path in observe(calls, run, *streams)]
    # ∇J*(w) = w − 1, so that two steps with η = ½ leave a quarter of the distance
    return bool(abs(np.mean(ends) - 1.5) < 5 * np.std(ends) / np.sqrt(100))


exercise.hints(
    "Which rows of `x` and which entries of `y` does step number $t$ use, and at which weights "
    "is its gradient taken?",
    r"The gradient of $\tfrac12(w^Tx-y)^2$ is $(w^Tx-y)\,x$. One product of the transposed rows "
    r"with the residuals adds up the gradients of a minibatch.",
    "In a loop over the starts of the minibatches, take a slice of `x` and `y`, compute the "
    "residuals at the newest weights, and append these weights minus `lr` times the mean gradient.",
)

exercise.mistakes(r"""
you add up the gradients of a minibatch; take their mean
    / n →
you use all the data in each step; a stream gives n new examples for each step
    slice(start, start + n) → slice(None)
    residual / n → residual / len(y)
you use the same minibatch in every step; move on by n examples
    slice(start, start + n) → slice(n)
you take all gradients at the start; take each at the current w
    x[now] @ path[-1] → x[now] @ w
your gradient is twice too large; the loss is ½(wᵀx − y)²
    - lr * → - 2 * lr *
you divide by the length of the stream; take the mean over the n examples of a minibatch
    residual / n → residual / len(y)
""")
