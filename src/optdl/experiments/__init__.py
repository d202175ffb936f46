"""What every experiment shares: which runs a figure needs, doing those that are not done, drawing.

An experiment is a list of panels, a panel a list of runs: plain data.
"""

from optdl.experiments import examples, sensitivity, tuning
from optdl.experiments.comparison import DENSE_METHODS, convolutional_panel, dense_panels
from optdl.experiments.drawing import draw_curves, draw_panel, draw_rates, draw_spreads, spread
from optdl.experiments.examples import generated_images
from optdl.experiments.experiment import Experiment
from optdl.experiments.runs import Panel, Run, Settings, Tuning
from optdl.experiments.tables import table
from optdl.experiments.timing import perform_in_turns

__all__ = [
    "DENSE_METHODS",
    "Experiment",
    "Panel",
    "Run",
    "Settings",
    "Tuning",
    "convolutional_panel",
    "dense_panels",
    "draw_curves",
    "draw_panel",
    "draw_rates",
    "draw_spreads",
    "examples",
    "generated_images",
    "perform_in_turns",
    "sensitivity",
    "spread",
    "table",
    "tuning",
]
