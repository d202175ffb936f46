"""The first layer at a learning rate of its own, with BNP in the later layers and without it.

"BNP, not the first layer" divides the gradients of the later layers by q² and leaves that of the
first as it is, so one rate for both suits neither. Here the first layer has its own rate: with BNP
in the later layers, with plain gradient descent and with LN.
"""

from itertools import product

from optdl.experiments import DENSE_METHODS, Panel, Run, Tuning, main

METHODS = ("BNP, not the first layer", "vanilla", "LN")
# the rates for all layers alike that figures 3 and 4 chose: where the searches begin
COMMON = {
    ("standardized", 6): (0.01, 0.003, 0.03),
    ("standardized", 1): (0.001, 0.001, 0.003),
    ("raw", 6): (0.01, 0.003, 0.01),
    ("standardized", 60): (0.1, 0.03, 0.3),
    ("raw", 60): (0.03, 0.03, 0.03),
    ("raw", 1): (0.003, 0.001, 0.0003),
}
# the figure with these minibatches, and epochs of a final run and of a search, as there
SCHEDULES = {60: ("fig3", 20, 5), 6: ("fig4", 10, 3), 1: ("fig4", 3, 1)}
# the pairs (later layers, first layer) with the second-best validation accuracy, where the best two
# differ by less than 0.1 points for some method
SECOND = {("standardized", 1): ((0.1, 0.001), (0.001, 0.003), (0.01, 0.003))}
# On raw pixels the search, which changes one rate at a time, may end where a pair far away is
# better; so all pairs of these rates of the later layers and of the first are tried as well.
GRIDS = {
    ("raw", 6): ((0.003, 0.01, 0.03, 0.1, 0.3), (0.0001, 0.0003, 0.001, 0.003)),
    ("raw", 1): ((0.001, 0.003, 0.01, 0.03, 0.1), (0.00001, 0.00003, 0.0001, 0.0003, 0.001)),
}


def panel(inputs, batch, rates, suffix="", title="", grid=None):
    """Return the methods at these rates, or pairs of rates, with a search where there is a grid."""
    _, epochs, short = SCHEDULES[batch]
    runs = []
    for label, rate in zip(METHODS, rates, strict=True):
        last = epochs, "sgd", inputs, DENSE_METHODS[label][1]
        run = Run(label + suffix, "cifar10", "fc3", DENSE_METHODS[label][0], batch, 1.0, *last)
        runs.append(run.at(rate))
    tuning = None if grid is None else Tuning(grid, epochs=short, paper=0, pairs=True)
    return Panel(f"minibatches of {batch}, {inputs} inputs{title}", runs, tuning)


PANELS = [panel(*where, rates, grid=()) for where, rates in COMMON.items()]
PANELS += [
    panel(*where, (1.0,) * 3, ", grid", ", best pairs of a grid", [*product(*grid)])
    for where, grid in GRIDS.items()
]
PANELS += [panel(*at, pairs, ", second", ", second-best pairs") for at, pairs in SECOND.items()]

if __name__ == "__main__":
    main(__file__, PANELS, __doc__)
