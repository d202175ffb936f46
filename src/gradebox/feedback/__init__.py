"""What a student gets back: a page that loads nothing, and messages without hidden code."""

from typing import Any

from gradebox.old_names import moved


def __getattr__(name: str) -> Any:
    return moved(__name__, name, "gradebox.feedback.page")
