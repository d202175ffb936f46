"""Beyond the paper: BNP with momentum and Adam, in both forms; statistics that begin at once.

Three hidden layers of 100 units, minibatches of 60, CIFAR-10. ::

    python experiments/beyond.py
"""

import warnings

from optdl.experiments import Experiment, Panel, Run, Settings, Tuning, draw_curves, table
from optdl.experiments.runs import INPUTS

# where no paper has a rate, the usual one
USUAL = {"momentum": 0.01, "adam": 0.001}
METHODS = {
    "vanilla": ("vanilla", Settings()),
    "BNP": ("BNP", Settings()),
    "BNP, split": ("BNP", Settings(split=True)),
}
RATES = {"momentum": (0.001, 0.003, 0.01, 0.03, 0.1), "adam": (3e-5, 1e-4, 3e-4, 1e-3, 3e-3)}
OTHERS = [
    Panel(
        f"{optimizer}, {inputs} inputs",
        [
            Run(
                f"{label}, {optimizer}",
                "cifar10",
                "fc3",
                method,
                60,
                USUAL[optimizer],
                10,
                optimizer,
                inputs,
                settings,
            )
            for label, (method, settings) in METHODS.items()
        ],
        Tuning(rates, epochs=3, paper=0),
    )
    for optimizer, rates in RATES.items()
    for inputs in INPUTS
]
STARTS = [
    Panel(
        f"{data}, rate {rate:g}",
        [
            Run("BNP", data, "fc3", "BNP", 60, rate, epochs),
            Run(
                "BNP, corrected",
                data,
                "fc3",
                "BNP",
                60,
                rate,
                epochs,
                settings=Settings(corrected=True),
            ),
        ],
    )
    for data, (rate, epochs) in {
        "digits": (0.3, 15),
        "mnist": (0.5, 5),
        "cifar10": (0.1, 5),
    }.items()
]
PANELS = [*OTHERS, *STARTS]

if __name__ == "__main__":
    # the form that BNP warns of is one of the two that are compared
    warnings.filterwarnings("ignore", message=r"bnp\.step\(\) before")
    experiment = Experiment(__file__, PANELS, description=__doc__)
    experiment.perform()
    draw_curves(experiment)
    for panel in experiment.panels:
        print(f"\n{table(experiment, panel)}")
