"""How long an epoch takes with one method and with another, in turns."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn import functional
from tqdm.auto import tqdm

from optdl.bnp import BNP
from optdl.experiments.experiment import Experiment, is_done, plain
from optdl.experiments.runs import FULLY_CONNECTED, Run
from optdl.networks import fully_connected
from optdl.records import Record

__all__ = ["perform_in_turns"]

Epoch = Callable[[Tensor, Tensor, Sequence[Tensor]], float]
"""Features, labels, and the rows of each minibatch to the seconds that an epoch took."""


def perform_in_turns(experiment: Experiment) -> dict[str, list[Record]]:
    """Time the epochs of the runs of each panel, which take turns, and return the records.

    A disturbance of the machine then meets all of them. The curve is ``epoch_seconds``.
    """
    for panel in [] if experiment.options.draw else experiment.panels:
        for seed in experiment.seeds:
            files = [experiment.file(run, seed) for run in panel.runs]
            if all(is_done(file, run) for file, run in zip(files, panel.runs, strict=True)):
                continue
            seconds = _time(experiment, panel.runs, seed)
            for file, run, each in zip(files, panel.runs, seconds, strict=True):
                curves = {"epoch_seconds": each}
                record = Record(curves, plain(run), seed, f"all {len(each)} epochs")
                experiment.keep(record, file)
    return experiment.records()


def _time(experiment: Experiment, runs: Sequence[Run], seed: int) -> list[list[float]]:
    parts, device = experiment.parts(runs[0]), experiment.device
    x = torch.from_numpy(parts.train.x).to(device)
    y = torch.from_numpy(parts.train.y).to(device)
    widths = (x.shape[1], *FULLY_CONNECTED[runs[0].network], parts.classes)
    epochs = [_plain_epoch(run, widths, seed, device) for run in runs]
    seconds: list[list[float]] = [[] for _ in runs]
    for number in tqdm(range(runs[0].epochs), desc=f"{runs[0].batch}, seed {seed}"):
        order = torch.randperm(len(y), generator=torch.Generator().manual_seed(number))
        rows = torch.split(order.to(device), runs[0].batch)
        for epoch, times in zip(epochs, seconds, strict=True):
            if number == 0:
                epoch(x, y, rows[:3])  # libraries start
            times.append(epoch(x, y, rows))
    return seconds


def _plain_epoch(run: Run, widths: Sequence[int], seed: int, device: str) -> Epoch:
    """Return an epoch of ordinary training of a fully connected network; it returns its seconds."""
    model = fully_connected(widths, "bn" if run.method == "BN" else None, seed=seed).to(device)
    bnp = BNP(model, check_finite=False) if run.method == "BNP" else None
    optimizer = torch.optim.SGD(model.parameters(), run.rate)

    def epoch(x: Tensor, y: Tensor, parts: Sequence[Tensor]) -> float:
        began = time.perf_counter()
        for rows in parts:
            optimizer.zero_grad()
            loss = functional.cross_entropy(model(x[rows]), y[rows])
            loss.backward()  # type: ignore[no-untyped-call]
            if bnp is not None:
                bnp.step()
            optimizer.step()
        if x.is_cuda:
            torch.cuda.synchronize()
        return time.perf_counter() - began

    return epoch
