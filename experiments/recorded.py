"""The recorded runs of the book: what its pages would train for longer than a few seconds.

::

    python experiments/recorded.py                   # what is missing, or has another configuration
    python experiments/recorded.py erm               # what the page needs
    python experiments/recorded.py bnp-minibatch-6   # by name; --again repeats what is there
"""

import copy
import itertools
import sys
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from optdl import batchnorm, bnp, conditioning, dropout, erm, optimizers
from optdl.data import Examples, load
from optdl.experiments.recorded_runs import RecordedRun, main
from optdl.initialization import InputNormalizer
from optdl.networks import cnn5, fully_connected
from optdl.records import Record
from optdl.training import Hook, Schedule, State, order_seed, train

FOLDER = Path(__file__).resolve().parent / "results" / "recorded"
SEEDS = range(3)
RUNS = []


def product(label, rows=({},), seeds=SEEDS, **axes):
    """Return the trainings of each row with all combinations of values, each with its label."""
    axes |= {"seed": seeds}
    combined = itertools.product(rows, *axes.values())
    found = [row | dict(zip(axes, values, strict=True)) for row, *values in combined]
    return {label.format(**one): one for one in found}


def by_rates(label, grids, seeds=SEEDS, of=("method",), **axes):
    """Return the trainings of what has learning rates of its own: values of the names ``of``."""
    keys = {own: own if isinstance(own, tuple) else (own,) for own in grids}
    rows = [
        {**dict(zip(of, keys[own], strict=True)), "lr": lr} for own in grids for lr in grids[own]
    ]
    return product(label, rows, seeds, **axes)


def recorded(name, settings, trainings, curves, digits=6):
    """Record trainings by the function below: see :class:`RecordedRun`."""

    def register(train):
        RUNS.append(RecordedRun(name, train, settings, trainings, curves, digits))
        return train

    return register


def stepwise(steps):
    """Return a training, for the hooks, of what no loop of ``optdl.training`` does.

    The generator yields the loss of each step, and a dict with what comes to the curves.
    """

    def training(hooks, **settings):
        state = State(torch.nn.Identity(), torch.optim.SGD([torch.zeros(1)]), {})
        for each in steps(**settings):
            if isinstance(each, dict):
                state.append(**each)
                continue
            state.loss = each
            for hook in hooks:
                hook.after_step(state)
            if state.stop:
                break
        return Record(state.curves)

    return training


def by_sgd(network, lr, parts, hooks, guess=False, **loop):
    """Train by SGD on the first part, validate on the other; ``guess`` is what diverging means."""
    examples, validation = parts
    sgd = torch.optim.SGD(network.parameters(), lr=lr)
    try:
        return train(network, examples, sgd, validation=validation, hooks=hooks, **loop)
    except FloatingPointError:
        if not guess:
            raise
        guesses = {"train_loss": np.log(10), "validation_error": 0.9}
        return Record({name: [value] * loop["epochs"] for name, value in guesses.items()})


def digits(count=None, validation=300):
    """Return training digits, all or the first ones, and some for validation."""
    split = load("digits").split(validation=validation, seed=0)
    return split.train.first(count or len(split.train)), split.validation


def tensors(examples):
    """Return features and labels for torch."""
    return torch.from_numpy(examples.x), torch.from_numpy(examples.y)


def one_hidden_layer(seed, hidden, activation, bias=True):
    """Return a network between 64 pixels and 10 scores, with torch's own initial weights."""
    torch.manual_seed(seed)
    first, last = (torch.nn.Linear(*widths, bias) for widths in ((64, hidden), (hidden, 10)))
    return torch.nn.Sequential(first, activation, last)


# --- Empirical risk minimization --------------------------------------------------------------


def all_digits(seed):
    """Return the features and labels of all digits, in a random order."""
    data = load("digits")
    x, y = (
        np.concatenate(parts)
        for parts in ((data.x_train, data.x_test), (data.y_train, data.y_test))
    )
    order = np.random.default_rng(seed).permutation(len(y))
    return x[order], y[order]


@recorded(
    "erm-after-zero",
    {"few": 100, "hidden": 256, "lr": 0.05, "batch_size": 8, "epochs": 170},
    product("seed {seed}", seeds=range(10)),
    ("train_error", "validation_error", "normalized_margin"),
)
def train_past_zero(seed, few, hidden, lr, hooks, **loop):
    """Train on few digits, far past the last training error, and watch the margins."""
    x, y = all_digits(seed)
    hooks = [erm.MarginHook(torch.from_numpy(x[:few]), y[:few]), *hooks]
    parts = Examples(x[:few], y[:few]), Examples(x[few:], y[few:])
    network = one_hidden_layer(seed, hidden, torch.nn.ReLU(), bias=False)
    return by_sgd(network, lr, parts, hooks, seed=seed, **loop)


@recorded(
    "erm-without-halt",
    {"wrong": 100, "hidden": 256, "lr": 0.05, "batch_size": 16, "epochs": 300},
    product("seed {seed}", seeds=[0]),
    ("train_error", "validation_error", "batch_gradient_norm"),
)
def train_on_wrong_labels(seed, wrong, hidden, lr, hooks, **loop):
    """Train on 500 digits of which some have wrong labels, without a halt."""
    (x, y), rng = all_digits(seed), np.random.default_rng(seed)
    picked, noisy = rng.choice(500, size=wrong, replace=False), y[:500].copy()
    noisy[picked] = (noisy[picked] + rng.integers(1, 10, size=wrong)) % 10
    parts = Examples(x[:500], noisy), Examples(x[500:1000], y[500:1000])
    hooks = [erm.GradientNormHook(*tensors(parts[0]), torch.nn.CrossEntropyLoss()), *hooks]
    network = one_hidden_layer(seed, hidden, torch.nn.ReLU())
    return by_sgd(network, lr, parts, hooks, seed=seed, **loop)


# --- Ill-conditioning and the landscape -------------------------------------------------------


@recorded(
    "conditioning-students",
    {"epochs": 30},
    product("teacher {seed}, {units} units", seeds=range(8), units=(3, 5, 8)),
    ("loss", "gradient_norm", "smallest_eigenvalue", "largest_weight"),
)
@stepwise
def fit_students(seed, units, epochs):
    """Fit students to one teacher, each epoch from another start, and describe where each ends.

    The losses that the hooks see are those of the first students after 5 evaluations.
    """
    x, y, _ = conditioning.student_teacher(seed)
    problem = conditioning.tanh_regression(x, y, units)
    for start in np.random.default_rng([seed, units]).normal(size=(epochs, 4 * units)):
        early = conditioning.fit_from(x, y, start[None], evaluations=5)
        yield problem.value(early[0])
        [end] = conditioning.fit_from(x, y, early, evaluations=3000)
        yield {
            "loss": problem.value(end),
            "gradient_norm": np.linalg.norm(problem.gradient(end)),
            "smallest_eigenvalue": np.linalg.eigvalsh(problem.hessian(end))[0],
            "largest_weight": np.abs(end).max(),
        }


@recorded(
    "conditioning-saddles",
    {"epochs": 300},
    product("teacher {seed}", seeds=range(8)),
    ("loss", "negative_eigenvalues"),
)
@stepwise
def search_critical_points(seed, epochs):
    """Solve ∇J = 0 for a student with 3 units, each epoch from another point of a descent.

    ``negative_eigenvalues`` is −1 where no solution with weights below 20 was found.
    """
    x, y, _ = conditioning.student_teacher(seed)
    problem, rng = conditioning.tanh_regression(x, y, 3), np.random.default_rng(seed)
    for epoch in range(epochs):
        point = rng.normal(size=12)
        for _ in range((0, 5, 20, 60, 200)[epoch % 5]):
            point = point - 0.3 * problem.gradient(point)
        point = point + 0.1 * rng.normal(size=12)
        yield (start := problem.value(point))
        solution = conditioning.critical_points(problem, point[None])
        found = len(solution.points) == 1 and np.abs(solution.points).max() < 20
        loss, index = (solution.losses[0], solution.indices[0]) if found else (start, -1)
        yield {"loss": loss, "negative_eigenvalues": index}


def tanh_network(seed):
    """Return a network with 16 tanh units, and 300 digits to train it on."""
    few = digits(300)[0]
    return one_hidden_layer(seed, 16, torch.nn.Tanh()).double(), Examples(
        few.x.astype(float), few.y
    )


@recorded(
    "conditioning-minibatches",
    {"batch_size": 10, "epochs": 60},
    product("{lr}, seed {seed}", lr=(0.02, 0.05, 0.2), drop=[[]])
    | product("0.05 and 0.005, seed {seed}", lr=[0.05], drop=[[40]]),
    ("train_loss", "gradient_norm", "slope", "curvature"),
)
def train_with_curvature(seed, lr, drop, hooks, **loop):
    """Train by minibatches, and predict the effect of each step on the loss of all digits."""
    network, examples = tanh_network(seed)
    sgd, loss = torch.optim.SGD(network.parameters(), lr=lr), conditioning.squared_error
    curvature = conditioning.CurvatureHook(*tensors(examples), loss)
    hooks = [curvature, Schedule(sgd, steps=30, decay=drop), *hooks]
    return train(network, examples, sgd, hooks=hooks, seed=seed, loss=loss, **loop)


@recorded(
    "conditioning-edge",
    {"epochs": 50},
    product("{lr}, seed {seed}", lr=(0.05, 0.15, 0.25)),
    ("loss", "rises", "sharpness", "gradient_norm", "curvature", "opposed", "cosine"),
)
@stepwise
def descend_to_the_edge(seed, lr, epochs, every=30):
    """Train by full-batch gradient descent, and describe each stretch of a few steps."""
    network, examples = tanh_network(seed)
    data = *tensors(examples), conditioning.squared_error
    for _ in range(epochs):
        run = conditioning.track_descent(network, *data, lr, steps=every, every=every)
        yield from run.losses[:-1]
        yield {
            "loss": run.losses[-1],
            "rises": np.mean(np.diff(run.losses) > 0),
            "sharpness": run.sharpness[0],
            "gradient_norm": run.gradient_norms[0],
            "curvature": run.curvatures[0],
            "opposed": np.mean(run.cosines < 0),
            "cosine": np.median(run.cosines),
        }


# --- Optimizers -------------------------------------------------------------------------------


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
    "Lion": (0.0003, 0.001, 0.003, 0.01, 0.03),
    "Muon": (0.003, 0.01, 0.03, 0.1, 0.3),
}
CHOSEN_RATES = {  # the lowest mean validation error in optimizers-rates
    "SGD": 0.3, "Momentum": 0.1, "Nesterov": 0.1, "AdaGrad": 0.1, "RMSProp": 0.01,
    "AdaDelta": 3, "Adam": 0.01, "AdamW": 0.01, "Lion": 0.003, "Muon": 0.01,
}  # fmt: skip
TURNED_RATES = {
    "SGD": (0.03, 0.1, 0.3, 1, 3),
    "Adagrad": (0.01, 0.03, 0.1, 0.3, 1),
    "RMSprop": (0.0003, 0.001, 0.003, 0.01, 0.03),
    "Adam": (0.001, 0.003, 0.01, 0.03, 0.1),
}


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


@recorded(
    "optimizers-rates",
    {"batch_size": 32, "epochs": 10},
    by_rates("{method}, {lr:g}, {seed}", METHOD_RATES, range(5)),
    ("train_loss", "validation_error"),
    digits=4,
)
# other seeds than those by which the rates were chosen
@recorded(
    "optimizers-curves",
    {"batch_size": 32, "epochs": 10},
    by_rates("{method}, seed {seed}", {m: [lr] for m, lr in CHOSEN_RATES.items()}, range(5, 10))
    | by_rates("SGD at {lr:g}, seed {seed}", {"SGD": (0.03, 1, 3)}, range(5, 10)),
    ("train_loss", "validation_error"),
)
def train_by_method(seed, method, lr, hooks, **loop):
    """Train one hidden layer on digits by an optimizer of the course.

    Biases have the rule of the weights, except with ``Muon``, which is made for matrices: they
    have momentum 0.95 in Nesterov's form, with the same rate, as in ``optimizers.Muon``.
    """
    network, (examples, validation) = fully_connected((64, 32, 10), seed=seed), digits()
    opt = Stepped(network.parameters(), getattr(optimizers, method)(lr=lr))
    return train(network, examples, opt, validation=validation, hooks=hooks, seed=seed, **loop)


class Turned(torch.optim.Optimizer):
    """A method that is given the parameters in turned coordinates: θ = Qz, and it moves z."""

    def __init__(self, parameters, method, turn):
        super().__init__(parameters, {})
        self.leaves, self.turn = self.param_groups[0]["params"], turn
        flat = torch.nn.utils.parameters_to_vector(self.leaves).detach()
        self.z = torch.nn.Parameter(turn.T @ flat)
        self.method = method([self.z])

    @torch.no_grad()
    def step(self, closure=None):
        """Take a step of the method with the gradient Qᵀg."""
        self.z.grad = self.turn.T @ torch.cat([leaf.grad.flatten() for leaf in self.leaves])
        self.method.step()
        torch.nn.utils.vector_to_parameters(self.turn @ self.z, self.leaves)


@lru_cache(maxsize=5)
def random_turn(n, seed):
    """Return a random orthogonal matrix, uniformly distributed."""
    torch.manual_seed(seed)
    Q, R = torch.linalg.qr(torch.randn(n, n))
    return Q * R.diagonal().sign()


@recorded(
    "optimizers-rotation",
    {"batch_size": 32, "epochs": 10},
    by_rates("{method}, straight, {lr:g}, {seed}", TURNED_RATES, turned=[False])
    | by_rates("{method}, turned, {lr:g}, {seed}", TURNED_RATES, turned=[True]),
    ("train_loss",),
)
def train_turned(seed, method, lr, turned, hooks, **loop):
    """Train one hidden layer on digits, in its own or in randomly turned coordinates.

    The trainings are named ``METHOD, straight, RATE, SEED`` and ``METHOD, turned, RATE, SEED``.
    A seed has its own turn, the same for all methods and rates. In exact arithmetic SGD does not
    notice it: the difference between the two is rounding, enlarged by the training.
    """
    network = fully_connected((64, 32, 10), seed=seed)
    parameters, rule = list(network.parameters()), partial(getattr(torch.optim, method), lr=lr)
    turn = random_turn(sum(p.numel() for p in parameters), seed)
    opt = Turned(parameters, rule, turn) if turned else rule(parameters)
    return train(network, digits()[0], opt, hooks=hooks, seed=seed, **loop)


class GradientNoise(Hook):
    """Measure the gradient and the noise of a minibatch after each epoch.

    ``batch_gradient_norm`` is ‖∇J‖ over all m examples. ``gradient_noise`` is the root mean square
    of ‖g − ∇J‖, g the gradient of n examples that are drawn without replacement: the square is
    (m − n) / (m − 1) / n times the mean of ‖gᵢ − ∇J‖² over the examples.
    """

    def __init__(self, examples, batch_size):
        self.data, m = tensors(examples), len(examples)
        self.factor = (m - batch_size) / (m - 1) / batch_size

    def after_epoch(self, state):
        """Append to the curves."""
        parameters = {name: p.detach() for name, p in state.model.named_parameters()}

        def loss(parameters, x, y):
            scores = torch.func.functional_call(state.model, parameters, x[None])
            return cross_entropy(scores, y[None])

        each = torch.func.vmap(torch.func.grad(loss), (None, 0, 0))(parameters, *self.data)
        rows = torch.cat([g.flatten(1) for g in each.values()], dim=1).double()
        mean = rows.mean(0)
        noise = (self.factor * (rows - mean).square().sum(1).mean()).sqrt()
        state.append(batch_gradient_norm=mean.norm(), gradient_noise=noise)


@recorded(
    "optimizers-interpolation",
    {"lr": 0.2, "batch_size": 32, "epochs": 200},
    product("{hidden} hidden units, seed {seed}", hidden=(32, 4)),
    ("train_loss", "batch_gradient_norm", "gradient_noise"),
)
def train_at_constant_rate(seed, hidden, lr, hooks, **loop):
    """Train on normalized digits by SGD at a constant rate, and watch the gradient's noise.

    With 32 hidden units the network interpolates: it fits all examples, so all gradients vanish
    together. With 4 it cannot, and at the minimum gradients of examples remain that cancel.
    """
    examples, _ = prepared_digits("normalized")
    network = fully_connected((64, hidden, 10), seed=seed)
    hooks = [GradientNoise(examples, loop["batch_size"]), *hooks]
    return by_sgd(network, lr, (examples, None), hooks, seed=seed, **loop)


@recorded(
    "optimizers-batches",
    {"target": 0.1, "limit": 3000, "epochs": 7},
    product(
        "{method}, {batch_size}, seed {seed}",
        [{"method": "SGD", "smallest": 2**-5}, {"method": "Adam", "smallest": 2**-9}],
        batch_size=(1, 2, 4, 8, 16, 32, 128, 512),
    ),
    ("rate", "steps"),
)
@stepwise
def count_steps(seed, method, batch_size, target, limit, smallest, epochs):
    """Count the steps to a training loss, at each of several rates; an "epoch" is a rate.

    The curve ``rate`` is ``smallest``, 2 and 4 times ``smallest``, and so on. The curve ``steps``
    is the number of the first step after which the loss of all 1,024 examples is ``target`` or
    less; it is 0 if ``limit`` steps were not enough, or the loss was no longer finite.
    The loss is computed whenever 32 examples were seen, or after each step of a larger minibatch.
    """
    x, y = tensors(digits(1024)[0])
    for lr in smallest * 2.0 ** np.arange(epochs):
        network = fully_connected((64, 32, 10), seed=seed)
        opt = getattr(torch.optim, method)(network.parameters(), lr=lr)
        steps = 0
        for step, rows in enumerate(minibatches(len(y), batch_size, limit, seed), 1):
            loss = cross_entropy(network(x[rows]), y[rows])
            opt.zero_grad()
            loss.backward()
            opt.step()
            yield loss.item()
            if not loss.isfinite():
                break
            with torch.no_grad():
                if step * batch_size % 32 == 0 and cross_entropy(network(x), y) <= target:
                    steps = step
                    break
        yield {"rate": lr, "steps": steps}


def minibatches(m, size, limit, seed):
    """Return so many minibatches of m examples, in a new order in each epoch."""
    generator = torch.Generator().manual_seed(seed)
    orders = (torch.randperm(m, generator=generator).split(size) for _ in itertools.count())
    return itertools.islice(itertools.chain.from_iterable(orders), limit)


# --- Initialization ---------------------------------------------------------------------------


HIDDEN = {  # with the gain that the equations of the chapter ask for
    "sigmoid": (torch.nn.Sigmoid, 4.0),
    "tanh": (torch.nn.Tanh, 1.0),
    "ReLU": (torch.nn.ReLU, 2**0.5),
}
INPUTS = {
    "raw": lambda x, known: x,
    "centered": lambda x, known: x - known.mean,
    "normalized": lambda x, known: known(x),
}
ACTIVATION_RATES = {
    "sigmoid": (0.8, 1.6, 3.2, 6.4),
    "tanh": (0.2, 0.4, 0.8, 1.6),
    "ReLU": (0.1, 0.2, 0.4, 0.8),
}
FACTOR_RATES = {
    ("sigmoid", 0.25): (0.8, 1.6, 3.2, 6.4),  # the weights of tanh
    ("tanh", 2): (0.4, 0.8, 1.6, 3.2),
    ("tanh", 4): (0.2, 0.4, 0.8, 1.6),
    ("ReLU", 2): (0.025, 0.05, 0.1, 0.2),
    ("ReLU", 4): (0.005, 0.01, 0.02, 0.04),
}
DEEP_RATES = {
    ("sigmoid", 1): (0.2, 0.4, 0.8, 1.6),
    **{("tanh", factor): (0.05, 0.1, 0.2, 0.4) for factor in (1, 2, 4)},
    ("ReLU", 1): (0.025, 0.05, 0.1, 0.2),
    ("ReLU", 2): (0.00025, 0.0005, 0.001),  # at twice the largest rate all runs diverge
    ("ReLU", 4): (1e-8, 1e-7, 1e-6),
}
HIDDEN_CURVES = ("train_loss", "validation_error")
ON_NORMALIZED = {"inputs": "normalized", "batch_size": 32, "epochs": 8}
BY_FACTOR = "{activation}, {factor}, rate {lr:g}, seed {seed}"


def prepared_digits(inputs):
    """Return training and validation digits with raw, centered or normalized inputs."""
    parts = digits()
    known = InputNormalizer.fit(parts[0].x.astype(float), eps=1e-3)
    return [
        Examples(INPUTS[inputs](part.x.astype(float), known).astype(np.float32), part.y)
        for part in parts
    ]


@recorded(
    "initialization-factors",
    ON_NORMALIZED | {"depth": 3},
    by_rates(BY_FACTOR, FACTOR_RATES, range(5), ("activation", "factor")),
    HIDDEN_CURVES,
)
@recorded(
    "initialization-deep",
    ON_NORMALIZED | {"depth": 10},
    by_rates(BY_FACTOR, DEEP_RATES, range(5), ("activation", "factor")),
    HIDDEN_CURVES,
)
@recorded(
    "initialization-rates",
    ON_NORMALIZED | {"factor": 1},
    by_rates("{activation}, rate {lr:g}, seed {seed}", ACTIVATION_RATES, range(5), ("activation",)),
    HIDDEN_CURVES,
)
@recorded(
    "initialization-inputs",
    {"activation": "ReLU", "factor": 1, "batch_size": 32, "epochs": 6},
    product("{inputs}, rate {lr:g}, seed {seed}", inputs=INPUTS, lr=(0.05, 0.1, 0.2, 0.4, 0.8)),
    HIDDEN_CURVES,
)
def train_hidden_layers(seed, activation, factor, inputs, lr, hooks, depth=3, **loop):
    """Train hidden layers of 64 units, with the initial weights of their activation times a factor.

    A run that diverges counts as a guess.
    """
    function, gain = HIDDEN[activation]
    torch.manual_seed(seed)
    parts = []
    for _ in range(depth):
        parts += [torch.nn.Linear(64, 64), function()]
        torch.nn.init.xavier_normal_(parts[-2].weight, gain * factor)
    parts.append(torch.nn.Linear(64, 10))
    torch.nn.init.xavier_normal_(parts[-1].weight)
    network = torch.nn.Sequential(*parts)
    for layer in dense(network):
        torch.nn.init.zeros_(layer.bias)
    return by_sgd(network, lr, prepared_digits(inputs), hooks, guess=True, seed=seed, **loop)


def dense(network):
    """Return the dense layers of a network."""
    return [layer for layer in network if isinstance(layer, torch.nn.Linear)]


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
BY_SIZE = "{normalization}, {batch_size}, seed {seed}"
OF_ONE = [name for name in RELATIVES if name not in ("BN", "ghost BN")]
AHEAD = (0, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
AHEAD_CURVES = {
    f"{what} {r:g}": (what, k) for what in ("loss", "change") for k, r in enumerate(AHEAD)
}
FEW = 1024  # without a last minibatch of one


@recorded(
    "batchnorm-sizes",
    {"epochs": 5},
    product(BY_SIZE, normalization=RELATIVES, batch_size=(2, 4, 8, 16, 32, 64))
    | product(BY_SIZE, normalization=OF_ONE, batch_size=[1]),
    ("validation_error",),
)
def train_by_size(seed, normalization, batch_size, hooks, **loop):
    """Train two hidden layers at a rate in proportion to the minibatch."""
    network = fully_connected((64, 50, 50, 10), RELATIVES[normalization], seed=seed)
    loop |= {"batch_size": batch_size, "seed": seed}
    return by_sgd(network, 0.1 * batch_size / 32, digits(FEW), hooks, **loop)


@recorded(
    "batchnorm-rates",
    {"batch_size": 32, "epochs": 5},
    product(
        "{normalization}, rate {lr:g}, seed {seed}",
        normalization=("none", "bn"),
        lr=(0.01, 0.03, 0.1, 0.3, 1, 3),
        factor=[1],
        seeds=range(5),
    )
    | product(
        "{normalization}, factor {factor:g}, seed {seed}",
        normalization=("none", "bn"),
        lr=[0.1],
        factor=(0.03, 0.1, 0.3, 1, 3, 10),
        seeds=range(5),
    ),
    ("validation_error",),
)
def train_by_rate(seed, normalization, lr, factor, hooks, **loop):
    """Train two hidden layers, all initial weights times a factor; who diverges guesses."""
    make = {"none": None, "bn": lambda features: batchnorm.BatchNorm(features, 0.9, 1e-3)}
    network = fully_connected((64, 50, 50, 10), make[normalization], seed=seed)
    with torch.no_grad():
        for layer in dense(network):
            layer.weight *= factor
    loop |= {"guess": True, "seed": order_seed(seed)}
    return by_sgd(network, lr, digits(FEW), hooks, **loop)


class WeightVectors(Hook):
    """Follow the weight vectors of the units.

    ``turned K`` is the angle to the start in degrees after an epoch, mean over the units of layer
    K. ``longer`` is by how many percent a step of η = 1.6 along the gradient of all examples would
    lengthen the vectors of the normalized units, with their bias, after the first step of an epoch.
    """

    def __init__(self, examples, every):
        self.x, self.y = tensors(examples)
        self.every, self.start = every, []

    def after_backward(self, state):
        """Remember the vectors before the first step."""
        self.start = self.start or [layer.weight.detach().clone() for layer in dense(state.model)]

    def after_step(self, state):
        """Append to the curve of lengths."""
        if state.step % self.every != 1:
            return
        model = copy.deepcopy(state.model)  # whose averages and gradients may change
        cross_entropy(model(self.x), self.y).backward()
        growth = []
        for layer in dense(model)[:-1]:
            rows = torch.column_stack((layer.weight, layer.bias))
            slopes = torch.column_stack((layer.weight.grad, layer.bias.grad))
            growth.append((rows - 1.6 * slopes).norm(dim=1) / rows.norm(dim=1) - 1)
        state.append(longer=100 * torch.cat(growth).mean().item())

    def after_epoch(self, state):
        """Append to the curves of angles."""
        for number, layer in enumerate(dense(state.model)):
            cosines = torch.cosine_similarity(self.start[number], layer.weight, dim=1)
            turned = cosines.clamp(max=1).arccos().rad2deg().mean().item()
            state.append(**{f"turned {number + 1}": turned})


@recorded(
    "batchnorm-weights",
    {"batch_size": 32},
    product(
        "factor {factor}, seed {seed}", [{"factor": 1, "epochs": 10}, {"factor": 10, "epochs": 40}]
    ),
    ("validation_error", "longer", "turned 1", "turned 2", "turned 3"),
)
def train_and_turn(seed, factor, hooks, **loop):
    """Train with batch normalization, and watch the weight vectors."""
    hooks = [WeightVectors(digits(FEW)[0], every=32), *hooks]
    return train_by_rate(seed, "bn", 0.1, factor, hooks, **loop)


@recorded(
    "batchnorm-smoothness",
    {"batch_size": 32, "epochs": 10},
    product("{normalization}, seed {seed}", normalization=("none", "bn"), seeds=range(5)),
    list(AHEAD_CURVES),
)
def train_along_steps(seed, normalization, hooks, **loop):
    """Train two hidden layers, and look along the gradient after the first step of each epoch."""
    network = fully_connected((64, 50, 50, 10), batchnorm.NORMALIZATIONS[normalization], seed=seed)
    examples, _ = digits(FEW)
    along = batchnorm.AlongStepHook(*tensors(examples), AHEAD, every=FEW // loop["batch_size"])
    by_sgd(network, 0.1, (examples, None), [along, *hooks], seed=seed, **loop)
    return Record(
        {
            name: [float(getattr(step, what)[k]) for step in along.results]
            for name, (what, k) in AHEAD_CURVES.items()
        }
    )


# --- Dropout ----------------------------------------------------------------------------------


def relabelled_digits(seed):
    """Return 300 digits, a tenth with a random label, those that are wrong, and all others.

    The first half of the others chooses the epoch, and the second half measures the error.
    """
    data = load("digits")
    split, rng = data.split(len(data.y_train) - 300, seed=seed), np.random.default_rng(seed)
    labels = np.where(rng.random(300) < 0.1, rng.integers(10, size=300), split.train.y)
    wrong, others = labels != split.train.y, split.validation
    half = len(others) // 2
    return (
        Examples(split.train.x, labels),
        Examples(split.train.x[wrong], labels[wrong]),
        others.first(half),
        Examples(others.x[half:], others.y[half:]),
    )


@recorded(
    "dropout-digits",
    {"hidden": 200, "lr": 0.1, "batch_size": 20, "epochs": 60},
    product("p = {p:g}, seed {seed}", p=(0.0, 0.25, 0.5, 0.75, 0.95), seeds=range(8)),
    ("train_loss", "wrong_error", "validation_loss", "validation_error", "test_error"),
)
@stepwise
def train_dropped(seed, p, epochs, **network):
    """Train with dropout, and measure the whole network on several sets of digits.

    The losses that the hooks see are those of the training digits before each epoch.
    """
    examples, *parts = relabelled_digits(seed)
    yield from dropout.train_with_dropout(
        examples, parts[0], p, seed, epochs=9, **network
    ).train_loss
    for name, part in zip(("wrong", "validation", "test"), parts, strict=True):
        curves = dropout.train_with_dropout(examples, part, p, seed, epochs=epochs, **network)
        found = curves.validation_loss, curves.validation_error
        for loss, error in list(zip(*found, strict=True))[1:]:
            yield {f"{name}_loss": loss, f"{name}_error": error}
    for loss in curves.train_loss[1:]:
        yield {"train_loss": loss}


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
    if method.startswith("BNP"):
        hooks = [bnp.BNP(network, 0.9 if "ρ" in method else 0.99), *hooks]
    return by_sgd(network, lr, digits(validation=238), hooks, seed=seed, **loop)


for size, rates in RATES.items():
    trainings = by_rates("{method}, seed {seed}", {method: [lr] for method, lr in rates.items()})
    shared = {"batch_size": size, "epochs": EPOCHS[size]}
    recorded(f"bnp-minibatch-{size}", shared, trainings, ("validation_error",))(train_dense)


# --- Its convolutions -------------------------------------------------------------------------


CNN_METHODS = {
    "vanilla": None,
    "BN": "bn",
    "BN, groups": lambda c: batchnorm.FourThingsNorm(c, groups=c // 4),
    "BNP": None,
}
CNN_TRAININGS = {  # minibatch: the rates of the methods, and what they share
    32: (0.1, 0.3, 0.1, 1.0, {"epochs": 10, "seed": 0}),
    2: (0.03, 0.03, 0.01, 0.3, {"epochs": 5, "seed": 0}),
    1: (0.03, None, 0.003, 1.0, {"epochs": 4, "seed": 0}),
}


def large_digits():
    """Return 400 digits to train on and the test digits, of 24 × 24 pixels."""
    data = load("digits").subset(400)
    parts = (data.x_train, data.y_train), (data.x_test, data.y_test)
    return [Examples(x.reshape(-1, 1, 8, 8).repeat(3, 2).repeat(3, 3), y) for x, y in parts]


@recorded(
    "bnp_cnn-minibatches",
    {},
    {
        f"{method}, {size}": own | {"method": method, "lr": lr, "batch_size": size}
        for size, (*rates, own) in CNN_TRAININGS.items()
        for method, lr in zip(CNN_METHODS, rates, strict=True)
        if lr is not None
    },
    ("validation_error",),
)
def train_convolutions(method, lr, hooks, **loop):
    """Train the network of five layers by one of the methods."""
    network = cnn5(1, 24, normalization=CNN_METHODS[method], seed=loop["seed"])
    if method == "BNP":
        hooks = [bnp.BNP(network), *hooks]
    return by_sgd(network, lr, large_digits(), hooks, **loop)


if __name__ == "__main__":
    sys.exit(main(RUNS, FOLDER, sys.argv[1:]))
