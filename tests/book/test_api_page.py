"""What the pages of the API show of a signature, and which names they refuse.

The pages themselves are tested with the rest of the site.
"""

import sys
import types
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import torch
from jaxtyping import Float, Int

from optdl import erm

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module", autouse=True)
def extensions() -> Iterator[None]:
    """Let the modules of the book's extensions be imported."""
    before = list(sys.path)
    sys.path.insert(0, str(ROOT / "book" / "_ext"))
    yield
    sys.path[:] = before


def sample(
    x: Float[np.ndarray, "m d"],
    y: Float[torch.Tensor, " m"] | Int[np.ndarray, " m"] | None = None,
    *rest: Callable[[int, np.ndarray], Any],
    names: Sequence[str] = (),
    loss: Callable[..., float] = erm.hinge_loss,
    norm: Literal["a", "b"] = "a",
    eps: float = 1e-8,
    population: erm.Population | None = None,
) -> tuple[int, ...]:
    """Stand for a function of the packages."""
    raise NotImplementedError


def test_a_signature_is_short() -> None:
    import signatures

    parameters, result = signatures.parts(sample, bound=False)
    assert parameters == (
        """(x: Float["m d"], y: Float[Tensor, "m"] | Int["m"] | None = None, """
        """*rest: Callable[[int, ndarray], Any], names: Sequence[str] = (), """
        """loss: Callable[..., float] = hinge_loss, norm: Literal['a', 'b'] = 'a', """
        """eps: float = 1e-08, population: ~optdl.erm.Population | None = None)"""
    )
    assert result == "tuple[int, ...]"
    parameters, _ = signatures.parts(sample, bound=True)
    assert parameters.startswith("(y: ")


@pytest.mark.parametrize(
    "name", ["optdl.erm.hinge_los", "optdl.ermm.hinge_loss", "nowhere.x", "gradebox.nothing.Warm"]
)
def test_a_name_that_does_not_exist_is_refused(name: str) -> None:
    import public_names

    with pytest.raises(public_names.ApiError, match=rf"{name}, .*book/api\.yml"):
        public_names.public(name)


def test_a_module_without_a_list_of_its_names_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    import public_names

    monkeypatch.setattr(erm, "bare", types.ModuleType("optdl.erm.bare"), raising=False)
    with pytest.raises(public_names.ApiError, match=r"__all__ in optdl\.erm\.bare"):
        public_names.public("optdl.erm.bare")


def test_a_page_that_the_table_lacks_is_refused() -> None:
    import public_names

    with pytest.raises(public_names.ApiError, match="'optdl_nothing'"):
        public_names.names("optdl_nothing")


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("optdl.erm.empirical_risk", "Return the empirical risk, the mean loss over a sample."),
        ("optdl.erm.SURROGATES", "The surrogates by name."),
        ("optdl.erm.MarginLoss", "A surrogate loss: it maps margins to values and derivatives."),
        # imported into the package, and only when it is asked for
        (
            "optdl.batchnorm.NORMALIZATIONS",
            "What ``optdl.networks`` takes as ``normalization``, "
            "by the names that the chapters use.",
        ),
        # a function with the name of its module
        (
            "optdl.checks.summary",
            "Print for each exercise of the notebook what its last check found.",
        ),
    ],
)
def test_a_summary_is_the_first_sentence(name: str, sentence: str) -> None:
    import public_names

    assert public_names.summary(name) == sentence


@pytest.mark.parametrize(
    ("name", "file", "line"),
    [
        ("optdl.erm.empirical_risk", "src/optdl/erm.py", "def empirical_risk("),
        ("optdl.bnp.BNP.step", "src/optdl/bnp/model.py", "    @torch.no_grad()"),
        ("optdl.optimizers.Adam", "src/optdl/optimizers/adam.py", "@dataclass(frozen=True)"),
    ],
)
def test_a_source_is_linked_by_file_and_line(name: str, file: str, line: str) -> None:
    import api

    path, number = api.source(name).split("#L")
    assert path == file
    assert (ROOT / path).read_text("utf-8").splitlines()[int(number) - 1].startswith(line)


@pytest.mark.parametrize("name", ["optdl.erm.SURROGATES", "optdl.training.State.epoch"])
def test_a_value_has_no_source(name: str) -> None:
    import api

    assert api.source(name) == ""


def test_names_that_a_code_imports_are_known() -> None:
    import api

    code = (
        "import numpy as np\nfrom optdl import batchnorm as bn, erm\nfrom optdl.data import load\n"
    )
    assert dict(api.imported(code)) == {
        "bn": "optdl.batchnorm",
        "erm": "optdl.erm",
        "load": "optdl.data.load",
    }
    assert list(api.imported("%matplotlib inline\nfrom optdl import erm")) == []
