"""Execute pages of the book side by side, one kernel for each processor, and keep the outputs."""

import ast
import asyncio
import contextlib
import os
import re
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import psutil
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

from gradebox.processors import cores
from tools import imported_modules, kernels
from tools.fingerprints import write_if_changed
from tools.pages import Execution, Page, Store, checksum, typeset
from tools.progress import OnProgress

PROCESSOR_SECONDS = 600.0
"""A cell that computes longer is taken to be in an endless loop."""
WALL_SECONDS = 1800
"""A cell that has not ended by then hangs, however slow the machine is."""
START_SECONDS = 1800
"""A kernel that has not started by then does not start."""
POLL = 0.5
"""Seconds between two looks at the kernels."""

HERE = Path(__file__).resolve().parent.parent
COLORS = re.compile(r"\x1b\[[0-9;]*m")
UNCOUNTED = {".venv", "build", "_build", "__pycache__", ".git"}


class PageFailed(Exception):
    """A cell of a page raised, hung, or ended its kernel.

    Parameters
    ----------
    page : Page
        The page.
    cell : int
        The number of its code cell, from 0.
    error : str
        What happened, in one line.
    remedy : str
        What to do about it.
    log : str
        All that is known, such as the traceback.
    """

    def __init__(self, page: Page, cell: int, error: str, remedy: str, log: str) -> None:
        self.page, self.cell, self.error, self.remedy, self.log = page, cell, error, remedy, log
        source = page.cells[cell].source.strip().splitlines()
        beyond = [line for line in source if not line.startswith(("import ", "from "))]
        self.code = (beyond or source)[0]
        where = f"{page.path.relative_to(page.root).as_posix()}:{page.line(cell)}"
        super().__init__(f"{where}, cell {cell + 1}: {self.code[:100]}\n{error}\nTo fix: {remedy}")


class NumberFailed(Exception):
    """A number in the text of a page could not be printed; the message says which, and why."""


class Runner:
    """The execution of one page in a kernel of its own.

    Parameters
    ----------
    page : Page
        The page.
    folder : Path
        A folder for the kernel's sockets and notes; its path must be short.
    managed : callable
        Returns the manager of a kernel, given the file for its connection.
    """

    def __init__(
        self, page: Page, folder: Path, managed: Callable[[Path], AsyncKernelManager]
    ) -> None:
        self.page, self._folder = page, folder
        self._cell, self._before, self._total = -1, 0.0, 0.0
        self._seconds: list[float] = []
        self._numbers: dict[str, str] = {}
        self._endless = False
        self._manager = managed(folder / "kernel.json")

    def run(self) -> Execution:
        """Execute all cells.

        Raises
        ------
        PageFailed
            When a cell does not end well.
        """
        start = time.monotonic()
        self._client = self._make()
        reads = self._folder / "reads"
        reads.touch()
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join([str(self.page.root / "src"), str(HERE)]),
            "PAGE_READS": str(reads),
            "PAGE_ROOT": str(self.page.root),
            # One thread for each kernel: the pages' small arrays gain nothing from more.
            "OMP_NUM_THREADS": "1",
            # what a page shows does not depend on the reader's own settings
            "IPYTHONDIR": str(self._folder / "ipython"),
        }
        try:
            with asyncio.Runner() as loop:
                loop.run(_execute(self._client, self._manager, environment))
        except (
            CellExecutionError,
            CellTimeoutError,
            DeadKernelError,
            NumberFailed,
            RuntimeError,
        ) as error:
            raise self._failure(error) from None
        notebook = self._client.nb
        return Execution(
            outputs=[cell.outputs for cell in notebook.cells if cell.cell_type == "code"],
            language=notebook.metadata.get("language_info", {}),
            data=self._data(reads),
            seconds=[round(seconds, 2) for seconds in self._seconds],
            wall=round(time.monotonic() - start, 1),
            numbers=self._numbers,
        )

    def _make(self) -> NotebookClient:
        empty = Execution([[] for _ in self.page.cells], {})
        return NotebookClient(
            empty.fill(self.page),
            km=self._manager,
            timeout=WALL_SECONDS,
            startup_timeout=START_SECONDS,
            # one folder for all pages, so that a cell reads the same files on each of them
            resources={"metadata": {"path": str(self.page.root / "book")}},
            extra_arguments=[
                "--log-level=ERROR",
                "--ext=tools.file_tracer",
                "--HistoryManager.enabled=False",
            ],
            on_cell_execute=self._begin,
            on_cell_executed=self._end,
        )

    def _begin(self, cell: Any, cell_index: int) -> None:
        self._cell += 1
        self._before = self._used()

    async def _end(self, cell: Any, cell_index: int, execute_reply: Any) -> None:
        if execute_reply["content"]["status"] == "ok":
            await self._print_numbers(self.page.numbers[self._cell])
        self._seconds.append(self._used() - self._before)

    async def _print_numbers(self, asked: Sequence[str]) -> None:
        """Compute the numbers that the text after a cell prints, each as a field of an f-string."""
        client: Any = self._client.kc
        fields = {name: f"f'''{{{name}}}'''" for name in asked}
        request = client.execute("", silent=True, user_expressions=fields) if asked else None
        while request is not None:
            reply = await client.get_shell_msg()
            if reply["parent_header"].get("msg_id") == request:
                break
        for name in asked:
            said = reply["content"]["user_expressions"][name]
            if said["status"] != "ok":
                raise NumberFailed(f"{{number}}`{name}`: {said['ename']}: {said['evalue']}")
            value = typeset(ast.literal_eval(said["data"]["text/plain"]))
            if self._numbers.setdefault(name, value) != value:
                raise NumberFailed(
                    f"{{number}}`{name}` is {self._numbers[name]} in one place of the page and "
                    f"{value} in another: give the variables names of their own"
                )

    @property
    def _kernel(self) -> psutil.Process | None:
        """Return the kernel's process; None before it has started or after its end."""
        pid = getattr(self._manager.provisioner, "pid", None)
        with contextlib.suppress(psutil.Error):
            return psutil.Process(pid) if pid else None
        return None

    def _used(self) -> float:
        """Return the processor seconds of the kernel and of the processes that it started."""
        kernel, total = self._kernel, 0.0
        with contextlib.suppress(psutil.Error):
            for process in [kernel, *kernel.children(recursive=True)] if kernel else []:
                with contextlib.suppress(psutil.Error):
                    total += sum(process.cpu_times()[:2])
        self._total = max(self._total, total)  # of a process that has ended nothing is known
        return self._total

    @property
    def now(self) -> str:
        """Return which cell runs."""
        return f"{self.page.name} {max(self._cell, 0)}/{len(self.page.cells)}"

    def watch(self) -> None:
        """Interrupt a cell that has computed for too long; end the kernel if that does not help."""
        used = self._used() - self._before if self._cell >= 0 else 0.0
        if used > PROCESSOR_SECONDS + 30:
            self.stop()
        elif used > PROCESSOR_SECONDS and not self._endless:
            self._endless = True
            if self._kernel and sys.platform != "win32":
                self._kernel.send_signal(signal.SIGINT)
            else:
                self.stop()

    def stop(self) -> None:
        """End the kernel at once."""
        with contextlib.suppress(psutil.Error):
            if self._kernel:
                self._kernel.kill()

    def _failure(self, error: Exception) -> PageFailed:
        log = COLORS.sub("", str(error))
        remedy = "correct the cell, or what it calls: the log has the traceback"
        if self._endless:
            said = f"the cell computed for more than {PROCESSOR_SECONDS:g} s of processor time"
            remedy = "look for a loop that does not end, or make it a recorded run in experiments/"
        elif isinstance(error, CellTimeoutError):
            said = f"the cell had not ended after {WALL_SECONDS // 60} minutes"
            remedy = "look for what it waits for: the cell hangs"
        elif isinstance(error, NumberFailed):
            said = str(error)
            remedy = "correct the expression, or the cell above it"
        elif isinstance(error, CellExecutionError):
            said = f"{error.ename}: {error.evalue}".splitlines()[0][:200]
        else:
            said = f"the kernel ended: {log.splitlines()[0] if log else type(error).__name__}"
            remedy = "look for a crash of compiled code, or for too little memory"
        return PageFailed(self.page, max(self._cell, 0), said, remedy, log)

    def _data(self, reads: Path) -> dict[str, str]:
        """Return the checksums of the data that the page read."""
        root = self.page.root.resolve()
        paths = [Path(line) for line in reads.read_text(encoding="utf-8").splitlines()]
        names = {path.relative_to(root) for path in paths if path.exists()}
        return {
            name.as_posix(): checksum(root / name)
            for name in sorted(names)
            if not UNCOUNTED & set(name.parts) and name.parts[:1] not in {("src",), ("tools",), ()}
        }


async def _execute(
    client: NotebookClient, manager: AsyncKernelManager, environment: dict[str, str]
) -> None:
    """Execute a notebook, and leave neither its kernel nor a socket behind, however it ends."""
    try:
        await client.async_execute(env=environment)
    finally:
        if client.kc is not None:
            client.kc.stop_channels()
        if manager.has_kernel:
            await manager.shutdown_kernel(now=True)
        manager.context.destroy(linger=0)


def execute(
    pages: Sequence[Page], store: Store, on_progress: OnProgress, stop: threading.Event
) -> list[PageFailed]:
    """Execute pages side by side and keep each as soon as it has ended; return what failed.

    Raises
    ------
    KeyboardInterrupt
        When ``stop`` is set; kernels are ended, and pages that had been executed stay kept.
    """
    failed: list[PageFailed] = []
    done = 0
    if not pages:
        return failed
    with (
        tempfile.TemporaryDirectory(prefix="page-") as folder,
        kernels.managers(_imported(pages)) as managed,
        ThreadPoolExecutor(cores()) as pool,
    ):
        runners: dict[Future[None], Runner] = {}
        for page in pages:
            own = Path(folder, page.name)
            own.mkdir()
            runner = Runner(page, own, managed)
            runners[pool.submit(_run, runner, store)] = runner
        waiting = set(runners)
        try:
            while waiting:
                ended, waiting = wait(waiting, POLL, FIRST_COMPLETED)
                for future in ended:
                    done += 1
                    failed += _result(future, store)
                running = [runners[future] for future in waiting if future.running()]
                for runner in running:
                    runner.watch()
                on_progress(done, len(pages), " · ".join(runner.now for runner in running))
                if stop.is_set():
                    raise KeyboardInterrupt
        except BaseException:
            for future in waiting:
                future.cancel()
            while wait(waiting, POLL).not_done:
                for future in waiting:
                    runners[future].stop()
            raise
    return failed


def _imported(pages: Sequence[Page]) -> set[str]:
    """Return what pages import, and what the modules of ``optdl`` do that they import."""
    files = {file for page in pages for file in page.code}
    sources = [source for page in pages for source in page.python]
    sources += [file.read_text("utf-8") for file in files]
    names = {name for source in sources for name in imported_modules.named(source)}
    # the backend for figures looks for its kernel when it is imported
    return {name for name in names if not name.startswith(("optdl", "matplotlib_inline"))}


def _run(runner: Runner, store: Store) -> None:
    store.save(runner.page, runner.run())


def _result(future: Future[None], store: Store) -> list[PageFailed]:
    try:
        future.result()
    except PageFailed as failure:
        write_if_changed(store.log(failure.page), f"{failure}\n\n{failure.log}\n".encode())
        return [failure]
    return []
