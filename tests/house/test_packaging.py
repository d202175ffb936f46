"""The wheels work without the repository: files, dependencies, a training loop, a class."""

import ast
import contextlib
import functools
import os
import shutil
import sqlite3
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from importlib.metadata import distribution, packages_distributions
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

pytestmark = pytest.mark.xdist_group("packaging")

ROOT = Path(__file__).resolve().parents[2]
NAME = "learning-as-optimization"
FOLDERS = {NAME: ROOT, "gradebox": ROOT / "src" / "gradebox"}
"""The folders of the two distributions that hold nothing but their sources."""

PROJECTS = {
    name: tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]
    for name, folder in (FOLDERS | {"gradebox-wasm": ROOT / "src" / "gradebox_wasm"}).items()
}

# The third-party packages of the tests, without this project, which is installed there as editable.
PACKAGES = Path(sysconfig.get_path("purelib"))

TRAINING = r'''
"""Train a small network with BNP, beside the update of Algorithm 2 written out in NumPy."""

import sys
from pathlib import Path

import numpy as np
import torch
from torch import nn

import optdl
from optdl.bnp import BNP

assert Path(optdl.__file__).is_relative_to(sys.prefix), optdl.__file__

RHO, EPS1, EPS2, LR = 0.9, 1e-2, 1e-4, 0.1
torch.manual_seed(0)
torch.set_default_dtype(torch.float64)
inputs, targets = 3 + 2 * torch.randn(5, 7), torch.randn(5, 2)

layer = nn.Linear(7, 2)
bnp = BNP(layer, rho=RHO, eps1=EPS1, eps2=EPS2)
optimizer = torch.optim.SGD(layer.parameters(), lr=LR)

H, y = inputs.numpy(), targets.numpy()
W, b = layer.weight.detach().numpy().copy(), layer.bias.detach().numpy().copy()
mu, var = np.zeros(7), np.ones(7)
first = None
for step in range(20):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(layer(inputs), targets)
    loss.backward()
    bnp.step()
    optimizer.step()

    # the gradient of the mean square error, then steps 1 to 5, entry by entry
    residual = 2 * (H @ W.T + b - y) / y.size
    G_w, G_b = residual.T @ H, residual.sum(axis=0)
    for j in range(7):
        column = H[:, j]
        average = sum(column) / 5
        spread = sum((column - average) ** 2) / 5
        mu[j] = RHO * mu[j] + (1 - RHO) * average
        var[j] = RHO * var[j] + (1 - RHO) * spread
    q2 = max(7 / 5, 1)
    for i in range(2):
        shift = 0.0
        for j in range(7):
            smoothed = var[j] + EPS1 * max(var) + EPS2
            G_w[i, j] = (G_w[i, j] - mu[j] * G_b[i]) / smoothed / q2
            shift += G_w[i, j] * mu[j]
        G_b[i] = G_b[i] / q2 - shift
    np.testing.assert_allclose(layer.weight.grad.numpy(), G_w, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(layer.bias.grad.numpy(), G_b, rtol=1e-9, atol=1e-12)
    W -= LR * G_w
    b -= LR * G_b
    first = loss.item() if first is None else first
assert loss.item() < first
print("trained")
'''

CHECKING = """
from optdl.checks import CheckFailed, check

check("P-14:scale", lambda features, rows: max(features / rows, 1))
try:
    check("P-14:scale", lambda features, rows: features / rows)
except CheckFailed as error:
    print(str(error).splitlines()[0])
"""


def project_files(root: Path) -> list[str]:
    """Return the files that belong to the repository, or will."""
    if shutil.which("git") is None or not (root / ".git").exists():
        pytest.skip("this is not a git repository, so it cannot be told what belongs to it")
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    return [name for name in listed.stdout.splitlines() if (root / name).is_file()]


def modules(root: Path, package: str) -> set[str]:
    """Return the modules and markers of types of a package, as paths in a wheel."""
    return {
        name.removeprefix("src/")
        for name in project_files(root)
        if name.startswith(f"src/{package}/") and name.endswith((".py", "py.typed"))
    }


def run(*command: str | Path, cwd: Path) -> str:
    """Run a command without this repository on its path; return what it printed."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        list(map(str, command)),
        cwd=cwd,
        env=environment | {"PYTHONUTF8": "1"},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Build both wheels from a copy of the repository, without the network."""
    copy = tmp_path_factory.mktemp("copy")
    for name in project_files(ROOT):
        if not name.startswith("experiments/results/"):
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, copy / name)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "-q"]
    built = {}
    for name, folder in FOLDERS.items():
        out = tmp_path_factory.mktemp("wheel")
        source = copy / folder.relative_to(ROOT)
        run(*pip, "--no-deps", "--no-build-isolation", "-w", out, ".", cwd=source)
        [built[name]] = out.glob("*.whl")
    return built


def python_of(folder: Path, wheel: Path) -> Path:
    """Install a wheel, and nothing else, in an environment of its own; return its Python."""
    venv.create(folder, with_pip=False)
    scripts = folder / ("Scripts" if os.name == "nt" else "bin")
    python = scripts / Path(sys.executable).name
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python]
    run(*pip, "install", "-q", "--no-deps", "--no-index", wheel, cwd=folder)
    return python


def site_of(python: Path) -> Path:
    """Return the folder of the packages of an environment."""
    where = "import sysconfig; print(sysconfig.get_path('purelib'))"
    return Path(run(python, "-c", where, cwd=python.parent).strip())


@pytest.fixture(scope="module")
def python(wheels: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the Python of an environment with the course's wheel and all packages."""
    made = python_of(tmp_path_factory.mktemp("clean"), wheels["learning-as-optimization"])
    # A line of a .pth file extends the path and does not execute the .pth files it leads to,
    # so the editable installation of this project stays out of sight.
    (site_of(made) / "dependencies.pth").write_text(f"{PACKAGES}\n", "utf-8")
    return made


def needed(project: dict[str, Any]) -> set[str]:
    """Return the distributions that a project needs without its extras, and what those need."""
    waiting = [Requirement(line) for line in project["dependencies"]]
    found = set()
    while waiting:
        requirement = waiting.pop()
        key = (canonicalize_name(requirement.name), *sorted(requirement.extras))
        if key in found:
            continue
        found.add(key)
        for line in distribution(requirement.name).requires or []:
            further = Requirement(line)
            extras = ["", *requirement.extras]
            if not further.marker or any(further.marker.evaluate({"extra": e}) for e in extras):
                waiting.append(further)
    return {name for name, *_ in found}


def _copy(source: Path, target: Path) -> None:
    """Copy a file or a folder; links would lead out of what a sealed process sees."""
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copyfile(source, target)


@pytest.fixture(scope="module")
def grader(wheels: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the Python of an environment with gradebox's wheel and what that asks for alone."""
    made = python_of(tmp_path_factory.mktemp("grader"), wheels["gradebox"])
    site = site_of(made)
    for name in needed(PROJECTS["gradebox"]):
        for file in distribution(name).files or []:
            top = site / file.parts[0]
            if file.parts[0] not in ("..", "__pycache__") and not top.exists():
                _copy(PACKAGES / file.parts[0], top)
    # templates of nbconvert, and the command that nbgrader makes its database with
    shutil.copytree(Path(sys.prefix, "share", "jupyter"), made.parent.parent / "share" / "jupyter")
    alembic = made.parent / "alembic"
    alembic.write_text(f"#!{made}\nfrom alembic.config import main\nmain()\n")
    alembic.chmod(0o755)
    return made


@pytest.mark.slow
@pytest.mark.parametrize(("name", "package"), [(NAME, "optdl"), ("gradebox", "gradebox")])
def test_a_wheel_holds_all_modules_and_nothing_else(
    wheels: dict[str, Path], name: str, package: str
) -> None:
    with zipfile.ZipFile(wheels[name]) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    templates = {
        path.relative_to(ROOT / "src").as_posix()
        for path in (ROOT / "src" / package / "share").rglob("*")
        if path.is_file()
    }
    assert bool(templates) == (package == "gradebox")
    assert names == modules(ROOT, package) | templates
    assert {f"{package}/__init__.py", f"{package}/py.typed"} <= names


@pytest.mark.slow
def test_a_model_is_trained_with_bnp_from_the_wheel(python: Path, tmp_path: Path) -> None:
    assert run(python, "-c", TRAINING, cwd=tmp_path) == "trained\n"


@pytest.mark.slow
def test_bnp_needs_no_extra(python: Path, tmp_path: Path) -> None:
    needs = needed(PROJECTS[NAME])
    assert {"numpy", "torch"} <= needs
    assert not {"matplotlib", "scikit-learn", "scipy", "jaxtyping"} & needs
    others = {
        module
        for module, providers in distributions().items()
        if not needs & {canonicalize_name(one) for one in providers}
    } - {"optdl", "gradebox"}
    refused = f"import sys\nsys.modules.update(dict.fromkeys({sorted(others)}))\n"
    every = "import optdl.bnp\n[getattr(optdl.bnp, name) for name in optdl.bnp.__all__]\n"
    assert run(python, "-c", refused + every + TRAINING, cwd=tmp_path) == "trained\n"


@pytest.mark.slow
def test_an_exercise_is_checked_from_the_wheel(python: Path, tmp_path: Path) -> None:
    right, wrong = run(python, "-c", CHECKING, cwd=tmp_path).splitlines()
    assert right.startswith("✓ scale_dense")
    assert wrong.startswith("✗ scale_dense")


# --- gradebox alone -------------------------------------------------------------------------------


@pytest.mark.slow
def test_gradebox_comes_without_torch_the_book_and_the_course(grader: Path, tmp_path: Path) -> None:
    absent = ("torch", "jupyter_book", "sphinx", "optdl", "pandas", "matplotlib", "distributed")
    lines = [f"assert importlib.util.find_spec({name!r}) is None, {name!r}" for name in absent]
    shows = "print(gradebox.__file__, gradebox.Rebuild)"
    script = "\n".join(["import importlib.util, gradebox", *lines, shows])
    where, step = run(grader, "-c", script, cwd=tmp_path).split(" ", 1)
    assert Path(where).is_relative_to(grader.parent.parent)
    assert "gradebox.nbgrader.rebuild.Rebuild" in step
    assert run(grader.parent / "gradebox", "--help", cwd=tmp_path).startswith("usage: gradebox")


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="gradebox grade needs fork")
def test_gradebox_alone_grades_the_example_course_of_nbgrader(
    grader: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(grader.parent), prepend=os.pathsep)
    nbgrader = (grader, "-W", "ignore", "-m", "nbgrader")
    run(*nbgrader, "quickstart", "course101", cwd=tmp_path)
    course = tmp_path / "course101"
    run(*nbgrader, "generate_assignment", "ps1", cwd=course)
    shutil.copytree(course / "source" / "ps1", course / "submitted" / "ada" / "ps1")
    shutil.copytree(course / "release" / "ps1", course / "submitted" / "ben" / "ps1")
    told = run(grader.parent / "gradebox", "grade", "ps1", cwd=course)
    assert "Graded 2, unchanged 0, to look at 0, failed 0" in told
    # it deletes a function of the student's
    assert "1 of 4 scores (0.5 points) come from tests in the student's process" in told
    query = (
        "SELECT submitted_assignment.student_id, sum(grade.auto_score) FROM grade "
        "JOIN submitted_notebook ON submitted_notebook.id = grade.notebook_id "
        "JOIN submitted_assignment ON submitted_assignment.id = submitted_notebook.assignment_id "
        "GROUP BY 1"
    )
    with contextlib.closing(sqlite3.connect(course / "gradebook.db")) as book:
        points = dict(book.execute(query).fetchall())
    # 1 + 1 + 0.5 + 0.5 for the tests of problem1; what is read by a person has no automatic score
    assert points == {"ada": 3, "ben": 0}


# --- Declared dependencies --------------------------------------------------------------------


def declared(name: str, *extras: str) -> set[str]:
    """Return the names of the distributions that a project and its extras ask for."""
    project = PROJECTS[name]
    lists = [project["dependencies"], *(project["optional-dependencies"][one] for one in extras)]
    return {canonicalize_name(Requirement(line).name) for part in lists for line in part}


def third_party(source: str) -> set[str]:
    """Return the top-level names that a file imports from elsewhere."""
    imported = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            imported |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            imported.add(node.module.split(".")[0])
    # what instances of gradebox_wasm run on has the last one built in
    own = {"optdl", "gradebox", "gradebox_wasm", "_host"}
    return imported - set(sys.stdlib_module_names) - own


# It reads the list of files of every installed package.
distributions = functools.cache(packages_distributions)


def undeclared(source: str, allowed: set[str]) -> set[str]:
    """Return the imports of a file that no allowed distribution provides."""
    providers = distributions()
    return {
        name
        for name in third_party(source)
        if not allowed & {canonicalize_name(one) for one in providers.get(name, [])}
    }


@pytest.mark.parametrize(
    ("package", "name", "extras"),
    [
        ("optdl", NAME, ("chapters",)),
        ("gradebox", "gradebox", ("cluster", "torch")),
        ("gradebox_wasm", "gradebox-wasm", ()),
    ],
)
def test_each_import_has_a_declared_dependency(
    package: str, name: str, extras: tuple[str, ...]
) -> None:
    allowed = declared(name, *extras)
    lacking = {
        f"{path.relative_to(ROOT).as_posix()} imports {name}"
        for path in (ROOT / "src" / package).rglob("*.py")
        for name in undeclared(path.read_text("utf-8"), allowed)
    }
    assert not lacking, "declare in pyproject.toml: " + ", ".join(sorted(lacking))


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("import numpy.linalg\nfrom pathlib import Path", set()),
        ("def f():\n    from yaml import safe_load", {"yaml"}),
        ("import nowhere_to_be_had", {"nowhere_to_be_had"}),
    ],
)
def test_an_undeclared_import_is_found(source: str, names: set[str]) -> None:
    assert undeclared(source, {"numpy"}) == names


def test_each_declared_dependency_is_pinned() -> None:
    pinned = {
        file: [Requirement(line) for line in lines if line and not line.startswith("#")]
        for file in ("requirements.txt", "requirements-dev.txt")
        for lines in [(ROOT / file).read_text("utf-8").splitlines()]
    }
    course, dev = ({canonicalize_name(pin.name) for pin in pins} for pins in pinned.values())
    for name, project in PROJECTS.items():
        needed = declared(name, *project.get("optional-dependencies", ())) - {*PROJECTS}
        assert needed <= course | dev
    assert declared(NAME, "chapters", "assignments", "course") - {*PROJECTS} <= course
    assert not course & dev, "a pin has one place"
    assert all(str(pin.specifier).startswith("==") for pins in pinned.values() for pin in pins)


def test_the_course_asks_for_the_gradebox_of_this_repository() -> None:
    asked = {
        canonicalize_name(requirement.name): requirement
        for requirement in map(Requirement, PROJECTS[NAME]["optional-dependencies"]["course"])
    }
    for name in ("gradebox", "gradebox-wasm"):
        assert str(asked[name].specifier) == f"=={PROJECTS[name]['version']}"
    assert asked["gradebox"].extras <= {*PROJECTS["gradebox"]["optional-dependencies"]}
