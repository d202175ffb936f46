"""The clean parent of the processes that run notebooks: ``python -m gradebox.zygote IMPORTS…``.

It imports once what the notebooks of a course import, and then forks one child for each of them.
A fork takes milliseconds, where a new kernel takes a second and imports everything again. The
parent never runs a cell, so no notebook sees what another one did.

It is given its end of a socket pair as standard input. Each message on it brings the child's end
of another pair; the answer is the child's process id. When the pair closes, the parent ends.
"""

import contextlib
import importlib
import io
import os
import signal
import socket
import sys
from typing import Any

from gradebox.seal import Level, Limits, Sealed, seal
from gradebox.shell import Shell
from gradebox.wire import Gone, Line


def serve(control: socket.socket, shell: Shell) -> None:
    """Fork a child for each request until the grader is gone."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # children are not waited for
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the grader's
    while True:
        request, ends, _, _ = socket.recv_fds(control, 1, 1)
        if not request:
            return
        with socket.socket(fileno=ends[0]) as end:
            pid = os.fork()
            if not pid:
                control.close()
                _run(Line(end), shell)
        control.sendall(pid.to_bytes(8, "big"))


def _run(line: Line, shell: Shell) -> None:
    """Run the cells that the grader sends; never return."""
    try:
        os.setsid()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        line.send(_prepare(line, shell))
        while True:
            line.send(_cell(line.receive(), shell))
    except (Gone, KeyboardInterrupt):
        pass
    finally:
        os._exit(0)


def _prepare(line: Line, shell: Shell) -> dict[str, Any]:
    """Seal this process as the grader's first message says; return what is in force."""
    try:
        sealed = _seal(line.receive(), line.end.fileno(), shell)
    except (OSError, ValueError, TypeError, KeyError) as error:
        line.send({"refused": f"{type(error).__name__}: {error}"})
        raise Gone from error
    sys.path.insert(0, "")
    sys.stdin = io.StringIO()  # at its end already: nobody answers
    shell.capture()
    return {"level": sealed.level, "lacks": sealed.lacks, "folder": sealed.folder}


def _seal(wanted: dict[str, Any], end: int, shell: Shell) -> Sealed:
    limits = Limits(**wanted["limits"])
    shell.outputs.longest = limits.output
    return seal(
        limits,
        wanted["folder"],
        wanted["readable"],
        level=Level(wanted["level"]),
        environment=wanted["environment"],
        keep=[end],
        scratch=wanted["scratch"],
    )


def _cell(message: dict[str, Any], shell: Shell) -> dict[str, Any]:
    try:
        return shell.execute(message["source"])
    except KeyboardInterrupt:  # it came when the cell had just ended
        return {"outputs": shell.outputs.items, "execution_count": None, "ok": False}


def main(names: list[str]) -> None:
    """Import, report that all is ready, and serve."""
    control = socket.socket(fileno=0)
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (1, 2):
        os.dup2(null, stream)
    for name in names:
        with contextlib.suppress(ImportError):  # the notebook that needs it will say so
            importlib.import_module(name)
    shell = Shell.make()
    control.sendall(b"ready")
    serve(control, shell)


if __name__ == "__main__":
    main(sys.argv[1:])
