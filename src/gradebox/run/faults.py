"""Say in one sentence what an error asks the instructor to do."""

import errno
import re

from nbformat.reader import NotJSONError
from sqlalchemy.exc import DatabaseError, OperationalError, SQLAlchemyError
from traitlets import TraitError

from gradebox.nbgrader.cells import Unready
from gradebox.run.intake import Refused
from gradebox.sandbox.seal import NotSealed

_FREE = "free some space, and run the same command again: it goes on where it stopped"
_OPEN = "give yourself the right to read and write there, or work in a copy of the course"

# what to do about an error of the disk, by its number
_DISK = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT, errno.EFBIG), _FREE),
    **dict.fromkeys((errno.EROFS, errno.EACCES, errno.EPERM), _OPEN),
    errno.EIO: "the disk is damaged: work in a copy of the course",
}
# what to do about an error of the gradebook, by what its first line holds
_GRADEBOOK = {
    "locked": "close what else uses it, such as the formgrader, and run the same command again",
    "is full|i/o error": _FREE,
    "readonly|permission denied": _OPEN,
    "no such|no column|does not exist|undefined": "another version of nbgrader, or another "
    "program, has made it; try: nbgrader db upgrade",
    "malformed|not a database": "put back a copy of it from before",
    "": "is c.CourseDirectory.db_url in nbgrader_config.py its address, and does it answer?",
}


def concerns_all(error: Exception) -> bool:
    """Return whether every submission would fail as this one did."""
    if isinstance(error, OSError):
        # the folder of one submission alone may be closed
        return error.errno in _DISK.keys() - {errno.EACCES, errno.EPERM}
    # what is wrong with the values of one submission is a subclass
    return isinstance(error, OperationalError) or type(error) is DatabaseError


def sentence(error: Exception) -> str:
    """Return what is wrong and what to do; nothing for an error of another kind."""
    if isinstance(error, Unready | Refused | NotSealed):
        return str(error)
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        advice = _DISK.get(error.errno or 0)
        return f"{where}{error.strerror or error}" + (f"; {advice}" if advice else "")
    if isinstance(error, SQLAlchemyError):
        said = str(getattr(error, "orig", None) or error).strip().partition("\n")[0]
        advice = next(do for words, do in _GRADEBOOK.items() if re.search(words, said.lower()))
        return f"the gradebook: {said}; {advice}"
    if isinstance(error, NotJSONError):
        return f"a notebook of your source folder is no JSON; save it anew in Jupyter ({error})"
    if isinstance(error, TraitError):
        return f"correct nbgrader_config.py: {error}"
    if isinstance(error, ModuleNotFoundError):  # such as a driver of the gradebook's database
        return f"{error}; install what has it, next to gradebox"
    return ""
