"""Each general diagnosis recognizes its mistake, and says nothing that is not true of all cases."""

from fractions import Fraction

import numpy as np
import pytest

from optdl.checks import CheckFailed, Exercise, Property, catalog, check, diagnoses
from optdl.checks.diagnoses import notebook

KEY = "L1-07"


@pytest.fixture(autouse=True)
def errors_are_raised(monkeypatch):
    monkeypatch.setattr(diagnoses, "RAISING", True)


@pytest.fixture
def course(monkeypatch):
    def offer(reference, cases, **options):
        exercise = Exercise(KEY, reference, cases, (), **options)
        monkeypatch.setattr(catalog, "exercises", lambda: {KEY: exercise})
        monkeypatch.setattr(catalog, "_of_row", lambda key: {})

    return offer


def said(function) -> str:
    """Return what a check says above the failing case."""
    with pytest.raises(CheckFailed) as caught:
        check(KEY, function)
    return str(caught.value).split("\n\n")[0]


# --- numbers and arrays


def scaled_root(x, eps):
    return np.sqrt(np.abs(x) + 1) * (1 + eps)


def arrays(rng):
    return [
        {"x": rng.normal(size=(rows, 3)), "eps": float(rng.uniform(0.1, 0.9))} for rows in (3, 4, 6)
    ]


@pytest.mark.parametrize(
    ("mistake", "cause"),
    [
        (lambda y: -y, "has the opposite sign"),
        (lambda y: y.T, "is transposed"),
        (lambda y: 2 * y, "is twice the expected one"),
        (lambda y: y / 2, "is half the expected one"),
        (lambda y: 3 * y / 4, "is 3/4 times the expected one"),
        (lambda y: np.pi * y, "is π times the expected one"),
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
        (lambda y: np.tile(y[0], (len(y), 1)), "nothing ever moves"),
        (lambda y: np.tile(y[1], (len(y), 1)), "has all rows equal"),
        (lambda y: y[:-1], "lacks the last row; the others are right"),
        (lambda y: y.sum(axis=0), "is the sum of the entries that are expected"),
        (lambda y: y.mean(), "is the mean of the entries that are expected"),
        (np.ravel, "has the right numbers in another shape"),
    ],
)
def test_transformed_right_answers_are_recognized(course, mistake, cause):
    course(scaled_root, arrays)
    text = said(lambda x, eps: mistake(scaled_root(x, eps)))
    assert cause in text.split("Likely cause: ")[1]


def test_constant_part_is_not_blamed_for_constancy(course):
    course(lambda x: (x, np.array([2.0, 3.0])), arrays_alone, parts=("y", "fixed"))
    assert "whatever the arguments" not in said(lambda x: (x, np.array([3.0, 3.0])))


def test_close_match_is_reported_only_if_alone(course):
    course(lambda x: (x, x + 1, x + 2), arrays_alone, parts=("y", "z", "w"))
    text = said(lambda x: (x + x**3, x**2 + 1, (x + 2) * (1 + 1e-6 * x)))
    assert "close but not exact" not in text
    assert "close but not exact" in said(lambda x: (x, x + 1, (x + 2) * (1 + 1e-6 * x)))


def test_scalar_cases_do_not_suggest_a_multiple(course):
    def cases(rng):
        return [{"x": rng.uniform(1, 2, size=k)} for k in (1, 1, 1, 5, 6)]

    course(lambda x: np.sin(9 * x), cases)
    assert "is a multiple" not in said(lambda x: np.sin(9 * x) + (len(x) == 1) * np.cos(5 * x))


def test_empty_answers_do_not_count_as_right(course):
    def cases(rng):
        return [{"x": rng.normal(size=k), "kind": kind} for k, kind in ((4, "all"), (5, "none"))]

    course(lambda x, kind: x if kind == "all" else x[:0], cases)
    assert "only for `kind`" not in said(lambda x, kind: x[:0])


def arrays_alone(rng):
    return [{"x": rng.normal(size=(k, 3))} for k in (3, 4)]


@pytest.mark.parametrize(
    ("mistake", "told"),
    [
        (lambda n, m: max(n // m, 1), "has lost its decimals"),
        (lambda n, m: max(n, m), "is `m` times the expected one"),
    ],
)
def test_integer_answers_are_diagnosed_by_lost_decimals(course, mistake, told):
    sizes = ((3072, 60), (100, 256), (500, 37))
    course(lambda n, m: max(n / m, 1), lambda rng: [{"n": n, "m": m} for n, m in sizes])
    text = said(mistake)
    assert told in text
    assert "array of integers, which" not in text
    assert told == "has lost its decimals" or "decimals" not in text


def test_vector_norm_is_recognized_as_a_factor(course):
    def cases(rng):
        return [{"g": rng.normal(size=k), "a": rng.normal(size=3)} for k in (2, 3, 5)]

    course(lambda g, a: a * g.sum(), cases)
    assert "is 1/‖`g`‖² times the expected one" in said(lambda g, a: a * g.sum() / (g @ g))


@pytest.mark.parametrize(
    ("mistake", "fact"),
    [
        (lambda x, y: np.vstack([y[:2], y[2:] + x[2:]]), "ows 0 to 1 are right in every case"),
        (lambda x, y: np.where(x < 0, y + x**2, y), "it differs exactly where `x` is negative"),
    ],
)
def test_mistake_location_is_reported(course, mistake, fact):
    course(scaled_root, arrays)
    text = said(lambda x, eps: mistake(x, scaled_root(x, eps)))
    assert fact.lower() in text.lower()


NUMBERS = (-2.0, -1.5, -1.0, 0.0, 0.0, 0.5, 1.25, 3.0, 4.0)


@pytest.mark.parametrize(
    ("mistake", "fact"),
    [
        (lambda x: abs(x) ** 1.5 if x < 0 else x**3 + 1, "wrong exactly when `x` is negative"),
        (lambda x: 5 if x == 0 else x**3 + 1, "wrong exactly when `x` is 0"),
    ],
)
def test_wrong_argument_ranges_are_reported(course, mistake, fact):
    course(lambda x: x**3 + 1, lambda rng: [{"x": x} for x in NUMBERS])
    assert f"Your answer is {fact}, right otherwise" in said(mistake)


def test_missing_special_case_is_reported(course):
    def cases(rng):
        return [{"x": sign * rng.uniform(1, 2, size=3)} for sign in (1, -1, 1, -1)]

    course(lambda x: x.sum() ** 2 if x[0] > 0 else np.inf, cases)
    text = said(lambda x: x.sum() ** 2 if x[0] > 0 else x[1] * x[2])
    assert "In every case that differs, the right answer is inf" in text


def test_swapped_axes_are_reported(course):
    course(lambda x: x**2, lambda rng: [{"x": rng.normal(size=(2, k, 4))} for k in (3, 5)])
    assert "it is np.transpose(expected, (0, 2, 1))" in said(lambda x: (x**2).swapaxes(1, 2))


def test_differing_entries_are_diagnosed_alone(course):
    course(lambda x, eps: x - 1, arrays)
    text = said(lambda x, eps: np.where(x > 0, 1 - x, x - 1))
    assert "in the entries that differ, your answer has the opposite sign" in text


# --- what is true by accident, and not told


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
        # between 0.3 and 0.8 there is a factor, which is none of the code
        (
            lambda x: np.clip(x, -0.3, 0.8),
            limits,
            lambda x: np.where(abs(x) < 0.5, np.sign(x) * 0.8, np.clip(x, -0.3, 0.8)),
            "8/3",
        ),
        # the largest entry happens to be the first
        (
            lambda x: -np.sort(-abs(x)),
            limits,
            lambda x: abs(x).max(),
            "is the first row of the expected one alone",
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
            lambda rng: [{"x": rng.normal(size=k)} for k in (5, 6, 7)],
            lambda x: np.where(x > 0.5, x**3, squares(x)),
            " or more",
        ),
        # the entries of the right answer are 0 off its diagonal, so each is a largest one
        (
            lambda x: np.diag(np.exp(x)),
            lambda rng: [{"x": rng.normal(size=k)} for k in (2, 3, 4)],
            lambda x: np.exp(x),
            "largest",
        ),
        # copies are no terms
        (
            lambda x: np.exp(x[0]),
            lambda rng: [{"x": rng.normal(size=(k, 3))} for k in (2, 3, 4)],
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
        # it draws when it is iterated
        (
            lambda x, rng: [rng.permutation(x), rng.permutation(x)],
            lambda rng: [{"x": k, "rng": np.random.default_rng(k)} for k in (3, 4, 5)],
            lambda x, rng: (rng.permutation(x) for _ in range(2)),
            "does not draw",
        ),
        # there is no loop
        (
            lambda x: float(np.prod(x)),
            lambda rng: [{"x": rng.uniform(1, 2, size=k)} for k in (2, 3, 4)],
            lambda x: float(x[-1]),
            "loop",
        ),
        # what never agrees differs from itself, too
        (squares, vectors, lambda x: (value**2 + 1 for value in x), "another answer"),
        (squares, vectors, lambda x: map(squares, x), "another answer"),
        (lambda n, x: n / 3, constants, lambda n, x: Fraction(n, 3), "another answer"),
    ],
)
def test_coincidental_facts_are_not_reported(course, reference, cases, function, untrue):
    course(reference, cases)
    assert untrue not in said(function)


def test_facts_are_verified_on_additional_cases(course):
    """With the seed of the notebook, the entries of every case begin with the one that is wrong."""
    draws = []

    def cases(rng):
        draws.append(rng)
        first = 0 if len(draws) <= 2 else 1
        return [{"x": np.roll([9.0, *rng.uniform(-1, 1, 3)], first)} for _ in range(3)]

    course(lambda x: x + 1, cases)
    assert "first entry" not in said(lambda x: np.where(x == 9, x.sum(), x + 1))


# --- arguments


def line(x, slope, offset, m):
    return x * slope + offset / m


def lines(rng):
    return [
        {"x": rng.normal(size=4), "slope": rng.normal(), "offset": rng.normal(), "m": m}
        for m in (2, 5, 7)
    ]


@pytest.mark.parametrize(
    ("function", "cause"),
    [
        (lambda x, slope, offset, m: line(x, offset, slope, m), "`slope` and `offset` exchanged"),
        (lambda x, slope, offset, m: line(x, -slope, offset, m), "is a sign wrong?"),
        (lambda x, slope, offset, m: line(x, slope, offset, m + 1), "`m` + 1 in place of `m`"),
        (lambda x, slope, offset, m: line(x, slope, offset, 1), "1 in place of `m`"),
        (lambda x, slope, offset, m: line(x, 0.9, offset, m), "only for `slope` = 0.9"),
        (lambda x, slope, offset, m: line(x, 0.123, offset, m), "does not depend on `slope`"),
        (lambda x, slope, offset, m: x, "is the argument `x` itself"),
        (lambda x, slope, offset, m: line(x, slope, offset, m) + x, "the expected one plus `x`"),
    ],
)
def test_right_answer_to_another_call_is_recognized(course, function, cause):
    course(line, lines)
    assert cause in said(function)


@pytest.mark.parametrize(
    ("function", "cause"),
    [
        (lambda x, y: x[0] @ x[0] * y[0], "`x[:1]` and `y[:1]` in place of `x` and `y`"),
        (lambda x, y: x[-1] @ x[-1] * y[-1], "`x[-1:]` and `y[-1:]` in place of `x` and `y`"),
        (lambda x, y: weighted(x[:-1], y[:-1]), "does the loop end too early?"),
        (lambda x, y: weighted(x[1:], y[1:]), "does the loop begin too late?"),
    ],
)
def test_skipped_loop_iterations_are_recognized(course, function, cause):
    def cases(rng):
        return [{"x": rng.normal(size=(k, 2)), "y": rng.normal(size=k)} for k in (3, 4, 6)]

    course(weighted, cases)
    assert cause in said(function)


def weighted(x, y):
    return sum(b * a @ a for a, b in zip(x, y, strict=True))


def test_wrong_gradient_sign_is_recognized(course):
    def descend(gradient, start, steps):
        path = [start]
        for _ in range(steps):
            path.append(path[-1] - 0.1 * gradient(path[-1]))
        return np.array(path)

    def cases(rng):
        return [{"gradient": np.sin, "start": rng.normal(size=2), "steps": k} for k in (3, 4)]

    course(descend, cases)
    text = said(lambda gradient, start, steps: descend(lambda w: -gradient(w), start, steps))
    assert "−`gradient` in place of `gradient`: is a sign wrong?" in text


def test_condition_of_wrong_calls_is_reported(course):
    def cases(rng):
        return [
            {"x": rng.normal(size=3), "start": rng.normal() if k % 2 else None} for k in range(4)
        ]

    def sums(x, start):
        return np.cumsum(x) + (0 if start is None else start)

    course(sums, cases)
    text = said(lambda x, start: sums(x, start) + (0 if start is None else x[0] ** 2))
    assert "wrong exactly when `start` is not None, right otherwise" in text


def test_stateful_function_is_recognized(course):
    course(scaled_root, arrays)
    calls = []

    def counting(x, eps):
        calls.append(1)
        return scaled_root(x, eps) + len(calls)

    assert "gives another answer to the same call" in said(counting)


@pytest.mark.parametrize(
    ("function", "cause"),
    [
        (lambda n, rng: np.random.default_rng(0).normal(size=n), "does not draw from `rng`"),
        (lambda n, rng: rng.random(2 * n)[:n], "draws from `rng` in another way"),
    ],
)
def test_misused_random_generator_is_diagnosed(course, function, cause):
    def cases(rng):
        return [{"n": n, "rng": np.random.default_rng(int(rng.integers(99)))} for n in (4, 5)]

    course(lambda n, rng: rng.normal(size=n), cases)
    assert cause in said(function)


def test_extra_draws_are_reported_despite_right_cases(course):
    def cases(rng):
        return [{"n": n, "rng": np.random.default_rng(n)} for n in (1, 3, 4)]

    course(lambda n, rng: rng.permutation(5)[:n], cases)
    text = said(lambda n, rng: np.array([rng.permutation(5)[k] for k in range(n)]))
    assert "draws from `rng` in another way" in text


def test_drawing_in_other_cases_counts_as_drawing(course):
    def cases(rng):
        return [{"on": k % 2 == 0, "rng": np.random.default_rng(k)} for k in range(4)]

    course(lambda on, rng: rng.normal() if on else 1.5, cases)
    assert "does not draw" not in said(lambda on, rng: 2.5 if on else rng.random())


def test_mutated_array_inside_argument_is_reported(course):
    course(lambda pair: pair[0] + pair[1], lambda rng: [{"pair": (rng.normal(size=2), np.ones(2))}])

    def careless(pair):
        total = pair[0]
        total += pair[1]
        return total

    text = said(careless)
    assert "changes its argument `pair` in place" in text
    assert "Likely cause" not in text


# --- parts


def moments(x):
    return x.mean(axis=0), (x.std(axis=0), x.max(axis=0))


MOMENTS = ("mean", ("deviation", "largest"))


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda m, d, a: (m, (-d, a)), "`deviation` has the opposite sign"),
        (lambda m, d, a: (m, (d**2, a)), "`deviation` is the square of the expected one"),
        (lambda m, d, a: (m, (a, d)), "`deviation` and `largest` are exchanged"),
        (lambda m, d, a: (m, (d + 1, d)), "`mean` is right; `deviation` and `largest` are not"),
        (lambda m, d, a: (-m, (-d, a)), "each of `mean` and `deviation` has the opposite sign"),
        (lambda m, d, a: m, "your function returned an array of shape (3,)"),
        (
            lambda m, d, a: (m, d, a),
            "array of shape (3,); return mean, (deviation, largest)",
        ),
        (lambda m, d, a: (m, (d[:2], a)), "`deviation`: expected shape (3,), got shape (2,)"),
    ],
)
def test_parts_are_reported_by_name(course, function, text):
    course(moments, lambda rng: [{"x": rng.normal(size=(4, 3))} for _ in range(3)], parts=MOMENTS)
    found = said(lambda x: function(moments(x)[0], *moments(x)[1]))
    assert text in found


@pytest.mark.parametrize(
    "variant",
    [
        lambda m, d, a: [m, [d, a]],
        lambda m, d, a: (m.tolist(), (d.tolist(), a.tolist())),
        lambda m, d, a: (m + 1e-15, (d, a)),
    ],
)
def test_right_answers_of_another_type_pass(course, variant):
    course(moments, lambda rng: [{"x": rng.normal(size=(4, 3))}], parts=MOMENTS)
    check(KEY, lambda x: variant(moments(x)[0], *moments(x)[1]))


@pytest.mark.parametrize("kind", [float, np.float64, np.array, lambda value: np.array([value])[0]])
def test_scalar_answers_of_any_type_pass(course, kind):
    course(lambda x: float(x.sum()), lambda rng: [{"x": rng.normal(size=3)}])
    check(KEY, lambda x: kind(x.sum()))


# --- laws


def test_violated_law_is_reported(course):
    course(lambda x: x / x.sum(), lambda rng: [{"x": rng.uniform(1, 2, size=k)} for k in (3, 4)])
    text = said(lambda x: x**3 / (x**2).sum())
    assert "The right answer adds up to 1; yours is not so" in text


def test_wrong_scaling_with_argument_is_reported(course):
    def cases(rng):
        return [{"x": rng.uniform(1, 2, size=k)} for k in (3, 4)]

    course(lambda x: float((x**2).sum()), cases)
    text = said(lambda x: float((x**3).sum()))
    assert (
        "When `x` is doubled, the right answer is multiplied by 4; yours is multiplied by 8" in text
    )


def test_failed_property_is_reported_without_other_cause(course):
    def cases(rng):
        return [{"x": rng.uniform(1, 2, size=k) + 1} for k in (3, 4)]

    fact = Property("ones have no spread", lambda f, rng: f(np.ones(3)) == 0)
    course(lambda x: float(np.ptp(x) + x.var()), cases, properties=(fact,))
    text = said(lambda x: float(np.ptp(x) + x[0] ** 3))
    assert "Your function does not satisfy this: ones have no spread" in text


def test_property_sees_the_answer_without_use(course, monkeypatch):
    monkeypatch.setattr(diagnoses, "RAISING", False)  # some cannot handle `use`

    def cases(rng):
        return [{"x": rng.uniform(1, 2, size=k) + 1} for k in (3, 4)]

    fact = Property("it returns a list", lambda f, rng: isinstance(f(np.ones(3)), list))

    def use(function, x):
        return function(x)[0]

    course(lambda x: [float(np.ptp(x) + x.var())], cases, properties=(fact,), use=use)
    assert "does not satisfy this" not in said(lambda x: [float(np.ptp(x) + x[0] ** 3)])
    assert "does not satisfy this: it returns a list" in said(
        lambda x: (float(np.ptp(x) + x[0] ** 3),)
    )


def test_argument_not_passed_is_not_blamed(course):
    def cases(rng):
        return [{"x": rng.uniform(1, 2, size=k), "late": k > 4} for k in (3, 4, 5, 6)]

    def use(function, x, late):
        return function(x)[:: -1 if late else 1]

    course(lambda x: x, cases, use=use)
    assert "`late`" not in said(lambda x: np.full(len(x), x[0] ** 3 + x[1] * x[2]))


def test_failing_diagnosis_does_not_break_the_check(course, monkeypatch):
    def broken(evidence):
        raise RuntimeError("a bug")

    monkeypatch.setattr(diagnoses, "CAUSES", (broken,))
    course(scaled_root, arrays)
    with pytest.raises(RuntimeError, match="a bug"):
        said(lambda x, eps: x)
    monkeypatch.setattr(diagnoses, "RAISING", False)
    assert "Why: 9 of 9 values differ" in said(lambda x, eps: x)


# --- the form of a message


def test_different_numbers_are_printed_differently(course):
    course(lambda x: (x, x + 1), lambda rng: [{"x": rng.normal(size=2)}], parts=("left", "right"))
    with pytest.raises(CheckFailed) as caught:
        check(KEY, lambda x: (x, (x + 1).astype(np.float32)))
    _, expected, got = str(caught.value).split("right: ")
    assert expected.split("]")[0] != got.split("]")[0]


def test_cause_precedes_arrays_in_a_short_message(course):
    course(scaled_root, arrays)
    with pytest.raises(CheckFailed) as caught:
        check(KEY, lambda x, eps: -scaled_root(x, eps))
    lines = str(caught.value).splitlines()
    assert [line.split(":")[0] for line in lines[1:5]] == [
        "Why",
        "Likely cause",
        "",
        "Smallest failing case",
    ]
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
def test_syntax_error_in_newest_cell_is_found(cells, line):
    text = notebook.error_of(cells, "f")
    assert (f"syntax error in line {line}" in text) if line else text == ""


def test_functions_are_never_stale_outside_notebooks():
    assert notebook.stale(scaled_root) == ""


def test_notebook_cell_is_looked_up(monkeypatch):
    class Shell:
        user_ns = {"In": ["def answer(x):\n    return x +"]}  # noqa: RUF012

        def transform_cell(self, cell):
            return cell

    class IPython:
        get_ipython = staticmethod(Shell)

    def answer(x):
        return x

    monkeypatch.setitem(notebook.sys.modules, "IPython", IPython)
    answer.__module__ = "__main__"
    assert "syntax error in line 2" in notebook.stale(answer)
