"""The runs of one figure: choosing rates, doing what is not done, drawing what is there.

``perform`` makes a record of each run and seed, in a small file of its own. A run whose file is
there is not repeated; one that was interrupted goes on from its last epoch. What goes wrong is an
outcome too: it is said in one line, recorded, and the other runs go on.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from optdl.data import Dataset, Examples, load
from optdl.experiments import examples, models, tuning
from optdl.experiments.examples import Parts
from optdl.experiments.hooks import LastUnitConditioning, RecomputedStatistics
from optdl.experiments.runs import FULLY_CONNECTED, Panel, Run, Tuning, rates_name
from optdl.images import PadCropFlip
from optdl.records import Record, versions
from optdl.training import order_seed, train

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Experiment"]

SMOKE_EXAMPLES = 60
"""Training examples of a run that only shows that everything works."""

AVERAGING = ("BN", "Renorm")
"""The methods that judge by moving averages alone."""

RECOMPUTED = 10_000
"""So many training examples give a network with BN the statistics with which it is judged anew."""


class Experiment:
    """The runs of one figure, on this machine.

    ``file`` is that of the figure, such as ``experiments/fig3.py``; its results lie in
    ``results/fig3`` beside it. ``arguments`` are the command line; that of the process when not
    given. ``--help`` begins with the ``description``.
    """

    def __init__(
        self,
        file: str,
        panels: Sequence[Panel],
        arguments: Sequence[str] | None = None,
        description: str | None = None,
    ) -> None:
        parser = _parser(description)
        self.options = parser.parse_args(arguments)
        path = Path(file).resolve()
        self.name, build = path.stem, path.parent.parent / "build"
        results = build / "smoke" if self.options.smoke else path.parent / "results"
        self.results = Path(self.options.results or results) / self.name
        self.figures = self.results if self.options.results else build / "figures"
        self.checkpoints = self.results if self.options.results else build / "checkpoints"
        self.device = self.options.device
        self.seeds = tuple(
            range(min(2, self.options.seeds) if self.options.smoke else self.options.seeds)
        )
        self.panels = [self._requested(panel) for panel in panels]
        if self.options.only and not any(panel.runs for panel in self.panels):
            names = "\n  ".join(dict.fromkeys(run.name for panel in panels for run in panel.runs))
            parser.error(f"--only {self.options.only} selects no run; there are\n  {names}")
        self._data: dict[str, Dataset] = {}
        self._parts: dict[tuple[object, ...], Parts] = {}
        if self.options.smoke and not self.options.imagenet:
            self.options.imagenet = self.results / "imagenet"
            if any(run.data == "imagenet" for panel in self.panels for run in panel.runs):
                examples.write_images(self.options.imagenet)
        torch.set_num_threads(self.options.threads)

    def _requested(self, panel: Panel) -> Panel:
        """Return the panel as the command line wants it."""
        runs = [self._requested_run(run) for run in panel.runs]
        tuned = panel.tuning
        if tuned and self.options.smoke:
            first = tuned.rates[:1]
            tuned = replace(tuned, rates=first, epochs=1, seeds=1, examples=None, paper=0)
        return replace(panel, runs=[run for run in runs if run], tuning=tuned)

    def _requested_run(self, run: Run) -> Run | None:
        options = self.options
        if options.only and options.only not in f"{run.name}-":
            return None
        if not options.smoke:
            return replace(run, data=options.data or run.data, epochs=options.epochs or run.epochs)
        data = options.data or _smoke_data(run.network)
        settings = replace(run.settings, size=32) if data == "imagenet" else run.settings
        batch = min(run.batch, 32)
        epochs = options.epochs or 1
        return replace(run, data=data, epochs=epochs, batch=batch, settings=settings)

    # --- Runs

    def perform(self) -> dict[str, list[Record]]:
        """Do what is not done yet, and return the records of each run that has any, by name."""
        try:
            for panel in [] if self.options.draw else self.panels:
                for run in panel.runs:
                    if panel.tuning:
                        self.tune(run, panel.tuning)
                    for variant in self.variants(panel, run):
                        self._finish(variant, self._seeds(panel, run, variant))
        except KeyboardInterrupt:
            print("\ninterrupted: the same command goes on where the last epoch ended")
            sys.exit(130)
        return self.records()

    def _seeds(self, panel: Panel, run: Run, variant: Run) -> tuple[int, ...]:
        """Return the seeds of a variant: a rate of the paper that was not chosen may have fewer."""
        aside = panel.tuning and variant != self.chosen(panel, run)
        return self.seeds[: panel.tuning.paper] if panel.tuning and aside else self.seeds

    def variants(self, panel: Panel, run: Run) -> list[Run]:
        """Return a run of a panel with its chosen rate, if there is one, and with the paper's."""
        chosen = self.chosen(panel, run)
        paper = [run] if panel.tuning is None or panel.tuning.paper else []
        if chosen is None:
            return paper
        return [chosen, *(each for each in paper if each != chosen)]

    def chosen(self, panel: Panel, run: Run) -> Run | None:
        """Return a run with the rate that was chosen for it; None while none is."""
        if panel.tuning is None:
            return run
        record = self._tuning_record(run, panel.tuning)
        accuracies = tuning.scores(record, self._classes(run))
        if not accuracies or self._untried(run, panel.tuning, accuracies):
            return None
        return run.at(tuning.best_rate(accuracies))

    def records(self) -> dict[str, list[Record]]:
        """Return what is there: names of runs to the records of their seeds, with curves."""
        by_run: dict[str, list[Record]] = {}
        for panel in self.panels:
            for run in (variant for each in panel.runs for variant in self.variants(panel, each)):
                records = self.ended(run)
                if any(record.curves for record in records):
                    by_run[run.name] = records
        return by_run

    def ended(self, run: Run) -> list[Record]:
        """Return the records of a run whose training is over: completed, or diverged."""
        files = [self.file(run, seed) for seed in self.seeds]
        records = [Record.load(file) for file in files if file.exists()]
        return [record for record in records if _ended(record)]

    def file(self, run: Run, seed: int) -> Path:
        """Return where the record of a run and a seed lies once the run is done."""
        return self.results / f"{run.name}-{seed}.json"

    def tuning_file(self, run: Run) -> Path:
        """Return where the validation errors of all rates of a run lie."""
        return self.results / "tuning" / f"{run.curve}.json"

    def _tuning_record(self, run: Run, how: Tuning) -> Record:
        """Return what was tried so far; an empty record if that was another configuration."""
        config = plain(replace(run, epochs=how.epochs)) | {
            "rate": None,
            "seeds": how.seeds,
            "examples": how.examples,
        }
        file = self.tuning_file(run)
        record = Record.load(file) if file.exists() else Record({})
        if any(record.config.get(key) != value for key, value in config.items()):
            record = Record({}, config | {"diverged": []})
        return record

    def tune(self, run: Run, how: Tuning) -> None:
        """Train with one rate after the other until the best one is not at an end of the grid.

        The record of the tuning is written after each rate, so an interruption costs one at most.
        """
        record, short = self._tuning_record(run, how), replace(run, epochs=how.epochs)
        accuracies = tuning.scores(record, self._classes(run))
        while rates := self._untried(run, how, accuracies):
            for outcome in self._attempt(short.at(rates[0]), range(how.seeds), how):
                if not _ended(outcome):
                    return  # it says nothing about the rate, and is tried again the next time
                name = tuning.entry(rates[0], outcome.seed)
                record.curves[name] = outcome.curves.get("validation_error", [1.0])
                record.seconds += outcome.seconds
                if outcome.stop.startswith("diverged"):
                    record.config["diverged"].append(name)
            self.save_record(record, self.tuning_file(run))
            accuracies = tuning.scores(record, self._classes(run))
            print(f"{run.curve}: {_table(accuracies)}", file=sys.stderr)

    def _untried(self, run: Run, how: Tuning, accuracies: dict[Any, float]) -> Sequence[Any]:
        """Return the rates, or pairs of rates, that are to be tried before one is chosen."""
        if self.options.smoke and accuracies:
            return []
        if how.pairs and how.rates:
            return [pair for pair in how.rates if pair not in accuracies]
        if how.pairs:
            return tuning.next_pairs(accuracies, run.rate)
        return tuning.next_rates(accuracies, how.rates)

    def _classes(self, run: Run) -> int:
        return {"cifar100": 100, "imagenet": 1000}.get(run.data, 10)

    def _finish(self, run: Run, seeds: Sequence[int]) -> None:
        todo = [seed for seed in seeds if not is_done(self.file(run, seed), run)]
        for record in self._attempt(run, todo):
            self._keep(run, record)
            if _ended(record):
                self._checkpoint(run, record.seed).unlink(missing_ok=True)

    def advance(self, run: Run, seed: int = 0) -> Record:
        """Train a run, and keep its checkpoint, so that the same run with more epochs goes on."""
        [record] = self._attempt(run, [seed])
        self._keep(run, record)
        return record

    def _keep(self, run: Run, record: Record) -> None:
        record.config = plain(run) | record.config
        self.save_record(record, self.file(run, record.seed))
        if record.stop.startswith("diverged"):
            print(f"{run.name}, seed {record.seed}: {record.stop}")

    def _checkpoint(self, run: Run, seed: int, how: Tuning | None = None) -> Path:
        stage = f"{self.name}-tuning" if how else self.name
        return self.checkpoints / f"{stage}-{run.name}-{seed}.pt"

    def _attempt(
        self, run: Run, seeds: Sequence[int], how: Tuning | None = None
    ) -> Iterable[Record]:
        """Train, to choose or to be judged; what goes wrong becomes a record as well."""
        for seed in seeds:
            try:
                yield self._train(run, seed, how)
            except Exception as error:
                if (outcome := _outcome(error)) is None:
                    raise
                print(f"{run.name}: {outcome}: {error}", file=sys.stderr)
                reason = f"{outcome}: {str(error).splitlines()[0]}"
                yield Record({}, seed=seed, stop=reason)

    def save_record(self, record: Record, file: Path) -> None:
        """Complete a record and write it."""
        record.versions = versions() | _commit()
        record.device = _device_name(self.device)
        record.save(file)

    def _train(self, run: Run, seed: int, how: Tuning | None) -> Record:
        """Train one network, to choose or to be judged."""
        checkpoint = self._checkpoint(run, seed, how)
        on_gpu = self.device.startswith("cuda")
        narrow = torch.bfloat16 if on_gpu and run.network.startswith("resnet") else None
        parts = self.parts(run, seed)
        if how and how.examples:
            parts = replace(parts, train=parts.train.first(how.examples))
        if len(parts.train) < run.batch:
            sys.exit(
                f"{run.name} has minibatches of {run.batch}, and there are {len(parts.train)} "
                "training examples: ask for more --examples"
            )
        depth = 8 if self.options.smoke else None
        model = models.build(run, parts.shape, parts.classes, seed, depth)
        model.to(self.device).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        optimizer = models.optimizer(run, model)
        bnp = models.preconditioner(run, model, check_finite=not on_gpu)
        steps = -(-len(parts.train) // run.batch)
        hooks: list[Any] = [models.schedule(run, optimizer, steps), *bnp]
        if not how and run.method in AVERAGING and isinstance(parts.train, Examples):
            hooks.append(RecomputedStatistics(parts.train.first(RECOMPUTED), parts.test, model))
        if run.watch_every:
            hooks.append(LastUnitConditioning(model, bnp[-1], run.watch_every))
        print(f"{run.name}, seed {seed}", file=sys.stderr)
        record = train(
            model,
            parts.train,
            optimizer,
            validation=parts.validation,
            test=None if how else parts.test,
            epochs=run.epochs,
            batch_size=run.batch,
            hooks=hooks,
            seed=order_seed(seed),
            config={"name": run.name},
            progress=True,
            checkpoint=checkpoint,
            augmentation=PadCropFlip() if run.settings.augment else None,
            autocast=narrow,
            # hooks that compute in Python would not be replayed
            cuda_graph=not run.watch_every,
            measure_training=False,
        )
        if how:
            checkpoint.unlink(missing_ok=True)
        record.seed = seed
        sizes = {name: len(part) for name, part in vars(parts).items() if hasattr(part, "y")}
        precision = str(narrow or torch.float32).removeprefix("torch.")
        record.config = {"examples": sizes, "precision": precision}
        return record

    # --- Data

    def parts(self, run: Run, seed: int = 0) -> Parts:
        """Return the examples of a run, which are read once; the seed is that of random crops."""
        if run.data == "imagenet":
            root = Path(self.options.imagenet or "imagenet")
            size, most = run.settings.size or 224, self.options.examples
            return examples.image_files(root, size, seed, most, self.options.readers)
        images = run.network not in FULLY_CONNECTED
        key = (run.data, run.inputs, run.batch > 1 and run.batch, images)
        if key not in self._parts:
            self._parts.clear()  # one at a time: they are large
            self._parts[key] = examples.parts(self.data(run.data), run.inputs, run.batch, images)
        return self._parts[key]

    def data(self, name: str) -> Dataset:
        """Return a data set; it is read once."""
        if name not in self._data:
            self._data.clear()
            whole = examples.generated_images() if name == "generated" else load(name)
            most = self.options.examples or (SMOKE_EXAMPLES if self.options.smoke else 10**9)
            small = len(whole.y_train) > most
            self._data[name] = whole.subset(most, min(most, len(whole.y_test))) if small else whole
        return self._data[name]

    # --- Figures

    def save(self, fig: Figure, name: str = "") -> list[Path]:
        """Write a figure as SVG, and as PNG on white, and close it."""
        from matplotlib import pyplot as plt

        self.figures.mkdir(parents=True, exist_ok=True)
        files = [self.figures / f"{name or self.name}.{ending}" for ending in ("svg", "png")]
        fig.savefig(files[0], metadata={"Date": None})
        fig.savefig(files[1], dpi=150, facecolor="white", transparent=False)
        plt.close(fig)
        for file in files:
            print(f"wrote {file}")
        return files


def _smoke_data(network: str) -> str:
    if network == "resnet18":
        return "imagenet"
    return "digits" if network in FULLY_CONNECTED else "generated"


def plain(run: Run) -> dict[str, Any]:
    """Return the configuration of a run as a file holds it."""
    return Record({}, run.config()).config


def _table(accuracies: dict[Any, float]) -> str:
    return ", ".join(f"{rates_name(each)}: {100 * right:.1f}" for each, right in accuracies.items())


def is_done(file: Path, run: Run) -> bool:
    """Tell whether a file has the record of this run, or of the same with more epochs."""
    if not file.exists():
        return False
    record, expected = Record.load(file), plain(run)
    same = all(record.config.get(key) == expected[key] for key in expected if key != "epochs")
    return _ended(record) and same and record.config["epochs"] >= run.epochs


def _ended(record: Record) -> bool:
    """Tell whether a run is over: trained to its end, or diverged."""
    return record.stop.startswith(("all ", "diverged"))


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
