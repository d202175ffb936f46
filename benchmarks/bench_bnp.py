"""Compare a training step with BN and with BNP: ``python benchmarks/bench_bnp.py``.

The network of the paper's Table 1: two hidden layers of 100 units on 3072 inputs, on one CPU
thread, or on a GPU with ``--device cuda``. BNP is ``bnp.step()`` before SGD, or attached to it.
``--compile`` compiles the models, and ``bnp.step()`` too.
The networks take turns, so that a disturbance of the machine meets them all. The memory is the
largest sum of what torch has allocated at one time in a step. ``--keep FILE`` writes the rounds to
a file; ``bench_bnp.json`` has those that the book quotes.
"""

import argparse
import itertools
import json
import math
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional

from optdl.bnp import BNP

FEATURES, HIDDEN, CLASSES = 3072, 100, 10
KINDS = ("vanilla", "BN", "BNP", "attached")
ROUNDS = 15
BATCHES = {1: 200, 6: 100, 16: 100, 60: 40, 256: 15, 512: 10}
"""Batch size to the steps of one round."""


def network(normalized: bool) -> nn.Sequential:
    """Return the network, with batch normalization before each ReLU if asked."""
    torch.manual_seed(0)
    layers: list[nn.Module] = []
    for inputs in (FEATURES, HIDDEN):
        layers += [nn.Linear(inputs, HIDDEN)]
        layers += [nn.BatchNorm1d(HIDDEN)] if normalized else []
        layers += [nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(HIDDEN, CLASSES))


def stepper(kind: str, device: str, compiled: bool) -> Callable[[torch.Tensor, torch.Tensor], None]:
    """Return a function that takes one training step."""
    model = network(kind == "BN").to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    precondition = BNP(model, check_finite=not compiled).step if kind == "BNP" else None
    if kind == "attached":
        BNP(model).attach(optimizer)
    forward: Callable[[torch.Tensor], torch.Tensor] = model
    if compiled:
        forward = torch.compile(model)
        precondition = precondition and torch.compile(precondition)

    def step(inputs: torch.Tensor, labels: torch.Tensor) -> None:
        optimizer.zero_grad()
        functional.cross_entropy(forward(inputs), labels).backward()
        if precondition is not None:
            precondition()
        optimizer.step()

    return step


def seconds(
    step: Callable[[torch.Tensor, torch.Tensor], None], x: torch.Tensor, y: torch.Tensor
) -> float:
    """Return the time of a step, averaged over a round: on a CPU that of this process alone."""
    clock = time.perf_counter if x.is_cuda else time.process_time
    start = clock()
    for inputs, labels in zip(x, y, strict=True):
        step(inputs, labels)
    if x.is_cuda:
        torch.cuda.synchronize()
    return (clock() - start) / len(x)


def peak_megabytes(
    step: Callable[[torch.Tensor, torch.Tensor], None], x: torch.Tensor, y: torch.Tensor
) -> float:
    """Return the most memory in use during a step, with its parameters and its minibatch."""
    if x.is_cuda:
        torch.cuda.reset_peak_memory_stats()
        step(x[0], y[0])
        return torch.cuda.max_memory_allocated() / 2**20
    with torch.profiler.profile(profile_memory=True) as profile:
        step(x[0], y[0])
    events = [e for e in profile.profiler.kineto_results.events() if e.name() == "[memory]"]
    events.sort(key=lambda event: event.start_ns())
    changes = list(itertools.accumulate(event.nbytes() for event in events))
    # what is known is the memory at the end: parameters, their gradients and the minibatch
    at_the_end = 2 * 4 * sum(p.numel() for p in network(False).parameters()) + x[0].nbytes
    peak = at_the_end + max(changes) - changes[-1]
    return peak / 2**20


def main(arguments: Sequence[str] | None = None) -> None:
    """Print milliseconds a step, their ratios to two networks, and megabytes at its peak."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="write the rounds' seconds here")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    if options.compile:
        # else the vanilla network's code, which has no hooks, would serve BNP's as well
        torch._dynamo.config.skip_nnmodule_hook_guards = False
    kept = {}
    print("batch                 ms /vanilla      /BN       MB")
    for size, steps in BATCHES.items():
        torch.compiler.reset()
        x = torch.rand(steps, size, FEATURES, device=options.device)
        y = torch.randint(0, CLASSES, (steps, size), device=options.device)
        kinds = [kind for kind in KINDS if size > 1 or kind != "BN"]  # one row has no variance
        step = {kind: stepper(kind, options.device, options.compile) for kind in kinds}
        for kind in kinds:
            seconds(step[kind], x, y)  # compiles, and fills the caches
        rounds = [{kind: seconds(step[kind], x, y) for kind in kinds} for _ in range(ROUNDS)]
        kept[size] = {kind: [one[kind] for one in rounds] for kind in kinds}
        ms = {kind: 1e3 * statistics.median(one[kind] for one in rounds) for kind in kinds}
        for kind in kinds:
            ratios = [ms[kind] / ms.get(other, math.nan) for other in ("vanilla", "BN")]
            cells = [ms[kind], *ratios, peak_megabytes(step[kind], x, y)]
            print(f"{size:5}  {kind:8}", "".join(f"{cell:9.3f}" for cell in cells))
    if options.keep:
        about = {"torch": torch.__version__, "device": options.device, "compile": options.compile}
        content = {"about": about, "seconds of a step": kept}
        options.keep.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
