"""The best epoch and the epoch of the halt by early stopping with patience."""

from collections.abc import Sequence

import numpy as np

from optdl.checks.exercise import answer_to
from optdl.erm import early_stopping


@answer_to("L1-05", early_stopping, parts=("best", "halt"))
def exercise(validation_errors, patience):
    best, bad = 0, 0
    for epoch in range(1, len(validation_errors)):
        if validation_errors[epoch] < validation_errors[best]:
            best, bad = epoch, 0
        else:
            bad += 1
        if bad == patience:
            return best, epoch
    return best, len(validation_errors) - 1


@exercise.cases
def _(rng):
    patience, lead = rng.integers([2, 1], 4).tolist()
    gap, better = patience - 1, (0,) * lead
    for gaps, enough in (
        # after a new best epoch the gap counts from 0; what comes after the halt does not count
        ((*better, gap, gap, patience, 0, 2 * patience + 1, 0), patience),
        ((patience, 1), patience),  # no epoch is better than the first
        ((*better, gap), patience),  # the list ends before the rule halts
        ((1, 0, 2), 1),
        ((0,), int(rng.integers(1, 4))),
        ((0, 0, 0), 2),  # the last epoch is the best
    ):
        yield {"validation_errors": _errors(rng, gaps), "patience": enough}


def _errors(rng: np.random.Generator, gaps: Sequence[int]) -> list[float]:
    """Return errors with a new best one before each gap; in the gap they fall to a tie with it."""
    errors, best = [], rng.integers(80, 100)
    for gap in gaps:
        best = best - rng.integers(3, 9)
        errors += [best, *(best + rng.integers(1, 4) * np.arange(gap)[::-1])]
    return [float(error) / 100 for error in errors]


@exercise.fact("errors after the halt change nothing")
def _(rule, rng):
    errors = [*rng.uniform(0.3, 0.5, size=5), *np.linspace(0.6, 0.9, 6)]
    stopped = rule(errors, 4)
    return tuple(stopped) == tuple(rule([*errors, 0.0, 0.0], 4))


exercise.help(r"""
1. What do you have to remember of the earlier epochs to decide whether training halts after this?
2. Two numbers are enough: the best epoch so far, and how many epochs have passed since then.
3. In a loop over the epochs, first update the best epoch, then compare the number of epochs since
   then with `patience`. If the loop ends without a halt, the halt is the last epoch.
you never reset the count of bad epochs; patience counts the epochs in a row since the best one
    best, bad = epoch, 0 → best = epoch
you treat a tie as an improvement; an epoch improves only if its error is lower
    < validation_errors → <= validation_errors
you compare with the previous epoch; compare with the best so far
    validation_errors[best] → validation_errors[epoch - 1]
your count of bad epochs compares with the previous epoch; compare with the best so far
    best, bad = epoch, 0\n        else
    → best = epoch\n        if validation_errors[epoch] < validation_errors[epoch - 1]:\n
                bad = 0\n        else
you return the error of the best epoch; return its number
    return best, epoch → return validation_errors[best], epoch
    return best, len( → return validation_errors[best], len(
where the rule never halts, you return the number of epochs; the last epoch's number is one less
    len(validation_errors) - 1 → len(validation_errors)
""")
