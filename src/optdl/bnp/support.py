"""Which layers BNP can handle, and what it says when it cannot."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, get_args

import torch
from torch import nn
from torch.nn.modules.lazy import LazyModuleMixin
from torch.nn.utils.parametrize import is_parametrized

from optdl.bnp.layers import Convolution, Dense

REFUSED: tuple[tuple[type, str], ...] = (
    (LazyModuleMixin, "run one batch through the model first: its shapes are open"),
    (nn.MultiheadAttention, "it uses its weights without calling its layers"),
    (nn.modules.conv._ConvTransposeNd, "its columns are not inputs under a window"),
    (nn.Bilinear, "its output is not linear in one input"),
    (nn.RNNBase, "it uses its weights at every time without calling a layer"),
    (nn.RNNCellBase, "it holds two layers in one"),
)
"""Kinds of modules with a weight that BNP has no transformation for, and why."""


def supported_layers(
    model: nn.Module, skip: Sequence[str | type[nn.Module]] = ()
) -> Iterator[tuple[str, Dense | Convolution]]:
    """Yield the dense and convolutional layers with their names; refuse what BNP cannot handle."""
    _require_whole(model)
    skipped = selected(model, skip)
    users = _users(model)
    count = 0
    for name, module in model.named_modules():
        if id(module) in skipped:
            continue
        if reason := _reason(module):
            raise ValueError(_refusal(name, module, reason))
        if not isinstance(module, Dense | Convolution):
            continue
        for kind, parameter in module._parameters.items():
            _require_alone(name, module, kind, users.get(_place(parameter), []))
        count += 1
        yield name, module
    if not count:
        raise ValueError("expected a model with nn.Linear or nn.Conv1d to 3d layers, found none")


def _users(model: nn.Module) -> dict[int, list[tuple[str, nn.Module]]]:
    """Return, for each parameter, the modules that hold it."""
    users: dict[int, list[tuple[str, nn.Module]]] = {}
    for name, module in model.named_modules():
        for parameter in module._parameters.values():
            if parameter is not None:
                users.setdefault(_place(parameter), []).append((name, module))
    return users


def _place(parameter: Any) -> int:
    """Return where the numbers of a parameter lie: two may share them, as ``.data`` can be set."""
    plain = type(parameter) is nn.Parameter and type(parameter.data) is torch.Tensor
    return (parameter.data_ptr() if plain else 0) or id(parameter)


def _require_alone(
    name: str, module: nn.Module, kind: str, users: Sequence[tuple[str, nn.Module]]
) -> None:
    """Refuse a parameter with several users: its gradient is a sum, over inputs of each of them.

    The advice names all layers that BNP would precondition: to leave out one alone would apply the
    statistics of another to the sum.
    """
    others = [other for other, user in users if user is not module]
    if others:
        plain = tuple(other for other, user in users if isinstance(user, Dense | Convolution))
        raise ValueError(
            f"BNP cannot precondition {name!r}: it shares its {kind} with "
            f"{', '.join(map(repr, others))}, so the gradient is a sum over the inputs of all of "
            f"them. To leave it with its plain gradient: BNP(model, skip={plain})"
        )


def selected(model: nn.Module, skip: Sequence[str | type[nn.Module]]) -> set[int]:
    """Return the ids of some modules and all they contain; a type stands for all of its kind."""
    if isinstance(skip, str | type):
        raise ValueError(f"skip must be a sequence of names and types; got {skip!r}: add a comma")
    # a module that stands at two places may be named by either of them
    modules = dict(model.named_modules(remove_duplicate=False))
    names = [part for part in skip if not isinstance(part, type)]
    if unknown := [name for name in names if name not in modules]:
        raise ValueError(f"skip names no module of this model: {unknown}")
    types = tuple(part for part in skip if isinstance(part, type))
    roots = [module for name, module in modules.items() if name in names]
    roots += [module for module in modules.values() if isinstance(module, types)]
    return {id(module) for root in roots for module in root.modules()}


def _require_whole(model: nn.Module) -> None:
    """Refuse models of which no process or device has the whole."""
    for module in model.modules():
        # by name: to import FSDP takes long, and few have it
        sharded = any(kind.__name__ == "FullyShardedDataParallel" for kind in type(module).__mro__)
        if sharded or any(hasattr(p, "device_mesh") for p in module.parameters(recurse=False)):
            raise ValueError(
                "BNP cannot precondition weights that lie in parts on several devices (FSDP, "
                "DTensor): a row of the weight must be in one place. Use DistributedDataParallel"
            )
        if isinstance(module, nn.DataParallel) and len(module.device_ids) > 1:
            raise ValueError(
                "BNP cannot precondition nn.DataParallel on several devices: its layers are "
                "copied in each forward pass. Use DistributedDataParallel"
            )


def _reason(module: nn.Module) -> str:
    """Return why a module cannot be preconditioned, or an empty string."""
    if isinstance(module, nn.modules.conv._ConvNd) and not isinstance(
        module, Convolution | nn.modules.conv._ConvTransposeNd
    ):
        return "only nn.Conv1d, nn.Conv2d and nn.Conv3d have Algorithm 3"
    if reason := next((reason for kind, reason in REFUSED if isinstance(module, kind)), ""):
        return reason
    kind = next((one for one in (Dense, *get_args(Convolution)) if isinstance(module, one)), None)
    if kind is None:
        return ""
    weight: Any = module._parameters.get("weight")
    if weight is None:
        return "its weight is computed from other parameters"
    if module.bias is not None and "bias" not in module._parameters:
        return "its bias is computed from other parameters"
    if weight.is_complex():
        return "its weight is complex"
    if weight.is_meta:
        return "its weight has no data yet: make the BNP after model.to_empty(device=...)"
    own = [name for name in ("forward", "_conv_forward") if hasattr(kind, name)]
    if "forward" in vars(module) or any(
        getattr(type(module), name) is not getattr(kind, name) for name in own
    ):
        return (
            f"its forward is not that of nn.{kind.__name__}, so its weight may be masked or scaled"
        )
    return ""


def _refusal(name: str, module: nn.Module, reason: str) -> str:
    kind = type(module).__name__
    home = f"{type(module).__module__}." if hasattr(nn, kind) else ""  # another one of that name
    given = f"nn.{kind}" if getattr(nn, kind, None) is type(module) else home + kind
    # a parametrized class has a single instance, and without nn.Linear there is nothing to do
    usual = type(module) in (Dense, *get_args(Convolution)) or is_parametrized(module)
    alike = "" if usual else f"; all of its kind: BNP(model, skip=({given},))"
    return (
        f"BNP cannot precondition {name or 'the model'!r} ({kind}): {reason}. "
        f"To leave it with its plain gradient: BNP(model, skip=({name!r},)){alike}"
    )
