"""The directive ``explore``, which puts a figure to explore on a page.

The figure has a number and a caption as any other. Without JavaScript, on paper and in a notebook
stands its still picture, ``book/_static/explore/NAME.svg``, taken by ``tools.site.static_figures``.
"""

from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import directives
from elements import static
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

FOLDER = "book/_static/explore"
"""Where the scripts and the still pictures are."""

BUILD = "</div><script>window.Explore?.build()</script>"
BUILD += "<noscript>This is a still picture: with JavaScript, it can be moved.</noscript>"
"""Ends the place of a figure, and builds it before what follows it is there and could move."""
FILES = {".js": "write it", ".svg": "run python -m tools.site.static_figures"}
"""What a figure is made of, and how to get it."""


class Explore(SphinxDirective):
    """A figure to explore: the argument is its name, the content its caption.

    The option ``alt`` describes the still picture. A figure may stand on a second page with another
    task, which the option ``task`` names; its script reads the name as ``fig.task``.
    """

    has_content = True
    required_arguments = 1
    option_spec = dict.fromkeys(("alt", "task"), directives.unchanged_required)

    def run(self) -> list[nodes.Node]:
        """Return the figure, with the scripts that it needs."""
        name = self.arguments[0]
        if not self.options.get("alt"):
            raise self.error(f"the figure {name} needs the option :alt:, which describes it")
        for kind, advice in FILES.items():
            path = Path(self.env.srcdir) / FOLDER / f"{name}{kind}"
            if not path.is_file():
                raise self.error(f"the figure {name} needs {FOLDER}/{name}{kind}: {advice}")
            self.env.note_dependency(str(path))
        content = self.parse_content_to_nodes()
        if len(content) != 1 or not isinstance(content[0], nodes.paragraph):
            raise self.error(f"the figure {name} needs a caption of one paragraph")
        task = self.options.get("task", "")
        mark = f' data-task="{task}"' if task else ""
        stage = f'{self._head(name)}<div class="explore-stage" data-explore="{name}"{mark}>'
        begin, end = (nodes.raw("", text, format="html") for text in (stage, BUILD))
        still = nodes.image(uri=f"/{FOLDER}/{name}.svg", alt=self.options["alt"], loading="lazy")
        caption = nodes.caption(content[0].rawsource, "", *content[0].children)
        figure = nodes.figure("", begin, still, end, caption, classes=["explore"])
        self.options["name"] = "-".join(filter(None, ("explore", name, task)))
        self.set_source_info(figure)
        self.add_name(figure)
        return [figure]

    def _head(self, name: str) -> str:
        """Return the elements that load style and scripts; the shared ones once on each page.

        The page waits for its scripts here: what is drawn below the figure must not move.
        """
        folder = f"{static(self.env)}/explore"
        first = not self.env.temp_data.get("explore")
        self.env.temp_data["explore"] = True
        style = f'<link rel="stylesheet" href="{folder}/explore.css">' if first else ""
        scripts = ["explore", name] if first else [name]
        return style + "".join(f'<script src="{folder}/{s}.js"></script>' for s in scripts)


def setup(app: Sphinx) -> dict[str, Any]:
    """Tell Sphinx about the directive."""
    app.add_directive("explore", Explore)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
