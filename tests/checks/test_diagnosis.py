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
    """Return what a check says of a function, or an empty text; formulas are functions, too."""
    monkeypatch.setattr(diagnoses, "RAISING", True)

    def told(reference, cases, function, **options):
        given = ", ".join(cases(np.random.default_rng(0))[0])
        reference, function = (
            eval(f"lambda {given}: {some}", globals()) if isinstance(some, str) else some
            for some in (reference, function)
        )
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


def draws(text, *values):
    """Return cases: the arguments that a text says, once for each value ``k``."""
    return eval(f"lambda rng: [dict({text}) for k in {values}]", {"np": np})


def normal(*shapes):
    return draws("x=rng.normal(size=k)", *shapes)


def positive(*shapes):
    return draws("x=rng.uniform(1, 2, size=k)", *shapes)


ARRAYS = draws("x=rng.normal(size=(k, 3)), eps=float(rng.uniform(0.1, 0.9))", 3, 4, 6)
ROOT = "np.sqrt(np.abs(x) + 1) * (1 + eps)"


@pytest.mark.parametrize(
    ("mistake", "cause"),
    [
        ("-y", "has the opposite sign"),
        ("y.T", "is transposed"),
        ("2 * y", "is twice the expected one"),
        ("y / 2", "is half the expected one"),
        ("3 * y / 4", "is 3/4 times the expected one"),
        ("y / np.sqrt(3)", "is √(1/3) times the expected one"),
        ("y / np.log(2)", "is 1/ln 2 times the expected one"),
        ("1.2345 * y", "is always 1.2345 times the expected one"),
        ("y * len(y)", "is `len(x)` times the expected one"),
        ("y / np.sqrt(len(y))", "is 1/√`len(x)` times the expected one"),
        ("y * len(y) / (len(y) - 1)", "is `len(x)`/(`len(x)` − 1) times the expected one"),
        ("y + 1", "is the expected one + 1"),
        ("y - 0.25", "is the expected one − 0.25"),
        ("y + len(y)", "is the expected one plus `len(x)`"),
        ("y**2", "is the square of the expected one"),
        ("np.sqrt(y)", "is the root of the expected one"),
        ("1 / y", "is one over the expected one"),
        ("0 * y", "is always 0, whatever the arguments are"),
        ("y * np.nan", "has entries that are nan"),
        ("y.astype(np.float32)", "in single precision"),
        ("y.astype(int)", "is an array of integers"),
        ("np.floor(y)", "has lost its decimals"),
        ("y.round(2)", "is rounded to 2 decimals"),
        ("y + 1e-6", "is the expected one + 1e-06"),
        ("y * (1 + 1e-6 * y)", "is close but not exact"),
        ("y * (1 + 2e-4 * y)", "is close but not exact"),
        ("y[::-1]", "has its rows in the opposite order"),
        ("y[:, [1, 2, 0]]", "has the right numbers in another order"),
        ("np.tile(y[-1], (len(y), 1))", "append a copy of it"),
        ("np.tile(y[0], (len(y), 1))", "all rows are alike"),
        ("np.tile(y[1], (len(y), 1))", "has all rows equal"),
        ("y[:-1]", "lacks the last row; the others are right"),
        ("y[1:]", "lacks the first row; the others are right"),
        ("y.ravel()", "has the right numbers in another shape"),
    ],
)
def test_transformed_right_answers_are_recognized(said, mistake, cause):
    text = said(ROOT, ARRAYS, f"(lambda y: {mistake})({ROOT})")
    assert cause in text.split("Likely cause: ")[1]


# --- what else is true in all cases


NUMBERS = (-2.0, -1.5, -1.0, 0.0, 0.0, 0.5, 1.25, 3.0, 4.0)
LINE = "x * slope + offset / m"
LINES = draws("x=rng.normal(size=4), slope=rng.normal(), offset=rng.normal(), m=k", 2, 5, 7)
WEIGHTED = "sum(b * a @ a for a, b in zip(x{0}, y{0}, strict=True))"
PAIRS = draws("x=rng.normal(size=(k, 2)), y=rng.normal(size=k)", 3, 4, 6)
SIZES = draws("n=k[0], m=k[1]", (3072, 60), (100, 256), (500, 37))
GENERATORS = draws("n=k, rng=np.random.default_rng(k)", 1, 3, 4, 5)
MISSING = ("nan", 1.0, "nan", -1.0)
POSITIVE = positive(3, 5, 7)
SUMS = "np.cumsum(x) + (0 if start is None else start)"
DESCENTS = draws("gradient=np.sinh, start=rng.uniform(1, 2, size=4), steps=k", 3, 4, 5)
POWERS = draws("x=rng.uniform(1, 2), **k", {}, {"power": 3.0}, {}, {"power": 3.0})


def descend(gradient, start, steps):
    path = [start]
    for _ in range(steps):
        path.append(path[-1] - 0.1 * gradient(path[-1]))
    return np.array(path)


def powers(x, power=2.0):
    return x**power


def counting(x, eps, calls=[]):  # noqa: B006
    calls.append(1)
    return x + len(calls)


def changes_its_pair(pair):
    total = pair[0]
    total += pair[1]
    return total


@pytest.mark.parametrize(
    ("reference", "function", "cases", "true"),
    [
        ("max(n / m, 1)", "max(n // m, 1)", SIZES, "has lost its decimals"),
        ("max(n / m, 1)", "max(n, m)", SIZES, "is `m` times the expected one"),
        (
            *("a * g.sum()", "a * g.sum() / (g @ g)"),
            draws("g=rng.normal(size=k), a=rng.normal(size=3)", 2, 3, 5),
            "is 1/‖`g`‖² times the expected one",
        ),
        (
            *(ROOT, f"{ROOT} + x * (np.arange(len(x)) > 1)[:, None]", ARRAYS),
            "Rows 0 to 1 are right in every case",
        ),
        (
            *("x**3 + 1", "5 if x == 0 else x**3 + 1", draws("x=k", *NUMBERS)),
            "In the cases tried your answer is wrong exactly when `x` is 0, right otherwise",
        ),
        (
            *(SUMS, f"{SUMS} + (0 if start is None else x[0] ** 2)"),
            draws("x=rng.normal(size=3), start=k", None, 0.3, None, 2.0),
            "wrong exactly when `start` is not None, right otherwise",
        ),
        (
            *("x.sum() if x[0] > 0 else np.inf", "x.sum() if x[0] > 0 else x[1] * x[2]"),
            draws("x=k * rng.uniform(1, 2, size=3)", 1, -1, 1, -1),
            "In every case that differs, the right answer is inf",
        ),
        (
            *("x**2 + (x[0] != x[0])", "x**2 + (x[0] != x[0]) * np.sin(x)"),
            draws("x=np.array([float(k), 2.0, 5.0])", *MISSING),
            "wrong exactly when `x[0]` is nan, right otherwise",
        ),
        (
            "np.linalg.matrix_rank(H, tol=1e-9) * H[1, 1]",
            "len(H) * H[1, 1]",
            draws("H=np.diag([k, rng.uniform(1, 2), 2.0])", 0.0, 1e-13, 0.1, 3.0),
            "wrong exactly when `H` is singular up to rounding, right otherwise",
        ),
        (
            *("x if len(x) > 3 else x**2", "x**3 if len(x) > 3 else x**2", normal(2, 3, 4, 5)),
            "In every case that differs, the right answer is `x` as it is",
        ),
        (
            *("x**2 if flag else x", "x if flag else x**2"),
            draws("x=rng.normal(size=3), flag=k", True, False),
            "what is right for not `flag` in place of `flag`",
        ),
        (
            "np.sin(9 * x)",
            "np.maximum(np.sin(9 * x), 0)",
            ARRAYS,
            "has 0 wherever the expected one",
        ),
        (  # two mistakes, of which the case that is shown has one
            *("np.sin(9 * x)", "np.maximum(np.sin(9 * x), 0) + (x > 0) * (len(x) > 3) * x**2"),
            *(ARRAYS, "In the case below, your answer has 0 wherever the expected one is negative"),
        ),
        ("x * np.abs(x) + 1", "x**2 + 1", ARRAYS, "right where no entry of `x` is negative"),
        (
            "np.arange(len(x)) * np.median(x)",
            "np.arange(len(x)) * x.mean() ** 3 / np.median(x) ** 2",
            POSITIVE,
            "right where all entries of `x` are equal",
        ),
        (
            *("x**2", "(x**2).swapaxes(1, 2)", normal((2, 3, 4), (2, 5, 4))),
            "it is np.transpose(expected, (0, 2, 1))",
        ),
        (
            *("x - 1", "np.where(x > 0, 1 - x, x - 1)", ARRAYS),
            "in the entries that differ, your answer has the opposite sign",
        ),
        (LINE, "x * offset + slope / m", LINES, "`slope` and `offset` exchanged"),
        (LINE, "-x * slope + offset / m", LINES, "is a sign wrong?"),
        (LINE, "x * slope + offset / (m + 1)", LINES, "`m` + 1 in place of `m`"),
        (LINE, "x * slope + offset", LINES, "1 in place of `m`"),
        (LINE, "x * 0.9 + offset / m", LINES, "only for `slope` = 0.9"),
        (LINE, "x * 0.123 + offset / m", LINES, "does not depend on `slope`"),
        (LINE, "x", LINES, "is the argument `x` itself"),
        (LINE, f"{LINE} + x", LINES, "the expected one plus `x`"),
        (
            WEIGHTED.format(""),
            WEIGHTED.format("[:1]"),
            PAIRS,
            "`x[:1]` and `y[:1]` in place of `x`",
        ),
        (WEIGHTED.format(""), WEIGHTED.format("[-1:]"), PAIRS, "`x[-1:]` and `y[-1:]` in place of"),
        (WEIGHTED.format(""), WEIGHTED.format("[:-1]"), PAIRS, "does the loop end too early?"),
        (WEIGHTED.format(""), WEIGHTED.format("[1:]"), PAIRS, "does the loop begin too late?"),
        (
            *(descend, "descend(lambda w: -gradient(w), start, steps)"),
            draws("gradient=np.sin, start=rng.normal(size=2), steps=k", 3, 4),
            "−`gradient` in place of `gradient`: is a sign wrong?",
        ),
        ("x + eps", counting, ARRAYS, "gives another answer to the same call"),
        (
            *("rng.normal(size=n)", "np.random.default_rng(0).normal(size=n)", GENERATORS),
            "does not draw from `rng`",
        ),
        ("rng.normal(size=n)", "rng.random(2 * n)[:n]", GENERATORS, "draws from `rng` in another"),
        (  # with n = 1 it draws the right number
            "rng.permutation(5)[:n]",
            "np.array([rng.permutation(5)[k] for k in range(n)])",
            *(GENERATORS, "draws from `rng` in another way"),
        ),
        (
            *("pair[0] + pair[1]", changes_its_pair),
            draws("pair=(rng.normal(size=2), np.ones(2))", 1),
            "changes its argument `pair` in place; work on a copy.",
        ),
        (
            *("sorted(errors)[-1]", "errors.sort() or errors[-1]"),
            draws("errors=rng.normal(size=4).tolist()", 1),
            "changes its argument `errors` in place; work on a copy.",
        ),
        (
            *(powers, lambda x, power=2.5: x**power, POWERS),
            "wrong exactly when `power` is left out, right otherwise",
        ),
        (
            *(powers, lambda x, power=2.0: x**2.0 + (power - 2) * np.sin(x), POWERS),
            "wrong exactly when `power` is given, right otherwise",
        ),
        (
            *("np.sqrt(x**2 + eps)", "np.abs(x) + eps**2 + eps * x", ARRAYS),
            "In the cases tried your answer is right where `eps` is 0",
        ),
        (
            *("x**2 / n + x", "x**2 / n**1.5 + x", draws("x=rng.normal(size=4), n=k", 3, 5, 8)),
            "In the cases tried your answer is right where `n` is 1",
        ),
        (
            "np.linalg.norm(x) + x.sum(axis=1)",
            "np.linalg.norm(x, 2) + x.sum(axis=1)",
            normal((3, 2), (3, 4), (5, 6)),
            "In the cases tried your answer is right where `x.shape[0]` is 1",
        ),
        (
            *(descend, "descend(lambda w: gradient(w)[::-1], start, steps)", DESCENTS),
            "row 1 is the first that differs: the step to it has the right signs, but other sizes",
        ),
        (
            descend,
            "descend(lambda w: gradient(w) * np.linalg.norm(gradient(w)), start, steps)",
            DESCENTS,
            "row 1 is the first that differs: the step to it has the right direction, but another",
        ),
        (
            *(descend, "descend(gradient, start / start.sum(), steps)", DESCENTS),
            "Row 0 is a multiple of the expected one",
        ),
        (
            *("x / x.std(axis=0)", "x / np.abs(x).mean(axis=0)", normal((3, 4), (4, 4), (6, 4))),
            "Each column is a multiple of the expected one",
        ),
        (
            *("x - x.mean(axis=0)", "x - np.median(x, axis=0)", normal((3, 4), (4, 4), (6, 4))),
            "Each column is the expected one plus a number",
        ),
        (
            *("f(x) ** 2 * np.cos(x)", "np.abs(f(x))"),
            draws("f=np.sin, x=rng.normal(size=4)", 1, 2, 3),
            "When `f` is doubled, the right answer is multiplied by 4; yours doubles",
        ),
        ("len(x)", "float(len(x))", normal(3, 4), "expected an integer, got a fl"),
        ("(x, 2)", "(x, 2.0)", normal(3, 4), "expected an integer, got a float"),
        (
            *("x / x.sum()", "x**3 / (x**2).sum()", positive(3, 4)),
            "The right answer adds up to 1; yours is not so",
        ),
        ("0 * x", "x**3 + 1", normal(3, 4), "has only zeros in these cases"),
        (
            *("float((x**2).sum())", "float((x**3).sum())", positive(3, 4)),
            "When `x` is doubled, the right answer is multiplied by 4; yours is multiplied by 8",
        ),
    ],
)
def test_facts_true_of_all_cases_are_reported(said, reference, cases, function, true):
    text = said(reference, cases, function)
    assert true in text
    assert text.endswith(true) or "in place; work" not in true, "no cause beside it"


# --- what is true by accident, and not told

VECTORS = draws("x=np.insert(rng.normal(size=k), 2, -1200.0)", 3, 5, 7)
LIMITS = draws("x=np.array([0.3, -0.3, *rng.uniform(1, 2, 3)])", 1, 2, 3)
CONSTANTS = draws("n=k, x=rng.uniform(2, 9)", 10, 1000, 100000)
CLIPPED = "np.clip(x, -0.3, 0.8)"
SQUARES = "np.asarray(x) ** 2 + 1"


@pytest.mark.parametrize(
    ("reference", "function", "cases", "untrue"),
    [
        # other entries than the first differ, and not all of them
        (SQUARES, f"np.where(x < -9, sum(x[:2]), {SQUARES})", VECTORS, "the others differ"),
        # in the smallest case, which is the one shown, a second row is right, too
        (
            *(SQUARES, "np.vstack([x[:1] ** 2 + 1, x[1:] ** 2 + 1 + x[1:]])"),
            draws("x=np.array([2, 0, 1, 3])[:, None] + np.arange(k)", 1, 2, 3),
            "the others differ",
        ),
        # numbers that are wrong behind the ninth decimal are not rounded ones
        ("x / n", "x / n * (1 + 3e-9)", CONSTANTS, "is rounded"),
        # a limit of 1 is none that cuts decimals off
        ("x", "np.minimum(x, 1)", positive(2, 3), "decimals"),
        # a single number that happens to be whole is no array of integers
        ("max(n / m, 1)", "max(n, m)", SIZES, "decimals"),
        # between 0.3 and 0.8 there is a factor, which is none of the code
        (CLIPPED, f"np.where(abs(x) < 0.5, np.sign(x) * 0.8, {CLIPPED})", LIMITS, "8/3"),
        # in cases of one number any answer is a multiple
        (
            *("np.sin(9 * x)", "np.sin(9 * x) + (len(x) == 1) * np.cos(5 * x)"),
            *(positive(1, 1, 1, 5, 6), "is a multiple"),
        ),
        # an empty text is where nothing special happens, which explains nothing
        (
            *("x**2", "x**3 + 1 if event else x**2"),
            draws("x=rng.normal(size=4), event=k", "", "", "a", "b"),
            "exactly when `event` is",
        ),
        # where nothing is compared, nothing is right
        (
            *("None if device == 'meta' else x**2", "None if device == 'meta' else x**3 + 1"),
            draws("x=rng.normal(size=4), device=k", "cpu", "meta", "cpu", "meta"),
            "exactly when `device` is",
        ),
        # a truth has no scale
        ("bool(x.all())", "bool(x[0] > 1.9)", positive(3, 4, 5), "is doubled"),
        # an empty answer is right wherever nothing is to be returned
        (
            *("x if kind == 'all' else x[:0]", "x[:0]"),
            *(draws("x=rng.normal(size=4), kind=k", "all", "none"), "only for `kind`"),
        ),
        # `x` decides which entries count, and matters so
        (
            *("float(x[x > 0].sum())", "float(np.sum(np.arange(len(x))[x > 0] ** 1.5))"),
            *(draws("x=rng.uniform(2, 9, size=k)", 3, 5, 7), "does not depend on `x`"),
        ),
        # a maximum hides `n` wherever it is larger
        (
            *("x / max(9 / n, 1)", "x**2 / max(4 / n, 1)"),
            *(draws("n=k, x=rng.normal()", 5, 6, 7), "does not depend on `n`"),
        ),
        # without `total`, where it plays no part, the answer is wrong as well
        (
            *("x**0.5 * (1 if total is None else total**1.5)", "np.cosh(x)"),
            draws("x=k[0], total=k[1]", *((x, k) for x in (2.5, 3.5) for k in (None, 5, 7))),
            "does not depend on `total`",
        ),
        # a whole number is no cause
        ("x**3 + 1", "x**3 + (1 if x % 1 == 0 else x)", draws("x=k", *NUMBERS), "whole number"),
        # of two whole numbers and three sizes only: some other maximum is always 6 as well
        (
            *("min(len(x) + n, 20)", "6 if n < 5 else len(x) ** 2"),
            *(draws("x=rng.normal(size=k), n=6 - k + 5 * (k > 5)", 2, 3, 4, 7), "is always 6"),
        ),
        # a threshold that lies somewhere between two numbers
        (SQUARES, f"np.where(x > 0.5, x**3, {SQUARES})", normal(5, 6, 7), " or more"),
        # copies are no terms
        (
            *("np.exp(x[0])", "np.exp(np.tile(x[0], (len(x), 1)))"),
            *(normal((2, 3), (3, 3), (4, 3)), "average them"),
        ),
        # between the wrong calls and the right ones lie others, which tell the relations apart
        (
            *("x**3", "x if n >= m + 2 else x**3"),
            draws(
                "n=k[0], m=k[1], x=rng.normal()",
                *((1, 4), (4, 4), (9, 4), (7, 5), (2, 3), (30, 20), (3, 20)),
            ),
            "wrong exactly when",
        ),
        # where `x` is 0 the answer is only an argument, and where it is 1 a constant
        (
            *("x**2 + y", "np.sinh(x) + y"),
            *(draws("x=rng.normal(size=3), y=rng.normal(size=3)", 1, 2, 3), "is right where"),
        ),
        # with one step there are two rows
        (
            *(descend, "descend(lambda w: np.sinh(start) + (w - start), start, steps)"),
            *(DESCENTS, "`steps` is 1"),
        ),
        # it draws when it is iterated
        (
            "[rng.permutation(x), rng.permutation(x)]",
            "(rng.permutation(x) for _ in range(2))",
            *(draws("x=k, rng=np.random.default_rng(k)", 3, 4, 5), "does not draw"),
        ),
        # it draws in the other cases
        (
            *("rng.normal() if on else 1.5", "2.5 if on else rng.random()"),
            draws("on=k % 2 == 0, rng=np.random.default_rng(k)", 0, 1, 2, 3),
            "does not draw",
        ),
        # there is no loop
        ("float(np.prod(x))", lambda x: float(x[-1]), positive(2, 3, 4), "loop"),
        # what never agrees differs from itself, too
        (SQUARES, "(value**2 + 1 for value in x)", VECTORS, "another answer"),
        (SQUARES, "map(np.square, x)", VECTORS, "another answer"),
        ("n / 3", lambda n, x: Fraction(n, 3), CONSTANTS, "another answer"),
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
        said(ROOT, ARRAYS, "x")
    monkeypatch.setattr(diagnoses, "RAISING", False)
    assert "Why: 9 of 9 values differ" in said(ROOT, ARRAYS, "x")


# --- the form of a message


def test_different_numbers_are_printed_differently(message):
    single = lambda x: (x, (x + 1).astype(np.float32))  # noqa: E731
    text = message(lambda x: (x, x + 1), normal(2), single, parts=("left", "right"))
    _, expected, got = text.split("right: ")
    assert expected.split("]")[0] != got.split("]")[0]


def test_cause_precedes_arrays_in_a_short_message(message):
    lines = message(ROOT, ARRAYS, f"-{ROOT}").splitlines()
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
