"""Time an epoch's step with BN and with BNP, side by side: ``python benchmarks/bench_bnp.py``.

The network of the paper's Table 1: two hidden layers of 100 units on 3072 inputs, one CPU thread.
The three networks take turns, so that a disturbance of the machine meets them all.
"""

import statistics
import time
from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional

from optdl.bnp import BNP

FEATURES, HIDDEN, CLASSES = 3072, 100, 10
ROUNDS = 15
BATCHES = {16: 100, 256: 15, 512: 10}
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


def stepper(kind: str, x: torch.Tensor, y: torch.Tensor) -> Callable[[], float]:
    """Return a function that trains for one round and returns the seconds of a step."""
    model = network(kind == "BN")
    preconditioner = BNP(model) if kind == "BNP" else None
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def one_round() -> float:
        start = time.perf_counter()
        for inputs, labels in zip(x, y, strict=True):
            optimizer.zero_grad()
            functional.cross_entropy(model(inputs), labels).backward()
            if preconditioner is not None:
                preconditioner.step()
            optimizer.step()
        return (time.perf_counter() - start) / len(x)

    return one_round


def main() -> None:
    """Print milliseconds a step, and the ratio of BNP to BN, for each batch size."""
    torch.set_num_threads(1)
    print("batch   vanilla       BN      BNP   BNP/BN")
    for size, steps in BATCHES.items():
        x = torch.rand(steps, size, FEATURES)
        y = torch.randint(0, CLASSES, (steps, size))
        rounds = {kind: stepper(kind, x, y) for kind in ("vanilla", "BN", "BNP")}
        seconds = [{kind: run() for kind, run in rounds.items()} for _ in range(ROUNDS)]
        median = {kind: 1e3 * statistics.median(s[kind] for s in seconds) for kind in rounds}
        times = "".join(f"{value:9.3f}" for value in median.values())
        print(f"{size:5} {times} {median['BNP'] / median['BN']:8.2f}")


if __name__ == "__main__":
    main()
