"""Replace nbgrader's steps that open the gradebook or read its schemas by faster ones.

They use the gradebook that a run has open already. nbgrader's own open it anew for each notebook,
and commit after each answer: half of the time that grading takes without kernels.
"""

import json
from functools import lru_cache
from typing import Any

from nbformat import from_dict
from nbgrader.nbgraderformat import MetadataValidator
from nbgrader.preprocessors import (
    AssignLatePenalties,
    CheckCellMetadata,
    NbGraderPreprocessor,
    OverwriteKernelspec,
    SaveAutoGrades,
)

from gradebox.events import Event
from gradebox.nbgrader.gradebook import opened


class RestoreKernelspec(OverwriteKernelspec):  # type: ignore[misc]
    """nbgrader's step that puts the instructor's kernel back."""

    def preprocess(self, nb: Any, resources: Any) -> tuple[Any, Any]:
        """Overwrite the kernel that the notebook names, if the gradebook has one."""
        context = resources["nbgrader"]
        with opened(resources) as book:
            kernelspec = book.find_notebook(context["notebook"], context["assignment"]).kernelspec
        if kernelspec and (parsed := json.loads(kernelspec)):
            nb.metadata["kernelspec"] = parsed
        return nb, resources


class LatePenalties(AssignLatePenalties):  # type: ignore[misc]
    """nbgrader's step that takes points off for being late."""

    def preprocess(self, nb: Any, resources: Any) -> tuple[Any, Any]:
        """Ask the course's plugin for the penalty, and enter it."""
        context = resources["nbgrader"]
        assignment, student = context["assignment"], context["student"]
        self.init_plugin()
        with opened(resources) as book:
            late = book.find_submission(assignment, student).total_seconds_late
            entry = book.find_submission_notebook(context["notebook"], assignment, student)
            entry.late_submission_penalty = penalty = None
            if late > 0:
                book.db.flush()  # the database sums the score when it is first asked for, here
                self.log.warning(
                    Event("late", fields={"seconds": late, "duration": duration(late)})
                )
                penalty = self.plugin_inst.late_submission_penalty(student, entry.score, late)
                if penalty is not None:
                    penalty = self._check_late_penalty(entry, penalty)
            entry.late_submission_penalty = penalty
            if penalty:  # one for each notebook, of those that have points to lose
                fields = {"points": penalty}
                self.log.warning(Event("late-penalty", context["notebook"], "", fields))
            book.db.commit()
        return nb, resources


def duration(seconds: float) -> str:
    """Return a time as people say it.

    >>> [duration(seconds) for seconds in (20, 150, 3600, 83440, 200_000)]
    ['1 minute', '3 minutes', '1 hour', '23.2 hours', '2.3 days']
    """
    number, unit = f"{max(1, -(-seconds // 60)):.0f}", "minute"
    if seconds >= 3540:
        size, unit = (3600, "hour") if seconds < 48 * 3600 else (86400, "day")
        number = f"{round(seconds / size, 1):g}"
    return f"{number} {unit}{'' if number == '1' else 's'}"


class CheckMetadata(CheckCellMetadata):  # type: ignore[misc]
    """nbgrader's check of the metadata, once for all cells that have the same."""

    def preprocess(self, nb: Any, resources: Any) -> tuple[Any, Any]:
        """Raise unless all cells are as they should be."""
        _VALIDATOR.validate_nb(nb)
        return nb, resources


class _Validator(MetadataValidator):  # type: ignore[misc]
    def validate_cell(self, cell: Any) -> None:
        if "nbgrader" in cell.metadata:
            fields = {"cell_type": cell.cell_type, "metadata": cell.metadata, "source": ""}
            self._validate(json.dumps(fields, sort_keys=True, default=repr))

    @lru_cache(maxsize=10_000)  # noqa: B019
    def _validate(self, cell: str) -> None:
        super().validate_cell(from_dict(json.loads(cell)))  # type: ignore[no-untyped-call]


_VALIDATOR = _Validator()


class SaveScores(SaveAutoGrades):  # type: ignore[misc]
    """nbgrader's step that enters the scores, for those that ``WarmExecute`` gives.

    Cells of which it does not know the score, such as written answers, are nbgrader's.
    """

    def preprocess(self, nb: Any, resources: Any) -> tuple[Any, Any]:
        """Enter the scores of a notebook, and the comments of answers that were left as given."""
        context = resources["nbgrader"]
        self.notebook_id, self.assignment_id = context["notebook"], context["assignment"]
        self.student_id, self.db_url = context["student"], context["db_url"]
        with opened(resources) as self.gradebook:
            result: tuple[Any, Any] = NbGraderPreprocessor.preprocess(self, nb, resources)
        return result

    def _add_score(self, cell: Any, resources: Any) -> None:
        name = cell.metadata["nbgrader"]["grade_id"]
        score = resources.get("gradebox", {}).get("scores", {}).get(name)
        if score is None:
            super()._add_score(cell, resources)
            return
        grade = self.gradebook.find_grade(
            name, self.notebook_id, self.assignment_id, self.student_id
        )
        grade.auto_score = score
        grade.needs_manual_grade = grade.manual_score is not None
        self.gradebook.db.commit()
