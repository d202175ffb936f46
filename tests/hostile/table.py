"""The table of the suite, for the book: ``python -m hostile.table`` in the folder ``tests``."""

import json
from pathlib import Path
from typing import Any

from hostile.case import FULL, Case
from hostile.cases import CASES, GROUPS
from hostile.course import KEY

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "book/_include/hostile.md"
STOCK = json.loads((ROOT / "tests/hostile/stock.json").read_text(encoding="utf-8"))
ALL = f"{sum(FULL.values()):g}"


def stock_outcome(case: Case, outcome: dict[str, Any]) -> str:
    """Say what became of a case with stock nbgrader."""
    if case.unrun:
        return f"*read from its code:* {case.stock}"
    parts = []
    if "scores" in outcome:
        got = sum(score or 0 for score in outcome["scores"].values())
        by_hand = sum(score is None for score in outcome["scores"].values())
        parts.append(f"{got:g} of {ALL}")
        parts += [f"{by_hand} cells wait to be graded by hand"] if by_hand else []
        parts += (
            [f"{outcome['by_hand']:g} points written by the student"]
            if "by_hand" in outcome
            else []
        )
        parts += ["all taken off as late"] if "late" in outcome else []
    elif outcome.get("ended"):
        parts.append(f"no score: {outcome['error']}" if "error" in outcome else "no score")
    else:
        parts.append("no score: does not end within a minute")
    lost = sum(FULL.values()) - outcome.get("neighbour", 0)
    parts += [f"the student after it loses {lost:g} points"] if lost else []
    secrets = {KEY: "the hidden tests"}
    parts += [f"shows {secrets.get(name, 'a password')}" for name in outcome.get("leaks", ())]
    texts = {
        "heard": "data get out",
        "copied": "the secret is copied into the graded folder",
        "left": "its process goes on",
        "reduced": "its program runs in the grader",
    }
    parts += [text for name, text in texts.items() if name in outcome]
    ran = len(outcome.get("ran", ()))
    parts += [f"{ran} script{'s' if ran > 1 else ''} run in the feedback"] if ran else []
    if (
        "scores" in outcome
        and case in GROUPS["The instructor's browser"]
        and "feedback" not in outcome
    ):
        parts.append("no feedback can be made")
    return "; ".join(parts)


def gradebox_outcome(case: Case) -> str:
    """Say what must become of a case with gradebox; the test of the suite holds it to that."""
    if case.scores is None:
        return f"refused: {case.why}"
    got = sum(case.scores.values())
    least = got - sum(FULL[name] for name in case.either)
    points = f"{got:g} of {ALL}" if least == got else f"{least:g} or {got:g} of {ALL}"
    parts = [points, *(["all taken off as late"] if case.late else []), *case.flags[:2]]
    parts += ["no script runs"] if case in GROUPS["The instructor's browser"] else []
    return "; ".join(parts) + (" …" if len(case.flags) > 2 else "")


def render() -> str:
    """Return the table as Markdown."""
    lines = [
        "<!-- Generated from tests/hostile by: cd tests && python -m hostile.table -->",
        "",
        f"{len(CASES)} submissions; {sum(bool(case.unrun) for case in CASES)} of them could hurt a "
        "machine and were not run with stock nbgrader. Feedback was opened in a browser without a "
        "network: a script that needs jQuery, as JavaScript shown by stock nbgrader does, cannot "
        "run there.",
    ]
    for group, cases in GROUPS.items():
        lines += ["", f"**{group}**", "", "| What it tries | Stock nbgrader | gradebox |"]
        lines.append("|---|---|---|")
        for case in cases:
            cells = [case.tries, stock_outcome(case, STOCK.get(case.name, {})), ""]
            cells[2] = gradebox_outcome(case)
            cells[0] = cells[0][0].upper() + cells[0][1:]
            lines.append("| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(render(), encoding="utf-8")
