"""The process of the tests: it holds the instructor's cells, and of the student's only values."""

import builtins
import contextlib
import dis
import math
import os
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from types import CodeType
from typing import Any, NoReturn

import numpy as np
from IPython.display import display

from gradebox import observation
from gradebox.values.channel import Channel
from gradebox.workers.cells import Cell, Interrupts, error_output, result
from gradebox.workers.doubts import Doubts
from gradebox.workers.protocol import Begin, RunTest, Tested, receive, send
from gradebox.workers.shell import Shell, Stream
from gradebox.workers.stubs import Answers, Late, Stub
from gradebox.workers.syntax import PYTHONS, body_of

_NOTHING = object()
_SEEDS = re.compile(r"seed\w*\(")  # a test sets a random generator, which an answer may draw from


def serve_tests(grader: Channel, student: Channel, begin: Begin, shell: Shell) -> NoReturn:
    """Run the tests of one submission, until the grader has enough, which raises ``Gone``."""
    for name in begin.excluded:  # of this process's copy
        Path(name).unlink(missing_ok=True)
    tester = Tester(student, begin.barred, shell)
    while True:
        send(grader, tester.run(receive(grader, None, RunTest)))


class Names(dict[str, Any]):
    """The names of the tests; behind them the student's, as they were when a test first asked."""

    def __init__(self, answers: Answers, shell: Any) -> None:
        super().__init__(__name__="__main__", __builtins__=builtins)
        self._answers = answers
        self._of_ipython = {**shell.user_ns, "display": display}  # magics use more of them
        answers.names = shell.user_ns = self
        self.of_student: set[str] = set()  # what they are to define, as far as the notebook is
        self.begin(())
        shell.get_local_scope = lambda depth: {}  # a magic would ask for all names, to copy them

    def begin(self, pythons: Iterable[str]) -> None:
        """Begin a test: names of Python's own are the student's only where it needs them."""
        self._looked, self._pythons = dict[str, Any](), PYTHONS - {*pythons}

    def _look(self, name: Any) -> Any:
        if name not in self.of_student or name in self._pythons:
            return _NOTHING
        if name not in self._looked:
            self._looked[name] = self._answers.look(name, _NOTHING)
        return self._looked[name]

    def __missing__(self, name: str) -> Any:
        value = self._look(name)
        is_asked = name in self.of_student and name not in self._pythons
        if value is _NOTHING and is_asked:  # a KeyError would be: Python's own
            raise NameError(f"name {name!r} is not defined")
        return self._of_ipython[name] if value is _NOTHING else value

    def __contains__(self, name: object) -> bool:
        is_here = super().__contains__(name) or name in self._of_ipython
        return is_here or self._look(name) is not _NOTHING

    def get(self, name: str, default: Any = None) -> Any:
        """Return the value of a name."""
        return self[name] if name in self else default  # noqa: SIM401 it is this method

    def keys(self) -> Any:
        """Return all names, as ``dir()`` asks for them."""
        return dict.fromkeys([*super().keys(), *filter(self.__contains__, self.of_student)]).keys()

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())


class Tester:
    """Runs the test cells of a submission; the ``student``'s side cannot import what is barred."""

    def __init__(self, student: Channel, barred: Sequence[str], shell: Shell) -> None:
        self._outputs = shell.outputs
        # for both streams: nbgrader gives no points to a cell with stderr
        self._stream = Stream("stdout", shell.outputs)
        self._answers = Answers(student, barred)
        # also where gradebox.observe looks for the student's names
        self._names = observation.names = Names(self._answers, shell)
        self._interrupts = Interrupts(Late)
        self._doubts = Doubts(self._names)
        # those in the cells and in modules beside the notebook: a test may evaluate them
        files = filter(Path.is_file, Path().rglob("*.py*"))  # what is compiled follows 16 bytes
        texts = (file.read_bytes()[16 * (file.suffix == ".pyc") :] for file in files)
        self._texts, sys.dont_write_bytecode = {os.fsdecode(each).strip() for each in texts}, True
        self._written = Path.cwd(), Path(tempfile.gettempdir())  # where cells may write
        self._installed = [Path(folder) for folder in sys.path if folder]
        sys.addaudithook(self._audit)  # it cannot be taken away

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Let no value become code: pickles call what they name, and a text may be an answer."""
        what = ""
        if event == "pickle.find_class":
            what = f"pickle of plain data, got one that names {'.'.join(arguments)}"
        elif event in ("compile", "marshal.loads") and self._may_be_an_answer(*arguments[1:]):
            text = os.fsdecode(arguments[0] or b"").strip()
            if text not in self._texts:
                what = f"text of the test's own to evaluate, got {text[:50]!r}"
        if what:
            raise RuntimeError(f"expected a {what}; a test that reads it cannot run isolated")

    def _may_be_an_answer(self, file: Any = None) -> bool:
        """Return whether a test evaluates it, or it stands in a file that a cell may write."""
        frame = sys._getframe(2)
        # the frame is of no module, or of IPython, which runs a cell that it is given
        if str(file).startswith("<ipython-input") or not dict.get(frame.f_globals, "__spec__"):
            return True
        path = Path(os.fsdecode(file or frame.f_locals.get("bytecode_path") or ""))
        if not path.is_file():  # before all that takes longer
            return False
        within = path.absolute().is_relative_to
        return any(map(within, self._written)) and not any(map(within, self._installed))

    def run(self, message: RunTest) -> Tested:
        """Run one cell, and return what it came to."""
        names, answers, outputs = self._names, self._answers, self._outputs
        for name in message.answers:  # whatever a test calls so is the student's again
            names.pop(name, None)
        names.of_student |= {*message.answers}
        names.begin(message.pythons)
        outputs.start()
        cell = Cell(message.source)
        is_magic = message.source.lstrip().startswith("%%")
        body = Cell(body_of(message.source)) if is_magic else cell
        self._texts |= cell.texts | body.texts
        # never the student's: an answer that raises before it is bound would choose what it means
        first = dict(reversed(_operations(body.parts)))
        names.of_student -= {name for name, operation in first.items() if operation in _BINDS}
        answers.cell = cell.parts
        answers.begin(seeds=bool(_SEEDS.search(message.source)))

        def run() -> Any:
            with self._interrupts.busy():
                return cell.run(names)

        with contextlib.redirect_stdout(self._stream), contextlib.redirect_stderr(self._stream):
            refuses = _is_no_number if message.points else lambda value: False
            score, why, error = result(run, message.points, outputs, refuses)
        # the answer that is still to come would be taken for that to the next question
        if isinstance(error, Late) and answers.waits:
            answers.gone = "a call by the test could not be interrupted"
        answers.refuse_swallowed()
        doubts: list[str] = []
        if error is not None or answers.refused:
            line = answers.failed_in or cell.line(error) or math.inf  # else all statements ran
            left = [part for part in body.statements if (part.end_lineno or 0) >= line]
            with contextlib.suppress(Exception):  # of odd objects, which are asked for their parts
                self._doubts.add(left)
        else:
            anew = (name for name, operation in first.items() if operation in _BINDS)
            with contextlib.suppress(Exception):
                doubts = self._doubts.passed(body.statements, anew)
        if answers.refused:  # even if the test caught it: it did not expect this
            score = 0.0
            if not why:
                why = answers.refused[0]
                outputs.add("error", **error_output(RuntimeError(why)))
        late = answers.late or answers.waits
        said = score, outputs.items, why, answers.refused[:5], late, answers.gone
        return Tested(*said, doubts=doubts if score else [])


_BINDS = ("STORE_NAME", "STORE_GLOBAL")


def _operations(parts: Iterable[CodeType]) -> list[tuple[str, str]]:
    found = []
    for instruction in chain.from_iterable(map(dis.get_instructions, parts)):
        operation, value = instruction.opname, instruction.argval
        if operation.endswith(("_NAME", "_GLOBAL")) and operation != "IMPORT_NAME":
            found.append((value, operation))
        elif isinstance(value, CodeType):  # of a function, which may say `global`
            inner = dict(reversed(_operations([value]))).items()
            found += [each for each in inner if each[1] == "STORE_GLOBAL"]
    return found


def _is_no_number(value: Any) -> bool:
    is_complex = isinstance(value, complex | np.complexfloating)
    return is_complex or type(value) is Stub or type(value).__name__ in ("ndarray", "Tensor")
