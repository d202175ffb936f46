"""Beyond the paper: BNP with momentum and Adam, in both forms; statistics that begin at once.

Three hidden layers of 100 units, minibatches of 60, CIFAR-10.
"""

import warnings
from itertools import product

from optdl.experiments import Panel, Run, Tuning, main
from optdl.experiments.runs import INPUTS

METHODS = {"vanilla": {}, "BNP": {}, "BNP, split": {"split": True}}
RATES = {  # where no paper has a rate, the usual one
    "momentum": (0.01, (0.001, 0.003, 0.01, 0.03, 0.1)),
    "adam": (0.001, (3e-5, 1e-4, 3e-4, 1e-3, 3e-3)),
}
AVERAGES = ("BNP", {}), ("BNP, corrected", {"corrected": True})
# rate for all, epochs of a run and of the search
STARTS = {"digits": (0.3, 15, 5), "mnist": (0.5, 5, 2), "cifar10": (0.1, 5, 2)}
PANELS = []
for (name, (usual, rates)), inputs in product(RATES.items(), INPUTS):
    runs = []
    for label, own in METHODS.items():
        common = label.partition(",")[0], 60, usual, 10, name, inputs
        runs.append(Run(f"{label}, {name}", "cifar10", "fc3", *common, own))
    PANELS.append(Panel(f"{name}, {inputs} inputs", runs, Tuning(rates, epochs=3, paper=0)))
for data, (rate, epochs, short) in STARTS.items():
    last = "fc3", "BNP", 60, rate, epochs
    runs = [Run(label, data, *last, settings=own) for label, own in AVERAGES]
    tuning = Tuning((0.03, 0.1, 0.3), epochs=short, paper=5)
    PANELS.append(Panel(f"averages that begin at once, {data}", runs, tuning))

if __name__ == "__main__":
    # the form that BNP warns of is one of the two that are compared
    warnings.filterwarnings("ignore", message=r"bnp\.step\(\) before")
    main(__file__, PANELS, __doc__)
