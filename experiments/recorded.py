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

from optdl import batchnorm, bnp, conditioning, dropout, erm, optimizers
from optdl.data import Examples, load
from optdl.experiments.recorded_runs import RecordedRun, main
from optdl.initialization import InputNormalizer
from optdl.networks import cnn5, fully_connected
from optdl.records import Record
from optdl.training import Hook, Schedule, State, order_seed, train

FOLDER = Path(__file__).resolve().parent / "results" / "recorded"
SEEDS = range(3)


def product(label, **axes):
    """Return the trainings of all combinations of values, each with its label."""
    combined = (
        dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())
    )
    return {label.format(**one): one for one in combined}


def by_rates(label, grids, seeds=SEEDS, of=("method",), **axes):
    """Return the trainings of what has a grid of its own: values of the axes ``of``."""
    found = {}
    for own, rates in grids.items():
        named = zip(of, own if isinstance(own, tuple) else [own], strict=True)
        axes |= {name: [value] for name, value in named}
        found |= product(label, **axes, lr=rates, seed=seeds)
    return found


def by_sgd(network, lr, examples, hooks, **loop):
    """Train a network by SGD."""
    return train(
        network, examples, torch.optim.SGD(network.parameters(), lr=lr), hooks=hooks, **loop
    )


def untrained():
    """Return the state that hooks see of what no loop of ``optdl.training`` does."""
    return State(torch.nn.Identity(), torch.optim.SGD([torch.zeros(1)]), {})


def append(state, **values):
    """Append to the curves."""
    for name, value in values.items():
        state.curves.setdefault(name, []).append(float(value))


def seen(state, loss, hooks):
    """Show the loss of a step to the hooks; tell whether one of them wants to end."""
    state.loss = loss
    for hook in hooks:
        hook.after_step(state)
    return state.stop


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
    hooks = [erm.MarginHook(torch.from_numpy(x[:few]), y[:few]), *hooks]
    examples, rest = Examples(x[:few], y[:few]), Examples(x[few:], y[few:])
    network = two_layers(seed, hidden, bias=False)
    return by_sgd(network, lr, examples, hooks, validation=rest, seed=seed, **loop)


def train_on_wrong_labels(seed, wrong, hidden, lr, hooks, **loop):
    """Train on 500 digits of which some have wrong labels, without a halt."""
    (x, y), rng = all_digits(seed), np.random.default_rng(seed)
    rows, noisy = rng.choice(500, size=wrong, replace=False), y[:500].copy()
    noisy[rows] = (noisy[rows] + rng.integers(1, 10, size=wrong)) % 10
    network = two_layers(seed, hidden, bias=True)
    tensors = torch.from_numpy(x[:500]), torch.from_numpy(noisy)
    hooks = [erm.GradientNormHook(*tensors, torch.nn.CrossEntropyLoss()), *hooks]
    examples, held_out = Examples(x[:500], noisy), Examples(x[500:1000], y[500:1000])
    return by_sgd(network, lr, examples, hooks, validation=held_out, seed=seed, **loop)


ERM = [
    RecordedRun(
        "erm-after-zero",
        train_past_zero,
        {"few": 100, "hidden": 256, "lr": 0.05, "batch_size": 8, "epochs": 170},
        product("seed {seed}", seed=range(10)),
        ("train_error", "validation_error", "normalized_margin"),
    ),
    RecordedRun(
        "erm-without-halt",
        train_on_wrong_labels,
        {"wrong": 100, "hidden": 256, "lr": 0.05, "batch_size": 16, "epochs": 300},
        {"seed 0": {"seed": 0}},
        ("train_error", "validation_error", "batch_gradient_norm"),
    ),
]


# --- Ill-conditioning and the landscape -------------------------------------------------------


def fit_students(seed, units, epochs, hooks):
    """Fit students to one teacher, each epoch from another start, and describe where each ends.

    The losses that the hooks see are those of the first students after 5 evaluations.
    """
    x, y, _ = conditioning.student_teacher(seed)
    problem = conditioning.tanh_regression(x, y, units)
    state = untrained()
    for start in np.random.default_rng([seed, units]).normal(size=(epochs, 4 * units)):
        early = conditioning.fit_from(x, y, start[None], evaluations=5)
        if seen(state, problem.value(early[0]), hooks):
            break
        [end] = conditioning.fit_from(x, y, early, evaluations=3000)
        append(
            state,
            loss=problem.value(end),
            gradient_norm=np.linalg.norm(problem.gradient(end)),
            smallest_eigenvalue=np.linalg.eigvalsh(problem.hessian(end))[0],
            largest_weight=np.abs(end).max(),
        )
    return Record(state.curves)


def search_critical_points(seed, epochs, hooks):
    """Solve ∇J = 0 for a student with 3 units, each epoch from another point of a descent.

    ``negative_eigenvalues`` is −1 where no solution with weights below 20 was found.
    """
    x, y, _ = conditioning.student_teacher(seed)
    problem = conditioning.tanh_regression(x, y, 3)
    state, rng = untrained(), np.random.default_rng(seed)
    for epoch in range(epochs):
        point = rng.normal(size=12)
        for _ in range((0, 5, 20, 60, 200)[epoch % 5]):
            point = point - 0.3 * problem.gradient(point)
        point = point + 0.1 * rng.normal(size=12)
        if seen(state, problem.value(point), hooks):
            break
        solution = conditioning.critical_points(problem, point[None])
        found = len(solution.points) == 1 and np.abs(solution.points).max() < 20
        loss, index = (solution.losses[0], solution.indices[0]) if found else (state.loss, -1)
        append(state, loss=loss, negative_eigenvalues=index)
    return Record(state.curves)


def tanh_network(seed):
    """Return 16 tanh units between 64 pixels and 10 scores, and 300 digits to train them on."""
    torch.manual_seed(seed)
    layers = torch.nn.Linear(64, 16), torch.nn.Tanh(), torch.nn.Linear(16, 10)
    part = load("digits").split(validation=300, seed=0).train
    digits = Examples(part.x[:300].astype(float), part.y[:300])
    return torch.nn.Sequential(*layers).double(), digits


def train_with_curvature(seed, lr, hooks, drop=(), **loop):
    """Train by minibatches, and predict the effect of each step on the loss of all digits."""
    network, digits = tanh_network(seed)
    sgd = torch.optim.SGD(network.parameters(), lr=lr)
    x, y = torch.from_numpy(digits.x), torch.from_numpy(digits.y)
    curvature = conditioning.CurvatureHook(x, y, conditioning.squared_error)
    hooks = [curvature, Schedule(sgd, steps=30, decay=drop), *hooks]
    loop |= {"seed": seed, "loss": conditioning.squared_error}
    return train(network, digits, sgd, hooks=hooks, **loop)


def descend_to_the_edge(seed, lr, epochs, hooks, every=30):
    """Train by full-batch gradient descent, and describe each stretch of a few steps."""
    network, digits = tanh_network(seed)
    data = torch.from_numpy(digits.x), torch.from_numpy(digits.y), conditioning.squared_error
    state = State(network, torch.optim.SGD(network.parameters(), lr=lr), {})
    for _ in range(epochs):
        run = conditioning.track_descent(network, *data, lr, steps=every, every=every)
        for loss in run.losses[:-1]:
            seen(state, loss, hooks)
        if state.stop:
            break
        append(
            state,
            loss=run.losses[-1],
            rises=np.mean(np.diff(run.losses) > 0),
            sharpness=run.sharpness[0],
            gradient_norm=run.gradient_norms[0],
            curvature=run.curvatures[0],
            opposed=np.mean(run.cosines < 0),
            cosine=np.median(run.cosines),
        )
    return Record(state.curves)


CONDITIONING = [
    RecordedRun(
        "conditioning-minibatches",
        train_with_curvature,
        {"batch_size": 10, "epochs": 60},
        {
            f"{label}, seed {seed}": {"lr": lr, "drop": drop, "seed": seed}
            for label, lr, drop in (
                ("0.02", 0.02, []),
                ("0.05", 0.05, []),
                ("0.2", 0.2, []),
                ("0.05 and 0.005", 0.05, [40]),
            )
            for seed in SEEDS
        },
        ("train_loss", "gradient_norm", "slope", "curvature"),
    ),
    RecordedRun(
        "conditioning-edge",
        descend_to_the_edge,
        {"epochs": 50},
        product("{lr}, seed {seed}", lr=(0.05, 0.15, 0.25), seed=SEEDS),
        ("loss", "rises", "sharpness", "gradient_norm", "curvature", "opposed", "cosine"),
    ),
    RecordedRun(
        "conditioning-students",
        fit_students,
        {"epochs": 30},
        product("teacher {seed}, {units} units", seed=range(8), units=(3, 5, 8)),
        ("loss", "gradient_norm", "smallest_eigenvalue", "largest_weight"),
    ),
    RecordedRun(
        "conditioning-saddles",
        search_critical_points,
        {"epochs": 300},
        product("teacher {seed}", seed=range(8)),
        ("loss", "negative_eigenvalues"),
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


def one_hidden_layer(seed, hidden=32):
    """Return a ReLU network, 2,410 parameters with 32 hidden units, and 1,138 digits and 300."""
    split = load("digits").split(validation=300, seed=0)
    return fully_connected((64, hidden, 10), seed=seed), split.train, split.validation


def train_by_method(seed, method, lr, hooks, **loop):
    """Train one hidden layer on digits by an optimizer of the course.

    Biases have the rule of the weights, except with ``Muon``, which is made for matrices: they
    have momentum 0.95 in Nesterov's form, with the same rate, as in ``optimizers.Muon``.
    """
    network, examples, validation = one_hidden_layer(seed)
    opt = Stepped(network.parameters(), getattr(optimizers, method)(lr=lr))
    return train(network, examples, opt, validation=validation, hooks=hooks, seed=seed, **loop)


@lru_cache(maxsize=5)
def random_turn(n, seed):
    """Return a random orthogonal matrix, uniformly distributed."""
    torch.manual_seed(seed)
    Q, R = torch.linalg.qr(torch.randn(n, n))
    return Q * R.diagonal().sign()


def train_turned(seed, method, lr, turned, hooks, **loop):
    """Train one hidden layer on digits, in its own or in randomly turned coordinates.

    The trainings are named ``METHOD, straight, RATE, SEED`` and ``METHOD, turned, RATE, SEED``.
    A seed has its own turn, the same for all methods and rates. In exact arithmetic SGD does not
    notice it: the difference between the two is rounding, enlarged by the training.
    """
    network, examples, _ = one_hidden_layer(seed)
    rule = partial(getattr(torch.optim, method), lr=lr)
    parameters = list(network.parameters())
    opt = rule(parameters)
    if turned:
        opt = Turned(parameters, rule, random_turn(sum(p.numel() for p in parameters), seed))
    return train(network, examples, opt, hooks=hooks, seed=seed, **loop)


class GradientNoise(Hook):
    """Measure the gradient and the noise of a minibatch after each epoch.

    ``batch_gradient_norm`` is ‖∇J‖ over all m examples. ``gradient_noise`` is the root mean square
    of ‖g − ∇J‖, g the gradient of n examples that are drawn without replacement: the square is
    (m − n) / (m − 1) / n times the mean of ‖gᵢ − ∇J‖² over the examples.
    """

    def __init__(self, examples, batch_size):
        self.x, self.y = torch.from_numpy(examples.x), torch.from_numpy(examples.y)
        m = len(self.y)
        self.factor = (m - batch_size) / (m - 1) / batch_size

    def after_epoch(self, state):
        """Append to the curves."""
        parameters = {name: p.detach() for name, p in state.model.named_parameters()}

        def loss(parameters, x, y):
            scores = torch.func.functional_call(state.model, parameters, x[None])
            return torch.nn.functional.cross_entropy(scores, y[None])

        each = torch.func.vmap(torch.func.grad(loss), (None, 0, 0))(parameters, self.x, self.y)
        rows = torch.cat([g.flatten(1) for g in each.values()], dim=1).double()
        mean = rows.mean(0)
        squares = (rows - mean).square().sum(1).mean()
        noise = (self.factor * squares).sqrt()
        append(state, batch_gradient_norm=mean.norm(), gradient_noise=noise)


def train_at_constant_rate(seed, hidden, lr, batch_size, hooks, **loop):
    """Train on normalized digits by SGD at a constant rate, and watch the gradient's noise.

    With 32 hidden units the network interpolates: it fits all examples, so all gradients vanish
    together. With 4 it cannot, and at the minimum gradients of examples remain that cancel.
    """
    examples, _ = prepared_digits("normalized")
    network, loop = fully_connected((64, hidden, 10), seed=seed), loop | {"batch_size": batch_size}
    return by_sgd(
        network, lr, examples, [GradientNoise(examples, batch_size), *hooks], seed=seed, **loop
    )


def count_steps(seed, method, batch_size, target, limit, smallest, epochs, hooks):
    """Count the steps to a training loss, at each of several rates; an "epoch" is a rate.

    The curve ``rate`` is ``smallest``, 2 and 4 times ``smallest``, and so on. The curve ``steps``
    is the number of the first step after which the loss of all 1,024 examples is ``target`` or
    less; it is 0 if ``limit`` steps were not enough, or the loss was no longer finite.
    The loss is computed whenever 32 examples were seen, or after each step of a larger minibatch.
    """
    split = load("digits").split(validation=300, seed=0)
    examples = torch.from_numpy(split.train.x[:1024]), torch.from_numpy(split.train.y[:1024])
    state = untrained()
    for number in range(epochs):
        state.model = fully_connected((64, 32, 10), seed=seed)
        lr = smallest * 2**number
        state.optimizer = getattr(torch.optim, method)(state.model.parameters(), lr=lr)
        steps = steps_to(target, limit, state, *examples, batch_size, seed, hooks)
        append(state, rate=lr, steps=steps)
        if state.stop:
            break
    return Record(state.curves)


def steps_to(target, limit, state, x, y, batch_size, seed, hooks):
    """Train until the loss of all examples is at the target; return the number of steps, or 0."""
    cross_entropy = torch.nn.functional.cross_entropy
    generator = torch.Generator().manual_seed(seed)
    rows = iter(())
    for step in range(1, limit + 1):
        if (batch := next(rows, None)) is None:
            rows = iter(torch.randperm(len(y), generator=generator).split(batch_size))
            batch = next(rows)
        loss = cross_entropy(state.model(x[batch]), y[batch])
        state.optimizer.zero_grad()
        loss.backward()
        state.optimizer.step()
        if seen(state, loss.item(), hooks) or not np.isfinite(state.loss):
            return 0
        if step * batch_size % 32 == 0:
            with torch.no_grad():
                if cross_entropy(state.model(x), y) <= target:
                    return step
    return 0


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
    "SGD": 0.3,
    "Momentum": 0.1,
    "Nesterov": 0.1,
    "AdaGrad": 0.1,
    "RMSProp": 0.01,
    "AdaDelta": 3,
    "Adam": 0.01,
    "AdamW": 0.01,
    "Lion": 0.003,
    "Muon": 0.01,
}
TURNED_RATES = {
    "SGD": (0.03, 0.1, 0.3, 1, 3),
    "Adagrad": (0.01, 0.03, 0.1, 0.3, 1),
    "RMSprop": (0.0003, 0.001, 0.003, 0.01, 0.03),
    "Adam": (0.001, 0.003, 0.01, 0.03, 0.1),
}
BATCH_SIZES = (1, 2, 4, 8, 16, 32, 128, 512)
BATCH_RATES = {"SGD": 2**-5, "Adam": 2**-9}  # the smallest

OPTIMIZERS = [
    RecordedRun(
        "optimizers-rates",
        train_by_method,
        {"batch_size": 32, "epochs": 10},
        by_rates("{method}, {lr:g}, {seed}", METHOD_RATES, range(5)),
        ("train_loss", "validation_error"),
        digits=4,
    ),
    RecordedRun(  # other seeds than those by which the rates were chosen
        "optimizers-curves",
        train_by_method,
        {"batch_size": 32, "epochs": 10},
        by_rates("{method}, seed {seed}", {m: [lr] for m, lr in CHOSEN_RATES.items()}, range(5, 10))
        | by_rates("SGD at {lr:g}, seed {seed}", {"SGD": (0.03, 1, 3)}, range(5, 10)),
        ("train_loss", "validation_error"),
    ),
    RecordedRun(
        "optimizers-rotation",
        train_turned,
        {"batch_size": 32, "epochs": 10},
        by_rates("{method}, straight, {lr:g}, {seed}", TURNED_RATES, turned=[False])
        | by_rates("{method}, turned, {lr:g}, {seed}", TURNED_RATES, turned=[True]),
        ("train_loss",),
    ),
    RecordedRun(
        "optimizers-interpolation",
        train_at_constant_rate,
        {"lr": 0.2, "batch_size": 32, "epochs": 200},
        product("{hidden} hidden units, seed {seed}", hidden=(32, 4), seed=SEEDS),
        ("train_loss", "batch_gradient_norm", "gradient_noise"),
    ),
    RecordedRun(
        "optimizers-batches",
        count_steps,
        {"target": 0.1, "limit": 3000, "epochs": 7},
        {
            label: one | {"smallest": BATCH_RATES[one["method"]]}
            for label, one in product(
                "{method}, {batch_size}, seed {seed}",
                method=BATCH_RATES,
                batch_size=BATCH_SIZES,
                seed=SEEDS,
            ).items()
        },
        ("rate", "steps"),
    ),
]


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


def prepared_digits(inputs):
    """Return training and validation digits with raw, centered or normalized inputs."""
    split = load("digits").split(validation=300, seed=0)
    known = InputNormalizer.fit(split.train.x.astype(float), eps=1e-3)
    return [
        Examples(INPUTS[inputs](part.x.astype(float), known).astype(np.float32), part.y)
        for part in (split.train, split.validation)
    ]


def hidden_layers(activation, factor, seed, depth=3):
    """Return a network with the initial weights of its activation, times a factor."""
    function, gain = HIDDEN[activation]
    torch.manual_seed(seed)
    parts = []
    for _ in range(depth):
        parts += [torch.nn.Linear(64, 64), function()]
        torch.nn.init.xavier_normal_(parts[-2].weight, gain * factor)
    parts.append(torch.nn.Linear(64, 10))
    torch.nn.init.xavier_normal_(parts[-1].weight)
    for layer in parts[::2]:
        torch.nn.init.zeros_(layer.bias)
    return torch.nn.Sequential(*parts)


def train_hidden_layers(seed, activation, factor, inputs, lr, hooks, depth=3, **loop):
    """Train hidden layers of 64 units on digits; a run that diverges counts as a guess."""
    network = hidden_layers(activation, factor, seed, depth)
    examples, validation = prepared_digits(inputs)
    try:
        return by_sgd(network, lr, examples, hooks, validation=validation, seed=seed, **loop)
    except FloatingPointError:
        guess = {"train_loss": np.log(10), "validation_error": 0.9}
        return Record({name: [value] * loop["epochs"] for name, value in guess.items()})


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
    ("tanh", 1): (0.05, 0.1, 0.2, 0.4),
    ("tanh", 2): (0.05, 0.1, 0.2, 0.4),
    ("tanh", 4): (0.05, 0.1, 0.2, 0.4),
    ("ReLU", 1): (0.025, 0.05, 0.1, 0.2),
    ("ReLU", 2): (0.00025, 0.0005, 0.001),  # at twice the largest rate all runs diverge
    ("ReLU", 4): (1e-8, 1e-7, 1e-6),
}
HIDDEN_CURVES = ("train_loss", "validation_error")
ON_NORMALIZED = {"inputs": "normalized", "batch_size": 32, "epochs": 8}
BY_FACTOR = "{activation}, {factor}, rate {lr:g}, seed {seed}"

INITIALIZATION = [
    RecordedRun(
        "initialization-rates",
        train_hidden_layers,
        ON_NORMALIZED | {"factor": 1},
        by_rates(
            "{activation}, rate {lr:g}, seed {seed}", ACTIVATION_RATES, range(5), ("activation",)
        ),
        HIDDEN_CURVES,
    ),
    *(
        RecordedRun(
            name,
            train_hidden_layers,
            ON_NORMALIZED | {"depth": depth},
            by_rates(BY_FACTOR, grids, range(5), ("activation", "factor")),
            HIDDEN_CURVES,
        )
        for name, depth, grids in (
            ("initialization-factors", 3, FACTOR_RATES),
            ("initialization-deep", 10, DEEP_RATES),
        )
    ),
    RecordedRun(
        "initialization-inputs",
        train_hidden_layers,
        {"activation": "ReLU", "factor": 1, "batch_size": 32, "epochs": 6},
        product(
            "{inputs}, rate {lr:g}, seed {seed}",
            inputs=INPUTS,
            lr=(0.05, 0.1, 0.2, 0.4, 0.8),
            seed=SEEDS,
        ),
        HIDDEN_CURVES,
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
AHEAD = (0, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6)


def few_digits():
    """Return 1024 training digits, without a last minibatch of one, and those for validation."""
    split = load("digits").split(validation=300, seed=0)
    return Examples(split.train.x[:1024], split.train.y[:1024]), split.validation


def train_by_size(seed, normalization, batch_size, hooks, **loop):
    """Train two hidden layers at a rate in proportion to the minibatch."""
    network = fully_connected((64, 50, 50, 10), RELATIVES[normalization], seed=seed)
    examples, validation = few_digits()
    loop |= {"validation": validation, "batch_size": batch_size, "seed": seed}
    return by_sgd(network, 0.1 * batch_size / 32, examples, hooks, **loop)


def train_by_rate(seed, normalization, lr, factor, hooks, **loop):
    """Train two hidden layers, all initial weights times a factor; who diverges guesses."""
    make = {"none": None, "bn": lambda features: batchnorm.BatchNorm(features, 0.9, 1e-3)}
    network = fully_connected((64, 50, 50, 10), make[normalization], seed=seed)
    with torch.no_grad():
        for layer in dense(network):
            layer.weight *= factor
    examples, validation = few_digits()
    loop |= {"validation": validation, "seed": order_seed(seed)}
    try:
        return by_sgd(network, lr, examples, hooks, **loop)
    except FloatingPointError:
        return Record({"validation_error": [0.9] * loop["epochs"]})


class WeightVectors(Hook):
    """Follow the weight vectors of the units.

    ``turned K`` is the angle to the start in degrees after an epoch, mean over the units of layer
    K. ``longer`` is by how many percent a step of η = 1.6 along the gradient of all examples would
    lengthen the vectors of the normalized units, with their bias, after the first step of an epoch.
    """

    def __init__(self, examples, every):
        self.x, self.y = torch.from_numpy(examples.x), torch.from_numpy(examples.y)
        self.every, self.start = every, []

    def after_backward(self, state):
        """Remember the vectors before the first step."""
        self.start = self.start or [layer.weight.detach().clone() for layer in dense(state.model)]

    def after_step(self, state):
        """Append to the curve of lengths."""
        if state.step % self.every != 1:
            return
        model = copy.deepcopy(state.model)  # whose averages and gradients may change
        torch.nn.functional.cross_entropy(model(self.x), self.y).backward()
        growth = []
        for layer in dense(model)[:-1]:
            rows, slopes = (
                torch.column_stack(pair)
                for pair in ((layer.weight, layer.bias), (layer.weight.grad, layer.bias.grad))
            )
            growth.append((rows - 1.6 * slopes).norm(dim=1) / rows.norm(dim=1) - 1)
        append(state, longer=100 * torch.cat(growth).mean().item())

    def after_epoch(self, state):
        """Append to the curves of angles."""
        for number, layer in enumerate(dense(state.model)):
            cosines = torch.cosine_similarity(self.start[number], layer.weight, dim=1)
            turned = cosines.clamp(max=1).arccos().rad2deg().mean().item()
            append(state, **{f"turned {number + 1}": turned})


def dense(network):
    """Return the dense layers of a network."""
    return [layer for layer in network if isinstance(layer, torch.nn.Linear)]


def train_and_turn(seed, factor, hooks, **loop):
    """Train with batch normalization, and watch the weight vectors."""
    hooks = [WeightVectors(few_digits()[0], every=32), *hooks]
    return train_by_rate(seed, "bn", 0.1, factor, hooks, **loop)


def train_along_steps(seed, normalization, batch_size, hooks, **loop):
    """Train two hidden layers, and look along the gradient after the first step of each epoch."""
    network = fully_connected((64, 50, 50, 10), batchnorm.NORMALIZATIONS[normalization], seed=seed)
    examples, _ = few_digits()
    whole = torch.from_numpy(examples.x), torch.from_numpy(examples.y)
    along = batchnorm.AlongStepHook(*whole, AHEAD, every=len(examples.y) // batch_size)
    loop |= {"batch_size": batch_size, "seed": seed}
    by_sgd(network, 0.1, examples, [along, *hooks], **loop)
    return Record(
        {
            f"{what} {rate:g}": [float(getattr(step, what)[k]) for step in along.results]
            for what in ("loss", "change")
            for k, rate in enumerate(AHEAD)
        }
    )


RATES_AND_FACTORS = {
    **{f"rate {lr:g}": {"lr": lr, "factor": 1} for lr in (0.01, 0.03, 0.1, 0.3, 1, 3)},
    **{f"factor {f:g}": {"lr": 0.1, "factor": f} for f in (0.03, 0.1, 0.3, 1, 3, 10)},
}

BATCHNORM = [
    RecordedRun(
        "batchnorm-rates",
        train_by_rate,
        {"batch_size": 32, "epochs": 5},
        {
            f"{name}, {label}, seed {seed}": {"normalization": name, **own, "seed": seed}
            for name in ("none", "bn")
            for label, own in RATES_AND_FACTORS.items()
            for seed in range(5)
        },
        ("validation_error",),
    ),
    RecordedRun(
        "batchnorm-sizes",
        train_by_size,
        {"epochs": 5},
        {
            label: one
            for label, one in product(
                "{normalization}, {batch_size}, seed {seed}",
                normalization=RELATIVES,
                batch_size=SIZES,
                seed=SEEDS,
            ).items()
            if one["batch_size"] > 1 or one["normalization"] not in ("BN", "ghost BN")
        },
        ("validation_error",),
    ),
    RecordedRun(
        "batchnorm-weights",
        train_and_turn,
        {"batch_size": 32},
        {
            f"factor {factor}, seed {seed}": {"factor": factor, "epochs": epochs, "seed": seed}
            for factor, epochs in {1: 10, 10: 40}.items()
            for seed in SEEDS
        },
        ("validation_error", "longer", "turned 1", "turned 2", "turned 3"),
    ),
    RecordedRun(
        "batchnorm-smoothness",
        train_along_steps,
        {"batch_size": 32, "epochs": 10},
        product("{normalization}, seed {seed}", normalization=("none", "bn"), seed=range(5)),
        [f"{what} {rate:g}" for what in ("loss", "change") for rate in AHEAD],
    ),
]


# --- Dropout ----------------------------------------------------------------------------------


def relabelled_digits(seed):
    """Return 300 digits, a tenth with a random label, those that are wrong, and all others.

    The first half of the others chooses the epoch, and the second half measures the error.
    """
    digits = load("digits")
    split = digits.split(len(digits.y_train) - 300, seed=seed)
    rng = np.random.default_rng(seed)
    noisy = rng.random(300) < 0.1
    labels = np.where(noisy, rng.integers(10, size=300), split.train.y)
    wrong, half = labels != split.train.y, len(split.validation) // 2
    others = split.validation
    return (
        Examples(split.train.x, labels),
        Examples(split.train.x[wrong], labels[wrong]),
        Examples(others.x[:half], others.y[:half]),
        Examples(others.x[half:], others.y[half:]),
    )


def train_dropped(seed, p, epochs, hooks, **network):
    """Train with dropout, and measure the whole network on several sets of digits.

    The losses that the hooks see are those of the training digits before each epoch.
    """
    examples, wrong, validation, test = relabelled_digits(seed)
    state = untrained()
    early = dropout.train_with_dropout(examples, wrong, p, seed, epochs=9, **network)
    for loss in early.train_loss:
        if seen(state, loss, hooks):
            return Record(state.curves)
    for name, part in {"wrong": wrong, "validation": validation, "test": test}.items():
        curves = dropout.train_with_dropout(examples, part, p, seed, epochs=epochs, **network)
        state.curves["train_loss"] = curves.train_loss[1:]
        state.curves[f"{name}_loss"] = curves.validation_loss[1:]
        state.curves[f"{name}_error"] = curves.validation_error[1:]
    return Record(state.curves)


DROPOUT = [
    RecordedRun(
        "dropout-digits",
        train_dropped,
        {"hidden": 200, "lr": 0.1, "batch_size": 20, "epochs": 60},
        product("p = {p:g}, seed {seed}", p=(0.0, 0.25, 0.5, 0.75, 0.95), seed=range(8)),
        ("train_loss", "wrong_error", "validation_loss", "validation_error", "test_error"),
    ),
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
    if method.startswith("BNP"):
        hooks = [bnp.BNP(network, 0.9 if "ρ" in method else 0.99), *hooks]
    split = load("digits").split(validation=238, seed=0)
    loop |= {"validation": split.validation, "seed": seed}
    return by_sgd(network, lr, split.train, hooks, **loop)


DENSE = [
    RecordedRun(
        f"bnp-minibatch-{size}",
        train_dense,
        {"batch_size": size, "epochs": EPOCHS[size]},
        by_rates("{method}, seed {seed}", {method: [lr] for method, lr in rates.items()}),
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


def train_convolutions(method, lr, hooks, **loop):
    """Train the network of five layers by one of the methods."""
    network = cnn5(1, 24, normalization=CNN_METHODS[method], seed=loop["seed"])
    if method == "BNP":
        hooks = [bnp.BNP(network), *hooks]
    examples, test = large_digits()
    return by_sgd(network, lr, examples, hooks, validation=test, **loop)


CONVOLUTIONS = [
    RecordedRun(
        "bnp_cnn-minibatches",
        train_convolutions,
        {},
        {
            f"{method}, {size}": own | {"method": method, "lr": lr, "batch_size": size}
            for size, (*rates, own) in CNN_TRAININGS.items()
            for method, lr in zip(CNN_METHODS, rates, strict=True)
            if lr is not None
        },
        ("validation_error",),
    ),
]

RUNS = [*ERM, *CONDITIONING, *OPTIMIZERS, *INITIALIZATION, *BATCHNORM, *DROPOUT]
RUNS += [*DENSE, *CONVOLUTIONS]

if __name__ == "__main__":
    sys.exit(main(RUNS, FOLDER, sys.argv[1:]))
