"""The site is built strictly, page by page, and nothing that was executed is lost."""

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest
from bs4 import BeautifulSoup

from tools import book, execution, imported_modules, pages
from tools.fingerprints import write_if_changed
from tools.terminal import ToolError

pytestmark = pytest.mark.xdist_group("book")

ROOT = Path(__file__).resolve().parents[2]
HEADER = """---
jupytext:
  text_representation:
    extension: .md
    format_name: myst
kernelspec:
  name: python3
  display_name: Python 3
---

# A title

Some words, and $x^2$.

"""
# What it prints tells one execution from another.
ONCE = "```{code-cell}\nimport uuid\nprint(f'<<{uuid.uuid4()}>>')\n```\n"


def cell(*lines: str) -> str:
    return "\n".join(["```{code-cell}", *lines, "```", ""])


class Toy:
    """A small book with the settings of this one, and a package ``optdl`` of its own."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "book").mkdir(parents=True)
        (root / "src" / "optdl" / "checks").mkdir(parents=True)
        for name in ("book/_ext", "book/_static", "book/_templates", "book/references.bib"):
            (root / name).symlink_to(ROOT / name)
        for name in ("_config.yml", "requirements.txt"):
            shutil.copy(ROOT / name, root / name)
        self.code("__init__")

    def code(self, name: str, text: str = "") -> None:
        """Write a module of the package."""
        (self.root / "src" / "optdl" / f"{name}.py").write_text(text)

    def write(self, **texts: str) -> None:
        """Write pages, and the contents with the first of them as root."""
        for name, text in texts.items():
            write_if_changed(self.root / "book" / f"{name}.md", (HEADER + text).encode())
        first, *others = texts
        chapters = "".join(f"- file: book/{name}\n" for name in others)
        contents = f"format: jb-book\nroot: book/{first}\n"
        (self.root / "_toc.yml").write_text(contents + (f"chapters:\n{chapters}" if others else ""))

    @property
    def found(self) -> dict[str, pages.Page]:
        """Return the pages that hold code, by name."""
        return {page.name: page for page in pages.find(self.root)}

    @property
    def store(self) -> pages.Store:
        """Return what was kept."""
        return pages.Store(self.root)

    def execute(self, *names: str) -> list[execution.PageFailed]:
        """Execute the pages named; return what failed."""
        chosen = [self.found[name] for name in names]
        return execution.execute(chosen, self.store, lambda *told: None, threading.Event())

    def mark(self, name: str) -> str:
        """Return what the last execution of a page printed."""
        kept = self.store.load(self.found[name])
        assert kept is not None, f"{name} is not kept"
        (found,) = re.findall("<<(.+?)>>", str(kept.outputs))
        return str(found)


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Toy:
    """Make a small book, and have the tool build it."""
    made = Toy(tmp_path / "toy")
    monkeypatch.setattr(book, "ROOT", made.root)
    # it takes longer than all else
    monkeypatch.setattr(book, "_hand_out_python", lambda site: None)
    return made


# --- what the outputs of a page depend on ---


def test_a_page_depends_on_its_cells_and_not_on_its_words(toy: Toy) -> None:
    toy.write(index=cell("1 + 1"))
    before = toy.found["index"].key
    toy.write(index="Other words.\n\n" + cell("1 + 1"))
    assert toy.found["index"].key == before
    toy.write(index=cell("1 + 2"))
    assert toy.found["index"].key != before


def test_a_page_depends_on_modules_that_its_modules_import(toy: Toy) -> None:
    toy.code("direct", "def f():\n    from optdl import indirect\n")
    toy.code("indirect", "import optdl.checks\n")
    toy.code("other")
    toy.code("checks/__init__")
    toy.code("checks/found_at_run_time")
    toy.write(index=cell("%matplotlib inline", "from optdl.direct import f"), plain=cell("1"))
    used = {"__init__", "direct", "indirect", "checks/__init__", "checks/found_at_run_time"}
    for name in [*used, "other"]:
        before = {page.name: page.key for page in toy.found.values()}
        toy.code(name, "# changed")
        after = {page.name: page.key for page in toy.found.values()}
        toy.code(
            name,
            {"direct": "from optdl import indirect", "indirect": "import optdl.checks"}.get(
                name, ""
            ),
        )
        assert (after["index"] != before["index"]) == (name in used), name
        assert after["plain"] == before["plain"], name


def test_a_change_of_dropout_executes_the_page_that_calls_it_only() -> None:
    file = ROOT / "src" / "optdl" / "dropout" / "functions.py"
    assert [page.name for page in pages.find(ROOT) if file in page.code] == ["dropout-mask"]


def test_every_module_that_a_page_loads_is_among_those_it_depends_on() -> None:
    """The oracle is Python itself: what it has imported after the page's own import statements."""
    page = next(page for page in pages.find(ROOT) if page.name == "conditioning")
    lines = [line for one in page.cells for line in one.source.splitlines()]
    imports = [line for line in lines if re.match(r"(from|import) .*optdl", line)]
    ask = (
        "import sys; print(*(m.__file__ for n, m in sys.modules.items() if n.startswith('optdl')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", "\n".join([*imports, ask])],
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = {Path(name) for name in done.stdout.split()}
    assert len(loaded) > 3
    assert loaded <= set(imported_modules.needed(["\n".join(imports)], ROOT / "src"))


def test_a_page_depends_on_the_data_that_it_reads(toy: Toy) -> None:
    data = toy.root / "results"
    data.mkdir()
    (data / "one.txt").write_text("1")
    read = [
        "from pathlib import Path",
        "print([p.read_text() for p in Path('../results').iterdir()])",
    ]
    toy.write(index=cell(*read), plain=cell("1"))
    assert toy.execute("index", "plain") == []
    (toy.root / "unread.txt").write_text("")
    assert toy.store.load(toy.found["index"])
    (data / "one.txt").write_text("2")
    assert toy.store.load(toy.found["index"]) is None
    (data / "one.txt").write_text("1")
    assert toy.store.load(toy.found["index"])
    (data / "two.txt").write_text("")
    assert toy.store.load(toy.found["index"]) is None
    assert toy.store.load(toy.found["plain"])


def test_a_page_shows_its_figures_whatever_another_imports(toy: Toy) -> None:
    figure = cell("import matplotlib.pyplot as plt", "plt.plot([1, 2]);")
    # the second one prints a poem
    toy.write(index=figure, other=cell("import matplotlib_inline.backend_inline", "import this"))
    assert toy.execute("index", "other") == []
    kept = toy.store.load(toy.found["index"])
    assert kept is not None
    assert [sorted(one["data"]) for one in kept.outputs[0]] == [["image/png", "text/plain"]]


# --- a page that fails ---


def test_a_failure_costs_only_its_page_and_is_told_in_ten_lines(toy: Toy) -> None:
    fails = "Words.\n\n" + cell("1") + cell("import math", "a = 3", "raise ValueError('of this')")
    toy.write(index=ONCE, bad=fails, worse=cell("import os", "os._exit(3)"))
    with pytest.raises(book.BookError) as raised:
        book.build(out=toy.root)
    said = str(raised.value).splitlines()
    assert len(said) <= 10
    (at,) = [number for number, line in enumerate(said) if "book/bad.md:" in line]
    line = int(re.search(r"bad\.md:(\d+)", said[at])[1])  # type: ignore[index]
    text = (toy.root / "book" / "bad.md").read_text().splitlines()
    assert text[line - 1] == "import math"
    assert "a = 3" in said[at]
    assert said[at + 1] == "ValueError: of this"
    assert said[at + 2].startswith("To fix: ")
    assert said[at + 3].startswith("The whole log: ")
    log = toy.store.log(toy.found["bad"]).read_text()
    assert "Traceback" in log
    assert "raise ValueError('of this')" in log
    assert any("the kernel ended" in one for one in said)
    assert toy.mark("index"), "the page that is right is kept"


@pytest.mark.parametrize(
    ("code", "limits", "said"),
    [
        ("while True: pass", {"PROCESSOR_SECONDS": 1.0}, "for more than 1 s of processor time"),
        ("import time; time.sleep(10**6)", {"WALL_SECONDS": 6}, "had not ended after"),
    ],
    ids=["an endless loop", "a wait without end"],
)
def test_a_cell_that_hangs_is_named(
    toy: Toy, monkeypatch: pytest.MonkeyPatch, code: str, limits: dict[str, float], said: str
) -> None:
    for name, value in limits.items():
        monkeypatch.setattr(execution, name, value)
    toy.write(index=cell(code))
    (failure,) = toy.execute("index")
    assert said in failure.error
    assert code in str(failure)


def test_a_slow_cell_is_not_a_hanging_one(toy: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execution, "PROCESSOR_SECONDS", 2.0)
    slow = ["import time", "until = time.monotonic() + 4", "while time.monotonic() < until:"]
    toy.write(index=cell(*slow, "    time.sleep(0.01)"))
    assert toy.execute("index") == []


# --- an interruption ---


def test_what_was_executed_before_an_interruption_is_kept(toy: Toy) -> None:
    toy.write(index=ONCE, waits=cell("import time", "time.sleep(10**6)"))
    stop = threading.Event()

    def on_progress(done: int, total: int, now: str) -> None:
        if done == 1:
            stop.set()

    with pytest.raises(KeyboardInterrupt):
        book.build(out=toy.root, on_progress=on_progress, stop=stop)
    assert toy.mark("index")
    kernels = [one.info["cmdline"] or [] for one in psutil.process_iter(["cmdline"])]
    assert not [one for one in kernels if "waits/kernel.json" in " ".join(one)]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
def test_a_build_that_was_killed_is_finished_by_the_next(toy: Toy) -> None:
    gate = toy.root / "gate"
    toy.write(
        index=ONCE,
        waits=cell("import time", "from pathlib import Path")
        + cell("while not Path('../gate').exists():", "    time.sleep(0.05)"),
    )
    run = f"from tools import book; book.ROOT = type(book.ROOT)({str(toy.root)!r})"
    process = subprocess.Popen(
        [sys.executable, "-c", f"{run}; book.build(out=book.ROOT)"],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    while toy.store.load(toy.found["index"]) is None:
        assert process.poll() is None, "the build ended by itself"
        time.sleep(0.1)
    process.send_signal(signal.SIGKILL)
    process.wait()
    gate.touch()
    before = toy.mark("index")
    site = book.build(out=toy.root)
    assert f"&lt;&lt;{before}&gt;&gt;" in (site / "book" / "index.html").read_text("utf-8")


# --- Sphinx ---


INDEX = (
    cell("from optdl.number import VALUE", "rate, small = 0.25, -2e-7", "2 * VALUE")
    + "\nIt is {number}`rate:.1%`, not {number}`small:.0e`. See {ref}`there <label>`.\n"
)
SECOND = "(label)=\n## A section\n\nWords.\n"


def test_a_build_writes_what_has_changed_and_refuses_what_is_wrong(
    toy: Toy, monkeypatch: pytest.MonkeyPatch
) -> None:
    def words(page: str) -> str:
        text = (site / "book" / f"{page}.html").read_text("utf-8")
        return " ".join(BeautifulSoup(text, "html.parser").article.get_text().split())

    # All is written, with the numbers that the cells computed, also in the notebook.
    toy.code("number", "VALUE = 1234")
    toy.write(index=INDEX, second=SECOND, once=ONCE)
    site = book.build(out=toy.root)
    mark = toy.mark("once")
    assert "2468" in words("index")
    assert "It is 25.0 %, not −2·10⁻⁷." in words("index")
    file = site / "_notebooks" / "chapter-index.ipynb"
    assert "It is 25.0\N{NO-BREAK SPACE}%, not −2·10⁻⁷." in file.read_text("utf-8")

    # Where nothing has changed, nothing is done.
    def refuse(*arguments: object) -> None:
        raise AssertionError("nothing has changed")

    with monkeypatch.context() as patch:
        patch.setattr(book, "_write", refuse)
        assert book.build(out=toy.root) == site

    # Code, words and the format of a number: their page alone is executed and written.
    written = toy.root / "_build" / "next" / "_build" / "html" / "book" / "second.html"
    before = written.stat().st_mtime_ns
    toy.code("number", "VALUE = 1235")
    changed = INDEX.replace(":.1%", ":.1f").replace("See", "Look at")
    toy.write(index=changed, second=SECOND, once=ONCE)
    book.build(out=toy.root)
    assert "2470" in words("index")
    assert "It is 0.2, not −2·10⁻⁷. Look at there" in words("index")
    assert written.stat().st_mtime_ns == before
    assert toy.mark("once") == mark

    # A script alone.
    scripts = toy.root / "book" / "_static"
    scripts.unlink()
    shutil.copytree(ROOT / "book" / "_static", scripts)
    (scripts / "slides.js").write_text("// changed", encoding="utf-8")
    book.build(out=toy.root)
    assert (site / "_static" / "slides.js").read_text(encoding="utf-8") == "// changed"

    # The title of a section is shown by the page that refers to it.
    named = changed.replace("there <label>", "label")
    toy.write(index=named, second=SECOND.replace("A section", "Another"), once=ONCE)
    book.build(out=toy.root)
    assert "Look at Another" in words("index")

    # A label that is gone, a picture that is not there: the old site stays.
    wrong = "\n![A picture that is not there](missing.svg)\n"
    toy.write(index=named, second="## A section\n\nWords.\n", once=ONCE + wrong)
    for _ in range(2):  # the second build finds the pages unchanged
        with pytest.raises(book.BookError) as raised:
            book.build(out=toy.root)
        said = str(raised.value)
        assert len(said.splitlines()) <= 10
        assert re.search(r"book/index\.md:.*label", said)
        assert re.search(r"book/once\.md.*missing\.svg", said)
        assert "Look at Another" in words("index")
    assert toy.mark("once") == mark


# --- numbers in the prose ---


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (cell("x = 1") + "{number}`y`\n", "{number}`y`: NameError: name 'y' is not defined"),
        (cell("x = 1") + "{number}`x`\n\n" + cell("x = 2") + "{number}`x`\n", "names of their own"),
        ("{number}`x`\n\n" + cell("x = 1"), "before its first code cell"),
    ],
)
def test_a_number_that_cannot_be_printed_is_named(toy: Toy, text: str, message: str) -> None:
    toy.write(index=text)
    with pytest.raises((book.BookError, ToolError), match=re.escape(message)):
        book.build(out=toy.root)


def test_all_that_the_extensions_import_is_shared_by_all_pages() -> None:
    waiting = [*(ROOT / "book" / "_ext").glob("*.py"), ROOT / "tools" / "sphinx_build.py"]
    found = set()
    for file in waiting:  # which grows
        for module in imported_modules.named(file.read_text("utf-8")):
            imported = ROOT / f"{module.replace('.', '/')}.py"
            if module.startswith("tools.") and imported.is_file() and imported not in found:
                found.add(imported)
                waiting.append(imported)
    names = {file.relative_to(ROOT).as_posix() for file in found} | {"tools/sphinx_build.py"}
    assert names == {name for name in book.SHARED if name.startswith("tools")}


# --- what is kept ---


def test_what_is_kept_of_a_chapter_outlives_that_of_its_lessons(toy: Toy) -> None:
    toy.write(index="Words.\n", first=cell("1"))
    (toy.root / "book" / "first").mkdir()
    lesson = toy.root / "book" / "first" / "lesson.md"
    lesson.write_text(HEADER + ONCE)
    toc = toy.root / "_toc.yml"
    toc.write_text(toc.read_text() + "- file: book/first/lesson\n")
    toy.execute("first-lesson")
    for number in range(pages.KEPT + 1):
        toy.write(index="Words.\n", first=cell(str(number)))
        toc.write_text(toc.read_text() + "- file: book/first/lesson\n")
        toy.execute("first")
    assert toy.mark("first-lesson")
