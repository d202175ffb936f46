"""Recognize the students of a class by what learning platforms call them."""

import difflib
import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tools import class_state
from tools.backend import Backend
from tools.layout import Course


@dataclass(frozen=True)
class Member:
    """A student, with the number that the platform gives by itself."""

    id: str
    first_name: str = ""
    last_name: str = ""
    email: str = ""
    number: str = ""

    @property
    def keys(self) -> set[str]:
        """Return the forms in which a platform may write the name."""
        first, last = self.first_name, self.last_name
        return name_keys(f"{first} {last}") | name_keys(f"{last} {first}")

    def __str__(self) -> str:
        name = f"{self.first_name} {self.last_name}".strip()
        return f"{self.id} ({name})" if name else self.id


def name_keys(name: str) -> set[str]:
    """Return a name without spaces and signs, in its own order of words and in the alphabet's.

    Canvas writes the last name, the first name and nothing between them; Moodle leaves out
    apostrophes.
    """
    text = re.sub("['\N{RIGHT SINGLE QUOTATION MARK}]", "", unicodedata.normalize("NFC", name))
    words = re.findall(r"[^\W_]+", text.casefold())
    return {"".join(words), "".join(sorted(words))} - {""}


def class_members(course: Course) -> dict[str, Member]:
    """Return everyone on the class list, by id; or, without one, everyone in the gradebook."""
    listed = class_state.read(course).students
    with Backend(course).gradebook() as book:
        return {
            entry.id: Member(
                *(entry.id, entry.first_name or "", entry.last_name or "", entry.email or ""),
                entry.lms_user_id or "",
            )
            for entry in book.students
            if not listed or entry.id in listed
        }


def find_members(
    ids: Iterable[str], number: str, keys: set[str], members: Mapping[str, Member]
) -> list[Member]:
    """Return who is meant: by an id or e-mail address, by the platform's number, or by name.

    Parameters
    ----------
    ids : iterable of str
        What may be an id or an e-mail address; upper and lower case do not matter.
    number : str
        The platform's number, or an empty string.
    keys : set of str
        The name, in the forms of :func:`name_keys`.
    members : mapping
        The class, by id.

    Returns
    -------
    list of Member
        Those of the first of the three ways that finds anybody.
    """
    given = {text.casefold() for text in ids} - {""}
    everybody = list(members.values())
    return (
        [member for member in everybody if given & {member.id.casefold(), member.email.casefold()}]
        or [member for member in everybody if number and number == member.number]
        or [member for member in everybody if keys & member.keys]
    )


def nearest(name: str, members: Mapping[str, Member]) -> str:
    """Return the students whose names are nearest to one that nobody has.

    Returns
    -------
    str
        At most three, separated by commas, or "nobody".
    """
    by_key = {
        key: str(member)
        for member in members.values()
        for key in (*member.keys, member.id.casefold())
    }
    near = [
        by_key[key]
        for form in sorted(name_keys(name))
        for key in difflib.get_close_matches(form, by_key, n=3, cutoff=0.55)
    ]
    return ", ".join([*dict.fromkeys(near)][:3]) or "nobody"
