"""Which layers BNP can handle, and what it says when it cannot."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torch import nn
from torch.nn.modules.lazy import LazyModuleMixin

from optdl.bnp.taps import Convolution, Dense

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
    """Yield the dense and convolutional layers with their names; refuse what BNP cannot handle.

    Raises
    ------
    ValueError
        If a layer of another kind has weights of its own, if two layers share a weight, or a
        weight is computed from other parameters or lies in parts on several devices, or nothing is
        left to precondition.
    """
    _require_whole(model)
    skipped = _skipped(model, skip)
    owners: dict[int, str] = {}
    count = 0
    for name, module in model.named_modules():
        if any(name == other or name.startswith(f"{other}.") for other in skipped):
            continue
        plain = isinstance(module, Dense | Convolution)
        if reason := _reason(module):
            raise ValueError(_refusal(name, module, reason))
        weight = module._parameters.get("weight")
        if plain and weight is None:
            raise ValueError(_refusal(name, module, "its weight is computed from other parameters"))
        if weight is None or not (plain or isinstance(module, nn.Embedding)):
            continue
        if id(weight) in owners:
            raise ValueError(
                _refusal(name, module, f"it shares its weight with {owners[id(weight)]!r}")
            )
        owners[id(weight)] = name
        if isinstance(module, Dense | Convolution):
            count += 1
            yield name, module
    if not count:
        raise ValueError("expected a model with nn.Linear or nn.Conv1d to 3d layers, found none")


def _skipped(model: nn.Module, skip: Sequence[str | type[nn.Module]]) -> list[str]:
    """Return the names of the modules to skip; a type stands for all modules of its kind."""
    if isinstance(skip, str | type):
        raise ValueError(f"skip must be a sequence of names and types; got {skip!r}: add a comma")
    modules = dict(model.named_modules())
    names = [part for part in skip if not isinstance(part, type)]
    if unknown := [name for name in names if name not in modules]:
        raise ValueError(f"skip names no module of this model: {unknown}")
    types = tuple(part for part in skip if isinstance(part, type))
    return names + [name for name, module in modules.items() if isinstance(module, types)]


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
    return next((reason for kind, reason in REFUSED if isinstance(module, kind)), "")


def _refusal(name: str, module: nn.Module, reason: str) -> str:
    kind = type(module).__name__
    given = f"nn.{kind}" if getattr(nn, kind, None) is type(module) else kind
    return (
        f"BNP cannot precondition {name or 'the model'!r} ({kind}): {reason}. "
        f"To leave it with its plain gradient: BNP(model, skip=({name!r},)); "
        f"all of its kind: BNP(model, skip=({given},))"
    )
