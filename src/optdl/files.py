"""Write a file whole or not at all."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

__all__ = ["atomic_write"]


@contextlib.contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Write to a scratch file, whose path this gives, and let it replace another in one step.

    A reader never sees half a file: until the end there is the old one or none. After an error the
    old one stays, and what was written is removed. Folders are made as needed.

    >>> import contextlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "results" / "run.txt"
    ...     with atomic_write(path) as scratch:
    ...         _ = scratch.write_text("all of it")
    ...     with contextlib.suppress(OSError), atomic_write(path) as scratch:
    ...         _ = scratch.write_text("half of")
    ...         raise OSError("no space left")
    ...     path.read_text(), len(list(path.parent.iterdir()))
    ('all of it', 1)
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    scratch = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        yield scratch
        scratch.replace(target)
    finally:
        scratch.unlink(missing_ok=True)
