"""The sandbox as gradebox finds it: an entry point of the group ``gradebox.sandboxes``."""

import contextlib
import threading
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import wasmtime
from traitlets import List, Unicode
from traitlets.config import Configurable

from gradebox.sandbox.imports import Barrier
from gradebox.values.channel import Gone
from gradebox.workers import pool
from gradebox.workers.client import Notebook
from gradebox.workers.protocol import Begin
from gradebox_wasm.modules import Modules
from gradebox_wasm.notebook import NotebookInInstances
from gradebox_wasm.template import Template

_templates: dict[Any, Template] = {}
_making: dict[Any, threading.Lock] = defaultdict(threading.Lock)


class Wasm(Configurable):
    """Python as WebAssembly; see :class:`gradebox.sandbox.probe.Sandbox`."""

    substitutes = List(
        Unicode(),
        help="Folders with modules in Python alone that take the places of those that are "
        "installed, such as a part of SciPy; from the folder of the course on.",
    ).tag(config=True)

    def obstacle(self, modules: pool.Modules, imports: Sequence[str]) -> str:
        """Return why a notebook cannot run in it; nothing if it can."""
        try:
            name = self._template(modules, tests=True).obstacle(imports)
        except (OSError, Gone, wasmtime.WasmtimeError) as error:
            return f"the interpreter cannot run here: {error}"
        return f"there is no {name}, which is compiled for this machine" if name else ""

    def start(self, modules: pool.Modules) -> None:
        """Make both templates beside all else; what goes wrong is told to who asks for them."""

        def make(tests: bool) -> None:
            with contextlib.suppress(Exception):
                self._template(modules, tests)

        for tests in (True, False):
            threading.Thread(target=make, args=(tests,), daemon=True).start()

    @contextmanager
    def running(
        self, modules: pool.Modules, begin: Begin, of_tests: Begin | None, **more: Any
    ) -> Iterator[Notebook]:
        """Make the instances of one notebook; at the end they are gone."""
        with contextlib.ExitStack() as stack:
            tests = None
            if of_tests is not None:
                tests = stack.enter_context(self._template(modules, tests=True).instance(of_tests))
            student = stack.enter_context(self._template(modules, tests=False).instance(begin))
            yield NotebookInInstances(student, tests, **more)

    def _template(self, modules: pool.Modules, tests: bool) -> Template:
        """Return where the instances of one kind begin, made when it is first asked for."""
        root = Path(self.config.get("CourseDirectory", {}).get("root", "")).absolute()
        substitutes = tuple(str(root / folder) for folder in self.substitutes)
        key = modules, substitutes, tests
        with _making[key]:
            if key not in _templates:
                imports, banned, stubbed, prepare = modules
                settings: dict[str, Any] = {"imports": imports, "tests": tests}
                settings |= {"banned": banned, "stubbed": stubbed, "prepare": prepare}
                hidden = [] if tests else Barrier(banned, stubbed).files()
                _templates[key] = Template(Modules(substitutes, hidden), settings)
            return _templates[key]
