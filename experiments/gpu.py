"""All that waits for a GPU, in ten minutes: one process, each part with its share of the time.

The machine; the tests that need CUDA; Table 1, an epoch in three ways of running it, and a step of
ResNet-110; the lab on a GPU; Figure 6 with ResNet-110 in full depth, on a schedule that is cut to
the epochs that fit. Records are files of their own in ``results/gpu``, written at once, beside one
log with all the rest. No network is needed, but Linux or macOS::

    python experiments/gpu.py --pack FOLDER         # elsewhere: a part of CIFAR-10, 58 MB
    python experiments/gpu.py --minutes 10          # OPTDL_DATA has CIFAR-10, or that part of it
    python experiments/gpu.py --minutes 2 --tiny    # on a CPU: everything once, on small data
"""

import argparse
import logging
import math
import signal
import sys
import tempfile
import time
from dataclasses import replace
from functools import partial
from importlib import import_module
from itertools import pairwise, product, takewhile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "src")]  # it needs no installation

# ruff: noqa: E402
import fig6
import fig9
import numpy as np
import pytest
import torch
from torch.utils.collect_env import get_pretty_env_info

from optdl.data import load, pack
from optdl.experiments import Experiment, accuracy, draw_curves
from optdl.labs import bnp_cnn as lab
from optdl.training import graphed

say = logging.getLogger("gpu").info
RESNET, LAB = "ResNet-110", "augment batches checkpoint trainer"
ROUNDS = 4  # so often the methods of Figure 6 take turns


class OutOfTime(BaseException):
    """A part has used its share. What expects errors of its own does not take this for one."""


class Loan:
    """The time that there is, and how long the present part may go on."""

    def __init__(self, options):
        self.tiny, self.device = options.tiny, "cpu" if options.tiny else "cuda"
        self.began, self.seconds = time.monotonic(), 60 * options.minutes
        self.folder = options.results.resolve()
        self.folder.mkdir(parents=True, exist_ok=True)
        log = logging.FileHandler(self.folder / "gpu.log", "w", "utf-8")
        kept = {"handlers": [log, logging.StreamHandler(sys.stdout)], "level": "INFO"}
        logging.basicConfig(format="%(relativeCreated)7d ms  %(message)s", **kept)

    def left(self):
        """Return the seconds that the present part has left."""
        return self.began + self.end - time.monotonic()

    def experiment(self, module, panels):
        """Return an experiment whose results lie in a folder of its own."""
        options = ["--device", self.device, "--seeds", "1", "--results", str(self.folder)]
        return Experiment(module.__file__, panels, options + ["--smoke"] * self.tiny)

    def perform(self, part, share):
        """Do a part until a share of the time is used; what goes wrong ends this part alone."""
        self.end = share * self.seconds
        say(f"--- {part.__name__}: {self.left():.0f} s")
        signal.signal(signal.SIGALRM, end_part)
        signal.setitimer(signal.ITIMER_REAL, max(self.left(), 0.01))
        try:
            part(self)
        except OutOfTime:
            say("the time of this part is over")
        except Exception:
            say("this part failed", exc_info=True)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)


def end_part(*_):
    """Interrupt what runs."""
    raise OutOfTime


def cuda_tests(loan):
    """Run the tests that are skipped where there is no GPU; pytest keeps what came of them."""
    files = (HERE.parent / "tests").rglob("test_*.py")
    files = [str(file) for file in files if "def test_on_a_gpu" in file.read_text("utf-8")]
    kept = f"--junitxml={loan.folder / 'tests.xml'}"
    alone = ["--noconftest", "-W", "ignore"]  # tests/conftest.py needs more packages
    status = pytest.main(["-q", *alone, "-k", "test_on_a_gpu", kept, *files])
    say(f"tests.xml: exit status {status:d}")


def table_1(loan):
    """Time an epoch of BN, BNP and vanilla, and steps of ResNet-110; all of a size take turns."""
    torch._dynamo.config.skip_nnmodule_hook_guards = False  # BNP has hooks
    compiled = partial(torch.compile, backend="eager" if loan.tiny else "inductor")
    ways = {"": fig9.eager, ", CUDA graph": graphed, ", compiled": compiled}
    experiment = loan.experiment(fig9, [*fig9.PANELS, fig6.large(RESNET)])
    *dense, deep = (panel.runs for panel in experiment.panels)
    vanilla = (replace(runs[0], label="vanilla", method="vanilla") for runs in dense)
    groups = [product(ways, [*runs, other]) for runs, other in zip(dense, vanilla, strict=True)]
    groups += [product(("", ", CUDA graph"), [run for run in deep if run.method != "BNP"])]
    groups = [{replace(run, label=run.label + way): ways[way] for way, run in g} for g in groups]
    rounds = range(1 if loan.tiny else 20)
    for number, group in enumerate(groups):
        torch.compiler.reset()
        until = loan.left() * (1 - 1 / (len(groups) - number))
        # all minibatches but the last have one size
        how = {"steps": 20, "dtype": torch.bfloat16} if group is groups[-1] else {"steps": -1}
        turns = takewhile(lambda turn, end=until: turn == 0 or loan.left() > end, rounds)
        for run, record in fig9.time_in_turns(experiment, group, turns, **how).items():
            once, steps = np.median(record.curves["epoch_seconds"]), record.config["steps"]
            say(f"{run.name}: {once:.3f} s, {1e3 * once / steps:.2f} ms a step")
    print(*fig9.table(experiment), sep="\n")


def lab_on_gpu(loan):
    """Do the lab with its sections for a GPU: images a second, then an epoch of each run."""
    full = lab.SMALL if loan.tiny else lab.FULL
    modules = (import_module(f"optdl.checks.bnp_cnn.lab_6_{name}") for name in LAB.split())
    parts = {name: value for module in modules for name, value in vars(module).items()}
    told = partial(say, "%s: %.0f images a second")
    lab.measure(parts, full, steps=1 if loan.tiny else 10, told=told)
    path, size = loan.folder / "lab.json", replace(full, epochs=1, drops=())
    path.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        lab.perform_full(parts, user="gpu", predictions={}, path=path, folder=folder, size=size)
    say(lab.full_report(path))


def figure_6(loan):
    """Train ResNet-110 with the four methods, on the paper's schedule cut to the epochs that fit.

    An epoch of each is timed first. In turns they then have the same epochs when the time ends.
    """
    experiment = loan.experiment(fig6, [fig6.large(RESNET)])
    [panel] = experiment.panels
    for old in experiment.checkpoints.glob("*resnet110*.pt"):
        old.unlink()
    start = epoch = 0.0
    for run in panel.runs:
        trial, began = replace(run, label=f"{run.label} first epoch", epochs=1), [time.monotonic()]
        for _ in range(2):  # the second time nothing is left to train: what it takes is the start
            experiment.advance(trial)
            began.append(time.monotonic())
        whole, again = np.diff(began)
        start, epoch = start + again, epoch + whole - again
        say(f"{run.label}: {again:.1f} s to begin, {whole - again:.1f} s more")
    whole = fig6.LARGE[RESNET][2]
    fit = int((0.9 * loan.left() - ROUNDS * start) / max(epoch, 1e-3))
    epochs = max(0, min(fit, 2 if loan.tiny else whole))
    share = epochs / whole
    say(f"{epochs} epochs of {whole} fit")
    marks = sorted({math.ceil(epochs * part / ROUNDS) for part in range(ROUNDS + 1)})
    for before, upto in pairwise(marks):
        if loan.left() < start + epoch * (upto - before):
            break  # none has an epoch more than the others
        for run in panel.runs:
            own = {key: share * v for key, v in run.settings.items() if key.startswith("warmup")}
            own["decay"] = [share * mark for mark in run.settings["decay"]]
            record = experiment.advance(replace(run, settings=run.settings | own, epochs=upto))
            say(f"{run.label}, epoch {upto}: test accuracy {accuracy([record], 'test_error')} %")
    draw_curves(experiment)


def main():
    """Do all parts in their order."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=10.0, help="for everything")
    parser.add_argument("--tiny", action="store_true", help="on a CPU, small data and networks")
    parser.add_argument("--results", type=Path, default=HERE / "results" / "gpu")
    parser.add_argument("--pack", type=Path, help="write a part of CIFAR-10 there, and end")
    options = parser.parse_args()
    if options.pack:
        part = pack(load("cifar10"), options.pack / "cifar10-part.npz", 30_000, 5_000)
        sys.exit(print(f"{part}: {part.stat().st_size / 1e6:.1f} MB"))
    if not options.tiny and not torch.cuda.is_available():
        sys.exit(f"no GPU that torch {torch.__version__} can use; --tiny tries all on the CPU")
    if not options.tiny:
        load("cifar10")  # where it is missing, the error tells what to do
    loan = Loan(options)
    say(get_pretty_env_info())
    # each with the share of the time at which it ends: what one leaves, the next has
    parts = {cuda_tests: 0.12, table_1: 0.37, lab_on_gpu: 0.52, figure_6: 0.97}
    for part, share in parts.items():
        loan.perform(part, share)


if __name__ == "__main__":
    main()
