"""Running statistics."""

from collections.abc import Iterator

import numpy as np

from optdl.bnp import running_statistics
from optdl.checks.bnp.shared import random_activations
from optdl.checks.exercise import Case, Exercise, Function

exercise = Exercise("P-14:statistics", running_statistics, parts=("means", "variances"))


@exercise.answer
def _(minibatches, rho=0.99):
    mean, var, means, variances = (0.0, 1.0, [], [])
    for H in minibatches:
        mean = rho * mean + (1 - rho) * H.mean(0)
        center = mean if len(H) == 1 else H.mean(0)
        var = rho * var + (1 - rho) * np.mean((H - center) ** 2, axis=0)
        means.append(mean)
        variances.append(var)
    return (np.array(means), np.array(variances))


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    for sizes, features, rho in (((2, 1, 3), 1, 0.5), ((1, 4, 2, 3), 2, 0.8), ((3,) * 5, 3, 0.9)):
        yield {
            "minibatches": [random_activations(rng, rows, features) for rows in sizes],
            "rho": rho,
        }


@exercise.fact("after t equal minibatches ρᵗ of the start is left")
def _(function: Function, rng: np.random.Generator) -> bool:
    """Compare with the closed form for one minibatch that comes again and again."""
    H = rng.normal(3, 2, size=(6, 4))
    kept = 0.9 ** np.arange(1, 8)[:, None]
    means, variances = function([H] * 7, 0.9)
    return bool(
        np.allclose(means, (1 - kept) * H.mean(0))
        and np.allclose(variances, kept + (1 - kept) * H.var(0))
    )


exercise.mistake(
    "ρ is on the wrong term: it is the share of the old statistics",
    ("rho * mean + (1 - rho)", "(1 - rho) * mean + rho"),
    ("rho * var + (1 - rho)", "(1 - rho) * var + rho"),
)

exercise.mistake("your variance starts at 0; it starts at 1", ("1.", "0."))

exercise.mistake(
    "you start at the first minibatch; start at μ = 0 and σ² = 1",
    (
        "mean, var, means, variances = (0.0, 1.0, [], [])\n    for H in minibatches:",
        "mean, var = (minibatches[0].mean(0), minibatches[0].var(0))\n"
        "    means, variances = ([mean], [var])\n"
        "    for H in minibatches[1:]:",
    ),
)

exercise.mistake(
    "you divide by 1 − ρᵗ as Adam does; BNP has no bias correction",
    ("H in minibatches", "t, H in enumerate(minibatches, 1)"),
    (
        "means.append(mean)\n        variances.append(var)",
        "means.append(mean / (1 - rho**t))\n        variances.append(var / (1 - rho**t))",
    ),
)

exercise.mistake(
    "you update μ after using it; one example is measured from the new μ",
    ("\n        mean = rho * mean + (1 - rho) * H.mean(0)", ""),
    (
        "var = rho * var + (1 - rho) * np.mean((H - center) ** 2, axis=0)",
        "var = rho * var + (1 - rho) * np.mean((H - center) ** 2, axis=0)\n"
        "        mean = rho * mean + (1 - rho) * H.mean(0)",
    ),
)

exercise.mistake(
    "you use the mean of a minibatch of one, so that its variance is 0; measure "
    "it from the running mean",
    (
        "center = mean if len(H) == 1 else H.mean(0)\n"
        "        var = rho * var + (1 - rho) * np.mean((H - center) ** 2, axis=0)",
        "var = rho * var + (1 - rho) * H.var(0)",
    ),
)

exercise.mistake(
    "you measure every minibatch from the running mean; only a minibatch of one example needs it",
    (
        "center = mean if len(H) == 1 else H.mean(0)\n"
        "        var = rho * var + (1 - rho) * np.mean((H - center) ** 2, axis=0)",
        "var = rho * var + (1 - rho) * np.mean((H - mean) ** 2, axis=0)",
    ),
)

exercise.mistake(
    "you average standard deviations; average variances",
    ("var,", "std,"),
    (
        "var = rho * var + (1 - rho) * np.mean((H - center) ** 2, axis=0)",
        "std = rho * std + (1 - rho) * np.sqrt(np.mean((H - center) ** 2, axis=0))",
    ),
    ("(var)", "(std**2)"),
)

exercise.mistake(
    "your variance divides by N − 1; BNP divides by N",
    (
        "center = mean if len(H) == 1 else H.mean(0)\n"
        "        var = rho * var + (1 - rho) * np.mean((H - center) ** 2, axis=0)",
        "one = (H[0] - mean) ** 2 if len(H) == 1 else H.var(0, ddof=1)\n"
        "        var = rho * var + (1 - rho) * one",
    ),
)
