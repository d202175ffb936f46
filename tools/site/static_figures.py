"""Take the still pictures of the figures to explore: what stands there without JavaScript.

Run as ``python -m tools.site.static_figures [NAME ...]``; without names, all are taken. It is
written beside the script of its figure, has the panels of the figure at its start, and no
controls. Its colors have enough contrast on a white page and on a dark one.
"""

from pathlib import Path

from optdl.plotting import TEXT as INK
from tools.layout import ROOT
from tools.site.pdf import chromium
from tools.terminal import ToolError, argument, command, console

FOLDER = ROOT / "book" / "_static" / "explore"
SHARED = "explore"
"""The script and the style that all figures share."""
TAKE = Path(__file__).with_suffix(".js").read_text("utf-8")
"""A function of the page, which returns the panels and the legend as one SVG."""


def page(*chosen: str, theme: str = "light") -> str:
    """Return a page of figures alone, in the colors of a theme: light, dark, or still for both."""
    at = FOLDER.as_uri()
    stages = (f'<div class="explore-stage" data-explore="{name}"></div>' for name in chosen)
    scripts = (f'<script defer src="{at}/{name}.js"></script>' for name in (SHARED, *chosen))
    return (
        f'<!DOCTYPE html><html lang="en" data-theme="{theme}"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{', '.join(chosen)}</title>"
        f'<link rel="stylesheet" href="{FOLDER.parent.as_uri()}/colors.css">'
        f'<link rel="stylesheet" href="{at}/{SHARED}.css"></head>'
        f"<body><main>{''.join(stages)}</main>{''.join(scripts)}</body></html>"
    )


def names() -> list[str]:
    """Return the names of all figures."""
    return sorted(path.stem for path in FOLDER.glob("*.js") if path.stem != SHARED)


@command(argument("chosen", nargs="*", metavar="NAME", help="a figure (default: all)"))
def main(chosen: list[str]) -> None:
    """Take the pictures that the command line names."""
    for name in chosen:
        if name not in names():
            raise ToolError(f"there is no figure {name!r}", f"take one of {', '.join(names())}")
    style = f"main {{ color: {INK}; width: 760px }} .explore-stage {{ border: 0 !important }}"
    with chromium() as browser:
        browser.emulate_media(reduced_motion="reduce")  # nothing is half drawn
        for name in chosen or names():
            file = FOLDER / f".{name}.html"
            file.write_text(page(name, theme="still"), "utf-8")
            try:
                browser.goto(file.as_uri(), wait_until="load")
                browser.add_style_tag(content=style)
                picture = browser.evaluate(TAKE, INK)
            finally:
                file.unlink()
            (FOLDER / f"{name}.svg").write_text(picture + "\n", "utf-8")
            console.print(f"{name}.svg: {len(picture) / 1000:.0f} kB")
