"""The directive ``guess``: typed, chosen or drawn below its question, and shown with the answer.

It stands where the answer is told, before the fold *Answer* or in the text: there its ``truth`` is
computed. Its field goes to the nearest question before it, or to the page's ``opening`` one: a box
that says *guess* or *predict*, a paragraph that says *guess*. ``progress.js`` keeps what is given.
"""

import hashlib
import re
from typing import Any

from docutils import nodes
from docutils.parsers.rst import directives
from elements import element, html
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective


class GuessDirective(SphinxDirective):
    """A ``number`` and its unit, a ``curve`` and its places, or choices such as ``rises | falls``.

    A curve is shown in a ``figure``, whose ``frame`` is what `optdl.plotting.frame` tells.
    """

    required_arguments = 1
    final_argument_whitespace = True
    option_spec = dict.fromkeys(("truth", "for", "figure", "frame"), directives.unchanged)
    option_spec |= {"opening": directives.flag}

    def run(self) -> list[nodes.Node]:
        """Return the field, and the line that compares the guess with the truth."""
        key = "\n".join((self.env.docname, *self.arguments, *map(str, self.options.values())))
        name = hashlib.sha256(key.encode()).hexdigest()[:6]
        truth, frame, case = (self.options.get(option, "") for option in ("truth", "frame", "for"))
        case = case and f" for {case}"
        kind, _, rest = self.arguments[0].partition(" ")
        if kind == "number":
            unit = rest if rest in ("", "°") else f"\u00a0{rest}"
            options, said = [unit], f"You guessed **…**{case}; it is {truth}{unit}."
        elif kind == "curve" and frame:
            kind, options = "range", rest.split()
            said = f"Your curve{case} is dashed in the figure."
        else:
            kind, options = "radio", [choice.strip() for choice in self.arguments[0].split("|")]
            said = f"You chose “**…**”{case}; the answer is “{truth}”."
            if len(options) < 2 or ("{number}" not in truth and truth not in options):
                raise self.error("expected a number, a curve and its frame, or choices A | B")
        if kind != "range" and not truth:
            raise self.error("a guess needs the option :truth:, with which it is compared")
        field = element("fieldset", element("legend", *self.inline(f"Your guess{case}")))
        for place, option in enumerate(options):
            given = {"name": f"guess-{name}", "value": str(place)} if kind == "radio" else {}
            given |= {"aria-label": "Your guess"} if kind == "number" else {}
            field += element("label", element("input", type=kind, step="any", **given))
            field[-1] += element("span", *self.inline(option))
        field += element("output")
        line = element("p", *self.inline(said), element("span", *self.inline(frame), hidden=""))
        field["html"] |= {"class": "guess", "data-figure": self.options.get("figure", "")}
        line["html"] |= {"class": "guess-line", "hidden": ""}
        field["opening"] = "opening" in self.options
        field["ids"], line["ids"] = [f"guess-{name}"], [f"truth-{name}"]
        self.set_source_info(field)
        return [field, line]

    def inline(self, text: str) -> list[nodes.Node]:
        """Return a line of Markdown as nodes."""
        return self.parse_inline(text, lineno=self.lineno)[0] if text else []


def place(app: Sphinx, doctree: nodes.document) -> None:
    """Move each field to its question, and what compares it into the answer below, if folded."""
    fields = [node for node in doctree.findall(html) if node["html"].get("class") == "guess"]
    for field in reversed(fields):
        every = [*doctree.findall()]
        questions = [*filter(_asks, every[: every.index(field)])]
        if not questions:
            problem = "no question before this guess says “guess”"
            logging.getLogger(__name__).error(problem, location=field)
            continue
        asking = questions[0 if field["opening"] else -1]
        _, line, *after = field.parent.children[field.parent.index(field) :][:3]
        field.parent.remove(field)
        if after and isinstance(after[0], nodes.Admonition) and "dropdown" in after[0]["classes"]:
            line.parent.remove(line)
            after[0].insert(1, line)
        if isinstance(asking, nodes.Admonition):
            others = [child for child in asking.children if not isinstance(child, html)]
            asking.insert(len(others), field)
        else:
            asking.parent.insert(asking.parent.index(asking) + 1, field)


def _asks(node: nodes.Node) -> bool:
    """Tell whether a node is a question with a guess: a box, or a paragraph."""
    box = isinstance(node, nodes.Admonition) and "dropdown" not in node["classes"]
    text = isinstance(node, nodes.paragraph) and isinstance(node.parent, nodes.section)
    words = r"\b(guess|predict)\b" if box else r"\bguess\b"
    return (box or text) and re.search(words, node.astext(), re.I) is not None


def setup(app: Sphinx) -> dict[str, Any]:
    """Tell Sphinx about the directive."""
    app.add_directive("guess", GuessDirective)
    app.connect("doctree-read", place)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
