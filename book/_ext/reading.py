"""What readers use besides the pages: the words that the search shows, and buttons."""

import json
import posixpath
import re
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import quote

from docutils import nodes
from myst_nb.sphinx_ import HideCodeCellNode
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.errors import ConfigError

FRAGMENTS = "words"
"""The folder of the words of each page, beside that of the site."""
SILENT = (nodes.raw, nodes.comment, nodes.image, nodes.footnote_reference, nodes.label)
SILENT += (nodes.target, addnodes.index, addnodes.toctree, HideCodeCellNode)
"""Nodes whose words nobody looks for, such as the code that draws a figure."""
INLINE = {"span", "code", "wbr", "strong"}
"""Elements without a space around their words."""
UNSAID = {"exercise-title", "exercise-points", "exercise-hints", "exercise-solution"}
"""Classes of such nodes: among them what would tell an answer to somebody who has not asked."""

SIGNS = {
    name: sign
    for line in (
        "alpha α beta β gamma γ delta δ epsilon ε varepsilon ε zeta ζ eta η theta θ vartheta ϑ",
        "kappa κ lambda λ mu μ nu ν xi ξ pi π rho ρ sigma σ tau τ phi φ varphi φ chi χ psi ψ",
        "omega ω Gamma Γ Delta Δ Theta Θ Lambda Λ Sigma Σ Phi Φ Psi Ψ Omega Ω nabla ∇ partial ∂",
        "ell ℓ sum ∑ prod ∏ int ∫ infty ∞ le ≤ leq ≤ ge ≥ geq ≥ ne ≠ neq ≠ approx ≈ sim ∼ in ∈",
        "propto ∝ pm ± mp ∓ times × cdot · odot ⊙ to → mapsto ↦ leftarrow ← rightarrow → mid |",
        "gets ← Rightarrow ⇒ iff ⇔ forall ∀ exists ∃ cup ∪ cap ∩ subset ⊂ ldots … dots … cdots …",
        "lVert ‖ rVert ‖ lvert | rvert | langle ⟨ rangle ⟩ top ᵀ star * ast * imath ı quad _ ll ≪",
        "gg ≫ equiv ≡ circ ∘ perp ⊥ lceil ⌈ rceil ⌉ lfloor ⌊ rfloor ⌋ otimes ⊗ oplus ⊕ vdots …",
    )
    for name, sign in zip(line.split()[::2], line.split()[1::2], strict=True)
}
NAMED = ("log", "exp", "ln", "max", "min", "arg", "sin", "cos", "tanh", "sqrt", "det", "dim")
SIGNS |= {name: f"{name} " for name in NAMED}
HIGH = str.maketrans("0123456789+-nTi", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿᵀⁱ")


def plain(tex: str) -> str:
    r"""Return a formula as a line of plain text.

    >>> plain(r"\\(\\frac{\\sigma}{\\sqrt n} \\le x_i^2\\)")
    'σ/(sqrt n) ≤ xᵢ²'
    """
    text = re.sub(r"\\[()\[\]]|\\(?:begin|end)\{\w+\*?\}|\\tag\{.*?\}|&", " ", tex)
    text = re.sub(r"\\([,;:! ]|\\)", " ", text).replace(r"\{", "(").replace(r"\}", ")")
    text = re.sub(r"\\\|", "‖", text)
    group = r"\s*(?:\{([^{}]*)\}|(\w|\\[A-Za-z]+))"
    for _ in range(4):  # from the innermost braces outwards
        for pattern, form in (
            (r"\^\s*\{([^{}]*)\}", lambda m: _high(m[1])),
            (r"_\s*\{([^{}]*)\}", lambda m: f"_{m[1].strip()}"),
            (r"\\(?![dt]?frac|sqrt)[A-Za-z]+\s*\{([^{}]*)\}", r"\1"),
            (r"\\sqrt\s*\{([^{}]*)\}", r" sqrt(\1)"),
            (
                rf"\\[dt]?frac{group}{group}",
                lambda m: f"{_unit(m[1] or m[2])}/{_unit(m[3] or m[4])}",
            ),
        ):
            text = re.sub(pattern, form, text)
    text = re.sub(r"\^\s*(\\[A-Za-z]+|\S)", lambda m: _high(m[1]), text)
    text = re.sub(r"\\([A-Za-z]+)", lambda m: SIGNS.get(m[1], " ").replace("_", " "), text)
    text = re.sub(r"_i\b", "ᵢ", re.sub(r"[{}$\\]", "", text))
    return " ".join(text.replace("~", " ").split())


def _unit(text: str) -> str:
    return text.strip() if re.fullmatch(r"\s*\\?\w+\s*", text) else f"({text.strip()})"


def _high(text: str) -> str:
    """Return an exponent, raised where Unicode can do it."""
    raised = text.strip().translate(HIGH)
    return raised if raised != text.strip() and len(raised) < 4 else f"^{text.strip()}"


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
    if "exercise" in classes and "try" not in classes:
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
        elif isinstance(node, nodes.literal_block):
            code = re.sub(r"\$([^$\n]+)\$", lambda match: plain(match[1]), node.astext())
            current[2].append(f" {code} ")
        elif isinstance(node, nodes.math | nodes.math_block):
            current[2].append(f" {plain(node.astext())} ")
        else:
            _walk(node, current, result)
            if not isinstance(node, nodes.Inline) and node.get("tag") not in INLINE:
                current[2].append(" ")


def _tidy(text: str) -> str:
    return re.sub(r" ([.,;:!?)])(?= |$)", r"\1", " ".join(text.split()))


def rows(body: str, page: str) -> dict[str, list[list[str]]]:
    """Return where each row of the course is taught and asked: pages, anchors and titles.

    The last place of a row is its own, in the tables of this page.
    """
    result: dict[str, list[list[str]]] = {}
    for row in re.findall(r"<tr\b.*?</tr>", body, re.DOTALL):
        what = re.search(r'class="coverage-what"[^>]*>(.*?)</td>', row, re.DOTALL)
        title, anchors = _without_tags(what[1]) if what else "", []
        for cell in re.findall(r'data-label="(?:Section|Exercise)".*?</td>', row, re.DOTALL):
            for href, text in re.findall(r'<a [^>]*href="([^"]*)"[^>]*>(.*?)</a>', cell, re.DOTALL):
                address, _, anchor = href.partition("#")
                target = posixpath.normpath(posixpath.join(posixpath.dirname(page), address))
                anchors.append([target.removesuffix(".html"), anchor, _without_tags(text)])
        for name in re.findall(r'id="row-([\w-]+)"', row):
            own = [page, f"row-{name}", f"{name.upper()}: {title}"]
            result[name.upper()] = [*anchors, own]
    return result


def _without_tags(markup: str) -> str:
    text = re.sub(r"\\\((.*?)\\\)", lambda tex: plain(unescape(tex[1])), markup)
    return _tidy(unescape(re.sub(r"<[^>]*>", "", text)))


def keep_words(app: Sphinx, page: str, doctree: nodes.document, body: str) -> None:
    """Keep the words of a page for the search, and the places of the rows that it tells."""
    folder = Path(app.outdir).parent / FRAGMENTS
    folder.mkdir(exist_ok=True, parents=True)
    content = [sections(app, page, doctree), rows(body, page) if 'id="row-' in body else {}]
    name = f"{quote(page, safe='')}.json"
    (folder / name).write_text(json.dumps(content, ensure_ascii=False), "utf-8")


def join_words(app: Sphinx, error: Exception | None) -> None:
    """Write the words of all pages as one script."""
    folder = Path(app.outdir).parent / FRAGMENTS
    if error is not None or not folder.is_dir():
        return
    texts, all_rows = {}, {}
    for page in sorted(app.env.all_docs):
        file = folder / f"{quote(page, safe='')}.json"
        if file.is_file():
            texts[page], of_page = json.loads(file.read_text("utf-8"))
            all_rows |= of_page
    script = "".join(
        f"window.SEARCH_{name} = {json.dumps(content, ensure_ascii=False)};\n"
        for name, content in (("TEXTS", texts), ("ROWS", all_rows))
    )
    (Path(app.outdir) / "_static" / "searchtexts.js").write_text(script, "utf-8")


REPOSITORY = re.compile(r"https://github\.com/([\w.-]+)/([\w.-]+?)(?:\.git)?/?")
SERVICES = {
    "colab": ("Colab", "https://colab.research.google.com/github/{0}/{1}/blob/{2}/{3}"),
    "binder": ("Binder", "https://mybinder.org/v2/gh/{0}/{1}/{2}?urlpath=lab/tree/{3}"),
}
"""What opens a notebook: its name, and its address with owner, name, branch and path."""


def check_launch(app: Sphinx, config: Any) -> None:
    """Refuse settings of the launch buttons that lead nowhere."""
    if config.launch_repository and not REPOSITORY.fullmatch(config.launch_repository):
        raise ConfigError(
            "launch_repository: expected an address such as https://github.com/OWNER/NAME, "
            f"got {config.launch_repository!r}. Correct it in _config.yml, or empty it."
        )
    if unknown := set(config.launch_on) - set(SERVICES):
        raise ConfigError(
            f"launch_on: expected some of {', '.join(SERVICES)}, got {', '.join(sorted(unknown))}. "
            "Correct it in _config.yml."
        )


def notebook_buttons(app: Sphinx, page: str) -> dict[str, Any]:
    """Return the notebook that a page offers, and the services that open it, for the template."""
    if "kernelspec" not in app.env.metadata.get(page, {}):
        return {}
    parts = page.removeprefix("book/").split("/")
    if parts[-1] == "index" and len(parts) > 1:
        parts.pop()  # an assignment has the name of its topic alone
    notebook, config = f"chapter-{'-'.join(parts)}.ipynb", app.config
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
    app.add_config_value("launch_on", ["colab", "binder"], "html", types=[list])
    app.connect("config-inited", check_launch)
    app.connect("build-finished", join_words)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
