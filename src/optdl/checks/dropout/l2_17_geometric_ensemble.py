"""Compute the normalized geometric mean of the predictions of all subnetworks."""

import numpy as np

from optdl.checks.dropout.shared import layer_cases
from optdl.checks.exercise import answer_to
from optdl.dropout import geometric_ensemble
from optdl.observation import effort, observe


@answer_to("L2-17:geometric", geometric_ensemble)
def exercise(W, b, x, keep):
    logarithm = np.zeros(len(b))
    for k in range(2 ** len(x)):
        mask = np.array([(k >> i) & 1 for i in range(len(x))])
        scores = np.exp(W @ (mask * x) + b)
        chance = keep ** mask.sum() * (1 - keep) ** (len(x) - mask.sum())
        logarithm += chance * np.log(scores / scores.sum())
    mean = np.exp(logarithm)
    return mean / mean.sum()


exercise.cases(layer_cases)


@exercise.fact("with one input it is π₁^keep π₀^(1 − keep), normalized; π₀ is without the input")
def _(function, rng):
    W, b, x = rng.normal(size=(3, 1)), rng.normal(size=3), rng.normal(size=1)
    there, gone = np.exp(W[:, 0] * x[0] + b), np.exp(b)
    product = (there / there.sum()) ** 0.3 * (gone / gone.sum()) ** 0.7
    return np.allclose(function(W, b, x, 0.3), product / product.sum())


@exercise.fact("your function goes through all 1,024 masks of ten inputs", is_visible=True)
def _(function, rng):
    arguments = rng.normal(size=(2, 10)), rng.normal(size=2), rng.normal(size=10), 0.3
    lines, peak = observe(effort, function, *arguments)
    return lines >= 1024 or peak is None or peak >= 1024 * 8


exercise.help(r"""
1. With two inputs, which four masks are there, and what is the probability $q_M$ of each?
2. A logarithm makes it a sum: $\ln\tilde\pi_k = \sum_M q_M \ln\pi_{M,k}$, one vector for each mask.
3. Take the binary digits of each number from 0 to $2^n - 1$ as a mask. Add $q_M$ times the
   logarithm of its prediction to a total. At the end, take the exponential and normalize.
you average the probabilities; average their logarithms
    np.log(scores / scores.sum()) → scores / scores.sum() ; np.exp(logarithm) → logarithm
your geometric means do not add up to 1; divide them by their sum
    mean / mean.sum() → mean
you divide the kept inputs by `keep`; here the entries of a mask are 0 and 1
    mask * x → mask * x / keep
    with `/ keep` or `/keep`, else your prediction is that of all inputs, none of them dropped
the subnetwork without any input is missing, or lacks the bias; it predicts softmax(b)
    range(2 ** len(x)) → range(1, 2 ** len(x))
your weight of a mask lacks the factor 1 − `keep` for each input that is dropped
    * (1 - keep) ** (len(x) - mask.sum()) →
you exchange `keep` and 1 − `keep`; an input is kept with probability `keep`
    logarithm = np → keep, logarithm = 1 - keep, np
your weight counts all masks with so many ones; each mask has its own, and all add up to 1
    chance = keep
    → chance = [bin(i).count("1") for i in range(2 ** len(x))].count(mask.sum()) * keep
""")
