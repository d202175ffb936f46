"""Random generators as plain data: a function that draws moves its argument on, as in one process.

A generator that comes back may only have moved on, as its draws move it. A student's code that put
it elsewhere could choose the numbers that a test draws from it next.
"""

import math
import random
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from gradebox.codec.draws import WORDS, NumPy, Python, State, Torch

if TYPE_CHECKING:
    from gradebox.codec.encoding import Decoder, Encoder, Node

FAR = 2**32
"""A generator that comes back may have moved on by so many draws."""

BLOCKS = 4096
"""A Mersenne Twister that comes back may have made its words anew so many times."""

_GENERATORS: dict[str, tuple[tuple[str, ...], tuple[tuple[str, int], ...], int]] = {
    "PCG64": ((), (), 0),
    "PCG64DXSM": ((), (), 0),
    "MT19937": (("key",), (("u4", WORDS),), WORDS),
    "Philox": (("counter", "key"), (("u8", 4), ("u8", 2), ("u8", 4)), 4),
    "SFC64": (("state",), (("u8", 4),), 0),
}
"""Of each kind: the arrays of its state, their dtypes and lengths, and the last position.

NumPy itself does not check a position, and would read beyond the array.
"""

_MULTIPLIERS = {"PCG64": 0x2360ED051FC65DA44385DF649FCCF645, "PCG64DXSM": 0xDA942042E4DD58B5}

_TWISTERS: dict[str, Callable[[Any], Any]] = {
    "Random": Python,
    "RandomState": NumPy,
    "Generator": Torch,
}
"""How the state of the older generators is told, by the names of their types."""


def write(encoder: "Encoder", value: Any, depth: int) -> "Node":
    """Return the node of a ``random.Random``, a ``RandomState`` or a ``torch.Generator``."""
    name = type(value).__name__
    try:
        state = _TWISTERS[name](value).get()
    except (TypeError, ValueError):  # it draws by other means, or on another device
        return encoder.export(value)
    encoder.note(value)
    encoder.attach(state.words)
    return ["twister", name, state.position, state.extra]


def _read_twister(decoder: "Decoder", node: list[Any], depth: int) -> Any:
    _, name, position, extra = node
    if type(name) is not str or name not in _TWISTERS:
        raise ValueError("expected a known kind of generator")
    if type(position) is not int or not 0 <= position <= WORDS:
        raise ValueError(f"expected the position of a generator from 0 to {WORDS}")
    if not _EXTRA_CHECKS[name](extra):
        raise ValueError("expected what such a generator keeps besides")
    generator = _new(name)
    _TWISTERS[name](generator).set(State(decoder.part(4 * WORDS), position, extra))
    return decoder.note(generator)


def _new(name: str) -> Any:
    if name == "Generator":
        import torch

        return torch.Generator()
    return random.Random(0) if name == "Random" else np.random.RandomState(0)


def _is_normal(value: Any) -> bool:
    """Return whether a number may be the second of a pair of normal numbers."""
    return type(value) is float and math.isfinite(value) and abs(value) < 100


_EXTRA_CHECKS: dict[str, Callable[[Any], bool]] = {
    "Random": lambda extra: extra is None or _is_normal(extra),
    "RandomState": lambda extra: (
        type(extra) is list and len(extra) == 2 and extra[0] in (0, 1) and _is_normal(extra[1])
    ),
    "Generator": lambda extra: (
        (type(extra) is list and len(extra) == 2)
        and (type(extra[0]) is int and 0 <= extra[0] < 2**64)
        and (type(extra[1]) is str and re.fullmatch("[0-9a-f]{80}", extra[1]) is not None)
    ),
}


def _write_generator(encoder: "Encoder", value: Any, depth: int) -> "Node":
    state = value.bit_generator.state
    name, inner = state["bit_generator"], state["state"]
    buffered = [int(state.get("has_uint32", 0)), int(state.get("uinteger", 0))]
    if name not in _GENERATORS:
        return encoder.export(value)
    encoder.note(value)
    if name in _MULTIPLIERS:
        return ["rng", name, hex(inner["state"]), hex(inner["inc"]), *buffered]
    arrays = [inner[key] for key in _GENERATORS[name][0]]
    if name == "Philox":
        arrays.append(state["buffer"])
    encoder.attach(b"".join(np.ascontiguousarray(array).tobytes() for array in arrays))
    position = inner.get("pos", state.get("buffer_pos", 0))
    return ["rng", name, int(position), *buffered]


def _integer(value: Any, last: int, description: str) -> int:
    if type(value) is not int or not 0 <= value <= last:
        raise ValueError(f"expected {description} from 0 to {last}")
    return value


def _read_generator(decoder: "Decoder", node: list[Any], depth: int) -> np.random.Generator:
    name = node[1] if len(node) > 1 else None
    if type(name) is not str or name not in _GENERATORS:
        raise ValueError(f"expected a generator by {', '.join(_GENERATORS)}")
    linear = name in _MULTIPLIERS
    fields = node[1:]
    if len(fields) != (5 if linear else 4):
        raise ValueError(f"expected other fields, got {len(fields)}")
    buffered: dict[str, Any] = {
        "has_uint32": _integer(fields[-2], 1, "whether half a draw is left"),
        "uinteger": _integer(fields[-1], 2**32 - 1, "half a draw"),
    }
    generator = np.random.Generator(getattr(np.random, name)(0))
    if linear:
        numbers = [decoder.integer(text) for text in fields[1:3]]
        if not all(0 <= number < 2**128 for number in numbers):
            raise ValueError("expected the state of a generator in 128 bits")
        inner: dict[str, Any] = dict(zip(("state", "inc"), numbers, strict=True))
    else:
        names, arrays, last = _GENERATORS[name]
        data = decoder.part(sum(np.dtype(kind).itemsize * size for kind, size in arrays))
        pieces, at = [], 0
        for kind, size in arrays:
            pieces.append(np.frombuffer(data, kind, size, at).copy())
            at += pieces[-1].nbytes
        position = _integer(fields[1], last, "the position of a generator")
        inner = dict(zip(names, pieces, strict=False))
        if name == "MT19937":
            inner["pos"] = position
        if name == "Philox":
            buffered |= {"buffer": pieces[2], "buffer_pos": position}
    generator.bit_generator.state = {"bit_generator": name, "state": inner, **buffered}
    return decoder.note(generator)


def restored(target: Any, fresh: Any) -> Callable[[], None]:
    """Return an action that moves a generator on to where the one that came back is.

    Raises
    ------
    ValueError
        If draws do not lead there, or too many.
    """
    if type(target).__name__ in _TWISTERS and not isinstance(target, np.random.Generator):
        kind = _TWISTERS[type(target).__name__]
        old, new = kind(target).get(), kind(fresh).get()
        if not _turns_to(_twister(old), new.words, new.position):
            raise ValueError("expected a generator that has moved on, got one in another state")
        return lambda: kind(target).set(new)
    before, after = target.bit_generator.state, fresh.bit_generator.state
    if before["bit_generator"] != after["bit_generator"] or not _reaches(before, after):
        raise ValueError("expected a generator that has moved on, got one in another state")

    def act() -> None:
        target.bit_generator.state = after

    return act


def _twister(state: State) -> Any:
    """Return NumPy's Mersenne Twister in a state."""
    walker = np.random.MT19937(0)
    words = np.frombuffer(state.words, "<u4")
    walker.state = {"bit_generator": "MT19937", "state": {"key": words, "pos": state.position}}
    return walker


def _turns_to(walker: Any, words: bytes, position: int) -> bool:
    """Return whether a Mersenne Twister comes to some words, and not behind its place in them."""
    first = walker.state["state"]["pos"]
    for block in range(BLOCKS):
        state = walker.state["state"]
        if state["key"].astype("<u4").tobytes() == words:
            return block > 0 or position >= first
        walker.random_raw(WORDS + 1 - state["pos"], output=False)
    return False


def _reaches(old: dict[str, Any], new: dict[str, Any]) -> bool:
    """Return whether draws lead from one state of a generator to the other, and not too many."""
    name, before, after = old["bit_generator"], old["state"], new["state"]
    if name in _MULTIPLIERS:
        if before["inc"] != after["inc"]:
            return False
        steps = _distance(before["state"], after["state"], _MULTIPLIERS[name], before["inc"])
        return steps <= FAR
    if name == "Philox":
        counts = [
            sum(int(n) << 64 * i for i, n in enumerate(s["counter"])) for s in (before, after)
        ]
        same = np.array_equal(before["key"], after["key"])
        return bool(same and (counts[1] - counts[0]) % 2**256 <= FAR)
    walker = getattr(np.random, name)(0)
    walker.state = old
    if name == "SFC64":
        steps = (int(after["state"][3]) - int(before["state"][3])) % 2**64
        if steps > 2**24:
            return False
        walker.random_raw(steps, output=False)
        return bool(np.array_equal(walker.state["state"]["state"], after["state"]))
    return _turns_to(walker, after["key"].astype("<u4").tobytes(), int(after["pos"]))


def _distance(state: int, goal: int, multiplier: int, increment: int) -> int:
    """Return how many steps of x → ax + c modulo 2¹²⁸ lead from one state to the other.

    Bit by bit from the lowest: a step of 2ᵏ changes bit k and leaves those below as they are.
    """
    mask, bit, steps = 2**128 - 1, 1, 0
    if not increment & 1:
        return FAR + 1  # such a generator does not pass through all states
    while state != goal:
        if (state ^ goal) & bit:
            state = (state * multiplier + increment) & mask
            steps |= bit
        increment = (multiplier + 1) * increment & mask
        multiplier = multiplier * multiplier & mask
        bit <<= 1
    return steps


WRITERS: dict[type, Callable[["Encoder", Any, int], "Node"]] = {
    np.random.Generator: _write_generator,
    np.random.RandomState: write,
    random.Random: write,
}
"""For values of exactly these types; one of torch's goes to :func:`write`."""

TYPES = frozenset(WRITERS)

READERS: dict[str, Callable[["Decoder", list[Any], int], Any]] = {
    "rng": _read_generator,
    "twister": _read_twister,
}
