"""Write the exams as pages to print: ``python -m tools.site.exams``.

Each file in ``exams`` becomes two pages in ``build/exams``: the questions, with a table for the
points, and the questions with their solutions. A browser prints them; they load nothing. The
numbers of a solution are computed: its first cell is run, and after it each role ``number``, which
is a field of an f-string, as in the book. Both know the names of NumPy.
"""

import html
import re
from pathlib import Path
from typing import Any

import numpy

from gradebox.feedback.formulas import rendered
from tools.fingerprints import write_if_changed
from tools.layout import HERE, Course
from tools.site.inpage.library.page_text import typeset
from tools.terminal import ToolError, command, console

QUESTION = re.compile(r"^## (\d+) · (.+) · (\d+) points$", re.MULTILINE)
SOLUTION = re.compile(r"^### Solution$.*?(?=^## |\Z)", re.MULTILINE | re.DOTALL)
COMPUTED = re.compile(
    r"^```\{code-cell\}\n(?P<code>.*?)^```\n\n|\{number\}`(?P<value>[^`]+):(?P<form>[^`:]+)`",
    re.MULTILINE | re.DOTALL,
)
STYLE = Path(__file__).with_suffix(".css").read_text("utf-8")


def computed(text: str) -> str:
    """Return an exam with its numbers in the place of what computes them."""
    names: dict[str, Any] = dict(vars(numpy))

    def result(match: re.Match[str]) -> str:
        if match["code"]:
            exec(match["code"], names)
            return ""
        try:
            number = format(eval(match["value"], names), match["form"])
        except Exception as error:
            raise ToolError(f"{match[0]} of an exam: {error!r}", "correct it or its cell") from None
        return typeset(number.lstrip("-") if float(number) == 0 else number)

    return COMPUTED.sub(result, text)


def sheet(text: str) -> str:
    """Return the head of a student's copy: a line for the name, and a table for the points."""
    questions = [(match[1], match[3], "") for match in QUESTION.finditer(text)]
    questions.append(("Together", str(sum(int(points) for _, points, _ in questions)), ""))
    rows = zip(("Question", "Points", "Reached"), *questions, strict=True)
    cells = (f"<tr><th>{name}</th><td>{'</td><td>'.join(rest)}</td></tr>" for name, *rest in rows)
    name = '<p class="name"><span>Name:</span><span>Number:</span></p>'
    return f"{name}<table>{''.join(cells)}</table>"


def page(text: str, head: str = "") -> str:
    """Return an exam in Markdown as a page that loads nothing; `head` stands below its title."""
    title = text.partition("\n")[0].removeprefix("# ")
    body = rendered(text).replace("</h1>", f"</h1>{head}", 1)
    return (
        f'<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>{html.escape(title)}</title>'
        f"<style>{STYLE}</style><body>{body}</body></html>"
    )


@command()
def main(course: Course = HERE) -> None:
    """Write the pages of all exams."""
    sources = sorted((course.root / "exams").glob("exam-*.md"))
    if not sources:
        raise ToolError("there are no exams here", "run the command in an instructor's copy")
    for source in sources:
        text = computed(source.read_text(encoding="utf-8"))
        pages = {"": page(SOLUTION.sub("", text), sheet(text)), "-solutions": page(text)}
        for suffix, content in pages.items():
            path = course.build / "exams" / f"{source.stem}{suffix}.html"
            write_if_changed(path, content.encode())
            console.print(f"{path.relative_to(course.root)}", soft_wrap=True)
