"""Which sandbox a notebook runs in: one of the kernel's, or one of another distribution."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Protocol

from gradebox.sandbox import probe
from gradebox.sandbox.seal import Level, NotSealed

KERNEL = ("kernel", Level.NAMESPACES, Level.LANDLOCK)
INSTALL = "for notebooks that need NumPy and Python alone, install gradebox-wasm"
TRUST = "if you trust every submission, set WarmExecute.allow_unsealed = True, or"
ALLOW = f"{TRUST} GRADEBOX_ALLOW_UNSEALED=yes in the environment"


class Sandbox(Protocol):
    """A sandbox beside those of the kernel, made with nbgrader's configuration, for any thread.

    An entry point of ``gradebox.sandboxes`` is its class, see ``gradebox.workers.pool.Modules``.
    """

    def start(self, modules: Any) -> None:
        """Import the modules of an assignment beside all else; what fails is told later."""

    def obstacle(self, modules: Any, imports: Sequence[str]) -> str:
        """Return why a notebook with imports of ``module`` or ``module:name`` cannot run in it."""

    def running(
        self, modules: Any, begin: Any, of_tests: Any, **more: Any
    ) -> AbstractContextManager[Any]:
        """Return a context with a :class:`gradebox.workers.notebook.Notebook` made with ``more``.

        Each side is told a :class:`gradebox.workers.protocol.Begin`, or None if it is not there.
        """


@cache
def _entries() -> tuple[EntryPoint, ...]:
    return tuple(entry_points(group="gradebox.sandboxes"))


def installed(wanted: str, config: Any) -> dict[str, Sandbox]:
    """Return the sandboxes of other distributions by name: that which is wanted, or all (auto)."""
    entries = [each for each in _entries() if wanted in ("auto", each.name)]
    return {each.name: each.load()(config=config) for each in entries}


def choose(
    wanted: str = "auto",
    allow_unsealed: bool = False,
    modules: Any = None,
    imports: Sequence[str] = (),
    config: Any = None,
) -> Level | Sandbox:
    """Return the level of the kernel, or the other sandbox, in which a notebook runs.

    ``"kernel"`` is the strongest level that the kernel offers, and ``"auto"`` that one, or else an
    installed sandbox. One that is not to be had, or none that was not allowed, is ``NotSealed``.
    """
    outcomes: dict[str, str] = {}
    if wanted in ("auto", *KERNEL):
        result = probe.survey()
        outcomes |= result.tried
        level = result.level if wanted in ("auto", "kernel") else Level(wanted)
        if result.tried.get(level, "").startswith("works"):
            return level
        if result.level is not Level.NONE:
            why = f"expected the level {wanted}, got {result.level} ({_listed(result.tried)})"
            raise NotSealed(f"{why}; set WarmExecute.sandbox = 'auto' for the strongest there is")
    others = {} if wanted in (*KERNEL, Level.NONE) else installed(wanted, config)
    if wanted not in ("auto", *KERNEL, Level.NONE, *others):
        names = ", ".join(["auto", *KERNEL, Level.NONE, *installed("auto", config)])
        raise NotSealed(f"expected the sandbox {names}, got {wanted!r}; {INSTALL}")
    for name, sandbox in others.items():
        outcomes[name] = sandbox.obstacle(modules, imports)
        if not outcomes[name]:
            return sandbox
    if wanted in others:
        raise NotSealed(f"a notebook cannot run in the sandbox {wanted!r}: {outcomes[wanted]}")
    if allow_unsealed:
        return Level.NONE
    if wanted == Level.NONE:
        raise NotSealed(f"expected a level that seals, got none; {ALLOW}")
    lacking = "" if others else f"{INSTALL}; or "
    linux = "user namespaces (sysctl user.max_user_namespaces) or Landlock (Linux 5.13 or later)"
    why = f"notebooks cannot be sealed here ({_listed(outcomes)}); {lacking}grade in a container"
    raise NotSealed(f"{why}, or on Linux with {linux}; or, {ALLOW}")


def _listed(outcomes: dict[str, str]) -> str:
    return "; ".join(f"{name}: {outcome}" for name, outcome in outcomes.items())
