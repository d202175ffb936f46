"""Make a WebAssembly module smaller: without names, and without functions that nobody calls."""

import io
import re
from collections.abc import Collection, Iterable, Mapping

MAGIC = b"\0asm\1\0\0\0"
CUSTOM, IMPORT, MEMORY, EXPORT, ELEMENTS, CODE = 0, 2, 5, 7, 9, 10
OF_FUNCTIONS = 1
"""The kind of the names of functions, in the custom section of names."""
UNREACHABLE = bytes([0, 0, 0x0B])
"""A body of three bytes: no local variables, ``unreachable``, ``end``."""
REFERENCE = re.compile(rb"[\x10\x41\xd2](?=([\x80-\xff]{4}[\x00-\x0f]))")
"""A call, a constant that may be a pointer to a function, or a reference to one; its number."""
MIN_LENGTH, MAX_GAP = 50, 3000


class Reader(io.BytesIO):
    """The bytes of a module or of a part of it, read from the beginning."""

    def number(self) -> int:
        """Read an unsigned LEB128 number."""
        value = shift = 0
        while True:
            [byte] = self.read(1)
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def vector(self) -> bytes:
        """Read bytes that follow their number."""
        return self.read(self.number())


class Module:
    """A WebAssembly module in its binary form, which imports functions only.

    Its own functions are given by their places in the code section; elsewhere in the module they
    are numbered after the imported ones.
    """

    def __init__(self, data: bytes) -> None:
        reader = Reader(data)
        if (begin := reader.read(8)) != MAGIC:
            raise ValueError(f"expected a WebAssembly module of version 1; it begins {begin!r}")
        self.sections, self.names = list[tuple[int, bytes]](), dict[int, str]()
        self.table = dict[int, int]()
        """The function of each place in the table, through which pointers call."""
        while kind := reader.read(1):
            self.sections.append((kind[0], reader.vector()))
        for section, content in self.sections:
            part = Reader(content)
            if section == IMPORT:
                self.imported = part.number()
            elif section == ELEMENTS:
                # one segment, of the table 0, which begins at a constant: 1, 0, i32.const, ., end
                *_, first, _, count = (part.number() for _ in range(6))
                for place in range(first, first + count):
                    self.table[place] = part.number() - self.imported
            elif section == CODE:
                self.bodies = [part.vector() for _ in range(part.number())]
            elif section == CUSTOM and part.vector() == b"name":
                while kind := part.read(1):
                    names = Reader(part.vector())
                    for _ in range(names.number() if kind[0] == OF_FUNCTIONS else 0):
                        number, name = names.number() - self.imported, names.vector()
                        if number >= 0:
                            self.names[number] = name.decode(errors="replace")

    def called(self, roots: Iterable[int], never: Collection[int]) -> set[int]:
        """Return what functions call, directly and through constant pointers, and they themselves.

        Those in ``never`` are not called, whoever seems to call them. A linker writes the number of
        a function in five bytes, so a call is found without decoding what is around it.
        """
        called = set(roots)
        waiting = list(called)
        while waiting:
            for match in REFERENCE.finditer(self.bodies[waiting.pop()]):
                value = sum((byte & 127) << 7 * place for place, byte in enumerate(match[1]))
                number = value - self.imported
                if match[0] == b"\x41":
                    number = self.table.get(value, -1)
                if 0 <= number < len(self.bodies) and number not in called and number not in never:
                    called.add(number)
                    waiting.append(number)
        return called

    def shrunk(self, unused: Collection[int], pages: int, exported: Mapping[str, int]) -> bytes:
        """Return the module without custom sections, with stubs in place of unused functions.

        It may have at most so many pages of memory, of 64 KiB each. The host can call the exported
        functions as well, by these names.
        """
        result = MAGIC
        for section, content in self.sections:
            part = Reader(content)
            if section == MEMORY:  # one, whose limits begin with a flag: 1, there is an upper one
                part.read(2)
                content = b"\1\1" + leb128(part.number()) + leb128(pages)
            elif section == CODE:
                bodies = dict(enumerate(self.bodies)) | dict.fromkeys(unused, UNREACHABLE)
                content = leb128(len(bodies)) + b"".join(map(sized, bodies.values()))
            elif section == EXPORT:
                content = leb128(part.number() + len(exported)) + part.read()
                for name, number in exported.items():
                    content += sized(name.encode()) + b"\0" + leb128(self.imported + number)
            if section != CUSTOM:
                result += bytes([section]) + sized(content)
        return result


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


def sized(content: bytes) -> bytes:
    """Return bytes after their number."""
    return leb128(len(content)) + content


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
