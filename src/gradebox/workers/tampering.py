"""Evidence of tampering: what tests in a student's process use, compared with what it was at first.

A fork begins with the objects of its clean parent. Whatever is another object when the tests run
was put there since. It is evidence, no proof: who owns the process can also deceive who compares.
"""

import ast
import builtins
import contextlib
import gc
import operator
import os
import pickle
import re
import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from gc import get_referents
from itertools import chain, starmap
from pathlib import Path
from traceback import walk_stack
from types import FunctionType
from typing import Any

import numpy as np

from gradebox.workers.shell import Shell, text_of
from gradebox.workers.syntax import DECIDES, REACHES

_WATCHED = (  # packages that tests and gradebox use, whatever the notebook imports
    *("_pytest", "ast", "asyncio", "gradebox", "inspect", "IPython", "linecache", "math"),
    *("operator", "pytest", "sys", "traceback", "unittest"),
)
LARGE = 300  # of a package with so many modules those that a notebook names are watched
# what a function does; it can be changed and the function be the same object
_STATE = operator.attrgetter("__code__", "__defaults__", "__kwdefaults__")
_DECIDES = re.compile(rf"{DECIDES}|equals?|all|any")
_PARTS_OF = type.__dict__["__dict__"].__get__  # of a class, whatever its own class says


class Builtins:
    """Python's own names; inside this context what the student's code put there is in force."""

    def __init__(self) -> None:
        self._names = vars(builtins)
        self._first = self._names.copy()
        # all in C, and kept here: this is done after each call of a function of the student's
        self._all, self._map, self._is = all, map, operator.is_
        self._of_student: dict[str, Any] = {}
        self._depth = 0
        self.changed: list[str] = []  # the names that had lost their meaning

    def __enter__(self) -> None:
        self._depth += 1
        self._names.update(self._of_student)

    def __exit__(self, *exception: object) -> None:
        self._depth -= 1
        if self._depth:  # a function of the test's, called by the student's, has called another
            return
        # here any of Python's own names may be another's, so that none is used
        names, first = self._names, self._first
        if self._all(self._map(self._is, self._map(names.get, first), first.values())):
            self.changed, self._of_student = [], {}
            return
        self.changed = [name for name in first if names.get(name) is not first[name]]
        self._of_student = {name: names[name] for name in self.changed if name in names}
        names.update(first)


class Pristine:
    """The functions and classes of packages, and what the interpreter and IPython call."""

    def __init__(self, modules: Iterable[str], shell: Shell) -> None:
        named = {*_WATCHED, *(name.partition(":")[0] for name in modules)}
        packages = Counter(name.partition(".")[0] for name in sys.modules)
        small = {top for name in named if packages[top := name.partition(".")[0]] < LARGE}
        self._shell = shell
        self._modules = {
            name: module
            for name, module in [*sys.modules.items()]
            if module is not None and (name in named or name.partition(".")[0] in small)
        }
        owners: dict[str, Any] = {"get_ipython()": shell}
        owners |= {f"get_ipython().{n}": getattr(shell, n) for n in ("displayhook", "display_pub")}
        for name, module in self._modules.items():
            classes = [part for part in vars(module).values() if issubclass(type(part), type)]
            owners |= {f"{name}.{c.__name__}": c for c in classes if c.__module__ == name}
            owners[name] = module
        self._owners = [(label, vars(owner), {*vars(owner)}) for label, owner in owners.items()]
        self._parts = [
            (f"{label}.{name}", owner, name, value, function, function and _kept(function))
            for label, owner in owners.items()
            for name, value, function in _parts(owner)
        ]
        self._functions = [function for *_, function, _ in self._parts if function]
        self._known, self._held = {*self._functions}, get_referents(*self._functions)
        keywords = (function.__kwdefaults__ for function in self._functions)
        self._keywords = [(found, {**found}) for found in keywords if found]
        self._packages = {name.partition(".")[0] for name in self._modules}

    def changed(self) -> list[str]:
        """Return what is not as it was, such as ``numpy.allclose``; put back what is gradebox's."""
        changed = [n for n, module in self._modules.items() if sys.modules.get(n) is not module]
        # all at once: to ask a function for a part of it is an event, which audit hooks hear
        held = get_referents(*self._functions)
        are_same = len(held) == len(self._held) and all(map(operator.is_, held, self._held))
        are_same = are_same and all(starmap(operator.eq, self._keywords))
        for label, owner, name, value, function, state in self._parts:
            now = owner.__dict__.get(name)
            is_other = now is not value and not self._is_of_package(now, name)
            if is_other or (function and not are_same and _STATE(function) != state):
                changed.append(label)
                if label.startswith("gradebox."):
                    setattr(owner, name, value)
                    if function:
                        _put_back(function, state)
        if not changed:  # what a function had not been asked for before, such as its __dict__
            self._held = held
        for label, names, known in self._owners:
            if len(names) != len(known):
                added = [name for name in names.keys() - known if _is_of_notebook(names[name])]
                changed += [f"{label}.{name}" for name in added]
        return [*changed, *_added(self._shell)]

    def deciding(self) -> set[str]:
        """Return by which names classes of the notebook decide how their objects compare."""
        found, own, here = set[str](), self._shell.user_ns, str(Path.cwd())
        # what was there before the first cell is frozen, and not among these
        for kind in gc.get_objects():
            parts = _PARTS_OF(kind) if issubclass(type(kind), type) else {}
            for name, value in parts.items():
                is_own = parts.get("__module__") == "__main__"
                if type(value) is FunctionType:  # not of functools, nor made by dataclasses
                    made_by = value.__code__.co_filename, value.__code__.co_name
                    is_own = value.__globals__ is own and made_by != ("<string>", name)
                    is_own |= str(value.__globals__.get("__file__")).startswith(here)
                if is_own and isinstance(name, str) and _DECIDES.fullmatch(name):
                    found.add(name)
        return found

    def _is_of_package(self, value: Any, name: str) -> bool:
        # by the package itself, which has made a function anew, such as for a backend; or by an
        # installed one in place of the function, as torch does with inspect.getfile
        if type(value) is not FunctionType or value in self._known:
            return False
        functions = [value]
        for each in functions:  # and what a wrapper such as ``numpy.errstate()(f)`` calls
            held = get_referents(*each.__closure__ or ())
            functions += {f for f in held if type(f) is FunctionType} - {*functions}
            module, file = (str(each.__globals__.get(n)) for n in ("__name__", "__file__"))
            is_in_place = each is not value or (name in value.__name__ and not value.__closure__)
            is_installed = is_in_place and file.startswith((sys.prefix, sys.base_prefix))
            if not is_installed and module.partition(".")[0] not in self._packages:
                return False
        return value.__code__.co_filename == value.__globals__.get("__file__")


def _parts(owner: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield what decides what others do, with the Python function that it is or has behind it."""
    kinds = (float,) if isinstance(owner, type) else ()  # of classes, how near is near enough
    for name, value in vars(owner).items():
        kind = type(value)
        if callable(value) or hasattr(kind, "__get__") or kind in kinds:
            # some functions of NumPy's have another one behind them
            function = value._implementation if hasattr(kind, "_implementation") else value
            yield name, value, function if type(function) is FunctionType else None


def _kept(function: Any) -> Any:
    code, defaults, keywords = _STATE(function)
    return code, defaults, keywords and {**keywords}  # a copy: these can be changed in place


def _put_back(function: Any, state: Any) -> None:
    function.__code__, function.__defaults__, keywords = state
    function.__kwdefaults__ = keywords and {**keywords}


def _is_of_notebook(value: Any) -> bool:
    return "__main__" in (getattr(value, "__module__", None), type(value).__module__)


def _added(shell: Any) -> Iterator[str]:
    """Yield what is called beside a test: hooks of the notebook's, and a thread that runs it."""
    if sys.gettrace() is not None or sys.getprofile() is not None:
        yield "sys.settrace"
    lists = ("ast_transformers", "input_transformers_post", "custom_exceptions")
    yield from (f"get_ipython().{name}" for name in lists if getattr(shell, name))
    hooks: dict[str, Iterable[Any]] = {
        "sys.meta_path": sys.meta_path,
        "sys.path_hooks": sys.path_hooks,
        "gc.callbacks": gc.callbacks,
        "signal.signal": map(signal.getsignal, range(1, signal.NSIG)),
        "get_ipython().events": chain.from_iterable(shell.events.callbacks.values()),
        "get_ipython().input_transformers_cleanup": shell.input_transformers_cleanup,
    }
    yield from (name for name, functions in hooks.items() if any(map(_is_of_notebook, functions)))
    for thread, frame in sys._current_frames().items():
        frames = walk_stack(frame) if thread != threading.get_ident() else ()
        if any(inner.f_globals.get("__name__") == "__main__" for inner, _ in frames):
            yield "threading.enumerate"


def watch_calls(names: dict[str, Any]) -> set[str]:
    """Return a set that gets what cells with these names reach from now on, by calls and texts."""
    calls = "compile", "sys._getframe", "sys._current_frames", "gc.get_objects", "gc.get_referrers"
    found = set[str]()

    def audit(event: str, arguments: tuple[Any, ...]) -> None:
        if event in calls:
            try:
                raise LookupError  # for a frame; sys._getframe is such a call
            except LookupError as error:
                frame: Any = error.__traceback__ and error.__traceback__.tb_frame.f_back
            # a thread may begin with such a call, and has no frame
            file = frame.f_code.co_filename if frame else ""
            if (not frame or frame.f_globals is names) and not file.startswith("<test cell"):
                name = event.partition(".")[2]
                found.update([name] if name else REACHES.findall(_text(*arguments)))

    sys.addaudithook(audit)  # it cannot be taken away
    return found


def _text(source: Any = "", *_: Any) -> str:
    with contextlib.suppress(Exception):  # a tree may be no program
        return ast.unparse(source) if isinstance(source, ast.AST) else os.fsdecode(source or b"")
    return ""


def watch_folder(given: Iterable[str]) -> Callable[[], list[str]]:
    """Return a function that finds which of the instructor's files here are not what they are now.

    Of modules it is also what was imported under their names. And it says if here is elsewhere.
    """
    folder, known = Path.cwd(), {*sys.modules}
    files = {name: folder / name for name in given if (folder / name).is_file()}

    def state(file: Path) -> int | bytes:
        return file.stat().st_ctime_ns or file.read_bytes()  # nobody can set the time; WASM has 0

    states = {name: state(file) for name, file in files.items()}

    def is_changed(name: str) -> bool:
        file, place = files[name], name.removesuffix(".py").replace("/", ".")
        module = None if place in known or place == name else sys.modules.get(place)
        names = {"__file__": str(file)} if module is None else vars(module)
        is_other = names.get("__file__") != str(file) or any(map(_is_of_notebook, names.values()))
        return is_other or not file.is_file() or state(file) != states[name]

    return lambda: [*filter(is_changed, files)] + ["the working folder"] * (Path.cwd() != folder)


class Helpers:
    """What the instructor's locked cells had defined; functions and classes are put back."""

    def __init__(self, names: dict[str, Any]) -> None:
        self._names, self._parts = names, dict[str, tuple[Any, Any]]()

    def keep(self, names: Iterable[str]) -> None:
        """Keep what these names mean now."""
        values = [(name, self._names[name]) for name in names if name in self._names]
        self._parts |= {name: (value, _state(value)) for name, value in values}

    def put_back(self) -> list[str]:
        """Give the names their meaning back; return those that had lost it."""
        changed = []
        for name, (value, state) in self._parts.items():
            if self._names.get(name) is not value or _state(value) != state:
                changed.append(name)
                self._names[name] = value
                if type(value) is FunctionType:
                    _put_back(value, state)
                for part, content in state.items() if isinstance(value, type) else ():
                    if vars(value).get(part) is not content:
                        setattr(value, part, content)
        return changed


def _state(value: Any) -> Any:
    if isinstance(value, type):
        return {name: part for name, part in vars(value).items() if callable(part)}
    if type(value) in (list, dict, set, np.ndarray):  # not compared where no pickle holds it
        return text_of(value, lambda value: str(hash(pickle.dumps(value))))
    return _kept(value) if type(value) is FunctionType else None
