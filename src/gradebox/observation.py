"""Test classes, modules and training loops by what a driver observes of them."""

import copy
import sys
from collections.abc import Callable, Mapping
from typing import Any

names: Mapping[str, Any] | None = None
"""Where an answer is found by its name; without it, among the names of the notebook."""


def observe(driver: Callable[..., Any], answer: Any, *values: Any) -> Any:
    """Return ``driver(answer, *values)``, called in the answer's process, with copies of values.

    Only values cross between a test and an answer. So a test of a class sends a driver, a plain
    function of a module that students may import, to make objects of it, and judges what that
    returns. A driver holds no answer and judges nothing.

    Parameters
    ----------
    driver : callable
        The function, of a module beside the notebook or of one that is installed.
    answer : str or callable
        The name of a function or class of the student's, or what a test sees under that name.
    *values : object
        What the driver is given besides: numbers, texts, containers, arrays, tensors, and functions
        of modules.

    Examples
    --------
    In ``drivers.py``, beside the notebook::

        def balance(kind, deposits):
            account = kind()
            for amount in deposits:
                account.deposit(amount)
            return account.balance

    In a test cell::

        assert gradebox.observe(drivers.balance, "Account", [10, 5]) == 15
    """
    if isinstance(answer, str):
        namespace = vars(sys.modules["__main__"]) if names is None else names
        answer = namespace[answer]
    if hasattr(type(answer), "__observe__"):
        return answer.__observe__(driver, *values)
    return driver(answer, *copy.deepcopy(values))
