"""Beyond the paper: BNP with momentum and Adam, in both forms; statistics that begin at once.

Three hidden layers of 100 units, minibatches of 60, CIFAR-10. ::

    python experiments/beyond.py
"""

import warnings

from optdl.experiments import Panel, Run, Tuning, main
from optdl.experiments.runs import INPUTS

METHODS = {
    "vanilla": ("vanilla", {}),
    "BNP": ("BNP", {}),
    "BNP, split": ("BNP", {"split": True}),
}
RATES = {  # where no paper has a rate, the usual one
    "momentum": (0.01, (0.001, 0.003, 0.01, 0.03, 0.1)),
    "adam": (0.001, (3e-5, 1e-4, 3e-4, 1e-3, 3e-3)),
}
AVERAGES = {"BNP": {}, "BNP, corrected": {"corrected": True}}
OTHERS = [
    Panel(
        f"{name}, {inputs} inputs",
        [
            Run(f"{label}, {name}", "cifar10", "fc3", method, 60, usual, 10, name, inputs, own)
            for label, (method, own) in METHODS.items()
        ],
        Tuning(rates, epochs=3, paper=0),
    )
    for name, (usual, rates) in RATES.items()
    for inputs in INPUTS
]
STARTS = [
    Panel(
        f"averages that begin at once, {data}",
        [
            Run(label, data, "fc3", "BNP", 60, common, epochs, settings=settings)
            for label, settings in AVERAGES.items()
        ],
        Tuning((0.03, 0.1, 0.3), epochs=short, paper=5),
    )
    for data, (common, epochs, short) in {
        "digits": (0.3, 15, 5),
        "mnist": (0.5, 5, 2),
        "cifar10": (0.1, 5, 2),
    }.items()
]
PANELS = [*OTHERS, *STARTS]

if __name__ == "__main__":
    # the form that BNP warns of is one of the two that are compared
    warnings.filterwarnings("ignore", message=r"bnp\.step\(\) before")
    main(__file__, PANELS, __doc__)
