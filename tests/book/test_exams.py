"""The exams: each number in a solution is computed here again, and only instructors get them."""

import re
from math import cos, exp, pi, sqrt
from pathlib import Path

import numpy as np
import pytest

from tools import exams, handout
from tools.layout import Course, contents
from tools.terminal import ToolError

ROOT = Path(__file__).resolve().parents[2]
SOURCES = {int(path.stem[-1]): path for path in sorted((ROOT / "exams").glob("exam-*.md"))}
TEXTS = {number: path.read_text("utf-8") for number, path in SOURCES.items()}


def parts(exam: int) -> dict[int, tuple[str, str]]:
    """Return the text and the solution of each question."""
    pieces = exams.QUESTION.split(TEXTS[exam])[1:]
    bodies = zip(map(int, pieces[::4]), pieces[3::4], strict=True)
    return {number: tuple(body.split("### Solution\n")) for number, body in bodies}  # type: ignore[misc]


def stated(exam: int, question: int) -> list[tuple[float, float]]:
    """Return the bold numbers of a solution in order, each with half a unit of its last digit."""
    found = []
    for bold in re.findall(r"\*\*(.+?)\*\*", parts(exam)[question][1]):
        digits, _, power = bold.strip("$").replace("−", "-").partition(r"\cdot10^")
        factor = 10.0 ** int(power.strip("{}")) if power else 1.0
        decimals = len(digits.partition(".")[2])
        found.append((float(digits) * factor, 0.5 * 10.0**-decimals * factor))
    return found


def condition(matrix: np.ndarray) -> float:
    """Return the condition number of a symmetric matrix."""
    values = np.linalg.eigvalsh(matrix)
    return float(values[-1] / values[0])


def descent(hessian: np.ndarray, start: np.ndarray, lr: float, steps: int) -> np.ndarray:
    """Return the point after some steps of gradient descent on a quadratic."""
    w = start
    for _ in range(steps):
        w = w - lr * hessian @ w
    return w


def steps_to(fraction: float, rate: float) -> int:
    """Return how many steps bring an error to a fraction, counted one by one."""
    error, steps = 1.0, 0
    while error > fraction:
        error, steps = error * rate, steps + 1
    return steps


def spread(lr: float, curvature: float, variance: float) -> float:
    """Return the variance at which noisy descent settles, by iterating it."""
    value = 0.0
    for _ in range(100_000):
        value = (1 - lr * curvature) ** 2 * value + lr**2 * variance
    return value


# --- Exam 1 -----------------------------------------------------------------------------------


def classifiers():
    own, other = 0.09 * 0.91 / 400, 0.075 * 0.925 / 400
    return [36 / 400, sqrt(own), 0.09 * 0.91 / 0.005**2, sqrt(own + other), 36 / 400 - 30 / 400]


def margins():
    z = np.array([-1, 0.5, 1, 3])
    values = [[np.mean(a <= 0), np.maximum(0, 1 - a).mean(), ((1 - a) ** 2).mean()]
              for a in (z, 2 * z)]  # fmt: skip
    example = np.array([-0.5, 0, 1, 1])
    assert np.maximum(0, 1 - example).mean() == 0.625
    return [*values[0], *values[1], np.sum(example <= 0)]


def minibatches():
    rng = np.random.default_rng(0)
    population = rng.normal(size=2500)
    population = 6 * (population - population.mean()) / population.std()
    means = [rng.permutation(population)[:1600].mean() for _ in range(4000)]
    factor = np.std(means) / 0.15
    assert abs(factor - sqrt(900 / 2499)) < 0.03
    near, far = 36 / 1.5**2, 36 / 0.3**2
    (small, large), (slow, fast) = (
        [n / (n + scale) for n in (48, 96)] for scale in (near, far)
    )  # fmt: skip
    return [
        (6 / 0.15) ** 2, sqrt(900 / 2499), 0.15 * sqrt(900 / 2499), near, small, large,
        large / small, far, fast / slow,
    ]  # fmt: skip


def quadratic():
    hessian, start = np.array([[5.0, 3], [3, 5]]), np.array([4.0, 0])
    values, vectors = np.linalg.eigh(hessian)
    terms = 0.5 * values * (vectors.T @ start) ** 2
    one, two = (descent(hessian, start, 0.2, steps) for steps in (1, 2))
    return [
        values[0], values[1], *terms, *(1 - 0.2 * values), *one, *two, steps_to(1e-3, 0.6),
        *(1 - 0.24 * values),
    ]  # fmt: skip


def centering():
    kappas = []
    for feature in (np.array([7.0, 9]), np.array([-1.0, 1]), np.array([7.0, 9]) / 8):
        inputs = np.column_stack([feature, np.ones(2)])
        kappas.append(condition(inputs.T @ inputs / 2))
    return [*kappas, np.mean([7, 9])]


def downhill():
    def loss(x: float, y: float) -> float:
        return x**4 / 4 + y**2 / 2

    s = 1e-4
    g = np.array([(loss(1 + s, 2) - loss(1 - s, 2)), (loss(1, 2 + s) - loss(1, 2 - s))]) / (2 * s)
    hessian, other = np.diag([3.0, 1]), np.array([-2.0, 1])
    slope, bend = g @ g, g @ hessian @ g
    real = loss(1 - 5 / 7 * g[0], 2 - 5 / 7 * g[1]) - loss(1, 2)
    model = -slope * slope / bend + 0.5 * (slope / bend) ** 2 * bend
    return [slope, bend, slope / bend, 2 * slope / bend, model, real, g @ other,
            other @ hessian @ other]  # fmt: skip


def saddles():
    hessian = np.array([[1.0, 2], [2, 1]])
    values, vectors = np.linalg.eigh(hessian)
    counts = []
    for factor in (1.0, 0.1):
        w = np.array([1, 0.998])
        w = w - (1 - factor) * vectors[:, 0] * (vectors[:, 0] @ w)
        counts.append(next(k for k in range(99)
                           if abs(vectors[:, 0] @ descent(hessian, w, 0.25, k)) >= 1))  # fmt: skip
    plateau = []
    for start in (-6.0, -8.0):
        weight, steps = start, 0
        while weight < 0:
            output = 1 / (1 + exp(-weight))
            weight, steps = weight + 0.5 * output * (1 - output) ** 2, steps + 1
        plateau.append(steps)
    return [
        values[1], values[0], 1 - 0.25 * values[0], *counts, exp(6) / 0.5, exp(8) / 0.5, *plateau,
    ]  # fmt: skip


def errors():
    hessian = np.diag([0.1, 4])
    limit = -np.linalg.solve(hessian, [0.02, 0.08])
    return [*limit, spread(0.1, 0.1, 0.04), spread(0.1, 4, 0.04), spread(0.025, 0.1, 0.04)]


# --- Exam 2 -----------------------------------------------------------------------------------


def floors():
    floor = spread(0.1, 2, 4)
    small = 0.04 / 4.04
    assert abs(spread(small, 2, 4) - 0.01) < 1e-12
    size = next(n for n in range(1, 99) if spread(0.1, 2, 4 / n) <= 0.01)
    return [floor, small, size, 4 / (2**2 * 0.01)]


def velocity():
    def path(ahead: float) -> list[float]:
        theta, v, iterates = 16.0, 0.0, []
        for _ in range(3):
            v = v / 2 - 0.25 * 4 * (theta + ahead * v / 2)
            theta += v
            iterates.append(theta)
        return iterates

    step = np.array([[1 - 2.4, 0.5], [-2.4, 0.5]])
    return [*path(0), *path(1), 1 - 0.6 * 4, max(abs(np.linalg.eigvals(step)))]


def roots():
    def rate(lr: float, alpha: float, curvatures: list[float]) -> float:
        steps = [np.array([[1 - lr * c, alpha], [-lr * c, alpha]]) for c in curvatures]
        return max(max(abs(np.linalg.eigvals(step))) for step in steps)

    lr, all_of_them = (2 / 11) ** 2, list(np.linspace(1, 100, 34))
    assert rate(lr, (9 / 11) ** 2, all_of_them) == pytest.approx(9 / 11, abs=1e-6)
    high = rate(lr, 0.9, all_of_them)
    assert rate(lr, 0.9, [0.1]) == pytest.approx(high)
    assert rate(lr, (9 / 11) ** 2, [0.1]) == pytest.approx(0.99, abs=5e-4)
    return [steps_to(1e-6, 99 / 101), steps_to(1e-6, 9 / 11), lr, high, steps_to(1e-6, high)]


def divisors(scale: float = 1.0):
    total = mean_square = first = second = 0.0
    adagrad, rmsprop, adam = [], [], []
    for t, gradient in enumerate(scale * np.array([4.0, 3, 0]), start=1):
        total += gradient**2
        mean_square = 0.75 * mean_square + 0.25 * gradient**2
        first = 0.5 * first + 0.5 * gradient
        second = 0.75 * second + 0.25 * gradient**2
        adagrad.append(gradient / sqrt(total))
        rmsprop.append(gradient / sqrt(mean_square))
        adam.append(first / (1 - 0.5**t) / sqrt(second / (1 - 0.75**t)))
    return [*adagrad, *rmsprop, *adam]


def preconditioning():
    hessian, p = np.array([[25.0, 4], [4, 1]]), np.diag([0.2, 1])
    kappas = [condition(hessian), condition(p.T @ hessian @ p)]
    counts = [steps_to(1e-3, (kappa - 1) / (kappa + 1)) for kappa in kappas]
    gradient, damped = np.array([2.0, -1]), []
    for mu in (0.5, 2):
        step = -np.linalg.solve(np.diag([2.0, -1]) + mu * np.eye(2), gradient)
        damped += [*step, step @ gradient]
    return [*kappas, *counts, *damped, 1]


def signals():
    he = 2 / 200
    return [
        he, 0.5 * 200 * he, 0.5 * 50 * he, (0.5 * 100 / 100) ** 20, sqrt(2), 0.25**20, 2.0**36,
        (1 + 1 / 36) ** 36,
    ]  # fmt: skip


def normalization():
    x, delta, gamma = np.array([2.0, 2, 8, 8]), np.array([3.0, 1, 0, 0]), 6

    def output(x: np.ndarray) -> np.ndarray:
        return gamma * (x - x.mean()) / x.std() + 2

    s = 1e-5
    gradient = [delta @ (output(x + s * e) - output(x - s * e)) / (2 * s) for e in np.eye(4)]
    hat, mean = (x - x.mean()) / x.std(), 0.0
    for _ in range(20):
        mean = 0.9 * mean + 0.1 * 5
    folded = np.polyfit([0, 1], [gamma * (3 * h - 1 - 5) / 3 + 2 for h in (0, 1)], 1)
    again = np.polyfit([0, 1], [gamma * (6 * h - 2 - 10) / 6 + 2 for h in (0, 1)], 1)
    assert np.allclose(folded, again)
    return [x.mean(), x.std(), *output(x), delta.mean(), (delta * hat).mean(), *gradient, mean,
            100 * (1 - mean / 5), *folded]  # fmt: skip


def dropout():
    x, u = np.array([5.0, 10, 15, 20, 25]), np.array([0.5, 0.1, 0.9, 0.19, 0.2])
    kept = np.array([[mask >> unit & 1 for unit in range(5)] for mask in range(32)])
    chance = np.prod(np.where(kept, 0.8, 0.2), axis=1)
    sums = kept @ x / 0.8
    mean = chance @ sums
    one = x[u >= 0.2].sum() / 0.8
    return [one, mean, sqrt(chance @ (sums - mean) ** 2), 1 / 0.8]


# --- Exam 3 -----------------------------------------------------------------------------------


def stopping():
    validation = [0.40, 0.31, 0.28, 0.29, 0.27, 0.30, 0.28, 0.26, 0.29, 0.30]

    def run(patience: int) -> tuple[int | None, int]:
        best = 0
        for epoch, error in enumerate(validation):
            best = epoch if error < validation[best] else best
            if epoch - best == patience:
                return epoch, best
        return None, best

    assert run(3)[0] is None
    return [*run(2), run(3)[1], sqrt(0.27 * 0.73 / 400)]


def unit():
    inputs = np.array([[1.0, 4], [1, 6]])
    normalized = inputs @ np.array([[1, -5], [0, 1]])
    later = normalized.T @ np.diag([0.5, 0.125]) @ normalized
    kappas = [condition(matrix.T @ matrix / 2) for matrix in (inputs, normalized)]
    return [*kappas, *np.linalg.eigvalsh(later), condition(later)]


def bnp_step():
    h, delta = np.array([[0.0, 2], [4, 6]]), np.array([1.0, -2])
    rows = np.column_stack([np.ones(2), h])
    plain = rows.T @ delta
    center = np.eye(3)
    center[0, 1:] = -h.mean(axis=0)
    p = center @ np.diag(1 / np.array([1, *h.std(axis=0)]))
    new = p @ p.T @ plain
    return [*plain, *(-rows @ plain), *new[1:], new[0], *(-rows @ new)]


def split():
    p, g = np.array([[1.0, -6], [0, 2]]), np.array([2.0, 5])
    step = p @ np.sign(p.T @ g)
    return [*step, -g @ np.sign(p @ p.T @ g), -g @ step]


def convolution():
    image, kernel = np.array([[2, 0, 1], [1, 3, 0], [0, 1, 2]]), np.array([[1, -1], [0, 2]])
    output = [(image[i : i + 2, j : j + 2] * kernel).sum() - 1 for i in (0, 1) for j in (0, 1)]
    met = np.pad(np.ones((14, 14)), 2)[:14, :14].mean()
    return [*output, 16 * 14 * 14, 24 * 25, max(600 / 16, 14), max(600 / 64, 14), met, 1 - met]


def decay():
    first, second = (5 * (1 - 0.01 * 0.1 / root) ** 1000 for root in (20, 0.5))
    return [5 * 0.999**1000, first, second, 0.1 * 41 / 100, 0.05 * (1 + cos(pi * 300 / 900))]


def noisy_step():
    g, hessian = np.array([2.0, 1]), np.diag([1.0, 9])
    results = []
    for noise in (4.0, 0.5, 0.0):
        bend = g @ hessian @ g + noise * np.trace(hessian)
        results += [g @ g / bend, (g @ g) ** 2 / (2 * bend)]
    lr = results[4]
    rise = -lr * g @ g + 0.5 * lr**2 * (g @ hessian @ g + 4 * np.trace(hessian))
    return [*results, rise, 2 * results[0]]


ANSWERS = {
    1: [classifiers, margins, minibatches, quadratic, centering, downhill, saddles, errors],
    2: [floors, velocity, roots, divisors, preconditioning, signals, normalization, dropout],
    3: [stopping, unit, bnp_step, split, convolution, decay, noisy_step, list],
}


@pytest.mark.parametrize(("exam", "question"), [(e, q) for e in ANSWERS for q in range(1, 9)])
def test_each_number_of_a_solution_is_right(exam: int, question: int) -> None:
    computed = ANSWERS[exam][question - 1]()
    numbers = stated(exam, question)
    assert len(computed) == len(numbers), (computed, numbers)
    for value, (number, half) in zip(computed, numbers, strict=True):
        assert abs(value - number) <= half + 1e-9 + 1e-6 * abs(value), (value, number)


def test_steps_do_not_depend_on_the_scale_of_the_gradients() -> None:
    assert np.allclose(divisors(50), divisors())


@pytest.mark.parametrize("exam", SOURCES)
def test_points_add_up_to_the_minutes(exam: int) -> None:
    assert exam in ANSWERS
    headings = {int(q[1]): int(q[3]) for q in exams.QUESTION.finditer(TEXTS[exam])}
    assert sum(headings.values()) == 90
    for number, (text, solution) in parts(exam).items():
        inner = [int(points) for points in re.findall(r"\*\((\d+) points?\)\*", text)]
        assert not inner or sum(inner) == headings[number], (exam, number)
        assert solution.count("*Partial credit.*") == 1


@pytest.mark.parametrize("exam", SOURCES)
def test_questions_name_lessons_that_exist(exam: int) -> None:
    lessons = {"-".join(name.split("/")[1:]) for name in contents(ROOT)}
    for number, (_, solution) in parts(exam).items():
        named = re.search(r"^Lessons: (.+)\.$", solution, re.MULTILINE)
        assert named, (exam, number)
        assert {*named[1].split(", ")} <= lessons


def test_the_command_writes_sheets_without_solutions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "exams").symlink_to(ROOT / "exams")
    exams.command(exams.parser().parse_args([]), Course(tmp_path))
    names = [f"build/exams/{source.stem}{end}" for source in SOURCES.values()
             for end in (".html", "-solutions.html")]  # fmt: skip
    assert capsys.readouterr().out.split() == names
    pages = [(tmp_path / name).read_text("utf-8") for name in names]
    for sheet, full in zip(pages[::2], pages[1::2], strict=True):
        assert "Solution" not in sheet
        assert "Partial credit" not in sheet
        assert full.count("Partial credit") == sheet.count("<h2") == 8
        assert "<code>$" not in full  # a formula that could not be typeset
        assert "http" not in re.sub(r"http://www.w3.org/\S+", "", full)


def test_a_students_copy_has_none(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="no exams"):
        exams.command(exams.parser().parse_args([]), Course(tmp_path))


def test_exams_are_for_instructors_only(tmp_path: Path) -> None:
    names = handout.pack(Course(ROOT), tmp_path / "course.zip")
    assert [name for name in names if "exam-" in name or name.startswith("exams")] == []
    assert [name for name in contents(ROOT) if name.startswith("exams")] == []
    assert "  - exams\n" in (ROOT / "_config.yml").read_text("utf-8")
