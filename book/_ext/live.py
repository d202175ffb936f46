"""Pages that compute: the button *Run this page*, and marks on the cells and numbers.

`tools.site.live` tells which pages can run in the browser. The script ``live.js``, which is loaded
when the button is pressed, finds a cell by its id, and a number by its expression.
"""

import json
from pathlib import Path
from typing import Any

from docutils import nodes
from elements import element, static
from sphinx.application import Sphinx

RUN = """<p class="run-page"><button type="button" onclick="import('{static}/python/live.js').then(
live => live.begin(this, '{name}'), () => this.nextSibling.textContent = ' The script of this button
did not come. Serve the site over http, and connect to the network.')">Run this page</button><span
role="status"></span></p>"""
TORCH = "This page needs PyTorch: save the chapter as a notebook, and run it in JupyterLab."


def mark(app: Sphinx, doctree: nodes.document) -> None:
    """Give each code cell an id, and the page its button, or say why there is none."""
    cells = [
        node for node in doctree.findall(nodes.container) if node.get("nb_element") == "cell_code"
    ]
    for cell in cells:
        cell["ids"].append(f"code-{cell['cell_index']}")
    file = Path(app.outdir).parent / "live.json"
    live = json.loads(file.read_text("utf-8")) if file.is_file() else {}
    if app.env.docname not in live:
        return
    top = next(doctree.findall(nodes.section))
    lines = [n for n, node in enumerate(top) if "lesson-line" in node.get("classes", ())]
    name = live[app.env.docname]
    text = RUN.format(static=static(app.env), name=name).replace("\n", " ")
    line = nodes.raw("", text, format="html") if name else element("p", TORCH, class_="run-page")
    top.insert(lines[0] + 1 if lines else 1, line)


def setup(app: Sphinx) -> dict[str, Any]:
    """Mark each page when it has been read."""
    app.connect("doctree-read", mark)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
