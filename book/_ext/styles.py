"""Join the style sheets that all pages share into one, and keep only the rules that a page uses.

The theme brings the styles of a whole toolkit. They hold up the first paint of every page, and
nine tenths of them are for parts that no page has.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import tinycss2
from sphinx.application import Sphinx

BUNDLE = "site.css"
"""One file: one request before the first paint."""
TOOLKIT = ("styles/bootstrap.css", "styles/pydata-sphinx-theme.css")
"""Style sheets that the theme's own template names."""
OWN = ("colors.css", "course.css")
"""Style sheets of the course itself, which are kept whole."""

_NAMED = re.compile(r'\b(?:class|id)="([^"]*)"')
_WORD = re.compile(r"[\w-]+")
_IN_BRACKETS = re.compile(r"\([^()]*\)|\[[^\]]*\]")
_CLASS_OR_ID = re.compile(r"[.#](-?[A-Za-z_][\w-]*)")


def shared(builder: Any) -> list[Any]:
    """Return the style sheets that every page loads after those of the toolkit."""
    return list(builder._orig_css_files)  # Sphinx has no other name for them


def words(site: Path) -> set[str]:
    """Return the classes and ids of all pages, and every word of a script, which may set one."""
    result: set[str] = set()
    for page in site.rglob("*.html"):
        for names in _NAMED.findall(page.read_text("utf-8")):
            result.update(names.split())
    for script in site.glob("_static/**/*.js"):
        if "searchtexts" not in script.name:
            result.update(_WORD.findall(script.read_text("utf-8")))
    return result


def used(css: str, site_words: set[str]) -> str:
    """Return a style sheet without the rules for classes and ids that are not known.

    What a selector has in brackets, such as ``:not(.x)``, does not count against it.
    """
    return _used(tinycss2.parse_stylesheet(css, skip_whitespace=True), site_words)


def _used(rules: Iterable[Any], site_words: set[str]) -> str:
    lines = []
    for rule in rules:
        if rule.type == "qualified-rule":
            chosen = _chosen(tinycss2.serialize(rule.prelude), site_words)
            if chosen:
                body = tinycss2.serialize(rule.content)
                lines.append(f"{chosen}{{{' '.join(body.split())}}}")
        elif rule.type == "at-rule" and rule.lower_at_keyword in ("media", "supports"):
            inner = tinycss2.parse_rule_list(rule.content or [], skip_whitespace=True)
            if inside := _used(inner, site_words):
                lines.append(f"@{rule.at_keyword}{tinycss2.serialize(rule.prelude)}{{{inside}}}")
        elif rule.type == "at-rule" or (rule.type == "comment" and rule.value.startswith("!")):
            lines.append(rule.serialize())  # a comment with ! is a license
    return "\n".join(lines)


def _chosen(selectors: str, site_words: set[str]) -> str:
    """Return those selectors of a list that something may match."""
    plain = selectors
    while (shorter := _IN_BRACKETS.sub(lambda match: "·" * len(match[0]), plain)) != plain:
        plain = shorter
    parts, begin = [], 0
    for part in plain.split(","):
        if all(name in site_words for name in _CLASS_OR_ID.findall(part)):
            parts.append(" ".join(selectors[begin : begin + len(part)].split()))
        begin += len(part) + 1
    return ",".join(parts)


def write(app: Sphinx, error: Exception | None) -> None:
    """Write the bundle, in the order in which the theme loads its parts, and drop icon fonts."""
    if error is not None or not hasattr(app.builder, "_orig_css_files"):
        return  # nothing was written
    static = Path(app.outdir) / "_static"
    shutil.rmtree(static / "vendor", ignore_errors=True)
    site_words = words(Path(app.outdir))
    sheets = sorted(shared(app.builder), key=lambda sheet: sheet.priority)
    names = [str(sheet.filename).removeprefix("_static/") for sheet in sheets]
    parts = []
    for name in dict.fromkeys((*TOOLKIT, *names)):
        text = (static / name).read_text("utf-8")
        text = re.sub(r"/\*# sourceMappingURL=.*?\*/", "", text)
        parts.append(f"/* from {name} */\n{text if name in OWN else used(text, site_words)}\n")
    (static / BUNDLE).write_text("".join(parts), "utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Write the bundle when all else is written."""
    # After the theme has written its colors.
    app.connect("build-finished", write, priority=950)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
