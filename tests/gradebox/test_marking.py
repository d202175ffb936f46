"""The formgrader's page: its script runs, and the mark scheme stands beside the answer alone."""

import os
import re
from copy import deepcopy
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from bs4 import BeautifulSoup
from nbconvert.exporters import HTMLExporter
from nbgrader.server_extensions.formgrader import handlers
from toy_course import make_course

from tools import notebooks
from tools.classroom import lab

pytestmark = pytest.mark.xdist_group("nbgrader")

ABOUT = {"index": 0, "total": 1, "base_url": "", "student": "ada", "notebook_path": ""}
FORMGRADER = ABOUT | {"submission_id": "1", "assignment_id": "toy", "notebook_id": "toy"}
STATIC = Path(handlers.static_path)


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Return the formgrader's page and a student's, whose answer looks like a mark scheme."""
    course = make_course(tmp_path_factory.mktemp("marking"))
    source = notebooks.read(course.source("toy"))
    source.cells[-1].source = (
        "An answer.\n\n### BEGIN MARK SCHEME\nTwo points for $x^2$.\n\n- one for each\n"
        "### END MARK SCHEME\n"
    )
    course.source("toy").write_bytes(notebooks.to_bytes(source))
    source.cells[-1].source = "```\nnever closed </aside> </div>"
    settings = deepcopy(course.config)
    settings.HTMLExporter.template_name = "formgrade"
    settings.HTMLExporter.extra_template_basedirs = [handlers.template_path]
    with patch.dict(os.environ, lab.settings(course)):
        exporter = HTMLExporter(config=settings)
        return [exporter.from_notebook_node(source, about)[0] for about in (FORMGRADER, ABOUT)]


def test_the_mark_scheme_stands_beside_the_answer(pages):
    made = BeautifulSoup(pages[0], "html.parser")
    [scheme] = made.find_all("aside")
    assert " ".join(scheme.get_text(" ").split()) == (
        "Mark scheme Two points for x 2 . one for each"
    )
    assert [tag.name for tag in scheme.math.find_all()] == ["msup", "mi", "mn"]
    assert "never closed" in scheme.find_parent(class_="panel-body").get_text()
    assert not [tag for tag in made.find_all("script") if "//" in tag.get("src", "")]


def test_pages_for_students_have_no_mark_scheme(pages):
    assert "one for each" not in pages[1]


def test_the_formgrader_starts_without_mathjax(pages, browser):
    context = browser.new_context()
    opened, errors = context.new_page(), []
    opened.on("pageerror", lambda error: errors.append(str(error)))

    def answer(route: Any) -> None:
        path = route.request.url.partition("/formgrader/static/")[2]
        if path:
            route.fulfill(path=STATIC / path)
        elif "/api/" in route.request.url:
            name = {"id": 1, "name": "toy-why", "score": 0, "max_score": 4, "manual_score": None,
                    "auto_score": None, "needs_manual_grade": True, "extra_credit": None,
                    "comment": "", "auto_comment": "", "manual_comment": ""}  # fmt: skip
            route.fulfill(json=[name])
        else:
            route.fulfill(body=pages[0], content_type="text/html; charset=utf-8")

    context.route(re.compile(".*"), answer)
    opened.goto("http://localhost/formgrader/submissions/1/")
    # what the formgrader does last, after it has met MathJax
    opened.wait_for_function("window.formgrader?.keyboard_manager && MathJax.loaded")
    assert errors == []
    context.close()
