"""Coroutines of the student's that a test waits for.

They run in a loop of events in the student's process; the test's own coroutines run in another one
in the checker. Both loops take turns, so that what is started together runs together.
"""

import asyncio
import inspect
import weakref
from collections.abc import Callable, Generator, Mapping
from typing import Any

from IPython.core.async_helpers import get_asyncio_loop

TURN = 0.01
"""Seconds that a loop waits for its own coroutines before it is the other one's turn."""

# --- the student's process --------------------------------------------------------------------

_ARGUMENTS: "weakref.WeakKeyDictionary[Any, list[Any]]" = weakref.WeakKeyDictionary()
"""What coroutines were called with, by the coroutine and by its task."""


def _call(namespace: Mapping[str, Any], function: Any, args: Any, kwargs: Any) -> Any:
    result = function(*args, **kwargs)
    if inspect.iscoroutine(result):
        _ARGUMENTS[result] = [*args, *kwargs.values()]
    return result


def _loop() -> asyncio.AbstractEventLoop:
    """Return the loop in which the student's cells run."""
    get: Any = get_asyncio_loop  # which has no types
    return get()


async def _waited(awaitable: Any) -> Any:
    return await awaitable


def _begin(namespace: Mapping[str, Any], awaitable: Any) -> Any:
    """Begin to wait for something, and return the task."""
    loop = _loop()
    task = loop.create_task(_waited(awaitable))
    if inspect.iscoroutine(awaitable):
        _ARGUMENTS[task] = _ARGUMENTS.pop(awaitable, [])
    return task


def _turn(namespace: Mapping[str, Any], task: Any, given: list[Any]) -> tuple[Any, ...]:
    """Run the loop for a turn; return the result in a tuple once the task is done.

    ``given`` holds the arguments again: they are other objects than those that the coroutine has,
    and hold the same before and after.
    """
    before = _ARGUMENTS.get(task, [])
    for ours, new in zip(before, given, strict=False):
        _refill(ours, new)
    _loop().run_until_complete(asyncio.wait({task}, timeout=TURN))
    for ours, new in zip(before, given, strict=False):
        _refill(new, ours)
    return (task.result(),) if task.done() else ()


def _cancel(namespace: Mapping[str, Any], task: Any) -> None:
    task.cancel()
    _loop().run_until_complete(asyncio.wait({task}, timeout=TURN))


def _refill(target: Any, source: Any) -> None:
    """Give a list, dict or set what another one holds."""
    if target is source or type(target) is not type(source):
        return
    if isinstance(target, list):
        target[:] = source
    elif isinstance(target, dict | set):
        target.clear()
        target.update(source)


QUESTIONS: dict[str, Callable[..., Any]] = {
    "call": _call,
    "begin": _begin,
    "turn": _turn,
    "cancel": _cancel,
}
"""The questions that :class:`gradebox.names.Lender` answers by these functions."""

# --- the checker ------------------------------------------------------------------------------


def steps(proxy: Any, given: list[Any]) -> Generator[None, Any, Any]:
    """Wait for something of the student's; a generator as ``__await__`` returns it."""
    peer = proxy._gradebox.peer
    task = peer.ask("begin", (proxy,))
    done: Any = ()
    try:
        yield  # whatever is waited for beside it begins, too
        while not (done := peer.ask("turn", (task, given))):
            yield
    except GeneratorExit:
        raise
    except BaseException:
        if not done:
            peer.ask("cancel", (task,))
        raise
    return done[0]
