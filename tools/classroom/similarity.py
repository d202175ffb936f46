"""Find answers of different students that are the same, or nearly so, as a list to look at.

Answers are compared as code: without comments, spaces and the names that a student chose. Two of
them are as alike as the runs of three tokens that they have in common, in the same order. Where an
exercise has one natural answer, strangers write it alike: an exercise is left out if the median of
all pairs of students is high.

Libraries such as copydetect compare files, with fingerprints of 25 characters and more in common;
most answers are shorter than two of these.
"""

import builtins
import contextlib
import io
import keyword
import re
import tokenize
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
from rapidfuzz import process
from rapidfuzz.distance import Indel
from scipy.sparse.csgraph import connected_components

from gradebox.nbgrader.cells import headings, of
from tools import notebooks
from tools.layout import Course

NATURAL = 0.5
"""An exercise is left out where half of all pairs of students are at least so much alike."""
MIN_LIKENESS = 0.9  # answers that are at least so much alike are listed
MIN_STUDENTS = 5  # the fewest students for whom the median of all pairs tells what strangers write
RUN = 3  # how many tokens in a row are compared


@dataclass
class Similarity:
    """What is alike in an assignment, by the titles of its exercises.

    An answer of each student in a group is that of another one in it, or nearly; the groups with
    most answers come first.
    """

    groups: dict[tuple[str, ...], list[str]] = field(default_factory=dict)
    compared: list[str] = field(default_factory=list)
    natural: list[str] = field(default_factory=list)  # what strangers answer alike
    few: list[str] = field(default_factory=list)  # what too few students have answered


def tokens(source: str, is_code: bool = True) -> list[str]:
    r"""Return what an answer says: its tokens, or the words of an answer in words.

    A name that the answer chose itself counts as any other.

    >>> tokens("def f(x):  # twice\n    return 2 * np.abs(x)\n") == tokens(
    ...     "def f(value):\n  return 2*np.abs(value)"
    ... )
    True
    >>> tokens("The RISK, expected;", is_code=False)
    ['the', 'risk', 'expected']
    """
    if not is_code:
        return re.findall(r"\w+", source.lower())
    result: list[str] = []
    # of code that is no Python, what came before
    with contextlib.suppress(tokenize.TokenError, IndentationError):
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type == tokenize.COMMENT or not token.string.strip():  # or layout
                continue
            is_name = token.type == tokenize.NAME and result[-1:] != ["."]
            is_known = keyword.iskeyword(token.string) or token.string in vars(builtins)
            result.append("a name" if is_name and not is_known else token.string)
    return result


def runs(source: str, is_code: bool = True, blank: str = "") -> list[tuple[str, ...]]:
    """Return each run of tokens in an answer, less those that stood there before."""
    given = Counter(runs(blank, is_code) if blank else ())
    words, result = tokens(source, is_code), []
    for run in zip(*(words[start:] for start in range(RUN)), strict=False):
        if given[run]:
            given[run] -= 1
        else:
            result.append(run)
    return result


def find(course: Course, topic: str) -> Similarity:
    """Return which answers of an assignment are alike."""
    result = Similarity()
    for name in course.notebooks(topic):
        released = notebooks.read(course.released(topic, name))
        paths = {who: course.executed(who, topic).get(name) for who in course.submitters(topic)}
        given = {who: notebooks.named(notebooks.read(path)) for who, path in paths.items() if path}
        named, titles = notebooks.named(released).items(), headings(released)
        blanks = {key: cell for key, cell in named if of(cell).get("solution")}
        shared = Counter(titles[key] for key in blanks)
        for key, cell in blanks.items():
            title = titles[key] if shared[titles[key]] == 1 else f"{titles[key]} ({key})"
            written = {who: cells[key].source for who, cells in given.items() if key in cells}
            own = {who: text for who, text in written.items() if text != cell.source}
            _compare(result, title, cell.source, own, cell.cell_type == "code")
    result.groups = dict(sorted(result.groups.items(), key=lambda item: -len(item[1])))
    return result


def _compare(
    result: Similarity, title: str, blank: str, answers: dict[str, str], is_code: bool
) -> None:
    """Add what is alike among the answers of students, by id, to an exercise."""
    if len(answers) < MIN_STUDENTS:
        result.few.append(title)
        return
    students, sources = [*answers], np.array([*answers.values()])
    written = [runs(source, is_code, blank) for source in answers.values()]
    alike = process.cdist(written, written, scorer=Indel.normalized_similarity)
    empty = np.array([not run for run in written])
    alike[empty[:, None] | empty] = 0  # two answers of which nothing is left are not alike
    if np.median(alike[np.triu_indices(len(sources), 1)]) >= NATURAL:
        result.natural.append(title)
        return
    result.compared.append(title)
    number, labels = connected_components((sources[:, None] == sources) | (alike >= MIN_LIKENESS))
    for label in range(number):
        if len(members := np.flatnonzero(labels == label)) > 1:
            who = tuple(students[member] for member in members)
            result.groups.setdefault(who, []).append(title)
