"""What readers use besides the pages: the words that the search shows, and buttons."""

import json
import posixpath
import re
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.etree.ElementTree import XML, Element

import formulas
import lessons
from docutils import nodes
from elements import html
from myst_nb.sphinx_ import HideCodeCellNode
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.config import ENUM
from sphinx.errors import ConfigError

FRAGMENTS = "words"
"""The folder of the words of each page, beside that of the site."""
SILENT = (nodes.raw, nodes.comment, nodes.image, nodes.footnote_reference, nodes.label)
SILENT += (nodes.target, addnodes.index, addnodes.toctree, HideCodeCellNode)
"""Nodes whose words nobody looks for, such as the code that draws a figure."""
INLINE = {"span", "code", "wbr", "strong"}
"""Elements without a space around their words."""
UNSAID = {"exercise-title", "exercise-points", "exercise-hints", "exercise-solution"}
UNSAID |= {"guess", "guess-line"}
"""Classes of such nodes: among them what would tell an answer to somebody who has not asked."""

CARD = re.compile(r'<details class="card" id="card-(\w+)">(.*?)</details>', re.DOTALL)
SIGNS = str.maketrans("−∗⋅⋯⊤ϕϵ", "-*·…Tφε", "\u2061")
HIGH = str.maketrans("0123456789+-nTi′″", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿᵀⁱ'\"")
TIGHT = set("()[]{}|‖⟨⟩⌈⌉⌊⌋/!+-·")
"""Operators without a space around them."""


def plain(math: Element) -> str:
    """Return a formula in MathML as plain text: a fraction of roots is ``σ/(sqrt(n))``."""
    text = (math.text or "").translate(SIGNS)
    inside = [plain(child) for child in math]
    match math.tag, [part.replace(" ", "") for part in inside]:
        case "mo", _:
            return text if text in TIGHT else f" {text} "
        case "mi", _:
            return f" {text} " if len(text) > 1 else text
        case "mspace", _:
            return " "
        case "mfrac", _:
            return "/".join(x if x.strip().isalnum() else f"({x.strip()})" for x in inside)
        case "msqrt", _:
            return f"sqrt({''.join(inside).strip()})"
        case "mover", [base, _]:
            return base
        case "msup", [base, high]:
            return base + _high(high)
        case "msub" | "munder", [base, low]:
            return base + _low(low)
        case "msubsup" | "munderover", [base, low, high]:
            return base + _low(low) + _high(high)
        case "mtable" | "mtr", _:
            return " ".join(inside)
    return text + "".join(inside)


def _low(text: str) -> str:
    return "ᵢ" if text == "i" else f"_{text}"


def _high(text: str) -> str:
    """Return an exponent, raised where Unicode can do it."""
    raised = text.translate(HIGH)
    return raised if raised != text and len(raised) < 4 else f"^{text}"


def sections(app: Sphinx, page: str, doctree: nodes.document) -> list[list[str]]:
    """Return the sections of a page: anchor, title and words of each, in order."""
    result: list[list[Any]] = []
    _walk(doctree, ["", "", []], result)
    numbers = app.env.toc_secnumbers.get(page, {})
    for place, section in enumerate(result):
        if number := numbers.get(f"#{section[0]}") or (place == 0 and numbers.get("")):
            section[1] = f"{'.'.join(map(str, number))}. {section[1]}"
    return [[anchor, title, _tidy("".join(words))] for anchor, title, words in result]


def _text(node: nodes.Node) -> str:
    """Return the words of a node that is no section."""
    words: list[str] = []
    _walk(node, ["", "", words], [])
    return _tidy("".join(words))


def _section(node: Any, classes: set[str]) -> tuple[str, str, nodes.Node] | None:
    """Return anchor, title and content of a node that is a section in the search."""
    if isinstance(node, nodes.section):
        return node["ids"][0], "", node
    if "exercise" in classes:
        return node["ids"][0], _text(node[0]), node
    if isinstance(node, nodes.definition_list_item) and node[0]["ids"]:  # a term of the glossary
        return node[0]["ids"][0], _text(node[0]), node[-1]
    if isinstance(node, addnodes.desc) and node[0]["ids"]:
        return node[0]["ids"][0], node[0]["ids"][0], node
    return None


def _walk(parent: nodes.Node, current: list[Any], result: list[list[Any]]) -> None:
    """Add the words below a node to the current section, and the sections there to all."""
    for node in parent.children:
        if isinstance(node, nodes.Text):
            current[2].append(node.astext())
            continue
        classes = {*node.get("classes", ()), *node.get("html", {}).get("class", "").split()}
        if isinstance(node, SILENT) or UNSAID & classes:
            continue
        if section := _section(node, classes):
            anchor, title, content = section
            result.append([anchor, title, []])
            _walk(content, result[-1], result)
        elif isinstance(node, nodes.title) and isinstance(parent, nodes.section):
            current[1] = _text(node)
        elif isinstance(node, nodes.math | nodes.math_block):
            (math,) = re.findall("<math.*</math>", formulas.shown[formulas.name(node)], re.DOTALL)
            current[2].append(f" {plain(XML(math))} ")
        else:
            _walk(node, current, result)
            if not isinstance(node, nodes.Inline) and node.get("tag") not in INLINE:
                current[2].append(" ")


def _tidy(text: str) -> str:
    return re.sub(r" ([.,;:!?)])(?= |$)", r"\1", " ".join(text.split()))


def rows(doctree: nodes.document, page: str) -> dict[str, list[list[str]]]:
    """Return pages, anchors and titles where each row is taught, asked, and last its own place."""
    result: dict[str, list[list[str]]] = {}
    for row in doctree.findall(lambda n: isinstance(n, html) and n["tag"] == "tr" and n[0]["ids"]):
        places = []
        for cell in row.children[2:]:
            if cell["html"]["data-label"] in ("Section", "Exercise"):
                for link in cell.findall(nodes.reference):
                    address, _, anchor = link["refuri"].partition("#")
                    target = posixpath.normpath(posixpath.join(posixpath.dirname(page), address))
                    places.append([target.removesuffix(".html"), anchor, _text(link)])
        for anchor in row[0]["ids"]:
            name = anchor.removeprefix("row-").upper()
            result[name] = [*places, [page, anchor, f"{name}: {_text(row[1])}"]]
    return result


def keep_words(app: Sphinx, page: str, doctree: nodes.document, body: str) -> None:
    """Keep the words of a page for the search, the places of the rows that it tells, its cards."""
    folder = Path(app.outdir).parent / FRAGMENTS
    folder.mkdir(exist_ok=True, parents=True)
    cards = {name: text.strip() for name, text in CARD.findall(body)}
    content = [sections(app, page, doctree), rows(doctree, page), cards]
    name = f"{quote(page, safe='')}.json"
    (folder / name).write_text(json.dumps(content, ensure_ascii=False), "utf-8")


def write_scripts(app: Sphinx, error: Exception | None) -> None:
    """Write the words of all pages, what there is to do in each lesson, and all cards."""
    folder = Path(app.outdir).parent / FRAGMENTS
    if error is not None or not folder.is_dir():
        return
    texts, all_rows, cards, tasks = {}, {}, {}, {}
    pages = dict.fromkeys([*lessons.in_order(app.env), *sorted(app.env.all_docs)])
    for page in pages:
        file = folder / f"{quote(page, safe='')}.json"
        texts[page], of_page, of_lesson = json.loads(file.read_text("utf-8"))
        all_rows |= of_page
        if lesson := lessons.lessons_of(app.env).get(page):
            name = page.removeprefix("book/")
            tasks[name] = [*app.env.metadata[page]["work"], int(lesson.appendix)]
            cards[name] = of_lesson
    search = {"SEARCH_TEXTS": dict(sorted(texts.items())), "SEARCH_ROWS": all_rows}
    for file, scripts in (
        ("searchtexts", search),
        ("lessons", {"LESSONS": tasks}),
        ("cards", {"CARDS": cards}),
    ):
        lines = (
            f"window.{name} = {json.dumps(content, ensure_ascii=False)};\n"
            for name, content in scripts.items()
        )
        (Path(app.outdir) / "_static" / f"{file}.js").write_text("".join(lines), "utf-8")


REPOSITORY = re.compile(r"https://github\.com/([\w.-]+)/([\w.-]+?)(?:\.git)?/?")
SERVICES = {
    "colab": ("Colab", "https://colab.research.google.com/github/{0}/{1}/blob/{2}/{3}"),
    "binder": ("Binder", "https://mybinder.org/v2/gh/{0}/{1}/{2}?urlpath=lab/tree/{3}"),
}
"""What opens a notebook: its name, and its address with owner, name, branch and path."""


def check_launch(app: Sphinx, config: Any) -> None:
    """Refuse an address of the launch buttons that leads nowhere."""
    if config.launch_repository and not REPOSITORY.fullmatch(config.launch_repository):
        raise ConfigError(
            "launch_repository: expected an address such as https://github.com/OWNER/NAME, "
            f"got {config.launch_repository!r}. Correct it in _config.yml, or empty it."
        )


def notebook_buttons(app: Sphinx, page: str) -> dict[str, Any]:
    """Return the notebook that a page offers, and the services that open it, for the template."""
    if "kernelspec" not in app.env.metadata.get(page, {}):
        return {}
    # the first page of a chapter has the name of its topic alone
    name = page.removeprefix("book/").removesuffix("/index").replace("/", "-")
    notebook, config = f"chapter-{name}.ipynb", app.config
    repository = REPOSITORY.fullmatch(config.launch_repository or "")
    links = [
        (name, address.format(*repository.groups(), config.launch_branch, f"notebooks/{notebook}"))
        for name, address in (SERVICES[service] for service in config.launch_on if repository)
    ]
    return {"notebook": notebook, "launch_links": links}


def setup(app: Sphinx) -> dict[str, Any]:
    """Tell Sphinx about the settings, and what to write at the end."""
    app.add_config_value("launch_repository", "", "html", types=[str])
    app.add_config_value("launch_branch", "main", "html", types=[str])
    app.add_config_value("launch_on", [*SERVICES], "html", types=ENUM(*SERVICES))
    app.connect("config-inited", check_launch)
    app.connect("build-finished", write_scripts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
