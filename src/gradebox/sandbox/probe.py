"""Try out how strongly this machine seals a process: ``python -m gradebox.sandbox.probe``.

Nothing is believed of a kernel: a fork is sealed and tries to break out, before the first notebook.
"""

import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

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


def main(arguments: list[str]) -> int:
    """Print the level of this machine; 1 if it has none."""
    if "--json" in arguments:
        print(json.dumps({level: _tried(level) for level in (Level.NAMESPACES, Level.LANDLOCK)}))
        return 0
    print(survey())
    return int(survey().level is Level.NONE)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
