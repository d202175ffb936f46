"""The best epoch and the epoch of the halt by early stopping with patience."""

from collections.abc import Iterator

import numpy as np

from optdl.checks.exercise import Case, Exercise, Function
from optdl.erm import early_stopping

exercise = Exercise("L1-05", early_stopping, parts=("best", "halt"))


@exercise.answer
def _(validation_errors, patience):
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
def _(rng: np.random.Generator) -> Iterator[Case]:
    def case(*errors: float, patience: int) -> Case:
        return {"validation_errors": list(errors), "patience": patience}

    yield case(0.5, 0.4, 0.4, 0.3, 0.2, 0.6, patience=2)
    yield case(0.5, 0.3, 0.4, 0.5, 0.1, 0.1, patience=2)
    yield case(0.9, 0.5, 0.6, 0.4, 0.5, 0.45, 0.44, 0.2, 0.1, patience=3)
    yield case(0.5, 0.4, 0.3, patience=4)
    yield case(0.5, 0.2, 0.4, 0.2, 0.3, 0.1, 0.5, patience=2)
    for patience in (2, 3):
        falling = 0.5 / np.arange(1, 21) + rng.uniform(0, 0.15, size=20)
        yield {"validation_errors": falling.round(2).tolist(), "patience": patience}
    yield case(0.4, 0.4, 0.6, 0.3, patience=2)


@exercise.fact("errors after the halt change nothing")
def _(rule: Function, rng: np.random.Generator) -> bool:
    errors = [*rng.uniform(0.3, 0.5, size=5), *np.linspace(0.6, 0.9, 6)]
    stopped = rule(errors, 4)
    return tuple(stopped) == tuple(rule([*errors, 0.0, 0.0], 4))


@exercise.fact("the best epoch is the last that improves, and exactly `patience` epochs follow")
def _(rule: Function, rng: np.random.Generator) -> bool:
    errors = [*np.sort(rng.uniform(size=6))[::-1], *(1 + rng.uniform(size=9))]
    return all(tuple(rule(errors, patience)) == (5, 5 + patience) for patience in (1, 3, 9))


exercise.hints(
    "When an epoch has ended, what do you have to remember of the earlier epochs in order to "
    "decide whether training halts now?",
    "Two numbers are enough: the best epoch so far, and how many epochs have passed since then.",
    "In a loop over the epochs, first update the best epoch, then compare the number of epochs "
    "since then with `patience`. If the loop ends without a halt, the halt is the last epoch.",
)

exercise.mistakes(r"""
you never reset the count of bad epochs; patience counts the epochs in a row since the best one
    best, bad = epoch, 0 → best = epoch
you treat a tie as an improvement; an epoch improves only if its error is lower
    < validation_errors → <= validation_errors
you compare with the previous epoch; compare with the best so far
    validation_errors[best] → validation_errors[epoch - 1]
where the rule never halts, you return the number of epochs; return the last epoch, whose number is
one less
    len(validation_errors) - 1 → len(validation_errors)
""")


@exercise.mistake("you use errors after the halt; at epoch t the later ones are not known yet")
def _(validation_errors, patience):
    best = int(np.argmin(validation_errors))
    return best, min(best + patience, len(validation_errors) - 1)
