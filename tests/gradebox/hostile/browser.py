"""Make pages, and look at them with a browser: what ran in them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hang import HANG
from nbconvert.exporters import HTMLExporter
from nbgrader.server_extensions.formgrader import handlers
from traitlets.config import Config

from gradebox.feedback.page import TEMPLATES, FeedbackPage

# what waits for the mouse, too
_TOUCH = """() => {
  for (const one of document.querySelectorAll('body *')) {
    for (const kind of ['mouseover', 'focus', 'toggle', 'load', 'error'])
      one.dispatchEvent(new Event(kind));
    if (one.tagName === 'A' && /script:/i.test(one.href)) one.click();
  }
}"""
_RAN = "() => [...document.documentElement.classList].filter(name => name.startsWith('ran-'))"

MARKS = {"notebook": "toy", "score": 0.0, "max_score": 2.0, "late_penalty": 0}
_ABOUT = {"index": 0, "total": 1, "base_url": "", "notebook_path": "", "student": "ada"}
_ABOUT |= {"assignment_id": "toy", "notebook_id": "toy", "submission_id": "1"}
_CSS = Path(handlers.static_path) / "node_modules/bootstrap/dist/css"
_OURS = {"markdown2html": "gradebox.markdown2html"}


THEIRS: Any = (
    ("feedback", [handlers.template_path], {}),
    ("formgrade", [handlers.template_path], {}),
    ("formgrade", [TEMPLATES, handlers.template_path], _OURS),
)
"""The pages that nbgrader makes, the last with our formulas."""


def written(folder: Path, nb: Any, theirs: Any = THEIRS) -> list[Path]:
    """Write the pages that are made of a notebook: nbgrader's, and the last ours."""
    for node in nb.cells:
        if node.metadata.get("nbgrader", {}).get("grade"):
            node.metadata.nbgrader.setdefault("score", 0.0)
    texts = []
    for template, folders, filters in theirs:
        config = Config({"HTMLExporter": {"template_name": template, "filters": filters}})
        config.HTMLExporter.extra_template_basedirs = [*map(str, folders)]
        config.HTMLExporter.extra_template_paths = [str(_CSS)]
        exporter = HTMLExporter(config=config)
        texts.append(exporter.from_notebook_node(nb, _ABOUT | {"nbgrader": MARKS})[0])
    texts.append(FeedbackPage().from_notebook_node(nb, {"nbgrader": MARKS})[0])
    folder.mkdir(parents=True, exist_ok=True)
    places = [folder / f"{number}.html" for number in range(len(texts))]
    for place, text in zip(places, texts, strict=True):
        place.write_text(text, encoding="utf-8")
    return places


@dataclass
class Visit:
    """What a page did: the scripts of a student's that ran, and what it asked for."""

    ran: list[str]
    asked: list[str]
    result: Any


def visit(browser: Any, pages: list[Path], script: str = "null") -> list[Visit]:
    """Open pages, and return for each what it did, with the result of a script."""
    visits = []
    for path in pages:
        page, requests = browser.new_page(), list[Any]()
        page.set_default_timeout(1000 * HANG)
        for over in ("requestfinished", "requestfailed"):
            page.on(over, lambda request, requests=requests: requests.append(request))
        page.goto(path.as_uri(), wait_until="load")
        page.evaluate(_TOUCH)
        page.wait_for_timeout(100)
        urls = [request.url for request in requests if request.failure != "csp"]
        asked = [url for url in urls if not url.startswith((path.as_uri(), "data:"))]
        ran = [name.removeprefix("ran-") for name in page.evaluate(_RAN)]
        visits.append(Visit(sorted(ran), asked, page.evaluate(script)))
        page.close()
    return visits
