"""Each general diagnosis recognizes its mistake, and says nothing that is not true of all cases."""

from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

from optdl.checks import CheckFailed, Exercise, Property, catalog, check, diagnoses
from optdl.checks.diagnoses import notebook

KEY = "L1-07"


@pytest.fixture
def message(monkeypatch):
    """Return what a check says of a function, or an empty text."""
    monkeypatch.setattr(diagnoses, "RAISING", True)

    def told(reference, cases, function, **options):
        exercise = Exercise(KEY, reference, cases, **options)
        monkeypatch.setattr(catalog, "_of_row", lambda key: {key: exercise})
        try:
            check(KEY, function)
        except CheckFailed as failed:
            return str(failed)
        return ""

    return told


@pytest.fixture
def said(message):
    """Return what a check says above the failing case."""
    return lambda *arguments, **options: message(*arguments, **options).split("\n\n")[0]


def normal(*shapes):
    return lambda rng: [{"x": rng.normal(size=shape)} for shape in shapes]


def positive(*shapes):
    return lambda rng: [{"x": rng.uniform(1, 2, size=shape)} for shape in shapes]


def arrays(rng):
    return [
        {"x": rng.normal(size=(rows, 3)), "eps": float(rng.uniform(0.1, 0.9))} for rows in (3, 4, 6)
    ]


def scaled_root(x, eps):
    return np.sqrt(np.abs(x) + 1) * (1 + eps)


@pytest.mark.parametrize(
    ("mistake", "cause"),
    [
        (lambda y: -y, "has the opposite sign"),
        (lambda y: y.T, "is transposed"),
        (lambda y: 2 * y, "is twice the expected one"),
        (lambda y: y / 2, "is half the expected one"),
        (lambda y: 3 * y / 4, "is 3/4 times the expected one"),
        (lambda y: y / np.sqrt(3), "is √(1/3) times the expected one"),
        (lambda y: y / np.log(2), "is 1/ln 2 times the expected one"),
        (lambda y: 1.2345 * y, "is always 1.2345 times the expected one"),
        (lambda y: y * len(y), "is `len(x)` times the expected one"),
        (lambda y: y / np.sqrt(len(y)), "is 1/√`len(x)` times the expected one"),
        (lambda y: y * len(y) / (len(y) - 1), "is `len(x)`/(`len(x)` − 1) times the expected one"),
        (lambda y: y + 1, "is the expected one + 1"),
        (lambda y: y - 0.25, "is the expected one − 0.25"),
        (lambda y: y + len(y), "is the expected one plus `len(x)`"),
        (lambda y: y**2, "is the square of the expected one"),
        (np.sqrt, "is the root of the expected one"),
        (lambda y: 1 / y, "is one over the expected one"),
        (lambda y: 0 * y, "is always 0, whatever the arguments are"),
        (lambda y: y * np.nan, "has entries that are nan"),
        (lambda y: y.astype(np.float32), "in single precision"),
        (lambda y: y.astype(int), "is an array of integers"),
        (np.floor, "has lost its decimals"),
        (lambda y: y.round(2), "is rounded to 2 decimals"),
        (lambda y: y + 1e-6, "is the expected one + 1e-06"),
        (lambda y: y * (1 + 1e-6 * y), "is close but not exact"),
        (lambda y: y * (1 + 2e-4 * y), "is close but not exact"),
        (lambda y: y[::-1], "has its rows in the opposite order"),
        (lambda y: y[:, [1, 2, 0]], "has the right numbers in another order"),
        (lambda y: np.tile(y[-1], (len(y), 1)), "append a copy of it"),
        (lambda y: np.tile(y[0], (len(y), 1)), "all rows are alike"),
        (lambda y: np.tile(y[1], (len(y), 1)), "has all rows equal"),
        (lambda y: y[:-1], "lacks the last row; the others are right"),
        (lambda y: y[1:], "lacks the first row; the others are right"),
        (np.ravel, "has the right numbers in another shape"),
    ],
)
def test_transformed_right_answers_are_recognized(said, mistake, cause):
    text = said(scaled_root, arrays, lambda x, eps: mistake(scaled_root(x, eps)))
    assert cause in text.split("Likely cause: ")[1]


# --- what else is true in all cases


def line(x, slope, offset, m):
    return x * slope + offset / m


def lines(rng):
    return [
        {"x": rng.normal(size=4), "slope": rng.normal(), "offset": rng.normal(), "m": m}
        for m in (2, 5, 7)
    ]


def weighted(x, y):
    return sum(b * a @ a for a, b in zip(x, y, strict=True))


def pairs(rng):
    return [{"x": rng.normal(size=(k, 2)), "y": rng.normal(size=k)} for k in (3, 4, 6)]


def descend(gradient, start, steps):
    path = [start]
    for _ in range(steps):
        path.append(path[-1] - 0.1 * gradient(path[-1]))
    return np.array(path)


def descents(rng):
    return [
        {"gradient": np.sinh, "start": rng.uniform(1, 2, size=4), "steps": k} for k in (3, 4, 5)
    ]


def sums(x, start):
    return np.cumsum(x) + (0 if start is None else start)


def sizes(rng):
    return [{"n": n, "m": m} for n, m in ((3072, 60), (100, 256), (500, 37))]


def generators(rng):
    return [{"n": n, "rng": np.random.default_rng(n)} for n in (1, 3, 4, 5)]


def changes_its_pair(pair):
    total = pair[0]
    total += pair[1]
    return total


@pytest.mark.parametrize(
    ("reference", "cases", "function", "true"),
    [
        (lambda n, m: max(n / m, 1), sizes, lambda n, m: max(n // m, 1), "has lost its decimals"),
        (lambda n, m: max(n / m, 1), sizes, max, "is `m` times the expected one"),
        (
            lambda g, a: a * g.sum(),
            lambda rng: [{"g": rng.normal(size=k), "a": rng.normal(size=3)} for k in (2, 3, 5)],
            lambda g, a: a * g.sum() / (g @ g),
            "is 1/‖`g`‖² times the expected one",
        ),
        (
            scaled_root,
            arrays,
            lambda x, eps: scaled_root(x, eps) + x * (np.arange(len(x)) > 1)[:, None],
            "Rows 0 to 1 are right in every case",
        ),
        (
            lambda x: x**3 + 1,
            lambda rng: [{"x": x} for x in NUMBERS],
            lambda x: 5 if x == 0 else x**3 + 1,
            "In the cases tried your answer is wrong exactly when `x` is 0, right otherwise",
        ),
        (
            sums,
            lambda rng: [
                {"x": rng.normal(size=3), "start": start} for start in (None, 0.3, None, 2.0)
            ],
            lambda x, start: sums(x, start) + (0 if start is None else x[0] ** 2),
            "wrong exactly when `start` is not None, right otherwise",
        ),
        (
            lambda x: x.sum() ** 2 if x[0] > 0 else np.inf,
            lambda rng: [{"x": sign * rng.uniform(1, 2, size=3)} for sign in (1, -1, 1, -1)],
            lambda x: x.sum() ** 2 if x[0] > 0 else x[1] * x[2],
            "In every case that differs, the right answer is inf",
        ),
        (
            lambda x: x**2,
            normal((2, 3, 4), (2, 5, 4)),
            lambda x: (x**2).swapaxes(1, 2),
            "it is np.transpose(expected, (0, 2, 1))",
        ),
        (
            lambda x, eps: x - 1,
            arrays,
            lambda x, eps: np.where(x > 0, 1 - x, x - 1),
            "in the entries that differ, your answer has the opposite sign",
        ),
        (line, lines, lambda x, a, b, m: line(x, b, a, m), "`slope` and `offset` exchanged"),
        (line, lines, lambda x, a, b, m: line(x, -a, b, m), "is a sign wrong?"),
        (line, lines, lambda x, a, b, m: line(x, a, b, m + 1), "`m` + 1 in place of `m`"),
        (line, lines, lambda x, a, b, m: line(x, a, b, 1), "1 in place of `m`"),
        (line, lines, lambda x, a, b, m: line(x, 0.9, b, m), "only for `slope` = 0.9"),
        (line, lines, lambda x, a, b, m: line(x, 0.123, b, m), "does not depend on `slope`"),
        (line, lines, lambda x, a, b, m: x, "is the argument `x` itself"),
        (line, lines, lambda x, a, b, m: line(x, a, b, m) + x, "the expected one plus `x`"),
        (weighted, pairs, lambda x, y: x[0] @ x[0] * y[0], "`x[:1]` and `y[:1]` in place of `x`"),
        (weighted, pairs, lambda x, y: x[-1] @ x[-1] * y[-1], "`x[-1:]` and `y[-1:]` in place of"),
        (weighted, pairs, lambda x, y: weighted(x[:-1], y[:-1]), "does the loop end too early?"),
        (weighted, pairs, lambda x, y: weighted(x[1:], y[1:]), "does the loop begin too late?"),
        (
            descend,
            lambda rng: [
                {"gradient": np.sin, "start": rng.normal(size=2), "steps": k} for k in (3, 4)
            ],
            lambda gradient, start, steps: descend(lambda w: -gradient(w), start, steps),
            "−`gradient` in place of `gradient`: is a sign wrong?",
        ),
        (
            scaled_root,
            arrays,
            lambda x, eps, calls=[]: calls.append(1) or scaled_root(x, eps) + len(calls),
            "gives another answer to the same call",
        ),
        (
            lambda n, rng: rng.normal(size=n),
            generators,
            lambda n, rng: np.random.default_rng(0).normal(size=n),
            "does not draw from `rng`",
        ),
        (
            lambda n, rng: rng.normal(size=n),
            generators,
            lambda n, rng: rng.random(2 * n)[:n],
            "draws from `rng` in another way",
        ),
        (  # with n = 1 it draws the right number
            lambda n, rng: rng.permutation(5)[:n],
            generators,
            lambda n, rng: np.array([rng.permutation(5)[k] for k in range(n)]),
            "draws from `rng` in another way",
        ),
        (
            lambda pair: pair[0] + pair[1],
            lambda rng: [{"pair": (rng.normal(size=2), np.ones(2))}],
            changes_its_pair,
            "changes its argument `pair` in place; work on a copy.",
        ),
        (
            lambda errors: sorted(errors)[-1],
            lambda rng: [{"errors": rng.normal(size=4).tolist()}],
            lambda errors: errors.sort() or errors[-1],
            "changes its argument `errors` in place; work on a copy.",
        ),
        (
            lambda x, power=2.0: x**power,
            lambda rng: [{"x": rng.uniform(1, 2), **more} for more in ({}, {"power": 3.0}) * 2],
            lambda x, power=2.5: x**power,
            "wrong exactly when `power` is left out, right otherwise",
        ),
        (
            lambda x, power=2.0: x**power,
            lambda rng: [{"x": rng.uniform(1, 2), **more} for more in ({}, {"power": 3.0}) * 2],
            lambda x, power=2.0: x**2.0 + (power - 2) * np.sin(x),
            "wrong exactly when `power` is given, right otherwise",
        ),
        (
            lambda x, eps: np.sqrt(x**2 + eps),
            arrays,
            lambda x, eps: np.abs(x) + eps**2 + eps * x,
            "In the cases tried your answer is right where `eps` is 0",
        ),
        (
            lambda x, n: x**2 / n + x,
            lambda rng: [{"x": rng.normal(size=4), "n": n} for n in (3, 5, 8)],
            lambda x, n: x**2 / n**1.5 + x,
            "In the cases tried your answer is right where `n` is 1",
        ),
        (
            lambda x: np.linalg.norm(x) + x.sum(axis=1),
            normal((3, 2), (3, 4), (5, 6)),
            lambda x: np.linalg.norm(x, 2) + x.sum(axis=1),
            "In the cases tried your answer is right where `x.shape[0]` is 1",
        ),
        (
            descend,
            descents,
            lambda gradient, start, steps: descend(lambda w: gradient(w)[::-1], start, steps),
            "row 1 is the first that differs: the step to it has the right signs, but other sizes",
        ),
        (
            descend,
            descents,
            lambda gradient, start, steps: descend(
                lambda w: gradient(w) * np.linalg.norm(gradient(w)), start, steps
            ),
            "row 1 is the first that differs: the step to it has the right direction, but another",
        ),
        (
            descend,
            descents,
            lambda gradient, start, steps: descend(gradient, start / start.sum(), steps),
            "Row 0 is a multiple of the expected one",
        ),
        (
            lambda x: x / x.std(axis=0),
            normal((3, 4), (4, 4), (6, 4)),
            lambda x: x / np.abs(x).mean(axis=0),
            "Each column is a multiple of the expected one",
        ),
        (
            lambda x: x - x.mean(axis=0),
            normal((3, 4), (4, 4), (6, 4)),
            lambda x: x - np.median(x, axis=0),
            "Each column is the expected one plus a number",
        ),
        (
            lambda f, x: f(x) ** 2 * np.cos(x),
            lambda rng: [{"f": np.sin, "x": rng.normal(size=4)} for _ in range(3)],
            lambda f, x: np.abs(f(x)),
            "When `f` is doubled, the right answer is multiplied by 4; yours doubles",
        ),
        (lambda x: len(x), normal(3, 4), lambda x: float(len(x)), "expected an integer, got a fl"),
        (lambda x: (x, 2), normal(3, 4), lambda x: (x, 2.0), "expected an integer, got a float"),
        (
            lambda x: x / x.sum(),
            positive(3, 4),
            lambda x: x**3 / (x**2).sum(),
            "The right answer adds up to 1; yours is not so",
        ),
        (lambda x: 0 * x, normal(3, 4), lambda x: x**3 + 1, "has only zeros in these cases"),
        (
            lambda x: float((x**2).sum()),
            positive(3, 4),
            lambda x: float((x**3).sum()),
            "When `x` is doubled, the right answer is multiplied by 4; yours is multiplied by 8",
        ),
    ],
)
def test_facts_of_all_cases_are_told(said, reference, cases, function, true):
    text = said(reference, cases, function)
    assert true in text
    assert text.endswith(true) or "in place; work" not in true, "no cause beside it"


# --- what is true by accident, and not told

NUMBERS = (-2.0, -1.5, -1.0, 0.0, 0.0, 0.5, 1.25, 3.0, 4.0)


def vectors(rng):
    return [{"x": np.insert(rng.normal(size=k), 2, -1200.0)} for k in (3, 5, 7)]


def limits(rng):
    return [{"x": np.array([0.3, -0.3, *rng.uniform(1, 2, 3)])} for _ in range(3)]


def constants(rng):
    return [{"n": n, "x": rng.uniform(2, 9)} for n in (10, 1000, 100000)]


def squares(x):
    return np.asarray(x) ** 2 + 1


@pytest.mark.parametrize(
    ("reference", "cases", "function", "untrue"),
    [
        # other entries than the first differ, and not all of them
        (squares, vectors, lambda x: np.where(x < -9, sum(x[:2]), squares(x)), "the others differ"),
        # in the smallest case, which is the one shown, a second row is right, too
        (
            squares,
            lambda rng: [{"x": np.array([2, 0, 1, 3])[:, None] + np.arange(k)} for k in (1, 2, 3)],
            lambda x: np.vstack([squares(x[:1]), squares(x[1:]) + x[1:]]),
            "the others differ",
        ),
        # numbers that are wrong behind the ninth decimal are not rounded ones
        (lambda n, x: x / n, constants, lambda n, x: x / n * (1 + 3e-9), "is rounded"),
        # a limit of 1 is none that cuts decimals off
        (lambda x: x, positive(2, 3), lambda x: np.minimum(x, 1), "decimals"),
        # a single number that happens to be whole is no array of integers
        (lambda n, m: max(n / m, 1), sizes, max, "decimals"),
        # between 0.3 and 0.8 there is a factor, which is none of the code
        (
            lambda x: np.clip(x, -0.3, 0.8),
            limits,
            lambda x: np.where(abs(x) < 0.5, np.sign(x) * 0.8, np.clip(x, -0.3, 0.8)),
            "8/3",
        ),
        # in cases of one number any answer is a multiple
        (
            lambda x: np.sin(9 * x),
            positive(1, 1, 1, 5, 6),
            lambda x: np.sin(9 * x) + (len(x) == 1) * np.cos(5 * x),
            "is a multiple",
        ),
        # an empty text is where nothing special happens, which explains nothing
        (
            lambda x, event: x**2,
            lambda rng: [{"x": rng.normal(size=4), "event": event} for event in ("", "", "a", "b")],
            lambda x, event: x**3 + 1 if event else x**2,
            "exactly when `event` is",
        ),
        # where nothing is compared, nothing is right
        (
            lambda x, device: None if device == "meta" else x**2,
            lambda rng: [{"x": rng.normal(size=4), "device": name} for name in ("cpu", "meta") * 2],
            lambda x, device: None if device == "meta" else x**3 + 1,
            "exactly when `device` is",
        ),
        # a truth has no scale
        (
            lambda x: bool(x.all()),
            positive(3, 4, 5),
            lambda x: bool(x[0] > 1.9),
            "is doubled",
        ),
        # an empty answer is right wherever nothing is to be returned
        (
            lambda x, kind: x if kind == "all" else x[:0],
            lambda rng: [{"x": rng.normal(size=4), "kind": kind} for kind in ("all", "none")],
            lambda x, kind: x[:0],
            "only for `kind`",
        ),
        # `x` decides which entries count, and matters so
        (
            lambda x: float(x[x > 0].sum()),
            lambda rng: [{"x": rng.uniform(2, 9, size=k)} for k in (3, 5, 7)],
            lambda x: float(np.sum(np.arange(len(x))[x > 0] ** 1.5)),
            "does not depend on `x`",
        ),
        # a maximum hides `n` wherever it is larger
        (
            lambda n, x: x / max(9 / n, 1),
            lambda rng: [{"n": n, "x": rng.normal()} for n in (5, 6, 7)],
            lambda n, x: x**2 / max(4 / n, 1),
            "does not depend on `n`",
        ),
        # without `total`, where it plays no part, the answer is wrong as well
        (
            lambda x, total: x**0.5 * (1 if total is None else total**1.5),
            lambda rng: [{"x": x, "total": total} for x in (2.5, 3.5) for total in (None, 5, 7)],
            lambda x, total: np.cosh(x),
            "does not depend on `total`",
        ),
        # a whole number is no cause
        (
            lambda x: x**3 + 1,
            lambda rng: [{"x": x} for x in NUMBERS],
            lambda x: x**3 + (1 if x % 1 == 0 else x),
            "whole number",
        ),
        # of two whole numbers and three sizes only: some other maximum is always 6 as well
        (
            lambda x, n: min(len(x) + n, 20),
            lambda rng: [{"x": rng.normal(size=k), "n": 6 - k + 5 * (k > 5)} for k in (2, 3, 4, 7)],
            lambda x, n: 6 if n < 5 else len(x) ** 2,
            "is always 6",
        ),
        # a threshold that lies somewhere between two numbers
        (
            squares,
            normal(5, 6, 7),
            lambda x: np.where(x > 0.5, x**3, squares(x)),
            " or more",
        ),
        # the entries of the right answer are 0 off its diagonal, so each is a largest one
        (lambda x: np.diag(np.exp(x)), normal(2, 3, 4), np.exp, "largest"),
        # copies are no terms
        (
            lambda x: np.exp(x[0]),
            normal((2, 3), (3, 3), (4, 3)),
            lambda x: np.exp(np.tile(x[0], (len(x), 1))),
            "average them",
        ),
        # between the wrong calls and the right ones lie others, which tell the relations apart
        (
            lambda n, m, x: x**3,
            lambda rng: [
                {"n": n, "m": m, "x": rng.normal()}
                for n, m in ((1, 4), (4, 4), (9, 4), (7, 5), (2, 3), (30, 20), (3, 20))
            ],
            lambda n, m, x: x if n >= m + 2 else x**3,
            "wrong exactly when",
        ),
        # where `x` is 0 the answer is only an argument, and where it is 1 a constant
        (
            lambda x, y: x**2 + y,
            lambda rng: [{"x": rng.normal(size=3), "y": rng.normal(size=3)} for _ in range(3)],
            lambda x, y: np.sinh(x) + y,
            "is right where",
        ),
        # with one step there are two rows
        (
            descend,
            descents,
            lambda gradient, start, steps: descend(
                lambda w: np.sinh(start) + (w - start), start, steps
            ),
            "`steps` is 1",
        ),
        # it draws when it is iterated
        (
            lambda x, rng: [rng.permutation(x), rng.permutation(x)],
            lambda rng: [{"x": k, "rng": np.random.default_rng(k)} for k in (3, 4, 5)],
            lambda x, rng: (rng.permutation(x) for _ in range(2)),
            "does not draw",
        ),
        # it draws in the other cases
        (
            lambda on, rng: rng.normal() if on else 1.5,
            lambda rng: [{"on": k % 2 == 0, "rng": np.random.default_rng(k)} for k in range(4)],
            lambda on, rng: 2.5 if on else rng.random(),
            "does not draw",
        ),
        # there is no loop
        (lambda x: float(np.prod(x)), positive(2, 3, 4), lambda x: float(x[-1]), "loop"),
        # what never agrees differs from itself, too
        (squares, vectors, lambda x: (value**2 + 1 for value in x), "another answer"),
        (squares, vectors, lambda x: map(squares, x), "another answer"),
        (lambda n, x: n / 3, constants, lambda n, x: Fraction(n, 3), "another answer"),
    ],
)
def test_coincidental_facts_are_not_reported(said, reference, cases, function, untrue):
    text = said(reference, cases, function)
    assert text
    assert untrue not in text


def test_keys_of_a_dict_are_not_its_parts(said):
    pair = {"parts": ("square", "cube")}
    text = said(lambda x: (x**2, x**3), normal(3, 4), lambda x: {0: x**2, 1: x**3}, **pair)
    assert "returned a dict" in text
    assert "is always" not in text


def test_facts_are_verified_on_additional_cases(said):
    """With the seed of the notebook, the entries of every case begin with the one that is wrong."""
    draws = []

    def cases(rng):
        draws.append(rng)
        first = 0 if len(draws) <= 2 else 1
        return [{"x": np.roll([9.0, *rng.uniform(-1, 1, 3)], first)} for _ in range(3)]

    text = said(lambda x: x + 1, cases, lambda x: np.where(x == 9, x.sum(), x + 1))
    assert "values differ" in text
    assert "first entry" not in text


# --- parts


def moments(x):
    return x.mean(axis=0), (x.std(axis=0), x.max(axis=0))


MOMENTS = {"parts": ("mean", ("deviation", "largest"))}


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda m, d, a: (m, (-d, a)), "`deviation` has the opposite sign"),
        (lambda m, d, a: (m, (d**2, a)), "`deviation` is the square of the expected one"),
        (lambda m, d, a: (m, (a, d)), "`deviation` and `largest` are exchanged"),
        (lambda m, d, a: (m, (d + 1, d)), "`mean` is right; `deviation` and `largest` are not"),
        (lambda m, d, a: (-m, (-d, a)), "each of `mean` and `deviation` has the opposite sign"),
        (lambda m, d, a: m, "your function returned an array of shape (3,)"),
        (lambda m, d, a: (m, d, a), "array of shape (3,); return mean, (deviation, largest)"),
        (lambda m, d, a: (m, (d[:2], a)), "`deviation`: expected shape (3,), got shape (2,)"),
        (lambda m, d, a: [m, [d, a]], ""),
        (lambda m, d, a: (m.tolist(), (d.tolist(), a.tolist())), ""),
        (lambda m, d, a: (m + 1e-15, (d, a)), ""),
    ],
)
def test_parts_are_reported_by_name(said, function, text):
    cases = normal((4, 3), (4, 3), (4, 3))
    found = said(moments, cases, lambda x: function(moments(x)[0], *moments(x)[1]), **MOMENTS)
    assert text in found
    assert bool(text) == bool(found)


@pytest.mark.parametrize(
    ("names", "reference", "function", "untrue"),
    [
        # a part that never changes cannot be blamed for it
        ("y fixed", lambda x: (x, np.full(2, 2.0)), lambda x: (x, np.full(2, 3.0)), "whatever the"),
        # beside parts that are far off
        (
            "y z w",
            lambda x: (x, x + 1, x + 2),
            lambda x: (x + x**3, x**2 + 1, (x + 2) * (1 + 1e-6 * x)),
            "close but not exact",
        ),
    ],
)
def test_coincidental_facts_of_parts_are_not_reported(said, names, reference, function, untrue):
    text = said(reference, normal((3, 3), (4, 3)), function, parts=tuple(names.split()))
    assert text
    assert untrue not in text


@pytest.mark.parametrize("kind", [float, np.float64, np.array, lambda value: np.array([value])[0]])
def test_scalar_answers_of_any_type_pass(said, kind):
    assert said(lambda x: float(x.sum()), normal(3), lambda x: kind(x.sum())) == ""


# --- the facts of an exercise


FACT = Property("ones have no spread", lambda f, rng: np.ravel(f(np.ones(3)))[0] == 0)
LISTED = Property("it returns a list", lambda f, rng: isinstance(f(np.ones(3)), list))


def first_of(function, x):
    return function(x)[0]


@pytest.mark.parametrize(
    ("kind", "fact", "held"), [(float, FACT, 0), (list, LISTED, 1), (tuple, LISTED, 0)]
)
def test_failed_property_is_reported_without_other_cause(said, monkeypatch, kind, fact, held):
    monkeypatch.setattr(diagnoses, "RAISING", False)  # some diagnoses cannot handle `use`
    make, use = (float, None) if kind is float else (lambda value: kind([value]), first_of)
    text = said(
        lambda x: make(float(np.ptp(x) + x.var())),
        positive(3, 4),
        lambda x: make(float(np.ptp(x) + x[0] ** 3)),
        properties=(fact,),
        use=use,
    )
    assert (f"Your function does not satisfy this: {fact.claim}" in text) != held


def test_argument_not_passed_is_not_blamed(said):
    def cases(rng):
        return [{"x": rng.uniform(1, 2, size=k), "late": k > 4} for k in (3, 4, 5, 6)]

    def use(function, x, late):
        return function(x)[:: -1 if late else 1]

    text = said(lambda x: x, cases, lambda x: np.full(len(x), x[0] ** 3 + x[1] * x[2]), use=use)
    assert text
    assert "`late`" not in text


def test_failing_diagnosis_does_not_break_the_check(said, monkeypatch):
    def broken(evidence):
        raise RuntimeError("a bug")

    monkeypatch.setattr(diagnoses, "CAUSES", (broken,))
    with pytest.raises(RuntimeError, match="a bug"):
        said(scaled_root, arrays, lambda x, eps: x)
    monkeypatch.setattr(diagnoses, "RAISING", False)
    assert "Why: 9 of 9 values differ" in said(scaled_root, arrays, lambda x, eps: x)


# --- the form of a message


def test_different_numbers_are_printed_differently(message):
    single = lambda x: (x, (x + 1).astype(np.float32))  # noqa: E731
    text = message(lambda x: (x, x + 1), normal(2), single, parts=("left", "right"))
    _, expected, got = text.split("right: ")
    assert expected.split("]")[0] != got.split("]")[0]


def test_cause_precedes_arrays_in_a_short_message(message):
    lines = message(scaled_root, arrays, lambda x, eps: -scaled_root(x, eps)).splitlines()
    begins = [line.split(":")[0] for line in lines[1:5]]
    assert begins == ["Why", "Likely cause", "", "Smallest failing case"]
    assert len(lines) <= 18


# --- a function that is older than its cell


@pytest.mark.parametrize(
    ("cells", "line"),
    [
        (["def f(x):\n    return x", "def f(x):\n    return x +"], 2),
        (["def f(x):\n    return x +", "def f(x):\n    return x"], None),
        (["def f(x):\n    return x", "def g(x) return"], None),
        ([], None),
    ],
)
def test_syntax_error_in_newest_cell_is_found(monkeypatch, cells, line):
    def f(x):
        return x

    f.__module__ = "__main__"
    assert notebook.stale(f) == ""  # there is no notebook
    shell = SimpleNamespace(user_ns={"In": cells}, transform_cell=str)
    python = SimpleNamespace(get_ipython=lambda: shell)
    monkeypatch.setitem(notebook.sys.modules, "IPython", python)
    text = notebook.stale(f)
    assert (f"syntax error in line {line}" in text) if line else text == ""
