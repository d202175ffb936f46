"""The fork server: it imports once what the notebooks of a course import, and forks.

Its command is ``python -m gradebox.workers.server IMPORTS…``. A fork takes milliseconds, where a
new kernel takes a second and imports everything again. The server never runs a cell, so no notebook
sees what another one did.

It is given its end of a socket pair as standard input. Each request on it is a
:class:`~gradebox.workers.protocol.Fork`, and the answer is the child's process id. A fork of this
server, which has imported the barred modules too, serves as well: the processes of the tests are
*its* forks. When the pair closes, the server ends.
"""

import argparse
import contextlib
import os
import signal
import socket
import sys

from gradebox.sandbox.filesystem import TooMuch
from gradebox.sandbox.seal import Level, Limits, Sealed, fork, seal
from gradebox.values.channel import Channel, Gone
from gradebox.workers.imported import Imported
from gradebox.workers.protocol import Began, Begin, Fork, Refused, TestSettings, receive, send
from gradebox.workers.student import StudentProcess
from gradebox.workers.tester import bar_pickles, serve_template


class Server:
    """Forks a child for each request.

    Parameters
    ----------
    imported : Imported
        The modules that are here already.
    prepare : str
        Python that is run once in the server of the tests.
    """

    def __init__(self, imported: Imported, prepare: str = "") -> None:
        self._imported, self._prepare_tests = imported, prepare

    def serve(self, control: socket.socket) -> None:
        """Fork a child for each request until the grader is gone."""
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # children are not waited for
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the grader's
        self._imported.freeze()
        control.sendall(b"ready")
        while True:
            request, handles, _, _ = socket.recv_fds(control, 1, 2)
            if not request:
                return None
            with contextlib.ExitStack() as stack:
                ends = [stack.enter_context(socket.socket(fileno=handle)) for handle in handles]
                level = Level.NAMESPACES if request == Fork.NAMESPACES else Level.LANDLOCK
                pid = fork(level)
                if not pid:
                    control.close()  # a child must not ask for forks
                    if request == Fork.SERVER:
                        return self._serve_all(ends[0])
                    self._run(*ends)
            control.sendall(pid.to_bytes(8, "big"))

    def _serve_all(self, control: socket.socket) -> None:
        """Fork the processes that run test cells, which may import the barred modules."""
        self._imported.admit_all(self._prepare_tests)
        self.serve(control)

    def _run(self, end: socket.socket, other: socket.socket | None = None) -> None:
        """Be what the grader says; never return."""
        line = Channel(end)
        try:
            os.setsid()  # before it is sealed: Landlock's filter refuses it, and killpg needs it
            # while it is ignored the kernel keeps no exit status, and subprocess reports 0
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            begin = receive(line, None, Begin)
            sealed = self._prepare(line, other, begin)
            send(line, Began(sealed.level, list(sealed.lacks), sealed.folder))
            if begin.tests is not None:
                bar_pickles()  # before any test: an audit hook cannot be taken away
                longest = self._imported.shell.outputs.longest
                serve_template(end, TestSettings(**begin.tests), longest)
            assert other is not None
            tests = Channel(other)
            StudentProcess(line, tests, self._imported).serve()
        except (Gone, KeyboardInterrupt):
            pass
        finally:
            os._exit(0)

    def _prepare(self, line: Channel, other: socket.socket | None, begin: Begin) -> Sealed:
        """Seal this process as the grader's first message says; return what is in force."""
        ends = [line.fileno(), *([] if other is None else [other.fileno()])]
        try:
            sealed = self._seal(begin, sorted(ends))
        except (OSError, ValueError, TypeError) as error:
            is_plain = isinstance(error, TooMuch)
            send(
                line, Refused(f"{'' if is_plain else type(error).__name__ + ': '}{error}", is_plain)
            )
            raise Gone from error
        self._imported.begin()
        return sealed

    def _seal(self, begin: Begin, ends: list[int]) -> Sealed:
        limits = Limits(**begin.limits)
        self._imported.shell.outputs.longest = limits.output
        return seal(
            limits,
            begin.folder,
            begin.readable,
            level=Level(begin.level),
            environment=begin.environment,
            keep=ends,
            scratch=begin.scratch,
            hidden=self._imported.barrier.files(),
            shared=begin.tests is not None,
        )


def main(arguments: list[str]) -> None:
    """Import, report that all is ready, and serve."""
    parser = argparse.ArgumentParser(prog="python -m gradebox.workers.server", description=__doc__)
    parser.add_argument("imports", nargs="*", metavar="MODULE")
    parser.add_argument("--banned", action="append", default=[], metavar="MODULE")
    parser.add_argument("--stubbed", action="append", default=[], metavar="MODULE")
    parser.add_argument("--prepare", default="", metavar="PYTHON")
    options = parser.parse_args(arguments)
    control = socket.socket(fileno=os.dup(0))
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):  # all taken, so that no end of a line gets one of these numbers
        os.dup2(null, stream)
    imported = Imported(options.imports, options.banned, options.stubbed)
    Server(imported, options.prepare).serve(control)


if __name__ == "__main__":
    main(sys.argv[1:])
