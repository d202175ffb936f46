"""Runs that are too long for a page: which a figure needs, doing those that are missing, drawing.

``README.md`` beside this file tells how a curve comes to be.
"""

from optdl.experiments import examples, tuning
from optdl.experiments.experiment import Experiment
from optdl.experiments.report import accuracy, draw_curves, draw_panel, draw_rates, main, spread
from optdl.experiments.runs import (
    DENSE_METHODS,
    Panel,
    Run,
    Tuning,
    convolutional_panel,
    dense_panels,
)

__all__ = [
    "DENSE_METHODS", "Experiment", "Panel", "Run", "Tuning", "accuracy", "convolutional_panel",
    "dense_panels", "draw_curves", "draw_panel", "draw_rates", "examples", "main", "spread",
    "tuning",
]  # fmt: skip
