"""Fig. 9 and Table 1: the time of an epoch with BN and with BNP, minibatches of 16, 256 and 512.

Two hidden layers of 100 units on CIFAR-10, the ordinary way: one seed, autograd, torch's own BN.
The two methods take turns, epoch by epoch.
"""

import itertools
import logging
import math
import time

import numpy as np
import torch
from matplotlib import pyplot as plt
from torch.nn import functional
from tqdm.auto import tqdm

from optdl.bnp import BNP
from optdl.experiments import Experiment, Panel, Run, models
from optdl.experiments.experiment import is_done
from optdl.experiments.report import draw_spreads
from optdl.experiments.runs import FULLY_CONNECTED
from optdl.networks import fully_connected
from optdl.plotting import use_style
from optdl.records import Record
from optdl.training import graphed

PAPER = {16: (16.08, 16.69), 256: (10.81, 10.70), 512: (10.67, 10.57)}
PANELS = [
    Panel(
        f"minibatches of {batch}",
        [Run(name, "cifar10", "fc2", name, batch, 0.01, epochs=20) for name in ("BN", "BNP")],
    )
    for batch in PAPER
]


def time_in_turns(experiment, ways, turns, seed=0, steps=None, dtype=None):
    """Time epochs of several runs, which take turns, and return the records, written at once.

    A disturbance of the machine then meets all of them. ``ways`` maps each run to the way of its
    :func:`plain_epoch`. An epoch has all its ``steps``, the first ones, or with -1 all but the
    last. The curve is ``epoch_seconds``; a run that fails ends, and the others go on.
    """
    first, device, epochs = next(iter(ways)), experiment.device, {}
    parts = experiment.parts(first)
    x, y = (torch.from_numpy(each).to(device) for each in (parts.train.x, parts.train.y))
    for run, way in ways.items():
        model = network(run, parts, seed, experiment.options.smoke).to(device)
        model.to(memory_format=torch.channels_last)
        epochs[run] = plain_epoch(run, model, x, y, way, dtype)
    records = {run: Record({"epoch_seconds": []}, run.config(), seed) for run in ways}
    for turn in turns:
        order = torch.randperm(len(y), generator=torch.Generator().manual_seed(turn))
        rows = torch.split(order.to(device), first.batch)[:steps]
        for run, record in list(records.items()):
            try:
                if turn == 0:
                    epochs[run]((5 * rows)[:5])  # libraries start; a way compiles, or captures
                record.curves["epoch_seconds"].append(epochs[run](rows))
            except Exception as error:  # of a compiler, say
                logging.warning("%s: %s: %s", run.name, type(error).__name__, error)
                del records[run]
                continue
            record.config |= {"epochs": turn + 1, "steps": len(rows)}
            record.config["precision"] = str(dtype or x.dtype)
            record.stop = f"all {turn + 1} epochs"
            experiment.save_record(record, experiment.file(run, seed))
    return records


def network(run, parts, seed, smoke):
    """Return the network of a run; if it is fully connected, with torch's own BN."""
    if run.network not in FULLY_CONNECTED:
        return models.build(run, parts.shape, parts.classes, seed, 8 if smoke else None)
    widths = (math.prod(parts.shape), *FULLY_CONNECTED[run.network], parts.classes)
    return fully_connected(widths, "bn" if run.method == "BN" else None, seed=seed)


def eager(function):
    """Leave a function as it is."""
    return function


def plain_epoch(run, model, x, y, way=eager, dtype=None):
    """Return an epoch of ordinary training; it takes the rows of each minibatch and times itself.

    ``way`` is ``torch.compile``, which compiles the network and BNP's step; ``graphed``, which
    makes one CUDA graph of the whole step; or ``eager``.
    """
    whole = way is graphed
    bnp = BNP(model, check_finite=False) if run.method.startswith("BNP") else None
    optimizer = torch.optim.SGD(model.parameters(), run.rate)
    forward = model if whole else way(model)
    precondition = bnp and (bnp.step if whole else way(bnp.step))

    def step(rows):
        optimizer.zero_grad()
        with torch.autocast(x.device.type, dtype, enabled=dtype is not None):
            scores = forward(x[rows])
        loss = functional.cross_entropy(scores.float(), y[rows])
        loss.backward()
        if precondition:
            precondition()
        optimizer.step()
        return loss.detach()

    advance = way(step) if whole else step

    def epoch(parts):
        began = time.perf_counter()
        for rows in parts:
            advance(rows)
        if x.is_cuda:
            torch.cuda.synchronize()
        return time.perf_counter() - began

    return epoch


def table(experiment):
    """Return Table 1 as rows: the mean time of an epoch, ours, and the ratios, the paper's last."""
    records, rows = experiment.records(), []
    for panel, paper in zip(experiment.panels, PAPER.values(), strict=False):
        bn, bnp = (
            np.array([r.curves["epoch_seconds"] for r in records[run.name]]) for run in panel.runs
        )
        ratios = np.median(bnp / bn, axis=1)
        ratio = f"{np.median(ratios):.2f} ({ratios.min():.2f}–{ratios.max():.2f})"
        times = f"{bn.mean():.2f}", f"{bnp.mean():.2f}"
        rows.append([f"{panel.runs[0].batch}", *times, ratio, f"{paper[1] / paper[0]:.2f}"])
    return rows


def draw_times(experiment, axes):
    """Draw the time since the start, mean and range, for each size of the minibatch."""
    records = experiment.records()
    for record in itertools.chain(*records.values()):
        record.curves["seconds"] = np.cumsum(record.curves["epoch_seconds"])
    for ax, panel in zip(axes, experiment.panels, strict=True):
        draw_spreads(ax, [(run, records[run.name]) for run in panel.runs], "seconds", "seconds")
        ax.set(title=panel.title, ylim=(0, None))


def main():
    """Time what is missing, and draw the times."""
    experiment = Experiment(__file__, PANELS, description=__doc__)
    panels = [] if experiment.options.draw else experiment.panels
    for panel, seed in itertools.product(panels, experiment.seeds):
        if not all(is_done(experiment.file(run, seed), run) for run in panel.runs):
            turns = tqdm(range(panel.runs[0].epochs), desc=f"{panel.title}, seed {seed}")
            time_in_turns(experiment, dict.fromkeys(panel.runs, eager), turns, seed)
    print("batch, BN/s, BNP/s, ratio, the paper's ratio on a V100", *table(experiment), sep="\n")
    use_style()
    figure, axes = plt.subplots(1, len(PANELS), figsize=(13, 3.6))
    draw_times(experiment, axes)
    experiment.save(figure)


if __name__ == "__main__":
    main()
