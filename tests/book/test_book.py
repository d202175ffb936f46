"""The site is built strictly, page by page, and nothing that was executed is lost."""

import contextlib
import queue
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest
from bs4 import BeautifulSoup
from filelock import FileLock

from tools import vary
from tools.fingerprints import digest, write_if_changed
from tools.layout import ROOT
from tools.site import book, execution, live, pages
from tools.site.inpage import parts
from tools.terminal import ToolError

pytestmark = pytest.mark.xdist_group("book")

HEADER = "---\nfile_format: mystnb\nkernelspec: {name: python3}\n---\n\n# A title\n\n"


def cell(*lines: str) -> str:
    return "\n".join(["```{code-cell}", *lines, "```", ""])


ONCE = cell("import uuid", "uuid.uuid4()")  # which tells one execution from another
WAITS = cell("import time") + cell("time.sleep(10**6)")


class Toy:
    """A small book with the settings of this one, and a package ``optdl`` of its own."""

    def __init__(self, root: Path) -> None:
        self.root, self.store, self.optdl = root, pages.Store(root), root / "src" / "optdl"
        (root / "book" / "first").mkdir(parents=True)
        (self.optdl / "checks").mkdir(parents=True)
        (self.optdl / "__init__.py").touch()
        for name in ("_ext", "_static", "_templates", "references.bib"):
            (root / "book" / name).symlink_to(ROOT / "book" / name)
        for name in ("_config.yml", "requirements.txt"):
            shutil.copy(ROOT / name, root / name)

    def write(self, **texts: str) -> None:
        """Write pages, and the contents with the first of them as root."""
        for name, text in texts.items():
            write_if_changed(self.root / "book" / f"{name}.md", (HEADER + text).encode())
        first, *others = (f"{{file: book/{name}}}" for name in texts)
        toc = f"format: jb-book\nroot: {first[7:-1]}\n"
        toc += f"chapters: [{', '.join(others)}]\n" if others else ""
        (self.root / "_toc.yml").write_text(toc)

    def page(self, name: str = "index") -> pages.Page:
        return next(page for page in pages.find(self.root) if page.name == name)

    def outputs(self, name: str = "index") -> str:
        """Return what was kept of a page, or nothing where it must be executed."""
        saved = self.store.load(self.page(name))
        return str(saved.outputs) if saved else ""

    def execute(self, stop: bool = False) -> dict[str, tuple[str, str, str]]:
        """Execute all pages, or stop after the first; return what failed: place, error, log."""

        def on_progress(done: int, *_: object) -> None:
            if stop and done:
                raise KeyboardInterrupt

        with contextlib.suppress(ToolError):
            execution.execute(pages.find(self.root), self.store, on_progress)
        logs = {file.stem: file.read_text() for file in self.store.folder.glob("*.log")}
        return {name: tuple(text.split("\n", 2)) for name, text in logs.items()}


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Toy:
    monkeypatch.setattr(book, "ROOT", tmp_path / "toy")
    monkeypatch.setattr(parts, "build", lambda *_: None)  # longer than all else
    return Toy(tmp_path / "toy")


def test_outputs_depend_on_code_modules_and_data(toy):
    code = cell("%matplotlib inline", "from optdl.direct import f; f()", "from pathlib import Path")
    code += cell("[p.read_text() for p in Path('../data').iterdir()]")
    figure = cell("import matplotlib.pyplot as plt", "plt.plot([1, 2]);")
    # what another page imports changes no figure
    toy.write(index=code, figure=figure, other=cell("import matplotlib_inline.backend_inline"))
    texts = {"direct": "def f():\n    from optdl import indirect\n", "other": ""}
    texts |= {"indirect": "import optdl.checks\n", "checks/__init__": ""}
    files = {toy.optdl / f"{name}.py": text for name, text in texts.items()}
    files |= {toy.root / "data" / "file": "", toy.root / "unread": ""}
    (toy.root / "data").mkdir()
    for file, text in files.items():
        file.write_text(text)
    assert toy.execute() == {}
    assert "'image/png': 'iVBOR" in toy.outputs("figure")
    assert digest(["ab", "c"]) != digest(["a", "bc"])
    for file, text in files.items():
        file.write_text(f"{text}# changed")
        assert bool(toy.outputs()) == (file.stem in ("other", "unread")), file
        file.write_text(text)
    toy.write(index="Words.\n\n" + code)
    assert toy.outputs()
    toy.write(index=code + cell("1"))
    assert not toy.outputs()
    toy.write(index=code)
    (toy.root / "data" / "new").touch()
    assert not toy.outputs()
    toy.write(index=cell("---", 'tags: "of', "---", "1"))
    with pytest.raises(ToolError, match=r"index\.md: Code cell 1 at line"):
        toy.page()


def test_pages_share_all_that_extensions_import():
    waiting, names = [*(ROOT / "book" / "_ext").glob("*.py")], {"tools/site/sphinx_build.py"}
    for file in waiting:  # which grows
        for module in live.named(file.read_text("utf-8")):
            name = f"{module.replace('.', '/')}.py"
            if name.startswith("tools/") and (ROOT / name).is_file() and name not in names:
                names.add(name)
                waiting.append(ROOT / name)
    assert names == {name for name in book.EXTENSIONS if name.startswith("tools")}


def test_verdicts_are_asked_at_each_knob_value(toy, monkeypatch, capsys):
    code = cell(
        *("%matplotlib inline", "import matplotlib.pyplot as plt"),
        *("n = 2  # vary: 1..3", "kind = 'up'  # vary: down"),
    )
    code += cell("sign = 1 if kind == 'up' else -1", "plt.plot([n]);")
    verdict = (
        ":tags: [verdict, remove-cell]",
        "assert n < 3, 'few'",
        "assert sign * n > 0, 'above 0'",
    )
    toy.write(index=code + cell(*verdict) + cell("1"))
    varied = vary.variants(toy.page())
    assert [page.setting for page in varied] == ["n = 1", "n = 3", "kind = 'down'"]
    execution.execute(varied, toy.store, lambda *_: None)
    first = toy.page().path.read_text().splitlines().index("assert n < 3, 'few'") + 1
    assert vary.overturned((page, toy.store.load(page)) for page in varied) == [
        f"book/index.md:{first}: with n = 3, it is not so: few",
        f"book/index.md:{first + 1}: with kind = 'down', it is not so: above 0",
    ]
    monkeypatch.setattr(book, "_sphinx", contextlib.nullcontext)  # no page is written
    with pytest.raises(ToolError, match="with n = 3, it is not so: few"):
        book.build()
    monkeypatch.setattr(vary, "ROOT", toy.root)
    assert vary.main("index") == 1
    assert capsys.readouterr().out.count("NOT SO") == 2
    toy.write(index=cell("n = 2") + cell(*verdict))
    with pytest.raises(ToolError, match="a verdict and no knob"):
        vary.variants(toy.page())


def test_variations_go_on_from_the_page(toy):
    """What stands before a knob is run once; a variation that fails spares the page and others."""
    code = ONCE + cell("n = 1  # vary: 2 3", "import os", "if n == 3: os._exit(3)")
    code += cell("above = 3  # vary: 0 4") + cell(":tags: [verdict]", "assert n < above, 'below'")
    toy.write(index=code)
    _, *varied = every = [toy.page(), *vary.variants(toy.page())]
    done: list[int] = []
    with pytest.raises(ToolError, match=r", with n = 3, cell 2: n = 3 .*\n.* with status 3\n"):
        execution.execute(every, toy.store, lambda number, *_: done.append(number))
    assert done[-1] == len(every)
    loaded = {page.setting: toy.store.load(page) for page in every}
    kept = {setting: one for setting, one in loaded.items() if one}
    assert kept.keys() == {"", "n = 2", "above = 0", "above = 4"}
    shared = {str(one.outputs[0]) for one in kept.values()}
    assert (len(shared) == 1) == execution.FORKS
    verdicts = [vary.verdicts(kept[page.setting]) for page in varied if page.setting in kept]
    assert verdicts == [{"below": holds} for holds in (True, False, True)]


def test_failure_names_its_cell_and_spares_other_pages(toy, monkeypatch):
    raises = "Words.\n\n" + cell("1") + cell("import math", "a = 3", "raise ValueError('of this')")
    twice = cell("x = 1") + "{number}`x`\n\n" + cell("x = 2") + "{number}`x`\n"
    ends, unknown = cell("import os", "os._exit(3)"), cell("x = 1") + "{number}`y`\n"
    wrong = {"raises": raises, "ends": ends, "twice": twice, "unknown": unknown}
    toy.write(index=ONCE, **wrong, loops=cell("while True: pass"), waits=WAITS)
    monkeypatch.setattr(execution, "CELL_SECONDS", 3.0)
    failed = toy.execute()
    late = "the cell had not ended after 0.05 minutes"
    assert {name: (place, error[:47]) for name, (place, error, _) in failed.items()} == {
        "raises": ("book/raises.md:14, cell 2: a = 3", "ValueError: of this"),
        "ends": ("book/ends.md:9, cell 1: os._exit(3)", "its process ended with status 3"),
        "twice": (
            "book/twice.md:14, cell 2: x = 2",
            "{number}`x` is 1 in one place of the page and 2",
        ),
        "unknown": (
            "book/unknown.md:9, cell 1: x = 1",
            "{number}`y`: NameError: name 'y' is not defined",
        ),
        "loops": ("book/loops.md:9, cell 1: while True: pass", late),
        "waits": ("book/waits.md:12, cell 2: time.sleep(10**6)", late),
    }
    assert toy.page("raises").path.read_text().splitlines()[13] == "import math"
    assert "raise ValueError('of this')" in failed["raises"][2]
    assert "line 1 in <module>" in failed["loops"][2]
    assert toy.outputs()


def test_an_interruption_loses_no_finished_page(toy):
    toy.write(index=ONCE, waits=WAITS)
    with pytest.raises(KeyboardInterrupt):
        toy.execute(stop=True)
    assert "UUID" in toy.outputs()
    at_work = str((toy.root / "book").resolve())
    left = [process for process in psutil.process_iter(["cwd"]) if process.info["cwd"] == at_work]
    assert not psutil.wait_procs(left, timeout=20)[1], "a page goes on"


SECOND = "(label)=\n## A section\n\nWords.\n"
INDEX = cell("from optdl.number import VALUE", "rate, small = 0.25, -2e-7", "2 * VALUE") + (
    "\nIt is {number}`rate:.1%`, not {number}`small:.0e`. See {ref}`there <label>`.\n"
)
COUNTS = cell("from optdl.number import VALUE", "VALUE + 1")  # only the module's text changes it


def test_build_writes_what_changed_and_refuses_errors(toy, monkeypatch):
    site, first, progress = toy.root / "_build" / "html", [], set()

    def words(page: str = "index") -> str:
        text = (site / "book" / f"{page}.html").read_text("utf-8")
        return " ".join(BeautifulSoup(text, "html.parser").article.get_text().split())

    def refusal() -> str:
        with pytest.raises(ToolError) as raised:
            book.build()
        assert len(str(raised.value).splitlines()) <= 10
        return str(raised.value)

    # All is written, with the numbers that the cells computed, also in the notebook.
    (toy.optdl / "number.py").write_text("VALUE = 1234")
    texts = {"index": INDEX, "second": SECOND, "once": ONCE, "counts": COUNTS}
    toy.write(**texts)
    seen = {
        "on_page": first.append,
        "on_progress": lambda done, total, _: progress.add((done, total)),
    }
    assert book.build(**seen) == site
    assert [page.name for page in first] == ["index.html"]
    assert (100, 100) in progress
    assert "2468 It is 25.0 %, not −2·10⁻⁷. See there" in words()
    notebook = (site / "_notebooks" / "chapter-index.ipynb").read_text("utf-8")
    assert "It is 25.0\N{NO-BREAK SPACE}%, not −2·10⁻⁷." in notebook
    once = toy.outputs("once")

    # Where nothing has changed, nothing is done.
    with monkeypatch.context() as patch:
        patch.setattr(book, "_build", lambda *_: pytest.fail("nothing has changed"))
        assert book.build() == site
        told = queue.SimpleQueue()
        with ThreadPoolExecutor(1) as pool:
            with FileLock(toy.root / "_build" / "lock"):
                waiting = pool.submit(book.build, lambda *now: told.put(now))
                assert told.get() == (0, 1, "waits for the end of another build")
            assert waiting.result() == site
    # Code, words and the format of a number: their page alone is executed and written. A script.
    written = toy.root / "_build" / "next" / "_build" / "html" / "book" / "second.html"
    before = written.stat().st_mtime_ns
    (toy.optdl / "number.py").write_text("VALUE = 1235")
    changed = INDEX.replace(":.1%", ":.1f").replace("See", "Look at")
    toy.write(**texts | {"index": changed})
    static = toy.root / "book" / "_static"
    static.unlink()
    shutil.copytree(ROOT / "book" / "_static", static)
    (static / "slides.js").write_text("// changed", "utf-8")
    book.build()
    assert "2470 It is 0.2, not −2·10⁻⁷. Look at there" in words()
    assert "1236" in words("counts")
    assert (site / "_static" / "slides.js").read_text("utf-8") == "// changed"
    assert written.stat().st_mtime_ns == before

    # A cell that raises, then a label that is gone, a picture that is not there and a number that
    # a page without its code no longer knows: each is told with its place, and the old site stays.
    toy.write(**texts | {"index": changed, "bad": cell("1 / 0")})
    assert re.search(r"bad\.md:\d+, cell 1: 1 / 0\nZeroDivisionError: .*\nTo fix: ", refusal())
    named = changed.replace("there <label>", "label")
    wrong = {"second": "## Section\n", "once": f"{ONCE}\n![A picture](missing.svg)\n"}
    wrong["counts"] = "{number}`VALUE + 1`\n"
    toy.write(**texts | {"index": named} | wrong)
    for _ in range(2):  # the second build finds the pages unchanged
        message = refusal()
        assert re.search(r"book/index\.md:.*label", message)
        assert re.search(r"book/once\.md.*missing\.svg", message)
        assert "no cell of this page has computed the number VALUE + 1" in message
        assert "Look at there" in words()

    # Put right, with another title of the section: the page that refers to it shows that. A page
    # without code has no button.
    texts |= {"index": named, "second": SECOND.replace("A section", "Another")}
    toy.write(**texts | {"counts": "Words.\n"})
    book.build()
    assert "Look at Another" in words()
    assert words("counts") == "A title# Words."
    assert toy.outputs("once") == once
