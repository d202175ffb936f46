"""Execute pages of the book side by side, each in a process of its own, and keep the outputs.

The processes are forked from one that has imported what the pages import: to start Python and to
import Matplotlib and torch takes longer than to run a short page. A page and its variations are one
process as long as their cells are the same; it forks where they differ. Only Linux forks safely
what has imported so much; elsewhere each page and each variation imports and runs by itself.
"""

import contextlib
import faulthandler
import gc
import importlib
import io
import json
import os
import pickle
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from multiprocessing import connection, get_context
from pathlib import Path
from typing import Any

import psutil

from gradebox.workers.pool import cores
from gradebox.workers.shell import Shell
from tools.fingerprints import write_if_changed
from tools.layout import ROOT
from tools.progress import OnProgress
from tools.site.inpage.library.page_text import typeset
from tools.site.pages import Cell, Execution, Page, Store, checksum
from tools.terminal import ToolError

CELL_SECONDS = 1200.0
"""A cell that has not ended by then hangs or loops, however slow the machine is."""
POLL_SECONDS = 0.5

FORKS = sys.platform == "linux"
CONTEXT: Any = get_context("fork" if FORKS else "spawn")

BACKEND = "matplotlib_inline.backend_inline"
# what a page shows depends neither on the reader's own settings nor on the number of threads, and
# a process that has used a GPU cannot go on in a fork
SETTINGS = {
    "MPLBACKEND": f"module://{BACKEND}",
    "OMP_NUM_THREADS": "1",
    "CUDA_VISIBLE_DEVICES": "",
}
PRELOADED = (
    *("PIL", "jaxtyping", "matplotlib.pyplot", "pooch", "scipy.optimize", "scipy.sparse.linalg"),
    *("torch._dynamo", "torch.func", "tqdm.auto"),
)
"""What cells and the package import that takes long; not the package, which may change."""
UNCOUNTED = {".venv", "build", "_build", "__pycache__", ".git", "tools", "gradebox"}
READING = {"open", "os.listdir", "os.scandir"}


class CellFailed(Exception):
    """A cell, or a number in the text after it, raised: what, what to do about it, and the log."""


def execute(pages: Sequence[Page], store: Store, on_progress: OnProgress) -> None:
    """Execute pages side by side and keep each as soon as it has ended; raise if some failed.

    An interruption ends the processes, and pages that had been executed stay kept.
    """
    if not pages:
        return
    failures: list[Any] = []
    with (
        tempfile.TemporaryDirectory(prefix="pages-", ignore_cleanup_errors=True) as folder,
        subprocess.Popen(
            [sys.executable, "-m", "tools.site.execution"],
            cwd=ROOT,
            env=os.environ | SETTINGS | {"IPYTHONDIR": f"{folder}/ipython"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is for this process, which then ends that one
        ) as server,
    ):
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            with server.stdin:
                pickle.dump((pages, store, Path(folder), CELL_SECONDS), server.stdin)
            for line in server.stdout:
                done, now, failures = json.loads(line)
                on_progress(done, len(pages), now)
            if server.wait():
                raise RuntimeError(f"the execution of the pages exited with {server.returncode}")
        except BaseException:
            _end(server.pid)
            raise
    problems = []
    for place, cell, error, remedy, log in failures:
        page = pages[place]
        source = page.cells[cell].source.strip().splitlines()
        beyond = [line for line in source if not line.startswith(("import ", "from "))]
        where = page.place(cell) + (f", with {page.setting}" if page.setting else "")
        problems.append(f"{where}, cell {cell + 1}: {(beyond or source)[0][:100]}\n{error}")
        text = f"{problems[-1]}\nTo fix: {remedy}\n\n{log}\n"
        write_if_changed(store.log(page), text.encode())
    if failures:
        first, *others = [pages[place] for place, *_ in failures]
        lines = [failures[0][3], f"The whole log: {store.log(first)}"]
        if others:
            lines.append(f"Also failed: {', '.join(page.name for page in others)}; see build/pages")
        lines.append("The other pages are kept: the next run executes only what failed.")
        raise ToolError(problems[0], "\n".join(lines))


def _end(number: int) -> None:
    """End a process with all that it has started."""
    with contextlib.suppress(psutil.Error):
        first = psutil.Process(number)
        for process in [*first.children(recursive=True), first]:
            process.kill()


def _preload(root: Path) -> None:
    """Import what pages will share, and draw a figure: its fonts, and the grammar of formulas."""
    for name in PRELOADED:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    Shell.make()
    sys.path.insert(0, str(root / "src"))
    with contextlib.suppress(Exception):  # a page tells it with its cell
        importlib.import_module(BACKEND)  # looks for IPython's shell when it is imported
        from matplotlib import rc_context
        from matplotlib.figure import Figure

        from optdl.plotting import use_style

        with rc_context():
            use_style()
            figure = Figure()
            figure.subplots().loglog([1e-12, 1e12], [1e-12, 1e12])
            figure.savefig(io.BytesIO(), format="svg", bbox_inches="tight")
    del sys.path[0]
    # what is there by now is shared, and nobody need look through it again
    gc.collect()
    gc.freeze()


def _serve(pages: Sequence[Page], store: Store, folder: Path, limit: float) -> None:
    """Execute pages; print twice a second how many are done, which run, and what failed."""
    together: dict[Any, list[int]] = {}
    for place, page in enumerate(pages):
        together.setdefault(page.path if FORKS else place, []).append(place)
    if FORKS and len(together) > cores():
        with contextlib.redirect_stdout(sys.stderr):
            _preload(pages[0].root)
    failed, failures = CONTEXT.SimpleQueue(), []
    # the pages of many variations take long: begun last, they would leave processors idle
    waiting, ended = sorted(together.values(), key=len, reverse=True), 0
    running: dict[Any, tuple[_Work, list[int], Any]] = {}
    while waiting or running:
        while waiting and len(running) < cores():
            places, state = waiting.pop(0), CONTEXT.RawArray("i", 3)
            state[0] = places[0]
            group = {place: pages[place] for place in places}
            work = _Work(group, store, folder, limit, failed, state)
            process = work.start(places)
            running[process.sentinel] = work, places, process
        for sentinel in connection.wait(list(running), POLL_SECONDS):
            work, places, process = running.pop(sentinel)
            work.join(process)
            ended += len(places)
        while not failed.empty():
            failures.append(failed.get())
        states = [work.state[:] for work, *_ in running.values()]
        now = [f"{pages[place].name} {cell}/{len(pages[place].cells)}" for place, cell, _ in states]
        done = ended + sum(number for *_, number in states)
        try:
            print(json.dumps([done, " · ".join(now), failures]), flush=True)
        except OSError:  # whoever asked for the pages is gone
            _end(os.getpid())


@dataclass
class _Work:
    """A page and its variations: each is a fork of the page's process from where they differ.

    That process waits for each of its forks, so as many pages run as there are processors.
    """

    pages: dict[int, Page]
    """The pages by their places among all that are executed."""
    store: Store
    folder: Path
    limit: float
    failed: Any
    """Where it is put what failed: place, cell, error, remedy and log."""
    state: Any
    """The place of the page that runs, its cell, and how many pages have ended."""

    def start(self, places: list[int], *shared: Any) -> Any:
        """Start a process, which goes on with what the pages have shown if it is a fork."""
        process = CONTEXT.Process(target=self.run, args=(places, *shared))
        process.start()
        return process

    def join(self, process: Any) -> None:
        """Wait for a process, and tell what ended it before its time, if anything did."""
        process.join()
        if not process.exitcode:
            return
        log = (self.folder / f"{process.pid}.log").read_text("utf-8", "replace")
        error = f"its process ended with status {process.exitcode}"
        remedy = "look for a crash of compiled code, or for too little memory"
        if "Timeout (" in log:
            error = f"the cell had not ended after {self.limit / 60:g} minutes"
            remedy = "look for a loop that does not end, or for what the cell waits for; a long "
            remedy += "computation becomes a recorded run in experiments/"
        self.failed.put([*self.state[:2], error, remedy, log])

    def run(self, places: list[int], result: Execution | None = None, reads: Any = None) -> None:
        """Execute the cells of the first page in this process, and keep what they show."""
        page = self.pages[places[0]]
        with (self.folder / f"{os.getpid()}.log").open("w") as log:
            os.dup2(log.fileno(), 1)
            os.dup2(log.fileno(), 2)
            if result is None:
                result, reads = Execution(outputs=[]), _prepare(page)
            if page.setting:
                os.environ["MPLBACKEND"] = "agg"  # nobody looks at the figures of a variation
                if matplotlib := sys.modules.get("matplotlib"):
                    matplotlib.use("agg")
            waiting = places[1:]
            try:
                for number in range(len(result.outputs), len(page.cells)):
                    cell = page.cells[number]
                    apart = [
                        p for p in waiting if self.pages[p].cells[number].source != cell.source
                    ]
                    for place in apart:
                        self.join(self.start([place], result, reads))
                    waiting = [place for place in waiting if place not in apart]
                    self.state[:2] = places[0], number
                    self.cell(cell, result, log)
                data = _checksums(page.root.resolve(), reads)
                self.store.save(page, replace(result, data=data))
                self.state[2] += 1
            except CellFailed as error:
                # what pages share has failed for all of them, and is told of the first
                self.failed.put([*self.state[:2], *error.args])
            finally:
                sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__

    def cell(self, cell: Cell, result: Execution, log: Any) -> None:
        """Run the next cell within the limit, and compute the numbers after it."""
        shell, before = Shell.instance(), sum(os.times()[:4])
        faulthandler.dump_traceback_later(self.limit, exit=True, file=log)
        _run_cell(shell, cell.source)
        for name in dict.fromkeys(cell.numbers):
            _print_number(shell, name, result.numbers)
        faulthandler.cancel_dump_traceback_later()  # its thread would be missing in a fork
        result.outputs.append(shell.outputs.items)
        result.seconds.append(round(sum(os.times()[:4]) - before, 2))


def _prepare(page: Page) -> set[str]:
    """Make this process ready for a page; return the set of what below its root will be read."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "optdl"]:
        del sys.modules[name]  # the page may be one of another repository
    sys.path.insert(0, str(page.root / "src"))
    # one folder for all pages, so that a cell reads the same files on each of them
    os.chdir(page.root / "book")
    shell: Any = Shell.instance() if Shell.initialized() else Shell.make()
    shell.kernel = True  # by this, optdl.plotting sees that figures stand in a page
    shell.outputs.longest = sys.maxsize
    shell.capture()
    if any("matplotlib" in cell.source for cell in page.cells):
        # if a cell is the first to load it, Matplotlib draws the figures of that cell twice
        importlib.import_module(BACKEND)
    below, reads = os.path.join(os.path.realpath(page.root), ""), set[str]()  # noqa: PTH118

    def note(event: str, arguments: tuple[Any, ...]) -> None:
        if event in READING and isinstance(arguments[0], str | os.PathLike):
            path = os.path.realpath(arguments[0])
            if path.startswith(below):
                reads.add(path)

    sys.addaudithook(note)
    return reads


def _run_cell(shell: Shell, source: str) -> None:
    if pyplot := sys.modules.get("matplotlib.pyplot"):
        pyplot.uninstall_repl_displayhook()  # it draws each figure once more, for no screen
    if shell.execute(source)[1]:
        return
    error = next(output for output in shell.outputs.items if output["output_type"] == "error")
    printed = [output["text"] for output in shell.outputs.items if "text" in output]
    raise CellFailed(
        f"{error['ename']}: {error['evalue']}".splitlines()[0][:200],
        "correct the cell, or what it calls: the log has the traceback",
        re.sub(r"\x1b\[[0-9;]*m", "", "\n".join([source, *printed, *error["traceback"]])),
    )


def _print_number(shell: Shell, name: str, numbers: dict[str, str]) -> None:
    """Compute a number that the text after a cell prints, as a field of an f-string."""
    try:
        value = typeset(eval(f"f'''{{{name}}}'''", shell.user_ns))
        if numbers.setdefault(name, value) == value:
            return
        problem = f" is {numbers[name]} in one place of the page and {value} in another: "
        problem += "give the variables names of their own"
    except Exception as error:
        problem = f": {type(error).__name__}: {error}"
    message = f"{{number}}`{name}`{problem}"
    raise CellFailed(message, "correct the expression, or the cell above it", message)


def _checksums(root: Path, reads: set[str]) -> dict[str, str]:
    """Return the checksums of what a page read, and of the modules of ``optdl`` that it ran."""
    modules = [module for name, module in sys.modules.items() if name.split(".")[0] == "optdl"]
    files = {os.path.realpath(getattr(module, "__file__", None) or root) for module in modules}
    found = {}
    for path in map(Path, sorted(reads | files)):
        name = path.relative_to(root) if path.is_relative_to(root) else None
        # to import a module lists its folder
        imports = path.is_dir() and name is not None and name.parts[:1] in ((), ("src",))
        if name and path.exists() and not imports and not UNCOUNTED & {*name.parts}:
            found[name.as_posix()] = checksum(path)
    return found


if __name__ == "__main__":
    _serve(*pickle.load(sys.stdin.buffer))
