"""What the tests of the book share."""

from collections.abc import Iterator
from typing import Any

import pytest
from figures import Figures

from tools import static_figures


@pytest.fixture(scope="session")
def page_of_figures(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Open a page with all figures to explore and a list of its errors."""
    file = tmp_path_factory.mktemp("figures") / "figures.html"
    file.write_text(static_figures.page(*static_figures.names()), "utf-8")
    page = browser.new_context(has_touch=True).new_page()
    page.errors = []
    page.on("pageerror", lambda error: page.errors.append(str(error)))
    page.on("console", lambda entry: entry.type == "error" and page.errors.append(entry.text))
    page.goto(file.as_uri(), wait_until="load")
    return page


@pytest.fixture
def figures(page_of_figures: Any) -> Iterator[Figures]:
    """Return all figures on one page, and refuse any error on it."""
    page_of_figures.emulate_media(reduced_motion="reduce")
    page_of_figures.set_viewport_size({"width": 1000, "height": 900})
    yield Figures(page_of_figures)
    errors, page_of_figures.errors = page_of_figures.errors, []
    assert errors == []
