"""Exercises on the page: Python in Chromium checks answers as JupyterLab does, and cannot hang."""

import contextlib
import functools
import gzip
import itertools
import json
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import numpy as np
import pytest
from serving import SHIFT, TEXT, Server
from sphinx.application import Sphinx

from optdl.checks.catalog import find
from optdl.checks.exercise import Exercise, Misconception
from tools.layout import ROOT, Course
from tools.site import wasm_wheel
from tools.site.inpage import parts, wasm

sys.path.insert(0, str(ROOT / "book" / "_ext"))
from exercises import exercises

# Python is started once
pytestmark = pytest.mark.xdist_group("live")

COURSE = Course(ROOT)
TOPICS = COURSE.topics()
BOX = re.compile(r'<div class="exercise docutils.*?</noscript></div>', re.S)
FIRST, OTHER, WRITTEN = "erm-standard-error", "erm-examples-needed", "erm-question"
FREE = "quadratic-experiment-run"
ANSWERED, LESSON = "optimizers-momentum-step", "book/optimizers/momentum.html"
"""An exercise, and the lesson that shows the code which answers it."""
RIGHT = "✓ Your answer agrees with the reference."
CHEAP = """.exercise { content-visibility: auto; contain-intrinsic-size: auto 900px }
.cm-cursorLayer { animation: none !important }
main { opacity: 0 }"""
"""Style of a page with all exercises: nobody looks at it, and nothing is painted."""
STATUSES = """Object.fromEntries([...document.querySelectorAll(".exercise-answer")].map(
    box => [box.id.slice(5), box.querySelector(".exercise-status").textContent]))"""
READY = 120_000
"""Milliseconds that Python may take to start on a busy machine before a test gives up."""


class Answer(NamedTuple):
    """What is written into an answer cell, and its check; all keep signature and docstring."""

    check: Exercise
    wrong: str
    cause: str
    right: str


@functools.cache
def answers() -> dict[str, Answer]:
    """Return for each answer cell a usual mistake with its cause, and the right answer."""
    result = {}
    for exercise in (e for name in TOPICS for e in exercises(COURSE.released(name)).values()):
        blanks = {cell: source for _, cell, source in exercise.cells}
        for cell, key in exercise.keys.items():
            check, head = find(key), blanks[cell].partition("    # YOUR CODE HERE")[0]
            mistake = next(each for each in check.misconceptions if each._edits)
            wrong, right = (
                head + each.text(check.name).partition("\n")[2]
                for each in (mistake, Misconception("", check._answer))
            )
            cause = mistake.hint.replace("`", "")
            result[cell] = Answer(check, wrong, cause, right)
    return result


def filled(topic: str, texts: Mapping[str, str]) -> dict[str, Any]:
    """Return the notebook of an assignment with these texts in their cells."""
    notebook: dict[str, Any] = json.loads(COURSE.released(topic).read_text("utf-8"))
    for cell in notebook["cells"]:
        if cell["id"] in texts:
            cell["source"] = texts[cell["id"]].splitlines(keepends=True)
    return notebook


@pytest.fixture(scope="module")
def solution(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the solution of an exercise from a page for readers on their own."""
    source = tmp_path_factory.mktemp("self-study")
    for folder in ("exercises", "solutions"):
        shutil.copytree(ROOT / folder / "erm", source / folder / "erm")
    (source / "index.md").write_text(f"# Exercise\n\n```{{exercise}} {FIRST}\n```\n", "utf-8")
    extensions = ["myst_parser", "coverage_table", "exercises"]
    settings = {"extensions": extensions, "exclude_patterns": ["*/erm"], "self_study": True}
    settings |= {"myst_enable_extensions": ["dollarmath"]}
    Sphinx(source, None, source / "out", source / "out", "html", settings, None, None).build()
    page = (source / "out" / "index.html").read_text("utf-8")
    return re.search(r'<details class="exercise-solution".*?</details>', page, re.S)[0]


@pytest.fixture(scope="module")
def page(
    site: Path, python_server: Server, solution: str, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Return a page with all exercises of the site, beside one with a single assignment.

    The exercise `FIRST` has its solution. What the site has around an exercise would cost half a
    second for each of them.
    """
    boxes, folder = {}, tmp_path_factory.mktemp("page")
    for path in sorted(site.glob("book/exercises/*.html")):
        boxes[path.stem] = "".join(box[0] for box in BOX.finditer(path.read_text("utf-8")))
    before, cell, after = boxes["erm"].partition(f'id="cell-{FIRST}"')
    boxes["erm"] = before + cell + after.replace("<noscript>", f"{solution}<noscript>", 1)
    code = rf'<div class="[^"]*\banswer-of-{ANSWERED}\b.*?</pre>'  # which ends with the page
    lesson = re.search(code, (site / LESSON).read_text("utf-8"), re.S)[0]
    for name, content in (("all", [*boxes.values(), lesson]), ("erm", [boxes["erm"]])):
        unused = "<script.*?</script>|<mjx-container.*?</mjx-container>"
        content = re.sub(unused, "", "".join(content), flags=re.S)
        path = python_server.more[f"{name}.html"] = folder / f"{name}.html"
        path.write_text(
            '<!doctype html><html lang="en"><meta charset="utf-8"><title>Exercises</title>'
            '<link rel="icon" href="data:,">'
            f'<link rel="stylesheet" href="_static/python/exercise.css"><style>{CHEAP}</style>'
            '<script defer src="_static/report.js" data-to="mailto:ada@example.org"></script>'
            f'<script defer src="_static/python/start.js"></script><main>{content}</main>',
            "utf-8",
        )
    return folder / "all.html"


class Tab:
    """A page in a browser, with its cells by their names."""

    def __init__(self, page: Any) -> None:
        self.page, self.asked = page, []
        page.on("request", lambda request: self.asked.append(request.url))

    def loaded(self) -> list[str]:
        """Return the parts of Python that were asked for since the last question."""
        names = [url.rpartition("/")[2].partition("-")[0] for url in self.asked if ".gz" in url]
        self.asked.clear()
        return sorted(names)

    def cell(self, name: str, selector: str = "") -> Any:
        return self.page.locator(f"css:light=#cell-{name} {selector}")

    def text(self, name: str, part: str) -> str:
        return str(self.cell(name, f".exercise-{part}").text_content())

    def press(self, name: str, button: str) -> None:
        self.cell(name).get_by_role("button", name=button).press("Enter")

    def open(self, name: str) -> Any:
        """Open a cell, unless it is open, and return its field."""
        field = self.cell(name, ":is([role=textbox], textarea)")
        if not field.count():
            self.cell(name).scroll_into_view_if_needed()  # its buttons come when it is near
            self.cell(name, ".exercise-bar button").first.press("Enter")
            field.wait_for()
        return field

    def write(self, name: str, text: str) -> Any:
        """Put a text in place of what stands in a cell, as the clipboard does; return its field."""
        field = self.open(name)
        field.press("Control+a")
        self.page.keyboard.insert_text(text)
        return field

    def run(self, name: str, text: str | None = None) -> str:
        """Run a cell, with another text if there is one, and return its status."""
        field = self.open(name) if text is None else self.write(name, text)
        field.press("Control+Enter")
        return self.status(name)

    def status(self, name: str) -> str:
        """Return what the status of a cell says when its run has ended."""
        self.cell(name, ".exercise-run:enabled").wait_for(timeout=READY)
        return self.text(name, "status")

    def figures(self, name: str) -> list[str]:
        """Return the formats of a cell's figures, and what they show."""
        script = """images => Promise.all(images.map(image => image.decode().then(() =>
            image.naturalWidth > 300 && image.src.slice(11, 14) + image.alt.slice(24))))"""
        return list(self.cell(name, ".exercise-figures img").evaluate_all(script))

    def tools(self, topic: str) -> Any:
        """Return what an exercise has for the notebook of its assignment, unfolded."""
        tools = self.page.locator(f".exercise[id^=exercise-{topic}-] .exercise-notebook").first
        tools.evaluate("details => details.open = true")
        return tools

    def save(self, topic: str) -> str:
        """Return the notebook that the page makes of the answers of an assignment."""
        with self.page.expect_download() as download:
            self.tools(topic).get_by_role("button", name="Save my answers").press("Enter")
        return Path(download.value.path()).read_text("utf-8")

    def take(self, topic: str, notebook: str, message: str) -> Any:
        """Hand a notebook over, wait for what is said of it, and return its tools."""
        tools = self.tools(topic)
        file = {"name": "mine.ipynb", "mimeType": "", "buffer": notebook.encode()}
        tools.locator("input").set_input_files(file)
        tools.get_by_text(message).wait_for(state="attached")
        return tools

    def check(self, topic: str, texts: Mapping[str, str]) -> str:
        """Check all answers of an assignment, and return what is said of them together."""
        notebook = json.dumps(filled(topic, texts))
        tools = self.take(topic, notebook, f"{len(texts)} answers were taken")
        tools.get_by_role("button", name="Check these answers").press("Enter")
        tools.get_by_text("answers agree.").wait_for(timeout=READY)
        return str(tools.get_by_role("status").inner_text())


@pytest.fixture(scope="module")
def new_tab(browser: Any, python_server: Server, page: Path) -> Iterator[Callable[..., Tab]]:
    """Return a function that opens a page; no page may have an error or ask elsewhere."""
    contexts, errors, asked, address = [], [], [], python_server.address

    def opened(
        path: str = "all.html", context: Any = None, script: str = "", **options: Any
    ) -> Tab:
        options = {"reduced_motion": "reduce", "service_workers": "block"} | options
        contexts.append(context or browser.new_context(**options))
        tab = contexts[-1].new_page()
        tab.on("pageerror", lambda error: errors.append(str(error)))
        tab.on("request", lambda request: asked.append(request.url))
        tab.add_init_script(script)
        tab.goto(address + path)
        return Tab(tab)

    yield opened
    for context in contexts:
        context.close()
    assert errors == []
    assert [url for url in asked if not url.startswith((address, "data:", "blob:"))] == []


@pytest.fixture(scope="module")
def tab(new_tab: Callable[..., Tab]) -> Tab:
    """Return the page of all exercises, whose Python works after each test."""
    return new_tab()


# --- every exercise, and the notebook of its assignment ---


@pytest.fixture(scope="module")
def solved(tab: Tab) -> list[str]:
    """Make two mistakes in each assignment, and solve it; return which status is wrong.

    That each mistake is named, the tests of the checks prove without a page. The answers come from
    notebooks: an editor for each would cost five times what the checks do.
    """
    failures = []
    for topic, kind in itertools.product(TOPICS, ("wrong", "right")):
        cells = [cell for cell in answers() if cell.startswith(f"{topic}-")]
        own = {cell: answers()[cell] for cell in cells[: 2 if kind == "wrong" else None]}
        tab.check(topic, {cell: getattr(each, kind) for cell, each in own.items()})
        statuses = tab.page.evaluate(STATUSES)
        for cell, each in own.items():
            mistaken = f"✗ Not yet. Likely cause: {each.cause}."
            message = {"wrong": mistaken, "right": RIGHT}[kind]
            if not statuses[cell].endswith(message) or each.check.key in statuses[cell]:
                failures.append(f"{cell}: expected {message}, not {statuses[cell]}")
    return failures


def test_mistake_and_right_answer_are_told_apart(solved):
    assert solved == [], "\n".join(solved)


def test_saved_notebook_is_the_released_one_with_answers(solved, tab):
    """Such a notebook earns full marks: the tests of assignments grade it with hidden tests."""
    for topic in TOPICS:
        solved_all = filled(topic, {cell: each.right for cell, each in answers().items()})
        assert tab.save(topic) == json.dumps(solved_all, indent=1, ensure_ascii=False) + "\n"


def test_answers_come_from_a_notebook_and_are_checked(tab):
    mine = {cell: each.right for cell, each in answers().items() if cell.startswith("erm-")}
    mine["erm-minibatches"] = answers()["erm-minibatches"].wrong
    mine["erm-risk-estimate"] = mine["erm-risk-estimate"].replace("\n", "\r\n")
    for notebook, message in (
        ("no notebook", "is not a notebook"),
        (json.dumps(filled("bnp", {})), "no cell of this assignment"),
        (json.dumps(filled("erm", {})), "has no answers yet"),
    ):
        tab.take("erm", notebook, message)
    assert tab.check("erm", mine) == "10 of 11 answers agree. Not yet: Exercise 9."
    assert tab.run("erm-risk-estimate") == RIGHT
    state = tab.text("erm-risk-estimate", "state")
    assert state == "✓ Your answer agrees. Kept in this browser."
    assert "Likely cause" in tab.text("erm-minibatches", "status")


LION = """from optdl.optimizers import Lion, run
def lion(gradient, start, lr, beta1, beta2, decay, steps):
    return run(Lion(lr, beta1, beta2, decay), gradient, start, steps)"""


def test_answer_using_course_solution_is_refused_and_reportable(tab):
    label = tab.page.text_content("#exercise-optimizers-lion .exercise-title strong")
    assert tab.run("optimizers-lion", LION).startswith(f"✗ {label}: not your own yet.")
    assert "cannot be imported when your work is graded" in tab.text("optimizers-lion", "output")
    code = tab.cell("optimizers-lion", ".exercise-output code")
    assert code.all_inner_texts() == ["optdl.optimizers"]
    # what somebody who reports it would write by hand
    report = tab.cell("optimizers-lion").get_by_role("link", name="Something wrong here?")
    report.evaluate("link => link.addEventListener('click', (event) => event.preventDefault())")
    report.press("Enter")
    mail = unquote(report.get_attribute("href"))
    for part in ("mailto:ada@example.org?subject=", "#cell-optimizers-lion", LION, f"✗ {label}:"):
        assert part in mail


def test_lesson_code_is_hidden_until_answered_correctly(tab, new_tab):
    tab.page.evaluate("localStorage.clear()")  # other tests have answered all
    lesson = new_tab(LESSON, tab.page.context).page
    here, there = (each.locator(f"[data-answer={ANSWERED}] pre") for each in (tab.page, lesson))
    tab.page.locator("details.exercise-code").evaluate("code => code.open = false")
    assert tab.run(ANSWERED, answers()[ANSWERED].wrong).startswith("✗")
    assert not here.is_visible()
    assert not there.is_visible()
    assert tab.run(ANSWERED, answers()[ANSWERED].right) == RIGHT
    assert here.is_visible()
    lesson.reload()
    there.wait_for(timeout=5000)
    page = lesson.context.browser.new_page(java_script_enabled=False)
    page.goto(lesson.url)
    assert page.locator(f".answer-of-{ANSWERED} pre").is_visible()


def test_a_solution_follows_three_different_mistakes(tab):
    wrong = [each.text("standard_error") for each in answers()[FIRST].check.misconceptions]
    solution = tab.page.locator(f"#exercise-{FIRST} .exercise-solution")
    tab.open(FIRST)
    tab.page.evaluate(f"localStorage.removeItem('optdl:answer:{FIRST}')")
    tab.press(FIRST, "Start again")
    blank = "not written yet. Replace raise NotImplementedError(). Hints are below the cell."
    assert tab.run(FIRST).endswith(blank)
    for attempt in (wrong[0], wrong[0], wrong[1], wrong[2]):
        assert not solution.is_visible()
        status = tab.run(FIRST, attempt)
    assert status.endswith(". A solution is below the cell.")
    hints = tab.page.locator(f"#exercise-{FIRST} details.exercise-hints > p").all_text_contents()
    expected = answers()[FIRST].check.hints
    assert len(hints) == len(expected)
    assert all(map(str.startswith, hints, (re.split("[$`'*]", hint)[0] for hint in expected)))
    solution.locator("summary").press("Enter")
    assert "error = sigma / np.sqrt(n)" in solution.inner_text()


# --- free cells, what they draw, and what goes wrong in them ---


PLOT = "import numpy as np, matplotlib.pyplot as plt\n"
DRAWN, EMPTY = "Done: the figure is below.", "svg: without a title or labels."
MODULES = """abc array bisect calendar cmath collections contextlib copy csv dataclasses datetime
decimal difflib enum fractions functools gzip hashlib heapq inspect io itertools json logging math
numbers numpy.fft numpy.linalg numpy.ma numpy.polynomial numpy.random numpy.testing operator pathlib
pickle pprint queue random re secrets shutil statistics string struct tempfile textwrap threading
time timeit traceback types typing unittest urllib.request uuid warnings zlib"""
FUNCTIONS = """import numpy as np
from numpy.linalg import *
for kind in ("f4", "f8", "c8", "c16"):
    A = (np.ones((3, 3)) + 9 * np.eye(3)).astype(kind)
    for function in (cholesky, inv, eigh, eig, svd, qr, det, pinv, eigvals, eigvalsh):
        function(A)
    assert np.allclose(A @ solve(A, A[0]), A[0]) and np.allclose(A @ lstsq(A, A[0])[0], A[0])"""
"""A function that was left out of the interpreter would end it."""
NETWORK = "import urllib.request as u\nu.urlopen('http://127.0.0.1:9')"
ABOVE = " If a cell above defines this name: “Run all above”."
RUNS = [
    ("x = bytearray(2**30)", "MemoryError in line 1.", "", []),
    ("def f(): return f()\nf()", "RecursionError.", "", []),
    ("input('?')", "RuntimeError in line 1.", "", []),
    ("import sys; sys.exit(3)", "SystemExit.", "SystemExit: the cell asked", []),
    ("if x\n  2", "SyntaxError in line 1.", "    if x\n        ^\nSyntaxError: expected ':'\n", []),
    ("y = 1\nprint(nothing)", f"NameError in line 2.{ABOVE}", "", []),
    ("%time 1 + 1", "SyntaxError in line 1.", "SyntaxError: %time is a command of Jupyter", []),
    ("x = 1\n!pip install x", "SyntaxError in line 2.", "SyntaxError: !pip is a command of", []),
    ("await f()", "SyntaxError in line 1.", "SyntaxError: await stands only inside an", []),
    ("import threading as t\nt.Thread().start()", "RuntimeError in line 2.", "has one thread", []),
    (NETWORK, "AttributeError in line 2.", "AttributeError: This page's Python has no", []),
    ("größe = '数学 ✓ 𝜃 🙂'\nprint(größe)", "Done.", "数学 ✓ 𝜃 🙂\n", []),
    ("kept = 41\nkept + 1", "Done.", "42\n", []),
    ("kept + 2", "Done.", "43\n", []),
    ("for _ in range(10**5): print('x' * 99)", "Done.", "10,000,000 characters were printed", []),
    (f"import {', '.join(MODULES.split())}", "Done.", "", []),
    (FUNCTIONS, "Done.", "", []),
    (f"{PLOT}plt.plot([1, 2], [1])", "ValueError in line 2.", "", [EMPTY]),
    (f"{PLOT}plt.title('$\\\\frac{{1}}$')", "ValueError.", "", []),
    (f"{PLOT}from scipy import stats", "ModuleNotFoundError in line 2.", "no module named 's", []),
    (f"{PLOT}for n in 'ab':\n  plt.title(n)\n  plt.show()", DRAWN, "", ["svg: a.", "svg: b."]),
    (f"{PLOT}plt.title('c')\nplt.scatter(*np.zeros((2, 12_000)))", DRAWN, "", ["png: c."]),
]
"""What a cell has, its status, a part of its output, and its figures."""


def test_free_cell_shows_status_output_and_figures(tab):
    outcomes = []
    for text, _, part, _ in RUNS:
        status, output = tab.run(FREE, text), tab.text(FREE, "output")
        shown = part if part in output and len(output) < 250_000 else output[-500:]
        outcomes.append((text, status, shown, tab.figures(FREE)))
    assert outcomes == RUNS


SCIPY = """import numpy as np
from scipy import linalg, optimize, special
x = np.arange(-190.0, 210, 20).reshape(4, 5)
result = [special.expit(x), special.log_softmax(x, 1), special.softmax(x), special.softmax(x, 0)]
result += [special.ndtr(x / 50), linalg.eigh(x @ x.T)[0], abs(linalg.eigh(np.eye(2))[1])]
result += [special.expit(-2.0), special.ndtr(0.5), optimize.brentq(lambda t: t**3 - 2, 0, 2)]
result += [optimize.minimize_scalar(np.cosh, bounds=(-2, 3), method="bounded").fun]
result = [float(number) for part in result for number in np.ravel(part)]
"""


def test_the_small_scipy_agrees_with_scipy(tab):
    expected: dict[str, Any] = {}
    exec(SCIPY, expected)
    assert tab.run(FREE, f"{SCIPY}print(result)") == "Done."
    result = json.loads(tab.text(FREE, "output"))
    np.testing.assert_allclose(result, expected["result"], rtol=1e-10, atol=1e-9)


def test_endless_loop_is_stopped_without_loading_again(tab):
    tab.write(OTHER, "while True: pass")
    tab.loaded()
    tab.open(OTHER).press("Shift+Enter")
    # on a busy machine the page may skip a second
    tab.cell(OTHER).get_by_text(re.compile(r"Running, \d+ s\.")).wait_for()
    tab.press(OTHER, "Stop")
    assert tab.status(OTHER).startswith("Stopped. The names")
    drawing = answers()[FIRST].right.replace(" error =", " import matplotlib; error =")
    assert tab.run(FIRST, drawing) == RIGHT
    assert tab.run(FREE, f"{PLOT}plt.plot([1])") == DRAWN
    assert tab.loaded() == []


# --- what is said of an answer, where it is kept, and who hears of it ---


def test_printed_output_of_answers_is_shown(tab):
    for text, mark in ((answers()[FIRST].wrong, "✗"), (answers()[FIRST].right, "✓")):
        printing = text.replace('    """\n', '    """\n    print("n is", n)\n')
        assert tab.run(FIRST, printing).startswith(mark)
        assert re.search(r"Your function printed(?s:.*)^n is \d+$", tab.text(FIRST, "output"), re.M)


HEARD = """() => {
    const regions = [...document.querySelectorAll("[role=status]")], texts = new Map();
    regions.forEach((region) => region.replaceChildren());
    window.heard = [];
    new MutationObserver(() => regions.forEach((region) => {
        const copy = region.cloneNode(true);
        copy.querySelectorAll("[aria-hidden=true]").forEach((part) => part.remove());
        const text = copy.textContent;
        if (text && text !== texts.get(region)) heard.push(text);
        texts.set(region, text);
    })).observe(document.body, { subtree: true, childList: true, characterData: true });
}"""
"""Keeps what a screen reader reads: each change of a region that is read when it changes."""


def test_a_screen_reader_hears_each_state_once(tab):
    tab.write(FIRST, f"import time; time.sleep(1.2)\n{answers()[FIRST].right}")
    tab.page.evaluate(HEARD)
    tab.open(FIRST).press("Control+Enter")
    tab.cell(FIRST, "[data-kind=running]").wait_for()
    tab.write(FIRST, "# typed meanwhile")
    assert tab.status(FIRST) == RIGHT
    assert tab.page.evaluate("heard") == ["Running", RIGHT]
    kept = tab.page.evaluate(f"JSON.parse(localStorage['optdl:answer:{FIRST}'])")
    assert kept["text"] == "# typed meanwhile"


def test_phone_shows_the_result_of_a_long_answer(tab):
    tab.page.set_viewport_size({"width": 390, "height": 844})
    tab.run(FREE, f"{PLOT}plt.plot([1])")
    figure = tab.cell(FREE, ".exercise-figures img").bounding_box()
    tab.write(FIRST, "# long\n" * 60 + "print('x\\n' * 500)\n" + answers()[FIRST].right)
    tab.open(FIRST).press("Control+Home")
    tab.page.evaluate("new Promise(requestAnimationFrame)")  # the editor scrolls in a frame
    tab.run(FIRST)
    status = tab.cell(FIRST, ".exercise-status").bounding_box()
    output = tab.cell(FIRST, ".exercise-output").bounding_box()
    tab.page.set_viewport_size({"width": 1280, "height": 800})
    assert 250 < figure["width"] <= 390
    assert 0 <= status["y"] < status["y"] + status["height"] < output["y"] < 844 - 100


def test_unkept_answers_are_reported_and_can_be_saved(new_tab):
    older = json.dumps(json.dumps({"text": "# older"}))
    blocked = "Object.defineProperty(window, 'localStorage', { get() { throw new Error(); } })"
    full = "Storage.prototype.setItem = () => { throw new Error(); }"
    for store, before in ((blocked, ""), (full, "Kept in this browser.")):
        tab = new_tab(
            "erm.html",
            script=f"Object.assign(localStorage, {{'optdl:answer:{FIRST}': null, "
            f"'optdl:answer:{WRITTEN}': {older}}});\n{store}",
        )
        tab.cell(WRITTEN, "button").wait_for()
        assert tab.text(WRITTEN, "state") == before
        tab.write(WRITTEN, "# mine")
        message = "Not kept in this browser: save your answers as a notebook."
        assert tab.text(WRITTEN, "state") == message
        cells = json.loads(tab.save("erm"))["cells"]
        assert [cell["source"] for cell in cells if cell["id"] == WRITTEN] == [["# mine"]]


KEEP = """kept => Object.entries(kept).forEach(([name, answer]) =>
    localStorage.setItem(`optdl:answer:${name}`, JSON.stringify(answer)))"""


def test_kept_work_appears_at_once_in_other_tabs(tab, new_tab):
    tab.page.evaluate("localStorage.clear()")  # other tests have answered all
    assert tab.run(FIRST, answers()[FIRST].right) == RIGHT
    kept = {cell: {"text": each.right} for cell, each in answers().items() if cell != FIRST}
    tab.page.evaluate(KEEP, kept)  # what grows above the anchor moves it
    other = new_tab(f"book/exercises/erm.html#cell-{FIRST}", tab.page.context, SHIFT)
    assert other.cell(FIRST, "pre").first.inner_text() == answers()[FIRST].right
    other.cell(FIRST).get_by_text("Your answer agrees").wait_for()
    assert other.page.evaluate("shift") < 0.1
    tab.write(FIRST, "# newer")
    other.cell(FIRST).get_by_text("# newer").wait_for()
    state = other.text(FIRST, "state")
    assert state == "Changed since it agreed. Kept in this browser."
    assert other.page.locator(f"#exercise-{FIRST} .exercise-mark").count() == 0
    assert [url for url in other.asked if url.endswith((".gz", "editor.js"))] == []
    text = "The **variance** is $\\sigma_1 * n * x_2$:\n\n$$\n\\frac{1}{n}\n- 1\n$$\n\n"
    text += "<img src=x onerror=alert(1)> ![a picture](http://example.org/x.png)"
    tab.open(WRITTEN)
    other.write(WRITTEN, text)
    other.page.keyboard.press("Tab")
    other.page.keyboard.press("Enter")
    preview = other.cell(WRITTEN).get_by_role("region")
    preview.wait_for()
    parts = ("strong", "mjx-container", "mjx-assistive-mml mfrac", "em, img, li")
    assert [preview.locator(part).count() for part in parts] == [1, 2, 1, 0]
    assert tab.open(WRITTEN).input_value() == text
    # the renderer ends before it answers
    with other.page.expect_event("crash"), contextlib.suppress(Exception):
        other.page.goto("chrome://crash", timeout=5000)
    again = new_tab("book/exercises/erm.html", tab.page.context)
    assert again.cell(WRITTEN, "pre").text_content() == text


# --- a page of the site, typed key by key and without a network; where a part is missing ---


KEPT = """() => Promise.all(performance.getEntriesByType("resource").map(({ name }) =>
    caches.match(name, { ignoreSearch: true }))).then((all) => all.every(Boolean))"""
"""Whether the browser keeps all that the page has loaded."""


def test_the_front_page_is_typed_and_works_offline(new_tab):
    size = {"width": 390, "height": 844}
    tab = new_tab("book/index.html", viewport=size, service_workers="allow")
    page = tab.page
    page.wait_for_function("navigator.serviceWorker.controller")
    tab.cell(FIRST).scroll_into_view_if_needed()
    tab.cell(FIRST, ".exercise-hint").get_by_text("MB, once").wait_for()
    assert tab.loaded() == []
    field = tab.open(FIRST)
    assert "Likely cause: your standard error divides by n" in tab.status(FIRST)
    assert tab.loaded() == ["course", "library", "python"]
    field.press("Control+End")
    page.keyboard.press("Backspace")
    page.keyboard.type("np.sqrt(n)")  # the correction that the page names
    page.keyboard.press("Shift+Enter")
    assert tab.status(FIRST) == RIGHT
    text = field.evaluate(TEXT)
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    page.wait_for_function(KEPT)
    page.context.set_offline(True)
    page.reload()
    assert tab.cell(FIRST, "pre").first.inner_text() == text
    tab.open(FIRST)
    assert tab.status(FIRST) == RIGHT
    page.context.close()


def test_missing_parts_are_replaced_or_asked_for_again(new_tab):
    tab, parts = new_tab("erm.html"), re.compile(r"/(course|python)-\w+\.gz$")
    tab.page.route("**/erm.json", lambda route: route.abort(), times=1)
    tab.cell(FIRST, "button").press("Enter")
    tab.cell(FIRST).get_by_text("(no answer). Connect to the network").wait_for()
    tab.page.route("**/editor.js", lambda route: route.fulfill(status=404))
    tab.page.route(parts, lambda route: route.abort())
    assert "Connect to the network" in tab.run(FIRST, answers()[FIRST].right)
    assert tab.cell(FIRST, "textarea").count() == 1
    tab.page.unroute(parts)
    tab.page.clock.install()
    tab.page.route(parts, lambda _: tab.page.clock.fast_forward(60_000))
    assert "nothing for a minute" in tab.run(FIRST)
    tab.page.unroute(parts)
    tab.page.route("**/worker.js", lambda route: route.abort(), times=1)
    assert tab.run(FIRST).startswith("Python could not be started. Connect to the network")
    # some servers send the parts as encoded, and then the browser unpacks them
    unpack = lambda route: route.fulfill(body=gzip.decompress(route.fetch().body()))  # noqa: E731
    tab.page.route("**/course-*.gz", unpack)
    assert tab.run(FIRST) == RIGHT
    tab.page.context.close()


def test_browsers_without_python_get_instructions(site, new_tab):
    tab = new_tab("erm.html", script="WebAssembly.validate = () => false")
    tab.cell(FIRST, "button").press("Enter")
    tab.cell(FIRST).get_by_text("Firefox from 131").wait_for()
    assert tab.cell(FIRST).get_by_role("link", name="Here is the notebook").count() == 1
    page = tab.page.context.new_page()
    plain = {"path": site / "_static/python/exercise.js", "content_type": "text/plain"}
    page.route("**/exercise.js", lambda route: route.fulfill(**plain))
    page.goto(tab.page.url)
    page.get_by_text("sends scripts as “text/plain”").first.wait_for()
    page.goto((site / "book/index.html").as_uri())
    box = page.locator(f"#exercise-{FIRST}")
    box.get_by_text("python -m http.server").wait_for()
    assert box.locator(".exercise-bar").count() == 0


# --- how the parts are made ---


def test_failed_editor_is_made_again(tmp_path, monkeypatch):
    (tmp_path / "python.wasm").write_bytes(b"")
    monkeypatch.setattr(wasm_wheel, "PACKAGE", tmp_path)
    monkeypatch.setattr(wasm_wheel, "available", lambda: tmp_path)
    monkeypatch.setattr(wasm_wheel, "build", lambda: None)
    monkeypatch.setattr(parts, "editor", lambda target: "npm was not found")
    folder = parts.build(tmp_path / "store")
    monkeypatch.setattr(parts, "editor", lambda target: target.write_text("") or "")
    [python] = folder.glob("python-*")
    for lost, content in ((python, ""), (folder / "parts.json", "{")):
        lost.write_text(content)
        parts.build(tmp_path / "store")
        assert python.stat().st_size
    assert (folder / "editor.js").is_file()


def test_python_download_stays_below_15_megabytes(page, site):
    # with all functions and their names it would be 29 MB
    sizes = json.loads((site / "_static" / "python" / "parts.json").read_text("utf-8"))
    assert sum(sizes[name]["bytes"] for name in ("python", "library", "course")) < 15e6


def test_calls_are_followed_directly_and_through_pointers():
    # five functions () -> (): 0 calls 1 and has a pointer to 3; 1 calls 2; nobody calls 4
    far = lambda number: bytes([number | 0x80, 0x80, 0x80, 0x80, 0])  # noqa: E731
    bodies = [b"\0\x10" + far(2) + b"\x41" + far(1) + b"\x1a\x0b", b"\0\x10" + far(3) + b"\x0b"]
    code = [bytes([len(body)]) + body for body in (*bodies, *[b"\0\x0b"] * 3)]
    sections = {
        2: bytes([1, 1, 97, 1, 98, 0, 0]),  # one imported function: the others are 1 to 5
        9: bytes([1, 0, 0x41, 1, 0x0B, 1, 4]),  # place 1 of the table: function 3
        10: bytes([5]) + b"".join(code),
    }
    data = (bytes([number, len(part)]) + part for number, part in sections.items())
    made = wasm.Module(b"\0asm\1\0\0\0" + b"".join(data))
    assert made.called([0], never=()) == {0, 1, 2, 3}
    assert made.called([0], never={1}) == {0, 3}
    assert made.called([4], never=()) == {4}
