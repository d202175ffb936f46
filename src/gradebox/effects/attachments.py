"""What goes along with messages: files, warnings, what is logged, what tests have replaced."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from gradebox.effects.folders import Files
from gradebox.effects.logs import Handlers, Records
from gradebox.effects.patches import Patches, Stage
from gradebox.effects.warning_records import Recorder, Watch

Find = Callable[[Any], Any]


_NOTHING = contextlib.nullcontext()


class OfTests:
    """What goes along at the end of the tests.

    Parameters
    ----------
    find : callable
        Returns what a node of the other process stands for.
    export : callable
        Returns the node of what is no plain data.
    """

    def __init__(self, find: Find, export: Find) -> None:
        self.files: Files | None = None
        """The folders that are kept in step, if any are."""
        self.patches, self.handlers = Patches(export), Handlers()
        self._watch = Watch(find, export)

    def tell(self, message: dict[str, Any]) -> None:
        """Add what the student's process needs to know."""
        if self.files is not None and (changes := self.files.changes()):
            message["files"] = changes
        if self._watch.has_changed():
            message["warnings"] = self._watch.settings()
        if self.patches.has_changed():
            message["patches"] = self.patches.replacements()
        if self.handlers.has_changed():
            message["loggers"] = self.handlers.levels()

    def take(self, message: dict[str, Any]) -> None:
        """Take in what a message brings along.

        Raises
        ------
        BadValue
            For what no honest process sends.
        """
        if self.files is not None and "files" in message:
            self.files.take(message["files"])
        if "warned" in message:
            self._watch.take(message["warned"])
        if "logged" in message:
            self.handlers.take(message["logged"])

    def take_back(self, message: dict[str, Any]) -> None:
        """Take what was to go along with a message as not sent."""
        _take_back(self.files, message)

    def issue(self) -> None:
        """Warn and log as the student's code has.

        Raises
        ------
        Warning
            Where the tests have turned a warning into an error.
        """
        self.handlers.issue()
        self._watch.issue()


class OfStudent:
    """What goes along at the end of the student's code; parameters as for :class:`OfTests`."""

    def __init__(self, find: Find, export: Find) -> None:
        self.files: Files | None = None
        """The folders that are kept in step, if any are."""
        self._recorder, self._records = Recorder(find, export), Records()
        self._stage = Stage(find)
        self._parts: tuple[Any, ...] = (self._recorder, self._records, self._stage)
        self._is_busy = False

    def tell(self, message: dict[str, Any]) -> None:
        """Add what the tests need to know."""
        if self.files is not None and (changes := self.files.changes()):
            message["files"] = changes
        if caught := self._recorder.caught():
            message["warned"] = caught
        if records := self._records.new_records():
            message["logged"] = records

    def take(self, message: dict[str, Any]) -> None:
        """Take in what a message brings along."""
        if self.files is not None and "files" in message:
            self.files.take(message["files"])
        if "warnings" in message:
            self._recorder.wanted = message["warnings"]
        if "loggers" in message:
            self._records.wanted = message["loggers"]
        if "patches" in message:
            self._stage.follow(message["patches"])
        self._is_busy = any(part.wanted for part in self._parts)

    def take_back(self, message: dict[str, Any]) -> None:
        """Take what was to go along with a message as not sent."""
        _take_back(self.files, message)

    def begin(self) -> None:
        """Tell all at the beginning of a test cell."""
        if self.files is not None:
            self.files.begin()

    def during(self) -> Any:
        """Let the student's code meet what the tests have changed, and keep what it says."""
        return self._during() if self._is_busy else _NOTHING

    @contextlib.contextmanager
    def _during(self) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            for part in self._parts:
                if part.wanted:
                    stack.enter_context(part.during())
            yield

    def aside(self) -> Any:
        """Return a context in which modules are as they are without the tests."""
        return self._stage.aside() if self._is_busy else _NOTHING


def _take_back(files: Files | None, message: dict[str, Any]) -> None:
    if files is not None and "files" in message:
        files.resend(message["files"])
