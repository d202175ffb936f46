"""The network of a run, with its method, its optimizer and its schedule."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import torch
from torch import nn

from optdl.batchnorm import BatchNorm, BatchRenorm, FourThingsNorm
from optdl.bnp import BNP
from optdl.experiments.hooks import Averages, PartOfP
from optdl.experiments.runs import FULLY_CONNECTED, RESIDUAL, Run
from optdl.networks import Normalization, cnn5, fully_connected, group_norm, resnet18, resnet_cifar
from optdl.training import Schedule

__all__ = ["build", "optimizer", "preconditioner", "schedule"]


def build(
    run: Run, shape: tuple[int, int, int], classes: int, seed: int, depth: int | None = None
) -> nn.Module:
    """Return the network of a run, with its initial weights; a ResNet may have another depth."""
    normalization, own = _normalization(run), run.settings
    if run.network in FULLY_CONNECTED:
        inputs, place = math.prod(shape), 1  # after the layer that flattens
        widths = (inputs, *FULLY_CONNECTED[run.network], classes)
        model = fully_connected(widths, normalization, seed=seed)
    elif run.network == "cnn5":
        inputs, place = shape[0], 0
        model = cnn5(inputs, shape[1], classes, normalization, seed=seed)
    else:
        scale = own.get("init_scale", 1.0)
        if run.network == "resnet18":
            return resnet18(classes, normalization, scale, seed=seed)
        name, _, version = run.network.partition("-")
        layers = depth or int(name.removeprefix("resnet"))
        return resnet_cifar(layers, classes, normalization, version == "pre", scale, seed=seed)
    if own.get("input"):
        assert callable(normalization)
        model.insert(place, normalization(inputs))
    return model


def _normalization(run: Run) -> Normalization:
    """Return what a method puts into a network; constants are those of the paper's library."""

    def given(*names: str) -> dict[str, Any]:
        return {name: run.settings[name] for name in names if name in run.settings}

    moving: dict[str, Any] = {"rho": 0.99, "eps": 1e-3}  # TensorFlow's
    four = {"example_share": 0.1, **moving} | given("groups", "ghost_size")
    groups = group_norm(run.settings.get("group_size", 4))
    makers: dict[str, Normalization] = {
        "BN": "bn" if run.network in RESIDUAL else partial(BatchNorm, **moving),
        "LN": "ln" if run.network == "cnn5" else partial(nn.LayerNorm, eps=moving["eps"]),
        "GN": groups,
        "BNP+GN": groups,
        "Renorm": partial(BatchRenorm, **moving, **given("s_max", "d_max")),
        "Four": partial(FourThingsNorm, **four),
    }
    return makers.get(run.method)


def preconditioner(run: Run, model: nn.Module, check_finite: bool) -> list[Any]:
    """Return BNP, or its averages, as a list of hooks; the model is on its device."""
    if not run.method.startswith("BNP"):
        return [Averages(model)] if run.watch_every else []
    own = {key: run.settings[key] for key in run.settings.keys() & {"split", "corrected", "part"}}
    layers = (nn.Linear, nn.Conv2d)
    first = next(name for name, module in model.named_modules() if isinstance(module, layers))
    skip = () if run.settings.get("first", True) else (first,)
    return [(PartOfP if "part" in own else BNP)(model, **own, skip=skip, check_finite=check_finite)]


def optimizer(run: Run, model: nn.Module) -> torch.optim.Optimizer:
    """Return the optimizer of a run; the model is on its device, on a GPU its rate, too."""
    on_gpu = next(model.parameters()).is_cuda
    rates, parts = [run.rate], [list(model.parameters())]
    if first_rate := run.settings.get("first_rate"):
        first = next(module for module in model.modules() if isinstance(module, nn.Linear))
        own = set(first.parameters())
        rates, parts = [run.rate, first_rate], [[p for p in parts[0] if p not in own], [*own]]
    groups: list[dict[str, Any]] = [
        # a CUDA graph reads the rate where it lies
        {"params": part, "lr": torch.tensor(rate, device="cuda") if on_gpu else rate}
        for part, rate in zip(parts, rates, strict=True)
    ]
    decay = run.settings.get("weight_decay", 0.0)
    if run.optimizer == "adam":
        return torch.optim.Adam(groups, weight_decay=decay, capturable=on_gpu)
    momentum = 0.9 if run.optimizer == "momentum" else 0.0
    return torch.optim.SGD(groups, momentum=momentum, weight_decay=decay, fused=on_gpu or None)


def schedule(run: Run, optimizer: torch.optim.Optimizer, steps: int) -> Schedule:
    """Return what changes the rate; an epoch has so many steps."""
    own = run.settings
    warmup = own.get("warmup_steps", own.get("warmup_epochs", 0) * steps)
    linear = "warmup_steps" not in own
    return Schedule(optimizer, steps, own.get("decay", ()), warmup, linear=linear)
