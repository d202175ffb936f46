"""The public names of both packages, as ``book/api.yml`` lists them."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import sys
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent.parent
TABLE = ROOT / "book" / "api.yml"
FOLDER = "book/api/"
"""The pages with the entries."""

# The packages of this tree, whatever is installed.
sys.path.insert(0, str(ROOT / "src"))


class ApiError(ValueError):
    """A name of the API does not exist; the message says what to do."""


@cache
def table() -> dict[str, list[str]]:
    """Return the names that each page lists, by the name of the page."""
    pages: dict[str, list[str]] = yaml.safe_load(TABLE.read_text("utf-8"))
    return pages


def names(page: str) -> list[str]:
    """Return what is listed on a page.

    Raises
    ------
    ApiError
        When the table does not have the page.
    """
    if page not in table():
        raise ApiError(f"book/api.yml: expected an entry for the page {page!r}, got none. Add it.")
    return table()[page]


@cache
def resolve(name: str) -> Any:
    """Return the object of a qualified name.

    Raises
    ------
    ApiError
        When there is none.
    """
    package, *parts = name.split(".")
    value, prefix = _module(package, name), package
    for part in parts:
        prefix = f"{prefix}.{part}"
        # a function may have the name of the module that it comes from
        value = getattr(value, part) if hasattr(value, part) else _module(prefix, name)
    return value


def _module(module: str, name: str) -> Any:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if not f"{module}.".startswith(f"{error.name}."):
            raise  # the module is there; what it imports is not
        raise ApiError(_missing(name)) from None


def _missing(name: str) -> str:
    return (
        f"the API lists {name}, which does not exist. "
        "Correct book/api.yml, or the __all__ of its module."
    )


def public(name: str) -> list[str]:
    """Return the names that a listed name stands for: those in a module's ``__all__``, or itself.

    Raises
    ------
    ApiError
        When a module has no ``__all__``, or a name does not exist.
    """
    value = resolve(name)
    if not isinstance(value, ModuleType):
        return [name]
    if not hasattr(value, "__all__"):
        raise ApiError(f"expected __all__ in {name}, which the API lists; got none. Add it.")
    return [inner for member in value.__all__ for inner in public(f"{name}.{member}")]


def sources(listed: list[str]) -> set[str]:
    """Return the files from which entries are made."""
    result = set()
    for name in listed:
        for entry in (name, *public(name)):
            value = resolve(entry)
            module = inspect.getmodule(value) or resolve(entry.rpartition(".")[0])
            if file := getattr(module, "__file__", None):
                result.add(file)
    return result


# --- Texts ---------------------------------------------------------------------------------------


def text(name: str) -> str:
    """Return the docstring of an object, or the one that stands below a constant."""
    value = resolve(name)
    if isinstance(value, ModuleType) or inspect.isclass(value) or inspect.isroutine(value):
        return inspect.getdoc(value) or ""
    module, _, attribute = name.rpartition(".")
    return _below_constant(module, attribute)


def _below_constant(module: str, name: str) -> str:
    """Return the string below the assignment of a name, in the module where it is assigned."""
    body = _tree(module).body
    for statement, after in pairwise([*body, ast.Pass()]):
        if name in _assigned(statement) and isinstance(after, ast.Expr):
            return inspect.cleandoc(str(getattr(after.value, "value", "")))
    for statement in ast.walk(_tree(module)):
        if isinstance(statement, ast.ImportFrom) and name in {a.name for a in statement.names}:
            return _below_constant(statement.module or "", name)
    return ""


@cache
def _tree(module: str) -> ast.Module:
    file = importlib.import_module(module).__file__ or ""
    return ast.parse(Path(file).read_text("utf-8"))


def _assigned(statement: ast.stmt) -> list[str]:
    if isinstance(statement, ast.Assign):
        targets: list[ast.expr] = statement.targets
    elif isinstance(statement, ast.AnnAssign):
        targets = [statement.target]
    else:
        return []
    return [target.id for target in targets if isinstance(target, ast.Name)]


def summary(name: str) -> str:
    """Return the first sentence about an object, in reStructuredText without references."""
    paragraph = " ".join(text(name).split("\n\n")[0].split())
    plain = re.sub(r":(?!math)[a-z:]+:`~?([^`]*)`", r"``\1``", paragraph)
    sentence = re.match(r".*?[.?!](?=\s|$)", plain)
    return sentence[0] if sentence else plain
