"""Coroutines of the student's that a test waits for.

They run in a loop of events in the student's process; the test's own coroutines run in another one
in the checker. Both loops take turns, so that what is started together runs together.
"""

import asyncio
from collections.abc import Callable, Generator, Mapping
from typing import Any

from IPython.core.async_helpers import get_asyncio_loop

TURN = 0.01
"""Seconds that a loop waits for its own coroutines before it is the other one's turn."""

# --- the student's process --------------------------------------------------------------------


def _loop() -> asyncio.AbstractEventLoop:
    """Return the loop in which the student's cells run."""
    get: Any = get_asyncio_loop  # which has no types
    return get()


async def _waited(awaitable: Any) -> Any:
    return await awaitable


def _begin(namespace: Mapping[str, Any], awaitable: Any) -> Any:
    """Begin to wait for something, and return the task."""
    loop = _loop()
    return loop.create_task(_waited(awaitable))


def _turn(namespace: Mapping[str, Any], task: Any) -> tuple[Any, ...]:
    """Run the loop for a turn; return the result in a tuple once the task is done."""
    _loop().run_until_complete(asyncio.wait({task}, timeout=TURN))
    return (task.result(),) if task.done() else ()


def _cancel(namespace: Mapping[str, Any], task: Any) -> None:
    task.cancel()
    _loop().run_until_complete(asyncio.wait({task}, timeout=TURN))


QUESTIONS: dict[str, Callable[..., Any]] = {
    "begin": _begin,
    "turn": _turn,
    "cancel": _cancel,
}
"""The questions that :class:`gradebox.line.lender.Lender` answers by these functions."""

# --- the checker ------------------------------------------------------------------------------


def steps(proxy: Any) -> Generator[None, Any, Any]:
    """Wait for something of the student's; a generator as ``__await__`` returns it."""
    peer = proxy._gradebox.peer
    task = peer.ask("begin", (proxy,))
    result: Any = ()
    try:
        yield  # whatever is waited for beside it begins, too
        while not (result := peer.ask("turn", (task,))):
            yield
    except GeneratorExit:
        raise
    except BaseException:
        if not result:
            peer.ask("cancel", (task,))
        raise
    return result[0]
