"""What every experiment shares: which runs a figure needs, doing those that are not done, drawing.

An experiment is a list of panels, a panel a list of runs: plain data. ``perform`` makes a record
of each run and seed, in a small file of its own. A run whose file is there is not repeated; one
that was interrupted goes on from its last epoch. What goes wrong is an outcome too: it is said in
one line, recorded, and the other runs go on.
"""

from __future__ import annotations

import argparse
import itertools
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torch.nn import functional
from tqdm.auto import tqdm

from optdl.batchnorm import BatchNorm, BatchRenorm, FourThingsNorm
from optdl.bnp import BNP, hessian_condition_numbers
from optdl.data import Dataset, Examples, load
from optdl.ensembles import Ensemble, train_ensemble
from optdl.images import ImageFolder, PadCropFlip, StreamedImages
from optdl.networks import Normalization, cnn5, fully_connected, group_norm, resnet18, resnet_cifar
from optdl.records import Record, versions
from optdl.training import Schedule, train

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
        What the method should have other than its defaults. For networks that train by
        themselves also ``weight_decay``, ``init_scale``, ``group_size``, ``augment``, ``decay``
        (epochs), ``warmup_steps`` or ``warmup_epochs``.
    watch_every : int
        Steps between two looks at the conditioning of the first output unit; 0 for none.
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
    watch_every: int = 0

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
        self.seeds = tuple(
            range(min(2, self.options.seeds) if self.options.smoke else self.options.seeds)
        )
        self.panels = [
            Panel(panel.title, [run for each in panel.runs for run in self._asked(each)])
            for panel in panels
        ]
        self._data: dict[str, Dataset] = {}
        if self.options.smoke and not self.options.imagenet:
            self.options.imagenet = self.results / "imagenet"
            if any(run.data == "imagenet" for panel in self.panels for run in panel.runs):
                write_images(self.options.imagenet)
        torch.set_num_threads(self.options.threads)

    def _asked(self, run: Run) -> Iterable[Run]:
        """Return the run as the command line wants it, or nothing."""
        options = self.options
        if options.only and options.only not in run.name:
            return
        data = options.data or (_smoke_data(run.network) if options.smoke else run.data)
        epochs = options.epochs or (1 if options.smoke else run.epochs)
        settings = dict(run.settings)
        if options.smoke and data == "imagenet":
            settings["size"] = 32
        small = options.smoke and run.network not in FULLY_CONNECTED
        batch = min(run.batch, 32) if small else run.batch
        yield replace(run, data=data, epochs=epochs, batch=batch, settings=settings)

    # --- Runs

    def perform(self) -> dict[str, list[Record]]:
        """Do what is not done yet, and return the records of each run that has any, by name."""
        runs = [run for panel in self.panels for run in panel.runs if not self.options.draw]
        try:
            for run in runs:
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
        together = [todo] if run.network in FULLY_CONNECTED and todo else [[s] for s in todo]
        for seeds in together:
            self._finish_seeds(run, seeds)

    def _finish_seeds(self, run: Run, todo: Sequence[int]) -> None:
        try:
            records = self._train(run, todo)
        except Exception as error:
            if (outcome := _outcome(error)) is None:
                raise
            print(f"{run.name}: {outcome}: {error}", file=sys.stderr)
            reason = f"{outcome}: {str(error).splitlines()[0]}"
            records = [Record({}, seed=seed, stop=reason) for seed in todo]
        for record in records:
            self._keep(run, record)
            if record.stop.startswith("diverged"):
                print(f"{run.name}, seed {record.seed}: {record.stop}")

    def perform_in_turns(self) -> dict[str, list[Record]]:
        """Time the epochs of the runs of each panel, which take turns, and return the records.

        A disturbance of the machine then meets all of them. The curve is ``epoch_seconds``.
        """
        for panel in [] if self.options.draw else self.panels:
            for seed in self.seeds:
                if all(_is_done(self.file(run, seed), run) for run in panel.runs):
                    continue
                for run, record in zip(panel.runs, self._time(panel.runs, seed), strict=True):
                    self._keep(run, record)
        return self.records()

    def _time(self, runs: Sequence[Run], seed: int) -> list[Record]:
        data = self.data(runs[0].data)
        x = torch.from_numpy(data.x_train).to(self.device)
        y = torch.from_numpy(data.y_train).to(self.device)
        epochs = [_plain_epoch(run, data, seed, self.device) for run in runs]
        seconds: list[list[float]] = [[] for _ in runs]
        for number in tqdm(range(runs[0].epochs), desc=f"{runs[0].batch}, seed {seed}"):
            order = torch.randperm(len(y), generator=torch.Generator().manual_seed(number))
            rows = torch.split(order.to(self.device), runs[0].batch)
            for epoch, times in zip(epochs, seconds, strict=True):
                if number == 0:
                    epoch(x, y, rows[:3])  # libraries start
                times.append(epoch(x, y, rows))
        return [
            Record({"epoch_seconds": each}, seed=seed, stop=f"all {len(each)} epochs")
            for each in seconds
        ]

    def _keep(self, run: Run, record: Record) -> None:
        """Complete a record and write it."""
        record.config = Record({}, asdict(run)).config
        record.versions = versions() | _commit()
        record.device = _device_name(self.device)
        record.save(self.file(run, record.seed))

    def _train(self, run: Run, seeds: Sequence[int]) -> list[Record]:
        numbers = "-".join(map(str, seeds))
        checkpoint = self.checkpoints / f"{self.name}-{run.name}-{numbers}.pt"
        if run.network in FULLY_CONNECTED:
            records = self._train_side_by_side(run, self.data(run.data), seeds, checkpoint)
        else:
            records = [self._train_alone(run, seeds[0], checkpoint)]
        checkpoint.unlink(missing_ok=True)
        return records

    def _train_alone(self, run: Run, seed: int, checkpoint: Path) -> Record:
        """Train one network by itself."""
        settings, on_gpu = run.settings, self.device.startswith("cuda")
        examples, validation, shape, classes = self._examples(run, seed)
        model = build(run, shape, classes, seed, depth=8 if self.options.smoke else 110)
        model.to(self.device).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        optimizer = _optimizer(run, model)
        hooks: list[Any] = [_schedule(run, optimizer, -(-len(examples) // run.batch))]
        if run.method.startswith("BNP"):
            hooks.append(BNP(model, check_finite=not on_gpu))
        print(f"{run.name}, seed {seed}", file=sys.stderr)
        return train(
            model,
            examples,
            optimizer,
            validation=validation,
            epochs=run.epochs,
            batch_size=run.batch,
            hooks=hooks,
            seed=seed,
            config={"name": run.name},
            progress=True,
            checkpoint=checkpoint,
            augmentation=PadCropFlip() if settings.get("augment") else None,
            autocast=torch.bfloat16 if on_gpu and run.network.startswith("resnet") else None,
            record_steps=True,
            measure_training=False,
        )

    def _examples(self, run: Run, seed: int) -> tuple[Any, Any, tuple[int, int, int], int]:
        """Return training and test examples, the shape of an image, and how many classes."""
        if run.data == "imagenet":
            root, size = Path(self.options.imagenet or "imagenet"), run.settings["size"]
            parts = [ImageFolder(root / "train", size, train=True, seed=seed)]
            parts.append(ImageFolder(root / "val", size))
            for part in parts:
                part.keep(self.options.examples or len(part))
            streams = [StreamedImages(part, self.options.readers) for part in parts]
            return streams[0], streams[1], (3, size, size), len(parts[0].classes)
        data = self.data(run.data)
        train_part = whole_batches(Examples(data.x_train, data.y_train), run.batch)
        test_part = Examples(data.x_test, data.y_test)
        both = [Examples(e.x.reshape(-1, *data.image_shape), e.y) for e in (train_part, test_part)]
        return both[0], both[1], data.image_shape, len(data.classes)

    def _train_side_by_side(
        self, run: Run, data: Dataset, seeds: Sequence[int], checkpoint: Path
    ) -> list[Record]:
        widths = (data.x_train.shape[1], *FULLY_CONNECTED[run.network], len(data.classes))
        ensemble = Ensemble(
            widths,
            run.method,
            seeds,
            run.rate,
            rule=run.optimizer,
            settings=run.settings,
            outputs_last=run.batch < 20,
            device=self.device,
        )
        return train_ensemble(
            ensemble,
            whole_batches(Examples(data.x_train, data.y_train), run.batch),
            Examples(data.x_test, data.y_test),
            epochs=run.epochs,
            batch_size=run.batch,
            config={"name": run.name},
            watch=last_unit_conditioning if run.watch_every else None,
            watch_every=run.watch_every,
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
            most = self.options.examples or (SMOKE_EXAMPLES if self.options.smoke else 10**9)
            small = len(whole.y_train) > most
            self._data[name] = whole.subset(most, min(most, len(whole.y_test))) if small else whole
        return self._data[name]


# --- Networks and methods ---------------------------------------------------------------------


def build(
    run: Run, shape: tuple[int, int, int], classes: int, seed: int, depth: int = 110
) -> torch.nn.Module:
    """Return the network of a run with its initial weights."""
    normalization, scale = _normalization(run), run.settings.get("init_scale", 1.0)
    if run.network == "cnn5":
        return cnn5(shape[0], shape[1], classes, normalization, seed=seed)
    if run.network == "resnet18":
        return resnet18(classes, normalization, scale, seed=seed)
    before = run.network == "resnet110-pre"
    return resnet_cifar(depth, classes, normalization, before, scale, seed=seed)


def _schedule(run: Run, optimizer: torch.optim.Optimizer, steps: int) -> Schedule:
    settings = run.settings
    warmup = settings.get("warmup_steps", settings.get("warmup_epochs", 0) * steps)
    linear = "warmup_steps" not in settings
    return Schedule(optimizer, steps, settings.get("decay", ()), warmup, linear=linear)


def _normalization(run: Run) -> Normalization:
    """Return what a method puts into a network; constants are those of the paper's library."""
    library: dict[str, Any] = {"rho": 0.99, "eps": 1e-3}  # TensorFlow's
    own = {key: run.settings[key] for key in ("groups", "ghost_size") if key in run.settings}
    if "GN" in run.method:
        return group_norm(run.settings.get("group_size", 4))
    if run.method == "BN" and run.network.startswith("resnet"):
        return "bn"
    makers: dict[str, Normalization] = {
        "BN": lambda width: BatchNorm(width, **library),
        "Renorm": lambda width: BatchRenorm(width, **library),
        "Four": lambda width: FourThingsNorm(width, **own, example_share=0.1, **library),
    }
    return makers.get(run.method)


def _optimizer(run: Run, model: torch.nn.Module) -> torch.optim.Optimizer:
    on_gpu = next(model.parameters()).is_cuda
    rate: Any = torch.tensor(run.rate, device="cuda") if on_gpu else run.rate
    decay = run.settings.get("weight_decay", 0.0)
    if run.optimizer == "adam":
        return torch.optim.Adam(model.parameters(), rate, weight_decay=decay, capturable=on_gpu)
    momentum = 0.9 if run.optimizer == "momentum" else 0.0
    return torch.optim.SGD(
        model.parameters(), rate, momentum=momentum, weight_decay=decay, fused=on_gpu or None
    )


def _plain_epoch(
    run: Run, data: Dataset, seed: int, device: str
) -> Callable[[Tensor, Tensor, Sequence[Tensor]], float]:
    """Return an epoch of ordinary training of a fully connected network; it returns its seconds."""
    widths = (data.x_train.shape[1], *FULLY_CONNECTED[run.network], len(data.classes))
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


def last_unit_conditioning(ensemble: Ensemble) -> list[dict[str, float]]:
    """Return for each member the condition numbers of the Hessian of the first output unit.

    Over the minibatch of the step just taken: as it is, after P, and that of D.

    Notes
    -----
    Source: P-18
    """
    assert ensemble.last is not None
    found = []
    for inputs, scores in zip(*(part.double().cpu() for part in ensemble.last), strict=True):
        p = scores.softmax(1)[:, 0].numpy()
        kappas = hessian_condition_numbers(inputs.numpy(), p * (1 - p))
        names = ("hessian", "preconditioned", "D")
        found.append({name: float(f"{k:.4g}") for name, k in zip(names, kappas, strict=True)})
    return found


# --- Data -------------------------------------------------------------------------------------


def whole_batches(examples: Examples, batch: int) -> Examples:
    """Leave out the last example where it would be a minibatch of one, which BN refuses."""
    keep = len(examples) - (len(examples) % batch == 1)
    return Examples(examples.x[:keep], examples.y[:keep])


def generated_images(examples: int = 150, seed: int = 0) -> Dataset:
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


def write_images(root: Path, examples: int = 60) -> None:
    """Write generated images as files, in ImageNet's layout."""
    data = generated_images(examples)
    for part, pixels, labels in (
        ("train", data.x_train, data.y_train),
        ("val", data.x_test, data.y_test),
    ):
        images = (255 * pixels.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)).astype(np.uint8)
        for number, (image, label) in enumerate(zip(images, labels, strict=True)):
            folder = root / part / data.classes[label]
            folder.mkdir(parents=True, exist_ok=True)
            Image.fromarray(image).save(folder / f"{number}.png")


def _smoke_data(network: str) -> str:
    if network == "resnet18":
        return "imagenet"
    return "digits" if network in FULLY_CONNECTED else "generated"


def _is_done(file: Path, run: Run) -> bool:
    """Tell whether a record is that of this run, or of the same with more epochs."""
    if not file.exists():
        return False
    record = Record.load(file)
    wanted = Record({}, asdict(run)).config  # as a file holds it
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
    parser.add_argument("--draw", action="store_true", help="run nothing, draw what is there")
    parser.add_argument("--examples", type=int, help="so many training examples only, and tests")
    parser.add_argument("--threads", type=int, default=1, help="of the CPU")
    parser.add_argument("--imagenet", help="folder with train/CLASS/FILE and val/CLASS/FILE")
    parser.add_argument("--readers", type=int, default=8, help="threads that read images")
    parser.add_argument("--smoke", action="store_true", help="show in seconds that it works")
    parser.add_argument("--results", help="another folder for results, figures and checkpoints")
    return parser


# --- Drawing ----------------------------------------------------------------------------------


def spread(records: Sequence[Record], curve: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the mean, the least and the largest value of a curve over the seeds, by epoch.

    Seeds that diverged have no part in it. Curves of different lengths are taken as far as the
    shortest goes.

    Examples
    --------
    >>> one, two = Record({"loss": [1.0, 2.0]}), Record({"loss": [3.0, 2.0, 1.0]})
    >>> [values.tolist() for values in spread([one, two], "loss")]
    [[2.0, 2.0], [1.0, 2.0], [3.0, 2.0]]
    """
    whole = [record for record in records if not record.stop.startswith("diverged")]
    records = whole or records
    length = min(len(record.curves[curve]) for record in records)
    values = np.array([record.curves[curve][:length] for record in records])
    return values.mean(0), values.min(0), values.max(0)


ORDER = ("vanilla", "BN", "LN", "BNP", "Renorm", "Four")
"""Methods that have a color and dashes of their own, in all figures."""


def draw_curves(experiment: Experiment) -> list[Path]:
    """Draw test accuracy above and training loss below, mean and range, a column for each panel."""
    from matplotlib import pyplot as plt

    from optdl.plotting import use_style

    records = experiment.records()
    panels = [
        (panel.title, [(run, records[run.name]) for run in panel.runs if run.name in records])
        for panel in experiment.panels
    ]
    panels = [(title, runs) for title, runs in panels if runs]
    if not panels:
        return []
    use_style()
    fig, axes = plt.subplots(
        2, len(panels), figsize=(1 + 4.3 * len(panels), 7.2), sharex="col", squeeze=False
    )
    for (above, below), (title, runs) in zip(axes.T, panels, strict=True):
        draw_spreads(above, runs, "validation_error", "test accuracy")
        draw_spreads(below, runs, "minibatch_loss", "training loss")
        above.set(title=title, xlabel="")
        above.get_legend().remove()
        # a run that wanders off at first would press all others to the floor
        below.set_ylim(0, min(below.get_ylim()[1], 2.5))
        # where it hides no curve
        below.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2)
        below.locator_params(axis="x", integer=True, min_n_ticks=1)
    return experiment.save(fig)


def draw_spreads(
    ax: Axes, runs: Sequence[tuple[Run, Sequence[Record]]], curve: str, name: str
) -> None:
    """Draw the mean and the range of a curve for each run; errors become accuracies."""
    from optdl.plotting import COLORS, DASHES, plot_curves

    styles = _styles([run.method for run, _ in runs])
    for (run, records), style in zip(runs, styles, strict=True):
        mean, low, high = spread(records, curve)
        if curve.endswith("error"):
            mean, low, high = 1 - mean, 1 - high, 1 - low
        ax.set_prop_cycle(color=[COLORS[style]], linestyle=[DASHES[style]])
        ended = sum(record.stop.startswith("diverged") for record in records)
        label = f"{run.label} ({ended} of {len(records)} diverged)" if ended else run.label
        plot_curves({label: mean}, ax, bands={label: (low, high)}, ylabel=name)
        if len(mean) == 1:  # no line: a mark, and the range as a bar
            spans = np.array([mean - low, high - mean])
            place = 1 + (style - 2.5) / 20  # side by side
            ax.errorbar([place], mean, yerr=spans, fmt="o", capsize=3, color=COLORS[style])
            ax.set_xlim(0.5, 1.5)


def _styles(methods: Sequence[str]) -> list[int]:
    """Return the number of a style for each run: that of its method, or one that nobody has."""
    own = [
        ORDER.index(method) if method in ORDER and method not in methods[:number] else None
        for number, method in enumerate(methods)
    ]
    free = itertools.cycle([n for n in range(len(ORDER)) if n not in own] or range(len(ORDER)))
    return [next(free) if style is None else style for style in own]
