"""Make a WebAssembly module smaller: without names, and without functions that nobody calls."""

import re
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

CUSTOM, IMPORT, MEMORY, EXPORT, ELEMENTS, CODE = 0, 2, 5, 7, 9, 10
UNREACHABLE = bytes([3, 0, 0, 0x0B])
"""A body of three bytes: no local variables, ``unreachable``, ``end``."""
REFERENCE = re.compile(rb"[\x10\x41\xd2](?=[\x80-\xff]{4}[\x00-\x0f])")
"""A call, a constant that may be a pointer to a function, or a reference to one."""
MIN_LENGTH, MAX_GAP = 50, 3000


class Section(NamedTuple):
    """A section of a module: its number and where its content lies."""

    number: int
    start: int
    end: int


class Module:
    """A WebAssembly module in its binary form; of anything unexpected in it a ValueError tells."""

    def __init__(self, data: bytes) -> None:
        if data[:8] != b"\0asm\1\0\0\0":
            raise ValueError(f"expected a WebAssembly module of version 1; it begins {data[:8]!r}")
        self.data, self.sections, at = data, list[Section](), 8
        while at < len(data):
            size, start = self._number(at + 1)
            self.sections.append(Section(data[at], start, start + size))
            at = start + size

    def _number(self, at: int) -> tuple[int, int]:
        """Read an unsigned LEB128 number, and return where it ends."""
        value = shift = 0
        while True:
            byte = self.data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value, at

    def _section(self, number: int) -> Section:
        return next(section for section in self.sections if section.number == number)

    def _imported_functions(self) -> int:
        """Count the functions that the host supplies; the module's own are numbered after them."""
        count, at = self._number(self._section(IMPORT).start)
        for _ in range(count):
            for _ in range(2):
                length, at = self._number(at)
                at += length
            if self.data[at] != 0:
                raise ValueError("expected imports of functions only; the module imports others")
            _, at = self._number(at + 1)
        return count

    def function_names(self) -> dict[int, str]:
        """Return the names of the module's own functions, by their place in the code section."""
        imported, names = self._imported_functions(), dict[int, str]()
        for section in self.sections:
            length, at = self._number(section.start)
            if section.number != CUSTOM or self.data[at : at + length] != b"name":
                continue
            at += length
            while at < section.end:
                kind = self.data[at]
                size, at = self._number(at + 1)
                count, inside = self._number(at) if kind == 1 else (0, at)  # 1: of functions
                for _ in range(count):
                    number, inside = self._number(inside)
                    length, inside = self._number(inside)
                    name = self.data[inside : inside + length].decode(errors="replace")
                    if number >= imported:
                        names[number - imported] = name
                    inside += length
                at += size
            return names
        raise ValueError("expected a section of names; the module has none")

    def bodies(self) -> list[tuple[int, int]]:
        """Return where each function's body begins, with its size, and ends."""
        count, at = self._number(self._section(CODE).start)
        result = []
        for _ in range(count):
            size, start = self._number(at)
            result.append((at, start + size))
            at = start + size
        return result

    def table(self) -> dict[int, int]:
        """Return the function of each place in the table, through which pointers call."""
        imported = self._imported_functions()
        segments, at = self._number(self._section(ELEMENTS).start)
        if segments != 1 or self.data[at : at + 2] != b"\0\x41":
            raise ValueError("expected one segment of functions for the table of a module")
        offset, at = self._number(at + 2)
        count, at = self._number(at + 1)
        result = {}
        for index in range(offset, offset + count):
            number, at = self._number(at)
            result[index] = number - imported
        return result

    def called(self, roots: Iterable[int], never: Collection[int]) -> set[int]:
        """Return what functions call, directly and through constant pointers, and they themselves.

        Functions are given by their places in the code section; those in ``never`` are not called,
        whoever seems to call them. A linker writes the number of a function in five bytes, so a
        call is found without decoding what is around it.
        """
        bodies, table, imported = self.bodies(), self.table(), self._imported_functions()
        called = set(roots)
        waiting = list(called)
        while waiting:
            start, end = bodies[waiting.pop()]
            for match in REFERENCE.finditer(self.data, start, end):
                value, _ = self._number(match.start() + 1)
                number = table.get(value, -1) if match[0] == b"\x41" else value - imported
                if 0 <= number < len(bodies) and number not in called and number not in never:
                    called.add(number)
                    waiting.append(number)
        return called

    def shrunk(
        self, unused: Collection[int], pages: int, exported: Mapping[str, int] | None = None
    ) -> bytes:
        """Return the module without custom sections, with stubs in place of unused functions.

        It may have at most so many pages of memory, of 64 KiB each. The host can call the exported
        functions as well, by these names. Functions are given by their places in the code section.
        """
        parts = [self.data[:8]]
        for section in self.sections:
            if section.number == CUSTOM:
                continue
            content, (count, at) = (
                self.data[section.start : section.end],
                self._number(section.start),
            )
            if section.number == MEMORY:
                if count != 1 or self.data[at] > 1:
                    raise ValueError("expected one memory of 32-bit addresses, shared with nobody")
                content = b"\1\1" + leb128(self._number(at + 1)[0]) + leb128(pages)
            elif section.number == CODE:
                code = (
                    UNREACHABLE if number in unused else self.data[start:end]
                    for number, (start, end) in enumerate(self.bodies())
                )
                content = leb128(count) + b"".join(code)
            elif section.number == EXPORT and exported:
                first = self._imported_functions()
                added = (
                    leb128(len(name)) + name.encode() + b"\0" + leb128(first + number)
                    for name, number in exported.items()
                )
                rest = self.data[at : section.end]
                content = b"".join([leb128(count + len(exported)), rest, *added])
            parts += [bytes([section.number]), leb128(len(content)), content]
        return b"".join(parts)


def leb128(value: int) -> bytes:
    """Return a whole number as WebAssembly writes it.

    >>> leb128(624485).hex()
    'e58e26'
    """
    digits = bytearray()
    while value > 127:
        digits.append(value & 127 | 128)
        value >>= 7
    return bytes([*digits, value])


def blocks(names: Mapping[int, str], pattern: str) -> list[range]:
    """Return the stretches of functions between names that match.

    A linker puts the functions of a library next to each other. A stretch begins and ends with a
    match; inside it, at most three thousand functions in a row have other names.
    """
    matches = sorted(number for number, name in names.items() if re.search(pattern, name))
    stretches: list[list[int]] = []
    for number in matches:
        if stretches and number - stretches[-1][-1] <= MAX_GAP:
            stretches[-1].append(number)
        else:
            stretches.append([number])
    return [range(each[0], each[-1] + 1) for each in stretches if len(each) >= MIN_LENGTH]
