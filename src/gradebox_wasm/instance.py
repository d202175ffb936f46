"""One instance of the interpreter: its memory, its files, and what it may ask of its host.

All that it can call is :class:`gradebox_wasm.wasi.Wasi`, which knows no file but those of a tree,
no network and no process, and :meth:`Instance._door`.
"""

import ctypes
import queue
import struct
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import Any, BinaryIO

import wasmtime
from wasmtime import _bindings

from gradebox.sandbox.seal import Limits
from gradebox.values.channel import MAX_MESSAGE, Gone
from gradebox_wasm import machine
from gradebox_wasm.clock import Clock
from gradebox_wasm.files import Tree
from gradebox_wasm.memory import Image, Memory
from gradebox_wasm.wasi import Wasi

PYTHON, SITE, WORK, TEMPORARY = "usr/local/lib/python315.zip", "site", "work", "tmp"
"""Where an instance finds Python's modules, other modules, and its own files."""
SIGINT, I32 = 2, 0
_types: Any = _bindings._wasmtime_store_epoch_deadline_callback
_CALLBACK, _FINALIZER = _types.argtypes[1], _types.argtypes[3]
BEGIN = f"""import os, sys, zipimport
sys.dont_write_bytecode = True
sys.path[:] = ["/{PYTHON}", "/{SITE}"]
sys.path_importer_cache.clear()
zipimport._zip_directory_cache.clear()
os.environ["HOME"] = os.environ["TMPDIR"] = "/{TEMPORARY}"
os.environ["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"
import gradebox_wasm.fetching
"""
"""What the turn begins with that imports modules: it looks for them elsewhere."""
_making = threading.Lock()
_here = threading.local()
"""Has the instance that runs in this thread."""


class Instance:
    """An instance, and the thread in which it runs.

    Parameters
    ----------
    tree : Tree
        Its files.
    limits : Limits
        What it may use.
    fetch : callable
        Is given the name of a module that is missing; returns why there is none, or "".
    image : Image, optional
        The memory with which it begins.
    """

    def __init__(
        self, tree: Tree, limits: Limits, fetch: Callable[[str], str], image: Image | None = None
    ) -> None:
        self.clock = Clock(float("inf"))
        self.exchange: Callable[[bytes], bytes] = lambda message: b""
        """Takes a message to the other side, and returns the next one from there."""
        self.inbox: queue.SimpleQueue[Any] = queue.SimpleQueue()
        """What comes from the other side while a turn waits for it."""
        self._tree, self._limits = tree, limits
        self._fetch, self._since = fetch, 0.0
        self._request = self._reply = b""
        self._dead = ""
        self.ending: BaseException | None = None
        """Why it was ended in the middle of a turn."""
        with _making:  # what all have in common once, and this thread with a stack of its own
            self._store = wasmtime.Store(machine.engine())
            self._store.set_limits(memory_size=(image.size if image else 0) + limits.memory)
            exports: Any = _linker().instantiate(self._store, machine.module()).exports(self._store)
            self._thread = ThreadPoolExecutor(1)
            usual = threading.stack_size(8 * machine.STACK)
            try:
                self._thread.submit(self._begin_thread)
            finally:
                threading.stack_size(usual)
        self._memory = Memory(exports["memory"], self._store)
        self._wasi = Wasi(tree, limits.files, self._memory, self._sleep)
        self._allocate, self._turn = exports["host_alloc"], exports["turn"]
        self._interrupt = exports["interrupt"]
        if image is not None:
            self._memory.restore(image)
            self._wasi.reopen(image.open_files)
        self._watch()

    # --- What its host asks of it ---

    def turn(self, name: str, request: bytes = b"") -> bytes:
        """Call a function of :mod:`gradebox_wasm.guest`; return what it sends to the grader.

        Raises
        ------
        Gone
            If the instance has ended.
        TimeoutError
            If it was ended because it took too long.
        """
        return self.start(name, request).result()

    def start(self, name: str, request: bytes = b"") -> "Future[bytes]":
        """Begin such a call."""
        return self._thread.submit(self._take, name, request)

    def kill(self, why: str = "was ended") -> None:
        """End it; what runs in it ends at its next look at the time."""
        self._dead = self._dead or why
        self.inbox.put(b"")

    def close(self) -> None:
        """End it, and give its memory back."""
        self.kill()
        self._thread.submit(self._store.close)
        self._thread.shutdown(wait=False)

    def twin(self, image: Image) -> "Instance":
        """Return an instance with copies of the files that begins with some memory."""
        return Instance(self._tree.copy(), self._limits, self._fetch, image)

    def save(self, file: BinaryIO) -> Image:
        """Write its memory at the beginning of a file, and return it; no turn may be running."""
        return Image(file, self._memory.save(file), self._wasi.open_files())

    # --- Its thread ---

    def _begin_thread(self) -> None:
        _here.instance, self._since = self, time.thread_time()

    def _take(self, name: str, request: bytes) -> bytes:
        if self._dead:
            raise Gone(self._dead)
        self._request, self._reply = request, b""
        begin = BEGIN if name == "prepare" else ""
        source = f"{begin}import gradebox_wasm.guest as guest; guest.{name}()".encode()
        try:
            self._store.set_epoch_deadline(1)
            status = self._turn(self._store, self._place(source), len(source))
        except (Gone, wasmtime.Trap, wasmtime.WasmtimeError) as error:
            ending = self.ending or Gone(_last_line(str(error)))
            self.kill(str(ending))
            raise ending from error
        finally:
            self._count()
        if status:
            self.kill("ended")
            raise Gone(_last_line(self._wasi.said.content[-2000:].decode(errors="replace")))
        return self._reply

    def _count(self) -> None:
        now = time.thread_time()
        self.clock.add(now - self._since)
        self._since = now

    # --- What it asks of its host ---

    def call(self, name: str, *arguments: int) -> int:
        """Answer a call of the interpreter's, by its name."""
        return self._door(*arguments) if name == "call" else self._wasi.call(name, *arguments)

    def _place(self, content: bytes) -> int:
        """Put some bytes into its memory, and return where."""
        at = self._allocate(self._store, len(content)) & 0xFFFFFFFF
        if not at:  # there lies what Python itself needs
            raise Gone("has no memory for what it is sent")
        self._memory.write(at, content)
        return at

    def _door(self, at: int, length: int, answer_at: int, size_at: int) -> int:
        """Answer a call of ``_host.call``: the first byte says what is wanted."""
        if not 0 < length <= MAX_MESSAGE:
            raise Gone("sent a message that is too long")
        asked = self._memory.read(at, length)
        kind, content, answer = asked[:1], asked[1:], b""
        if kind == b"g":
            answer = self._request
        elif kind == b"G":
            self._reply = content
        elif kind == b"x":
            answer = self.exchange(content)  # to wait takes no time of the processor
            if self._dead:
                raise Gone(self._dead)
        elif kind == b"m":
            answer = (self._fetch(content.decode(errors="replace"))).encode()
        place = self._place(answer) if answer else 0
        self._memory.write(answer_at, struct.pack("<I", place))
        self._memory.write(size_at, struct.pack("<I", len(answer)))
        return 0

    def _sleep(self, seconds: float) -> None:
        now = time.monotonic()
        until = now + seconds
        while (left := until - now) > 0:
            before = now
            time.sleep(min(left, machine.TICK))
            now = time.monotonic()
            self.clock.add(now - before)  # on a busy machine more than a tick
            if self._look():
                return  # its signal handler raises when the call has returned

    # --- Limits on time ---

    def _watch(self) -> None:
        """Have the thread that runs look at the time at each tick."""

        def tick(context: Any, data: Any, delta: Any, kind: Any) -> int:
            try:
                self._count()
                # else a function that is called here would be at its end at once
                self._store.set_epoch_deadline(10**6)
                self._look()
            except BaseException as error:
                self.ending = error
                return _address_of(_bindings.wasmtime_error_new(b"ended"))
            delta[0] = 1
            kind[0] = 0
            return 0

        self._ticks = _CALLBACK(tick)  # kept, as long as it may be called
        _bindings.wasmtime_store_epoch_deadline_callback(
            self._store.ptr(), self._ticks, None, _FINALIZER()
        )

    def _look(self) -> bool:
        """Interrupt it if its time is over; return whether it is."""
        if self._dead:
            raise Gone(self._dead)
        if self.clock.is_over(self):
            self._interrupt(self._store, SIGINT)
            return True
        return False


@cache
def _linker() -> wasmtime.Linker:
    """Return what answers the calls of every instance, in whose thread they are made."""
    linker = wasmtime.Linker(machine.engine())
    _answering.extend(_define(linker, wanted) for wanted in machine.module().imports)
    return linker


_answering: list[Any] = []
"""Functions that wasmtime may call, kept for as long as this process runs."""


def _define(linker: wasmtime.Linker, wanted: wasmtime.ImportType) -> Any:
    """Have a call answered by the instance that runs in this thread; return the function.

    wasmtime's own way converts each value by its type, which takes longer than the answer, and
    keeps an exception where those of all threads are.
    """
    kind: Any = wanted.type
    name, types = str(wanted.name), [str(each) for each in kind.params]

    def answer(data: Any, caller: Any, arguments: Any, count: int, results: Any, many: int) -> int:
        instance = _here.instance
        values = [getattr(arguments[place].of, each) for place, each in enumerate(types)]
        try:
            results[0].of.i32 = instance.call(name, *values)
            results[0].kind = I32
        except BaseException as error:
            known = isinstance(error, Gone | TimeoutError)
            instance.ending = instance.ending or (error if known else Gone(str(error) or "ended"))
            return _address_of(_bindings.wasmtime_trap_new(b"ended", 5))
        return 0

    callback = _bindings.wasmtime_func_callback_t(answer)
    texts = [(ctypes.create_string_buffer(t.encode()), len(t)) for t in (wanted.module, name)]
    _bindings.wasmtime_linker_define_func(
        linker.ptr(), *texts[0], *texts[1], kind.ptr(), callback, None, _FINALIZER()
    )
    return callback


def _address_of(pointer: Any) -> int:
    return int(ctypes.cast(pointer, ctypes.c_void_p).value or 0)


def _last_line(text: str) -> str:
    return [*text.strip().splitlines(), "ended"][-2 if text.strip() else -1].strip()
