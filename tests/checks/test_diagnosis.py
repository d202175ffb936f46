"""Each general diagnosis recognizes its mistake, and says nothing that is not true of all cases."""

import re
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
            eval(some if some in globals() or some[:7] == "lambda " else f"lambda {given}: {some}")
            if isinstance(some, str)
            else some
            for some in (reference, function)
        )
        exercise = Exercise(KEY, reference, cases, **options)
        monkeypatch.setattr(catalog, "of_row", lambda key: {key: exercise})
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


ARRAYS = draws("x=rng.normal(size=(k, 3)), eps=float(rng.uniform(0.1, 0.9))", 3, 4, 6)
ROOT = "np.sqrt(np.abs(x) + 1) * (1 + eps)"


NUMBERS = (-2.0, -1.5, -1.0, 0.0, 0.0, 0.5, 1.25, 3.0, 4.0)


def descend(gradient, start, steps):
    path = [start]
    for _ in range(steps):
        path.append(path[-1] - 0.1 * gradient(path[-1]))
    return np.array(path)


def option(x, b=0.1):
    return x**2 + (1 if b is None else b)


def counting(x, eps, calls=[]):  # noqa: B006
    calls.append(1)
    return x + len(calls)


def table(text):
    """Return rows of the right answer, its cases, another answer, and what is told, or is not.

    The arguments of the cases stand above the rows, and so may the right answer, which an answer
    calls ``right``.
    """
    rows, reference = [], ""
    for line in text.replace("\n        ", " ").splitlines():
        if " for k in " in line and not line.startswith(" "):
            arguments, _, values = line.partition(" for k in ")
            cases = draws(arguments, *eval(f"[{values}]"))
        elif line.startswith("    ") and not line.lstrip().startswith("#"):
            again, answer, words = re.split(r"(?:^| )→ | \| ", line.strip())
            reference = again or reference
            if "right" in answer:
                answer = f"(lambda right: {answer})({reference})"
            rows.append((reference, cases, answer, words))
    return rows


TRUE = """
x=rng.normal(size=(k, 3)), eps=float(rng.uniform(0.1, 0.9)) for k in 3, 4, 6
    np.sqrt(np.abs(x) + 1) * (1 + eps) → -right | has the opposite sign
    → right.T | is transposed
    → 3 * right / 4 | is 3/4 times the expected one
    → right / np.sqrt(3) | is √(1/3) times the expected one
    → right / np.log(2) | is 1/ln 2 times the expected one
    → right / np.sqrt(len(right)) | is 1/√`len(x)` times the expected one
    → right * (1 / len(right) - 1) | is (1 − `len(x)`)/`len(x)` times the expected one
    → 1.2345 * right | is always 1.2345 times the expected one
    → right * len(right) / (len(right) - 1) | is `len(x)`/(`len(x)` − 1) times the expected one
    → right + 1 | is the expected one + 1
    → right - 0.25 | is the expected one − 0.25
    → right + len(right) | is the expected one plus `len(x)`
    → right - len(right) | is the expected one minus `len(x)`
    → right**2 | is the square of the expected one
    → np.sqrt(right) | is the root of the expected one
    → 1 / right | is one over the expected one
    → -0.0 * abs(right) | is 0 in all cases tried
    → right * np.nan | has entries that are nan
    → right.astype(np.float32) | in single precision
    → right.astype(int) | has only whole numbers
    → np.floor(right) | has lost its decimals
    → right.round(2) | is rounded to 2 decimals
    → right * (1 + 1e-4 * right) | is close but not exact
    → right[::-1] | has its rows in the opposite order
    → right[:, [1, 2, 0]] | has the right numbers in another order
    → np.tile(right[-1], (len(right), 1)) | one and the same array appended each time
    → np.tile(right[0], (len(right), 1)) | has all rows equal.
    → right[:-1] | lacks the last row, and has the others
    → right[1:] | lacks the first row, and has the others
    → right[:, 1:] | lacks the first column, and has the others
    → right.ravel() | has the right numbers in another shape
    → right[-1] | is the last row of the expected one alone
    → np.vstack([right, right[-1:]]) | has a last row too many, and the right others
    → np.vstack([right[:1], right]) | has a first row too many, and the right others
    → right.max() | is the largest of the entries that are expected
    → right * np.log10(2) | is log₁₀ 2 times the expected one
    → right + x * (np.arange(len(x)) > 1)[:, None]
        | wherever it differs, rows 0 to 1 are right
    np.sin(9 * x) → np.maximum(right, 0) | has 0 wherever the expected one
    x * np.abs(x) + 1 → x**2 + 1 | would be right if no entry of `x` were negative
    x - 1 → np.where(x > 0, 1 - x, x - 1)
        | in the entries that differ, your answer has the opposite sign
    x + eps → counting | gives another answer to the same call
    np.sqrt(x**2 + eps) → np.abs(x) + eps**2 + eps * x
        | In the cases tried, your answer would be right if `eps` were 0
n=k[0], m=k[1] for k in (3072, 60), (100, 256), (500, 37)
    max(n / m, 1) → max(n, m) | is `m` times the expected one
g=rng.normal(size=k), a=rng.normal(size=3) for k in 2, 3, 5
    a * g.sum() → a * g.sum() / (g @ g) | is 1/‖`g`‖² times the expected one
x=k for k in *NUMBERS,
    x**3 + 1 → 5 if x == 0 else right
        | In the cases tried, your answer is wrong exactly when `x` is 0, right otherwise
    np.exp(x) → min(right, 1.0) | has 1 wherever the expected one is larger
    "a" if x < 0 else "b" if x < 1 else "c" → "c" | differs, the right answer is 'a' or 'b'
    np.exp(x) → 1 / 0 if x == 0 else 2 * right
        | division by zero. Where it raises none, your answer is twice the expected one
x=k * rng.uniform(1, 2, size=3) for k in 1, -1, 1, -1
    x.sum() if x[0] > 0 else np.inf → x.sum() if x[0] > 0 else x[1] * x[2]
        | wherever it differs, the right answer is inf
    np.cosh(x) * (x[0] > 0) → np.cosh(x) | wherever it differs, the right answer is 0
x=np.array([float(k), 2.0, 5.0]) for k in "nan", 1.0, "nan", -1.0
    x**2 + (x[0] != x[0]) → x**2 + (x[0] != x[0]) * np.sin(x)
        | wrong exactly when `x[0]` is nan, right otherwise
x=rng.normal(size=3), flag=k for k in True, False
    x**2 if flag else x → x if flag else x**2 | what is right for not `flag` in place of `flag`
n=k for k in 8, 12, 16, 23, 33
    -(-n // 7) → round(n / 7) | wherever it differs, your answer is too small by 1
x=rng.normal(size=k) for k in 2, 3, 4, 5
    np.exp(x).sum() / 1e9 → right + np.cosh(x.max()) / 1e11 | your answer is too large.
    np.sin(9 * x) → right * (3 + np.cos(5 * x)) | wherever it differs, your answer is 2
    np.cumsum(x) → np.append(x[0], right[:-1])
        | has in each entry what is right for the entry before
    np.exp(x).sum() → np.exp(x) | has several entries, of which the sum is expected
    np.outer([1, 2], x**2) → np.outer([1, 1], x) | is the argument `x` itself, in each row
    (x, 2) → (x, 2.0) | expected an integer, got a float
    0 * x → x**3 + 1 | the right answer is 0 in every entry
x=rng.normal(size=k) for k in 1, 1, 4, 5
    np.sin(9 * x) → np.cosh(x) if len(x) == 1 else right | wrong exactly when `len(x)` is 1
x=rng.uniform(1, 9, size=k) for k in 3, 5, 7
    int(np.ceil(x[0])) → x[0] | is no whole number; round it up to the next
    np.arange(len(x)) * np.median(x) → np.arange(len(x)) * x.mean() ** 3 / np.median(x) ** 2
        | would be right if all entries of `x` were equal
    x / x.sum() → x**3 / (x**2).sum() | the right answer adds up to 1, unlike yours
    np.sqrt(x) → 0 * x + np.sqrt(x.mean()) | your answer has all entries equal.
    float((x**2).sum()) → float((x**3).sum())
        | when `x` is doubled, the right answer is multiplied by 4; yours is multiplied by 8
x=rng.normal(size=k) for k in (2, 3, 4), (2, 5, 4)
    x**2 → (x**2).swapaxes(1, 2) | it is np.transpose(expected, (0, 2, 1))
x=rng.normal(size=4), slope=rng.normal(), offset=rng.normal(), m=k for k in 2, 5, 7
    x * slope + offset / m → np.tanh(x) * slope | depends neither on `offset` nor on `m`
    → x * offset + slope / m | `slope` and `offset` exchanged
    → x * slope + offset / (m + 1) | `m` + 1 in place of `m`
    → -x * slope + offset / m | is a sign wrong?
    → x * 0.9 + offset / m | what is right for `slope` = 0.9
    → x * slope + offset | 1 in place of `m`
    → x * 0.123 + offset / m | does not depend on `slope`
    → right + x | the expected one plus `x`
    x * m + np.sin(slope) → x * m + np.sin(2 * slope) | 2 · `slope` in place of `slope`
x=rng.normal(size=(k, 2)), y=rng.normal(size=k) for k in 3, 4, 6
    (y[:, None] * x**2).sum() → y[0] * x[0] @ x[0] | `x[:1]` and `y[:1]` in place of `x`
    → y[-1] * x[-1] @ x[-1] | `x[-1:]` and `y[-1:]` in place of
    → right - y[-1] * x[-1] @ x[-1] | does a loop end too early?
    → right - y[0] * x[0] @ x[0] | does a loop begin too late?
n=k, rng=np.random.default_rng(k) for k in 1, 3, 4, 5
    rng.normal(size=n) → np.random.default_rng(0).normal(size=n) | does not draw from `rng`
    → rng.random(2 * n)[:n] | draws from `rng` in another
pair=(rng.normal(size=2), np.ones(2)) for k in 1,
    pair[0] + pair[1] → np.add(*pair, out=pair[0])
        | changes its argument `pair` in place; work on a copy.
x=rng.normal(size=4), n=k for k in 3, 5, 8
    x**2 / n + x → x**2 / n**1.5 + x | your answer would be right if `n` were 1
gradient=np.sinh, start=rng.uniform(1, 2, size=4), steps=k for k in 3, 4, 5
    descend → descend(lambda w: -gradient(w), start, steps)
        | −`gradient` in place of `gradient`: is a sign wrong?
    → descend(lambda w: gradient(w)[::-1], start, steps)
        | row 0 is right, and row 1 is not: the step to it has the right signs, but other sizes
    → descend(lambda w: gradient(w) * np.linalg.norm(gradient(w)), start, steps)
        | row 0 is right, and row 1 is not: the step to it has the right direction, but another
x=rng.normal(size=k) for k in (3, 4), (4, 4), (6, 4)
    x / x.std(axis=0) → x / np.abs(x).mean(axis=0) | each column is a multiple of the expected one
    x - x.mean(axis=0) → x - np.median(x, axis=0) | each column is the expected one plus a number
f=np.sin, x=rng.normal(size=4) for k in 1, 2, 3
    f(x) ** 2 * np.cos(x) → np.abs(f(x))
        | when `f` is doubled, the right answer is multiplied by 4; yours doubles
    f(x) → [f(x) for _ in range(2000)][0] | a loop does not end: it has called `f`
x=rng.normal(size=k) for k in (3, 4), (4, 2), (6, 5)
    x - x.mean(axis=0) → (x - x.mean(axis=0)).mean(axis=0) + 0 * x
        | your answer is 0 up to rounding in all cases tried
x=rng.normal(size=4), **k for k in {}, {"b": 0.1}, {"b": None}, {"b": 0.3}, {"b": None}, {}
    option → lambda x, b=0.1: x**2 + (np.sin(x) if b is None else b)
        | wrong exactly when `b` is None, right otherwise
    → lambda x, b=0.1: x**2 + (1 if b is None else b * np.cosh(x))
        | wrong exactly when `b` is not None, right otherwise
"""


@pytest.mark.parametrize(("reference", "cases", "function", "true"), table(TRUE))
def test_facts_true_of_all_cases_are_reported(said, reference, cases, function, true):
    text = said(reference, cases, function)
    assert true in text
    assert text.endswith(true) or "in place; work" not in true, "no cause beside it"


# --- what is true by accident, and not told

UNTRUE = """
x=np.insert(rng.normal(size=k), 2, -1200.0) for k in 3, 5, 7
    # other entries than the first differ, and not all of them
    np.asarray(x) ** 2 + 1 → np.where(x < -9, sum(x[:2]), right) | only the first
    # what never agrees differs from itself, too
    → (value**2 + 1 for value in x) | another answer
x=np.array([2, 0, 1, 3])[:, None] + np.arange(k) for k in 1, 2, 3
    # in the smallest case, which is the one shown, a second row is right, too
    x**2 + 1 → np.vstack([x[:1] ** 2 + 1, x[1:] ** 2 + 1 + x[1:]]) | only the first
n=k for k in 2, 3, 4, 12, 16, 23, 33
    max(n - 9, 0) → n - 9 + max(n - 9, 0) * n | times the expected one
n=k, x=rng.uniform(2, 9) for k in 10, 1000, 100000
    # numbers that are wrong behind the ninth decimal are not rounded ones
    x / n → x / n * (1 + 3e-9) | is rounded
x=rng.uniform(1, 2, size=k) for k in 2, 3, 4
    # a limit of 1 is none that cuts decimals off
    x → np.minimum(x, 1) | decimals
    # where entries are cut off, others stay as they are
    np.append(x, 0) → np.minimum(right, 0.5) | all entries equal
    # a truth has no scale
    bool(x.all()) → bool(x[0] > 1.9) | is doubled
    # two small numbers are no branch
    len(x) - 2 → len(x) // 4 | the right answer is
x=np.array([k, 2.0, 5.0]) for k in -1.0, 4.0, 9.0
    # nan in one case explains nothing of the others
    x**2 → np.sqrt(x) | has entries that are nan
    → x**3 / (x[0] + 1) | is finite
x=rng.uniform(1, 2, size=k) for k in 8, 9, 12
    # truths are often alike
    x > np.median(x) → x > 0 | all entries equal
n=k[0], m=k[1] for k in (3072, 60), (100, 256), (500, 37)
    # a single number that happens to be whole is no array of integers
    max(n / m, 1) → max(n, m) | decimals
x=np.array([0.3, -0.3, *rng.uniform(1, 2, 3)]) for k in 1, 2, 3
    # between 0.3 and 0.8 there is a factor, which is none of the code
    np.clip(x, -0.3, 0.8) → np.where(abs(x) < 0.5, np.sign(x) * 0.8, right) | 8/3
x=rng.uniform(1, 2, size=k) for k in 1, 1, 1, 5, 6
    # in cases of one number any answer is a multiple
    np.sin(9 * x) → right + (len(x) == 1) * np.cos(5 * x) | is a multiple
x=rng.normal(size=4), event=k for k in "", "", "a", "b"
    # an empty text is where nothing special happens, which explains nothing
    x**2 → x**3 + 1 if event else x**2 | exactly when `event` is
x=rng.normal(size=4), device=k for k in "cpu", "meta", "cpu", "meta"
    # where nothing is compared, nothing is right
    None if device == 'meta' else x**2 → None if device == 'meta' else x**3 + 1
        | exactly when `device` is
x=rng.normal(size=4), kind=k for k in "all", "none"
    # an empty answer is right wherever nothing is to be returned
    x if kind == 'all' else x[:0] → x[:0] | what is right for `kind`
x=rng.normal(size=k) for k in 2, 3, 4
    # in a matrix the entries that differ are no rows
    np.diag(x) → np.diag(np.roll(x, -1)) | for the next row
    → np.diag(x[::-1]) | rows in the opposite order
    # numbers that are nearly 0 beside the right ones have no ratio yet
    1e14 * (x[0] ** 2 + 1) → np.cosh(x[0]) | √(0) times
x=rng.normal(size=k) for k in 3, 4, 5
    np.exp(x[3:]) → np.append(right, 5.0).max() | largest
    np.maximum(x, 0) → np.maximum(-x, 0) ** 2 | 0 to 0 times
    # what is the same in all cases has no law, and zeros have any
    0 * x[0] + 1 → 0 * x[0] | doubled
x=rng.uniform(2, 9, size=k) for k in 3, 5, 7
    # `x` decides which entries count, and matters so
    float(x[x > 0].sum()) → float(np.sum(np.arange(len(x))[x > 0] ** 1.5)) | does not depend on `x`
n=k, x=rng.normal() for k in 5, 6, 7
    # a maximum hides `n` wherever it is larger
    x / max(9 / n, 1) → x**2 / max(4 / n, 1) | does not depend on `n`
x=k[0], total=k[1] for k in *((x, k) for x in (2.5, 3.5) for k in (None, 5, 7)),
    # without `total`, where it plays no part, the answer is wrong as well
    x**0.5 * (1 if total is None else total**1.5) → np.cosh(x) | does not depend on `total`
n=k[0], m=k[1], x=rng.normal() for k in (1, 4), (4, 4), (9, 4), (7, 5), (2, 3), (30, 20), (3, 20)
    # between the wrong calls and the right ones lie others, which tell the relations apart
    x**3 → x if n >= m + 2 else x**3 | wrong exactly when
x=rng.normal(size=3), y=rng.normal(size=3) for k in 1, 2, 3
    # where `x` is 0 the answer is only an argument, and where it is 1 a constant
    x**2 + y → np.sinh(x) + y | would be right if
gradient=np.sinh, start=rng.uniform(1, 2, size=4), steps=k for k in 3, 4, 5
    # with one step there are two rows
    descend → descend(lambda w: np.sinh(start) + (w - start), start, steps) | `steps` is 1
x=k, rng=np.random.default_rng(k) for k in 3, 4, 5
    # it draws when it is iterated
    [rng.permutation(x), rng.permutation(x)] → (rng.permutation(x) for _ in range(2))
        | does not draw
on=k % 2 == 0, rng=np.random.default_rng(k) for k in 0, 1, 2, 3
    # it draws in the other cases
    rng.normal() if on else 1.5 → 2.5 if on else rng.random() | does not draw
x=rng.normal(size=k) for k in (3, 3), (4, 3)
    # a part that never changes cannot be blamed for it
    (x, x, np.full(2, 2.0)) → (x, x, np.full(2, 3.0)) | in all cases tried
    # beside parts that are far off
    (x, x + 1, x + 2) → (x + x**3, x**2 + 1, (x + 2) * (1 + 1e-6 * x)) | close but not exact
    → (x + x**3, np.roll(x + 1, 1), np.roll(x + 2, 1)) | in another order
    # the keys of a dict are no parts
    (x**2, x**3, x) → {0: x**2, 1: x**3, 2: x} | in all cases tried
"""


@pytest.mark.parametrize(("reference", "cases", "function", "untrue"), table(UNTRUE))
def test_coincidental_facts_are_not_reported(said, reference, cases, function, untrue):
    parts = ("y", "z", "w") if reference.startswith("(x") else ""
    text = said(reference, cases, function, parts=parts)
    assert text
    assert untrue not in text


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
        (lambda m, d, a: (m, (a, d)), "are exchanged; the order is mean, deviation, largest"),
        (lambda m, d, a: (m, (d + 1, d)), "`mean` is right; `deviation` and `largest` are not"),
        (lambda m, d, a: (-m, (-d, a)), "each of `mean` and `deviation` has the opposite sign"),
        (lambda m, d, a: m, "your function returned an array of shape (3,)"),
        (lambda m, d, a: {0: m, 1: (d, a)}, "returned a dict"),
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
        draws("x=rng.uniform(1, 2, size=k)", 3, 4),
        lambda x: make(float(np.ptp(x) + x[0] ** 3)),
        properties=(fact,),
        use=use,
    )
    assert (f"Your function does not satisfy this: {fact.claim}" in text) != held


def test_argument_not_passed_is_not_blamed(said):
    def use(function, x, late):
        return function(x)[:: -1 if late else 1]

    cases = draws("x=rng.uniform(1, 2, size=k), late=k > 4", 3, 4, 5, 6)
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
    many = draws("x=rng.normal(size=k), **dict.fromkeys('abcdefghijklmnop', 1)", (30, 1), (40, 1))
    lines = message("x", many, "np.where(np.arange(len(x)) == 20, 9, x.T).T").splitlines()
    assert len(lines) == 20
    assert "9.0" in lines[-2], "the row that differs is shown"
    assert "… and " in lines[-7]


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
