"""Show the mark scheme of a question beside the answer, where a person gives the points.

In ``nbgrader_config.py``::

    c.HTMLExporter.preprocessors = ["gradebox.MarkScheme"]

Only the formgrader's pages have it, which are for instructors.
"""

import re
from typing import Any

from nbconvert.preprocessors import Preprocessor

from gradebox.nbgrader.cells import name_of
from gradebox.nbgrader.source_notebook import source_of

SCHEME = re.compile(r"^.*BEGIN MARK SCHEME.*\n([\s\S]*?)^.*END MARK SCHEME", re.MULTILINE)

BOX = """<aside aria-label="Mark scheme" style="float: right; width: 45%; margin: 0 0 1em 1.5em; \
padding: 0 1em; border: 1px solid #777; background: #f5f5f5">

**Mark scheme**

{}
</aside>

"""
"""Stands before the answer, so that nothing in the answer can change it."""


class MarkScheme(Preprocessor):
    """Puts the mark scheme of the instructor's notebook beside each answer in words."""

    def preprocess(self, nb: Any, resources: Any) -> tuple[Any, Any]:
        """Return the notebook as the formgrader shows it; for other pages, as it is."""
        if "submission_id" not in resources:
            return nb, resources
        names = {"assignment": resources["assignment_id"], "notebook": resources["notebook_id"]}
        sources = source_of(self, names).cells
        found = {name: SCHEME.search(cell.source) for name, cell in sources.items()}
        for cell in nb.cells:
            if cell.cell_type == "markdown" and (scheme := found.get(name_of(cell))):
                cell.source = BOX.format(scheme[1]) + cell.source
        return nb, resources
