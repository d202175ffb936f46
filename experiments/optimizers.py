"""How much the rate of each optimizer of chapter 4 matters, on a real network.

Two hidden layers of 100 units, CIFAR-10 standardized by channel, minibatches of 60, 3 epochs, 5
seeds. The grid of each method goes on beyond either end until the best rate is not at an end.
Newton's method and delta-bar-delta are left out: one needs the Hessian, the other full batches. ::

    python experiments/optimizers.py
"""

from functools import partial

import torch
from matplotlib import pyplot as plt
from torch.func import functional_call, grad
from torch.nn.functional import cross_entropy

from optdl import optimizers
from optdl.experiments import Experiment, examples, tuning
from optdl.networks import fully_connected
from optdl.plotting import plot_curves, use_style
from optdl.records import Record
from optdl.training import order_seed

EPOCHS, BATCH, HIDDEN = 3, 60, (100, 100)
LARGE, SMALL = (0.003, 0.01, 0.03, 0.1, 0.3), (1e-4, 3e-4, 1e-3, 3e-3, 1e-2)
METHODS = {
    "SGD": (optimizers.SGD, LARGE),
    "Momentum": (optimizers.Momentum, SMALL),
    "Nesterov": (optimizers.Nesterov, SMALL),
    "AdaGrad": (optimizers.AdaGrad, SMALL),
    "RMSProp": (optimizers.RMSProp, SMALL),
    "RMSProp with Nesterov": (optimizers.RMSPropNesterov, SMALL),
    "AdaDelta": (optimizers.AdaDelta, (0.1, 0.3, 1.0, 3.0)),
    "Adam": (optimizers.Adam, SMALL),
}
PANELS = []  # its runs are its own: one file for each method


def file(experiment, name):
    """Return where the validation errors of all rates of a method lie."""
    return experiment.results / f"{name.lower().replace(' ', '-')}.json"


def find(experiment, name):
    """Try the rates of a method that were not tried; write the file after each."""
    method, first = METHODS[name]
    smoke, path = experiment.options.smoke, file(experiment, name)
    data = experiment.data(experiment.options.data or ("digits" if smoke else "cifar10"))
    parts = examples.parts(data, "standardized", BATCH, images=False)
    config = {
        "method": name, "data": data.name, "epochs": EPOCHS, "batch": BATCH,
        "hidden": HIDDEN, "seeds": len(experiment.seeds), "diverged": [],
    }  # fmt: skip
    record = Record.load(path) if path.exists() else Record({}, config)
    accuracies = tuning.scores(record, parts.classes)
    while rates := [] if smoke and accuracies else tuning.next_rates(accuracies, first):
        errors = validation_errors(
            method(lr=rates[0]), parts.train, parts.validation, HIDDEN, parts.classes,
            seeds=experiment.seeds, epochs=EPOCHS, batch=BATCH,
        )  # fmt: skip
        for seed, each in zip(experiment.seeds, errors, strict=True):
            record.curves[tuning.entry(rates[0], seed)] = each
        experiment.save_record(record, path)
        accuracies = tuning.scores(record, parts.classes)
        print(f"{name}, {rates[0]:g}: {100 * accuracies[rates[0]]:.1f} %", flush=True)


def validation_errors(opt, train, validation, hidden, classes, *, seeds, epochs, batch):
    """Train a network of each seed, and return its validation errors, one for each epoch.

    They are measured at θ, where Nesterov momentum takes its gradients elsewhere. A network whose
    scores are not finite has the error 1. ``hidden`` are the widths of the hidden layers.
    """
    x, y, held_out, labels = (
        torch.from_numpy(each) for part in (train, validation) for each in (part.x, part.y)
    )
    curves = []
    for seed in seeds:
        network, errors = fully_connected((x.shape[1], *hidden, classes), seed=seed), []

        def loss(theta, x, y, network=network):
            return cross_entropy(functional_call(network, theta, x), y)

        generator = torch.Generator().manual_seed(order_seed(seed))
        theta = {name: leaf.detach().clone() for name, leaf in network.named_parameters()}
        state = opt.init(theta)
        for _ in range(epochs):
            for rows in torch.split(torch.randperm(len(y), generator=generator), batch):
                gradient = partial(grad(loss), x=x[rows], y=y[rows])
                theta, state = opt.step(theta, state, gradient, check_finite=False)
            ends = functional_call(network, theta, held_out)
            wrong = (ends.argmax(1) != labels).double().mean().item()
            errors.append(wrong if ends.isfinite().all() else 1.0)
        curves.append(errors)
    return curves


def draw(experiment):
    """Draw the validation accuracy after the last epoch against the rate, mean of the seeds."""
    use_style()
    fig, axes = plt.subplots(2, 4, figsize=(13, 6), sharey=True)
    labels = {"xlabel": "rate", "ylabel": "validation accuracy"}
    for ax, name in zip(axes.flat, METHODS, strict=True):
        if file(experiment, name).exists():
            record = Record.load(file(experiment, name))
            accuracies = tuning.scores(record, 10)
            ends = {rate: [] for rate in accuracies}
            for entry, errors in record.curves.items():
                ends[float(entry.partition(",")[0])].append(1 - errors[-1])
            bands = {name: [[*map(of, ends.values())] for of in (min, max)]}
            plot_curves({name: [*accuracies.values()]}, ax, x=[*accuracies], bands=bands, **labels)
        ax.set(xscale="log", title=name)
    return experiment.save(fig)


if __name__ == "__main__":
    experiment = Experiment(__file__, PANELS, description=__doc__)
    for name in [] if experiment.options.draw else METHODS:
        find(experiment, name)
    draw(experiment)
