"""Which sandbox is chosen: the kernel's, that of another distribution, or none."""

from types import SimpleNamespace
from typing import Any

import pytest

from gradebox.sandbox import choice, probe
from gradebox.sandbox.choice import choose
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


@pytest.fixture(params=[True, False], ids=["installed", "alone"])
def plugin(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Have the sandbox above installed, or none."""
    entries = [SimpleNamespace(name="toy", load=lambda: Toy)] if request.param else []
    monkeypatch.setattr(choice, "_entries", lambda: entries)
    return bool(request.param)


@pytest.mark.parametrize(
    ("wanted", "level"), [("auto", "landlock"), ("kernel", "landlock"), ("landlock", "landlock")]
)
def test_the_kernel_comes_first(
    wanted: str, level: str, plugin: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe, "survey", lambda: WEAKER)
    for allowed in (False, True):
        assert choose(wanted, allowed) is Level(level)
        with pytest.raises(NotSealed, match=r"expected the level namespaces, got landlock"):
            choose("namespaces", allowed)


def test_a_sandbox_of_another_distribution_comes_next(
    plugin: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe, "survey", lambda: NOTHING)
    for wanted in ("auto", "toy") if plugin else ():
        assert isinstance(choose(wanted), Toy)
    refused = {
        "auto": "it has no torch" if plugin else "install gradebox-wasm",
        "kernel": r"refused: unshare.*refused: old.*allow_unsealed = True",
        "toy": "'toy': it has no torch" if plugin else "expected the sandbox auto, .*got 'toy'",
        "none": "got none; if you",
    }
    for wanted, why in refused.items():
        with pytest.raises(NotSealed, match=why):
            choose(wanted, imports=["torch"])
    for wanted in ("auto", "kernel", "none"):
        assert choose(wanted, allow_unsealed=True, imports=["torch"]) is Level.NONE
