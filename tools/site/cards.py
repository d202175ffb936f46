r"""Write the cards of all lessons as a text file that Anki imports: ``python -m tools.site.cards``.

One line is one card: a name by which Anki knows it again, the question, the answer, and a tag such
as ``erm::risk``. Formulas stand between ``\(`` and ``\)``, which Anki hands to MathJax.
"""

import csv
import hashlib
import html
import re
from collections.abc import Iterator
from pathlib import Path

from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin

from optdl.files import atomic_write
from tools.layout import ROOT, configuration, contents
from tools.terminal import command, console

CARDS = re.compile(r"^```\{cards\}\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CARD = re.compile(r"^(\S[^\n]*)\n: (.*?)(?=^\S|\Z)", re.MULTILINE | re.DOTALL)
HEADER = (
    "#separator:tab\n#html:true\n#notetype:Basic\n#deck:{title}\n#guid column:1\n#tags column:4\n"
)
"""What Anki reads first: https://docs.ankiweb.net/importing/text-files.html#file-headers."""
MARKDOWN = MarkdownIt("commonmark").use(dollarmath_plugin)
MARKDOWN.add_render_rule(
    "math_inline",
    lambda self, tokens, index, options, env: rf"\({html.escape(tokens[index].content)}\)",
)


def rows(root: Path = ROOT) -> Iterator[list[str]]:
    """Yield the columns of Anki's file: for each card a name, question, answer, and a tag."""
    for page in contents(root):
        tag = page.removeprefix("book/").replace("/", "::")
        for block in CARDS.findall((root / f"{page}.md").read_text(encoding="utf-8")):
            for question, answer in CARD.findall(block):
                name = hashlib.sha256(f"{page}\n{question}".encode()).hexdigest()[:10]
                sides = question, " ".join(answer.split())
                yield [name, *map(MARKDOWN.renderInline, sides), tag]


def write(target: Path, root: Path = ROOT) -> int:
    """Write the file, and return how many cards it has."""
    table = list(rows(root))
    with atomic_write(target) as scratch, scratch.open("w", encoding="utf-8", newline="") as file:
        file.write(HEADER.format(title=configuration(root)["title"]))
        csv.writer(file, delimiter="\t", lineterminator="\n").writerows(table)
    return len(table)


@command()
def main() -> None:
    """Write the file and say where it is."""
    target = ROOT / "build" / "cards.txt"
    count = write(target)
    console.print(f"{target.relative_to(ROOT)} has {count} cards. In Anki, choose File, Import.")
