"""The public names of both packages, as ``book/api.yml`` lists them."""

import ast
import importlib
import inspect
import re
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import yaml
from sphinx.pycode import ModuleAnalyzer

ROOT = Path(__file__).resolve().parent.parent.parent
TABLE = ROOT / "book" / "api.yml"
FOLDER = "book/api/"
"""The pages with the entries."""


class ApiError(ValueError):
    """A name of the API does not exist; the message says what to do."""


@cache
def table() -> dict[str, list[str]]:
    """Return the names that each page lists, by the name of the page."""
    return yaml.safe_load(TABLE.read_text("utf-8"))


@cache
def resolve(name: str) -> Any:
    """Return the object of a qualified name, or raise an `ApiError`."""
    owner, _, attribute = name.rpartition(".")
    # a function may have the name of the module that it comes from
    if owner and hasattr(resolve(owner), attribute):
        return getattr(resolve(owner), attribute)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if not f"{name}.".startswith(f"{error.name}."):
            raise  # the module is there; what it imports is not
        raise ApiError(
            f"the API lists {name}, which does not exist. "
            "Correct book/api.yml, or the __all__ of its module."
        ) from None


def public(name: str) -> list[str]:
    """Return what a listed name stands for: the names in a module's ``__all__``, or itself."""
    value = resolve(name)
    if not isinstance(value, ModuleType):
        return [name]
    if not hasattr(value, "__all__"):
        raise ApiError(f"expected __all__ in {name}, which the API lists; got none. Add it.")
    return [inner for member in value.__all__ for inner in public(f"{name}.{member}")]


def sources(listed: list[str]) -> set[str]:
    """Return the files from which entries are made."""
    entries = [entry for name in listed for entry in (name, *public(name))]
    modules = [inspect.getmodule(resolve(e)) or resolve(e.rpartition(".")[0]) for e in entries]
    return {module.__file__ for module in modules if getattr(module, "__file__", None)}


def text(name: str) -> str:
    """Return the docstring of an object, or the one below the assignment of a constant."""
    value = resolve(name)
    if isinstance(value, ModuleType) or inspect.isclass(value) or inspect.isroutine(value):
        return inspect.getdoc(value) or ""
    module, _, constant = name.rpartition(".")
    analyzer = ModuleAnalyzer.for_module(module)
    if documented := analyzer.find_attr_docs().get(("", constant)):
        return "\n".join(documented).strip()
    imports = (s for s in ast.walk(ast.parse(analyzer.code)) if isinstance(s, ast.ImportFrom))
    origin = next((s.module for s in imports if constant in {a.name for a in s.names}), None)
    return text(f"{origin}.{constant}") if origin else ""


def summary(name: str) -> str:
    """Return the first sentence about an object, in reStructuredText without references."""
    paragraph = " ".join(text(name).split("\n\n")[0].split())
    plain = re.sub(r":(?!math)[a-z:]+:`~?([^`]*)`", r"``\1``", paragraph)
    sentence = re.match(r".*?[.?!](?=\s|$)", plain)
    return sentence[0] if sentence else plain
