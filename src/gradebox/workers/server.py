"""The fork server: it imports once what the notebooks of a course import, and forks.

Its argument is JSON: what is imported, banned and stubbed. It never runs a cell, so no notebook
sees what another one did. Each request on its standard input, a socket, is a
:class:`~gradebox.workers.protocol.Fork`; the answer is the child's process id. Those of the tests
are forks of a fork that has the barred modules, too.
"""

import json
import os
import signal
import socket
import sys
from typing import Any

from gradebox.sandbox import linux
from gradebox.sandbox.filesystem import TooMuch
from gradebox.sandbox.seal import Level, Limits, fork, seal
from gradebox.values.channel import Channel, Gone
from gradebox.workers.imported import Imported
from gradebox.workers.protocol import Began, Begin, Fork, receive, send
from gradebox.workers.student import Student
from gradebox.workers.tester import serve_tests


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
            return
        ends = [socket.socket(fileno=handle) for handle in handles]
        pid = fork(Level.NAMESPACES if request == Fork.NAMESPACES else Level.LANDLOCK)
        if not pid:
            control.close()  # a child must not ask for forks
            if request != Fork.SERVER:
                _run(imported, ends)
            imported.admit_all(json.loads(ends[0].makefile("rb", buffering=0).readline()))
            serve(ends[0], imported)
            return
        for end in ends:
            end.close()
        control.sendall(pid.to_bytes(4, "big"))


def _run(imported: Imported, ends: list[socket.socket]) -> None:
    """Be what the grader says, sealed as its first message says, and exit."""
    try:
        os.setsid()  # before it is sealed: Landlock's filter refuses it, and killpg needs it
        line, other = map(Channel, ends)
        # while it is ignored the kernel keeps no exit status, and subprocess reports 0
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        begin = receive(line, None, Begin)
        own: Any = {name: vars(begin)[name] for name in ("environment", "scratch")}
        own |= {"keep": [end.fileno() for end in ends], "hidden": imported.barrier.files()}
        try:
            limits, level = Limits(**begin.limits), Level(begin.level)
            seal(limits, begin.folder, begin.readable, level=level, **own)
            if begin.of_tests and level != Level.NONE:
                linux.inspectable(False)  # a test may run a text of the student's as a program
        except TooMuch as error:
            return send(line, Began(str(error), is_of_student=True))
        except (OSError, ValueError, TypeError) as error:
            return send(line, Began(f"{type(error).__name__}: {error}"))
        imported.shell.outputs.longest = limits.output
        imported.begin()
        send(line, Began())
        if begin.of_tests:
            serve_tests(line, other, begin, imported.shell)
        Student(other, imported, begin.given).serve(line)
    except (Gone, KeyboardInterrupt):
        pass
    finally:
        os._exit(0)


if __name__ == "__main__":
    _control, _null = socket.socket(fileno=os.dup(0)), os.open(os.devnull, os.O_RDWR)
    for _stream in (0, 1, 2):  # all taken, so that no end of a line gets one of these numbers
        os.dup2(_null, _stream)
    serve(_control, Imported(*json.loads(sys.argv[1])))
