"""Keep the random numbers of the two processes of a notebook in step, as far as that is safe.

In one process ``random.seed`` of a test reaches the student's code. So the end of the tests sends
where its generators are, those behind ``random``, ``numpy.random`` and ``torch``, whenever they
have moved. The student's end goes there, and tells only that it has drawn: then those of the tests
go to another place, which the old one determines. In one process they would go on where the
student's code stopped; but then it could choose the numbers that a test draws next.
"""

import base64
import contextlib
import ctypes
import hashlib
import random
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

WORDS = 624
"""The words of the state of a Mersenne Twister, which all three are."""

_TORCH_STATE = np.dtype(
    [
        ("seed", "u8"),
        ("left", "i4"),
        ("seeded", "i4"),
        ("next", "u8"),
        ("words", "u8", WORDS),
        ("normals", "u1", 40),
    ]
)
"""The state of torch's generator of the CPU, as ``torch.get_rng_state`` gives it."""


class State(NamedTuple):
    """Where a generator is.

    Parameters
    ----------
    words : bytes
        Its words, each in 4 bytes.
    position : int
        The next word to be drawn; at 624 they are made anew first.
    extra : object
        What it keeps besides, such as half of a pair of normal numbers; plain data.
    """

    words: bytes
    position: int
    extra: Any = None

    def elsewhere(self) -> "State":
        """Return another place, which this one determines."""
        seed = hashlib.sha256(self.words + self.position.to_bytes(4, "little")).digest()
        walker = np.random.MT19937(np.frombuffer(seed, "<u4").tolist())
        return State(walker.state["state"]["key"].astype("<u4").tobytes(), WORDS)


class Python:
    """The generator behind the functions of ``random``, or a ``random.Random``."""

    def __init__(self, source: Any = random) -> None:
        self._source = source

    def mark(self) -> Any:
        """Return what changes when it draws."""
        words = self._source.getstate()[1]
        return words[-1], words[0], words[1]

    def get(self) -> State:
        """Return where it is."""
        _, words, gauss = self._source.getstate()
        return State(np.array(words[:-1], "<u4").tobytes(), words[-1], gauss)

    def set(self, state: State) -> None:
        """Move it."""
        words = np.frombuffer(state.words, "<u4").tolist()
        self._source.setstate((3, (*words, state.position), state.extra))


class NumPy:
    """The generator behind the functions of ``numpy.random``, or a ``RandomState``."""

    def __init__(self, source: Any = np.random) -> None:
        self._source = source

    def mark(self) -> Any:
        """Return what changes when it draws."""
        # to ask for the state takes a hundred times as long
        generator: Any = np.random.get_bit_generator()  # type: ignore[attr-defined]
        if not isinstance(generator, np.random.MT19937):
            raise TypeError("another kind of generator")
        address = generator.ctypes.state_address
        words = (ctypes.c_uint32 * (WORDS + 1)).from_address(address)
        return words[WORDS], words[0], words[1]

    def get(self) -> State:
        """Return where it is."""
        state: Any = self._source.get_state(legacy=True)
        if type(state) is not tuple:
            raise TypeError("another kind of generator")
        _, words, position, *extra = state
        return State(words.astype("<u4").tobytes(), int(position), [int(extra[0]), float(extra[1])])

    def set(self, state: State) -> None:
        """Move it."""
        words = np.frombuffer(state.words, "<u4")
        extra = state.extra or (0, 0.0)
        self._source.set_state(("MT19937", words, state.position, *extra))


class Torch:
    """torch's generator of the CPU, or a ``torch.Generator`` of it."""

    def __init__(self, source: Any = None) -> None:
        self._source = source or sys.modules["torch"].default_generator

    def mark(self) -> Any:
        """Return what changes when it draws."""
        return self._bytes()

    def get(self) -> State:
        """Return where it is."""
        record = np.frombuffer(self._bytes(), _TORCH_STATE)[0]
        position = WORDS if record["left"] == 1 else int(record["next"])
        extra = [int(record["seed"]), bytes(record["normals"]).hex()]
        return State(record["words"].astype("<u4").tobytes(), position, extra)

    def set(self, state: State) -> None:
        """Move it."""
        record = np.frombuffer(bytearray(self._bytes()), _TORCH_STATE)
        record["words"] = np.frombuffer(state.words, "<u4")
        record["next"], record["left"] = state.position, WORDS + 1 - state.position
        record["normals"] = 0
        if state.extra:
            record["seed"] = state.extra[0]
            record["normals"] = np.frombuffer(bytes.fromhex(state.extra[1]), "u1")
        torch = sys.modules["torch"]
        self._source.set_state(torch.from_numpy(record.view("u1").copy()))

    def _bytes(self) -> bytes:
        return bytes(self._source.get_state().numpy())


_KINDS: dict[str, Callable[[], Any]] = {"random": Python, "numpy": NumPy, "torch": Torch}


class Draws:
    """The generators of this process, and which of them are in step with the other process's."""

    def __init__(self) -> None:
        self._marks: dict[str, Any] = {}
        self._shared: set[str] = set()
        self._moved()

    def _moved(self) -> list[str]:
        """Return which generators have moved, or come, since this was asked last."""
        moved = []
        for name, kind in _KINDS.items():
            if name not in sys.modules:
                continue
            try:
                mark = kind().mark()
            except Exception:  # somebody has put another generator there, or another module
                continue
            if self._marks.get(name) != mark:
                self._marks[name] = mark
                moved.append(name)
        return moved

    # the end of the tests

    def states(self) -> dict[str, list[Any]]:
        """Return where the generators are that have moved, as plain data."""
        states = {}
        for name in self._moved():
            state = _KINDS[name]().get()
            self._shared.add(name)
            states[name] = [base64.b64encode(state.words).decode(), state.position, state.extra]
        return states

    def go_elsewhere(self, names: Any) -> None:
        """Move the generators from which the student's code says that it has drawn."""
        for name in self._shared if type(names) is list else ():
            if name in names:
                generator = _KINDS[name]()
                generator.set(generator.get().elsewhere())
                self._moved()  # the student's goes on from where it is, unless a test draws

    def forget(self) -> None:
        """Take the places where the generators are now as known to both processes."""
        self._moved()

    # the student's end

    def follow(self, states: dict[str, list[Any]]) -> None:
        """Move the generators to where those of the tests are."""
        for name, (words, position, extra) in states.items():
            with contextlib.suppress(Exception):  # somebody has put another generator there
                if name in sys.modules:
                    _KINDS[name]().set(State(base64.b64decode(words), position, extra))
                    self._shared.add(name)
        self._moved()

    def drawn(self) -> list[str]:
        """Return which generators have moved that were in step with those of the tests."""
        return [name for name in self._moved() if name in self._shared] if self._shared else []
