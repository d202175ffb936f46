"""Know a person of the class: printed with id and name, and taken by an id, a number or a name."""

import difflib
import re
import unicodedata
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from tools.classroom import class_state
from tools.classroom.backend import Backend
from tools.layout import Course
from tools.terminal import ToolError

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class Person:
    """Somebody of the class, or of whom a platform's file speaks.

    ``number`` is what the platform numbers people by itself; ``ids`` is all in its file that may be
    an id, in small letters.
    """

    id: str = ""
    first_name: str = ""
    last_name: str = ""
    email: str = ""
    number: str = ""
    ids: frozenset[str] = frozenset()

    @classmethod
    def of(cls, fields: Mapping[str, str | None], ids: Iterable[str] = ()) -> "Person":
        """Return a person from the gradebook's fields, of which any may be missing."""
        first, last = fields.get("first_name") or "", fields.get("last_name") or ""
        email, number = fields.get("email") or "", fields.get("lms_user_id") or ""
        return cls(fields.get("id") or "", first, last, email, number, frozenset(ids))

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
        return f"{self.id} ({self.name})" if self.id and self.name else self.id or self.name


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
        return {entry.id: Person.of({**vars(entry)}) for entry in book.students}


def class_members(course: Course) -> dict[str, Person]:
    """Return everyone on the class list, by id; or, without one, everyone in the gradebook."""
    listed = class_state.read(course).students
    return {who: person for who, person in everybody(course).items() if not listed or who in listed}


def described(ids: Iterable[str], people: Mapping[str, Person]) -> str:
    """Return people with their ids and names, separated by commas."""
    return ", ".join(str(people.get(who, who)) for who in ids)


def find(text: str, people: Mapping[str, Person]) -> Person:
    """Return who is meant by an id, an e-mail address, a number, or a name that only one has."""
    text = text.strip()
    keys = name_keys(text)
    found = (
        [person for person in people.values() if person.id == text]
        or [person for person in people.values() if text.casefold() in person.logins]
        or [person for person in people.values() if text and text == person.number]
        or [person for person in people.values() if text == str(person) or keys & person.keys]
    )
    if len(found) == 1:
        return found[0]
    if found:
        several = ", ".join(map(str, found))
        raise ToolError(f"several students are called {text!r}: {several}", "give the id")
    raise ToolError(f"there is no student {text!r}", f"the nearest: {nearest(text, people)}")


def match(
    claims: Mapping[Key, Person], members: Mapping[str, Person]
) -> tuple[dict[Key, Person], dict[Key, str]]:
    """Return which students a platform's file speaks of, and of the others why that is not clear.

    An id, an e-mail address or the platform's number decides. A name does only where nothing of
    these says otherwise, one student has it, and one claim.
    """
    people = list(members.values())
    sure = {
        key: [person for person in people if claim.logins & person.logins]
        or [person for person in people if claim.number and claim.number == person.number]
        for key, claim in claims.items()
    }
    taken = {person.id for found in sure.values() for person in found}
    has_ids = any(
        person.id.casefold() in claims[key].ids for key, found in sure.items() for person in found
    )

    def may_be(claim: Person, person: Person) -> bool:
        is_other = (
            (claim.number and person.number)  # which differ, or the number had decided
            or (claim.email and person.email)
            or (claim.ids and has_ids)
        )
        return not is_other and person.id not in taken and bool(claim.keys & person.keys)

    found = {
        key: sure[key] or [person for person in people if may_be(claim, person)]
        for key, claim in claims.items()
    }
    claimed = Counter(person.id for several in found.values() for person in several)
    matched, unclear = {}, {}
    for key, several in found.items():
        if not several:
            named = ", ".join(str(person) for person in people if claims[key].keys & person.keys)
            is_other = f"has the name of {named}, and another address, id or number"
            unclear[key] = is_other if named else f"nearest: {nearest(claims[key].name, members)}"
            if is_test_student(claims[key].name):
                unclear[key] = "Canvas's test student"
        elif len(several) > 1:
            unclear[key] = "several have this name: " + ", ".join(map(str, several))
        elif claimed[several[0].id] > 1:
            unclear[key] = f"not the only one that may be {several[0]}"
        else:
            matched[key] = several[0]
    return matched, unclear


def nearest(name: str, members: Mapping[str, Person]) -> str:
    """Return at most three students whose names are nearest to one that nobody has, or nobody."""
    people = [(str(each), {*each.keys, each.id.casefold()}) for each in members.values()]
    by_key = {key: named for named, keys in people for key in keys}
    forms = sorted(name_keys(name))
    near = [key for form in forms for key in difflib.get_close_matches(form, by_key, 3, 0.55)]
    return ", ".join([*dict.fromkeys(by_key[key] for key in near)][:3]) or "nobody"
