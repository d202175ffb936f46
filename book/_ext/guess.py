"""The directive ``guess``: it is typed or chosen below its question, and shown with the answer.

It stands where the answer is told, before the fold *Answer* or in the text: there its ``truth`` is
computed. Its field goes to the question, the nearest before it that says *guess*, or else
*predict*. The script ``progress.js`` keeps the guess in the browser; nobody grades it.
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
    """A ``number``, with its unit behind it, or choices such as ``rises | stays | falls``."""

    required_arguments = 1
    final_argument_whitespace = True
    option_spec = {"truth": directives.unchanged_required, "for": directives.unchanged}  # noqa: RUF012

    def run(self) -> list[nodes.Node]:
        """Return the field, and the line that compares the guess with the truth."""
        asked, truth = self.arguments[0], self.options.get("truth", "")
        case = f" for {self.options['for']}" if "for" in self.options else ""
        key = "\n".join((self.env.docname, asked, case, truth))
        name = hashlib.sha256(key.encode()).hexdigest()[:6]
        guess, value = element("strong"), self.inline(truth)
        label = ("Your guess", *self.inline(case))
        if number := re.fullmatch(r"number\b *(.*)", asked):
            unit = number[1] if number[1] in ("", "°") else f"\u00a0{number[1]}"
            line = element("p", "You guessed ", guess, *self.inline(case), "; it is ", *value, unit)
            typed = element("input", type="number", step="any", autocomplete="off")
            field = element("div", element("label", *label, typed, element("span", unit)))
        else:
            choices = [choice.strip() for choice in asked.split("|")]
            if "{number}" not in truth and truth not in choices:
                raise self.error("expected a number, or choices A | B of which the truth is one")
            line = element("p", "You chose “", guess, "”", *self.inline(case), "; the answer is “")
            line += [*value, nodes.Text("”")]
            field = element("fieldset", element("legend", *label))
            for place, choice in enumerate(choices):
                radio = element("input", type="radio", name=f"guess-{name}", value=str(place))
                field += element("label", radio, element("span", *self.inline(choice)))
        field += element("output")
        line += nodes.Text(".")
        for node, kind, prefix in ((field, "guess", "guess"), (line, "guess-line", "truth")):
            node["html"]["class"], node["ids"] = kind, [f"{prefix}-{name}"]
        line["html"]["hidden"] = ""
        return [field, line]

    def inline(self, text: str) -> list[nodes.Node]:
        """Return a line of Markdown as nodes."""
        return self.parse_inline(text, lineno=self.lineno)[0] if text else []


def place(app: Sphinx, doctree: nodes.document) -> None:
    """Move each field to its question, and what compares it into the answer below, if folded."""
    fields = [node for node in doctree.findall(html) if node["html"].get("class") == "guess"]
    for field in reversed(fields):
        every = [*doctree.findall()]
        before = [*reversed(every[: every.index(field)])]
        asking = [node for word in ("guess", "predict") for node in before if _asks(node, word)]
        if not asking:
            message = "a guess without a question before it that says the word “guess”"
            logging.getLogger(__name__).warning(message, location=app.env.docname)
            continue
        parent, question = field.parent, asking[0]
        _, line, *after = parent.children[parent.index(field) :][:3]
        parent.remove(field)
        if after and isinstance(after[0], nodes.Admonition) and "dropdown" in after[0]["classes"]:
            parent.remove(line)
            after[0].insert(1, line)
        if isinstance(question, nodes.Admonition):
            others = [child for child in question.children if not isinstance(child, html)]
            question.insert(len(others), field)
        else:
            question.parent.insert(question.parent.index(question) + 1, field)


def _asks(node: Any, word: str) -> bool:
    """Tell whether a node is a question that says a word: a box, or a paragraph."""
    box = isinstance(node, nodes.Admonition) and "dropdown" not in node["classes"]
    text = isinstance(node, nodes.paragraph) and isinstance(node.parent, nodes.section)
    return (box or text) and re.search(rf"\b{word}\b", node.astext(), re.I) is not None


def setup(app: Sphinx) -> dict[str, Any]:
    """Tell Sphinx about the directive."""
    app.add_directive("guess", GuessDirective)
    app.connect("doctree-read", place)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
