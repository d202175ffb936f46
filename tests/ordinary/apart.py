"""What works apart from the student's code, for the book: ``python -m ordinary.apart``."""

from pathlib import Path

from ordinary import KINDS, cases

FILE = Path(__file__).resolve().parents[2] / "book/_include/ordinary.md"

BESIDE = {
    "a class of the test's inherits from one of the student's": (
        "the methods of one object would be in two processes"
    ),
    "the last line shows an array, which is no score": (
        "where an answer returns an array, a sum of comparisons becomes one, and is no score"
    ),
}
"""Cases that work only beside the student's code, with the reason: no others may be."""

TITLES = {
    "seeds": "Random numbers",
    "results": "What answers return",
    "operators": "Objects of the student's classes",
    "arguments": "What tests pass to answers",
    "inspection": "Names, signatures, sources",
    "streams": "Printing, input, warnings, files",
    "calls": "Calls and callbacks",
    "large": "Much at once",
    "learning": "torch and figures",
    "notebook": "What a notebook adds to Python",
}


def render() -> str:
    """Return the table as Markdown."""
    all_cases = cases()
    lines = [
        "<!-- Generated from tests/ordinary by: cd tests && python -m ordinary.apart -->",
        "",
        f"{len(all_cases)} ordinary tests, each with a right answer. In one process, as stock "
        f"nbgrader runs them, all get their points; apart {len(all_cases) - len(BESIDE)} do, and "
        "the others are run beside the student's code. No wrong answer gets points in either way.",
    ]
    for kind in KINDS:
        lines += ["", f"**{TITLES[kind]}**", "", "| What the test does | It runs |", "|---|---|"]
        for case in all_cases:
            if case.kind == kind:
                why = BESIDE.get(case.name)
                runs = f"beside: {why}" if why else "apart"
                name = case.name[0].upper() + case.name[1:]
                lines.append(f"| {name} | {runs} |".replace("<", r"\<"))
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    FILE.write_text(render(), encoding="utf-8")
