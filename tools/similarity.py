"""Find answers of different students that are the same, or nearly so, as a list to look at.

Answers are compared as code: without comments, spaces and the names that a student chose. Two of
them are as alike as the runs of three tokens that they have in common. Where an exercise has one
natural answer, strangers write it alike: an exercise is left out if the median of all pairs of
students is high.

Libraries such as copydetect compare files, with fingerprints of 25 characters and more in common;
most answers are shorter than two of these.
"""

import builtins
import io
import keyword
import re
import tokenize
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import combinations
from statistics import median

from tools import notebooks
from tools.layout import Course
from tools.results import comma_separated

NATURAL = 0.5
"""An exercise is left out where half of all pairs of students are at least so much alike."""

NEAR = 0.9
"""Answers that are at least so much alike are listed."""

FEWEST = 5
"""The fewest students for whom the median of all pairs tells what strangers write."""

RUN = 3
"""How many tokens in a row are compared."""

_LAYOUT = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT),
    *(tokenize.ENDMARKER, tokenize.ENCODING),
}


@dataclass(frozen=True)
class Pair:
    """Two students with answers that are alike.

    Parameters
    ----------
    students : tuple of str
        Their ids.
    same : list of str
        The answers that are the same, byte for byte.
    near : list of str
        Those that are nearly the same.
    """

    students: tuple[str, str]
    same: list[str]
    near: list[str]


@dataclass(frozen=True)
class Similarity:
    """What is alike in an assignment.

    Parameters
    ----------
    pairs : list of Pair
        The pairs to look at, those with most answers first.
    compared : list of str
        The answers that were compared.
    natural : list of str
        Those that were left out because strangers write them alike.
    few : list of str
        Those that too few students have written.
    """

    pairs: list[Pair]
    compared: list[str]
    natural: list[str]
    few: list[str]


def tokens(source: str, is_code: bool = True) -> list[str]:
    r"""Return what an answer says: its tokens, or the words of an answer in words.

    A name that the answer chose itself counts as any other.

    >>> tokens("def f(x):  # twice\n    return 2 * np.abs(x)\n") == tokens(
    ...     "def f(value):\n  return 2*np.abs(value)"
    ... )
    True
    """
    if not is_code:
        return re.findall(r"\w+", source.lower())
    result: list[str] = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type in _LAYOUT:
                continue
            is_own = (
                token.type == tokenize.NAME
                and not keyword.iskeyword(token.string)
                and token.string not in vars(builtins)
                and result[-1:] != ["."]
            )
            result.append("a name" if is_own else token.string)
    except (tokenize.TokenError, IndentationError):
        pass  # of code that is no Python, what came before
    return result


def runs(source: str, is_code: bool = True) -> Counter[tuple[str, ...]]:
    """Return how often each run of tokens occurs in an answer.

    Parameters
    ----------
    source : str
        The answer.
    is_code : bool
        Whether it is Python, or words.

    Returns
    -------
    Counter
        Tuples of ``RUN`` tokens to how often they occur; empty for a shorter answer.
    """
    words = tokens(source, is_code)
    return Counter(zip(*(words[start:] for start in range(RUN)), strict=False))


def likeness(first: Counter[tuple[str, ...]], second: Counter[tuple[str, ...]]) -> float:
    """Return how much of two answers is the same, from 0 to 1 (Dice's coefficient).

    Parameters
    ----------
    first, second : Counter
        What :func:`runs` gives for each; of two empty ones the likeness is 0.
    """
    together = first.total() + second.total()
    return 2 * (first & second).total() / together if together else 0.0


@dataclass(frozen=True)
class _Answer:
    """What the students wrote into a cell, by id, and what stood there."""

    is_code: bool
    blank: str
    sources: dict[str, str] = field(default_factory=dict)

    def likenesses(self) -> dict[tuple[str, str], float]:
        """Return how alike the answers of each two students are, less what stood there."""
        given = runs(self.blank, self.is_code)
        by_student = {
            student: runs(text, self.is_code) - given for student, text in self.sources.items()
        }
        return {
            pair: likeness(by_student[pair[0]], by_student[pair[1]])
            for pair in combinations(by_student, 2)
        }


def _answers(course: Course, topic: str) -> dict[str, _Answer]:
    """Return the answers of an assignment that are not as they were released, by cell."""
    by_exercise: dict[str, _Answer] = {}
    for name in course.notebooks(topic):
        of_notebook: dict[str, _Answer] = {}
        for cell in notebooks.read(course.released(topic, name)).cells:
            if cell.metadata.get("nbgrader", {}).get("solution"):
                of_notebook[cell.metadata.nbgrader.grade_id] = _Answer(
                    cell.cell_type == "code", cell.source
                )
        for student in course.submitters(topic):
            path = course.executed(student, topic).get(name)
            for cell in notebooks.read_graded(path).cells if path else ():
                answer = of_notebook.get(cell.metadata.get("nbgrader", {}).get("grade_id"))
                if answer and cell.source != answer.blank:
                    answer.sources[student] = cell.source
        by_exercise |= of_notebook
    return by_exercise


def find(course: Course, topic: str) -> Similarity:
    """Return which answers of an assignment are alike."""
    result = Similarity([], [], [], [])
    pairs: dict[tuple[str, str], Pair] = {}
    for name, answer in _answers(course, topic).items():
        if len(answer.sources) < FEWEST:
            result.few.append(name)
            continue
        likenesses = answer.likenesses()
        if median(likenesses.values()) >= NATURAL:
            result.natural.append(name)
            continue
        result.compared.append(name)
        for students, value in likenesses.items():
            first, second = (answer.sources[student] for student in students)
            if first == second or value >= NEAR:
                pair = pairs.setdefault(students, Pair(students, [], []))
                (pair.same if first == second else pair.near).append(name)
    result.pairs.extend(sorted(pairs.values(), key=lambda pair: -len(pair.same) - len(pair.near)))
    return result


def to_csv(by_topic: Mapping[str, Similarity]) -> str:
    """Return what is alike, by assignment, as comma-separated text, a line for each pair."""
    lines = [
        (topic, *pair.students, " ".join(pair.same), " ".join(pair.near))
        for topic, similarity in by_topic.items()
        for pair in similarity.pairs
    ]
    return comma_separated(("assignment", "student", "other", "same", "nearly_the_same"), lines)
