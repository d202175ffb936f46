"""Make a WebAssembly module smaller: without names, and without functions that nobody calls."""

import re
from collections.abc import Collection, Iterable, Mapping

CUSTOM, IMPORT, MEMORY, EXPORT, ELEMENTS, CODE = 0, 2, 5, 7, 9, 10
OF_FUNCTIONS = 1
"""The kind of the names of functions, in the custom section of names."""
UNREACHABLE = bytes([3, 0, 0, 0x0B])
"""A body of three bytes: no local variables, ``unreachable``, ``end``."""
REFERENCE = re.compile(rb"[\x10\x41\xd2](?=[\x80-\xff]{4}[\x00-\x0f])")
"""A call, a constant that may be a pointer to a function, or a reference to one."""
MIN_LENGTH, MAX_GAP = 50, 3000


class Module:
    """A WebAssembly module in its binary form, which imports functions only.

    Its own functions are given by their places in the code section; elsewhere in the module they
    are numbered after the imported ones.
    """

    def __init__(self, data: bytes) -> None:
        if data[:8] != b"\0asm\1\0\0\0":
            raise ValueError(f"expected a WebAssembly module of version 1; it begins {data[:8]!r}")
        self.data, self.sections, at = data, list[tuple[int, int, int]](), 8
        while at < len(data):
            number = data[at]
            size, at = self._number(at + 1)
            self.sections.append((number, at, at + size))
            at += size
        # where the sections begin that are there once
        self.starts = {number: start for number, start, _ in self.sections}
        self.imported, _ = self._number(self.starts[IMPORT])

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

    def function_names(self) -> dict[int, str]:
        """Return the names of the module's own functions."""
        names: dict[int, str] = {}
        for section, start, end in self.sections:
            length, at = self._number(start)
            if section != CUSTOM or self.data[at : at + length] != b"name":
                continue
            at += length
            while at < end:
                kind = self.data[at]
                size, at = self._number(at + 1)
                count, inside = self._number(at) if kind == OF_FUNCTIONS else (0, at)
                for _ in range(count):
                    number, inside = self._number(inside)
                    length, inside = self._number(inside)
                    name = self.data[inside : inside + length].decode(errors="replace")
                    if number >= self.imported:
                        names[number - self.imported] = name
                    inside += length
                at += size
        return names

    def bodies(self) -> list[tuple[int, int]]:
        """Return where each function's body begins, with its size, and ends."""
        count, at = self._number(self.starts[CODE])
        result = []
        for _ in range(count):
            size, start = self._number(at)
            result.append((at, start + size))
            at = start + size
        return result

    def table(self) -> dict[int, int]:
        """Return the function of each place in the table, through which pointers call."""
        # one segment, of the table 0, which begins at a constant: 1, 0, i32.const
        offset, at = self._number(self.starts[ELEMENTS] + 3)
        count, at = self._number(at + 1)
        result = {}
        for index in range(offset, offset + count):
            number, at = self._number(at)
            result[index] = number - self.imported
        return result

    def called(self, roots: Iterable[int], never: Collection[int]) -> set[int]:
        """Return what functions call, directly and through constant pointers, and they themselves.

        Those in ``never`` are not called, whoever seems to call them. A linker writes the number of
        a function in five bytes, so a call is found without decoding what is around it.
        """
        bodies, table = self.bodies(), self.table()
        called = set(roots)
        waiting = list(called)
        while waiting:
            for match in REFERENCE.finditer(self.data, *bodies[waiting.pop()]):
                value, _ = self._number(match.start() + 1)
                number = table.get(value, -1) if match[0] == b"\x41" else value - self.imported
                if 0 <= number < len(bodies) and number not in called and number not in never:
                    called.add(number)
                    waiting.append(number)
        return called

    def shrunk(self, unused: Collection[int], pages: int, exported: Mapping[str, int]) -> bytes:
        """Return the module without custom sections, with stubs in place of unused functions.

        It may have at most so many pages of memory, of 64 KiB each. The host can call the exported
        functions as well, by these names.
        """
        parts = [self.data[:8]]
        for section, start, end in self.sections:
            content, (count, at) = self.data[start:end], self._number(start)
            if section == MEMORY:  # one, whose limits begin with a flag: 1, there is an upper one
                content = b"\1\1" + leb128(self._number(at + 1)[0]) + leb128(pages)
            elif section == CODE:
                code = (
                    UNREACHABLE if number in unused else self.data[slice(*body)]
                    for number, body in enumerate(self.bodies())
                )
                content = leb128(count) + b"".join(code)
            elif section == EXPORT:
                added = (
                    leb128(len(name)) + name.encode() + b"\0" + leb128(self.imported + number)
                    for name, number in exported.items()
                )
                content = leb128(count + len(exported)) + self.data[at:end] + b"".join(added)
            if section != CUSTOM:
                parts += [bytes([section]), leb128(len(content)), content]
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
    stretches: list[list[int]] = []
    for number in sorted(number for number, name in names.items() if re.search(pattern, name)):
        if not stretches or number - stretches[-1][-1] > MAX_GAP:
            stretches.append([])
        stretches[-1].append(number)
    return [range(each[0], each[-1] + 1) for each in stretches if len(each) >= MIN_LENGTH]
