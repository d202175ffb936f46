"""Wrong answers to every exercise: a yardstick for what the checks say about mistakes.

Each topic has a module of functions as students might write them. A function has one mistake, which
its docstring states; it uses its arguments, built-in names and ``np``. ``WRONG`` lists them by the
key of the exercise. ``mutants`` adds mutations of the model solutions, chosen by a fixed seed.
``judging`` says in what a function differs from the reference.

The answers were written without a look at the misconceptions of the checks, and must stay so: an
answer that is added because a check knows it measures nothing. Those that a misconception names
are left out; an exercise need not have any.

Some functions keep state from call to call. Call ``judging.fresh(function)``, a copy whose state is
that of the beginning.
"""

from importlib import import_module
from pathlib import Path

from optdl.checks.catalog import blocks
from optdl.checks.exercise import Function
from tools.layout import ROOT, Course

TOPICS = Course(ROOT).topics()


def answers(topic: str) -> dict[str, tuple[Function, ...]]:
    """Return the wrong answers to each exercise of a topic, by its key."""
    there = Path(__file__).with_name(f"{topic}.py").exists()
    wrong = import_module(f"{__name__}.{topic}").WRONG if there else {}
    return {key: wrong.get(key, ()) for key in blocks(topic)}
