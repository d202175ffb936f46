"""What every experiment shares: which runs a figure needs, doing those that are not done, drawing.

An experiment is a list of panels, a panel a list of runs: plain data. ``perform`` makes a record
of each run and seed, in a small file of its own. A run whose file is there is not repeated; one
that was interrupted goes on from its last epoch. What goes wrong is an outcome too: it is said in
one line, recorded, and the other runs go on.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from optdl.data import Dataset, Examples, load
from optdl.ensembles import METHODS, Ensemble, train_ensemble
from optdl.records import Record, versions

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Experiment", "Panel", "Run", "draw_curves", "generated_images", "spread"]

SMOKE_EXAMPLES = 240
"""Training examples of a run that only shows that everything works."""


@dataclass(frozen=True)
class Run:
    """One curve of a figure: a configuration that several seeds share.

    Parameters
    ----------
    label : str
        Its name in the figure, and in the name of its file.
    data, network, method : str
        What is trained, on what, and how: see ``NETWORKS``.
    batch, epochs : int
        Examples in a minibatch, and passes through them.
    rate : float
        Learning rate.
    optimizer : str
        A name of ``optdl.ensembles.RULES``.
    settings : mapping
        What the method should have other than its defaults.
    """

    label: str
    data: str
    network: str
    method: str
    batch: int
    rate: float
    epochs: int
    optimizer: str = "sgd"
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The beginning of the names of its files."""
        words = f"{self.data} {self.network} {self.batch} {self.label} {self.rate:g}"
        return re.sub(r"[^a-z0-9.]+", "-", words.lower())


@dataclass(frozen=True)
class Panel:
    """One part of a figure: the runs that are drawn over each other."""

    title: str
    runs: Sequence[Run]


FULLY_CONNECTED = {"fc3": (100, 100, 100), "fc2": (100, 100)}
"""Networks that train side by side, by their hidden layers."""


class Experiment:
    """The runs of one figure, on this machine.

    Parameters
    ----------
    file : path
        The file of the figure, such as ``experiments/fig3.py``; its results lie in ``results/fig3``
        beside it.
    panels : sequence of Panel
        What the figure shows.
    arguments : sequence of str, optional
        The command line; that of the process when not given.
    """

    def __init__(
        self,
        file: str,
        panels: Sequence[Panel],
        arguments: Sequence[str] | None = None,
        description: str | None = None,
    ) -> None:
        self.options = _parser(description).parse_args(arguments)
        place = Path(file).resolve()
        self.name, build = place.stem, place.parent.parent / "build"
        results = build / "smoke" if self.options.smoke else place.parent / "results"
        self.results = Path(self.options.results or results) / self.name
        self.figures = self.results if self.options.results else build / "figures"
        self.checkpoints = self.results if self.options.results else build / "checkpoints"
        self.device = self.options.device
        self.seeds = tuple(range(2 if self.options.smoke else self.options.seeds))
        self.panels = [
            Panel(panel.title, [run for each in panel.runs for run in self._asked(each)])
            for panel in panels
        ]
        self._data: dict[str, Dataset] = {}
        torch.set_num_threads(self.options.threads)

    def _asked(self, run: Run) -> Iterable[Run]:
        """Return the run as the command line wants it, or nothing."""
        options = self.options
        if options.only and options.only not in run.name:
            return
        data = options.data or (_smoke_data(run.network) if options.smoke else run.data)
        epochs = options.epochs or (1 if options.smoke else run.epochs)
        yield replace(run, data=data, epochs=epochs)

    # --- Runs

    def perform(self) -> dict[str, list[Record]]:
        """Do what is not done yet, and return the records of each run that has any, by name."""
        try:
            for panel in self.panels:
                for run in panel.runs:
                    self._finish(run)
        except KeyboardInterrupt:
            print("\ninterrupted: the same command goes on where the last epoch ended")
            sys.exit(130)
        return self.records()

    def records(self) -> dict[str, list[Record]]:
        """Return what is there: names of runs to the records of their seeds, with curves."""
        found: dict[str, list[Record]] = {}
        for panel in self.panels:
            for run in panel.runs:
                files = [self.file(run, seed) for seed in self.seeds]
                records = [Record.load(file) for file in files if file.exists()]
                if whole := [record for record in records if record.curves]:
                    found[run.name] = whole
        return found

    def file(self, run: Run, seed: int) -> Path:
        """Return where the record of a run and a seed lies."""
        return self.results / f"{run.name}-{seed}.json"

    def _finish(self, run: Run) -> None:
        todo = [seed for seed in self.seeds if not _is_done(self.file(run, seed), run)]
        if not todo:
            return
        try:
            records = self._train(run, todo)
        except Exception as error:
            if (outcome := _outcome(error)) is None:
                raise
            print(f"{run.name}: {outcome}: {error}", file=sys.stderr)
            reason = f"{outcome}: {str(error).splitlines()[0]}"
            records = [Record({}, seed=seed, stop=reason) for seed in todo]
        for record in records:
            record.config = {**asdict(run), "settings": dict(run.settings)}
            record.versions = versions() | _commit()
            record.device = _device_name(self.device)
            record.save(self.file(run, record.seed))
            if record.stop.startswith("diverged"):
                print(f"{run.name}, seed {record.seed}: {record.stop}")

    def _train(self, run: Run, seeds: Sequence[int]) -> list[Record]:
        data = self.data(run.data)
        numbers = "-".join(map(str, seeds))
        checkpoint = self.checkpoints / f"{self.name}-{run.name}-{numbers}.pt"
        records = self._train_side_by_side(run, data, seeds, checkpoint)
        checkpoint.unlink(missing_ok=True)
        return records

    def _train_side_by_side(
        self, run: Run, data: Dataset, seeds: Sequence[int], checkpoint: Path
    ) -> list[Record]:
        widths = (data.x_train.shape[1], *FULLY_CONNECTED[run.network], len(data.classes))
        ensemble = Ensemble(
            widths, run.method, seeds, run.rate,
            rule=run.optimizer, settings=run.settings, device=self.device,
        )
        return train_ensemble(
            ensemble,
            whole_batches(Examples(data.x_train, data.y_train), run.batch),
            Examples(data.x_test, data.y_test),
            epochs=run.epochs,
            batch_size=run.batch,
            config={"data": run.data},
            progress=True,
            checkpoint=checkpoint,
        )

    def save(self, fig: Figure) -> list[Path]:
        """Write a figure as SVG, and as PNG on white."""
        self.figures.mkdir(parents=True, exist_ok=True)
        files = [self.figures / f"{self.name}.{ending}" for ending in ("svg", "png")]
        fig.savefig(files[0], metadata={"Date": None})
        fig.savefig(files[1], dpi=150, facecolor="white", transparent=False)
        for file in files:
            print(f"wrote {file}")
        return files

    def data(self, name: str) -> Dataset:
        """Return a data set; it is read once."""
        if name not in self._data:
            self._data.clear()  # one at a time: they are large
            whole = generated_images() if name == "generated" else load(name)
            small = self.options.smoke and len(whole.y_train) > SMOKE_EXAMPLES
            self._data[name] = whole.subset(SMOKE_EXAMPLES, 60) if small else whole
        return self._data[name]


def whole_batches(examples: Examples, batch: int) -> Examples:
    """Leave out the last example where it would be a minibatch of one, which BN refuses."""
    keep = len(examples) - (len(examples) % batch == 1)
    return Examples(examples.x[:keep], examples.y[:keep])


def generated_images(examples: int = 300, seed: int = 0) -> Dataset:
    """Return 32 × 32 images in three colors, each a noisy copy of the pattern of its class.

    Examples
    --------
    >>> generated_images(20).x_train.shape
    (16, 3072)
    """
    rng = np.random.default_rng(seed)
    y = np.arange(examples) % 10
    patterns = rng.random((10, 3, 4, 4)).repeat(8, axis=2).repeat(8, axis=3)
    x = (0.7 * patterns[y] + 0.3 * rng.random((examples, 3, 32, 32))).reshape(examples, -1)
    x, keep = x.astype(np.float32), examples * 4 // 5
    names = tuple("abcdefghij")
    return Dataset("generated", x[:keep], y[:keep], x[keep:], y[keep:], (3, 32, 32), names)


def _smoke_data(network: str) -> str:
    return "digits" if network in FULLY_CONNECTED else "generated"


def _is_done(file: Path, run: Run) -> bool:
    """Tell whether a record is that of this run, or of the same with more epochs."""
    if not file.exists():
        return False
    record = Record.load(file)
    wanted = asdict(run)
    same = all(record.config.get(key) == wanted[key] for key in wanted if key != "epochs")
    ended = record.stop.startswith(("all ", "diverged"))
    return ended and same and record.config["epochs"] >= run.epochs


def _outcome(error: Exception) -> str | None:
    """Return what an exception means for a run, or None if it is a fault of the program."""
    if isinstance(error, FileNotFoundError):
        return "data missing"
    if isinstance(error, FloatingPointError):
        return "diverged"
    # torch's allocator for the CPU raises a RuntimeError
    if isinstance(error, MemoryError | torch.OutOfMemoryError) or "allocate memory" in str(error):
        return "out of memory"
    return None


def _commit() -> dict[str, str]:
    """Return the commit of the code, where it is known."""
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return {}
    return {"commit": done.stdout.strip()}


def _device_name(device: str) -> str:
    if device.startswith("cuda"):
        return torch.cuda.get_device_name(device)
    return f"{device}, {torch.get_num_threads()} thread(s)"


def _parser(description: str | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--seeds", type=int, default=5, help="runs of each kind")
    parser.add_argument("--epochs", type=int, help="instead of those of the figure")
    parser.add_argument("--data", help="instead of that of the figure: digits, mnist, cifar10, ...")
    parser.add_argument("--only", help="runs whose name contains this text, such as -60-bnp-")
    parser.add_argument("--threads", type=int, default=1, help="of the CPU")
    parser.add_argument("--smoke", action="store_true", help="show in seconds that it works")
    parser.add_argument("--results", help="another folder for results, figures and checkpoints")
    return parser


# --- Drawing ----------------------------------------------------------------------------------


def spread(records: Sequence[Record], curve: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the mean, the least and the largest value of a curve over the seeds, by epoch.

    Curves of different lengths, as after a divergence, are taken as far as the shortest goes.

    Examples
    --------
    >>> one, two = Record({"loss": [1.0, 2.0]}), Record({"loss": [3.0, 2.0, 1.0]})
    >>> [values.tolist() for values in spread([one, two], "loss")]
    [[2.0, 2.0], [1.0, 2.0], [3.0, 2.0]]
    """
    length = min(len(record.curves[curve]) for record in records)
    values = np.array([record.curves[curve][:length] for record in records])
    return values.mean(0), values.min(0), values.max(0)


def draw_curves(experiment: Experiment) -> list[Path]:
    """Draw test accuracy above and training loss below, mean and range, a column for each panel."""
    from matplotlib import pyplot as plt

    from optdl.plotting import plot_curves, use_style

    records = experiment.records()
    panels = [
        (panel.title, {run.label: records[run.name] for run in panel.runs if run.name in records})
        for panel in experiment.panels
    ]
    panels = [(title, runs) for title, runs in panels if runs]
    if not panels:
        return []
    use_style()
    fig, axes = plt.subplots(
        2, len(panels), figsize=(1 + 4.3 * len(panels), 6.4), sharex="col", squeeze=False
    )
    for (above, below), (title, runs) in zip(axes.T, panels, strict=True):
        for ax, curve, name in (
            (above, "validation_error", "test accuracy"),
            (below, "minibatch_loss", "training loss"),
        ):
            _draw_spreads(ax, runs, curve, name)
        above.set_title(title)
        above.set_xlabel("")
        below.get_legend().remove()
    return experiment.save(fig)


def _draw_spreads(ax: Axes, runs: Mapping[str, Sequence[Record]], curve: str, name: str) -> None:
    from optdl.plotting import plot_curves

    for label, records in runs.items():
        mean, low, high = spread(records, curve)
        if curve.endswith("error"):
            mean, low, high = 1 - mean, 1 - high, 1 - low
        plot_curves({label: mean}, ax, bands={label: (low, high)}, ylabel=name)
