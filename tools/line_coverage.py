"""Run the tests and count the lines they run: ``python -m tools.line_coverage [PYTEST ARGUMENTS]``.

The lines and branches of optdl are counted by coverage.py. Most lines of gradebox run in processes
that are sealed and killed, which coverage.py cannot follow: those are marked in a file that all
processes share, see ``tests/house/line_coverage``.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from coverage import Coverage

from tools.layout import ROOT
from tools.terminal import console

LEAST = 90.0
"""The least share of gradebox's lines that the tests must run, in percent."""

PACKAGES = [ROOT / "src" / "gradebox", ROOT / "src" / "gradebox_wasm"]


def modules() -> list[Path]:
    """Return the modules of gradebox."""
    return sorted(path for package in PACKAGES for path in package.rglob("*.py"))


def prepare(folder: Path) -> None:
    """Write what the processes need to mark the lines that they run."""
    sizes = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in modules()}
    rows = [f"{path}\t{lines}\n" for path, lines in sizes.items()]
    (folder / "modules").write_text("".join(rows), encoding="utf-8")
    (folder / "marks").write_bytes(bytes(sum(sizes.values()) + len(sizes)))


def marked(folder: Path) -> Iterator[tuple[Path, set[int]]]:
    """Yield the lines of each module that a process has marked."""
    marks, start = (folder / "marks").read_bytes(), 0
    for row in (folder / "modules").read_text(encoding="utf-8").splitlines():
        path, lines = row.split("\t")
        yield (
            Path(path),
            {line for line in range(1, int(lines) + 1) if marks[start + line]},
        )
        start += int(lines) + 1


def report(folder: Path, coverage: Coverage) -> float:
    """Print the lines of gradebox that no test runs; return the share of those that ran."""
    statements = run = 0
    for path, lines in marked(folder):
        _, executable, _, missing, _ = coverage.analysis2(str(path))
        missing = sorted({*missing} - lines)
        statements += len(executable)
        run += len(executable) - len(missing)
        if missing:
            share = 100 * (1 - len(missing) / len(executable))
            numbers = ", ".join(map(str, missing))
            console.print(f"{path.relative_to(ROOT)}  {share:.0f} %  {numbers}", soft_wrap=True)
    share = 100 * run / statements
    console.print(f"gradebox: {share:.1f} % of {statements} lines (at least {LEAST:g} %)")
    return share


def main(arguments: list[str]) -> int:
    """Run the tests under coverage; return 1 if they fail or leave too many lines out."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder)
        paths = [str(ROOT / "tests" / "house" / "line_coverage"), os.environ.get("PYTHONPATH", "")]
        environment = os.environ | {
            "PYTHON_LINE_COVERAGE": name,
            "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        }
        options = ["--cov", "--cov-report=", "--cov-fail-under=0"]
        command = [sys.executable, "-m", "pytest", *options, *arguments]
        failed = subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
        coverage = Coverage(config_file=str(ROOT / "pyproject.toml"))
        coverage.load()
        least = float(str(coverage.get_option("report:fail_under")))
        few = coverage.report(include=[str(ROOT / "src" / "optdl" / "*")], file=sys.stdout) < least
        return int(report(folder, coverage) < LEAST or few or bool(failed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or ["-n", "2", "--dist", "loadgroup"]))
