"""Tests of the figures to explore are rows: a figure, an expression, its states, and an oracle."""

import functools
import inspect
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

FRESH = """() => { document.body.style.opacity = 0; window.fresh = (name, task) => {
  const stage = document.querySelector(`[data-explore="${name}"]`);
  for (const other of document.querySelectorAll(".explore-stage")) other.hidden = other !== stage;
  for (const key of ["ready", "task"]) delete stage.dataset[key];
  if (task) stage.dataset.task = task;
  stage.replaceChildren();
  Explore.build();
  const fig = Explore.figures[name];
  fig.solved = () => fig.sentence().startsWith("✓");
  return fig;
}; }"""
"""Builds a figure again, as if nothing had been changed; the others are hidden: they cost time.

Nor is the one painted: tests read and use it, and do not look at it."""

ROWS = """([name, task, expression, states]) => {
  const fig = fresh(name, task), first = structuredClone(fig.state);
  const answer = new Function("fig", "s", `with (fig) with (state) with (s) return ${expression}`);
  return states.map((s) => {
    const own = Object.fromEntries(Object.entries(s).filter(([key]) => key in first));
    const now = { ...structuredClone(first), ...own };
    if (JSON.stringify(fig.state) !== JSON.stringify(now)) fig.set(now); // drawing is slow
    return answer(fig, s);
  });
}"""


class Figures:
    """A page with all figures."""

    def __init__(self, page: Any) -> None:
        self.page = page
        page.evaluate(FRESH)

    def fresh(self, name: str, task: str | None = None, **state: Any) -> Any:
        """Build a figure again, set values of it, and return the element that holds it."""
        self.page.evaluate("([n, t, s]) => fresh(n, t).set(s)", [name, task, state])
        return self.page.locator(f'[data-explore="{name}"]')

    def ask(self, name: str, expression: str) -> Any:
        return self.page.evaluate(f"() => ((fig) => ({expression}))(Explore.figures['{name}'])")


def figure(
    name: str,
    columns: str = "",
    *rows: tuple[Any, ...],
    task: str | None = None,
    rtol: float = 1e-6,
    atol: float = 1e-9,
    **axes: list[Any],
) -> Callable[[Callable[..., Any]], Callable[[Figures], None]]:
    """Make a test of an oracle whose docstring is a JavaScript expression.

    Both are computed in states of the figure: the rows of a table, or all combinations of values
    along axes. In the expression the state and the methods of the figure have their names; methods
    alone, as in ``path rate``, are called. The oracle gets the values that it has parameters for,
    and as `shown` what the figure answers; it returns what is expected, or asserts it.
    """
    table = rows or itertools.product(*axes.values())
    states = [dict(zip(columns.split() or axes, row, strict=True)) for row in table]

    def decorate(oracle: Callable[..., Any]) -> Callable[[Figures], None]:
        expression, parameters = oracle.__doc__ or "", inspect.signature(oracle).parameters
        if "(" not in expression:
            calls = (f"{w}()" if w[0] == "." else f"{w}: {w}()" for w in expression.split())
            expression = f"{{{', '.join(calls)}}}"

        def test(figures: Figures) -> None:
            answers = figures.page.evaluate(ROWS, [name, task, expression, states])
            failures = []
            for state, shown in zip(states, answers, strict=True):
                known = {
                    key: v for key, v in {**state, "shown": shown}.items() if key in parameters
                }
                try:
                    compare(shown, oracle(**known), rtol, atol)
                except AssertionError as error:
                    failures.append(f"{name} with {state}: {error}")
            assert not failures, "\n".join(failures)

        return test

    return decorate


def compare(shown: Any, expected: Any, rtol: float, atol: float) -> None:
    """Compare numbers within tolerances, words exactly, and the keys that are expected."""
    if isinstance(expected, dict):
        for key, value in expected.items():
            compare(shown[key], value, rtol, atol)
    elif isinstance(expected, str):
        assert shown == expected
    elif expected is not None:
        shown, expected = np.asarray(shown, float), np.asarray(expected, float)
        np.testing.assert_allclose(shown, expected, rtol, atol)


def uniforms(seed: int, n: int) -> np.ndarray:
    """Return the first n uniform numbers of mulberry32, which the figures draw from."""
    count = np.arange(1, n + 1, dtype=np.uint64)
    state = (np.uint64(seed) + count * np.uint64(0x6D2B79F5)).astype(np.uint32)
    t = (state ^ (state >> np.uint32(15))) * (state | np.uint32(1))
    t ^= t + (t ^ (t >> np.uint32(7))) * (t | np.uint32(61))
    return (t ^ (t >> np.uint32(14))) / 2.0**32


@functools.cache
def normals(seed: int, *shape: int) -> np.ndarray:
    """Return the normal numbers that the figures draw, each from two uniform ones."""
    return box_muller(uniforms(seed, 2 * int(np.prod(shape)))).reshape(shape)


def box_muller(uniform: np.ndarray) -> np.ndarray:
    first, second = uniform.reshape(-1, 2).T
    return np.sqrt(-2 * np.log(1 - first)) * np.cos(2 * np.pi * second)
