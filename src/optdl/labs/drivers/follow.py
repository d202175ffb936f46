"""What drivers have in common: they do something with an answer, and return what came of it.

A driver makes an object, calls it, and returns what is to be compared. It runs in the process of
the student, which has no blocks, since they hold the answers.
"""

from __future__ import annotations

import contextlib
import operator
import pkgutil
from collections.abc import Callable, Iterator, Sequence
from functools import cache, wraps
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

__all__ = ["HOOKS", "STILL", "Operations", "are_same", "driver", "fill", "hooks", "mode", "type_of"]

HOOKS = "the number of hooks, of which one was there before"
STILL = "whether the parameters are the tensors that they were, and still learn"
"""The names of what :func:`hooks` and :func:`are_same` return."""


def driver(parts: str, closed: str = "") -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make a driver of ``function(answer, *case)``, as its decorator.

    It gets arrays as tensors, and the tensors that it returns come back as arrays. What a student
    returned is to be returned as it is: the check says what is wrong with it, and knows what was
    expected. The ``parts`` of what is returned have names, as those of an exercise do. ``closed``
    are classes and functions, with semicolons between them, that would be the answer, such as
    ``torch.optim.SGD``. Whoever uses one is told so, also through a subclass or another name.
    """

    def of(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def follow(answer: Any, *values: Any, is_open: bool = not closed) -> Any:
            with torch.enable_grad(), _closed([] if is_open else closed.split("; ")):
                result = _with_arrays(function(answer, *map(_with_tensors, values)))
                if not torch.is_grad_enabled():
                    raise RuntimeError("autograd stays off; use `with torch.no_grad():`")
                return result

        vars(follow)["parts"] = parts
        return follow

    return of


@contextlib.contextmanager
def _closed(names: Sequence[str]) -> Iterator[None]:
    with contextlib.ExitStack() as opened:
        for name in names:
            closed, within = map(pkgutil.resolve_name, (name, name.rpartition(".")[0]))
            # its methods and not its name, which a notebook may have imported already
            methods = [(closed, one) for one in ("__init__", "step", "forward")]
            places = methods if isinstance(closed, type) else [(within, closed.__name__)]
            for place, attribute in places:
                if attribute in vars(place):
                    opened.callback(setattr, place, attribute, vars(place)[attribute])
                else:  # inherited
                    opened.callback(delattr, place, attribute)
                setattr(place, attribute, _refusal(name))
        yield


@cache
def _refusal(name: str) -> Callable[..., Any]:
    def refuse(*_: Any, **__: Any) -> None:
        raise RuntimeError(f"{name} is what this exercise asks you to write: do without it")

    return refuse


def _with_tensors(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return type(value)(map(_with_tensors, value))
    return torch.tensor(value) if isinstance(value, np.ndarray) else value


def _with_arrays(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return (list if isinstance(value, list) else tuple)(map(_with_arrays, value))
    if isinstance(value, dict):
        return {key: _with_arrays(item) for key, item in value.items()}
    # a copy, as a further step may change the tensor
    return value.detach().numpy().copy() if isinstance(value, torch.Tensor) else value


def type_of(value: Any) -> str:
    """Return the type of a value, and of what a list or dict holds, in words.

    Examples
    --------
    >>> type_of([0.5, np.float64(1)]), type_of({"a": torch.tensor(1.0)}), type_of(())
    ('list of float', 'dict of Tensor', 'tuple')
    """
    # the float64 of NumPy is a float, too
    name = "float" if isinstance(value, float) else type(value).__name__
    items = value.values() if isinstance(value, dict) else value
    if not isinstance(value, dict | list | tuple) or not items:
        return name
    return f"{name} of {' and '.join(sorted(set(map(type_of, items))))}"


def mode(model: nn.Module) -> str:
    """Return in which mode a network is."""
    modes = {module.training for module in model.modules()}
    return "mixed" if len(modes) == 2 else "training" if True in modes else "evaluation"


def hooks(model: nn.Module) -> int:
    """Return how many forward hooks and pre-hooks a network has."""
    return sum(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.modules())


def are_same(before: Sequence[nn.Parameter], model: nn.Module) -> bool:
    """Return whether a network's parameters are the tensors that they were, and still learn."""
    after = list(model.parameters())
    same = len(before) == len(after) and all(map(operator.is_, before, after))
    return same and all(value.requires_grad for value in after)


@torch.no_grad()
def fill(model: nn.Module, seed: int) -> nn.Module:
    """Give a network weights around 0, and biases and running averages between 0.2 and 1."""
    generator = torch.Generator().manual_seed(seed)
    for value in model.state_dict().values():
        if value.is_floating_point():
            value.uniform_(0.2, 1, generator=generator).sub_(0.6 if value.ndim > 1 else 0)
    return model


class Operations(TorchDispatchMode):
    """Count the operations of torch that run meanwhile, and note what comes to ``meta``."""

    def __init__(self) -> None:
        super().__init__()
        self.count, self.moves = 0, list[bool]()
        """For each tensor that comes from another device, whether it comes non_blocking."""

    def __torch_dispatch__(
        self, operation: Any, types: Any, arguments: Any = (), options: Any = None
    ) -> Any:
        self.count += 1
        options = options or {}
        comes = str(options.get("device")) == "meta" and "_to_copy" in str(operation)
        if comes and not arguments[0].is_meta:
            self.moves.append(options.get("non_blocking", False))
        return operation(*arguments, **options)
