"""Fig. 8: two hidden layers of 100 units on CIFAR-10, vanilla and BNP, and condition numbers.

The Hessian is that of the first output unit's bias and weights, 101 × 101, at every 100th step:
over the minibatch of the step, and over 2,000 training examples. P is made of the running averages,
which a step of BNP uses, with ε₁ = 0.01 and ε₁ = 0, or of the statistics of the same examples.
The book draws the condition numbers on its page about equivalence; here are the training curves.
"""

import numpy as np

from optdl.experiments import Panel, Run, main

RATES = {"vanilla": 0.01, "BNP": 0.1}
RUNS = [Run(name, "cifar10", "fc2", name, 60, RATES[name], 20, watch_every=100) for name in RATES]
PANELS = [Panel("", RUNS)]
WHERE = {"": "60", "examples ": "2,000"}


def measured(records, where, P="running", least="0.01"):
    """Return κ of the Hessian, the gain of P, and κ(D), by seed (rows) and step (columns)."""
    names = "hessian", f"{P} P {least}", f"{P} D {least}"
    kappa, after, D = (np.array([r.curves[where + name] for r in records]) for name in names)
    return kappa, kappa / after, D


def table(experiment):
    """Return medians over the steps of all seeds, and the range of the seeds' medians, as rows."""
    rows = []
    for run in experiment.panels[0].runs:
        for where, examples in WHERE.items():
            for P, least in (("running", "0.01"), ("own", "0.01"), ("running", "0")):
                _, gain, D = measured(experiment.records()[run.name], where, P, least)
                medians = np.median(gain, axis=1)
                rows.append([
                    run.label, examples, "the step" if P == "running" else "these examples", least,
                    f"{np.median(gain):.3g} ({min(medians):.3g}–{max(medians):.3g})",
                    *(f"{np.median(each):.2g}" for each in (D, gain / D, gain / D**2)),
                ])  # fmt: skip
    return rows


if __name__ == "__main__":
    main(__file__, PANELS, __doc__)
