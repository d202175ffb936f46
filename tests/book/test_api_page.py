"""What the pages of the API show of a name."""

import sys
from typing import Any

import pytest

from tools.layout import ROOT

sys.path.append(str(ROOT / "book" / "_ext"))

from api import shortened, source, summary


@pytest.mark.parametrize(
    ("shown", "of", "expected"),
    [
        (shortened, "(x: ~jaxtyping.Float[ndarray, 'm d'])", '(x: Float["m d"])'),
        (shortened, "~jaxtyping.Float[Tensor, ' m'] | None", 'Float[Tensor, "m"] | None'),
        (shortened, "~collections.abc.Callable[[...], ~numpy.ndarray]", "Callable[..., ndarray]"),
        (shortened, "~optdl.erm.Loss, ~typing.Literal['a']", "~optdl.erm.Loss, Literal['a']"),
        (shortened, "(f: A = <function f>, c: B = <class 'x.C'>)", "(f: A = f, c: B = C)"),
        (shortened, "(f: A = <optdl.x.Y object>, n: int = 1)", "(f: A = ..., n: int = 1)"),
        # a constant that a package imports only when it is asked for; the name of a module, too
        (summary, "optdl.batchnorm.NORMALIZATIONS", "What ``optdl.networks`` takes as "),
        (summary, "optdl.checks.summary", "Print for each exercise of the notebook what "),
        (source, "optdl.optimizers.Adam", "src/optdl/optimizers/adam.py#L"),
    ],
)
def test_signatures_summaries_and_sources_are_shown(shown: Any, of: str, expected: str) -> None:
    text = shown(of)
    assert (text == expected) if shown is shortened else text.startswith(expected)
