"""The API: entries made from the docstrings, an index of them, and links to them from all pages.

The directive ``api`` fills a page below ``book/api`` with what ``book/api.yml`` lists for it, and
``api-index`` lists all names. Both stand in a block ``{eval-rst}``, because docstrings are
reStructuredText. A page links the code that names an entry, such as ``erm.minibatches``, at its
first mention in each section.
"""

import ast
import contextlib
import importlib
import inspect
import re
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from docutils import nodes
from elements import above, link
from jinja2 import Environment, FileSystemLoader
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.pycode import ModuleAnalyzer
from sphinx.util.docutils import SphinxDirective
from traitlets import HasTraits

ROOT = Path(__file__).resolve().parent.parent.parent
TABLE = ROOT / "book" / "api.yml"
"""The public names of both packages, by the pages with their entries."""
FOLDER = "book/api/"
OPTION = re.compile(r"c\.(\w+\.\w+)")
UNLINKED = (nodes.reference, nodes.title, addnodes.desc_signature)
"""Where the name of an entry stays as it is."""
IN_CELL = re.compile(
    r'(?<!<span class="o">\.</span>)<span class="n">(\w+)</span>(?!<span class="o">=</span>)'
    r'(?:<span class="o">\.</span><span class="n">(\w+)</span>)?'
)
"""A name in highlighted code, and the one behind its dot: no attribute, no name of an argument."""
SHORTENED = (
    (r"~?jaxtyping\.(\w+)\[ndarray, '\s*([^']*?)\s*'\]", r'\1["\2"]'),
    (r"~?jaxtyping\.(\w+)\[([\w.]+), '\s*([^']*?)\s*'\]", r'\1[\2, "\3"]'),
    (r"~(?!optdl\.|gradebox\.)(?:\w+\.)+", ""),
    (r"\b(?:typing|collections\.abc|np|numpy|torch|jaxtyping)\.", ""),
    (r"\[\[\.\.\.\]", "[..."),
    (r"<(?:function|class) '?(?:[\w.]+\.)?(\w+)'?>", r"\1"),
    (r"= <.*?>(?=[,)])", "= ..."),
)
"""What a signature shows instead of what Python tells: ``Float["m d"]`` is an array of floats."""


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
    if not inspect.ismodule(value):
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
    if inspect.ismodule(value) or inspect.isclass(value) or inspect.isroutine(value):
        return inspect.getdoc(value) or ""
    module, _, constant = name.rpartition(".")
    analyzer = ModuleAnalyzer.for_module(module)
    if documented := analyzer.find_attr_docs().get(("", constant)):
        return "\n".join(documented).strip()
    imports = (s for s in ast.walk(ast.parse(analyzer.code)) if isinstance(s, ast.ImportFrom))
    origin = next((s.module for s in imports if constant in _bound_by(s)), None)
    return text(f"{origin}.{constant}") if origin else ""


def _bound_by(statement: ast.ImportFrom) -> list[str]:
    names = [alias.name for alias in statement.names]
    return importlib.import_module(statement.module).__all__ if names == ["*"] else names


def summary(name: str) -> str:
    """Return the first sentence about an object, in reStructuredText without references."""
    paragraph = " ".join(text(name).split("\n\n")[0].split())
    plain = re.sub(r":(?!math)[a-z:]+:`~?([^`]*)`", r"``\1``", paragraph)
    sentence = re.match(r".*?[.?!](?=\s|$)", plain)
    return sentence[0] if sentence else plain


class Api(SphinxDirective):
    """The entries of a page, or the index of all, in a section for each module or page."""

    def run(self) -> list[nodes.Node]:
        """Return the sections, in the order of the table; a lone module needs none."""
        if self.name == "api":
            listed = self.listed(self.env.docname.removeprefix(FOLDER))
            if len(listed) == 1 or not inspect.ismodule(resolve(listed[0])):
                return self.parse_text_to_nodes(_text("entries", listed))
            return [self.section("section", nodes.literal("", n), "entries", [n]) for n in listed]
        groups: dict[str, list[str]] = {}
        for page in table():
            listed = self.listed(page)
            modules = [name for name in listed if inspect.ismodule(resolve(name))]
            groups |= {name: [name] for name in modules} or {page: listed}
        return [self.section("index", nodes.Text(t), "index", n) for t, n in groups.items()]

    def listed(self, page: str) -> list[str]:
        """Return what a page lists; the page is read again when a source of that changes."""
        if page not in table():
            raise self.error(f"expected an entry for the page {page} in book/api.yml; got none")
        for file in (str(TABLE), *sources(table()[page])):
            self.env.note_dependency(file)
        return table()[page]

    def section(self, kind: str, title: nodes.Node, *content: Any) -> nodes.section:
        """Return a section with the lines about some names."""
        inside = nodes.title("", "", title), *self.parse_text_to_nodes(_text(*content))
        return nodes.section("", *inside, ids=[nodes.make_id(f"{kind}-{title.astext()}")])


def _text(form: str, listed: list[str]) -> str:
    """Return what ``api.jinja`` writes about names, in reStructuredText."""
    return "\n".join(getattr(_forms(), form)(name) for name in listed)


@cache
def _forms() -> Any:
    forms = Environment(loader=FileSystemLoader(Path(__file__).parent), trim_blocks=True)
    known = (is_command, issubclass, options, public, repr, resolve, sentence, summary, text)
    forms.globals |= {f.__name__: f for f in known} | {"inspect": inspect, "HasTraits": HasTraits}
    return forms.get_template("api.jinja").module


def is_command(value: Any) -> bool:
    """Return whether this function returns the command line of a program."""
    return "ArgumentParser" in str(getattr(value, "__annotations__", {}).get("return"))


def sentence(text: str | None) -> str:
    """Return a help text as a sentence, its addresses as code."""
    plain = re.sub(r"\b\w+://[\w.:/]*\w", r"``\g<0>``", text or "")
    return f"{plain[:1].upper()}{plain[1:]}."


def options(value: Any) -> list[Any]:
    """Return what can be configured in a class, in the order of its source; else nothing."""
    traits = value.class_own_traits(config=True) if issubclass(value, HasTraits) else {}
    return [traits[name] for name in vars(value) if name in traits]


def show_signature(
    app: Sphinx, what: str, name: str, value: Any, options: Any, given: str, result: str
) -> tuple[str | None, str | None]:
    """Return a signature with its types in few words."""
    if inspect.isclass(value) and issubclass(value, HasTraits | BaseException):
        return "", None
    return shortened(given), None if what == "class" else shortened(result)


def shortened(signature: str | None) -> str | None:
    """Return a signature, or a part of one, with its types in few words."""
    for long, short in SHORTENED:
        signature = signature and re.sub(long, short, signature)
    return signature


def skip(app: Sphinx, what: str, name: str, value: Any, skipped: bool, options: Any) -> bool | None:
    """Leave out a class that another class keeps as an attribute."""
    return True if what == "class" and inspect.isclass(value) else None


def leave_plain(app: Sphinx, env: Any, node: Any, content: nodes.Element) -> nodes.Element | None:
    """Leave a name without a link where it has no entry; one that is nowhere is an error."""
    if node.get("refdomain") != "py":
        return None
    if "refwarn" not in node:  # in a signature, not in a text
        return content
    module = node.get("py:module")
    for scope in ("", f"{module}.", f"{module}.{node.get('py:class')}."):
        name = f"{scope}{node['reftarget']}"
        with contextlib.suppress(ApiError):
            resolve(name if "." in name or name in ("optdl", "gradebox") else f"builtins.{name}")
            return content
    return None


def link_names(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Link the code that names an entry, once in each section."""
    objects = app.env.get_domain("py").objects
    short = {".".join(name.split(".")[-2:]): name for name in objects if "gradebox" in name}
    seen = set()
    for code in list(doctree.findall(nodes.TextElement)):
        if not isinstance(code, nodes.literal) and code.get("tag") != "code":
            continue  # tables have code as an element of HTML
        name = _entry(code.get("entry", code.astext()).removesuffix("()"), objects, short)
        mention = (name, above(code, nodes.section))
        if name is None or mention in seen or above(code, *UNLINKED):
            continue
        seen.add(mention)
        page, anchor = objects[name].docname, objects[name].node_id
        if page != docname:
            code.replace_self(link(app, docname, page, code.deepcopy(), anchor=anchor))


def _entry(text: str, objects: dict[str, Any], short: dict[str, str]) -> str | None:
    """Return the name of the entry that a code means: ``erm.x``, ``optdl.erm.x``, ``c.Class.x``."""
    if "." not in text:
        return None
    if option := OPTION.fullmatch(text):
        return short.get(option[1])
    # a package lists what its modules define
    within = re.sub(r"^(\w+)\.\w+\.", r"optdl.\1.", text)
    return next((name for name in (text, f"optdl.{text}", within) if name in objects), None)


def visit_literal_block(writer: Any, node: nodes.literal_block) -> None:
    """Write code; in a cell, link the names of entries, once in each section."""
    try:
        type(writer).visit_literal_block(writer, node)
    except nodes.SkipNode:
        if "cell_input" in node.parent.get("classes", ()):
            writer.body[-1] = IN_CELL.sub(lambda name: _linked(writer, node, name), writer.body[-1])
        raise


def _linked(writer: Any, node: nodes.Node, found: re.Match[str]) -> str:
    """Return a name in a cell as it is written: with a link if it is the first of its section."""
    if not hasattr(writer, "names_in_cells"):
        writer.names_in_cells, writer.linked = _imported(writer.document), set()
    objects = writer.builder.env.get_domain("py").objects
    name = writer.names_in_cells.get(found[1], "")
    inner = f"{name}.{found[2]}"
    name = inner if inner in objects else name
    mention = (name, above(node, nodes.section))
    if name not in objects or objects[name].objtype == "module" or mention in writer.linked:
        return found[0]
    writer.linked.add(mention)
    uri = writer.builder.get_relative_uri(writer.builder.current_docname, objects[name].docname)
    start = found[0].rindex("<span") if name == inner else 0
    end = found[0].index("</span>", start) + len("</span>")
    to_entry = f'<a href="{uri}#{objects[name].node_id}">{found[0][start:end]}</a>'
    return found[0][:start] + to_entry + found[0][end:]


def _imported(document: nodes.document) -> dict[str, str]:
    """Return the whole names of what the cells of a page import from the package."""
    result = {}
    for cell in document.findall(nodes.literal_block):
        if "cell_input" not in cell.parent.get("classes", ()):
            continue
        with contextlib.suppress(SyntaxError):  # a command of IPython
            for part in ast.walk(ast.parse(cell.astext())):
                if isinstance(part, ast.ImportFrom) and (part.module or "").startswith("optdl"):
                    result |= {a.asname or a.name: f"{part.module}.{a.name}" for a in part.names}
    return result


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
        value = resolve(name)
        value = value.fget if isinstance(value, property) else inspect.unwrap(value)
        file, (_, line) = inspect.getsourcefile(value), inspect.getsourcelines(value)
    except (ApiError, TypeError, OSError):
        return ""  # a constant, or what only an instance has
    return f"{Path(file or '').relative_to(ROOT).as_posix()}#L{line}"


def import_once(app: Sphinx, env: Any, docnames: list[str]) -> None:
    """Import what the pages describe before several processes read them."""
    if any(page.startswith(FOLDER) for page in docnames):
        for listed in table().values():
            sources(listed)


def setup(app: Sphinx) -> dict[str, Any]:
    """Tell Sphinx about directives, links, and how docstrings are read."""
    app.add_directive("api", Api)
    app.add_directive("api-index", Api)
    app.connect("env-before-read-docs", import_once)
    app.connect("autodoc-process-signature", show_signature)
    app.connect("autodoc-skip-member", skip)
    app.connect("missing-reference", leave_plain)
    app.connect("doctree-read", link_sources)
    app.connect("doctree-resolved", link_names)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
