"""What adaptive methods divide by."""

from collections.abc import Iterator

import numpy as np

from optdl import optimizers
from optdl.checks.exercise import Case, Exercise, Function

exercise = Exercise("F-03", optimizers.adaptive_diagonal)


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    for m, n, batch in ((3, 1, 2), (4, 2, 1), (4, 2, 4), (6, 3, 2), (9, 4, 5)):
        gradients = rng.uniform(-1, 2, size=(m, n)).round(1) + 0.25
        yield {"gradients": gradients, "batch": batch}


@exercise.fact("it is the mean over all pairs of examples")
def _(function: Function, rng: np.random.Generator) -> bool:
    gradients = rng.normal(size=(5, 3))
    pairs = [(gradients[i] + gradients[j]) / 2 for i in range(5) for j in range(i)]
    expected = np.sqrt(np.mean(np.square(pairs), axis=0))
    return bool(np.allclose(function(gradients, 2), expected, rtol=1e-9))


@exercise.fact("with the whole sample it is the size of the gradient")
def _(function: Function, rng: np.random.Generator) -> bool:
    gradients = rng.normal(size=(7, 2))
    expected = np.abs(gradients.mean(axis=0))
    return bool(np.allclose(function(gradients, 7), expected, rtol=1e-9))


@exercise.mistake("you return the size of the mean gradient; add the variance of the minibatch's")
def _(gradients, batch):
    return np.abs(np.mean(gradients, axis=0))


@exercise.mistake("you return the root of the Fisher diagonal; a larger minibatch has less noise")
def _(gradients, batch):
    return np.sqrt(np.mean(gradients**2, axis=0))


@exercise.mistake("your square lacks that of the mean gradient: E[g²] = (E g)² + variance")
def _(gradients, batch):
    m = len(gradients)
    return np.sqrt(np.var(gradients, axis=0) / batch * (m - batch) / (m - 1))


@exercise.mistake(
    "your examples are drawn with repetition; without it the variance has the "
    "factor (m − b)/(m − 1)"
)
def _(gradients, batch):
    mean = np.mean(gradients, axis=0)
    return np.sqrt(mean**2 + np.var(gradients, axis=0) / batch)


@exercise.mistake("you divide the standard deviation by b; divide the variance by it")
def _(gradients, batch):
    m, mean = len(gradients), np.mean(gradients, axis=0)
    return np.sqrt(mean**2 + np.std(gradients, axis=0) / batch * (m - batch) / (m - 1))


@exercise.mistake("you return the expected square; return its root")
def _(gradients, batch):
    m, mean = len(gradients), np.mean(gradients, axis=0)
    return mean**2 + np.var(gradients, axis=0) / batch * (m - batch) / (m - 1)


@exercise.mistake("all your parameters share one number; each has its own, as in g ⊙ g")
def _(gradients, batch):
    m, mean = len(gradients), np.mean(gradients, axis=0)
    square = mean**2 + np.var(gradients, axis=0) / batch * (m - batch) / (m - 1)
    return np.full(len(mean), np.sqrt(np.mean(square)))
