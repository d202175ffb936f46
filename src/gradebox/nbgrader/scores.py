"""Enter the scores that the tests themselves gave, instead of reading them from outputs."""

from typing import Any

from nbgrader.preprocessors import NbGraderPreprocessor, SaveAutoGrades

from gradebox.nbgrader.gradebook import opened
from gradebox.workers.scoring import bounded


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


def shown_score(outputs: list[Any], points: float) -> float:
    """Return the points of a cell that ran in the student's process, from its outputs.

    An error gives none, a number gives itself within its bounds, all else gives all; what was
    written to stderr does not matter.
    """
    for output in outputs:
        if output.output_type == "error":
            return 0.0
        if output.output_type == "execute_result":
            try:
                return bounded(float(output.data.get("text/plain", "")), points)
            except (ValueError, TypeError):  # a list of lines
                return points
    return points
