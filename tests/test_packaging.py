"""The wheel works without the repository: its files, its dependencies, and a training loop."""

import ast
import functools
import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

pytestmark = pytest.mark.xdist_group("packaging")

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
NAME = canonicalize_name(PROJECT["name"])

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


def modules(root: Path) -> set[str]:
    """Return the modules and markers of types below ``src``, as paths in a wheel."""
    return {
        name.removeprefix("src/")
        for name in project_files(root)
        if name.startswith("src/") and name.endswith((".py", "py.typed"))
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
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel from a copy of the repository, without the network."""
    copy = tmp_path_factory.mktemp("copy")
    for name in project_files(ROOT):
        if not name.startswith("experiments/results/"):
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, copy / name)
    out = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "-q"]
    run(*pip, "--no-deps", "--no-build-isolation", "-w", out, ".", cwd=copy)
    [made] = out.glob("*.whl")
    return made


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the wheel in an environment that has the dependencies, and return its Python."""
    folder = tmp_path_factory.mktemp("clean")
    venv.create(folder, with_pip=False)
    scripts = folder / ("Scripts" if os.name == "nt" else "bin")
    made = scripts / Path(sys.executable).name
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", made]
    run(*pip, "install", "-q", "--no-deps", "--no-index", wheel, cwd=folder)
    where = "import sysconfig; print(sysconfig.get_path('purelib'))"
    # A line of a .pth file extends the path and does not execute the .pth files it leads to,
    # so the editable installation of this project stays out of sight.
    site = Path(run(made, "-c", where, cwd=folder).strip())
    (site / "dependencies.pth").write_text(f"{PACKAGES}\n", "utf-8")
    return made


def test_the_wheel_holds_all_modules_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    shared = ROOT / "src" / "gradebox" / "share"
    templates = {
        path.relative_to(ROOT / "src").as_posix() for path in shared.rglob("*") if path.is_file()
    }
    assert templates
    assert names == modules(ROOT) | templates
    assert {"optdl/py.typed", "gradebox/py.typed", "optdl/bnp/model.py", "gradebox/cli.py"} <= names


def test_a_model_is_trained_with_bnp_from_the_wheel(python: Path, tmp_path: Path) -> None:
    assert run(python, "-c", TRAINING, cwd=tmp_path) == "trained\n"


def test_an_exercise_is_checked_from_the_wheel(python: Path, tmp_path: Path) -> None:
    right, wrong = run(python, "-c", CHECKING, cwd=tmp_path).splitlines()
    assert right.startswith("✓ P-14:scale")
    assert wrong.startswith("✗ P-14:scale")


def test_the_command_gradebox_comes_with_the_wheel(python: Path, tmp_path: Path) -> None:
    command = python.parent / ("gradebox.exe" if os.name == "nt" else "gradebox")
    assert run(command, "--help", cwd=tmp_path).startswith("usage: gradebox")


# --- Declared dependencies --------------------------------------------------------------------


def declared(*extras: str) -> set[str]:
    """Return the names of the distributions that the project and its extras ask for."""
    lists = [PROJECT["dependencies"], *(PROJECT["optional-dependencies"][one] for one in extras)]
    return {canonicalize_name(Requirement(line).name) for part in lists for line in part}


def third_party(source: str) -> set[str]:
    """Return the top-level names that a file imports from elsewhere."""
    imported = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            imported |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            imported.add(node.module.split(".")[0])
    return imported - set(sys.stdlib_module_names) - {"optdl", "gradebox"}


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
    ("package", "extras"), [("optdl", ()), ("gradebox", ("gradebox", "cluster", "pandas"))]
)
def test_each_import_has_a_declared_dependency(package: str, extras: tuple[str, ...]) -> None:
    allowed = declared(*extras)
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
    lines = (ROOT / "requirements.txt").read_text("utf-8").splitlines()
    pinned = [Requirement(line) for line in lines if line and not line.startswith("#")]
    names = {canonicalize_name(one.name) for one in pinned}
    assert declared(*PROJECT["optional-dependencies"]) - {NAME} <= names
    assert all(str(one.specifier).startswith("==") for one in pinned)
