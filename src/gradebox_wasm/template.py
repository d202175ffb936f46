"""Where the instances of one kind begin: modules that have been imported.

To import takes seconds, to share the memory of an instance that has done so nothing. It is kept,
and used again in the next run, while every file that was read for it is as it was.
"""

import hashlib
import json
import os
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from gradebox.sandbox.filesystem import require_room
from gradebox.sandbox.seal import Limits
from gradebox.values.channel import packed, unpacked
from gradebox.workers.protocol import Began, Begin, M, Message, plain, understood
from gradebox_wasm import LIBRARY, machine
from gradebox_wasm.files import File, Folder, HostFile, HostFolder, Tree
from gradebox_wasm.instance import PYTHON, SITE, TEMPORARY, WORK, Instance
from gradebox_wasm.memory import Image
from gradebox_wasm.modules import Modules

MAX_IMAGES = 20
"""So many memories are kept, of about 30 MB; the oldest go."""
_LENGTH = struct.Struct("<Q")
_library = HostFolder(str(LIBRARY))
"""The modules of Python, which all instances read."""


class Template:
    """Makes instances in which modules have been imported; their memory is also for the next run.

    Parameters
    ----------
    modules : Modules
        What they can import besides.
    settings : dict
        What :func:`gradebox_wasm.guest.prepare` is told.
    """

    def __init__(self, modules: Modules, settings: dict[str, Any]) -> None:
        self._modules, self._obstacles = modules, dict[tuple[str, ...], str]()
        made_from = json.dumps([machine.key(), settings, modules.made_of])
        key = hashlib.sha256(made_from.encode()).hexdigest()[:24]
        kept = machine.folder() / f"{key}.image"
        self._image = _load(kept, modules)
        if self._image is None:
            with self._instance(Limits()) as (_, instance):
                instance.turn("prepare", packed(settings))
                self._image = _keep(kept, instance, modules)

    def obstacle(self, imports: Sequence[str]) -> str:
        """Return a module that these imports need and that instances cannot have, if there is one.

        Parameters
        ----------
        imports : sequence of str
            Modules, ``module`` or ``module:name``.
        """
        key = (*imports,)
        if key not in self._obstacles:
            with self._instance(Limits()) as (_, instance):
                self._obstacles[key], _ = unpacked(instance.turn("lack", packed(key)))
        return self._obstacles[key]

    @contextmanager
    def instance(self, begin: Begin) -> Iterator[Instance]:
        """Make an instance for one notebook, with copies of files.

        Raises
        ------
        TooMuch
            If there are more files, or larger ones, than the limits allow.
        """
        limits = Limits(**begin.limits)
        with self._instance(limits) as (tree, instance):
            for shown in begin.readable:
                node = HostFolder(shown) if Path(shown).is_dir() else HostFile(shown)
                tree.put(Path(shown).absolute().as_posix(), node)
            folder = Path(begin.folder)
            files = [each for each in folder.rglob("*") if each.is_file() and not each.is_symlink()]
            files = [each for each in files if each.suffix != ".ipynb"]
            require_room(len(files), sum(each.stat().st_size for each in files), limits.disk)
            for path in sorted(files):
                if (name := path.relative_to(folder).as_posix()) not in begin.excluded:
                    tree.put(f"{WORK}/{name}", File(path.read_bytes()))
            say(instance, "begin", begin, Began)
            yield instance

    @contextmanager
    def _instance(self, limits: Limits) -> Iterator[tuple[Tree, Instance]]:
        tree = Tree(limits.disk)
        tree.put(PYTHON, _library)
        tree.put(SITE, self._modules.folder)
        tree.put(WORK, Folder())
        tree.put(TEMPORARY, Folder())
        instance = Instance(tree, limits, self._modules.fetch, self._image)
        try:
            yield tree, instance
        finally:
            instance.close()


def say(instance: Instance, turn: str, message: Message, kind: type[M]) -> M:
    """Have an instance take a message in one turn; return its answer, which may not be one."""
    content, _ = unpacked(instance.turn(turn, packed(plain(message))), most=0)
    return understood(content, kind)


def _load(path: Path, modules: Modules) -> Image | None:
    """Return the memory that is kept, if it may be used; its modules are found anew."""
    with suppress(OSError, ValueError, KeyError, struct.error), path.open("rb") as file:
        end = file.seek(-_LENGTH.size, os.SEEK_END)
        [length] = _LENGTH.unpack(file.read())
        file.seek(end - length)
        header = json.loads(file.read(length))
        is_same = all(_stamp(each) == stamp for each, stamp in header["stamps"])
        if is_same and header["size"] == end - length:
            for name in header["names"]:
                modules.fetch(name)
            return Image(file, end - length, header["open_files"])
    return None  # none is there, or half of one


def _keep(path: Path, instance: Instance, modules: Modules) -> Image:
    """Keep the memory of an instance, with the state of the files that it was made from."""
    partial = path.with_suffix(f".{os.getpid()}")
    with partial.open("w+b") as file:
        image = instance.save(file)
        read = {*_read(_library), *_read(modules.folder)}
        header = {"stamps": [(each, _stamp(each)) for each in read], "names": modules.names()}
        header |= {"size": image.size, "open_files": image.open_files}
        text = json.dumps(header).encode()
        file.seek(image.size)
        file.write(text + _LENGTH.pack(len(text)))
    with suppress(OSError):  # Windows moves and removes no file that is open
        partial.replace(path)
        for old in sorted(path.parent.glob("*.image"), key=os.path.getmtime)[:-MAX_IMAGES]:
            old.unlink()
    return image


def _read(node: Any) -> Iterator[str]:
    """Yield the files of this machine that were read, and the folders that were looked through."""
    fields = vars(node)
    if fields.keys() & {"content", "entries"}:
        yield from filter(None, [fields.get("path")])
        for below in fields.get("entries", {}).values():
            yield from _read(below)


def _stamp(path: str) -> list[int]:
    """Return what changes when a file does, or a folder gets or loses one."""
    found = Path(path).stat() if Path(path).exists() else None
    return [found.st_mtime_ns, found.st_size] if found else []
