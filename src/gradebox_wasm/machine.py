"""The interpreter as machine code for this machine: compiled once, and kept."""

import atexit
import hashlib
import importlib.metadata
import os
import shutil
import tempfile
import threading
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

import platformdirs
import wasmtime

from gradebox_wasm import INTERPRETER

STACK = 2 * 2**20
"""Bytes of stack that the functions of the interpreter may use: the most that wasmtime allows."""
TICK = 0.02
"""Seconds after which a running instance looks at the time."""


@cache
def engine() -> wasmtime.Engine:
    """Return what runs instances; it ticks while this process runs."""
    config = wasmtime.Config()
    config.wasm_exceptions = True
    config.epoch_interruption = True
    config.max_wasm_stack = STACK
    config.memory_may_move = False
    made = wasmtime.Engine(config)
    threading.Thread(target=_tick, args=(made,), daemon=True).start()
    return made


def _tick(engine: wasmtime.Engine) -> None:
    while True:
        time.sleep(TICK)
        engine.increment_epoch()


@cache
def key() -> str:
    """Return what tells this interpreter, and what compiles it, from others."""
    made_from = INTERPRETER.read_bytes() + importlib.metadata.version("wasmtime").encode()
    return hashlib.sha256(made_from).hexdigest()[:16]


@cache
def folder() -> Path:
    """Return where what takes long to make is kept for this user."""
    found = Path(platformdirs.user_cache_dir("gradebox"))
    try:
        # what is kept is believed, so that nobody else may write there
        found.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=found):
            return found
    except OSError:  # a home that cannot be written to: it is kept for this run
        own = Path(tempfile.mkdtemp(prefix="gradebox-"))
        atexit.register(shutil.rmtree, own, ignore_errors=True)
        return own


@cache
def module() -> wasmtime.Module:
    """Return the compiled interpreter; the first time on a machine takes half a minute.

    It is kept in the user's folder for caches, by a checksum of all that it is made from.
    """
    kept = folder() / f"{key()}-{STACK}.cwasm"
    with suppress(wasmtime.WasmtimeError):  # none is there, or one of another processor
        return wasmtime.Module.deserialize_file(engine(), str(kept))
    made = wasmtime.Module(engine(), INTERPRETER.read_bytes())
    partial = kept.with_suffix(f".{os.getpid()}")
    partial.write_bytes(made.serialize())
    partial.replace(kept)
    with suppress(OSError):  # Windows removes no file that another process has open
        for old in {*folder().glob("*.cwasm")} - {kept}:
            old.unlink()
    return made
