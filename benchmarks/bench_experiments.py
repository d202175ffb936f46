"""Compare the experiments' training with a plain loop: ``python benchmarks/bench_experiments.py``.

The plain loop is what a tutorial shows: a ``DataLoader`` over the images, eager PyTorch,
``loss.item()`` in each step. Ours is what the experiments run: data on the device, and on a GPU
recorded steps, with autocast and channels last for the ResNet. Both take turns; the numbers are
images a second in the best of the rounds: what disturbs a machine only slows it down. ::

    python benchmarks/bench_experiments.py        # fully connected, minibatches of 60 and 6
    python benchmarks/bench_experiments.py --network cnn5
    python benchmarks/bench_experiments.py --device cuda --network resnet110
"""

import argparse
import time
from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from optdl.bnp import BNP
from optdl.networks import cnn5, fully_connected, resnet_cifar
from optdl.training import graphed

WIDTHS, ROUNDS = (3072, 100, 100, 100, 10), 15
BATCHES = {"fc3": (60, 6), "cnn5": (128, 2), "resnet110": (128,)}
STEPS = {60: 40, 6: 200, 128: 12, 2: 100}
METHODS = ("vanilla", "BN", "BNP")
LOSS = functional.cross_entropy


def network(name: str, method: str, device: str) -> nn.Module:
    """Return a network; the library's own batch normalization serves both sides."""
    normalization = "bn" if method == "BN" else None
    makers: dict[str, Callable[[], nn.Module]] = {
        "fc3": lambda: fully_connected(WIDTHS, normalization),
        # the name means the layer for images, which the one after the dense layer is not
        "cnn5": lambda: cnn5(),
        "resnet110": lambda: resnet_cifar(110, 10, normalization),
    }
    return makers[name]().to(device)


def plain(name: str, method: str, batch: int, x: torch.Tensor, y: torch.Tensor, device: str):
    """Return a round of the plain loop; it returns its images a second."""
    model = network(name, method, device)
    bnp = BNP(model) if method == "BNP" else None
    sgd = torch.optim.SGD(model.parameters(), lr=1e-3)
    images = x if name == "fc3" else x.view(-1, 3, 32, 32)
    loader = DataLoader(TensorDataset(images, y), batch, shuffle=True, drop_last=True)

    def once() -> float:
        began, steps, total = time.perf_counter(), 0, 0.0
        for inputs, labels in loader:
            sgd.zero_grad()
            loss = LOSS(model(inputs.to(device)), labels.to(device))
            loss.backward()
            if bnp is not None:
                bnp.step()
            sgd.step()
            total += loss.item()
            if (steps := steps + 1) == STEPS[batch]:
                break
        return steps * batch / (time.perf_counter() - began)

    return once


def ours(name: str, method: str, batch: int, x: torch.Tensor, y: torch.Tensor, device: str):
    """Return a round of the experiments' loop; it returns its images a second."""
    x, y, on_gpu = x.to(device), y.to(device), device.startswith("cuda")
    images = x if name == "fc3" else x.view(-1, 3, 32, 32)
    model = network(name, method, device).to(memory_format=torch.channels_last)
    bnp = BNP(model, check_finite=not on_gpu) if method == "BNP" else None
    sgd = torch.optim.SGD(model.parameters(), lr=1e-3, fused=on_gpu or None)
    narrow = on_gpu and name == "resnet110"

    def step(rows: torch.Tensor) -> torch.Tensor:
        sgd.zero_grad()
        with torch.autocast("cuda" if on_gpu else "cpu", torch.bfloat16, enabled=narrow):
            scores = model(images[rows])
        loss = LOSS(scores.float(), y[rows])
        loss.backward()
        if bnp is not None:
            bnp.step()
        sgd.step()
        return loss.detach()

    take = graphed(step)

    def once() -> float:
        began, losses = time.perf_counter(), []
        for _ in range(STEPS[batch]):
            losses.append(take(torch.randint(len(y), (batch,), device=device)).clone())
        torch.stack(losses).sum().item()
        return STEPS[batch] * batch / (time.perf_counter() - began)

    return once


def main() -> None:
    """Print images a second and the ratio, for each minibatch size and method."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--network", choices=BATCHES, default="fc3")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    x, y = torch.rand(10_000, 3072), torch.randint(10, (10_000,))
    print("network    batch  method     plain/s      ours/s   ratio")
    for batch in BATCHES[options.network]:
        for method in METHODS:
            if (options.network, method) == ("cnn5", "BN"):
                continue
            sides = [side(options.network, method, batch, x, y, options.device)
                     for side in (plain, ours)]  # fmt: skip
            rounds = [[side() for side in sides] for _ in range(ROUNDS + 1)][1:]
            speeds = [max(speed) for speed in zip(*rounds, strict=True)]
            ratio = speeds[1] / speeds[0]
            print(
                f"{options.network:10} {batch:5}  {method:8} {speeds[0]:9.0f} {speeds[1]:11.0f} "
                f"{ratio:7.2f}"
            )


if __name__ == "__main__":
    main()
