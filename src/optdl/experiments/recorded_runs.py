"""Trainings that are too long for a page of the book: their curves are kept in a small file.

A recorded run is a configuration and a function that trains one network. ``perform`` trains all of
its networks and makes one record; ``main`` is the command line. The file also keeps the losses of
the first minibatches, so that a test can repeat these steps in a second and compare.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from optdl.records import Record
from optdl.training import Hook, State

__all__ = ["FirstLosses", "RecordedRun", "main", "perform"]

STEPS = 10
"""Minibatches whose losses are kept."""


@dataclass(frozen=True)
class RecordedRun:
    """Several trainings that share a function and most of their settings.

    The ``name`` of the file begins with the topic of the page that draws it, and a hyphen.
    ``train`` takes settings and ``hooks``, as keyword arguments, to the record of one training:
    the ``settings`` that all share, and those of each label of ``trainings``, ``seed`` among them.
    The ``curves`` of a training that are kept have so many significant ``digits``.
    """

    name: str
    train: Callable[..., Record]
    settings: Mapping[str, Any]
    trainings: Mapping[str, Mapping[str, Any]]
    curves: Sequence[str]
    digits: int = 6

    @property
    def topic(self) -> str:
        """The topic whose pages draw the run."""
        return self.name.split("-")[0]

    @property
    def config(self) -> dict[str, Any]:
        """The configuration as the file holds it."""
        return Record({}, {"settings": self.settings, "trainings": self.trainings}).config


class FirstLosses(Hook):
    """Keep the losses of the first minibatches, each before its step; with ``halt``, then end."""

    def __init__(self, steps: int, halt: bool = False) -> None:
        self.steps, self.halt = steps, halt
        self.losses: list[float] = []

    def after_step(self, state: State) -> None:
        """Append the loss, or end the training."""
        if len(self.losses) < self.steps:
            self.losses.append(float(state.loss))
        if self.halt and len(self.losses) == self.steps:
            state.stop = f"the first {self.steps} steps"


def perform(run: RecordedRun) -> Record:
    """Perform all trainings of a recorded run on one thread, and return its record.

    The record's curves are named ``LABEL: CURVE``, with ``LABEL: first_losses`` for the losses of
    the first minibatches; its seed is that of the first training.
    Its seconds are processor time, which other processes on the machine do not change.
    """
    began = time.process_time()
    torch.set_num_threads(1)  # sums are then added in the same order each time
    curves: dict[str, list[float]] = {}
    for label, settings in run.trainings.items():
        first = FirstLosses(STEPS)
        record = run.train(**run.settings, **settings, hooks=[first])
        chosen = {name: record.curves[name] for name in run.curves}
        for name, values in {**chosen, "first_losses": first.losses}.items():
            short = (f"{value:.{run.digits}g}" for value in values)
            curves[f"{label}: {name}"] = [float(number) for number in short]
    return Record(
        curves,
        run.config,
        seed=next(iter(run.trainings.values()))["seed"],
        stop=f"all {len(run.trainings)} trainings",
        device="cpu, 1 thread",
        seconds=time.process_time() - began,
    )


def main(runs: Sequence[RecordedRun], folder: Path, arguments: Sequence[str]) -> None:
    """Make the files that are missing or have another configuration, as the arguments ask."""
    names = {part for run in runs for part in (run.topic, run.name)}
    parser = argparse.ArgumentParser(description="Make the recorded runs of the book.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(sorted(names)))
    parser.add_argument("--again", action="store_true", help="repeat what is there")
    options = parser.parse_args(arguments)
    if unknown := sorted(set(options.names) - names):
        parser.error(f"unknown: {', '.join(unknown)}; known: {', '.join(sorted(names))}")
    for run in runs:
        if options.names and not {run.name, run.topic} & set(options.names):
            continue
        file = folder / f"{run.name}.json"
        if file.exists() and Record.load(file).config == run.config and not options.again:
            print(f"{run.name}: finished already")
            continue
        record = perform(run)
        record.save(file)
        print(f"{run.name}: {record.stop}, {record.seconds:.0f} s")
