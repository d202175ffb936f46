"""Hand in and give back: nbgrader's exchange, with the places where students work."""

from typing import Any

from gradebox.old_names import moved


def __getattr__(name: str) -> Any:
    return moved(__name__, name, "gradebox.exchange.release")
