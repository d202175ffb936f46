"""Try out how strongly this machine seals a process: ``python -m gradebox.sandbox.probe``.

Nothing is believed of a kernel: a fork is sealed and tries to break out, before the first notebook.
"""

import dataclasses
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

from gradebox.sandbox import linux
from gradebox.sandbox.seal import Level, Limits, NotSealed, fork, seal

_PROBE = 1800.0  # seconds of wall time, against a probe that hangs; one that fails ends at once


@dataclass(frozen=True)
class Survey:
    """The strongest level of this machine, and what came of those that were tried."""

    level: Level
    tried: dict[str, str]

    def __str__(self) -> str:
        lines = [f"sealed by: {self.level}"]
        return "\n".join([*lines, *(f"  {name}: {told}" for name, told in self.tried.items())])


def probe() -> Level:
    """Return the strongest level that this machine offers; it is tried out, once."""
    return survey().level


@cache
def survey() -> Survey:
    """Try the levels out, in a process of its own, and tell what came of each."""
    if not sys.platform.startswith("linux"):
        told = f"expected Linux, got {sys.platform}"
        return Survey(Level.NONE, {"namespaces": told, "landlock": told})
    command = [sys.executable, "-P", "-m", "gradebox.sandbox.probe", "--json"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PROBE, check=True)
        told = json.loads(done.stdout)
        return Survey(Level(told["level"]), dict(told["tried"]))
    except (OSError, ValueError, KeyError, subprocess.SubprocessError) as error:
        return Survey(Level.NONE, {"probe": f"{' '.join(command)} failed: {error}"})


def choose(wanted: str = "auto", allow_unsealed: bool = False) -> Level:
    """Return the level to use.

    Parameters
    ----------
    wanted : str
        A level, or ``"auto"`` for the strongest.
    allow_unsealed : bool
        Whether notebooks may run without any barrier.

    Raises
    ------
    NotSealed
        If the level is not to be had, or is none and that was not allowed.
    """
    if wanted not in ("auto", *Level):
        raise ValueError(f"expected auto, {', '.join(Level)}, got {wanted!r}")
    unsealed = (
        "if you trust every submission, set WarmExecute.allow_unsealed = True, or "
        "GRADEBOX_ALLOW_UNSEALED=yes in the environment"
    )
    if wanted == Level.NONE:
        if allow_unsealed:
            return Level.NONE
        raise NotSealed(f"expected a level that seals, got none; {unsealed}")
    found = survey()
    told = "; ".join(f"{name}: {what}" for name, what in found.tried.items())
    if found.level is Level.NONE:
        if allow_unsealed:
            return Level.NONE
        raise NotSealed(
            f"notebooks cannot be sealed here ({told}); grade on Linux with user namespaces "
            "(sysctl user.max_user_namespaces) or with Landlock (Linux 5.13 or later), or, "
            + unsealed
        )
    if wanted == "auto":
        return found.level
    if found.tried.get(wanted, "").startswith("works"):
        return Level(wanted)
    raise NotSealed(
        f"expected the level {wanted}, got {found.level} ({told}); "
        "set WarmExecute.sealed = 'auto' for the strongest that there is"
    )


def _try(level: Level, secret: Path) -> str:
    """Seal a fork and let it try to break out; return ``works`` or what went wrong."""
    reading, writing = os.pipe()
    pid = fork(level)
    if not pid:
        _try_inside(level, secret, writing)
    os.close(writing)
    told, until = b"", time.monotonic() + _PROBE / 3
    while select.select([reading], [], [], max(0.0, until - time.monotonic()))[0]:
        more = os.read(reading, 4096)
        told += more
        if not more:
            break
    os.close(reading)
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return told.decode() or "the sealed process ended without a word"


def _try_inside(level: Level, secret: Path, writing: int) -> NoReturn:
    try:
        os.setsid()
        folder, scratch = secret.parent / "work", secret.parent / "scratch"
        done = seal(Limits(), folder, level=level, keep=[writing], scratch=scratch)
        told = _breaches(secret) or "works" + "".join(f"; {one}" for one in done.lacks)
    except BaseException as error:
        told = f"refused: {error}"
    os.write(writing, told.encode())
    os._exit(0)


def _breaches(secret: Path) -> str:
    """Return which barrier does not hold, if any; the caller looks whether the file changed.

    A file of that name in the temporary folder of the sealed process is not the one outside.
    """
    with suppress(OSError), secret.open("r+") as file:
        file.write("broken")
    attempts: dict[str, Callable[[], Any]] = {
        "a file outside can be read": secret.read_bytes,
        # the seconds matter where there is a network only: without it the call fails at once
        "a network can be used": lambda: socket.create_connection(("127.0.0.1", 9), 0.1),
    }
    for told, attempt in attempts.items():
        try:
            attempt()
            return told
        except OSError as error:
            # no such network: unreachable, or not even a socket; refused means it was there
            if isinstance(error, ConnectionRefusedError | TimeoutError):
                return told
    if linux.capabilities():
        return "capabilities are left"
    return ""


def _survey_here() -> Survey:
    tried = {}
    for level in (Level.NAMESPACES, Level.LANDLOCK):
        with tempfile.TemporaryDirectory() as name:
            secret = Path(name, "secret")
            secret.write_text("secret")
            for folder in ("work", "scratch"):
                Path(name, folder).mkdir()
            told = _try(level, secret)
            tried[str(level)] = told if secret.read_text() == "secret" else "writes files outside"
    works = [Level(name) for name, told in tried.items() if told.startswith("works")]
    return Survey((*works, Level.NONE)[0], tried)


def main(arguments: list[str]) -> int:
    """Print the level of this machine; 1 if it has none."""
    if not sys.platform.startswith("linux"):
        found = survey()
    else:
        found = _survey_here()
    print(json.dumps(dataclasses.asdict(found)) if "--json" in arguments else found)
    return 0 if "--json" in arguments else int(found.level is Level.NONE)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
