"""Pages that compute: what their cells have shown, the button *Run this page*, and marks on cells.

`tools.site.live` tells which pages can run in the browser. The script ``live.js``, which is loaded
when the button is pressed, finds a cell by its id, and a number by its expression.
"""

from functools import partial
from typing import Any

import nbformat
from docutils import nodes
from elements import element, shown, static
from myst_nb import sphinx_
from myst_nb.core.execute import create_client
from sphinx.application import Sphinx

RUN = """<p class="run-page"><button type="button" onclick="import('{static}/python/live.js').then(
live => live.begin(this, '{name}'), () => this.nextSibling.textContent = ' The script of this button
did not come. Serve the site over http, connect to the network, and load the page again.')">Run
this page</button><span role="status"></span></p>"""
TORCH = "This page needs PyTorch: save the chapter as a notebook, and run it in JupyterLab."


def mark(app: Sphinx, doctree: nodes.document) -> None:
    """Give each code cell an id, and the page its button, or say why there is none."""
    for cell in doctree.findall(nodes.container):
        if cell.get("nb_element") == "cell_code":
            cell["ids"].append(f"code-{cell['cell_index']}")
    if "live" not in (found := shown(app.env)):
        return
    top = next(doctree.findall(nodes.section))
    lines = [n for n, node in enumerate(top) if "lesson-line" in node.get("classes", ())]
    name = found["live"]
    text = RUN.format(static=static(app.env), name=name).replace("\n", " ")
    line = nodes.raw("", text, format="html") if name else element("p", TORCH, class_="run-page")
    top.insert(lines[0] + 1 if lines else 1, line)


def filled(app: Sphinx, notebook: Any, source: str, config: Any, *rest: Any) -> Any:
    """Fill in the outputs of a page; where the tool has kept none, Jupyter Book executes it."""
    if kept := shown(app.env).get("outputs"):
        cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
        for number, (cell, outputs) in enumerate(zip(cells, kept, strict=True), 1):
            cell.execution_count, cell.outputs = number, nbformat.from_dict(outputs)
        notebook.metadata["language_info"] = {"name": "python", "pygments_lexer": "ipython3"}
        config = config.copy(execution_mode="off")
    return create_client(notebook, source, config, *rest)


def setup(app: Sphinx) -> dict[str, Any]:
    """Fill in what cells have shown, and mark each page when it has been read."""
    sphinx_.create_client = partial(filled, app)
    app.connect("doctree-read", mark)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
