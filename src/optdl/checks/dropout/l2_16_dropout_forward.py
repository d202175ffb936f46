"""Drop entries of x at random in training, and return the mask that did it, too."""

from collections.abc import Iterator

import numpy as np

from optdl.checks.exercise import Case, Exercise, Function
from optdl.dropout import dropout_forward

exercise = Exercise("L2-16:forward", dropout_forward, parts=("y", "mask"))


@exercise.answer
def _(x, p, rng, training):
    mask = (rng.random(x.shape) >= p) / (1 - p) if training else np.ones(x.shape)
    return x * mask, mask


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    for p, shape, training in (
        (0.4, (2, 3), True),
        (0.7, (3, 2), False),
        (0.25, (6, 5), True),
        (0.6, (5, 8), True),
        (0.3, (4, 5), False),
    ):
        x = rng.uniform(1, 3, size=shape).round(2)
        yield {
            "x": x,
            "p": p,
            "rng": np.random.default_rng(rng.integers(1000)),
            "training": training,
        }


@exercise.fact("inference changes nothing: its mask is all ones")
def _(function: Function, rng: np.random.Generator) -> bool:
    x = rng.normal(size=(4, 3))
    y, mask = function(x, 0.6, rng, False)
    return bool(np.array_equal(y, x) and np.all(np.asarray(mask) == 1))


@exercise.fact("each entry is dropped by itself, and the others are divided by 1 − p")
def _(function: Function, rng: np.random.Generator) -> bool:
    x = rng.uniform(1, 2, size=(200, 50))
    y, mask = (np.asarray(part) for part in function(x, 0.3, rng, True))
    dropped = mask == 0
    spread = max(dropped.mean(axis=0).std() - 0.1, dropped.mean(axis=1).std() - 0.15)
    right = np.allclose(y, x * mask) and np.allclose(mask[~dropped], 1 / 0.7)
    return bool(right and abs(dropped.mean() - 0.3) < 0.03 and spread < 0)


exercise.hints(
    "What differs between training and inference: how the mask is made, how the output follows "
    "from it, or both?",
    "Only the mask differs: in training it is made from random draws as in exercise 1, and at "
    "inference every entry is 1. The output is always the product of `x` and the mask.",
    "In training, draw one number for each entry of `x`; set the entries with a draw below `p` to "
    "0 and the others to the scale. At inference, use `np.ones`. Return the product, then the "
    "mask.",
)

exercise.mistakes(r"""
you keep where u < 1 − p; that has the same probability, but here an entry is kept where u ≥ p
    >= p → < 1 - p
you take p for the probability of keeping; here it is the probability of dropping
    (rng.random(x.shape) >= p) / (1 - p) → (rng.random(x.shape) < p) / p
you keep where u < p; keep where u ≥ p
    >= p → < p
you divide by p, the probability of dropping; divide by 1 − p
    / (1 - p) → / p
you drop entries at inference and not in training; `training` is True in training
    if training → if not training
you scale at inference and not in training; divide by 1 − p in training
    (rng.random(x.shape) >= p) / (1 - p) → 1.0 * (rng.random(x.shape) >= p)
    np.ones(x.shape) → np.full(x.shape, 1 - p)
you scale in training and at inference; scale only in training
    np.ones(x.shape) → np.full(x.shape, 1 - p)
you draw one mask for the whole minibatch; draw a number for each entry of x
    rng.random(x.shape) → rng.random(x.shape[1])
you keep or drop whole examples; draw a number for each entry of x
    rng.random(x.shape) → rng.random((len(x), 1))
you draw numbers of shape (n, m) and transpose them; draw them with the shape of x
    rng.random(x.shape) → rng.random(x.shape[::-1]).T
you draw with `rng.binomial`, which gives another mask; draw with `rng.random(x.shape)`, and keep
where u ≥ p
    (rng.random(x.shape) >= p) → rng.binomial(1, 1 - p, x.shape)
""")
