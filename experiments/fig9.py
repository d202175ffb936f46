"""Fig. 9 and Table 1: the time of an epoch with BN and with BNP, minibatches of 16, 256 and 512.

Two hidden layers of 100 units on CIFAR-10, the ordinary way: one seed, autograd, torch's own BN.
The two methods take turns, epoch by epoch.
"""

import itertools
import math
import time

import numpy as np
import torch
from matplotlib import pyplot as plt
from torch.nn import functional
from tqdm.auto import tqdm

from optdl.bnp import BNP
from optdl.experiments import Experiment, Panel, Run
from optdl.experiments.experiment import is_done
from optdl.experiments.runs import FULLY_CONNECTED
from optdl.networks import fully_connected
from optdl.plotting import COLORS, DASHES, plot_curves, use_style
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


def perform_in_turns(experiment):
    """Time the epochs of the runs of each panel, which take turns, and keep the records.

    A disturbance of the machine then meets all of them. The curve is ``epoch_seconds``.
    """
    panels = [] if experiment.options.draw else experiment.panels
    for panel, seed in itertools.product(panels, experiment.seeds):
        if all(is_done(experiment.file(run, seed), run) for run in panel.runs):
            continue
        parts, device, first = experiment.parts(panel.runs[0]), experiment.device, panel.runs[0]
        x, y = (torch.from_numpy(each).to(device) for each in (parts.train.x, parts.train.y))
        epochs = {
            run: plain_epoch(run, network(run, parts, seed).to(device), x, y) for run in panel.runs
        }
        times = {run: [] for run in epochs}
        for number in tqdm(range(first.epochs), desc=f"{first.batch}, seed {seed}"):
            order = torch.randperm(len(y), generator=torch.Generator().manual_seed(number))
            rows = torch.split(order.to(device), first.batch)
            for run, epoch in epochs.items():
                if number == 0:
                    epoch(rows[:3])  # libraries start
                times[run].append(epoch(rows))
        for run, each in times.items():
            record = Record({"epoch_seconds": each}, run.config(), seed, f"all {len(each)} epochs")
            experiment.save_record(record, experiment.file(run, seed))


def network(run, parts, seed):
    """Return the fully connected network of a run."""
    widths = (math.prod(parts.shape), *FULLY_CONNECTED[run.network], parts.classes)
    return fully_connected(widths, "bn" if run.method == "BN" else None, seed=seed)


def plain_epoch(run, model, x, y, way=lambda function: function, dtype=None):
    """Return an epoch of ordinary training; it takes the rows of each minibatch and times itself.

    ``way`` is ``torch.compile``, which compiles the network and BNP's step; ``graphed``, which
    makes one CUDA graph of the whole step; or leaves them as they are.
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
    for panel, paper in zip(experiment.panels, PAPER.values(), strict=True):
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
    for ax, panel in zip(axes, experiment.panels, strict=True):
        ax.set_prop_cycle(color=(COLORS[1], COLORS[3]), linestyle=(DASHES[1], DASHES[3]))
        for run in panel.runs:
            times = np.cumsum([r.curves["epoch_seconds"] for r in records[run.name]], axis=1)
            bands = {run.label: (times.min(axis=0), times.max(axis=0))}
            plot_curves({run.label: times.mean(axis=0)}, ax, bands=bands, ylabel="seconds")
        ax.locator_params(axis="x", integer=True)
        ax.set(title=panel.title, ylim=(0, None))


if __name__ == "__main__":
    experiment = Experiment(__file__, PANELS, description=__doc__)
    perform_in_turns(experiment)
    print("batch, BN/s, BNP/s, ratio, the paper's ratio on a V100", *table(experiment), sep="\n")
    use_style()
    fig, axes = plt.subplots(1, len(PANELS), figsize=(13, 3.6))
    draw_times(experiment, axes)
    experiment.save(fig)
