"""Cells that were deleted, copied, moved, renamed, or made into something else."""

import copy
from typing import Any

from nbformat.v4 import new_code_cell, new_markdown_cell, new_raw_cell

from hostile.case import FULL, WRONG, Build, Case, points
from hostile.course import POINTS, Work

MOVED = "the cells were in another order"
PUT_BACK = "the text of cell {} was changed; it was put back"


def edited(change: Any, right: bool = True) -> Build:
    """Build right or wrong answers, and change the notebook then."""

    def build(work: Work) -> None:
        work.honest()
        if not right:
            work.answer(**WRONG)
        change(work)

    return build


def _tests(work: Work) -> list[Any]:
    return [work.cell(name) for name in POINTS]


def _each(**metadata: Any) -> Any:
    def change(work: Work) -> None:
        for cell in _tests(work):
            cell.metadata.nbgrader.update(metadata)

    return change


def _tag(work: Work) -> None:
    for cell in _tests(work):
        cell.metadata["tags"] = ["skip-execution", "remove-cell"]


def _delete(*names: str) -> Any:
    def change(work: Work) -> None:
        work.nb.cells = [cell for cell in work.nb.cells if cell not in map(work.cell, names)]

    return change


def _copy(work: Work) -> None:
    for name in POINTS:
        again = copy.deepcopy(work.cell(name))
        again.id, again.source = f"again-{name}", "4"
        work.nb.cells.append(again)


def _copy_answer(work: Work) -> None:
    again = copy.deepcopy(work.cell("squares"))
    again.id = "again"
    work.cell("squares").source = WRONG["squares"]
    work.nb.cells.insert(work.index("test-squares"), again)


def _tests_to(position: int) -> Any:
    def change(work: Work) -> None:
        tests = _tests(work)
        rest = [cell for cell in work.nb.cells if cell not in tests]
        work.nb.cells = [*rest[:position], *tests, *rest[position:]]

    return change


def _answers_last(work: Work) -> None:
    names = ("squares", "means", "running", "digit", "nearest")
    answers = [work.cell(name) for name in names]
    work.nb.cells = [*(cell for cell in work.nb.cells if cell not in answers), *answers]


def _rename(name: str) -> Any:
    def change(work: Work) -> None:
        work.cell("squares").metadata.nbgrader.grade_id = name

    return change


def _rename_tests(work: Work) -> None:
    for number, cell in enumerate(_tests(work)):
        cell.metadata.nbgrader.grade_id = f"mine-{number}"
        cell.source = "4"


def _swap(name: str, other: str) -> Any:
    def change(work: Work) -> None:
        first, second = work.cell(name).metadata.nbgrader, work.cell(other).metadata.nbgrader
        first.grade_id, second.grade_id = second.grade_id, first.grade_id

    return change


def _kind(constructor: Any, *names: str) -> Any:
    def change(work: Work) -> None:
        for name in names:
            old = work.cell(name)
            new = constructor(old.source)
            new.id, new.metadata = old.id, old.metadata
            work.nb.cells[work.index(name)] = new

    return change


def _unlock(work: Work) -> None:
    for cell in _tests(work):
        cell.metadata.nbgrader.locked, cell.source = False, "4"


def _rewrite(work: Work) -> None:
    for cell in _tests(work):
        cell.source = "print('all is well')"


def _forge_checksums(work: Work) -> None:
    _rewrite(work)
    _each(checksum="0" * 32)(work)


def _adds_graded(work: Work) -> None:
    cell = new_code_cell("100", id="bonus")
    cell.metadata["nbgrader"] = {
        **work.cell("share").metadata.nbgrader,
        "grade_id": "bonus",
        "points": 100,
    }
    work.nb.cells.append(cell)


def _metadata(value: Any) -> Any:
    def change(work: Work) -> None:
        work.cell("squares").metadata["nbgrader"] = value

    return change


def _same_ids(work: Work) -> None:
    for cell in work.nb.cells:
        cell.id = "same"


def _no_metadata(work: Work) -> None:
    for cell in work.nb.cells:
        cell.metadata.pop("nbgrader", None)


NAMES = tuple(POINTS)

EDITS = [
    Case("skip-tags", "the tag `skip-execution` on the tests", edited(_tag, right=False)),
    Case(
        "deletes-tests",
        "the tests deleted",
        edited(_delete(*NAMES), right=False),
        flags=tuple(f"cell {name} was missing" for name in NAMES),
    ),
    Case(
        "deletes-answer",
        "an answer deleted",
        edited(_delete("squares")),
        scores=points(test_squares=0.0),
        flags=("cell squares was missing",),
    ),
    Case(
        "deletes-setup",
        "the locked cell with the imports deleted",
        edited(_delete("setup")),
        scores=FULL,
        flags=("cell setup was missing",),
    ),
    Case(
        "copies-tests",
        "the tests copied to the end, with marks as their text",
        edited(_copy, right=False),
        flags=(
            MOVED,
            *(f"cell {name} is there twice" for name in NAMES),
            *map(PUT_BACK.format, NAMES),
        ),
    ),
    Case(
        "copies-answer",
        "an answer copied, the first wrong and the second right",
        edited(_copy_answer),
        scores=FULL,
        flags=("cell squares is there twice",),
    ),
    Case(
        "tests-first",
        "the tests moved before all answers",
        edited(_tests_to(1)),
        scores=FULL,
        flags=(MOVED,),
    ),
    Case(
        "tests-last",
        "the tests moved to the end",
        edited(_tests_to(99)),
        scores=FULL,
        flags=(MOVED,),
    ),
    Case(
        "answers-last",
        "the answers moved behind their tests",
        edited(_answers_last),
        scores=FULL,
        flags=(MOVED,),
    ),
    Case(
        "renames-answer",
        "an answer renamed",
        edited(_rename("my-own-name")),
        scores=FULL,
        flags=("cell my-own-name is none of the assignment's", "cell squares was missing"),
    ),
    Case(
        "renames-for-terminal",
        "an answer renamed so that its name clears the instructor's terminal",
        edited(_rename("\x1b[2J\x1b]0;[red]no-name\x07")),
        scores=FULL,
        flags=("no-name", "cell squares was missing"),
    ),
    Case(
        "renames-tests",
        "the tests renamed, with marks as their text",
        edited(_rename_tests, right=False),
        flags=(
            *(f"cell mine-{number} is none" for number in range(5)),
            *(f"cell {name} was missing" for name in NAMES),
        ),
    ),
    Case(
        "swaps-tests",
        "two tests that take each other's name, to be worth what the other is",
        edited(_swap("test-means", "share")),
        scores=FULL,
        flags=(
            MOVED,
            *map(PUT_BACK.format, ("share", "test-means")),
            "the points of cell share were changed",
            "the points of cell test-means were changed",
        ),
    ),
    Case(
        "answer-as-test",
        "an answer and its test that take each other's name",
        edited(_swap("squares", "test-squares")),
        scores=points(test_squares=0.0),
        flags=(
            MOVED,
            PUT_BACK.format("test-squares"),
            "the kind of cell squares was changed",
            "the kind of cell test-squares was changed",
            "the points of cell test-squares were changed",
        ),
    ),
    Case(
        "more-points",
        "the points of the tests raised",
        edited(_each(points=1000), right=False),
        flags=tuple(f"the points of cell {name} were changed" for name in NAMES),
    ),
    Case(
        "no-points",
        "the points of the tests made nan",
        edited(_each(points=float("nan"))),
        scores=FULL,
        flags=tuple(f"the points of cell {name} were changed" for name in NAMES),
    ),
    Case(
        "markdown-tests",
        "the tests made text",
        edited(_kind(new_markdown_cell, *NAMES), right=False),
        flags=tuple(f"the type of cell {name} was changed" for name in NAMES),
    ),
    Case(
        "raw-tests",
        "the tests made raw cells",
        edited(_kind(new_raw_cell, *NAMES), right=False),
        flags=tuple(f"the type of cell {name} was changed" for name in NAMES),
    ),
    Case(
        "markdown-answer",
        "an answer made text",
        edited(_kind(new_markdown_cell, "squares")),
        scores=FULL,
        flags=("the type of cell squares was changed",),
    ),
    Case(
        "code-words",
        "the written answer made code that shows a mark",
        edited(_kind(new_code_cell, "words")),
        scores=FULL,
        flags=("the type of cell words was changed",),
    ),
    Case(
        "unlocks-tests",
        "the tests unlocked, with marks as their text",
        edited(_unlock, right=False),
        flags=tuple(map(PUT_BACK.format, NAMES)),
    ),
    Case(
        "rewrites-tests",
        "the tests rewritten",
        edited(_rewrite, right=False),
        flags=tuple(map(PUT_BACK.format, NAMES)),
    ),
    Case(
        "tests-as-answers",
        "the tests marked as answers, to be graded by hand",
        edited(_each(solution=True), right=False),
        flags=tuple(f"the kind of cell {name} was changed" for name in NAMES),
    ),
    Case(
        "ungraded-tests",
        "the tests marked as cells without points",
        edited(_each(grade=False), right=False),
        flags=tuple(f"the kind of cell {name} was changed" for name in NAMES),
    ),
    Case(
        "task-tests",
        "the tests marked as tasks",
        edited(_each(task=True), right=False),
        flags=tuple(f"the kind of cell {name} was changed" for name in NAMES),
    ),
    Case(
        "false-checksums",
        "the checksums of the tests forged, with other text",
        edited(_forge_checksums, right=False),
        flags=tuple(map(PUT_BACK.format, NAMES)),
    ),
    Case(
        "adds-graded",
        "a cell of the student's own that is worth 100 points",
        edited(_adds_graded),
        scores=FULL,
        flags=("cell bonus is none of the assignment's",),
    ),
    Case("same-ids", "all cells with the same id", edited(_same_ids), scores=FULL),
    Case(
        "no-metadata",
        "all of nbgrader's metadata removed, as other programs do",
        edited(_no_metadata),
        scores=FULL,
        flags=tuple(
            f"cell {name} was missing"
            for name in ("squares", "means", "running", "digit", "nearest", "words")
        ),
    ),
    *(
        Case(
            f"metadata-{name}",
            f"nbgrader's metadata of an answer made {description}",
            edited(_metadata(value)),
            scores=FULL,
            flags=("cell squares was missing",),
        )
        for name, description, value in (
            ("list", "a list", []),
            ("text", "a text", "squares"),
            ("empty", "empty", {}),
            ("odd", "nonsense", {"grade_id": ["squares"], "grade": "yes", "points": "many"}),
        )
    ),
]
