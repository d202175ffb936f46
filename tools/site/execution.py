"""Execute pages of the book side by side, each in a process of its own, and keep the outputs.

The processes are forked from one that has imported what the pages import: to start Python and to
import Matplotlib and torch takes longer than to run a short page. Only Linux forks safely what has
imported so much; elsewhere each page imports for itself.
"""

import contextlib
import faulthandler
import gc
import importlib
import json
import os
import pickle
import re
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from multiprocessing import connection, get_context
from pathlib import Path
from typing import Any

import psutil

from gradebox.processors import cores
from gradebox.workers.shell import Shell
from tools.fingerprints import write_if_changed
from tools.progress import OnProgress
from tools.site.inpage.library.page_text import typeset
from tools.site.pages import Execution, Page, Store, checksum
from tools.terminal import ToolError

PROCESSOR_SECONDS = 600.0
"""A cell that computes longer is taken to be in an endless loop; Windows does not count."""
WALL_SECONDS = 1800.0
"""A cell that has not ended by then hangs, however slow the machine is."""
POLL_SECONDS = 0.5

HERE = Path(__file__).resolve().parents[2]
# what a page shows depends neither on the reader's own settings nor on the number of threads
SETTINGS = {"MPLBACKEND": "module://matplotlib_inline.backend_inline", "OMP_NUM_THREADS": "1"}
IMPORT = re.compile(r"^[ \t]*(?:from|import) ([\w.]+)", re.MULTILINE)
COLORS = re.compile(r"\x1b\[[0-9;]*m")
UNCOUNTED = {".venv", "build", "_build", "__pycache__", ".git", "tools", "gradebox"}
READING = {"open", "os.listdir", "os.scandir"}


class PageFailed(ToolError):
    """A cell, counted from 0, raised, hung, or ended its process; the log has all that is known."""

    def __init__(self, page: Page, cell: int, error: str, remedy: str, log: str) -> None:
        self.page, self.error, self.log = page, error, log
        source = page.cells[cell].source.strip().splitlines()
        beyond = [line for line in source if not line.startswith(("import ", "from "))]
        self.code = (beyond or source)[0]
        where = f"{page.path.relative_to(page.root).as_posix()}:{page.line(cell)}"
        where += f", with {page.setting}" if page.setting else ""
        super().__init__(f"{where}, cell {cell + 1}: {self.code[:100]}\n{error}", remedy)


class CellFailed(Exception):
    """A cell, or a number in the text after it, raised: what, what to do about it, and the log."""


def execute(
    pages: Sequence[Page], store: Store, on_progress: OnProgress, stop: threading.Event
) -> list[PageFailed]:
    """Execute pages side by side and keep each as soon as it has ended; return what failed.

    When ``stop`` is set, processes are ended, and pages that had been executed stay kept.
    """
    if not pages:
        return []
    failures: list[Any] = []
    with (
        tempfile.TemporaryDirectory(prefix="pages-", ignore_cleanup_errors=True) as folder,
        subprocess.Popen(
            [sys.executable, "-m", "tools.site.execution"],
            cwd=HERE,
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
                limits = PROCESSOR_SECONDS, WALL_SECONDS
                pickle.dump((pages, store, Path(folder), limits), server.stdin)
            for line in server.stdout:
                done, now, failures = json.loads(line)
                on_progress(done, len(pages), now)
                if stop.is_set():
                    raise KeyboardInterrupt
            if server.wait():
                raise RuntimeError(f"the execution of the pages exited with {server.returncode}")
        except BaseException:
            with contextlib.suppress(psutil.Error):
                first = psutil.Process(server.pid)
                for process in [first, *first.children(recursive=True)]:
                    process.kill()
            raise
    failed = [PageFailed(pages[number], *rest) for number, *rest in failures]
    for failure in failed:
        write_if_changed(store.log(failure.page), f"{failure}\n\n{failure.log}\n".encode())
    return failed


def _import(pages: Sequence[Page]) -> None:
    """Import what the cells of pages and the package import; not the package, which may change."""
    files = (pages[0].root / "src" / "optdl").rglob("*.py")
    sources = [cell.source for page in pages for cell in page.cells]
    sources += [file.read_text("utf-8") for file in files]
    names = {name for source in sources for name in IMPORT.findall(source)}
    for name in sorted(names):
        # the backend for figures looks for IPython's shell when it is imported
        if not name.startswith(("optdl", "matplotlib_inline", ".")):
            with contextlib.suppress(ImportError):
                importlib.import_module(name)
    Shell.make()
    # what is there by now is shared, and nobody need look through it again
    gc.collect()
    gc.freeze()


def _serve(pages: Sequence[Page], store: Store, folder: Path, limits: tuple[float, float]) -> None:
    """Execute pages; print twice a second how many are done, which run, and what failed."""
    context: Any = get_context("fork" if sys.platform == "linux" else "spawn")
    if sys.platform == "linux" and len(pages) > cores():
        with contextlib.redirect_stdout(sys.stderr):
            _import(pages)
    waiting, failures = list(enumerate(pages)), []
    running: dict[Any, tuple[int, Any, Any]] = {}
    while waiting or running:
        while waiting and len(running) < cores():
            number, page = waiting.pop(0)
            cell = context.Value("i", 0, lock=False)
            process = context.Process(target=_run, args=(page, store, folder, limits, cell))
            process.start()
            running[process.sentinel] = number, process, cell
        for sentinel in connection.wait(list(running), POLL_SECONDS):
            number, process, cell = running.pop(sentinel)
            process.join()
            if failure := _failure(folder / pages[number].name, process.exitcode, limits):
                failures.append([number, cell.value, *failure])
        now = [
            f"{pages[n].name} {cell.value}/{len(pages[n].cells)}" for n, _, cell in running.values()
        ]
        done = len(pages) - len(waiting) - len(running)
        try:
            print(json.dumps([done, " · ".join(now), failures]), flush=True)
        except OSError:  # whoever asked for the pages is gone
            for _, process, _ in running.values():
                process.kill()
            os._exit(1)


def _failure(file: Path, status: int, limits: tuple[float, float]) -> list[str]:
    """Return what went wrong in the process of a page, what to do about it, and the log."""
    raised = file.with_name(f"{file.name}.json")
    if raised.exists():
        return list(json.loads(raised.read_text("utf-8")))
    log = file.with_name(f"{file.name}.log").read_text("utf-8", "replace")
    if not status:
        return []
    if status == -getattr(signal, "SIGPROF", 0):
        error = f"the cell computed for more than {limits[0]:g} s of processor time"
        remedy = "look for a loop that does not end, or make it a recorded run in experiments/"
    elif "Timeout (" in log:
        error = f"the cell had not ended after {limits[1] / 60:g} minutes"
        remedy = "look for what it waits for: the cell hangs"
    else:
        error = f"its process ended with status {status}"
        remedy = "look for a crash of compiled code, or for too little memory"
    return [error, remedy, log]


def _run(page: Page, store: Store, folder: Path, limits: tuple[float, float], cell: Any) -> None:
    """Execute the cells of a page in this process, and keep what they show."""
    log = (folder / f"{page.name}.log").open("w")
    os.dup2(log.fileno(), 1)
    os.dup2(log.fileno(), 2)
    if sys.platform != "win32":
        faulthandler.register(signal.SIGPROF, log, chain=True)
    for name in [name for name in sys.modules if name.partition(".")[0] == "optdl"]:
        del sys.modules[name]  # the page may be one of another repository
    sys.path.insert(0, str(page.root / "src"))
    # one folder for all pages, so that a cell reads the same files on each of them
    os.chdir(page.root / "book")
    shell: Any = Shell.instance() if Shell.initialized() else Shell.make()
    shell.kernel = True  # by this, optdl.plotting sees that figures stand in a page
    shell.outputs.longest = sys.maxsize
    shell.capture()
    reads = _note_reads(page.root)
    result = Execution(outputs=[])
    try:
        for number, source in enumerate(page.cells):
            cell.value = number
            before = sum(os.times()[:4])
            if sys.platform != "win32":
                signal.setitimer(signal.ITIMER_PROF, limits[0])
            faulthandler.dump_traceback_later(limits[1], exit=True, file=log)
            _run_cell(shell, source.source)
            for name in page.numbers[number]:
                _print_number(shell, name, result.numbers)
            result.outputs.append(shell.outputs.items)
            result.seconds.append(round(sum(os.times()[:4]) - before, 2))
    except CellFailed as error:
        (folder / f"{page.name}.json").write_text(json.dumps(error.args), "utf-8")
        return
    finally:
        sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__
    faulthandler.cancel_dump_traceback_later()
    result.data.update(_checksums(page.root.resolve(), reads))
    store.save(page, result)


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
        COLORS.sub("", "\n".join([source, *printed, *error["traceback"]])),
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


def _note_reads(root: Path) -> set[str]:
    """Begin to gather which files and folders below ``root`` this process reads."""
    below = os.path.join(os.path.realpath(root), "")  # noqa: PTH118
    reads: set[str] = set()

    def note(event: str, arguments: tuple[Any, ...]) -> None:
        if event in READING and isinstance(arguments[0], str | os.PathLike):
            path = os.path.realpath(arguments[0])
            if path.startswith(below):
                reads.add(path)

    sys.addaudithook(note)
    return reads


def _checksums(root: Path, reads: set[str]) -> dict[str, str]:
    """Return the checksums of what a page read, and of the modules of ``optdl`` that it ran."""
    modules = [module for name, module in sys.modules.items() if re.match(r"optdl\b", name)]
    files = {os.path.realpath(getattr(module, "__file__", None) or root) for module in modules}
    read = [Path(name) for name in sorted(reads | files) if Path(name).is_relative_to(root)]
    paths = {path.relative_to(root): path for path in read}
    return {
        name.as_posix(): checksum(path)
        for name, path in paths.items()
        if path.exists()
        and not UNCOUNTED & {*name.parts}
        # to import a module lists its folder
        and not (path.is_dir() and name.parts[:1] in ((), ("src",)))
    }


if __name__ == "__main__":
    _serve(*pickle.load(sys.stdin.buffer))
