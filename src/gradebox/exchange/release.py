"""Release feedback to everyone who can get it, and say who cannot.

nbgrader hands a page out under a name that it makes from a secret, which JupyterLab submits beside
the work. Work that came as a folder has none, and nbgrader stops at the first such student. In
``nbgrader_config.py`` this takes its place::

    c.ExchangeFactory.release_feedback = "gradebox.ReleaseFeedback"
"""

import glob
import re
from pathlib import Path
from typing import Any

from nbgrader.exchange.default import ExchangeReleaseFeedback

NEEDED = ("submission_secret.txt", "timestamp.txt")
"""The files beside a page without which it cannot be handed out."""


class ReleaseFeedback(ExchangeReleaseFeedback):  # type: ignore[misc]
    """nbgrader's step that releases pages, for those that can be released."""

    def copy_files(self) -> None:
        """Release what can be; warn of the rest, with the place of each page."""
        excluded = self.coursedir.student_id_exclude
        without_secret = left_out(self.coursedir)
        names = [*filter(None, excluded.split(",")), *without_secret]
        self.coursedir.student_id_exclude = ",".join(names)
        try:
            super().copy_files()
        finally:
            self.coursedir.student_id_exclude = excluded
        for student, folder in without_secret.items():
            self.log.warning(
                "Not released to '%s', who did not submit in JupyterLab: send the pages in %s",
                student,
                folder,
            )


def left_out(coursedir: Any) -> dict[str, Path]:
    """Return the folders of pages that cannot be released, by student.

    Parameters
    ----------
    coursedir : CourseDirectory
        nbgrader's, for an assignment, and for a student or all.
    """
    step, assignment = coursedir.feedback_directory, coursedir.assignment_id
    pattern = coursedir.format_path(step, "(?P<student>.*)", re.escape(assignment), escape=True)
    folders = coursedir.format_path(step, coursedir.student_id or "*", glob.escape(assignment))
    missing = {}
    # not Path.glob: the structure may be absolute
    for folder in map(Path, sorted(glob.glob(folders))):  # noqa: PTH207
        match = re.fullmatch(pattern, str(folder))
        complete = all((folder / file).is_file() for file in NEEDED)
        if match and not complete and any(folder.glob("*.html")):
            missing[match["student"]] = folder
    return missing
