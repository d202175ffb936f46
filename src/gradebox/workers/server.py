"""The fork server: it imports once what the notebooks of a course import, and forks.

Its argument is JSON: what is imported, banned and stubbed. A fork takes milliseconds, where a
new kernel takes a second and imports everything again. The server never runs a cell, so no notebook
sees what another one did.

It is given its end of a socket pair as standard input. Each request on it is a
:class:`~gradebox.workers.protocol.Fork`; the child sends one byte, with which the kernel tells the
grader its process id. A fork of this server, which has imported the barred modules too, serves as
well: the processes of the tests are *its* forks. When the pair closes, the server ends.
"""

import json
import os
import signal
import socket
import sys
from typing import NoReturn

from gradebox.sandbox.filesystem import TooMuch
from gradebox.sandbox.seal import Level, Limits, fork, seal
from gradebox.values.channel import Channel, Gone
from gradebox.workers.imported import Imported
from gradebox.workers.protocol import Began, Begin, Fork, receive, send
from gradebox.workers.student import StudentProcess
from gradebox.workers.tester import bar_pickles, serve_template


def serve(control: socket.socket, imported: Imported) -> None:
    """Fork a child for each request on the control, until the grader is gone.

    The server of the tests may import the barred modules, and first runs what prepares them.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # children are not waited for
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the grader's
    imported.freeze()
    control.sendall(b"ready")
    while True:
        request, handles, _, _ = socket.recv_fds(control, 1, 2)
        if not request:
            return None
        ends = [socket.socket(fileno=handle) for handle in handles]
        if not fork(Level.NAMESPACES if request == Fork.NAMESPACES else Level.LANDLOCK):
            control.close()  # a child must not ask for forks
            if request != Fork.SERVER:
                _run(imported, ends)
            imported.admit_all(json.loads(ends[0].makefile("rb", buffering=0).readline()))
            return serve(ends[0], imported)
        for end in ends:
            end.close()


def _run(imported: Imported, ends: list[socket.socket]) -> NoReturn:
    """Be what the grader says, sealed as its first message says."""
    try:
        os.setsid()  # before it is sealed: Landlock's filter refuses it, and killpg needs it
        ends[0].sendall(b"h")
        line, *others = map(Channel, ends)
        # while it is ignored the kernel keeps no exit status, and subprocess reports 0
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        begin = receive(line, None, Begin)
        try:
            limits = Limits(**begin.limits)
            seal(
                limits,
                begin.folder,
                begin.readable,
                level=Level(begin.level),
                environment=begin.environment,
                keep=[end.fileno() for end in ends],
                scratch=begin.scratch,
                hidden=imported.barrier.files(),
                shared=begin.of_tests,
            )
        except (OSError, ValueError, TypeError) as error:
            is_plain = isinstance(error, TooMuch)
            why = str(error) if is_plain else f"{type(error).__name__}: {error}"
            send(line, Began(why, is_plain))
            raise Gone from error
        imported.shell.outputs.longest = limits.output
        imported.begin()
        send(line, Began())
        if begin.of_tests:
            bar_pickles()  # before any test: an audit hook cannot be taken away
            serve_template(line.end, begin, imported.shell)
        StudentProcess(line, others[0], imported).serve()
    except (Gone, KeyboardInterrupt):
        pass
    finally:
        os._exit(0)


def main(arguments: list[str]) -> None:
    """Import, report that all is ready, and serve."""
    imports, banned, stubbed = json.loads(arguments[0])
    control = socket.socket(fileno=os.dup(0))
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):  # all taken, so that no end of a line gets one of these numbers
        os.dup2(null, stream)
    serve(control, Imported(imports, banned, stubbed))


if __name__ == "__main__":
    main(sys.argv[1:])
