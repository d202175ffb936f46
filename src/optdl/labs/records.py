"""What a lab leaves behind: predictions and curves, as plain data in one file.

The file is handed in beside the notebook, and read by whoever grades it. So it is bounded, holds
numbers and text alone, and says of which student it is.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import zlib
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from optdl.files import atomic_write
from optdl.records import versions

__all__ = ["FILE", "MAX_BYTES", "LabRecord", "RecordError", "Run", "as_python", "contents"]
__all__ += ["read_record", "seed_of"]

FILE = "record.json"
"""The name of a record, beside the notebook."""

MAX_BYTES = 2**21
"""The most bytes of a record."""

_FORMAT = "optdl lab record 1"


class RecordError(ValueError):
    """A record cannot be used; the message says why, and what to do."""

    def _render_traceback_(self) -> list[str]:
        """Show the message alone in a notebook."""
        return f"✗ {self}.".splitlines()


def seed_of(user: str) -> int:
    """Return the seed of a student: the CRC-32 of the name under which the work is handed in.

    Examples
    --------
    >>> seed_of("ada"), seed_of("ben")
    (2372962152, 110237153)
    """
    return zlib.crc32(user.encode())


@dataclass
class Run:
    """One training run of a lab.

    The setting tells it from the other runs, such as ``{"optimizer": "SGD", "lr": 0.1}``. Of the
    curves, ``loss`` has one number for each step that was taken, all finite. It is ``done``, or
    ``diverged`` when the loss ceased to be finite. The seconds are wall time.
    """

    setting: dict[str, Any]
    curves: dict[str, list[float]]
    stop: str = "done"
    seconds: float = 0.0


@dataclass
class LabRecord:
    """All that a student's lab has given.

    That are the row of the lab, such as ``LAB-1``, the user name, from which the seed follows, what
    was predicted before the first run, the runs in the order of the lab's settings, where they ran,
    and the versions of Python, NumPy, torch and optdl.
    """

    lab: str
    user: str
    predictions: dict[str, Any]
    runs: list[Run] = field(default_factory=list)
    device: str = "cpu"
    versions: dict[str, str] = field(default_factory=versions)

    def find(self, setting: dict[str, Any]) -> Run | None:
        """Return the run with a setting, or None when it has not been made."""
        return next((run for run in self.runs if run.setting == setting), None)

    def save(self, path: str | os.PathLike[str] = FILE) -> Path:
        """Write the record, whole or not at all, and return its path.

        Raises
        ------
        RecordError
            If it would be larger than ``MAX_BYTES``.
        """
        content = asdict(self)
        text = json.dumps({"format": _FORMAT, **content, "checksum": _checksum(content)})
        if len(text) > MAX_BYTES:
            raise RecordError(f"a record has at most {MAX_BYTES} bytes; this one has {len(text)}")
        with atomic_write(path) as scratch:
            scratch.write_text(text + "\n", encoding="utf-8")
        return Path(path)

    @classmethod
    def load(cls, path: str | os.PathLike[str] = FILE) -> LabRecord:
        """Read a record, as :meth:`parse` does."""
        return cls.parse(contents(path), Path(path).name)

    @classmethod
    def parse(cls, given: bytes | int | None, name: str = FILE) -> LabRecord:
        """Return the record that ``contents`` gave of a file; nothing in it is believed at sight.

        Raises
        ------
        RecordError
            If there is no file, or it is too large, damaged, changed or no record.
        """
        content = _parsed(given, name)
        if not isinstance(content, dict) or content.pop("format", None) != _FORMAT:
            raise RecordError(f"{name} is not the record of a lab: train again")
        checksum = content.pop("checksum", None)
        _require_finite(content)
        if checksum != _checksum(content):
            raise RecordError(
                "the record was changed after it was written: hand in the file as your run wrote "
                "it, or delete it and train again"
            )
        try:
            runs = [Run(**run) for run in content.pop("runs")]
            return cls(**content, runs=runs)
        except (TypeError, KeyError) as error:
            raise RecordError(f"the record is not whole ({error}): train again") from error


def contents(path: str | os.PathLike[str] = FILE) -> bytes | int | None:
    """Return the bytes of a file, its size if it is larger than a record, or None without it."""
    path = Path(path)
    if not path.is_file():
        return None
    size = path.stat().st_size
    return path.read_bytes() if size <= MAX_BYTES else size


def read_record(answer: Any) -> bytes | int | None:
    """Return what :func:`contents` gives of the record beside an answer.

    The answer is that beside which this runs; it is not called.
    """
    return contents(FILE)


def _parsed(given: bytes | int | None, name: str) -> Any:
    if given is None:
        raise RecordError(
            f"there is no {name} beside the notebook: run the cell that trains, and hand in "
            f"{name} together with the notebook"
        )
    size = given if isinstance(given, int) else len(given)
    if isinstance(given, int) or size > MAX_BYTES:
        raise RecordError(f"the record has {size:,} bytes; a run writes at most {MAX_BYTES:,}")
    try:
        return json.loads(given.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise RecordError(f"{name} is damaged ({error}): delete it and train again") from error


def _require_finite(value: Any) -> None:
    """Raise if a number within is not finite: a run that diverges stops before."""
    if isinstance(value, float) and not math.isfinite(value):
        raise RecordError(
            f"the record holds {value!r}, which no run writes: the curve of a run that diverges "
            "ends at the last finite loss"
        )
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            _require_finite(item)


def _checksum(content: dict[str, Any]) -> str:
    """Return what tells whether a record was changed; it does not tell by whom."""
    text = json.dumps(content, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def as_python(value: Any) -> Any:
    """Return a number of NumPy or PyTorch as one of Python, and everything else as it is.

    Examples
    --------
    >>> import numpy as np
    >>> as_python(np.float32(0.5)), as_python(np.array(3)), as_python("SGD")
    (0.5, 3, 'SGD')
    """
    return value.item() if getattr(value, "ndim", None) == 0 else value
