"""The wheels work without the repository: files, dependencies, a training loop, a class."""

import functools
import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from collections.abc import Mapping
from importlib.metadata import distribution, packages_distributions
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tools.layout import ROOT
from tools.site.live import named

pytestmark = pytest.mark.xdist_group("packaging")

NAME, BNP = "learning-as-optimization", "optdl-bnp"
PACKAGES = {
    NAME: "optdl",
    BNP: "optdl/bnp",
    "gradebox": "gradebox",
    "gradebox-wasm": "gradebox_wasm",
}
FOLDERS = {name: ROOT / "src" / package for name, package in PACKAGES.items()} | {NAME: ROOT}
PROJECTS = {
    name: tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]
    for name, folder in FOLDERS.items()
}
INSTALLED = Path(sysconfig.get_path("purelib"))
"""The packages of the tests; this project is installed there as editable."""


@functools.cache
def providers() -> Mapping[str, list[str]]:
    """Return which installed distributions give a module, whatever else the path leads to.

    Who imports setuptools adds its own copies of other packages to the path.
    """
    with patch.object(sys, "path", [str(INSTALLED)]):
        return packages_distributions()


# that the steps are right, tests/optdl/test_bnp_table.py shows
TRAINING = """
import torch
from optdl import bnp

assert all(hasattr(bnp, name) for name in bnp.__all__)
torch.manual_seed(0)
inputs, targets, layer = torch.randn(5, 7), torch.randn(5, 2), torch.nn.Linear(7, 2)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
bnp.BNP(layer).attach(optimizer)
losses = []
for step in range(20):
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(layer(inputs), targets)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
assert losses[-1] < losses[0] / 2
loaded = {name for name in sys.modules if name.startswith("optdl")}
assert all(f"{name}.".startswith("optdl.bnp.") for name in loaded - {"optdl"}), loaded
print("done")
"""
CHECKING = """
from optdl.checks import CheckFailed, check

check("P-14:scale", lambda features, rows: max(features / rows, 1))
try:
    check("P-14:scale", lambda features, rows: features / rows)
except CheckFailed:
    print("done")
"""
GRADER = """
import importlib
import pkgutil

import gradebox

# a cluster is an extra, and ``python -m gradebox`` is a program
for module in pkgutil.walk_packages(gradebox.__path__, "gradebox."):
    if module.name not in ("gradebox.cluster", "gradebox.__main__"):
        importlib.import_module(module.name)
absent = {"torch", "jupyter_book", "sphinx", "pandas", "matplotlib", "distributed", "optdl"}
assert not absent & {name for name, loaded in sys.modules.items() if loaded}
print("done")
"""


def project_files() -> list[Path]:
    """Return the files that are part of the repository or will be: all but what git ignores."""
    command = ["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("this is not a git repository, so it cannot be told what belongs to it")
    return [path for line in listed.stdout.splitlines() if (path := ROOT / line).is_file()]


def run(*command: str | Path, cwd: Path) -> str:
    """Run a command without this repository on its path; return what it printed."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment |= {"PYTHONUTF8": "1"}
    options: Any = {"cwd": cwd, "env": environment, "capture_output": True, "encoding": "utf-8"}
    done = subprocess.run([*map(str, command)], check=False, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Build the wheels from a copy of the repository, without the network."""
    copy = tmp_path_factory.mktemp("copy")
    for path in project_files():
        if not path.is_relative_to(ROOT / "experiments" / "results"):
            (copy / path.relative_to(ROOT)).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy / path.relative_to(ROOT))
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "-q"]
    built = {}
    for name in (NAME, BNP, "gradebox"):
        out, source = tmp_path_factory.mktemp("wheel"), copy / FOLDERS[name].relative_to(ROOT)
        run(*pip, "--no-deps", "--no-build-isolation", "-w", out, ".", cwd=source)
        [built[name]] = out.glob("*.whl")
    return built


def declared(name: str, *extras: str) -> list[Requirement]:
    """Return what a project and its extras ask for."""
    project = PROJECTS[name]
    lists = [project["dependencies"], *(project["optional-dependencies"][one] for one in extras)]
    return [Requirement(line) for part in lists for line in part]


def names_of(requirements: list[Requirement]) -> set[str]:
    return {canonicalize_name(one.name) for one in requirements}


def needed(name: str, *extras: str) -> set[str]:
    """Return the distributions that a project asks for, and what those need."""
    waiting, found = declared(name, *extras), set()
    while waiting:
        requirement = waiting.pop()
        key = (canonicalize_name(requirement.name), *sorted(requirement.extras))
        if key in found or key[0] in PROJECTS:
            continue
        found.add(key)
        for further in map(Requirement, distribution(requirement.name).requires or []):
            asked = ["", *requirement.extras]
            if not further.marker or any(further.marker.evaluate({"extra": e}) for e in asked):
                waiting.append(further)
    return {name for name, *_ in found}


@pytest.mark.slow
@pytest.mark.parametrize("name", [NAME, BNP, "gradebox"])
def test_wheel_holds_all_modules_and_nothing_else(wheels: dict[str, Path], name: str) -> None:
    with zipfile.ZipFile(wheels[name]) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    package = ROOT / "src" / PACKAGES[name]
    expected = [
        file.relative_to(ROOT / "src").as_posix()
        for file in project_files()
        if file.is_relative_to(package / "share")
        or (file.is_relative_to(package) and (file.suffix == ".py" or file.name == "py.typed"))
    ]
    assert names == {*expected}
    assert f"{PACKAGES[name]}/py.typed" in names


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "program", "extras"),
    [
        (NAME, TRAINING, []),
        (BNP, TRAINING, []),
        (NAME, CHECKING, ["chapters"]),
        ("gradebox", GRADER, []),
    ],
    ids=["course", "BNP", "chapters", "gradebox"],
)
def test_wheel_works_with_what_it_asks_for(
    wheels: dict[str, Path], tmp_path: Path, name: str, program: str, extras: list[str]
) -> None:
    assert wheels[name].stat().st_size < (100_000 if name == BNP else 1_000_000)
    zipfile.ZipFile(wheels[name]).extractall(tmp_path)
    allowed = needed(name, *extras)
    refused = [
        module
        for module, ours in providers().items()
        if not allowed & {*map(canonicalize_name, ours)} and module not in PACKAGES.values()
    ]
    # without the files .pth of the environment, which lead to this repository
    alone = (
        f"import sys; sys.path[:0] = {[str(tmp_path), str(INSTALLED)]}\n"
        f"sys.modules.update(dict.fromkeys({refused}))\n"
    )
    assert run(sys.executable, "-I", "-S", "-c", alone + program, cwd=tmp_path).endswith("done\n")


# --- Declared dependencies --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "extras"),
    [(NAME, ("chapters",)), ("gradebox", ("cluster", "torch")), ("gradebox-wasm", ())],
)
def test_each_import_has_a_declared_dependency(name: str, extras: tuple[str, ...]) -> None:
    allowed = names_of(declared(name, *extras))
    # what instances of gradebox_wasm run on has `_host` built in
    known = {*sys.stdlib_module_names, PACKAGES[name], "_host"}
    lacking = {
        f"{path.relative_to(ROOT).as_posix()} imports {module}"
        for path in (ROOT / "src" / PACKAGES[name]).rglob("*.py")
        for module in {each.partition(".")[0] for each in named(path.read_text("utf-8"))} - known
        if not allowed & {*map(canonicalize_name, providers().get(module, []))}
    }
    assert not lacking, "declare in pyproject.toml: " + ", ".join(sorted(lacking))


def test_each_declared_dependency_is_pinned() -> None:
    files = [(ROOT / f"requirements{part}.txt").read_text("utf-8") for part in ("", "-dev")]
    pins = [
        [Requirement(line) for line in text.splitlines() if line and not line.startswith("#")]
        for text in files
    ]
    course, dev = map(names_of, pins)
    for name, project in PROJECTS.items():
        asked = names_of(declared(name, *project.get("optional-dependencies", ())))
        assert asked - {*PROJECTS} <= course | dev
    assert names_of(declared(NAME, "chapters", "assignments", "course")) - {*PROJECTS} <= course
    assert not course & dev, "a pin has one place"
    assert all(str(pin.specifier).startswith("==") for part in pins for pin in part)


def test_course_asks_for_the_gradebox_of_this_repository() -> None:
    asked = {canonicalize_name(one.name): one for one in declared(NAME, "course")}
    for name in ("gradebox", "gradebox-wasm"):
        assert str(asked[name].specifier) == f"=={PROJECTS[name]['version']}"
    assert asked["gradebox"].extras <= {*PROJECTS["gradebox"]["optional-dependencies"]}
