"""Keep what the gradebook has no place for: the class list, extensions, and what came by zip.

It is one file below ``build``, which is written whole or not at all.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from tools.fingerprints import write_if_changed
from tools.layout import Course
from tools.terminal import ToolError


@dataclass(frozen=True)
class HandIn:
    """What a learning platform's zip tells of a submission besides its files."""

    platform: str  # "Moodle", "Canvas", or nothing for a folder that bears the student's id
    names: dict[str, str]  # by notebook: what the platform wants before the name of a reply
    late: bool = False


@dataclass
class ClassState:
    """What is known of a class: who is on its list, and by assignment and id what else there is."""

    students: list[str] = field(default_factory=list)
    extensions: dict[str, dict[str, str]] = field(default_factory=dict)  # until when
    collected: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)  # a HandIn each

    def hand_in(self, topic: str, student: str) -> HandIn | None:
        """Return what is known of a submission that came in a zip."""
        known = self.collected.get(topic, {}).get(student)
        return HandIn(**known) if known else None


def read(course: Course) -> ClassState:
    """Return what is known of a class, or an empty state."""
    file = course.build / "class" / "register.json"
    if not file.exists():
        return ClassState()
    try:
        known = json.loads(file.read_text(encoding="utf-8"))
        # files of before have more, and with the students the cells of their list
        names = {one.name for one in fields(ClassState)}
        state = ClassState(**{name: known[name] for name in names & known.keys()})
        return replace(state, students=[*state.students])
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise ToolError(
            f"{file} cannot be read: {error}",
            "restore it from a copy of build/; or remove it, and enter the class list again",
        ) from None


@contextmanager
def changed(course: Course) -> Iterator[ClassState]:
    """Give the state of a class to change; it is written at the end, unless there was an error."""
    state = read(course)
    yield state
    text = json.dumps(asdict(state), indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    write_if_changed(course.build / "class" / "register.json", text.encode())
