"""Optimizers of torch's own, and schedulers of their learning rates, as plain data.

A test that passes a network and an optimizer of its parameters to a student's function finds both
as in one process afterwards: parameters, groups and state are those that the function left.
"""

import sys
from collections import Counter, defaultdict
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gradebox.codec.encoding import Decoder, Encoder, Node

_PLAIN = (type(None), bool, int, float, str)


@lru_cache(maxsize=100)
def _optimizer_class(name: str) -> Any:
    """Return one of torch's own kinds of optimizers."""
    optim = sys.modules["torch"].optim
    kind: Any = getattr(optim, name, None)
    return kind if isinstance(kind, type) and issubclass(kind, optim.Optimizer) else None


def write(encoder: "Encoder", value: Any, depth: int) -> "Node | None":
    """Return the node of an optimizer or a scheduler, None for anything else."""
    optim = sys.modules["torch"].optim
    if isinstance(value, optim.Optimizer) and _is_plain(encoder, value):
        return _write(encoder, value, depth)
    if isinstance(value, optim.lr_scheduler.LRScheduler) and _is_plain_scheduler(encoder, value):
        return _write_scheduler(encoder, value, depth)
    return None


def _is_plain(encoder: "Encoder", value: Any) -> bool:
    """Return whether an optimizer goes as what it holds.

    One that a student's code has made stays an object of the student's.
    """
    is_students = encoder.lends and not encoder.has(value)
    if is_students or _optimizer_class(type(value).__name__) is not type(value):
        return False
    torch = sys.modules["torch"]
    held = vars(value)
    usual = {*vars(torch.optim.Optimizer([torch.zeros(())], {})), "step", "_opt_called"}
    own_step = "step" in held and not hasattr(held["step"], "_wrapped_by_lr_sched")
    hooked = any(hooks for name, hooks in held.items() if name.endswith("_hooks"))
    return usual >= set(held) and not own_step and not hooked


def _write(encoder: "Encoder", value: Any, depth: int) -> "Node":
    encoder.note(value)
    parts = encoder.each((value.defaults, value.param_groups), depth)
    state = [encoder.each(pair, depth) for pair in value.state.items()]
    # a scheduler watches whether its optimizer makes a step before its own
    stepped = bool(getattr(value, "_opt_called", False)) if "step" in vars(value) else None
    return ["optimizer", type(value).__name__, *parts, state, stepped]


def _is_setting(value: Any) -> bool:
    tensor = sys.modules["torch"].Tensor
    if type(value) is tuple:
        return all(isinstance(item, (*_PLAIN, tensor)) for item in value)
    return isinstance(value, (*_PLAIN, tensor))


def _are_settings(held: Any) -> bool:
    return isinstance(held, dict) and all(
        type(name) is str and _is_setting(setting)
        for name, setting in held.items()
        if name != "params"
    )


def _is_group(held: Any) -> bool:
    tensor = sys.modules["torch"].Tensor
    parameters = held.get("params") if _are_settings(held) else None
    return isinstance(parameters, list) and all(
        isinstance(parameter, tensor) for parameter in parameters
    )


def _read(decoder: "Decoder", node: list[Any], depth: int) -> Any:
    import torch

    _, name, defaults, groups, pairs, stepped = node
    kind = _optimizer_class(name) if type(name) is str else None
    if kind is None or type(pairs) is not list:
        raise ValueError("expected one of torch's own kinds of optimizers, and its parts")
    optimizer = decoder.note(kind.__new__(kind))
    defaults, groups = decoder.each([defaults, groups], depth)
    if (
        not _are_settings(defaults)
        or not isinstance(groups, list)
        or not all(map(_is_group, groups))
    ):
        raise ValueError("expected the groups of parameters of an optimizer")
    state: Any = defaultdict(dict)
    for pair in pairs:
        parameter, held = decoder.each(pair, depth)
        if not isinstance(parameter, torch.Tensor) or not _are_settings(held):
            raise ValueError("expected the state of a parameter")
        state[parameter] = held
    parts = {"defaults": defaults, "param_groups": groups, "state": state}
    torch.optim.Optimizer.__setstate__(optimizer, parts)
    if type(stepped) is bool:
        _watching()(optimizer)
        optimizer._opt_called = stepped
    return optimizer


@lru_cache(maxsize=1)
def _watching() -> Any:
    class Watching(sys.modules["torch"].optim.lr_scheduler.LRScheduler):  # type: ignore[misc]
        """A scheduler that does nothing but to watch its optimizer."""

        def get_lr(self) -> list[Any]:
            return [group["lr"] for group in self.optimizer.param_groups]

    return Watching


# --- schedulers -------------------------------------------------------------------------------


@lru_cache(maxsize=100)
def _scheduler_class(name: str) -> Any:
    schedulers = sys.modules["torch"].optim.lr_scheduler
    kind: Any = getattr(schedulers, name, None)
    fits = isinstance(kind, type) and issubclass(kind, schedulers.LRScheduler)
    return kind if fits and kind is not schedulers.LRScheduler else None


def _is_plain_scheduler(encoder: "Encoder", value: Any) -> bool:
    """Return whether a scheduler goes as what it holds, as its optimizer does."""
    if _scheduler_class(type(value).__name__) is not type(value):
        return False
    held = {name: setting for name, setting in vars(value).items() if name != "optimizer"}
    return _is_plain(encoder, value.optimizer) and _are_rates(held)


def _write_scheduler(encoder: "Encoder", value: Any, depth: int) -> "Node":
    encoder.note(value)
    held = {name: setting for name, setting in vars(value).items() if name != "optimizer"}
    return ["scheduler", type(value).__name__, *encoder.each((value.optimizer, held), depth)]


def _are_rates(held: Any) -> bool:
    return isinstance(held, dict) and all(
        type(name) is str and name.isidentifier() and not name.startswith("__") and _is_rate(rate)
        for name, rate in held.items()
    )


def _is_rate(value: Any) -> bool:
    if type(value) in (list, tuple):
        return all(map(_is_rate, value))
    items = value if type(value) is Counter else [value]
    return all(isinstance(item, _PLAIN) for item in items) or _are_rates(value)


def _read_scheduler(decoder: "Decoder", node: list[Any], depth: int) -> Any:
    import torch

    _, name, *nodes = node
    kind = _scheduler_class(name) if type(name) is str else None
    if kind is None or len(nodes) != 2:
        raise ValueError("expected one of torch's own kinds of schedulers, and its parts")
    scheduler = decoder.note(kind.__new__(kind))
    optimizer, held = decoder.each(nodes, depth)
    if not isinstance(optimizer, torch.optim.Optimizer) or not _are_rates(held):
        raise ValueError("expected the optimizer of a scheduler, and its settings")
    vars(scheduler).update(held, optimizer=optimizer)
    return scheduler


# --- both -------------------------------------------------------------------------------------


def restored(target: Any, fresh: Any) -> Callable[[], None]:
    """Return an action that gives an optimizer or a scheduler what another one holds."""
    if type(target) is not type(fresh):
        raise ValueError("expected an optimizer or a scheduler of the same kind")
    if not hasattr(target, "param_groups"):
        return lambda: vars(target).update(vars(fresh))

    def act() -> None:
        target.defaults, target.param_groups = fresh.defaults, fresh.param_groups
        target.state.clear()
        target.state.update(fresh.state)
        if hasattr(fresh, "_opt_called"):
            target._opt_called = fresh._opt_called

    return act


READERS: dict[str, Callable[["Decoder", list[Any], int], Any]] = {
    "optimizer": _read,
    "scheduler": _read_scheduler,
}
