"""One step of each optimizer on a million parameters, beside the same step of torch.optim.

Run it alone, on a quiet machine::

    python -m pytest benchmarks/bench_optimizers.py

The table at the end divides the time of each step by that of torch.optim's single-tensor step
(``foreach=False``) from the same run, with as many threads. ``torch`` is a step as it is, on a
tensor, and ``numpy`` one on an array; ``in place`` overwrites the tensors, as torch.optim does;
``unchecked`` does so too, and leaves out the search for NaN in the gradient.

What limits the first: a step that leaves its arguments alone writes to other memory than it reads,
so that four arrays pass through the cache for each sum where three do in place. On one core of a
machine with a cache of 32 MB, ``torch.add(theta, g, alpha=-lr)`` alone took 1.3 times (float32) and
2.3 times (float64) as long as torch's own step of SGD, with the search for NaN 1.8 and 2.7 times,
which is what the step of SGD takes here. What limits the second: the search for NaN is one more
reading of the gradient, half of what a step of SGD takes in float32.
"""

import os

import numpy as np
import pytest
import torch

from optdl.optimizers import (
    SGD,
    AdaDelta,
    AdaGrad,
    Adam,
    AdamW,
    Momentum,
    Nesterov,
    RMSProp,
    RMSPropNesterov,
    torch_equivalent,
)

PARAMETERS = 1_000_000
ROUNDS = {"rounds": 60, "warmup_rounds": 10, "iterations": 1}
LR = 1e-6
UNCHECKED = {"in_place": True, "check_finite": False}

METHODS = {
    "SGD": (SGD(LR), None),
    "Momentum": (Momentum(LR), None),
    "Nesterov": (Nesterov(LR), None),
    "AdaGrad": (AdaGrad(LR), None),
    # torch adds its eps outside the root, and has momentum without Nesterov: as much work
    "RMSProp": (RMSProp(LR), ("RMSprop", {"lr": LR, "alpha": 0.9})),
    "RMSPropNesterov": (
        RMSPropNesterov(LR),
        ("RMSprop", {"lr": LR, "alpha": 0.9, "momentum": 0.9}),
    ),
    "AdaDelta": (AdaDelta(1.0), None),
    "Adam": (Adam(LR), None),
    "AdamW": (AdamW(LR), None),
}


@pytest.fixture(params=[n for n in (1, 2) if n <= (os.cpu_count() or 1)], ids="threads={}".format)
def threads(request):
    """Let torch use this many threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


@pytest.fixture(params=["float32", "float64"])
def rows(request):
    """Return parameters and a gradient."""
    rng = np.random.default_rng(0)
    return [rng.normal(size=PARAMETERS).astype(request.param) for _ in range(2)]


@pytest.mark.parametrize("kind", ["torch.optim", "torch", "in place", "unchecked", "numpy"])
@pytest.mark.parametrize("method", METHODS)
def test_step(benchmark, method, kind, rows, threads):
    """Measure one step."""
    benchmark.group = f"{method}, {rows[0].dtype}, threads={threads}"
    benchmark.extra_info.update(method=method, kind=kind, dtype=str(rows[0].dtype), threads=threads)
    opt, other = METHODS[method]
    if kind == "torch.optim":
        step = torch_step(*(other or torch_equivalent(opt)), *map(torch.from_numpy, rows))
    else:
        arrays = rows if kind == "numpy" else map(torch.from_numpy, rows)
        options = {"in place": {"in_place": True}, "unchecked": UNCHECKED}.get(kind, {})
        step = our_step(opt, *arrays, options)
    benchmark.pedantic(step, **ROUNDS)


def torch_step(name, settings, theta, g):
    """Return the step of torch.optim."""
    theta = theta.clone().requires_grad_()
    theta.grad = g
    return getattr(torch.optim, name)([theta], foreach=False, **settings).step


def our_step(opt, theta, g, options):
    """Return our step, as a training loop takes it: the new state replaces the old one."""
    now = [+theta, opt.init(theta)]

    def step():
        now[:] = opt.step(*now, lambda theta: g, **options)

    return step
