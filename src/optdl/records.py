"""What a training run leaves behind: its curves, and all that is needed to run it again.

A record is plain JSON, so that a result can be read, compared and drawn without running anything.
"""

from __future__ import annotations

import json
import math
import os
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

import optdl
from optdl.files import atomic_write

__all__ = ["Record", "versions"]

_FORMAT = "optdl record 1"
_version = cache(metadata.version)  # which parses a file of the package


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that decide the numbers.

    >>> sorted(versions())
    ['numpy', 'optdl', 'python', 'torch']
    """
    return {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "torch": _version("torch"),
        "optdl": optdl.__version__,
    }


@dataclass
class Record:
    """The outcome of one run.

    ``stop`` says why the run ended, ``device`` where it ran, such as ``cpu``, and ``versions`` are
    those of now when not given. A config that JSON cannot hold raises TypeError.

    Parameters
    ----------
    curves : dict
        Names to one number per epoch, such as ``train_loss``.
    config : dict
        What was run: numbers, strings, booleans, None, and lists and dicts of them. Tuples and
        arrays become lists, NumPy numbers plain ones.
    seconds : float
        Wall time of the run; of a recorded run, its processor time.

    Examples
    --------
    >>> import tempfile
    >>> record = Record({"train_loss": [0.7, 0.1 + 0.2]}, config={"lr": 0.1}, seed=3)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = record.save(Path(folder) / "run.json")
    ...     Record.load(path) == record
    True
    """

    curves: dict[str, list[float]]
    config: dict[str, Any] = field(default_factory=dict)
    seed: int = 0
    stop: str = ""
    device: str = "cpu"
    seconds: float = 0.0
    versions: dict[str, str] = field(default_factory=versions)

    def __post_init__(self) -> None:
        self.curves = {name: [float(v) for v in values] for name, values in self.curves.items()}
        self.config = _plain(self.config, "config")

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the record as JSON, whole or not at all, and return its path.

        Every number is written with all its digits. A number that is not finite, which JSON lacks,
        is written as ``{"float": "nan"}``, ``"inf"`` or ``"-inf"``.
        """
        text = json.dumps(
            {"format": _FORMAT, **_finite(asdict(self))},
            indent=1,
            ensure_ascii=False,
            allow_nan=False,
        )
        with atomic_write(path) as scratch:
            scratch.write_text(text + "\n", encoding="utf-8")
        return Path(path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Record:
        """Read a record.

        A damaged file, or one that is no record, raises ValueError, and a missing one
        FileNotFoundError.
        """
        try:
            content = json.loads(Path(path).read_text(encoding="utf-8"), object_hook=_float)
        except ValueError as error:
            raise ValueError(
                f"{path} is not whole JSON ({error}); delete it, and run again"
            ) from error
        if not isinstance(content, dict) or content.pop("format", None) != _FORMAT:
            raise ValueError(f"{path} is not a record (JSON with format {_FORMAT!r}): delete it")
        try:
            return cls(**content)
        except (TypeError, ValueError, AttributeError) as error:
            raise ValueError(f"{path} is not a whole record: {error}") from error


def _plain(value: Any, where: str) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(key): _plain(item, f"{where}[{key!r}]") for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, f"{where}[{number}]") for number, item in enumerate(value)]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(
        f"{where} must be a number, string, boolean, None, list or dict; "
        f"got {type(value).__name__}. Write down its name or its settings instead."
    )


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(value)}
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return value


def _float(value: dict[str, Any]) -> Any:
    return float(value["float"]) if value.keys() == {"float"} else value
