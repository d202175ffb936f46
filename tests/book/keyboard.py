"""Write into the fields and editors of a page as a person does: with keys alone."""

from typing import Any

TEXT = """field => field.value
    ?? [...field.querySelectorAll('.cm-line')].map(line => line.textContent).join('\\n')"""
INDENTATION = """field =>
    field.querySelector('.cm-activeLine').textContent.search(/\\S|$/)"""
"""How far the line of the cursor is indented."""


def rewrite(field: Any, text: str) -> None:
    """Go to the lines of a field that have to be others, select them, and type.

    The field is a locator of an input, of a text area, or of an editor of code, which indents
    lines by itself.
    """
    press = field.page.keyboard.press
    field.focus()
    before = field.evaluate(TEXT)
    if before == text:
        return
    old, new = before.split("\n"), text.split("\n")
    code = "cm-content" in (field.get_attribute("class") or "")
    same = rest = 0
    if code:  # elsewhere lines are wrapped
        same = _shared(old, new)
        rest = _shared(old[same:][::-1], new[same:][::-1])
    if same and same + rest in (len(old), len(new)):  # lines come or go: the one before, too
        same -= 1
    press("Control+Home")
    if same:  # to the end of the line before
        for key in ["ArrowDown"] * (same - 1) + ["End", "ArrowRight"]:
            press(key)
    for _ in range(len(old) - same - rest - 1):
        press("Shift+ArrowDown")
    press("Shift+End" if rest else "Control+Shift+End")
    press("Delete")
    for number, line in enumerate(new[same : len(new) - rest]):
        if number:
            press("Enter")
        field.page.keyboard.type(_from_indentation(field, line) if number and code else line)
    assert field.evaluate(TEXT) == text


def _shared(old: list[str], new: list[str]) -> int:
    """Return how many lines two texts begin with in common."""
    pairs = enumerate(zip(old, new, strict=False))
    return next((n for n, (one, other) in pairs if one != other), min(len(old), len(new)))


def _from_indentation(field: Any, line: str) -> str:
    """Take back what the editor has indented too far; return what is still to be typed."""
    depth = len(line) - len(line.lstrip(" "))
    while (found := field.evaluate(INDENTATION)) > depth:
        field.page.keyboard.press("Backspace")
    return line[found:]
