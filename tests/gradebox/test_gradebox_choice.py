"""Which sandbox is chosen: the kernel's, that of another distribution, or none."""

from types import SimpleNamespace
from typing import Any

import pytest

from gradebox.sandbox import probe
from gradebox.sandbox.probe import Survey
from gradebox.sandbox.seal import Level, NotSealed

NOTHING = Survey(Level.NONE, {"namespaces": "refused: unshare", "landlock": "refused: old"})
WEAKER = Survey(Level.LANDLOCK, {"namespaces": "refused: unshare", "landlock": "works; almost"})


class Toy:
    """A sandbox that runs no notebook that imports anything."""

    def __init__(self, config: Any) -> None:
        """Take the configuration, as all do."""

    def obstacle(self, modules: Any, imports: Any) -> str:
        return f"it has no {imports[0]}" if imports else ""


# by what the kernel offers and what is wanted: what is taken, or why nothing is, alone, beside the
# sandbox above, and where notebooks may run unsealed
NO_LEVEL, NO_KERNEL = "expected the level namespaces, got landlock", r"refused: unshare.*: old.*yes"
TAKEN: dict[tuple[str, str], list[Any]] = {
    ("weaker", "auto"): [Level.LANDLOCK] * 3,
    ("weaker", "kernel"): [Level.LANDLOCK] * 3,
    ("weaker", "landlock"): [Level.LANDLOCK] * 3,
    ("weaker", "namespaces"): [NO_LEVEL] * 3,
    ("none", "auto"): ["install gradebox-wasm", "toy: it has no torch", Level.NONE],
    ("none", "kernel"): [NO_KERNEL, NO_KERNEL, Level.NONE],
    ("none", "toy"): ["expected the sandbox auto, .*'toy'", *["'toy': it has no torch"] * 2],
    ("none", "none"): ["got none; if you", "got none; if you", Level.NONE],
}


@pytest.mark.parametrize(("offered", "wanted"), TAKEN)
def test_sandbox_choice_prefers_kernel_then_plugin_then_none(offered, wanted, monkeypatch):
    monkeypatch.setattr(probe, "survey", lambda: WEAKER if offered == "weaker" else NOTHING)
    for number, expected in enumerate(TAKEN[offered, wanted]):
        entries = [SimpleNamespace(name="toy", load=lambda: Toy)][: min(number, 1)]
        monkeypatch.setattr(probe, "_entries", lambda entries=entries: entries)
        monkeypatch.setenv("GRADEBOX_ALLOW_UNSEALED", "yes" if number == 2 else "")
        if isinstance(expected, Level):
            assert probe.choose(wanted, imports=["torch"]) is expected
        else:
            with pytest.raises(NotSealed, match=expected):
                probe.choose(wanted, imports=["torch"])
        if entries and offered == "none" and wanted in ("auto", "toy"):
            assert isinstance(probe.choose(wanted), Toy)
