"""The API: entries made from the docstrings, an index of them, and links to them from all pages.

The directive ``api`` fills a page below ``book/api`` with what ``book/api.yml`` lists for it, and
``api-index`` lists all names. Both stand in a block ``{eval-rst}``, because docstrings are
reStructuredText. A page links the code that names an entry, such as ``erm.minibatches``, at its
first mention in each section.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from bs4 import BeautifulSoup, Tag
from docutils import nodes
from docutils.statemachine import StringList
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from traitlets import HasTraits

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import public_names as names  # noqa: E402
import signatures  # noqa: E402

INDEX = "book/api"
OPTION = re.compile(r"c\.(\w+\.\w+)")
NAME = re.compile(r"(?:optdl\.|gradebox\.)?\w+(?:\.\w+)+")
UNLINKED = (nodes.reference, nodes.title, addnodes.desc_signature)
"""Where the name of an entry stays as it is."""
PACKAGES = ("optdl", "gradebox")
LONG = 60
"""Letters of a constant's value that is shown."""


# --- Directives ----------------------------------------------------------------------------------


class Api(SphinxDirective):
    """The entries of a page, in a section for each module that the page lists."""

    def run(self) -> list[nodes.Node]:
        """Return the sections, or the entries alone where there is one module."""
        listed = names.names(self.env.docname.removeprefix(names.FOLDER))
        for file in names.sources(listed):
            self.env.note_dependency(file)
        modules = [name for name in listed if isinstance(names.resolve(name), ModuleType)]
        if len(modules) < 2:
            return self.parsed(line for name in listed for line in entry(name))
        return [self.section(name) for name in listed]

    def section(self, module: str) -> nodes.section:
        """Return a module's entries below its name."""
        title = nodes.title("", "", nodes.literal("", module))
        section = nodes.section("", title, ids=[nodes.make_id(f"section-{module}")])
        section += self.parsed(entry(module))
        return section

    def parsed(self, lines: Iterable[str]) -> list[nodes.Node]:
        """Return lines of reStructuredText as nodes."""
        holder = nodes.container()
        self.state.nested_parse(StringList(list(lines), self.env.docname), 0, holder)
        return list(holder.children)


class ApiIndex(Api):
    """All entries in a line each, in a section for each module."""

    def run(self) -> list[nodes.Node]:
        """Return the sections, in the order of the table."""
        self.env.note_dependency(str(names.TABLE))
        result = []
        for page, listed in names.table().items():
            for file in names.sources(listed):
                self.env.note_dependency(file)
            modules = [name for name in listed if isinstance(names.resolve(name), ModuleType)]
            result += [self.index(name, [name]) for name in modules] or [self.index(page, listed)]
        return result

    def index(self, title: str, listed: list[str]) -> nodes.section:
        """Return the section with what these names stand for."""
        section = nodes.section("", nodes.title("", title), ids=[nodes.make_id(f"index-{title}")])
        section += self.parsed(line for name in listed for line in indexed(name))
        return section


def entry(name: str) -> Iterator[str]:
    """Yield the reStructuredText that makes the entries of a listed name."""
    value = names.resolve(name)
    if isinstance(value, ModuleType):
        yield from (f".. automodule:: {name}", "   :no-members:", "")
    for public in names.public(name):
        yield from _described(public, names.resolve(public))


def _described(name: str, value: Any) -> Iterator[str]:
    if inspect.isclass(value):
        yield f".. autoclass:: {name}"
        # what nbgrader calls is no matter of who configures it
        if not issubclass(value, HasTraits):
            yield from ("   :members:", "   :special-members: __call__")
        if any(base.__module__.startswith("optdl") for base in value.__bases__):
            yield "   :show-inheritance:"
    elif is_command(value):
        yield from _commands(value())
    elif inspect.isroutine(value):
        yield f".. autofunction:: {name}"
    else:
        module, _, attribute = name.rpartition(".")
        yield from (f".. py:data:: {attribute}", f"   :module: {module}")
        if len(repr(value)) <= LONG and "<" not in repr(value):
            yield f"   :value: {value!r}"
        yield from ("", *(f"   {line}" for line in names.text(name).splitlines()))
    yield ""


def indexed(name: str) -> Iterator[str]:
    """Yield a list of what a listed name stands for, with the first sentence about each."""
    if isinstance(names.resolve(name), ModuleType):
        yield from (names.summary(name), "")
    for public in names.public(name):
        value = names.resolve(public)
        if is_command(value):
            parser = value()
            link, summary = f":ref:`{parser.prog} <command-{parser.prog}>`", parser.description
        else:
            short_name = public.removeprefix(f"{name}.")
            link, summary = f":py:obj:`{short_name} <{public}>`", names.summary(public)
        yield f"* {link}: {summary}"
    yield ""


# --- Commands ------------------------------------------------------------------------------------


def is_command(value: Any) -> bool:
    """Return whether this function returns the command line of a program."""
    return inspect.isfunction(value) and "ArgumentParser" in str(
        value.__annotations__.get("return")
    )


def _commands(parser: argparse.ArgumentParser) -> Iterator[str]:
    """Yield the options of a command and of the commands below it."""
    usage = parser.format_usage().removeprefix("usage: ").replace("[-h] ", "")
    yield from (f".. _command-{parser.prog.replace(' ', '-')}:", "")
    yield from (f".. rubric:: ``{' '.join(usage.split())}``", "", f"{parser.description or ''}", "")
    yield from (f".. program:: {parser.prog}", "")
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for choice in action._choices_actions:
                below = action.choices[choice.dest]
                below.description = _sentence(choice.help)
                yield from _commands(below)
        elif not isinstance(action, argparse._HelpAction):
            yield from (f".. option:: {_written(action)}", "", f"   {_sentence(action.help)}", "")


def _sentence(text: str | None) -> str:
    """Return a help text as a sentence, its addresses as code."""
    plain = re.sub(r"\b\w+://[\w.:/]*\w", r"``\g<0>``", text or "")
    return f"{plain[:1].upper()}{plain[1:]}."


def _written(action: argparse.Action) -> str:
    """Return an option as it is typed."""
    value = f" {action.metavar}" if action.metavar else ""
    return ", ".join(f"{name}{value}" for name in action.option_strings) or str(action.metavar)


# --- What autodoc asks ---------------------------------------------------------------------------


def show_signature(
    app: Sphinx, what: str, name: str, value: Any, options: Any, given: str, result: str
) -> tuple[str, str | None] | None:
    """Return a signature with its types in few words."""
    if inspect.isclass(value) and issubclass(value, HasTraits | BaseException):
        return "", None
    bound = what == "method" and inspect.isfunction(value) and not _is_static(name)
    shown = signatures.parts(value, bound)
    if shown is not None and inspect.isclass(value):
        return shown[0], None
    return shown


def _is_static(name: str) -> bool:
    owner, _, attribute = name.rpartition(".")
    return isinstance(inspect.getattr_static(names.resolve(owner), attribute), staticmethod)


def complete(app: Sphinx, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """Add to the docstring of a class what can be configured in it."""
    if inspect.isclass(value) and issubclass(value, HasTraits):
        lines += _options(value)


def skip(app: Sphinx, what: str, name: str, value: Any, skipped: bool, options: Any) -> bool | None:
    """Leave out a class that another class keeps as an attribute."""
    return True if what == "class" and inspect.isclass(value) else None


def _options(owner: type[HasTraits]) -> Iterator[str]:
    """Yield what can be configured in a class, in the order of its source."""
    traits = owner.class_own_traits(config=True)
    for name in (name for name in vars(owner) if name in traits):
        trait = traits[name]
        yield from ("", f".. py:attribute:: {name}")
        default = trait.default()
        if default is not None and len(repr(default)) <= LONG:
            yield f"   :value: {default!r}"
        yield from ("", f"   {trait.help}", "")


# --- Links ---------------------------------------------------------------------------------------


def leave_plain(
    app: Sphinx, env: Any, node: addnodes.pending_xref, content: nodes.Element
) -> nodes.Element | None:
    """Leave a name of Python without a link where it has no entry.

    It may be a type of another library, or stand in the package without being public. A name that
    is nowhere stays an error.
    """
    if node.get("refdomain") != "py":
        return None
    target, module = node["reftarget"], node.get("py:module")
    scopes = [module, f"{module}.{node.get('py:class')}"] if module else []
    of_type = "refwarn" not in node  # in a signature, not in a text
    if of_type or any(_exists(name) for name in (target, *(f"{n}.{target}" for n in scopes))):
        return content
    return None


def _exists(name: str) -> bool:
    try:
        names.resolve(name if "." in name or name in PACKAGES else f"builtins.{name}")
    except names.ApiError:
        return False
    return True


def link_names(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Link the code that names an entry, once in each section."""
    objects = app.env.get_domain("py").objects  # type: ignore[attr-defined]
    short = {".".join(name.split(".")[-2:]): name for name in objects if "gradebox" in name}
    seen = set()
    for code in list(doctree.findall(is_code)):
        named = code.get("entry", code.astext()).removesuffix("()")
        name = _entry(named, objects, short)
        mention = (name, above(code, (nodes.section,)))
        if name is None or mention in seen or above(code, UNLINKED):
            continue
        seen.add(mention)
        page, anchor = objects[name].docname, objects[name].node_id
        if page != docname:
            uri = f"{app.builder.get_relative_uri(docname, page)}#{anchor}"
            link = nodes.reference("", "", code.deepcopy(), refuri=uri, internal=True)
            code.replace_self(link)


def _entry(text: str, objects: dict[str, Any], short: dict[str, str]) -> str | None:
    """Return the name of the entry that a code means: ``erm.x``, ``optdl.erm.x``, ``c.Class.x``."""
    if option := OPTION.fullmatch(text):
        return short.get(option[1])
    if not NAME.fullmatch(text):
        return None
    # a package lists what its modules define
    within = re.sub(r"^(\w+)\.\w+\.", r"optdl.\1.", text)
    return next((name for name in (text, f"optdl.{text}", within) if name in objects), None)


def is_code(node: nodes.Node) -> bool:
    """Return whether a node is code within a line; tables have it as an element of HTML."""
    return isinstance(node, nodes.literal) or (
        node.tagname == "html" and isinstance(node, nodes.Element) and node.get("tag") == "code"
    )


def link_code(soup: BeautifulSoup, app: Sphinx, page: str) -> None:
    """Link the names of entries in the code of a page, once in each section."""
    objects = app.env.get_domain("py").objects  # type: ignore[attr-defined]
    cells = soup.select(".cell_input pre")
    names_in_cells = dict(pair for cell in cells for pair in imported(cell.get_text()))
    seen = set()
    for cell in cells:
        section = id(cell.find_parent("section"))
        for first, second in list(_names(cell)):
            name = names_in_cells.get(first.get_text(), "")
            if second is not None and f"{name}.{second.get_text()}" in objects:
                first, name = second, f"{name}.{second.get_text()}"
            entry = objects.get(name)
            if entry and entry.objtype != "module" and (name, section) not in seen:
                seen.add((name, section))
                uri = app.builder.get_relative_uri(page, entry.docname)
                first.wrap(soup.new_tag("a", href=f"{uri}#{entry.node_id}"))


def imported(code: str) -> Iterator[tuple[str, str]]:
    """Yield what a code calls the names that it imports from the package, and their whole names."""
    try:
        statements = ast.walk(ast.parse(code))
    except SyntaxError:
        return  # a command of IPython
    for statement in statements:
        if isinstance(statement, ast.ImportFrom) and (statement.module or "").startswith("optdl"):
            for alias in statement.names:
                yield alias.asname or alias.name, f"{statement.module}.{alias.name}"


def _names(code: Tag) -> Iterator[tuple[Tag, Tag | None]]:
    """Yield each name in a code, with the one behind its dot."""
    for name in code.find_all("span", class_="n"):
        sign = name.next_sibling
        if _has_text(name.previous_sibling, ".") or _has_text(sign, "="):
            continue  # an attribute, or the name of an argument
        behind = sign.next_sibling if _has_text(sign, ".") else None
        yield name, behind if isinstance(behind, Tag) else None


def _has_text(node: Any, text: str) -> bool:
    return isinstance(node, Tag) and node.get_text() == text


def above(node: nodes.Node, kinds: tuple[type[nodes.Node], ...]) -> nodes.Node | None:
    """Return the nearest node of these kinds that another lies in."""
    inside: nodes.Node | None = node.parent
    while inside is not None and not isinstance(inside, kinds):
        inside = inside.parent
    return inside


def link_sources(app: Sphinx, doctree: nodes.document) -> None:
    """Link each entry to its lines in the repository, where ``_config.yml`` names that."""
    if not app.config.launch_repository:
        return
    for signature in list(doctree.findall(addnodes.desc_signature)):
        name = f"{signature.get('module')}.{signature.get('fullname')}"
        if location := source(name):
            address = f"{app.config.launch_repository.removesuffix('.git').rstrip('/')}/blob"
            uri = f"{address}/{app.config.launch_branch}/{location}"
            signature += nodes.reference("", "source", refuri=uri, classes=["api-source"])


def source(name: str) -> str:
    """Return the file of an entry and its line, as GitHub writes them; nothing for a value."""
    try:
        value = names.resolve(name)
        value = value.fget if isinstance(value, property) else inspect.unwrap(value)
        file, (_, line) = inspect.getsourcefile(value), inspect.getsourcelines(value)
    except (names.ApiError, TypeError, OSError):
        return ""  # a constant, or what only an instance has
    return f"{Path(file or '').relative_to(names.ROOT).as_posix()}#L{line}"


# --- Setup ---------------------------------------------------------------------------------------


def import_once(app: Sphinx, env: Any, docnames: list[str]) -> None:
    """Import what the pages describe before several processes read them."""
    if any(page == INDEX or page.startswith(names.FOLDER) for page in docnames):
        for listed in names.table().values():
            for name in listed:
                names.public(name)


def setup(app: Sphinx) -> dict[str, Any]:
    """Tell Sphinx about directives, links, and how docstrings are read."""
    for extension in ("sphinx.ext.autodoc", "sphinx.ext.napoleon"):
        app.setup_extension(extension)
    app.add_directive("api", Api)
    app.add_directive("api-index", ApiIndex)
    app.connect("env-before-read-docs", import_once)
    app.connect("autodoc-process-signature", show_signature)
    # after napoleon, which turns the sections of a docstring into reStructuredText
    app.connect("autodoc-process-docstring", complete, priority=600)
    app.connect("autodoc-skip-member", skip)
    app.connect("missing-reference", leave_plain)
    app.connect("doctree-read", link_sources)
    app.connect("doctree-resolved", link_names)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
