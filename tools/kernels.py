"""Kernels that are forked from one process, which has imported what pages import.

To start Python and to import Matplotlib and torch takes longer than to run a short page. The
process is ``python -m tools.kernels MODULE…``; it gets requests as lines of JSON, and answers each
with the id of a process. Only Linux forks safely what has imported so much; elsewhere each kernel
is started anew.
"""

import contextlib
import gc
import importlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import psutil
from jupyter_client.connect import KernelConnectionInfo
from jupyter_client.manager import AsyncKernelManager
from jupyter_client.provisioning.local_provisioner import LocalProvisioner

HERE = Path(__file__).resolve().parent.parent
INLINE = "module://matplotlib_inline.backend_inline"
"""How Matplotlib shows figures in a kernel; it reads this once, when it is imported."""


class Kernel:
    """A forked kernel, with what Jupyter asks of a process that it started itself."""

    stdin = stdout = stderr = None

    def __init__(self, pid: int) -> None:
        self.pid, self._process = pid, psutil.Process(pid)

    def poll(self) -> int | None:
        """Return None as long as the process runs; its exit status is not known."""
        return None if self._process.is_running() else 0

    def wait(self) -> int:
        """Wait until the process has ended."""
        self._process.wait()
        return 0

    def send_signal(self, number: int) -> None:
        """Send a signal to the process, if it still runs."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)


class Kernels:
    """The process from which kernels are forked."""

    def __init__(self, modules: Iterable[str]) -> None:
        self._lock = threading.Lock()
        self._server = subprocess.Popen(
            [sys.executable, "-m", "tools.kernels", *modules],
            cwd=HERE,
            env=os.environ | {"MPLBACKEND": INLINE, "OMP_NUM_THREADS": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def fork(self, arguments: list[str], folder: str, environment: dict[str, str]) -> Kernel:
        """Start a kernel."""
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        with self._lock:
            print(json.dumps([arguments, folder, environment]), file=self._server.stdin, flush=True)
            return Kernel(int(self._server.stdout.readline()))

    def close(self) -> None:
        """End the process, and with it the kernels that are left."""
        self._server.communicate()


class Forked(LocalProvisioner):
    """How Jupyter's manager starts a kernel here."""

    def __init__(self, kernels: Kernels, **options: Any) -> None:
        super().__init__(**options)
        self._kernels = kernels

    async def launch_kernel(self, cmd: list[str], **options: Any) -> KernelConnectionInfo:
        """Fork a kernel instead of running the command, which is Python's for ipykernel."""
        kernel: Any = self._kernels.fork(cmd[3:], str(options["cwd"]), options["env"])
        self.process, self.pid, self.pgid = kernel, kernel.pid, kernel.pid
        self.cwd = options["cwd"]
        return self.connection_info


@contextlib.contextmanager
def managers(modules: Iterable[str]) -> Iterator[Callable[[Path], AsyncKernelManager]]:
    """Return how to make the manager of a kernel, given the file for its connection.

    All kernels have ended when the ``with`` block has.

    Parameters
    ----------
    modules : iterable of str
        What the kernels are likely to import; a module that is not there is none of them.
    """
    kernels = Kernels(modules) if sys.platform == "linux" else None

    def manager(file: Path) -> AsyncKernelManager:
        made = AsyncKernelManager(kernel_name="python3", connection_file=str(file))
        if sys.platform != "win32":
            # sockets in a folder of its own: no other process can take a port from the kernel
            made.transport = "ipc"
        if kernels:
            made.provisioner = Forked(
                kernels, kernel_id=file.parent.name, kernel_spec=made.kernel_spec, parent=made
            )
        return made

    try:
        yield manager
    finally:
        if kernels:
            kernels.close()


def _serve(modules: list[str]) -> None:
    """Import, then fork a kernel for each line; end when there are no more."""
    with contextlib.redirect_stdout(sys.stderr):  # the standard output is for answers alone
        for name in ["ipykernel.kernelapp", *modules]:
            with contextlib.suppress(ImportError):
                importlib.import_module(name)
    # what is there by now is shared, and nobody need look through it again
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # a kernel that has ended leaves no zombie
    for line in sys.stdin:
        if pid := os.fork():
            print(pid, flush=True)
        else:
            _run(*json.loads(line))


def _run(arguments: list[str], folder: str, environment: dict[str, str]) -> None:
    """Be a kernel until it ends, which it does when its parent does."""
    from ipykernel.kernelapp import IPKernelApp

    server = os.getppid()
    os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.environ.clear()
    os.environ.update(environment)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    os.chdir(folder)
    sys.path[:1] = environment.get("PYTHONPATH", "").split(os.pathsep)
    IPKernelApp.launch_instance([*arguments, f"--IPKernelApp.parent_handle={server}"])
    os._exit(0)


if __name__ == "__main__":
    _serve(sys.argv[1:])
