"""What lets a build read and write only what has changed: an edit of a lesson costs that lesson.

A page is read again when its own text or outputs have changed. All pages are written again when
something has changed that any of them may show.
"""

import hashlib
from pathlib import Path
from typing import Any

import lessons
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.environment.collectors.toctree import TocTreeCollector


def shared(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """Return all pages when a title, a number, a lesson, a label or a name of the API changed."""
    standard, python = env.get_domain("std"), env.get_domain("py")
    titles = {name: title.astext() for name, title in env.titles.items()}
    tables = [titles, env.toc_secnumbers, env.toc_fignumbers, lessons.lessons_of(env)]
    tables += [standard.labels, standard.objects, python.objects]
    return list(env.found_docs) if _changed(env, "shared", tables) else []


def _changed(env: BuildEnvironment, name: str, tables: list[dict[Any, Any]]) -> bool:
    """Tell whether tables differ from those of the last build, and remember them."""
    parts = [sorted((key, repr(value)) for key, value in table.items()) for table in tables]
    now = hashlib.sha256(repr(parts).encode()).hexdigest()
    before = getattr(env, f"{name}_tables", "")
    setattr(env, f"{name}_tables", now)
    return before != now


# To count them Sphinx loads the trees of all pages, which takes longer than all else that an edit
# of one page asks for. So it counts only when a page has other figures, equations or sections.

COUNTED = (nodes.section, nodes.figure, nodes.table, nodes.container, nodes.math_block)
count = TocTreeCollector.assign_figure_numbers


def note(app: Sphinx, doctree: nodes.document) -> None:
    """Remember what may have a number on a page that was read."""
    result = [(type(n).__name__, n["ids"]) for n in doctree.findall() if isinstance(n, COUNTED)]
    app.env.metadata[app.env.docname]["counted"] = repr(result)
    if app.env.docname == app.config.root_doc:  # Sphinx copies the scripts when it writes a page
        app.env.note_dependency(str(Path(app.outdir).parent / "static.sha256"))


def count_if_changed(collector: TocTreeCollector, env: BuildEnvironment) -> list[str]:
    """Count as Sphinx does where that may change a number; return the pages to be written."""
    counted = {page: data.get("counted") for page, data in env.metadata.items()}
    if _changed(env, "numbered", [counted, env.toc_secnumbers, env.toctree_includes]):
        again = count(collector, env)
        env.last_numbers = dict(env.toc_fignumbers)
        return again
    env.toc_fignumbers = dict(env.last_numbers)
    return []


def setup(app: Sphinx) -> dict[str, Any]:
    """Register what decides about pages."""
    TocTreeCollector.assign_figure_numbers = count_if_changed
    app.connect("doctree-read", note)
    app.connect("env-get-updated", shared, priority=900)  # after the numbers
    return {"parallel_read_safe": True, "parallel_write_safe": True}
