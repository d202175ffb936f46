"""Try out how strongly this machine seals a process, and choose the sandbox of a notebook.

Nothing is believed of a kernel: a fork is sealed and tries to break out, before the first notebook.
``python -m gradebox.sandbox.probe`` prints what it offers; other distributions may offer more.
"""

import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from gradebox.sandbox import linux
from gradebox.sandbox.seal import Level, Limits, NotSealed, fork, seal

KERNEL = ("kernel", Level.NAMESPACES, Level.LANDLOCK)
INSTALL = "for notebooks that need NumPy and Python alone, install gradebox-wasm"
ALLOW = "if you trust every submission, set GRADEBOX_ALLOW_UNSEALED=yes in the environment"
_PROBE = 1800.0  # seconds of wall time, against a probe that hangs; one that fails ends at once
_surveying = threading.Lock()


@dataclass(frozen=True)
class Survey:
    """The strongest level of this machine, and what came of those that were tried."""

    level: Level
    tried: dict[str, str]

    def __str__(self) -> str:
        lines = (f"\n  {name}: {outcome}" for name, outcome in self.tried.items())
        return f"sealed by: {self.level}{''.join(lines)}"


def survey() -> Survey:
    """Return what this machine offers; it is tried out in a process of its own, once."""
    with _surveying:
        return _survey()


@cache
def _survey() -> Survey:
    if not sys.platform.startswith("linux"):
        outcome = f"expected Linux, got {sys.platform}"
        return Survey(Level.NONE, dict.fromkeys((Level.NAMESPACES, Level.LANDLOCK), outcome))
    # a process of its own, since fork is for where no other thread runs. With -P nothing is
    # imported from the working folder, where a json.py may lie
    command = [sys.executable, "-P", "-m", "gradebox.sandbox.probe", "--json"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PROBE, check=True)
        tried = {str(name): str(outcome) for name, outcome in json.loads(done.stdout).items()}
    except (OSError, ValueError, AttributeError, subprocess.SubprocessError) as error:
        return Survey(Level.NONE, {"probe": f"{' '.join(command)} failed: {error}"})
    works = (level for level in Level if tried.get(level, "").startswith("works"))
    return Survey(next(works, Level.NONE), tried)


def _tried(level: Level) -> str:
    """Seal a fork and let it try to break out; return ``works`` or what went wrong."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)  # as open to other users as where notebooks run
        work, scratch, secret = (Path(name, each) for each in ("work", "scratch", "secret"))
        work.mkdir()
        scratch.mkdir()
        secret.write_text("secret")
        reading, writing = os.pipe()
        pid = fork(level)
        if not pid:
            try:
                os.setsid()
                lacks = seal(Limits(), work, level=level, keep=[writing], scratch=scratch)
                outcome = _breach(secret) or "; ".join(("works", *lacks))
            # the child must not return: on its way out it would remove its parent's folders
            except BaseException as error:
                outcome = f"refused: {error}"
            os.write(writing, outcome.encode())
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as answer:
            outcome = answer.read()
        os.waitpid(pid, 0)
        if secret.read_text() != "secret":
            return "writes files outside"
        return outcome or "the sealed process ended without a word"


def _breach(secret: Path) -> str:
    """Return which barrier does not hold, if any; the caller looks whether the file changed."""
    # in its own temporary folder a sealed process may write a file of the same name
    with suppress(OSError), secret.open("r+") as file:
        file.write("broken")
    with suppress(OSError):
        secret.read_bytes()
        return "a file outside can be read"
    with suppress(OSError):  # unreachable, or not even a socket
        with suppress(ConnectionRefusedError, TimeoutError):
            # the seconds matter where there is a network only: without it the call fails at once
            socket.create_connection(("127.0.0.1", 9), 0.1).close()
        return "a network can be used"
    return "capabilities are left" if linux.capabilities() else ""


# --- the sandbox of a notebook: one of the kernel's, or one of another distribution


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
        """Return a context with a :class:`gradebox.workers.client.Notebook` made with ``more``.

        Each side is told a :class:`gradebox.workers.protocol.Begin`, or None if it is not there.
        """


@cache
def _entries() -> tuple[Any, ...]:
    from importlib.metadata import entry_points  # later than a start needs it

    return tuple(entry_points(group="gradebox.sandboxes"))


def installed(wanted: str, config: Any) -> dict[str, Sandbox]:
    """Return the sandboxes of other distributions by name: that which is wanted, or all (auto)."""
    entries = [each for each in _entries() if wanted in ("auto", each.name)]
    return {each.name: each.load()(config=config) for each in entries}


def choose(
    wanted: str = "auto", modules: Any = None, imports: Sequence[str] = (), config: Any = None
) -> Level | Sandbox:
    """Return the level of the kernel, or the other sandbox, in which a notebook runs.

    ``"kernel"`` is the strongest level that the kernel offers, and ``"auto"`` that one, or else an
    installed sandbox. One that is not to be had, or none that was not allowed, is ``NotSealed``.
    """
    outcomes: dict[str, str] = {}
    if wanted in ("auto", *KERNEL):
        result = survey()
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
    if os.environ.get("GRADEBOX_ALLOW_UNSEALED") == "yes":
        return Level.NONE
    if wanted == Level.NONE:
        raise NotSealed(f"expected a level that seals, got none; {ALLOW}")
    lacking = "" if others else f"{INSTALL}; or "
    linux = "user namespaces (sysctl user.max_user_namespaces) or Landlock (Linux 5.13 or later)"
    why = f"notebooks cannot be sealed here ({_listed(outcomes)}); {lacking}grade in a container"
    raise NotSealed(f"{why}, or on Linux with {linux}; or, {ALLOW}")


def _listed(outcomes: dict[str, str]) -> str:
    return "; ".join(f"{name}: {outcome}" for name, outcome in outcomes.items())


def main(arguments: list[str]) -> int:
    """Print the level of this machine; 1 if it has none."""
    if "--json" in arguments:
        print(json.dumps({level: _tried(level) for level in (Level.NAMESPACES, Level.LANDLOCK)}))
        return 0
    print(survey())
    return int(survey().level is Level.NONE)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
