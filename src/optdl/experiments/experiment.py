"""The runs of one figure: choosing rates, doing what is not done, drawing what is there.

``perform`` makes a record of each run and seed, in a small file of its own. A run whose file is
there is not repeated; one that was interrupted goes on from its last epoch. What goes wrong is an
outcome too: it is said in one line, recorded, and the other runs go on.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from optdl.batchnorm import PopulationStatisticsHook
from optdl.data import Examples, load
from optdl.experiments import examples, models, tuning
from optdl.experiments.examples import Parts
from optdl.experiments.hooks import LastUnitConditioning
from optdl.experiments.runs import DATA, FULLY_CONNECTED, Panel, Run, Tuning, rates_name
from optdl.images import PadCropFlip
from optdl.records import Record, versions
from optdl.training import order_seed, train

__all__ = ["Experiment"]

SMOKE_EXAMPLES = 60  # for training, in a run that only shows that everything works
AVERAGING = ("BN", "Renorm")  # they judge by moving averages
RECOMPUTED = 10_000  # training examples for the statistics with which these are judged anew


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
        self.options = options = parser.parse_args(arguments)
        path = Path(file).resolve()
        self.name, build = path.stem, path.parent.parent / "build"
        results = build / "smoke" if options.smoke else path.parent / "results"
        self.results = Path(options.results or results) / self.name
        try:
            self.results.mkdir(parents=True, exist_ok=True)
        except OSError as error:  # as a run's failure it would be told as missing data
            parser.error(f"results cannot be written: {error}")
        self.figures = self.results if options.results else build / "figures"
        self.checkpoints = self.results if options.results else build / "checkpoints"
        self.device = options.device
        self.seeds = tuple(range(min(2, options.seeds) if options.smoke else options.seeds))
        self.panels = [self._requested(panel) for panel in panels]
        if options.only and not any(panel.runs for panel in self.panels):
            names = "\n  ".join(dict.fromkeys(run.name for panel in panels for run in panel.runs))
            parser.error(f"--only {options.only} selects no run; there are\n  {names}")
        self._parts: dict[tuple[object, ...], Parts] = {}
        if options.smoke and not options.imagenet:
            options.imagenet = self.results / "imagenet"
            if any(run.data == "imagenet" for panel in self.panels for run in panel.runs):
                examples.write_images(options.imagenet)
        torch.set_num_threads(1)

    def _requested(self, panel: Panel) -> Panel:
        """Return the panel as the command line wants it."""
        options, tuned, runs = self.options, panel.tuning, []
        if tuned and options.smoke:
            first = tuned.rates[:1]
            tuned = replace(tuned, rates=first, epochs=1, seeds=1, examples=None, paper=0)
        for run in panel.runs:
            if (options.only or "") in f"{run.name}-":
                smoke = _smoke(run) if options.smoke else run
                own = {"data": options.data, "epochs": options.epochs}
                runs.append(replace(smoke, **{name: own[name] for name in own if own[name]}))
        return replace(panel, runs=runs, tuning=tuned)

    # --- Runs

    def perform(self) -> dict[str, list[Record]]:
        """Do what is not done yet, and return the records of each run that has any, by name."""
        try:
            for panel in [] if self.options.draw else self.panels:
                for run in panel.runs:
                    if panel.tuning:
                        self.tune(run, panel.tuning)
                    for variant in self.variants(panel, run):
                        # a rate of the paper that was not chosen may have fewer seeds
                        aside = panel.tuning and variant != self.chosen(panel, run)
                        count = panel.tuning.paper if panel.tuning and aside else None
                        self._finish(variant, self.seeds[:count])
        except KeyboardInterrupt:
            print("\ninterrupted: the same command goes on where the last epoch ended")
            sys.exit(130)
        return self.records()

    def variants(self, panel: Panel, run: Run) -> list[Run]:
        """Return a run of a panel with its chosen rate, if there is one, and with the paper's."""
        chosen = self.chosen(panel, run)
        paper = panel.tuning is None or panel.tuning.paper
        return [each for each in dict.fromkeys((chosen, run if paper else None)) if each]

    def chosen(self, panel: Panel, run: Run) -> Run | None:
        """Return a run with the rate that was chosen for it; None while none is."""
        if panel.tuning is None:
            return run
        _, accuracies, todo = self._search(run, panel.tuning)
        return None if todo or not accuracies else run.at(tuning.best_rate(accuracies))

    def records(self) -> dict[str, list[Record]]:
        """Return what is there: names of runs to the records of their seeds, with curves."""
        by_run = {
            variant.name: self.ended(variant)
            for panel in self.panels
            for run in panel.runs
            for variant in self.variants(panel, run)
        }
        return {name: each for name, each in by_run.items() if any(one.curves for one in each)}

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

    def _search(self, run: Run, how: Tuning) -> tuple[Record, dict[Any, float], Sequence[Any]]:
        """Return what was tried with this configuration, the accuracies, and what is to be tried.

        That are rates, or pairs of rates; there are none once one can be chosen.
        """
        config = replace(run, epochs=how.epochs).config()
        config |= {"rate": None, "seeds": how.seeds, "examples": how.examples}
        file = self.tuning_file(run)
        record = Record.load(file) if file.exists() else Record({})
        if any(record.config.get(key) != value for key, value in config.items()):
            record = Record({}, config | {"diverged": []})
        classes = {"cifar100": 100, "imagenet": 1000}.get(run.data, 10)
        accuracies = tuning.scores(record, classes)
        if self.options.smoke and accuracies:
            return record, accuracies, []
        if not how.pairs:
            return record, accuracies, tuning.next_rates(accuracies, how.rates)
        if not how.rates:
            return record, accuracies, tuning.next_pairs(accuracies, run.rate)
        return record, accuracies, [pair for pair in how.rates if pair not in accuracies]

    def tune(self, run: Run, how: Tuning) -> None:
        """Train with one rate after the other until the best one is not at an end of the grid.

        The record of the tuning is written after each rate, so an interruption costs one at most.
        """
        short = replace(run, epochs=how.epochs)
        record, _, todo = self._search(run, how)
        while todo:
            for seed in range(how.seeds):
                outcome = self._attempt(short.at(todo[0]), seed, how)
                if not _ended(outcome):
                    return  # it says nothing about the rate, and is tried again the next time
                name = tuning.entry(todo[0], seed)
                record.curves[name] = outcome.curves.get("validation_error", [1.0])
                record.seconds += outcome.seconds
                if outcome.stop.startswith("diverged"):
                    record.config["diverged"].append(name)
            self.save_record(record, self.tuning_file(run))
            record, accuracies, todo = self._search(run, how)
            shown = (f"{rates_name(each)}: {100 * a:.1f}" for each, a in accuracies.items())
            print(f"{run.curve}: {', '.join(shown)}", file=sys.stderr)

    def _finish(self, run: Run, seeds: Sequence[int]) -> None:
        for seed in seeds:
            if not is_done(self.file(run, seed), run) and _ended(self.advance(run, seed)):
                self._checkpoint(run, seed).unlink(missing_ok=True)

    def advance(self, run: Run, seed: int = 0) -> Record:
        """Train a run, and keep its checkpoint, so that the same run with more epochs goes on."""
        record = self._attempt(run, seed)
        record.config = run.config() | record.config
        self.save_record(record, self.file(run, seed))
        if record.stop.startswith("diverged"):
            print(f"{run.name}, seed {seed}: {record.stop}")
        return record

    def _checkpoint(self, run: Run, seed: int, how: Tuning | None = None) -> Path:
        stage = f"{self.name}-tuning" if how else self.name
        return self.checkpoints / f"{stage}-{run.name}-{seed}.pt"

    def _attempt(self, run: Run, seed: int, how: Tuning | None = None) -> Record:
        """Train, to choose or to be judged; what goes wrong becomes a record as well."""
        try:
            return self._train(run, seed, how)
        except Exception as error:
            if (outcome := _outcome(error)) is None:
                raise
            print(f"{run.name}: {outcome}: {error}", file=sys.stderr)
            return Record({}, seed=seed, stop=f"{outcome}: {str(error).splitlines()[0]}")

    def save_record(self, record: Record, file: Path) -> None:
        """Complete a record and write it."""
        record.versions = versions() | _commit()
        threads = f"{self.device}, {torch.get_num_threads()} thread(s)"
        on_gpu = self.device.startswith("cuda")
        record.device = torch.cuda.get_device_name(self.device) if on_gpu else threads
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
            hooks.append(PopulationStatisticsHook(parts.train.first(RECOMPUTED), parts.test))
        if run.watch_every:
            watched = torch.from_numpy(parts.train.x[:2000]).to(self.device)
            hooks.append(LastUnitConditioning(model, bnp[-1], watched, run.watch_every))
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
            augmentation=PadCropFlip() if run.settings.get("augment") else None,
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
            size, most = run.settings.get("size", 224), self.options.examples
            return examples.image_files(root, size, seed, most, self.options.readers)
        images = run.network not in FULLY_CONNECTED
        key = (run.data, run.inputs, run.batch > 1 and run.batch, images)
        if key not in self._parts:
            data = examples.generated_images() if run.data == "generated" else load(run.data)
            most = self.options.examples or (SMOKE_EXAMPLES if self.options.smoke else None)
            if most and most < len(data.y_train):
                data = data.subset(most, min(most, len(data.y_test)))
            # one at a time: they are large
            self._parts = {key: examples.parts(data, run.inputs, run.batch, images)}
        return self._parts[key]

    # --- Figures

    def save(self, fig: Figure, name: str = "") -> list[Path]:
        """Write a figure as SVG, and as PNG on white, and close it."""
        self.figures.mkdir(parents=True, exist_ok=True)
        files = [self.figures / f"{name or self.name}.{ending}" for ending in ("svg", "png")]
        fig.savefig(files[0], metadata={"Date": None})
        fig.savefig(files[1], dpi=150, facecolor="white", transparent=False)
        plt.close(fig)
        for file in files:
            print(f"wrote {file}")
        return files


def _smoke(run: Run) -> Run:
    """Return a run that shows in seconds that everything works."""
    small = replace(run, epochs=1, batch=min(run.batch, 32))
    if run.network == "resnet18":
        return replace(small, data="imagenet", settings={**run.settings, "size": 32})
    return replace(small, data="digits" if run.network in FULLY_CONNECTED else "generated")


def is_done(file: Path, run: Run) -> bool:
    """Tell whether a file has the record of this run, or of the same with more epochs."""
    if not file.exists():
        return False
    record, expected = Record.load(file), run.config()
    same = all(record.config.get(key) == expected[key] for key in expected if key != "epochs")
    return _ended(record) and same and record.config["epochs"] >= run.epochs


def _ended(record: Record) -> bool:
    """Tell whether a run is over: trained to its end, or diverged."""
    return record.stop.startswith(("all ", "diverged"))


def _outcome(error: Exception) -> str | None:
    """Return what an exception means for a run, or None if it is a fault of the program."""
    kinds = {FileNotFoundError: "data missing", FloatingPointError: "diverged"}
    kinds |= dict.fromkeys((MemoryError, torch.OutOfMemoryError), "out of memory")
    # torch's allocator for the CPU raises a RuntimeError
    of_memory = "out of memory" if "allocate memory" in str(error) else None
    return next((kinds[kind] for kind in kinds if isinstance(error, kind)), of_memory)


def _commit() -> dict[str, str]:
    """Return the commit of the code, where it is known."""
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return {}
    return {"commit": done.stdout.strip()}


def count(text: str) -> int:
    """Return a whole number of the command line, of 1 or more."""
    if int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected 1 or more, got {text}")
    return int(text)


def _parser(description: str | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--seeds", type=count, default=5, help="runs of each kind")
    parser.add_argument("--epochs", type=count, help="instead of those of the figure")
    parser.add_argument("--data", choices=DATA, help="instead of that of the figure")
    parser.add_argument("--only", help="runs whose name contains this text, such as -60-bnp-")
    parser.add_argument("--draw", action="store_true", help="run nothing, draw what is there")
    parser.add_argument("--examples", type=count, help="so many training examples only, and tests")
    parser.add_argument("--imagenet", help="folder with train/CLASS/FILE and val/CLASS/FILE")
    parser.add_argument("--readers", type=count, default=8, help="threads that read images")
    parser.add_argument("--smoke", action="store_true", help="show in seconds that it works")
    parser.add_argument("--results", help="another folder for results, figures and checkpoints")
    return parser
