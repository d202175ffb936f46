"""The recorded runs of the book: what its pages would train for longer than a few seconds.

::

    python experiments/recorded.py                   # what is missing, or has another configuration
    python experiments/recorded.py erm               # what the page needs
    python experiments/recorded.py bnp-averages     # by name; --again repeats what is there
"""

import inspect
import itertools
import sys
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
import torch
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler
from torch.nn.functional import cross_entropy

from optdl import batchnorm, bnp, conditioning, dropout, erm, optimizers
from optdl.data import Examples, load
from optdl.experiments.recorded_runs import RecordedRun, main
from optdl.initialization import InputNormalizer, mup_factors
from optdl.networks import cnn5, fully_connected
from optdl.optimizers.in_torch import Rotated, Stepped, Together, hidden_matrices
from optdl.records import Record
from optdl.training import Schedule, State, order_seed, train

FOLDER = Path(__file__).resolve().parent / "results" / "recorded"
SEEDS, FIVE, OTHERS = range(3), range(5), range(5, 10)  # the last ones: other than a search's
LOSS, ERROR = ("train_loss",), ("validation_error",)
TEN_EPOCHS = {"batch_size": 32, "epochs": 10}
RUNS = []


def product(label, rows=({},), seeds=SEEDS, **axes):
    """Return the trainings of each row with all combinations of values, each with its label."""
    combined = itertools.product(rows, *axes.values(), seeds)
    found = [row | dict(zip((*axes, "seed"), each, strict=True)) for row, *each in combined]
    return {label.format(**one): one for one in found}


def by_rate(grids, *names):
    """Return a row for each rate of each grid, whose key are values of the names, or a method."""

    def several(value):
        return value if isinstance(value, tuple) else (value,)

    rows = [(several(key), lr) for key, grid in grids.items() for lr in several(grid)]
    return [dict(zip(names or ["method"], key, strict=True)) | {"lr": lr} for key, lr in rows]


def recorded(name, settings, trainings, curves=LOSS + ERROR, digits=6):
    """Record trainings, as :class:`RecordedRun` has them, of what the function below makes.

    It takes the settings to a network, an optimizer or the rate of SGD, examples for training and
    for validation and, where it needs them, hooks and options of ``train``; it need not name those
    of the loop. A generator trains by itself: see :func:`stepped`.
    """

    def register(make):
        run = partial(stepped if inspect.isgeneratorfunction(make) else fitted, make)
        RUNS.append(RecordedRun(name, run, settings, trainings, curves, digits))
        return make

    return register


def stepped(steps, hooks, **settings):
    """Record what no loop of ``optdl.training`` does, and show it to the hooks.

    The generator yields the loss of each step, and dicts with one or more values of curves.
    """
    state = State(torch.nn.Identity(), torch.optim.SGD([torch.zeros(1)]), {})
    for each in steps(**settings):
        if isinstance(each, dict):
            for name, values in each.items():
                state.curves.setdefault(name, []).extend(np.ravel(values).tolist())
            continue
        state.loss = each
        for hook in hooks:
            hook.after_step(state)
        if state.stop:
            break
    return Record(state.curves)


def fitted(make, hooks, **settings):
    """Train what a function makes: see :func:`recorded`.

    A network that diverges guesses; where other curves are asked for, it is an error.
    """
    loop = {name: settings[name] for name in ("batch_size", "epochs", "seed")}
    unused = loop.keys() - inspect.signature(make).parameters
    made = make(**{name: value for name, value in settings.items() if name not in unused})
    network, opt, parts, own, options = (*made, (), ())[:5]
    if isinstance(opt, (int, float)):
        opt = torch.optim.SGD(network.parameters(), lr=opt)
    loop |= dict(options)
    try:
        return train(network, parts[0], opt, validation=parts[1], hooks=[*own, *hooks], **loop)
    except FloatingPointError:
        guesses = dict.fromkeys(("train_loss", "minibatch_loss"), np.log(10))
        guesses |= {"moved": 0.0, "validation_error": 0.9}
        return Record({name: [value] * loop["epochs"] for name, value in guesses.items()})


INPUTS = {
    "raw": lambda x, known: x,
    "centered": lambda x, known: x - known.mean,
    "normalized": lambda x, known: known(x),
}


def digits(inputs="raw", count=None, validation=300, dtype=np.float32):
    """Return training digits, all or the first ones, and some for validation."""
    split = load("digits").split(validation=validation, seed=0)
    parts = split.train.first(count or len(split.train)), split.validation
    known = InputNormalizer.fit(parts[0].x.astype(float), eps=1e-3)
    return [Examples(INPUTS[inputs](p.x.astype(float), known).astype(dtype), p.y) for p in parts]


def tensors(examples):
    """Return features and labels for torch."""
    return torch.from_numpy(examples.x), torch.from_numpy(examples.y)


def dense_layers(seed, widths, activation, deviations=None, bias=True):
    """Return a network with torch's own initial weights, or normal ones of a deviation by layer."""
    torch.manual_seed(seed)
    parts = []
    for number, sizes in enumerate(itertools.pairwise(widths)):
        parts += [layer := torch.nn.Linear(*sizes, bias), activation()]
        if deviations is not None:
            torch.nn.init.normal_(layer.weight, std=deviations[number])
            torch.nn.init.zeros_(layer.bias)
    return torch.nn.Sequential(*parts[:-1])


# --- Empirical risk minimization --------------------------------------------------------------


def in_random_order(seed, data="digits"):
    """Return the features and labels of all digits, or of the tumors of scikit-learn."""
    if data == "tumors":
        x, y = load_breast_cancer(return_X_y=True)
        x = StandardScaler().fit_transform(x).astype(np.float32)
    else:
        whole = load(data)
        x = np.concatenate((whole.x_train, whole.x_test))
        y = np.concatenate((whole.y_train, whole.y_test))
    order = np.random.default_rng(seed).permutation(len(y))
    return x[order], y[order]


@recorded("erm-after-zero",
          {"few": 100, "hidden": 256, "lr": 0.05, "batch_size": 8, "epochs": 170},
          product("seed {seed}", seeds=range(10))
          | product("{data}, seed {seed}", data=["tumors"], seeds=range(10)),
          ("train_error", "validation_error", "normalized_margin"))  # fmt: skip
def train_past_zero(seed, few, hidden, lr, data="digits"):
    """Train on few examples, far past the last training error, and watch the margins."""
    x, y = in_random_order(seed, data)
    parts = Examples(x[:few], y[:few]), Examples(x[few:], y[few:])
    network = dense_layers(seed, (x.shape[1], hidden, 10), torch.nn.ReLU, bias=False)
    return network, lr, parts, [erm.MarginHook(torch.from_numpy(x[:few]), y[:few])]


@recorded("erm-without-halt", {"hidden": 256, "lr": 0.05, "batch_size": 16, "epochs": 300},
          product("seed {seed}", wrong=[100]) | product("right labels, seed {seed}", wrong=[0]),
          ("train_error", "validation_error", "batch_gradient_norm"))  # fmt: skip
def train_on_wrong_labels(seed, wrong, hidden, lr):
    """Train on 500 digits of which some have wrong labels, without a halt."""
    (x, y), rng = in_random_order(seed), np.random.default_rng(seed)
    picked, noisy = rng.choice(500, size=wrong, replace=False), y[:500].copy()
    noisy[picked] = (noisy[picked] + rng.integers(1, 10, size=wrong)) % 10
    parts = Examples(x[:500], noisy), Examples(x[500:1000], y[500:1000])
    network = dense_layers(seed, (64, hidden, 10), torch.nn.ReLU)
    return network, lr, parts, [erm.GradientNormHook(*tensors(parts[0]), cross_entropy)]


# --- Ill-conditioning and the landscape -------------------------------------------------------


@recorded("conditioning-students", {"epochs": 30},
          product("teacher {seed}, {units} units", seeds=range(8), units=(3, 5, 8)),
          ("loss", "gradient_norm", "smallest_eigenvalue", "largest_weight"))  # fmt: skip
def fit_students(seed, units, epochs):
    """Fit students to one teacher, each epoch from another start, and describe where each ends."""
    x, y, _ = conditioning.student_teacher(seed)
    problem = conditioning.tanh_regression(x, y, units)
    for start in np.random.default_rng([seed, units]).normal(size=(epochs, 4 * units)):
        early = conditioning.fit_from(x, y, start[None], evaluations=5)
        yield problem.value(early[0])  # what the hooks see
        [end] = conditioning.fit_from(x, y, early, evaluations=3000)
        yield {"loss": problem.value(end), "largest_weight": np.abs(end).max()}
        yield {"gradient_norm": np.linalg.norm(problem.gradient(end))}
        yield {"smallest_eigenvalue": np.linalg.eigvalsh(problem.hessian(end))[0]}


@recorded("conditioning-saddles", {"epochs": 300},
          product("teacher {seed}", seeds=range(8))
          | product("teacher {seed}, {units} units", seeds=range(8), units=[4]),
          ("loss", "negative_eigenvalues"))  # fmt: skip
def search_critical_points(seed, epochs, units=3):
    """Solve ∇J = 0 for a student network, each epoch from another point of a descent."""
    x, y, _ = conditioning.student_teacher(seed)
    problem, rng = conditioning.tanh_regression(x, y, units), np.random.default_rng(seed)
    for epoch in range(epochs):
        point = rng.normal(size=4 * units)
        for _ in range((0, 5, 20, 60, 200)[epoch % 5]):
            point = point - 0.3 * problem.gradient(point)
        point = point + 0.1 * rng.normal(size=4 * units)
        yield (start := problem.value(point))
        solution = conditioning.critical_points(problem, point[None])
        found = len(solution.points) == 1 and np.abs(solution.points).max() < 20
        # an index of −1: no solution with weights below 20
        loss, index = (solution.losses[0], solution.indices[0]) if found else (start, -1)
        yield {"loss": loss, "negative_eigenvalues": index}


def tanh_network(seed):
    """Return a network with 16 tanh units, and 300 digits to train it on."""
    examples, _ = digits(count=300, dtype=float)
    return dense_layers(seed, (64, 16, 10), torch.nn.Tanh).double(), examples


SMALL_BATCHES = [{"batch_size": 10, "drop": []}]
LOSSES = {"squared": conditioning.squared_error, "cross-entropy": cross_entropy}


@recorded(
    "conditioning-minibatches", {"epochs": 60},
    product("{lr}, seed {seed}", SMALL_BATCHES, lr=(0.02, 0.05, 0.2))
    | product("0.05 and 0.005, seed {seed}", [{"batch_size": 10, "drop": [40]}], lr=[0.05])
    | product("{loss} {lr}, seed {seed}", SMALL_BATCHES, loss=["cross-entropy"], lr=(0.01, 0.05))
    | product("{batch_size} examples, seed {seed}", [{"lr": 0.05, "drop": []}], batch_size=[50]),
    ("train_loss", "gradient_norm", "slope", "curvature"))  # fmt: skip
def train_with_curvature(seed, lr, drop, loss="squared"):
    """Train by minibatches, and predict the effect of each step on the loss of all digits."""
    network, examples = tanh_network(seed)
    sgd, loss = torch.optim.SGD(network.parameters(), lr=lr), LOSSES[loss]
    curvature = conditioning.CurvatureHook(*tensors(examples), loss)
    hooks = [curvature, Schedule(sgd, steps=30, decay=drop)]
    return network, sgd, (examples, None), hooks, {"loss": loss}


@recorded(
    "conditioning-edge", {"epochs": 50},
    product("{lr}, seed {seed}", lr=(0.05, 0.15, 0.25))
    | product("{loss} {lr}, seed {seed}", lr=(0.3, 1.2), loss=["cross-entropy"]),
    ("loss", "rises", "sharpness", "gradient_norm", "curvature", "opposed", "cosine"))  # fmt: skip
def descend_to_the_edge(seed, lr, epochs, every=30, loss="squared"):
    """Train by full-batch gradient descent, and describe each stretch of a few steps."""
    network, examples = tanh_network(seed)
    data = *tensors(examples), LOSSES[loss]
    for _ in range(epochs):
        run = conditioning.track_descent(network, *data, lr, steps=every, every=every)
        yield from run.losses[:-1]
        yield {"loss": run.losses[-1], "rises": np.mean(np.diff(run.losses) > 0)}
        yield {"gradient_norm": run.gradient_norms[0], "sharpness": run.sharpness[0]}
        yield {"opposed": np.mean(run.cosines < 0), "cosine": np.median(run.cosines)}
        yield {"curvature": run.curvatures[0]}


# --- Optimizers -------------------------------------------------------------------------------

GRID = (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30)


def five_rates(least):
    """Return for each method its least rate and the next four of the grid."""
    return {method: GRID[GRID.index(rate) :][:5] for method, rate in least.items()}


RATES = {  # by the inputs: the least that is tried, and that of the lowest mean validation error
    "raw": {
        "SGD": (0.03, 0.3), "Momentum": (0.01, 0.1), "Nesterov": (0.01, 0.1),
        "AdaGrad": (0.01, 0.1), "RMSProp": (0.001, 0.01), "RMSPropNesterov": (0.0003, None),
        "AdaDelta": (0.3, 3), "Adam": (0.003, 0.01), "AdamW": (0.003, 0.01),
        "Lion": (0.0003, 0.003), "Muon": (0.003, 0.01),
    },
    "normalized": {
        "SGD": (0.03, 1), "Momentum": (0.003, 0.1), "Nesterov": (0.003, 0.1),
        "AdaGrad": (0.01, 0.03), "RMSProp": (0.001, 0.01), "AdaDelta": (0.3, 10),
        "Adam": (0.001, 0.03), "AdamW": (0.001, 0.01), "Lion": (0.0003, 0.001),
        "Muon": (0.001, 0.01),
    },
}  # fmt: skip
TRIED = {at: five_rates({m: rate for m, (rate, _) in rows.items()}) for at, rows in RATES.items()}
CHOSEN = {at: {m: rate for m, (_, rate) in rows.items() if rate} for at, rows in RATES.items()}
NORMALIZED, RAW_OR_NOT = ["normalized"], ("raw", "normalized")
TURNED_RATES = five_rates({"SGD": 0.03, "Adagrad": 0.01, "RMSprop": 0.0003, "Adam": 0.001})
BY_METHOD, ONE_SEED = "{method}, {lr:g}, {seed}", "{method}, seed {seed}"
BY_INPUTS = "{inputs} {method}, {lr:g}, seed {seed}"


@recorded("optimizers-rates", TEN_EPOCHS, product(BY_METHOD, by_rate(TRIED["raw"]), FIVE), digits=4)
@recorded("optimizers-normalized", TEN_EPOCHS, digits=4, trainings=product(
    "{inputs} " + BY_METHOD, by_rate(TRIED["normalized"]), inputs=NORMALIZED))  # fmt: skip
@recorded(
    "optimizers-curves", TEN_EPOCHS,
    product(ONE_SEED, by_rate(CHOSEN["raw"]), OTHERS)
    | product("SGD at {lr:g}, seed {seed}", by_rate({"SGD": (0.03, 1, 3)}), OTHERS)
    | product("{inputs} " + ONE_SEED, by_rate(CHOSEN["normalized"]), OTHERS, inputs=NORMALIZED),
    LOSS + ERROR)  # fmt: skip
def train_by_method(seed, method, lr, inputs="raw"):
    """Train one hidden layer on digits by an optimizer of the course."""
    network = fully_connected((64, 32, 10), seed=seed)
    opt = Stepped(network.parameters(), getattr(optimizers, method)(lr=lr))
    return network, opt, digits(inputs)


MATRIX_RATES = dict.fromkeys(("AdamW", "Muon"), (0.0003, 0.001, 0.003, 0.01, 0.03))


@recorded("optimizers-matrices", TEN_EPOCHS | {"decay": 0.1}, digits=4, trainings=product(
    BY_INPUTS, by_rate(MATRIX_RATES), inputs=RAW_OR_NOT))  # fmt: skip
# at the rate with the lowest mean validation error there: the same for all four
@recorded("optimizers-muon", TEN_EPOCHS | {"decay": 0.1}, digits=4, trainings=product(
    BY_INPUTS, by_rate(dict.fromkeys(MATRIX_RATES, 0.003)), OTHERS,
    inputs=RAW_OR_NOT))  # fmt: skip
def train_hidden_matrices(seed, method, lr, decay, inputs):
    """Train three hidden layers: the matrices between them by a method, all else by AdamW."""
    network = fully_connected((64, 64, 64, 64, 10), seed=seed)
    hidden, rest = hidden_matrices(network)
    adamw = partial(torch.optim.AdamW, lr=lr, weight_decay=decay)
    muon = Stepped(hidden, optimizers.Muon(lr, match_adamw=True, decay=decay))
    opt = Together(muon if method == "Muon" else adamw(hidden), adamw(rest))
    return network, opt, digits(inputs)


FALLS = {
    "constant": lambda lr, steps: lr,
    "cosine": optimizers.CosineDecay,
    "linear": partial(optimizers.LinearDecay, last=0.0),
    "WSD": lambda lr, steps: optimizers.StableDecay(lr, steps - steps // 5, steps // 5),
}
CHOSEN_FALLS = {  # the lowest mean training loss in optimizers-falls
    ("constant", 4): 0.3, ("cosine", 4): 1, ("linear", 4): 1, ("WSD", 4): 0.3,
} | dict.fromkeys(itertools.product(FALLS, [32]), 1)  # fmt: skip
BY_FALL = "{hidden} units, {method}, {lr:g}, seed {seed}"
LONGER = {("cosine", 4): 1, ("WSD", 4): 0.3}


@recorded("optimizers-falls", TEN_EPOCHS, product(
    BY_FALL, by_rate(dict.fromkeys(FALLS, (0.1, 0.3, 1, 3))), hidden=(4, 32)), LOSS, 4)  # fmt: skip
@recorded(
    "optimizers-schedules", {"batch_size": 32},
    product(BY_FALL, by_rate(CHOSEN_FALLS, "method", "hidden"), OTHERS, epochs=[10])
    | product(BY_FALL + ", longer", by_rate(LONGER, "method", "hidden"), OTHERS, epochs=[20]),
    LOSS, digits=4)  # fmt: skip
def train_by_schedule(seed, method, lr, hidden, epochs, batch_size):
    """Train one hidden layer on digits by SGD with a schedule that ends with the training."""
    network = fully_connected((64, hidden, 10), seed=seed)
    parts = digits("normalized")
    steps = epochs * -(-len(parts[0]) // batch_size)
    opt = Stepped(network.parameters(), optimizers.SGD(FALLS[method](lr, steps)))
    return network, opt, parts


@lru_cache(maxsize=5)
def random_turn(n, seed):
    """Return a random orthogonal matrix, uniformly distributed."""
    torch.manual_seed(seed)
    return torch.nn.init.orthogonal_(torch.empty(n, n))


@recorded(
    "optimizers-rotation", TEN_EPOCHS, curves=LOSS, trainings=
    product("{method}, straight, {lr:g}, {seed}", by_rate(TURNED_RATES), turned=[False])
    | product("{method}, turned, {lr:g}, {seed}", by_rate(TURNED_RATES), turned=[True])
)  # fmt: skip
def train_turned(seed, method, lr, turned):
    """Train one hidden layer on digits, in its own coordinates or in those of the seed's turn."""
    network = fully_connected((64, 32, 10), seed=seed)
    parameters, rule = list(network.parameters()), partial(getattr(torch.optim, method), lr=lr)
    turn = random_turn(sum(p.numel() for p in parameters), seed)
    opt = Rotated(parameters, rule, turn) if turned else rule(parameters)
    return network, opt, (digits()[0], None)


@recorded(
    "optimizers-interpolation", {"batch_size": 32, "epochs": 200},
    product("{hidden} hidden units, seed {seed}", hidden=(32, 4), lr=[0.2])
    | product("{hidden} hidden units, seed {seed}", hidden=(64, 2), lr=[0.2], seeds=[0])
    | product("{hidden} hidden units at {lr}, seed {seed}", hidden=(32, 4), lr=[0.1], seeds=[0]),
    ("train_loss", "batch_gradient_norm", "gradient_noise"))  # fmt: skip
def train_at_constant_rate(seed, hidden, lr, batch_size):
    """Train on normalized digits by SGD at a constant rate, and watch the gradient's noise."""
    examples, _ = digits("normalized")
    network = fully_connected((64, hidden, 10), seed=seed)
    watch = erm.GradientNoiseHook(*tensors(examples), cross_entropy, batch_size)
    return network, lr, (examples, None), [watch]


STEP_COUNTS = {"method": "SGD", "smallest": 2**-5}, {"method": "Adam", "smallest": 2**-9}
BY_BATCH = "{method}, {batch_size}, seed {seed}"


@recorded(
    "optimizers-batches", {"target": 0.1, "limit": 3000},
    product(BY_BATCH, STEP_COUNTS, batch_size=(1, 2, 4, 8, 16, 32, 128, 512), epochs=[7])
    | product("{inputs} " + BY_BATCH, STEP_COUNTS, inputs=NORMALIZED, batch_size=(1, 4, 32, 512),
              epochs=[8]),
    ("rate", "steps"))  # fmt: skip
def count_steps(seed, method, batch_size, target, limit, smallest, epochs, inputs="raw"):
    """Count the steps to a training loss, at each of several rates; an "epoch" is a rate.

    Each rate is twice the one before. ``steps`` is the first step after which the loss of all
    1,024 examples is at most ``target``, or 0 if it diverged or ``limit`` steps were not enough.
    That loss is computed whenever 32 examples were seen, or after a step of a larger minibatch.
    """
    x, y = tensors(digits(inputs)[0].first(1024))
    for lr in smallest * 2.0 ** np.arange(epochs):
        network = fully_connected((64, 32, 10), seed=seed)
        opt = getattr(torch.optim, method)(network.parameters(), lr=lr)
        generator = torch.Generator().manual_seed(seed)
        orders = (torch.randperm(1024, generator=generator) for _ in itertools.count())
        batches = (rows for order in orders for rows in order.split(batch_size))
        for step, rows in enumerate(itertools.islice(batches, limit), 1):
            loss = cross_entropy(network(x[rows]), y[rows])
            opt.zero_grad()
            loss.backward()
            opt.step()
            yield loss.item()
            with torch.no_grad():
                reached = step * batch_size % 32 == 0 and cross_entropy(network(x), y) <= target
            if reached or not loss.isfinite():
                break
        yield {"rate": lr, "steps": step if reached else 0}


# --- Initialization ---------------------------------------------------------------------------

HIDDEN = {  # with the gain that the equations of the chapter ask for
    "sigmoid": (torch.nn.Sigmoid, 4.0),
    "tanh": (torch.nn.Tanh, 1.0),
    "ReLU": (torch.nn.ReLU, 2**0.5),
}


def doubled(least, count=4):
    """Return so many rates, each twice the one before."""
    return tuple(least * 2**k for k in range(count))


ACTIVATION_RATES = {"sigmoid": doubled(0.8), "tanh": doubled(0.2), "ReLU": doubled(0.1)}
FACTOR_RATES = {  # the first has the weights of tanh
    ("sigmoid", 0.25): doubled(0.8), ("tanh", 2): doubled(0.4), ("tanh", 4): doubled(0.2),
    ("ReLU", 2): doubled(0.025), ("ReLU", 4): doubled(0.005),
}  # fmt: skip
DEEP_RATES = {
    ("sigmoid", 1): doubled(0.2), **{("tanh", factor): doubled(0.05) for factor in (1, 2, 4)},
    ("ReLU", 1): doubled(0.025),
    ("ReLU", 2): doubled(0.00025, 3),  # at twice the largest rate all runs diverge
    ("ReLU", 4): (1e-8, 1e-7, 1e-6),
}  # fmt: skip
DEEP = [
    row | {"epochs": 30 if row["factor"] == 1 else 8}
    for row in by_rate(DEEP_RATES, "activation", "factor")
]
OTHER_RATES = {"tanh": doubled(0.1, 7), "ReLU": doubled(0.05, 6)}
OTHER_NETWORKS = [
    {"inputs": "normalized", "problem": "1 layer", "depth": 1},
    {"inputs": "normalized", "problem": "20 units", "width": 20},
    {"problem": "raw", "inputs": "raw"},
]
OTHER_PROBLEMS = [a | b for a in OTHER_NETWORKS for b in by_rate(OTHER_RATES, "activation")]
BY_RATE = "rate {lr:g}, seed {seed}"
BY_ACTIVATION, BY_FACTOR = "{activation}, " + BY_RATE, "{activation}, {factor}, " + BY_RATE
NORMALIZED_BATCHES = {"batch_size": 32, "inputs": "normalized"}


@recorded("initialization-factors", NORMALIZED_BATCHES | {"epochs": 8, "depth": 3},
          product(BY_FACTOR, by_rate(FACTOR_RATES, "activation", "factor"), FIVE))  # fmt: skip
@recorded("initialization-deep", NORMALIZED_BATCHES | {"depth": 10}, product(BY_FACTOR, DEEP, FIVE))
@recorded(
    "initialization-rates", {"factor": 1, "batch_size": 32, "epochs": 8},
    product(BY_ACTIVATION, by_rate(ACTIVATION_RATES, "activation"), FIVE, inputs=NORMALIZED)
    | product("{activation}, {problem}, " + BY_RATE, OTHER_PROBLEMS, FIVE))  # fmt: skip
@recorded(
    "initialization-inputs", {"activation": "ReLU", "factor": 1, "batch_size": 32, "epochs": 6},
    product("{inputs}, " + BY_RATE, seeds=FIVE, inputs=INPUTS, lr=(0.05, 0.1, 0.2, 0.4, 0.8, 1.2))
    | product("{inputs}, {depth} hidden, " + BY_RATE, inputs=INPUTS, depth=(0, 1),
              lr=doubled(0.1, 8)))  # fmt: skip
def train_hidden_layers(seed, activation, factor, inputs, lr, depth=3, width=64, problem=""):
    """Train hidden layers of one width, with the weights of their activation times a factor."""
    widths = np.array([64, *[width] * depth, 10])
    gains = np.array([HIDDEN[activation][1] * factor] * depth + [1])
    deviations = gains * np.sqrt(2 / (widths[:-1] + widths[1:]))  # Glorot's
    network = dense_layers(seed, widths.tolist(), HIDDEN[activation][0], deviations)
    return network, lr, digits(inputs)


BY_WIDTH = "{activation}, {method}, {scaling}, {width} units, " + BY_RATE
WIDTH_RATES = {  # with 32 units μP is the usual scaling
    **{("Adam", "usual", width): doubled(0.001, 6) for width in (32, 128, 512)},
    **{("Adam", "μP", width): doubled(0.001, 6) for width in (128, 512)},
    **{("SGD", "usual", width): doubled(0.1, 5) for width in (32, 512)},
}
SCALINGS = by_rate(WIDTH_RATES, "method", "scaling", "width")


@recorded("initialization-widths", {"batch_size": 32, "epochs": 4, "depth": 2},
          product(BY_WIDTH, SCALINGS, FIVE, activation=("tanh", "ReLU")), LOSS, 4)  # fmt: skip
def train_by_width(seed, activation, method, scaling, width, lr, depth, base=32):
    """Train hidden layers whose weights and rates are the usual ones, or scaled by the width."""
    widths, narrow = ((64, *[units] * depth, 10) for units in (width, base))
    scales, rates = mup_factors(widths, narrow if scaling == "μP" else widths)
    gains = np.array([HIDDEN[activation][1]] * depth + [1])
    deviations = gains * scales / np.sqrt(widths[:-1])
    network, groups = dense_layers(seed, widths, HIDDEN[activation][0], deviations), []
    for layer, rate in zip(network[::2], rates, strict=True):
        groups += [{"params": layer.weight, "lr": lr * rate}, {"params": layer.bias}]
    opt = getattr(torch.optim, method)(groups, lr=lr)
    return network, opt, digits("normalized")


# --- Batch normalization ----------------------------------------------------------------------

RELATIVES = {
    "none": None,
    "BN": batchnorm.BatchNorm,
    "ghost BN": partial(batchnorm.GhostBatchNorm, ghost_size=16),
    "LN": "ln",
    "GN": lambda features: torch.nn.GroupNorm(5, features),
    "four things": partial(batchnorm.FourThingsNorm, groups=5, ghost_size=16, example_share=0.1),
}
OF_ONE = [name for name in RELATIVES if name not in ("BN", "ghost BN")]
BY_SIZE = "{normalization}, {batch_size}, {times:g} times the rate, seed {seed}"
MULTIPLES = {"normalization": RELATIVES, "times": (0.3, 1, 3, 10, 30)}
ONE_NETWORK = "{normalization}, {inputs}, "
BOTH, AHEAD = ("none", "bn"), (0, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
FEW = 1024  # without a last minibatch of one


@recorded(
    "batchnorm-sizes", {"inputs": "raw", "epochs": 5},
    product(BY_SIZE, **MULTIPLES, batch_size=(2, 8, 32))
    | product(BY_SIZE, normalization=RELATIVES, batch_size=(4, 16, 64), times=[1])
    | product(BY_SIZE, normalization=OF_ONE, batch_size=[1], times=[1]), ERROR)  # fmt: skip
@recorded("batchnorm-normalized", {"inputs": "normalized", "epochs": 5},
          product(BY_SIZE, **MULTIPLES, batch_size=(8, 32)), ERROR)  # fmt: skip
def train_by_size(seed, normalization, inputs, batch_size, times):
    """Train two hidden layers at multiples of a rate in proportion to the minibatch."""
    network = fully_connected((64, 50, 50, 10), RELATIVES[normalization], seed=seed)
    return network, 0.1 * batch_size / 32 * times, digits(inputs, FEW)


OWN_RATES = [
    {"normalization": name, "lr": 0.3, "part": "hidden layers", "own": own}
    for name, own in (("none", 3), ("bn", 3), ("bn", 30), ("bn", 300))
] + [{"normalization": "bn", "lr": 3, "part": x, "own": 0.3} for x in ("last layer", "γ and β")]
ALL_FOUR = {"seeds": FIVE, "normalization": BOTH, "inputs": RAW_OR_NOT}
BY_OWN = ONE_NETWORK + "rate {lr:g}, {part} at {own:g}, seed {seed}"
BY_START = ONE_NETWORK + "factor {factor:g}, seed {seed}"


@recorded(
    "batchnorm-rates", {"batch_size": 32, "epochs": 5},
    product(ONE_NETWORK + BY_RATE, **ALL_FOUR, lr=(0.01, 0.03, 0.1, 0.3, 1, 3), factor=[1])
    | product(BY_START, **ALL_FOUR, lr=[0.1], factor=(0.03, 0.1, 0.3, 1, 3, 10))
    | product(BY_OWN, OWN_RATES, FIVE, inputs=RAW_OR_NOT, factor=[1]), ERROR)  # fmt: skip
def train_by_rate(seed, normalization, inputs, lr, factor, part=None, own=None):
    """Train two hidden layers, all initial weights times a factor; who diverges guesses.

    A part of the parameters, the hidden layers if none is named, may have its own rate.
    """
    make = {"none": None, "bn": lambda features: batchnorm.BatchNorm(features, 0.9, 1e-3)}
    network = fully_connected((64, 50, 50, 10), make[normalization], seed=seed)
    *hidden, last = [layer for layer in network if isinstance(layer, torch.nn.Linear)]
    norms = [layer for layer in network if isinstance(layer, batchnorm.BatchNorm)]
    with torch.no_grad():
        for layer in (*hidden, last):
            layer.weight *= factor
    parts = {None: hidden, "hidden layers": hidden, "last layer": [last], "γ and β": norms}
    for parameter in torch.nn.ModuleList(parts[part]).parameters() if own else ():
        parameter.register_hook(lambda gradient: gradient * (own / lr))  # as a rate of its own
    return network, lr, digits(inputs, FEW), [], {"seed": order_seed(seed)}


BY_WEIGHTS = "{inputs}, factor {factor}, "
LARGE_WEIGHTS = {"inputs": RAW_OR_NOT, "epochs": [10], "factor": [10], "own": (1, 10)}


@recorded(
    "batchnorm-weights", {"batch_size": 32},
    product(BY_WEIGHTS + "seed {seed}", [{"factor": 1, "epochs": 10}], inputs=RAW_OR_NOT)
    | product(BY_WEIGHTS + "seed {seed}", [{"factor": 10, "epochs": 40}], inputs=RAW_OR_NOT)
    | product(BY_WEIGHTS + "hidden layers at {own:g}, seed {seed}", **LARGE_WEIGHTS),
    ("validation_error", "longer", "turned 1", "turned 2", "turned 3"))  # fmt: skip
def train_and_turn(seed, inputs, factor, own=None):
    """Train with batch normalization, and watch the weight vectors."""
    *plan, hooks, options = train_by_rate(seed, "bn", inputs, 0.1, factor, own=own)
    hooks.append(batchnorm.WeightVectorHook(*tensors(plan[2][0]), rate=1.6, every=32))
    return *plan, hooks, options


@recorded(
    "batchnorm-smoothness", TEN_EPOCHS,
    product(ONE_NETWORK + BY_RATE, seeds=FIVE, normalization=BOTH, inputs=INPUTS, lr=[0.1])
    | product(ONE_NETWORK + BY_RATE, normalization=BOTH, inputs=INPUTS, lr=[0.3]),
    [f"{what} {rate:g}" for what in ("loss", "change") for rate in AHEAD])  # fmt: skip
def train_along_steps(seed, normalization, inputs, lr, batch_size):
    """Train two hidden layers, and look along the gradient after the first step of each epoch."""
    network = fully_connected((64, 50, 50, 10), batchnorm.NORMALIZATIONS[normalization], seed=seed)
    examples, _ = digits(inputs, FEW)
    along = batchnorm.AlongStepHook(*tensors(examples), AHEAD, every=FEW // batch_size)
    return network, lr, (examples, None), [along]


SHIFTED = "{normalization}, {inputs}, {depth} hidden, shifts {size:g}, " + BY_RATE
SHIFT_RATES = {
    ("normalized", 2): (0.1, 0.3, 1), ("normalized", 4): (0.03, 0.1, 0.3, 1),
    ("raw", 2): (0.1, 0.3, 1),
}  # fmt: skip
SHIFTS = [
    row | {"normalization": name, "size": size}
    for row in by_rate(SHIFT_RATES, "inputs", "depth")
    for name, size in (("none", 0), ("none", 0.5), ("bn", 0), ("bn", 0.5), ("bn", 1))
    if size < 1 or (row["inputs"], row["depth"]) == ("normalized", 2)
]


@recorded("batchnorm-shifts", {"batch_size": 32, "epochs": 5}, product(SHIFTED, SHIFTS, FIVE),
          (*LOSS, *ERROR, "moved"))  # fmt: skip
def train_shifted(seed, normalization, inputs, depth, size, lr):
    """Train with random shifts of what the hidden layers hand on, and watch the last of them."""

    def layers(features):
        norm = [batchnorm.BatchNorm(features)] if normalization == "bn" else []
        return torch.nn.Sequential(*norm, batchnorm.RandomShift(features, size))

    network = fully_connected((64, *[50] * depth, 10), layers, seed=seed)
    parts = digits(inputs, FEW)
    torch.manual_seed(seed)
    return network, lr, parts, [batchnorm.MeanShiftHook(tensors(parts[0])[0], every=8)]


# --- Dropout ----------------------------------------------------------------------------------

PROBLEMS = {
    "30 % random": {"wrong": 0.3}, "none random": {"wrong": 0.0}, "600 digits": {"count": 600},
    **{f"rate {lr:g}": {"lr": lr} for lr in (0.02, 0.2, 0.4, 0.8)},
}  # fmt: skip
VARIED = [{"problem": name, "lr": 0.1} | own for name, own in PROBLEMS.items()]


@recorded("dropout-digits", {"hidden": 200, "lr": 0.1, "batch_size": 20, "epochs": 60},
          product("p = {p:g}, seed {seed}", p=(0.0, 0.25, 0.5, 0.75, 0.95), seeds=range(8)),
          (*LOSS, "wrong_error", "validation_loss", *ERROR, "test_error"))  # fmt: skip
@recorded("dropout-problems", {"batch_size": 20, "epochs": 60},
          product("{problem}, p = {p:g}, seed {seed}", VARIED, range(8), p=(0.0, 0.5)),
          (*ERROR, "test_error"), digits=4)  # fmt: skip
@recorded("dropout-masks", {"masks": 20, "p": 0.5, "lr": 0.1, "batch_size": 20, "epochs": 16},
          product("seed {seed}", seeds=range(8)), ("validation_loss", *LOSS), digits=4)  # fmt: skip
def train_dropped(seed, p, epochs, problem="", count=300, wrong=0.1, **network):
    """Train with dropout on digits of which a part has a random label, and measure the network.

    On those with a wrong label, and on all other digits: the first half chooses the epoch, and
    the second half measures the error.
    """
    data, rng = load("digits"), np.random.default_rng(seed)
    split = data.split(len(data.y_train) - count, seed=seed)
    (x, y), others = (split.train.x, split.train.y), split.validation
    labels = np.where(rng.random(count) < wrong, rng.integers(10, size=count), y)
    half, is_wrong, examples = len(others) // 2, labels != y, Examples(x, labels)
    parts = {
        "wrong": Examples(x[is_wrong], labels[is_wrong]) if is_wrong.any() else others.first(half),
        "validation": others.first(half),
        "test": Examples(others.x[half:], others.y[half:]),
    }
    for name, part in parts.items():
        curves = dropout.train_with_dropout(examples, part, p, seed, epochs=epochs, **network)
        yield from curves.train_loss  # what the hooks see: the loss before each epoch
        yield {f"{name}_loss": curves.validation_loss[1:]}
        yield {f"{name}_error": curves.validation_error[1:]}
    yield {"train_loss": curves.train_loss[1:]}


# --- Batch normalization preconditioning ------------------------------------------------------

DENSE_RATES = {  # the rates that are compared, by the size of the minibatch
    60: {"vanilla": (0.1, 0.3, 1), "BN": (0.1, 0.3, 1, 3), "BNP": (0.1, 0.3, 1, 3)},
    6: {"vanilla": (0.01, 0.03, 0.1, 0.3), "BN": (0.003, 0.01, 0.03, 0.1, 0.3), "BNP": (0.3, 1, 3)},
    1: {"vanilla": (0.003, 0.01, 0.03), "LN": (0.0003, 0.001, 0.003), "BNP": (0.1, 0.3, 1, 3, 10)},
}
EPOCHS = {60: 15, 6: 6, 1: 3}
FORMS = {"Algorithm 2": False, "corrected": True}
AVERAGES = [
    {"form": form, "rho": rho, "batch_size": size, "epochs": EPOCHS[size], "lr": lr}
    for form, rho, size in itertools.product(FORMS, (0.99, 0.9), (60, 6))
    for lr in ((0.1, 0.3, 1, 3) if form == "Algorithm 2" else (0.03, 0.1, 0.3))
]


@recorded("bnp-averages", {"method": "BNP"},
          product("{form}, ρ = {rho}, {batch_size}, {lr:g}, {seed}", AVERAGES),
          ("minibatch_loss", *ERROR), digits=4)  # fmt: skip
def train_dense(seed, method, lr, rho=0.99, form="Algorithm 2"):
    """Train three hidden layers of 100 units on digits by one of the methods."""
    layers = {"BN": "bn", "LN": "ln"}.get(method)
    network = fully_connected((64, 100, 100, 100, 10), layers, seed=seed)
    hooks = [bnp.BNP(network, rho, corrected=FORMS[form])] if method == "BNP" else []
    return network, lr, digits(validation=238), hooks


for size, rates in DENSE_RATES.items():
    trainings = product(BY_METHOD, by_rate(rates), range(4 if size == 1 else 6))
    own = {"batch_size": size, "epochs": EPOCHS[size]}
    recorded(f"bnp-minibatch-{size}", own, trainings, ERROR)(train_dense)


@recorded("bnp-hessians", {"epochs": 3},
          product("{widths}, {inputs}, seed {seed}", seeds=range(6), widths=((6, 6), (12,)),
                  inputs=RAW_OR_NOT),
          ("steepness", "directions", "steepness with P", "directions with P"), 4)  # fmt: skip
def watch_whole_hessian(seed, widths, inputs, epochs, steps=(0, 20, 200)):
    """Train a small network on digits, and describe the Hessian of all parameters three times."""
    X, Y = tensors(digits(inputs, validation=238, dtype=float)[0])
    net = fully_connected((64, *widths, 10), seed=seed).double()
    drawn = torch.Generator().manual_seed(seed)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(max(steps) + 1):
        if step in steps[:epochs]:
            M, P, units = bnp.network_hessian(net, X[:120], Y[:120])
            for name, A in (("", M), (" with P", P.T @ M @ P)):
                values = bnp.unit_steepness(A, units)
                yield dict(zip((f"steepness{name}", f"directions{name}"), values, strict=True))
        batch = torch.randint(len(X), (60,), generator=drawn)
        sgd.zero_grad()
        loss = cross_entropy(net(X[batch]), Y[batch])
        yield loss.item()
        loss.backward()
        sgd.step()


# --- Its convolutions -------------------------------------------------------------------------

CNN_METHODS = {
    "vanilla": None, "BN": "bn", "BNP": None,
    "BN, groups": lambda c: batchnorm.FourThingsNorm(c, groups=c // 4),
}  # fmt: skip
CNN_RATES = {  # by the minibatch and the epochs; thrice and 0.3 times as much are tried as well
    (32, 10): {"vanilla": 0.1, "BN": 0.3, "BN, groups": 0.1, "BNP": 1.0},
    (2, 5): {"vanilla": 0.03, "BN": 0.03, "BN, groups": 0.01, "BNP": 0.3},
    (1, 4): {"vanilla": 0.03, "BN, groups": 0.003, "BNP": 1.0},
}
CNN_RUNS = [
    row | {"batch_size": size, "epochs": epochs}
    for (size, epochs), rates in CNN_RATES.items()
    for row in by_rate(rates)
]
BY_MULTIPLE = "{method}, {batch_size}, {times:g} times the rate, seed {seed}"


@recorded("bnp_cnn-minibatches", {},
          product(BY_MULTIPLE, CNN_RUNS, range(2), times=(0.3, 1, 3)), ERROR)  # fmt: skip
def train_convolutions(seed, method, lr, times):
    """Train the network of five layers by one of the methods, on 400 digits of 24 × 24 pixels."""
    data = load("digits").subset(400)
    parts = (data.x_train, data.y_train), (data.x_test, data.y_test)
    large = [Examples(x.reshape(-1, 1, 8, 8).repeat(3, 2).repeat(3, 3), y) for x, y in parts]
    network = cnn5(1, 24, normalization=CNN_METHODS[method], seed=seed)
    return network, lr * times, large, [bnp.BNP(network)] if method == "BNP" else []


if __name__ == "__main__":
    main(RUNS, FOLDER, sys.argv[1:])
