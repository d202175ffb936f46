"""How much the rate of each optimizer of chapter 4 matters, on a real network.

Two hidden layers of 100 units, CIFAR-10 standardized by channel, minibatches of 60, 3 epochs, 5
seeds. The grid of each method goes on beyond either end until the best rate is not at an end.
Newton's method and delta-bar-delta are left out: one needs the Hessian, the other full batches. ::

    python experiments/optimizers.py
"""

import torch
from matplotlib import pyplot as plt
from torch.nn.functional import cross_entropy

from optdl.experiments import Experiment, examples, tuning
from optdl.networks import fully_connected
from optdl.optimizers import (
    SGD,
    AdaDelta,
    AdaGrad,
    Adam,
    Momentum,
    Nesterov,
    RMSProp,
    RMSPropNesterov,
)
from optdl.plotting import plot_curves, use_style
from optdl.records import Record
from optdl.training import order_seed

EPOCHS, BATCH, HIDDEN = 3, 60, (100, 100)
LARGE, SMALL = (0.003, 0.01, 0.03, 0.1, 0.3), (1e-4, 3e-4, 1e-3, 3e-3, 1e-2)
METHODS = {
    "SGD": (SGD, LARGE),
    "Momentum": (Momentum, SMALL),
    "Nesterov": (Nesterov, SMALL),
    "AdaGrad": (AdaGrad, SMALL),
    "RMSProp": (RMSProp, SMALL),
    "RMSProp with Nesterov": (RMSPropNesterov, SMALL),
    "AdaDelta": (AdaDelta, (0.1, 0.3, 1.0, 3.0)),
    "Adam": (Adam, SMALL),
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
            method(lr=rates[0]),
            parts.train,
            parts.validation,
            HIDDEN,
            parts.classes,
            seeds=experiment.seeds,
            epochs=EPOCHS,
            batch=BATCH,
        )
        record.curves |= {
            tuning.entry(rates[0], seed): each
            for seed, each in zip(experiment.seeds, errors, strict=True)
        }
        experiment.save_record(record, path)
        accuracies = tuning.scores(record, parts.classes)
        print(f"{name}, {rates[0]:g}: {100 * accuracies[rates[0]]:.1f} %", flush=True)


def validation_errors(opt, train, validation, hidden, classes, *, seeds, epochs, batch):
    """Train a network of each seed, and return its validation errors, one for each epoch.

    They are measured at θ, where Nesterov momentum takes its gradients elsewhere. A network whose
    scores are not finite has the error 1.

    Parameters
    ----------
    opt : Optimizer
        Any of ``optdl.optimizers``.
    hidden : sequence of int
        Widths of the hidden layers.
    """
    curves = []
    for seed in seeds:
        network = fully_connected((train.x.shape[1], *hidden, classes), seed=seed)
        generator = torch.Generator().manual_seed(order_seed(seed))
        theta = [leaf.detach().clone() for leaf in network.parameters()]
        state, errors = opt.init(theta), []
        for _ in range(epochs):
            theta, state = one_epoch(opt, network, theta, state, train, batch, generator)
            errors.append(error_rate(network, theta, validation))
        curves.append(errors)
    return curves


def one_epoch(opt, network, theta, state, train, batch, generator):
    """Return the parameters and the state of the optimizer after an epoch."""
    x, y = torch.from_numpy(train.x), torch.from_numpy(train.y)
    for rows in torch.split(torch.randperm(len(y), generator=generator), batch):

        def gradient(at, rows=rows):
            leaves = with_values(network, at)
            return list(torch.autograd.grad(cross_entropy(network(x[rows]), y[rows]), leaves))

        theta, state = opt.step(theta, state, gradient, check_finite=False)
    return theta, state


@torch.no_grad()
def error_rate(network, theta, examples):
    """Return the fraction of examples that are misclassified; 1 if a score is not finite."""
    with_values(network, theta)
    scores = network(torch.from_numpy(examples.x))
    if not scores.isfinite().all():
        return 1.0
    return (scores.argmax(1) != torch.from_numpy(examples.y)).double().mean().item()


@torch.no_grad()
def with_values(network, theta):
    """Return the parameters of the network, to which these values were given."""
    leaves = list(network.parameters())
    for leaf, value in zip(leaves, theta, strict=True):
        leaf.copy_(value)
    return leaves


def draw(experiment):
    """Draw the validation accuracy after the last epoch against the rate, mean of the seeds."""
    use_style()
    fig, axes = plt.subplots(2, 4, figsize=(13, 6), sharey=True)
    for ax, name in zip(axes.flat, METHODS, strict=True):
        if file(experiment, name).exists():
            record = Record.load(file(experiment, name))
            accuracies = tuning.scores(record, 10)
            ends = {rate: [] for rate in accuracies}
            for entry, errors in record.curves.items():
                ends[float(entry.partition(",")[0])].append(1 - errors[-1])
            band = (
                [min(ends[rate]) for rate in accuracies],
                [max(ends[rate]) for rate in accuracies],
            )
            plot_curves(
                {name: list(accuracies.values())},
                ax,
                x=list(accuracies),
                bands={name: band},
                xlabel="rate",
                ylabel="validation accuracy",
            )
        ax.set(xscale="log", title=name)
    return experiment.save(fig)


if __name__ == "__main__":
    experiment = Experiment(__file__, PANELS, description=__doc__)
    for name in [] if experiment.options.draw else METHODS:
        find(experiment, name)
    draw(experiment)
