"""What is imported once, before the first notebook, so that none waits for it."""

import contextlib
import gc
import importlib
import io
import sys
from collections.abc import Iterable, Sequence

from gradebox.sandbox.imports import Barrier
from gradebox.workers.shell import Shell
from gradebox.workers.tampering import Pristine


class Imported:
    """The modules of an assignment, ``module`` or ``module:name``, where no cell has run.

    A student's side does not get what is banned or stubbed.
    """

    def __init__(
        self, imports: Sequence[str], banned: Sequence[str] = (), stubbed: Sequence[str] = ()
    ) -> None:
        self._imports, self.barrier = imports, Barrier(banned, stubbed)
        sys.meta_path.insert(0, self.barrier)
        _import(name for name in imports if not self.barrier.bars(name.partition(":")[0]))
        self.shell = Shell.make()
        self.pristine = Pristine(imports, self.shell)

    def admit_all(self, prepare: str) -> None:
        """Import the barred modules too, where the tests will run, and run what prepares them."""
        sys.meta_path.remove(self.barrier)
        _import(name for name in self._imports if self.barrier.bars(name.partition(":")[0]))
        # its files are hidden from a student's side; the tests may read them
        self.barrier = Barrier((), ())
        with contextlib.suppress(Exception):  # the test that needs it does without
            exec(prepare, {})

    def freeze(self) -> None:
        """Leave what is here out of later collections, which would copy it."""
        gc.collect()
        gc.freeze()

    def begin(self) -> None:
        """Let cells run from now on: import from the working folder, and gather what they show."""
        sys.path.insert(0, "")  # not before: the grader's folder could be imported from
        sys.stdin = io.StringIO()  # at its end already: nobody answers
        self.shell.capture()


def _import(names: Iterable[str]) -> None:
    for name in names:
        # the notebook that needs it will say so
        with contextlib.suppress(ImportError, AttributeError):
            module, _, attribute = name.partition(":")
            found = importlib.import_module(module)
            if attribute:
                getattr(found, attribute)
    if "matplotlib" not in sys.modules:
        return
    # a figure, so that no notebook has to read fonts and learn to set formulas; without pyplot,
    # whose figures and settings are left as they are
    with contextlib.suppress(Exception):  # a matplotlib that cannot draw is the notebook's matter
        figure = importlib.import_module("matplotlib.figure").Figure((1, 1))
        axes = figure.subplots()
        axes.loglog([1, 10], [1, 10], label="$x^2$")
        axes.legend()
        figure.savefig(io.BytesIO(), format="png", bbox_inches="tight")
