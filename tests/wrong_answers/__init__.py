"""Wrong answers to every exercise: a yardstick for what the checks say about mistakes.

Each topic has a module of functions as students might write them. A function has one mistake, which
its docstring states; it uses its arguments, built-in names and ``np``. ``WRONG`` lists them by the
key of the exercise. ``mutants`` adds mutations of the model solutions, chosen by a fixed seed.
``judging`` says in what a function differs from the reference.

The answers were written without a look at the misconceptions of the checks, and must stay so: an
answer that is added because a check knows it measures nothing. ``test_wrong_answers`` makes sure
that every answer is wrong.

Some functions keep state from call to call. Call ``judging.fresh(function)``, a copy whose state is
that of the beginning.
"""

from importlib import import_module

from optdl.checks.exercise import Function

TOPICS = (
    "erm",
    "quadratic",
    "conditioning",
    "optimizers",
    "initialization",
    "batchnorm",
    "dropout",
    "bnp",
    "bnp_cnn",
)


def answers(topic: str) -> dict[str, tuple[Function, ...]]:
    """Return the wrong answers of a topic by the key of the exercise."""
    wrong: dict[str, tuple[Function, ...]] = import_module(f"{__name__}.{topic}").WRONG
    return wrong
