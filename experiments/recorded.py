"""The recorded runs of the book: what its pages would train for longer than a few seconds.

::

    python experiments/recorded.py                   # what is missing, or has another configuration
    python experiments/recorded.py erm               # what the page needs
    python experiments/recorded.py bnp-minibatch-6   # by name; --again repeats what is there
"""

import sys
from pathlib import Path

import numpy as np
import torch

from optdl import batchnorm, bnp, erm, optimizers
from optdl.data import Examples, load
from optdl.initialization import InputNormalizer
from optdl.networks import cnn5, fully_connected
from optdl.recordings import Recording, main
from optdl.training import train

FOLDER = Path(__file__).resolve().parent / "results" / "recorded"
SEEDS = range(3)


# --- Empirical risk minimization --------------------------------------------------------------


def all_digits(seed):
    """Return the features and labels of all digits, in a random order."""
    digits = load("digits")
    order = np.random.default_rng(seed).permutation(len(digits.y_train) + len(digits.y_test))
    x = np.concatenate([digits.x_train, digits.x_test])
    return x[order], np.concatenate([digits.y_train, digits.y_test])[order]


def two_layers(seed, hidden, bias):
    """Return a network with one hidden layer, and torch's own initial weights."""
    torch.manual_seed(seed)
    first = torch.nn.Linear(64, hidden, bias=bias)
    last = torch.nn.Linear(hidden, 10, bias=bias)
    return torch.nn.Sequential(first, torch.nn.ReLU(), last)


def train_past_zero(seed, few, hidden, lr, hooks, **loop):
    """Train on few digits, far past the last training error, and watch the margins."""
    x, y = all_digits(seed)
    network = two_layers(seed, hidden, bias=False)
    sgd = torch.optim.SGD(network.parameters(), lr=lr)
    margins = erm.MarginHook(torch.from_numpy(x[:few]), y[:few])
    examples, rest = Examples(x[:few], y[:few]), Examples(x[few:], y[few:])
    return train(
        network, examples, sgd, validation=rest, hooks=[margins, *hooks], seed=seed, **loop
    )


def train_on_wrong_labels(seed, wrong, hidden, lr, hooks, **loop):
    """Train on 500 digits of which some have wrong labels, without a halt."""
    (x, y), rng = all_digits(seed), np.random.default_rng(seed)
    rows, noisy = rng.choice(500, size=wrong, replace=False), y[:500].copy()
    noisy[rows] = (noisy[rows] + rng.integers(1, 10, size=wrong)) % 10
    network = two_layers(seed, hidden, bias=True)
    sgd = torch.optim.SGD(network.parameters(), lr=lr)
    tensors, loss = (
        (torch.from_numpy(x[:500]), torch.from_numpy(noisy)),
        torch.nn.CrossEntropyLoss(),
    )
    hooks = [erm.GradientNormHook(*tensors, loss), *hooks]
    held_out = Examples(x[500:1000], y[500:1000])
    return train(
        network, Examples(x[:500], noisy), sgd, validation=held_out, hooks=hooks, seed=seed, **loop
    )


ERM = [
    Recording(
        "erm-after-zero",
        train_past_zero,
        {"few": 100, "hidden": 256, "lr": 0.05, "batch_size": 8, "epochs": 170},
        {f"seed {seed}": {"seed": seed} for seed in range(10)},
        ("train_error", "validation_error", "normalized_margin"),
    ),
    Recording(
        "erm-without-halt",
        train_on_wrong_labels,
        {"wrong": 100, "hidden": 256, "lr": 0.05, "batch_size": 16, "epochs": 300},
        {"seed 0": {"seed": 0}},
        ("train_error", "validation_error", "batch_gradient_norm"),
    ),
]


# --- Optimizers -------------------------------------------------------------------------------


class Stepped(torch.optim.Optimizer):
    """One of the course's optimizers as one of torch, whose parameters are the interim points."""

    def __init__(self, parameters, opt):
        super().__init__(parameters, {"lr": opt.lr})
        self.opt, self.leaves = opt, self.param_groups[0]["params"]
        self.theta = [leaf.detach().clone() for leaf in self.leaves]
        self.memory = opt.init(self.theta)

    @torch.no_grad()
    def step(self, closure=None):
        """Take a step with the gradients of the interim points."""
        g = [leaf.grad for leaf in self.leaves]
        self.theta, self.memory = self.opt.step(self.theta, self.memory, lambda theta: g)
        for leaf, ahead in zip(self.leaves, self.opt.interim(self.theta, self.memory), strict=True):
            leaf.copy_(ahead)


def train_by_method(seed, method, lr, hooks, **loop):
    """Train one hidden layer on digits by an optimizer of the course."""
    network = fully_connected((64, 32, 10), seed=seed)
    opt = Stepped(network.parameters(), getattr(optimizers, method)(lr=lr))
    split = load("digits").split(validation=300, seed=0)
    return train(
        network, split.train, opt, validation=split.validation, hooks=hooks, seed=seed, **loop
    )


METHOD_RATES = {
    "SGD": (0.03, 0.1, 0.3, 1, 3),
    "Momentum": (0.01, 0.03, 0.1, 0.3, 1),
    "Nesterov": (0.01, 0.03, 0.1, 0.3, 1),
    "AdaGrad": (0.01, 0.03, 0.1, 0.3, 1),
    "RMSProp": (0.001, 0.003, 0.01, 0.03, 0.1),
    "RMSPropNesterov": (0.0003, 0.001, 0.003, 0.01, 0.03),
    "AdaDelta": (0.3, 1, 3, 10, 30),
    "Adam": (0.003, 0.01, 0.03, 0.1, 0.3),
    "AdamW": (0.003, 0.01, 0.03, 0.1, 0.3),
}
OPTIMIZERS = [
    Recording(
        "optimizers-rates",
        train_by_method,
        {"batch_size": 32, "epochs": 10},
        {
            f"{method}, {lr:g}, {seed}": {"method": method, "lr": lr, "seed": seed}
            for method, rates in METHOD_RATES.items()
            for lr in rates
            for seed in range(5)
        },
        ("train_loss",),
    )
]


# --- Initialization ---------------------------------------------------------------------------

HIDDEN = {
    "sigmoid": (torch.nn.Sigmoid, 1.0),
    "tanh": (torch.nn.Tanh, 1.0),
    "ReLU": (torch.nn.ReLU, 2**0.5),
}
INPUTS = {
    "raw": lambda x, known: x,
    "centered": lambda x, known: x - known.mean,
    "normalized": lambda x, known: known(x),
}


def prepared_digits(inputs):
    """Return training and validation digits with raw, centered or normalized inputs."""
    split = load("digits").split(validation=300, seed=0)
    known = InputNormalizer.fit(split.train.x.astype(float), eps=1e-3)
    return [
        Examples(INPUTS[inputs](part.x.astype(float), known).astype(np.float32), part.y)
        for part in (split.train, split.validation)
    ]


def three_hidden_layers(activation, factor, seed):
    """Return a network with He's weights for the ReLU, Glorot's otherwise, times a factor."""
    function, gain = HIDDEN[activation]
    torch.manual_seed(seed)
    parts = []
    for _ in range(3):
        parts += [torch.nn.Linear(64, 64), function()]
        torch.nn.init.xavier_normal_(parts[-2].weight, gain * factor)
    parts.append(torch.nn.Linear(64, 10))
    torch.nn.init.xavier_normal_(parts[-1].weight)
    for layer in parts[::2]:
        torch.nn.init.zeros_(layer.bias)
    return torch.nn.Sequential(*parts)


def train_three_layers(seed, activation, factor, inputs, lr, hooks, **loop):
    """Train three hidden layers of 64 units on digits."""
    network = three_hidden_layers(activation, factor, seed)
    examples, validation = prepared_digits(inputs)
    sgd = torch.optim.SGD(network.parameters(), lr=lr)
    return train(network, examples, sgd, validation=validation, hooks=hooks, seed=seed, **loop)


def grid_of_rates(rates, seeds, **own):
    """Return the trainings of one network: every rate and every seed."""
    label = ", ".join(str(value) for value in own.values())
    return {
        f"{label}, rate {lr:g}, seed {seed}": {**own, "lr": lr, "seed": seed}
        for lr in rates
        for seed in seeds
    }


ACTIVATION_RATES = {
    "sigmoid": (0.4, 0.8, 1.6, 3.2),
    "tanh": (0.1, 0.2, 0.4, 0.8, 1.6),
    "ReLU": (0.05, 0.1, 0.2, 0.4, 0.8),
}
FACTOR_RATES = {  # twice the largest rate makes the ReLU networks diverge
    ("tanh", 0.5): (0.4, 0.8, 1.6),
    ("tanh", 2): (0.4, 0.8, 1.6, 3.2),
    ("tanh", 4): (0.4, 0.8, 1.6),
    ("ReLU", 0.5): (0.1, 0.2, 0.4),
    ("ReLU", 2): (0.05, 0.1, 0.2),
    ("ReLU", 4): (0.005, 0.01, 0.02, 0.04),
}
INPUT_RATES = {
    "raw": (0.05, 0.1, 0.2, 0.4, 0.8),
    "centered": (0.05, 0.1, 0.2, 0.4, 0.8),
    "normalized": (0.05, 0.1, 0.2, 0.4, 0.8),
}

INITIALIZATION = [
    Recording(
        "initialization-rates",
        train_three_layers,
        {"factor": 1, "inputs": "normalized", "batch_size": 32, "epochs": 8},
        {
            label: own
            for name, rates in ACTIVATION_RATES.items()
            for label, own in grid_of_rates(rates, range(5), activation=name).items()
        },
        ("train_loss", "validation_error"),
    ),
    Recording(
        "initialization-factors",
        train_three_layers,
        {"inputs": "normalized", "batch_size": 32, "epochs": 8},
        {
            label: own
            for (name, factor), rates in FACTOR_RATES.items()
            for label, own in grid_of_rates(rates, SEEDS, activation=name, factor=factor).items()
        },
        ("train_loss", "validation_error"),
    ),
    Recording(
        "initialization-inputs",
        train_three_layers,
        {"activation": "ReLU", "factor": 1, "batch_size": 32, "epochs": 6},
        {
            label: own
            for kind, rates in INPUT_RATES.items()
            for label, own in grid_of_rates(rates, SEEDS, inputs=kind).items()
        },
        ("train_loss", "validation_error"),
    ),
]


# --- Batch normalization ----------------------------------------------------------------------


RELATIVES = {
    "none": None,
    "BN": batchnorm.BatchNorm,
    "ghost BN": lambda features: batchnorm.GhostBatchNorm(features, ghost_size=16),
    "LN": "ln",
    "GN": lambda features: torch.nn.GroupNorm(5, features),
    "four things": lambda features: batchnorm.FourThingsNorm(
        features, groups=5, ghost_size=16, example_share=0.1
    ),
}
SIZES = (1, 2, 4, 8, 16, 32, 64)


def train_by_size(seed, normalization, batch_size, hooks, **loop):
    """Train two hidden layers at a rate in proportion to the minibatch."""
    network = fully_connected((64, 50, 50, 10), RELATIVES[normalization], seed=seed)
    sgd = torch.optim.SGD(network.parameters(), lr=0.1 * batch_size / 32)
    split = load("digits").split(validation=300, seed=0)
    examples = Examples(split.train.x[:1024], split.train.y[:1024])
    return train(
        network,
        examples,
        sgd,
        validation=split.validation,
        batch_size=batch_size,
        hooks=hooks,
        seed=seed,
        **loop,
    )


BATCHNORM = [
    Recording(
        "batchnorm-sizes",
        train_by_size,
        {"epochs": 5},
        {
            f"{name}, {size}, seed {seed}": {
                "normalization": name,
                "batch_size": size,
                "seed": seed,
            }
            for name in RELATIVES
            for size in SIZES
            for seed in SEEDS
            if size > 1 or name not in ("BN", "ghost BN")
        },
        ("validation_error",),
    )
]


# --- Batch normalization preconditioning ------------------------------------------------------

RATES = {
    60: {"vanilla": 0.3, "BN": 0.3, "BNP": 0.3, "BNP, ρ = 0.9": 0.3},
    6: {"vanilla": 0.1, "BN": 0.03, "BNP": 0.3, "BNP, ρ = 0.9": 0.3},
    1: {"vanilla": 0.01, "LN": 0.003, "BNP": 0.3},
}
EPOCHS = {60: 15, 6: 6, 1: 3}


def train_dense(seed, method, lr, hooks, **loop):
    """Train three hidden layers of 100 units on digits by one of the methods."""
    layers = {"BN": "bn", "LN": "ln"}.get(method)
    network = fully_connected((64, 100, 100, 100, 10), layers, seed=seed)
    sgd = torch.optim.SGD(network.parameters(), lr=lr)
    if method.startswith("BNP"):
        hooks = [bnp.BNP(network, 0.9 if "ρ" in method else 0.99), *hooks]
    split = load("digits").split(validation=238, seed=0)
    return train(
        network, split.train, sgd, validation=split.validation, hooks=hooks, seed=seed, **loop
    )


DENSE = [
    Recording(
        f"bnp-minibatch-{size}",
        train_dense,
        {"batch_size": size, "epochs": EPOCHS[size]},
        {
            f"{method}, seed {seed}": {"method": method, "lr": lr, "seed": seed}
            for method, lr in rates.items()
            for seed in SEEDS
        },
        ("validation_error",),
    )
    for size, rates in RATES.items()
]


# --- Its convolutions -------------------------------------------------------------------------

CNN_METHODS = {
    "vanilla": None,
    "BN": "bn",
    "BN, groups": lambda c: batchnorm.FourThingsNorm(c, groups=c // 4),
    "BNP": None,
}
CNN_SHARED = {
    "BN": "bn",
    "ghost BN": lambda c: batchnorm.GhostBatchNorm(c, ghost_size=8),
    "GN": "gn",
    "four things": lambda c: batchnorm.FourThingsNorm(
        c, groups=c // 4, ghost_size=8, example_share=0.1
    ),
}
SHARED_RATES = {
    32: {"BN": 0.1, "ghost BN": 0.1, "GN": 0.1, "four things": 0.03},
    2: {"BN": 0.01, "GN": 0.003, "four things": 0.003},
}
CNN_RATES = {32: (0.1, 0.3, 0.1, 1.0), 2: (0.03, 0.03, 0.01, 0.3), 1: (0.03, None, 0.003, 1.0)}
CNN_EPOCHS = {32: 10, 2: 5, 1: 4}


def large_digits():
    """Return 400 digits to train on and the test digits, of 24 × 24 pixels."""
    data = load("digits").subset(400)
    parts = (data.x_train, data.y_train), (data.x_test, data.y_test)
    return [Examples(x.reshape(-1, 1, 8, 8).repeat(3, 2).repeat(3, 3), y) for x, y in parts]


def train_convolutions(method, lr, hooks, **loop):
    """Train the network of five layers by one of the methods."""
    normalization = {**CNN_METHODS, **CNN_SHARED}[method]
    network = cnn5(1, 24, normalization=normalization, seed=loop["seed"])
    sgd = torch.optim.SGD(network.parameters(), lr=lr)
    if method == "BNP":
        hooks = [bnp.BNP(network), *hooks]
    examples, test = large_digits()
    return train(network, examples, sgd, validation=test, hooks=hooks, **loop)


CONVOLUTIONS = [
    Recording(
        "bnp_cnn-minibatches",
        train_convolutions,
        {},
        {
            f"{method}, {size}": {
                "method": method,
                "lr": lr,
                "batch_size": size,
                "epochs": CNN_EPOCHS[size],
                "seed": 0,
            }
            for size, rates in CNN_RATES.items()
            for method, lr in zip(CNN_METHODS, rates, strict=True)
            if lr is not None
        },
        ("validation_error",),
    ),
    Recording(
        "bnp_cnn-shared",
        train_convolutions,
        {},
        {
            f"{method}, {size}, seed {seed}": {
                "method": method,
                "lr": lr,
                "batch_size": size,
                "epochs": CNN_EPOCHS[size],
                "seed": seed,
            }
            for size, rates in SHARED_RATES.items()
            for method, lr in rates.items()
            for seed in SEEDS
        },
        ("validation_error",),
    ),
]

RECORDINGS = [*ERM, *OPTIMIZERS, *INITIALIZATION, *BATCHNORM, *DENSE, *CONVOLUTIONS]

if __name__ == "__main__":
    sys.exit(main(RECORDINGS, FOLDER, sys.argv[1:]))
