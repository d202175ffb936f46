"""The network of a run, with its method, its optimizer and its schedule."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import torch
from torch import nn

from optdl.batchnorm import BatchNorm, BatchRenorm, FourThingsNorm
from optdl.bnp import BNP
from optdl.experiments.hooks import PartOfP
from optdl.experiments.runs import FULLY_CONNECTED, Run
from optdl.networks import (
    Normalization,
    cnn5,
    fully_connected,
    group_norm,
    resnet18,
    resnet_cifar,
)
from optdl.training import Schedule

__all__ = ["build", "optimizer", "preconditioner", "schedule"]


def build(
    run: Run, shape: tuple[int, int, int], classes: int, seed: int, depth: int | None = None
) -> nn.Module:
    """Return the network of a run, with its initial weights; a ResNet may have another depth."""
    normalization = _normalization(run)
    if run.network in FULLY_CONNECTED:
        pixels = math.prod(shape)
        widths = (pixels, *FULLY_CONNECTED[run.network], classes)
        model = fully_connected(widths, normalization, seed=seed)
        if run.settings.input:
            assert callable(normalization)
            model.insert(1, normalization(pixels))
        return model
    if run.network == "cnn5":
        model = cnn5(shape[0], shape[1], classes, normalization, seed=seed)
        if run.settings.input:
            assert callable(normalization)
            model = nn.Sequential(normalization(shape[0]), *model)
        return model
    scale = run.settings.init_scale or 1.0
    if run.network == "resnet18":
        return resnet18(classes, normalization, scale, seed=seed)
    name, _, version = run.network.partition("-")
    layers = depth or int(name.removeprefix("resnet"))
    return resnet_cifar(layers, classes, normalization, version == "pre", scale, seed=seed)


def _normalization(run: Run) -> Normalization:
    """Return what a method puts into a network; constants are those of the paper's library."""
    settings = run.settings.given()
    moving = {"rho": settings.get("rho", 0.99), "eps": settings.get("eps", 1e-3)}  # TensorFlow's
    limits = {key: settings[key] for key in ("s_max", "d_max") if key in settings}
    four_settings = {key: settings[key] for key in ("groups", "ghost_size") if key in settings}
    share = settings.get("example_share", 0.1)
    resnet = run.network.startswith("resnet")
    makers: dict[str, Normalization] = {
        "vanilla": None,
        "BNP": None,
        "BN": "bn" if resnet else lambda width: BatchNorm(width, **moving),
        "LN": "ln" if run.network == "cnn5" else lambda width: nn.LayerNorm(width, moving["eps"]),
        "GN": group_norm(settings.get("group_size", 4)),
        "BNP+GN": group_norm(settings.get("group_size", 4)),
        "Renorm": lambda width: BatchRenorm(width, **moving, **limits),
        "Four": lambda width: FourThingsNorm(width, **four_settings, example_share=share, **moving),
    }
    return makers[run.method]


def preconditioner(run: Run, model: nn.Module, check_finite: bool) -> list[Any]:
    """Return BNP where the method has it, as a list of hooks; the model is on its device."""
    if not run.method.startswith("BNP"):
        return []
    settings = run.settings.given()
    known = ("rho", "eps1", "eps2", "split", "corrected")
    constants = {key: settings[key] for key in known if key in settings}
    layers = (nn.Linear, nn.Conv2d)
    first = next(name for name, module in model.named_modules() if isinstance(module, layers))
    skip = () if settings.get("first", True) else (first,)
    kind = partial(PartOfP, part=settings["part"]) if "part" in settings else BNP
    return [kind(model, **constants, skip=skip, check_finite=check_finite)]


def optimizer(run: Run, model: nn.Module) -> torch.optim.Optimizer:
    """Return the optimizer of a run; the model is on its device, on a GPU its rate, too."""
    on_gpu = next(model.parameters()).is_cuda
    groups = _parameter_groups(run, model, on_gpu)
    decay = run.settings.weight_decay or 0.0
    if run.optimizer == "adam":
        return torch.optim.Adam(groups, weight_decay=decay, capturable=on_gpu)
    momentum = 0.9 if run.optimizer == "momentum" else 0.0
    return torch.optim.SGD(groups, momentum=momentum, weight_decay=decay, fused=on_gpu or None)


def _parameter_groups(run: Run, model: nn.Module, on_gpu: bool) -> list[dict[str, Any]]:
    """Return the parameters with their rates: all together, or those of the first layer apart."""
    rates, parts = [run.rate], [list(model.parameters())]
    if run.settings.first_rate is not None:
        first = next(module for module in model.modules() if isinstance(module, nn.Linear))
        rates.append(run.settings.first_rate)
        parts.append(list(first.parameters()))
        ids = {id(p) for p in parts[1]}
        parts[0] = [p for p in parts[0] if id(p) not in ids]
    # a CUDA graph reads the rate where it lies
    return [
        {"params": part, "lr": torch.tensor(rate, device="cuda") if on_gpu else rate}
        for part, rate in zip(parts, rates, strict=True)
    ]


def schedule(run: Run, optimizer: torch.optim.Optimizer, steps: int) -> Schedule:
    """Return what changes the rate; an epoch has so many steps."""
    settings = run.settings
    warmup = settings.warmup_steps or (settings.warmup_epochs or 0) * steps
    linear = settings.warmup_steps is None
    return Schedule(optimizer, steps, settings.decay or (), warmup, linear=linear)
