"""The examples in a student's docstring, run in the student's process when a test asks doctest.

A docstring of a student's is text of the student's, and ``doctest`` would execute it in the
checker. It arrives as a :class:`Docstring`, and ``doctest`` is taught to have the examples of such
a text run where the student's code runs. What they print is compared here.
"""

import doctest
import sys
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

_NAME = "_example"


class Docstring(str):
    """A docstring of the student's, with what asks its process."""

    ask: Callable[..., Any]

    @classmethod
    def of(cls, proxy: Any, text: str | None) -> "Docstring | None":
        """Return the docstring of something of the student's."""
        if text is None:
            return None
        docstring = cls(text)
        docstring.ask = proxy._gradebox.peer.ask
        return docstring


def teach_doctest() -> None:
    """Have ``doctest`` run examples of a student's in the student's process."""
    run: Any = doctest.DocTestRunner.run
    if hasattr(run, "__wrapped__"):
        return

    @wraps(run)
    def wrapped(runner: Any, test: doctest.DocTest, *args: Any, **more: Any) -> Any:
        return run(runner, _elsewhere(test), *args, **more)

    doctest.DocTestRunner.run = wrapped  # type: ignore[method-assign, assignment]


def _elsewhere(test: doctest.DocTest) -> doctest.DocTest:
    """Return a test that runs elsewhere what it would execute of a student's docstring."""
    if not isinstance(test.docstring, Docstring):
        return test
    ask, sources = test.docstring.ask, [example.source for example in test.examples]
    scope = ask("scope", ())

    def run_example(number: int) -> None:
        ask("example", (scope, sources[number]))

    examples = [
        doctest.Example(
            f"{_NAME}({number})\n",
            example.want,
            example.exc_msg,
            example.lineno,
            example.indent,
            example.options,
        )
        for number, example in enumerate(test.examples)
    ]
    names = {_NAME: run_example, "__name__": "__main__"}
    return doctest.DocTest(examples, names, test.name, test.filename, test.lineno, None)


# --- the student's process --------------------------------------------------------------------


class _Scope:
    """The names of one docstring's examples."""

    def __init__(self, names: Mapping[str, Any]) -> None:
        self.names = dict(names)


def _example(namespace: Mapping[str, Any], scope: _Scope, source: str) -> None:
    before, sys.displayhook = sys.displayhook, sys.__displayhook__
    try:
        exec(compile(source, "<example>", "single"), scope.names)
    finally:
        sys.displayhook = before


QUESTIONS: dict[str, Callable[..., Any]] = {
    "scope": lambda namespace: _Scope(namespace),
    "example": _example,
}
"""The questions that :class:`gradebox.line.lender.Lender` answers by these functions."""
