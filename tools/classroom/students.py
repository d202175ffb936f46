"""Know the class: printed with ids and names, and taken by an id, a number or a name.

What the gradebook has no place for, the class list, extensions, and what came by zip, is one file
below ``build``, which is written whole or not at all.
"""

import difflib
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

from tools.classroom.backend import Backend
from tools.fingerprints import write_if_changed
from tools.layout import Course
from tools.terminal import ToolError

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class Person:
    """Somebody of the class, or of whom a platform's file or the name of a hand-in speaks.

    ``number`` is what the platform numbers people by itself; ``ids`` is all in its file that may be
    an id, in small letters.
    """

    id: str = ""
    first_name: str = ""
    last_name: str = ""
    email: str = ""
    number: str = ""
    ids: frozenset[str] = field(default=frozenset(), kw_only=True)

    @property
    def name(self) -> str:
        """Return the whole name."""
        return f"{self.first_name} {self.last_name}".strip()

    @property
    def keys(self) -> set[str]:
        """Return the forms in which a platform may write the name."""
        return name_keys(self.name) | name_keys(f"{self.last_name} {self.first_name}")

    @property
    def logins(self) -> set[str]:
        """Return all that may be an id, in small letters: upper and lower case do not matter."""
        return {text.casefold() for text in (self.id, self.email, *self.ids)} - {""}

    def __str__(self) -> str:
        named = f"{self.id} ({self.name})" if self.name else self.id
        return named if self.id else f"{self.name} {self.number}".strip()


FIELDS = ("id", "first_name", "last_name", "email", "lms_user_id")
"""What the gradebook knows of a person, in the order of the fields of one."""


# --- what the gradebook has no place for

REGISTER = "class/register.json"  # below ``build``


@dataclass
class ClassState:
    """What is known of a class: who is on its list, and by assignment and id what else there is.

    Of what came in a zip this is the ``platform``, which may be none; the ``names`` by notebook:
    what the platform wants before that of a reply; whether the platform says that it is ``late``;
    and the greatest number of an ``attachment``, 0 without any.
    """

    students: list[str]
    extensions: dict[str, dict[str, str]]  # until when
    collected: dict[str, dict[str, dict[str, Any]]]


def state(course: Course) -> ClassState:
    """Return what is known of a class, or an empty state."""
    file = course.build / REGISTER
    try:
        known = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
        # files of before have more, and with the students the cells of their list
        listed = [*known.get("students", ())]
        return ClassState(listed, known.get("extensions", {}), known.get("collected", {}))
    except (OSError, ValueError, TypeError, AttributeError) as error:
        remedy = "restore it from a copy of build/; or remove it, and enter the class list again"
        raise ToolError(f"{file} cannot be read: {error}", remedy) from None


@contextmanager
def changed(course: Course) -> Iterator[ClassState]:
    """Give the state of a class to change; it is written at the end, unless there was an error."""
    known = state(course)
    yield known
    text = json.dumps(asdict(known), indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    write_if_changed(course.build / REGISTER, text.encode())


# --- who is who


def name_keys(name: str) -> set[str]:
    """Return a name without spaces and signs, in its own order of words and in the alphabet's.

    Canvas writes the last name, the first name and nothing between them; Moodle leaves out
    apostrophes.
    """
    text = re.sub("['\N{RIGHT SINGLE QUOTATION MARK}]", "", unicodedata.normalize("NFC", name))
    words = re.findall(r"[^\W_]+", text.casefold())
    return {"".join(words), "".join(sorted(words))} - {""}


def is_test_student(name: str) -> bool:
    """Return whether a name is that of the student whom Canvas puts into each course."""
    return bool(name_keys(name) & name_keys("Test Student"))


def everybody(course: Course) -> dict[str, Person]:
    """Return everyone in the gradebook, by id."""
    with Backend(course).gradebook() as book:
        known: list[list[Any]] = [[getattr(one, name) for name in FIELDS] for one in book.students]
    return {who: Person(who, *(value or "" for value in rest)) for who, *rest in known}


def class_members(course: Course) -> dict[str, Person]:
    """Return everyone on the class list, by id; or, without one, everyone in the gradebook."""
    listed = state(course).students
    return {who: person for who, person in everybody(course).items() if not listed or who in listed}


def described(ids: Iterable[str], people: Mapping[str, Person]) -> list[str]:
    """Return people with their ids and names, in the order of the ids."""
    return [str(people.get(who, who)) for who in sorted(ids)]


def match(
    claims: Mapping[Key, Person], members: Mapping[str, Person]
) -> tuple[dict[Key, Person], dict[Key, str]]:
    """Return which students a platform's file speaks of, and of the others why that is not clear.

    An id, an e-mail address or the platform's number decides. A name does only where nothing of
    these says otherwise, one student has it, and one claim.
    """
    people = members.values()
    found = {
        key: [one for one in people if claim.logins & one.logins]
        or [one for one in people if claim.number and claim.number == one.number]
        for key, claim in claims.items()
    }
    taken = {one.id for several in found.values() for one in several}
    has_ids = any(one.id.casefold() in claims[key].ids for key in found for one in found[key])
    namesakes = {}
    for key, claim in claims.items():
        namesakes[key] = [one for one in people if claim.keys & one.keys]
        found[key] = found[key] or [
            one
            for one in namesakes[key]
            if one.id not in taken
            and not (claim.number and one.number)  # which differ, or the number had decided
            and not (claim.email and one.email)
            and not (claim.ids and has_ids)
        ]
    claimed = Counter(one.id for several in found.values() for one in several)
    matched, unclear = {}, {}
    for key, several in found.items():
        named = ", ".join(map(str, several or namesakes[key]))
        if len(several) > 1:
            unclear[key] = f"several have this name: {named}"
        elif several and claimed[several[0].id] == 1:
            matched[key] = several[0]
        elif several:
            unclear[key] = f"not the only one that may be {named}"
        elif is_test_student(claims[key].name):
            unclear[key] = "Canvas's test student"
        elif named:
            unclear[key] = f"has the name of {named}, and another address, id or number"
        else:
            unclear[key] = f"nearest: {nearest(claims[key].name, members)}"
    return matched, unclear


def find(text: str, people: Mapping[str, Person]) -> Person:
    """Return who is meant by an id, an e-mail address, a number, or a name that only one has."""
    text = text.strip()
    if text in people:
        return people[text]
    login = text.partition(" (")[0].casefold()  # messages write the id, then the name in brackets
    number = text if text.isdecimal() else ""
    claim = Person(last_name=text, number=number, ids=frozenset({login}))
    matched, unclear = match({text: claim}, people)
    if not matched:
        raise ToolError(f"there is no one student {text!r}", f"give the id; {unclear[text]}")
    return matched[text]


def nearest(name: str, members: Mapping[str, Person]) -> str:
    """Return at most three students whose names are nearest to one that nobody has, or nobody."""
    people = {
        key: str(each) for each in members.values() for key in {*each.keys, each.id.casefold()}
    }
    forms = sorted(name_keys(name))
    near = [key for form in forms for key in difflib.get_close_matches(form, people, 3, 0.55)]
    return ", ".join([*dict.fromkeys(people[key] for key in near)][:3]) or "nobody"
