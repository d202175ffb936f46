"""Where the instances of one kind begin: modules that have been imported."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gradebox.sandbox.seal import Limits
from gradebox.values.channel import packed, unpacked
from gradebox.workers.protocol import Began, Begin, M, Message, plain, understood
from gradebox_wasm import LIBRARY, images, machine
from gradebox_wasm.files import File, Folder, HostFile, HostFolder, Tree, handed_in
from gradebox_wasm.instance import PYTHON, SITE, TEMPORARY, WORK, Instance
from gradebox_wasm.modules import Modules

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
        self._image = images.load(key, modules)
        if self._image is None:
            with self._instance(Limits()) as (_, instance):
                instance.turn("prepare", packed(settings))
                self._image = images.keep(key, instance, modules, _library)

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
            for path in begin.readable:
                shown = HostFolder(path) if Path(path).is_dir() else HostFile(path)
                tree.put(Path(path).absolute().as_posix(), shown)
            for name, content in handed_in(Path(begin.folder), limits.disk):
                if name not in (begin.tests or {}).get("excluded", ()):
                    tree.put(f"{WORK}/{name}", File(content))
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
