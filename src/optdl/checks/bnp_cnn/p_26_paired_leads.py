"""By how many points one method leads another, seed by seed, each at its own rate."""

import numpy as np

from optdl.checks.exercise import answer_to


@answer_to("P-26", "paired_leads")
def exercise(search, test, other_search, other_test):
    own, other = np.argmin(search), np.argmin(other_search)
    return 100 * (other_test[other] - test[own])


@exercise.cases
def _(rng):
    for sizes, seeds in (((2, 2), 2), ((4, 5), 3), ((3, 3), 5)):
        case, rows = {}, rng.permutation(min(sizes))[:2]
        for name, rates, row in zip(("", "other_"), sizes, rows, strict=True):
            search = rng.uniform(0.3, 0.5, size=rates).round(3)
            test = rng.uniform(0.2, 0.3, size=(rates, seeds)).round(3)
            search[row] = round(rng.uniform(0.2, 0.29), 3)
            test[row] += 0.1  # the test images prefer another rate
            case |= {f"{name}search": search, f"{name}test": test}
        yield case


@exercise.fact("with the methods exchanged each lead becomes its negative")
def _(function, rng):
    ours, theirs = ((rng.uniform(size=4), rng.uniform(size=(4, 3))) for _ in range(2))
    return np.allclose(np.asarray(function(*ours, *theirs)), -np.asarray(function(*theirs, *ours)))


exercise.help(r"""
1. Which of the four arrays may decide on the first method's rate, and which on the second's?
2. `np.argmin` of a search gives the row of its rate. The two rows need not be the same.
3. Subtract this row of one test array from that of the other. A lower error leads; 0.01 is a point.
you choose the rates by the test errors, so these come out too low; choose them by the search
    np.argmin(search), np.argmin(other_search)
    → np.argmin(test.mean(axis=1)), np.argmin(other_test.mean(axis=1))
you take the lowest test error of each seed; one rate, which the search chooses, serves all seeds
    (other_test[other] - test[own]) → (other_test.min(axis=0) - test.min(axis=0))
you divide by the error of the other method; a lead is a difference in percentage points
    (other_test[other] - test[own]) → (1 - test[own] / other_test[other])
""")
