"""An element of HTML as a node of the tree, links, and what lies above a node."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment


class html(nodes.General, nodes.TextElement):  # noqa: N801
    """One HTML element."""


def element(tag: str, *children: Any, ids: Sequence[str] = (), **attributes: str) -> html:
    """Return an HTML element with its children; ``_`` in a name of an attribute means ``-``."""
    named = {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items()}
    inside = (c if isinstance(c, nodes.Node) else nodes.Text(c) for c in children)
    return html("", "", *inside, tag=tag, html=named, ids=[*ids])


def link(app: Sphinx, page: str, to: str, *content: nodes.Node, anchor: str = "") -> nodes.Element:
    """Return a link from a page to another, or to an anchor there."""
    uri = app.builder.get_relative_uri(page, to) + (anchor and f"#{anchor}")
    return nodes.reference("", "", *content, internal=True, refuri=uri)


def static(env: BuildEnvironment) -> str:
    """Return the way from the page that is read to the scripts and style sheets."""
    return "../" * env.docname.count("/") + "_static"


def shown(env: BuildEnvironment) -> dict[str, Any]:
    """Return what `tools.site.book` tells of the cells of the page that is read."""
    file = Path(env.app.outdir).parent / "shown" / f"{env.docname}.json"
    if file.is_file() and "shown" not in env.temp_data:
        env.note_dependency(str(file))
        env.temp_data["shown"] = json.loads(file.read_text("utf-8"))
    return env.temp_data.get("shown", {})


def above(node: nodes.Node, *kinds: type[nodes.Node]) -> nodes.Node | None:
    """Return the nearest node of these kinds that another lies in."""
    inside: nodes.Node | None = node.parent
    while inside is not None and not isinstance(inside, kinds):
        inside = inside.parent
    return inside


def visit(translator: Any, node: html) -> None:
    """Open an element."""
    attributes = {"CLASS" if k == "class" else k: value for k, value in node["html"].items()}
    translator.body.append(translator.starttag(node, node["tag"], "", **attributes))


def depart(translator: Any, node: html) -> None:
    """Close an element."""
    if node["tag"] not in ("wbr", "input"):
        translator.body.append(f"</{node['tag']}>")


def setup(app: Sphinx) -> dict[str, Any]:
    """Tell Sphinx how to write an element."""
    app.add_node(html, html=(visit, depart))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
