"""The button that shows a lesson as slides, and the script behind it."""

from __future__ import annotations

from bs4 import BeautifulSoup

# Where no script runs, it stays hidden. It is the first of its row, which ends at the margin, so
# nothing moves when it appears.
BUTTON = """<button type="button" hidden class="btn btn-sm slides-button"
 aria-label="Show as slides" aria-keyshortcuts="p" title="Show as slides (P)">
<span class="icon-frame" aria-hidden="true">
<svg class="icon" viewBox="0 0 24 24" width="24" height="24" aria-hidden="true">
<path d="M3 4h18M4.5 4v11h15V4M12 15v3M8 21l4-3 4 3"/></svg></span></button>"""


def offer_slides(soup: BeautifulSoup, root: str) -> None:
    """Put the button of a lesson before those of the theme."""
    holder = soup.select_one(".article-header-buttons")
    if holder is None or soup.select_one(".lesson-line") is None:
        return
    button = BeautifulSoup(BUTTON, "html.parser").button
    holder.insert(0, button)
    script = soup.new_tag("script", src=f"{root}_static/slides-key.js", defer="defer")
    soup.head.append(script)
