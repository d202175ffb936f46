"""Runs that are too long for a page: which a figure needs, doing those that are missing, drawing.

``README.md`` beside this file tells how a curve comes to be.
"""

from optdl.experiments import examples, tuning
from optdl.experiments.comparison import DENSE_METHODS, convolutional_panel, dense_panels
from optdl.experiments.examples import generated_images
from optdl.experiments.experiment import Experiment
from optdl.experiments.report import (
    accuracy,
    draw_curves,
    draw_panel,
    draw_rates,
    draw_spreads,
    main,
    spread,
)
from optdl.experiments.runs import Panel, Run, Settings, Tuning

__all__ = [
    "DENSE_METHODS",
    "Experiment",
    "Panel",
    "Run",
    "Settings",
    "Tuning",
    "accuracy",
    "convolutional_panel",
    "dense_panels",
    "draw_curves",
    "draw_panel",
    "draw_rates",
    "draw_spreads",
    "examples",
    "generated_images",
    "main",
    "spread",
    "tuning",
]
