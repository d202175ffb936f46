"""Choose a learning rate from a search, report it from new runs, and check the grid."""

import numpy as np

from optdl.checks.exercise import answer_to


@answer_to("F-16", "tuned", parts=("rate", "error", "inside"))
def exercise(rates, search, again):
    best = np.nanargmin(np.mean(search, axis=1))
    return rates[best], np.mean(again[best]), 0 < best < len(rates) - 1


@exercise.cases
def _(rng):
    # the best rate is at one end, at the other, or inside, where the only rate beyond it diverges
    for count, best, beyond in ((5, 0, -1), (5, 4, -1), (6, 1, 0), (6, 4, 5)):
        others = rng.permutation(np.delete(np.arange(count), best)).tolist()
        others.sort(key=lambda k: k != beyond)
        early, late, lucky, tempting = others[:4]
        early, late = sorted((early, late))
        search, again = rng.uniform(0.3, 0.4, size=(2, count, 3)).round(3)
        search[best] -= 0.1
        # neither the best run decides nor, in some cases, the median
        search[lucky] = (0.04, 0.19, 0.95) if best else (0.01, 0.4, 0.9)
        again[tempting] -= 0.2
        search[early, 1] = search[late, 0] = np.nan
        search[late, 1:] = 0.05
        yield {"rates": 0.001 * 3.0 ** np.arange(count), "search": search, "again": again}


@exercise.fact("the errors of new runs, whatever they are, do not change the choice")
def _(function, rng):
    rates, search = np.array([0.1, 0.3, 1.0]), rng.uniform(size=(3, 4))
    chosen = [function(rates, search, rng.uniform(size=(3, 4)))[0] for _ in range(5)]
    return len({*chosen}) == 1


exercise.help(r"""
1. Which array may decide on the rate, and which gives a number not made too good by the choice?
2. The mean of a row of `search` with a diverged run is `nan`; `np.nanargmin` ignores such means.
3. With the row of the rate, return the rate, its mean in `again`, and whether it is not at an end.
you leave diverged runs out of the mean, and a rate that often diverges can win; it must not
    np.mean(search → np.nanmean(search
    with `nanmean` or `isnan` or `isfinite`, else a rate with a diverged run can win your search
you number only the rates without a diverged run; number all of them, as the rows do
    np.nanargmin(np.mean(search, axis=1)) → np.argmin(np.mean(search[~np.isnan(search).any(1)], 1))
you choose by the best single run; choose by the mean over the seeds
    np.mean(search → np.min(search
you take means over the rates; each row of `search` is a rate, so take them over axis 1
    search, axis=1 → search, axis=0
you choose the first rate that has a nan; leave such rates out, as np.nanargmin does
    np.nanargmin → np.argmin
you leave out the rates that have diverged; inside is neither the first nor the last of all rates
    0 < best < len(rates) - 1 → 0 < sum((ok := np.isfinite(search.sum(1)))[:best]) < sum(ok) - 1
you report the lowest mean of the new runs; report that of the rate that the search has chosen
    np.mean(again[best]) → np.min(np.mean(again, axis=1))
""")
