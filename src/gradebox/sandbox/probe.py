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
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

from gradebox.sandbox import linux
from gradebox.sandbox.seal import Level, Limits, fork, seal

_PROBE = 1800.0  # seconds of wall time, against a probe that hangs; one that fails ends at once


_surveying = threading.Lock()


@dataclass(frozen=True)
class Survey:
    """The strongest level of this machine, and what came of those that were tried."""

    level: Level
    tried: dict[str, str]

    def __str__(self) -> str:
        lines = [f"sealed by: {self.level}"]
        return "\n".join(
            [*lines, *(f"  {name}: {outcome}" for name, outcome in self.tried.items())]
        )


def probe() -> Level:
    """Return the strongest level that this machine offers; it is tried out, once."""
    return survey().level


def survey() -> Survey:
    """Try the levels out, in a process of its own, and tell what came of each; once."""
    with _surveying:
        return _survey()


@cache
def _survey() -> Survey:
    if not sys.platform.startswith("linux"):
        outcome = f"expected Linux, got {sys.platform}"
        return Survey(Level.NONE, {"namespaces": outcome, "landlock": outcome})
    # a process of its own, since fork is for where no other thread runs. With -P nothing is
    # imported from the working folder, where a json.py may lie
    command = [sys.executable, "-P", "-m", "gradebox.sandbox.probe", "--json"]
    try:
        completed = subprocess.run(
            command, capture_output=True, text=True, timeout=_PROBE, check=True
        )
        result = json.loads(completed.stdout)
        return Survey(Level(result["level"]), dict(result["tried"]))
    except (OSError, ValueError, KeyError, subprocess.SubprocessError) as error:
        return Survey(Level.NONE, {"probe": f"{' '.join(command)} failed: {error}"})


def _try(level: Level, secret: Path) -> str:
    """Seal a fork and let it try to break out; return ``works`` or what went wrong."""
    reading, writing = os.pipe()
    pid = fork(level)
    if not pid:
        _try_inside(level, secret, writing)
    os.close(writing)
    answer, until = b"", time.monotonic() + _PROBE / 3
    while select.select([reading], [], [], max(0.0, until - time.monotonic()))[0]:
        more = os.read(reading, 4096)
        answer += more
        if not more:
            break
    os.close(reading)
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return answer.decode() or "the sealed process ended without a word"


def _try_inside(level: Level, secret: Path, writing: int) -> NoReturn:
    try:
        os.setsid()
        folder, scratch = secret.parent / "work", secret.parent / "scratch"
        sealed = seal(Limits(), folder, level=level, keep=[writing], scratch=scratch)
        outcome = _breaches(secret) or "works" + "".join(f"; {lack}" for lack in sealed.lacks)
    # the child must not return: on its way out it would remove the folders of its parent
    except BaseException as error:
        outcome = f"refused: {error}"
    os.write(writing, outcome.encode())
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
    for breach, attempt in attempts.items():
        try:
            attempt()
            return breach
        except OSError as error:
            # no such network: unreachable, or not even a socket; refused means it was there
            if isinstance(error, ConnectionRefusedError | TimeoutError):
                return breach
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
            outcome = _try(level, secret)
            tried[str(level)] = (
                outcome if secret.read_text() == "secret" else "writes files outside"
            )
    works = [Level(name) for name, outcome in tried.items() if outcome.startswith("works")]
    return Survey((*works, Level.NONE)[0], tried)


def main(arguments: list[str]) -> int:
    """Print the level of this machine; 1 if it has none."""
    if not sys.platform.startswith("linux"):
        result = survey()
    else:
        result = _survey_here()
    print(json.dumps(dataclasses.asdict(result)) if "--json" in arguments else result)
    return 0 if "--json" in arguments else int(result.level is Level.NONE)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
