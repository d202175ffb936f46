"""Have what a student's code logs handled where the tests run.

Where a test has given a logger another level or other handlers, such as ``assertLogs`` does, the
student's logger of that name has that level during each call, and its records come along: as a
level and a text. The logger of that name in the process of the tests handles them.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from gradebox.codec.encoding import BadValue

MOST = 1000
"""So many records come with one message; the rest is dropped."""

LONGEST = 10_000
"""So many characters of a record are passed on."""


def _loggers() -> dict[str, logging.Logger]:
    registered = logging.Logger.manager.loggerDict.items()
    loggers = {name: logger for name, logger in registered if isinstance(logger, logging.Logger)}
    return {"": logging.getLogger(), **loggers}


class Handlers:
    """The end of the tests."""

    def __init__(self) -> None:
        self._before = self._present()
        self._wanted: dict[str, list[Any]] = {}
        self._is_new = False
        self._received: list[tuple[str, int, str]] = []

    def _present(self) -> dict[str, Any]:
        return {
            name: (logger.level, logger.propagate, [*logger.handlers])
            for name, logger in _loggers().items()
            if logger.level or logger.handlers or not logger.propagate
        }

    def note_changes(self) -> None:
        """Take note from now on of each logger that gets another level or other handlers."""
        for name in ("setLevel", "addHandler", "removeHandler"):
            self._wrap(name)

    def _wrap(self, name: str) -> None:
        change = getattr(logging.Logger, name)

        def changed(logger: logging.Logger, *args: Any, **kwargs: Any) -> None:
            self._is_new = True
            change(logger, *args, **kwargs)

        setattr(logging.Logger, name, changed)

    def has_changed(self) -> bool:
        """Return whether other loggers are listened to than when this was asked last."""
        if not self._is_new:
            return False
        self._is_new = False
        before, self._wanted = (
            self._wanted,
            {
                name: [level, propagate]
                for name, (level, propagate, handlers) in self._present().items()
                if handlers and self._before.get(name) != (level, propagate, handlers)
            },
        )
        return before != self._wanted

    def levels(self) -> dict[str, list[Any]]:
        """Return the level of each logger that is listened to, and whether it hands records on."""
        return self._wanted

    def take(self, records: Any) -> None:
        """Keep the records that have come.

        Raises
        ------
        BadValue
            For what no honest process sends.
        """
        if type(records) is not list or len(records) > MOST:
            raise BadValue("expected a list of records")
        for record in records:
            if type(record) is not list or [type(field) for field in record] != [str, int, str]:
                raise BadValue("expected a record")
            name, level, text = record
            if len(name) > 200 or not 0 <= level <= 100 or len(text) > LONGEST:
                raise BadValue("expected the name, the level and the text of a record")
            # others would only make loggers without number
            if len(self._received) < MOST and any(
                not wanted or f"{name}.".startswith(f"{wanted}.") for wanted in self._wanted
            ):
                self._received.append((name, level, text))

    def issue(self) -> None:
        """Have the records that have come handled."""
        received, self._received = self._received, []
        for name, level, text in received:
            logger = logging.getLogger(name or None)
            if logger.isEnabledFor(level):
                location = ("<the student's code>", 0)
                logger.handle(logger.makeRecord(logger.name, level, *location, text, (), None))


class _Collector(logging.Handler):
    def __init__(self, records: list[list[Any]]) -> None:
        super().__init__()
        self._records = records
        self._last: logging.LogRecord | None = None

    def emit(self, record: logging.LogRecord) -> None:
        # one that is handed on comes again
        if record is not self._last and len(self._records) < MOST:
            self._last = record
            name = "" if record.name == "root" else str(record.name)[:200]
            level = min(max(int(record.levelno), 0), 100)
            self._records.append([name, level, str(record.getMessage())[:LONGEST]])


class Records:
    """The student's end."""

    def __init__(self) -> None:
        self._records: list[list[Any]] = []
        self._handler = _Collector(self._records)
        self.wanted: dict[str, list[Any]] = {}
        """The loggers that the tests listen to."""

    def new_records(self) -> list[list[Any]]:
        """Return the records since this was asked last, as plain data."""
        records = [*self._records]
        self._records.clear()
        return records

    @contextmanager
    def during(self) -> Iterator[None]:
        """Keep the records of the loggers that the tests listen to."""
        changed = []
        for name, (level, propagate) in self.wanted.items():
            logger = logging.getLogger(name or None)
            changed.append((logger, logger.level, logger.propagate))
            logger.addHandler(self._handler)
            logger.propagate = propagate
            if level:
                logger.setLevel(level)
        try:
            yield
        finally:
            for logger, level, propagate in changed:
                logger.removeHandler(self._handler)
                logger.propagate = propagate
                logger.setLevel(level)
