"""A lesson has the shape that lets a reader finish it in one sitting."""

import re
from pathlib import Path

from tools import syllabus

ROOT = Path(__file__).resolve().parents[2]
CARDS = re.compile(r"^```\{cards\}\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_lesson_has_label_minutes_needs_and_cards() -> None:
    wrong, before = [], set()
    for label, lesson in syllabus.lessons().items():
        text = (ROOT / "book" / f"{label.replace('-', '/', 1)}.md").read_text("utf-8")
        cards = [len(re.findall(r"^: ", part, re.MULTILINE)) for part in CARDS.findall(text)]
        facts = {
            "its label before its title": re.search(
                rf"^\({label}\)=\n(\([\w-]+\)=\n)*# ", text, re.M
            ),
            "5 to 25 minutes": 5 <= lesson.minutes <= 25,
            "lessons that it needs before it": {*lesson.needs} <= before,
            "three to five cards, once": len(cards) == 1 and 3 <= cards[0] <= 5,
        }
        wrong += [f"{label}: {fact}" for fact, true in facts.items() if not true]
        before.add(label)
    assert wrong == []
