"""A lesson has the shape that lets a reader finish it in one sitting."""

import re
from pathlib import Path

import pytest

from tools.layout import contents

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(
    r"^(?P<mark>`{3,}|~{3,}|:{3,})(?:\{(?P<kind>[\w-]+)\})?[ \t]*(?P<title>[^\n]*)\n(?P<body>.*?)"
    r"^(?P=mark)[ \t]*$",
    re.MULTILINE | re.DOTALL,
)
OPTIONS = re.compile(r"(?::[\w-]+:[^\n]*\n)*")
SILENT = {None, "code-cell", "exercise", "try", "raw", "image", "lesson", "footbibliography"}


def texts() -> dict[str, str]:
    """Return the lessons of the book by their pages."""
    pages = {name: (ROOT / f"{name}.md").read_text("utf-8") for name in contents(ROOT)}
    return {name: text for name, text in pages.items() if "```{lesson}" in text}


LESSONS = texts()


def label(name: str) -> str:
    """Return the label that stands before the title of a lesson, such as ``erm-risk``."""
    return "-".join(name.split("/")[1:])


def words(text: str) -> int:
    """Return how many words a text has; a formula is one."""
    plain = re.sub(r"\$\$.*?\$\$", " ", text, flags=re.DOTALL)
    plain = re.sub(r"\$[^$]*\$", " x ", plain)
    return len(re.findall(r"[A-Za-z0-9’'-]*[A-Za-z0-9][A-Za-z0-9’'-]*", plain))


def counted(text: str) -> tuple[int, int]:
    """Return the words of the running text, and those in folds and on cards."""
    running = folded = 0
    for found in FENCE.finditer(text):
        options = OPTIONS.match(found["body"])[0]
        inside = words(found["body"][len(options) :])
        if "dropdown" in options or found["kind"] == "cards":
            folded += inside
        elif found["kind"] not in SILENT:
            running += inside + words(found["title"])
    return running + words(
        FENCE.sub("", re.sub(r"\A---\n.*?\n---\n", "", text, flags=re.S))
    ), folded


def test_words_are_counted_where_a_reader_meets_them() -> None:
    fold = "```{admonition} Answer\n:class: dropdown\nIt is four.\n```\n"
    note = "```{note}\nMind the gap.\n```\n"
    assert counted(f"---\na: b\n---\n# One two\n\nThree $x + y$.\n\n{fold}{note}") == (7, 3)


@pytest.mark.parametrize("name", LESSONS)
def test_a_lesson_is_one_sitting(name: str) -> None:
    text = LESSONS[name]
    running, folded = counted(text)
    assert len(text.splitlines()) <= 350
    assert running <= 900
    # an appendix holds derivations; of the words in folds the cards take about a hundred
    assert folded <= 550 or ":appendix:" in text
    minutes = int(re.search(r"^:minutes: (\d+)$", text, re.MULTILINE)[1])
    assert 5 <= minutes <= 25


@pytest.mark.parametrize("name", LESSONS)
def test_a_lesson_has_its_label_and_its_cards(name: str) -> None:
    text = LESSONS[name]
    assert re.search(rf"^\({label(name)}\)=\n(?:\([\w-]+\)=\n)*# ", text, re.MULTILINE)
    cards = re.findall(r"^```\{cards\}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert [3 <= len(re.findall(r"^: ", part, re.MULTILINE)) <= 5 for part in cards] == [True]


def test_what_a_lesson_needs_comes_before_it() -> None:
    places = {label(name): place for place, name in enumerate(LESSONS)}
    for name, text in LESSONS.items():
        needs = re.search(r"^:needs: (.+)$", text, re.MULTILINE)
        for needed in re.findall(r"[\w-]+", needs[1] if needs else ""):
            assert places[needed] < places[label(name)], (name, needed)
