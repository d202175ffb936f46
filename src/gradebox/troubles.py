"""What may go wrong in a notebook beyond an error in a cell."""

from enum import Enum


class Trouble(Enum):
    """The name of the error that the notebook shows, and what an instructor is told."""

    SLOW_CELL = "CellTimeoutError", "a cell took too long"
    SLOW_NOTEBOOK = "NotebookTimeoutError", "all cells together took too long"
    SLOW_CALL = "StudentTimeout", "a call by the tests took too long"
    SLOW_TEST = "Late", "a test cell took too long"
    CELL_ENDED_PYTHON = "DeadKernelError", "a cell ended Python"
    CALL_ENDED_PYTHON = "StudentGone", "a call by the tests ended Python"

    def __init__(self, error: str, sentence: str) -> None:
        self.error, self.sentence = error, sentence

    @property
    def is_slow(self) -> bool:
        """Return whether a time limit was exceeded; otherwise Python has ended."""
        return self.name.startswith("SLOW")

    @classmethod
    def of(cls, error: str) -> "Trouble | None":
        """Return the trouble that an error of this name stands for, if any."""
        return next((trouble for trouble in cls if trouble.error == error), None)
