"""Hand in what the student saved last, wherever that was."""

from pathlib import Path
from typing import Any

from nbgrader.exchange.default.submit import ExchangeSubmit
from traitlets import List, Unicode

from gradebox.exchange.workplaces import Gathered, Releases, gather


class Submit(ExchangeSubmit):  # type: ignore[misc]
    """nbgrader's submission through the exchange, from one place of work.

    A student may have edited the released notebook itself, not the copy of it in
    ``Exchange.assignment_dir``. It is gathered there first; see
    :mod:`gradebox.exchange.workplaces`.
    """

    places = List(
        Unicode(),
        help="Folders, beside assignment_dir, in which a student may have edited an assignment.",
    ).tag(config=True)

    def init_src(self) -> None:
        """Gather what was edited elsewhere, then find the assignment."""
        super_init: Any = super().init_src
        root = Path(self.coursedir.root)
        releases = Releases(root / self.coursedir.release_directory)
        work, places = Path(self.assignment_dir), [root / folder for folder in self.places]
        for gathered in gather(work, self.coursedir.assignment_id, places, releases):
            self.log.warning(describe(gathered, root))
        super_init()


def describe(file: Gathered, root: Path) -> str:
    """Return in words what became of a file that was edited elsewhere."""

    def name(path: Path) -> str:
        return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)

    if file.is_newer:
        text = f"{name(file.source)} was edited; it is {name(file.target)} now: go on there"
        return (
            f"{text}. The file that was there is kept as {name(file.earlier_copy)}"
            if file.earlier_copy
            else text
        )
    return (
        f"{name(file.source)} was edited, but {name(file.target)} was saved later and counts; "
        f"the other is kept as {name(file.earlier_copy or file.source)}"
    )
