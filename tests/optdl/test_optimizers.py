"""Chapter 4: every result is compared with one that the code did not produce."""

import copy
import dataclasses
import inspect
import itertools
import math
import subprocess
import sys

import numpy as np
import pytest
import scipy.linalg
import scipy.optimize
import torch

from optdl import optimizers, problems
from optdl.data import load
from optdl.optimizers import (
    SGD,
    AdaDelta,
    AdaGrad,
    Adam,
    AdamW,
    CosineDecay,
    DeltaBarDelta,
    ExponentialDecay,
    FirstOrder,
    LinearDecay,
    Lion,
    Momentum,
    Muon,
    Nesterov,
    Newton,
    Optimizer,
    PowerDecay,
    RMSProp,
    RMSPropNesterov,
    Warmup,
    adaptive_diagonal,
    average_of_iterates,
    averaged_variance,
    change_of_variable,
    exponential_average,
    fisher_diagonal,
    measured_seconds,
    minibatch_gradient,
    momentum_coefficients,
    momentum_eigenvalues,
    momentum_matrix,
    momentum_rate,
    network_diagonals,
    newton_schulz,
    noise_floor,
    optimal_momentum,
    preconditioned_descent,
    run,
    scaling_exponent,
    shampoo_direction,
    standard_nesterov,
    steps_to_reduce,
    torch_equivalent,
    velocity,
    with_l2_penalty,
)

torch.set_num_threads(1)

# torch's own forward-mode code still uses it
pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")

EVERY = {
    "SGD": SGD(lr=0.05),
    "Momentum": Momentum(lr=0.02, alpha=0.9),
    "Nesterov": Nesterov(lr=0.02, alpha=0.9),
    "DeltaBarDelta": DeltaBarDelta(lr=0.01),
    "AdaGrad": AdaGrad(lr=0.2),
    "RMSProp": RMSProp(lr=0.01),
    "RMSPropNesterov": RMSPropNesterov(lr=0.005),
    "AdaDelta": AdaDelta(lr=1.0),
    "Adam": Adam(lr=0.05),
    "AdamW": AdamW(lr=0.05, decay=0.1),
    "Lion": Lion(lr=0.02, decay=0.1),
}
"""Every method of first order, with constants that suit a bowl."""


def bowl(n=5, seed=3):
    """A quadratic with a full Hessian, eigenvalues from 0.3 to 4, and its minimum away from 0."""
    rng = np.random.default_rng(seed)
    rotation, _ = np.linalg.qr(rng.normal(size=(n, n)))
    H = (rotation * np.linspace(0.3, 4.0, n)) @ rotation.T
    return problems.quadratic((H + H.T) / 2, rng.normal(size=n))


def constant(*values):
    """A gradient that is the same everywhere."""
    return lambda theta: np.array(values)


def given(gradients):
    """Gradients that come one after the other, wherever θ is."""
    remaining = iter(gradients)
    return lambda theta: np.array([next(remaining)])


def states(opt, grad, theta, steps):
    """The state after each step."""
    state, found = opt.init(theta), []
    for _ in range(steps):
        theta, state = opt.step(theta, state, grad)
        found.append(state)
    return found


def run_python(code):
    """Run a program in a fresh interpreter and return what it prints."""
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


# --- against torch.optim ----------------------------------------------------------------------

SAME_IN_TORCH = {
    "SGD": SGD(lr=0.05),
    "Momentum 0.5": Momentum(lr=0.05, alpha=0.5),
    "Momentum 0.9": Momentum(lr=0.02, alpha=0.9),
    "Momentum 0.99": Momentum(lr=0.002, alpha=0.99),
    "Nesterov 0.9": Nesterov(lr=0.02, alpha=0.9),
    "AdaGrad": AdaGrad(lr=0.3, delta=1e-7),
    "AdaGrad, large δ": AdaGrad(lr=0.3, delta=0.1),
    # so small a rate that no path arrives: where g changes its sign, g / √r is as good as random
    "RMSProp, δ = 0": RMSProp(lr=0.002, rho=0.9, delta=0.0),
    "AdaDelta": AdaDelta(lr=1.0, rho=0.9, delta=1e-6),
    "AdaDelta, η = 0.5": AdaDelta(lr=0.5, rho=0.95, delta=1e-3),
    "Adam": Adam(lr=0.05, beta1=0.9, beta2=0.999, delta=1e-8),
    "Adam, large δ": Adam(lr=0.05, beta1=0.8, beta2=0.9, delta=0.1),
    "AdamW": AdamW(lr=0.05, decay=0.1),
    "AdamW, large δ": AdamW(lr=0.05, beta1=0.8, beta2=0.9, decay=0.5, delta=0.1),
}


def torch_path(name, settings, grad, start, steps):
    """The iterates of torch.optim, in float64, one tensor at a time."""
    theta = torch.tensor(start, requires_grad=True)
    optimizer = getattr(torch.optim, name)([theta], foreach=False, **settings)
    path = [start]
    for _ in range(steps):
        theta.grad = torch.tensor(grad(theta.detach().numpy()))
        optimizer.step()
        path.append(theta.detach().numpy().copy())
    return np.array(path)


def our_path(opt, grad, start, steps):
    """Our iterates; for Nesterov the interim points, which are what torch keeps."""
    theta, state = start, opt.init(start)
    path = [opt.interim(theta, state)]
    for _ in range(steps):
        theta, state = opt.step(theta, state, grad)
        path.append(opt.interim(theta, state))
    return np.array(path)


def deviations(steps=120):
    """The largest deviation from torch.optim of each method, over some smooth problems."""
    objectives = (bowl(), problems.valley(0.1), problems.mixture())
    found = {}
    for label, opt in SAME_IN_TORCH.items():
        name, settings = torch_equivalent(opt)
        found[label] = 0.0
        for objective in objectives:
            ours = our_path(opt, objective.gradient, objective.start, steps)
            theirs = torch_path(name, settings, objective.gradient, objective.start, steps)
            # a comparison of two paths that stand still would prove nothing
            assert np.linalg.norm(ours[-1] - ours[0]) > 0.05
            found[label] = max(found[label], np.abs(ours - theirs).max())
    return found


@pytest.mark.row("L1-24", "L1-26", "L1-27", "L1-29", "L1-30", "L2-05", "L2-06", "F-05")
def test_largest_deviation_from_torch_over_120_steps():
    # pytest -s -k deviation prints the numbers
    found = deviations()
    for label, deviation in found.items():
        print(f"{label:20} {deviation:.1e}")
    assert max(found.values()) <= 4e-15, found


@pytest.mark.row("L1-30")
def test_rmsprop_approaches_torch_as_delta_vanishes():
    objective = bowl()
    expected = torch_path(
        "RMSprop", {"lr": 0.01, "alpha": 0.9, "eps": 0.0}, objective.gradient, objective.start, 30
    )
    gaps = [
        np.abs(
            run(RMSProp(0.01, rho=0.9, delta=d), objective, objective.start, 30) - expected
        ).max()
        for d in (1e-2, 1e-4, 1e-6)
    ]
    # the first order in δ of η/√(δ + r): a hundredth of δ gives a hundredth of the gap
    assert gaps[0] > 1e-4
    assert gaps[1] < gaps[0] / 30
    assert gaps[2] < gaps[1] / 60


@pytest.mark.row("L1-26")
def test_only_torch_rescales_velocity_with_the_rate():
    # by hand, g = 1, α = 0.5, rates 1 then 0.1. lecture: v = −1, then −0.5 − 0.1 = −0.6
    # torch: b = 1, then 0.5 + 1 = 1.5, a step of −0.15
    ours = run(Momentum(lr=lambda k: (1.0, 0.1)[k], alpha=0.5), constant(1.0), np.zeros(1), 2)
    np.testing.assert_allclose(ours.ravel(), [0, -1, -1.6], rtol=1e-15)
    theta = torch.zeros(1, dtype=torch.float64)
    optimizer = torch.optim.SGD([theta], lr=1.0, momentum=0.5)
    for lr in (1.0, 0.1):
        optimizer.param_groups[0]["lr"] = lr
        theta.grad = torch.ones_like(theta)
        optimizer.step()
    assert theta.item() == pytest.approx(-1.15, rel=1e-15)


@pytest.mark.row("L1-26")
def test_averaged_momentum_is_momentum_with_smaller_rate():
    # the average v ← α v − (1 − α) η g, iterated here, is the lecture's with the rate (1 − α) η
    objective, alpha, lr = bowl(), 0.9, 0.2
    theta, v = objective.start, np.zeros(5)
    for _ in range(100):
        v = alpha * v - (1 - alpha) * lr * objective.gradient(theta)
        theta = theta + v
    ours = run(Momentum((1 - alpha) * lr, alpha), objective, objective.start, 100)
    np.testing.assert_allclose(ours[-1], theta, atol=1e-13)


@pytest.mark.parametrize(
    ("opt", "reason"),
    [
        (RMSProp(0.1, delta=1e-6), "outside the root"),
        (RMSPropNesterov(0.1), "at θ, not at the interim point"),
        (DeltaBarDelta(0.1), "no DeltaBarDelta"),
        (Newton(hessian=lambda theta: np.eye(1)), "no Newton"),
        (Muon(0.1), "in bfloat16"),
        (Lion(0.1), "no Lion"),
        (SGD(LinearDecay(0.1, tau=5)), "lr_scheduler"),
    ],
)
def test_torch_equivalent_refuses_with_the_reason(opt, reason):
    with pytest.raises(ValueError, match=reason):
        torch_equivalent(opt)


@pytest.mark.row("L1-27")
def test_nesterov_without_momentum_is_sgd_in_torch():
    assert torch_equivalent(Nesterov(lr=0.1, alpha=0.0)) == ("SGD", {"lr": 0.1, "momentum": 0.0})


# --- one object for arrays, tensors and trees -------------------------------------------------


def nest(row):
    """Five numbers in a nested tree, with a matrix and a single number among them."""
    return {"layer": [{"weight": row[:4].reshape(2, 2)}, (row[4:].reshape(()),)]}


def flatten(tree):
    """The numbers of that tree in a row again."""
    [layer, (bias,)] = tree["layer"]
    return np.append(np.asarray(layer["weight"]).ravel(), float(bias))


OBJECT = EVERY | {"Newton": Newton(hessian=bowl().hessian, lr=0.1, damping=0.5)}


@pytest.mark.row("L1-24", "L1-26", "L1-27", "L1-28", "L1-29", "L1-30", "L1-31", "L2-05", "L2-06")
@pytest.mark.parametrize("label", OBJECT)
def test_same_optimizer_steps_arrays_tensors_and_trees(label):
    opt, objective = OBJECT[label], bowl()
    expected = run(opt, objective, objective.start, 20)

    if isinstance(opt, Newton):
        H = torch.tensor(objective.hessian(objective.start))
        opt_torch = dataclasses.replace(opt, hessian=lambda theta: H)
        opt_tree = dataclasses.replace(opt, hessian=lambda tree: H.numpy())
        opt_both = dataclasses.replace(opt, hessian=lambda tree: H)
    else:
        opt_torch = opt_tree = opt_both = opt

    tensors = run(
        opt_torch,
        lambda theta: torch.from_numpy(objective.gradient(theta.numpy())),
        torch.from_numpy(objective.start),
        20,
    )
    assert {type(theta) for theta in tensors} == {torch.Tensor}
    np.testing.assert_allclose(torch.stack(tensors), expected, rtol=0, atol=1e-14)

    trees = run(
        opt_tree,
        lambda tree: nest(objective.gradient(flatten(tree))),
        nest(objective.start),
        20,
    )
    assert isinstance(trees[-1]["layer"][1], tuple)
    assert trees[-1]["layer"][1][0].shape == ()
    np.testing.assert_allclose(np.array(list(map(flatten, trees))), expected, rtol=0, atol=1e-14)

    both = run(
        opt_both,
        lambda tree: nest(torch.from_numpy(objective.gradient(flatten(tree)))),
        nest(torch.from_numpy(objective.start)),
        20,
    )
    np.testing.assert_allclose(np.array(list(map(flatten, both))), expected, rtol=0, atol=1e-14)


@pytest.mark.parametrize("label", OBJECT)
@pytest.mark.parametrize("tensor", [False, True], ids=["numpy", "torch"])
def test_step_changes_no_argument(label, tensor):
    kind = torch.from_numpy if tensor else (lambda row: row)
    objective, opt = bowl(), OBJECT[label]
    if isinstance(opt, Newton):
        opt = dataclasses.replace(opt, hessian=lambda theta: kind(bowl().hessian(np.zeros(5))))
    theta = kind(objective.start.copy())
    state = opt.init(theta)
    g = kind(objective.gradient(objective.start))
    for _ in range(3):
        before = copy.deepcopy((theta, state, g))
        new, after = opt.step(theta, state, lambda theta: g)
        for old, now in zip(
            before[0:1] + tuple(before[1]) + before[2:], (theta, *state, g), strict=True
        ):
            np.testing.assert_array_equal(old, now)
        theta, state = new, after


@pytest.mark.parametrize("label", EVERY)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_step_keeps_dtype_and_shape_and_drops_history(label, dtype):
    theta = torch.nn.Parameter(torch.ones(2, 3, dtype=dtype))
    opt = EVERY[label]
    new, state = opt.step(theta, opt.init(theta), lambda theta: 2 * theta)
    for tensor in (new, *state[1:]):
        assert (tensor.dtype, tensor.shape, tensor.requires_grad) == (dtype, theta.shape, False)
    assert theta.requires_grad
    row = np.ones((2, 3), dtype=str(dtype).removeprefix("torch."))
    new, state = opt.step(row, opt.init(row), lambda theta: 2 * theta)
    assert {array.dtype for array in (new, *state[1:])} == {row.dtype}


@pytest.mark.row("L1-24", "L2-09")
@pytest.mark.parametrize("label", ["SGD", "Momentum", "Nesterov", "AdaGrad", "AdaDelta", "Adam"])
def test_network_path_matches_torch(label):
    # oracle: torch.optim on the module, against torch.func on the dict of its parameters
    digits = load("digits")
    x = torch.from_numpy(digits.x_train[:64].astype(np.float64))
    y = torch.from_numpy(digits.y_train[:64])
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(64, 16), torch.nn.Tanh(), torch.nn.Linear(16, 10))
    net = net.double()

    def loss(theta):
        return torch.nn.functional.cross_entropy(torch.func.functional_call(net, theta, (x,)), y)

    opt = EVERY[label]
    theta = {name: value.detach().clone() for name, value in net.named_parameters()}
    state = opt.init(theta)
    name, settings = torch_equivalent(opt)
    optimizer = getattr(torch.optim, name)(net.parameters(), foreach=False, **settings)
    first = float(loss(theta))
    for _ in range(100):
        theta, state = opt.step(theta, state, torch.func.grad(loss))
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(net(x), y).backward()
        optimizer.step()
    assert float(loss(theta)) < first
    ours = opt.interim(theta, state)
    for key, value in net.named_parameters():
        np.testing.assert_allclose(ours[key], value.detach(), rtol=0, atol=1e-12)


def test_tensor_stays_on_its_device():
    # the meta device computes shapes only, and refuses to meet a tensor of another device
    theta = torch.ones(3, device="meta")
    for opt in EVERY.values():
        state = opt.init(theta)
        for _ in range(2):
            theta, state = opt.step(theta, state, lambda theta: theta, check_finite=False)
        assert {tensor.device.type for tensor in (theta, *state[1:])} == {"meta"}


# --- the formula that the book shows is what runs ---------------------------------------------


@pytest.mark.parametrize("label", OBJECT)
def test_update_formula_determines_the_step(label, monkeypatch):
    # oracle: with another formula in its place the step is another one, whatever the method
    opt, objective, asked = OBJECT[label], bowl(), []
    expected = run(opt, objective, objective.start, 5)
    formula = type(opt).update

    def doubled(self, t, theta, *rest):
        asked.append(t)
        new = formula(self, t, theta, *rest)
        if isinstance(new, tuple):
            return 2 * new[0] - theta, *new[1:]
        return 2 * new - theta

    monkeypatch.setattr(type(opt), "update", doubled)
    path = run(opt, objective, objective.start, 5)
    np.testing.assert_allclose(path[1] - path[0], 2 * (expected[1] - expected[0]), rtol=1e-12)
    assert asked == [1, 2, 3, 4, 5]


def test_subclass_formula_defines_the_method():
    class Sign(FirstOrder):
        def update(self, t, theta, g):
            return (theta - self.rate(t) * g / (g * g) ** 0.5,)

    class Halved(Momentum):
        def update(self, t, theta, g, v):
            return theta - 0.5 * self.rate(t) * g, v

    path = run(Sign(lr=0.5), lambda theta: theta, np.array([2.0, -2.0]), 3)
    np.testing.assert_array_equal(path, [[2, -2], [1.5, -1.5], [1, -1], [0.5, -0.5]])
    path = run(Halved(lr=1.0), lambda theta: theta, np.array([8.0]), 2)
    np.testing.assert_array_equal(path.ravel(), [8, 4, 2])


def test_look_ahead_determines_the_interim_point(monkeypatch):
    monkeypatch.setattr(Nesterov, "look_ahead", lambda self, theta, v: theta + 100.0)
    asked = []
    run(Nesterov(lr=1.0), lambda theta: asked.append(theta) or np.ones(1), np.zeros(1), 1)
    np.testing.assert_array_equal(asked, [[100.0]])


def test_step_passes_down_the_modules_once():
    # a reader who follows it goes from the step to the trees to the formula
    program = """
import sys
import numpy as np
from optdl.optimizers import Momentum
opt, theta, calls = Momentum(0.1), np.array([1.0, 2.0, 3.0]), []
state = opt.init(theta)
def profile(frame, event, arg):
    if event == "call" and "optdl" in frame.f_code.co_filename:
        calls.append(frame.f_code.co_filename)
sys.setprofile(profile)
opt.step(theta, state, lambda theta: theta)
sys.setprofile(None)
print(len(calls), len(set(calls)), sum(a != b for a, b in itertools.pairwise(calls)))
"""
    calls, files, changes = map(int, run_python("import itertools" + program).split())
    assert (files, changes) == (3, 3)
    assert calls <= 10


def test_newton_has_a_formula_of_its_own():
    assert not issubclass(Newton, FirstOrder)
    opt, objective = Newton(hessian=bowl().hessian, lr=0.5, damping=0.3), bowl()
    H, g = objective.hessian(objective.start), objective.gradient(objective.start)
    expected = objective.start - 0.5 * np.linalg.inv(H + 0.3 * np.eye(5)) @ g
    np.testing.assert_allclose(opt.update(1, objective.start, g, H), expected, rtol=1e-13)
    np.testing.assert_array_equal(
        run(opt, objective, objective.start, 1)[1], opt.update(1, objective.start, g, H)
    )


def test_positional_arguments_follow_the_signature():
    assert RMSProp(0.01, 0.8) == RMSProp(lr=0.01, rho=0.8)
    assert AdaDelta(0.5, 0.8) == AdaDelta(lr=0.5, rho=0.8)
    assert RMSPropNesterov(0.01, 0.8, 0.7) == RMSPropNesterov(lr=0.01, rho=0.8, alpha=0.7)
    assert Adam(0.1, 0.5, 0.75) == Adam(lr=0.1, beta1=0.5, beta2=0.75)
    assert AdamW(0.1, 0.5, 0.75) == AdamW(lr=0.1, beta1=0.5, beta2=0.75)
    for method in (AdaGrad, RMSProp, RMSPropNesterov, AdaDelta, Adam, AdamW):
        parameters = inspect.signature(method).parameters
        assert parameters["delta"].kind is inspect.Parameter.KEYWORD_ONLY


# --- by hand ----------------------------------------------------------------------------------


ROOT2 = math.sqrt(2)
# method, start, gradients one after the other or the rule of θ, and the steps
BY_HAND = {
    # v = −4, −4, −2
    "Momentum": (Momentum(0.5, 0.5), 8.0, lambda theta: theta, [-4, -4, -2]),
    # θ̃ = 8, 2, −½ and v = −4, −3, −1¼
    "Nesterov": (Nesterov(0.5, 0.5), 8.0, lambda theta: theta, [-4, -3, -1.25]),
    # the first trend is 0. Same sign, rate ¾; same sign, rate 1; with g = 0 nothing changes
    "DeltaBarDelta": (
        DeltaBarDelta(0.5, increase=0.25, decrease=0.5, rho=0.0),
        8.0,
        lambda theta: theta,
        [-4, -3, -1, 0],
    ),
    # r = 9, 25, 169: roots 3, 5, 13
    "AdaGrad": (AdaGrad(1.0, delta=0.0), 0.0, [3.0, 4.0, 12.0], [-1, -0.8, -12 / 13]),
    "AdaGrad, δ": (AdaGrad(1.0, delta=1.0), 0.0, [3.0, 4.0, 12.0], [-3 / 4, -2 / 3, -6 / 7]),
    # ρ = ¾: r = 1, 1¾, 1⁹⁄₁₆, and with δ = 3 the roots of 4, 4¾, 4⁹⁄₁₆
    "RMSProp": (
        RMSProp(1.0, rho=0.75, delta=0.0),
        0.0,
        [2.0, 2.0, 1.0],
        [-2, -2 / 1.75**0.5, -0.8],
    ),
    "RMSProp, δ": (
        RMSProp(1.0, rho=0.75, delta=3.0),
        0.0,
        [2.0, 2.0, 1.0],
        [-1, -2 / 4.75**0.5, -1 / 4.5625**0.5],
    ),
    # ρ = 0 makes r = g², each step sign(g): v = −1, −1.5, −1.75
    "RMSPropNesterov": (
        RMSPropNesterov(1.0, 0.0, 0.5, delta=0.0),
        8.0,
        lambda theta: theta,
        [-1, -1.5, -1.75],
    ),
    # ρ = ½, δ = 1: r = 1, 1½, 1¾ and d = 0, ½, 17⁄20, of which each step takes the old one
    "AdaDelta": (
        AdaDelta(1.0, rho=0.5, delta=1.0),
        0.0,
        [ROOT2, ROOT2, ROOT2],
        [-1, -((1.5 / 2.5) ** 0.5) * ROOT2, -((1.85 / 2.75) ** 0.5) * ROOT2],
    ),
    # β₁ = ½, β₂ = ¾: m̂ = 2, 2, 2/7; r̂ = 4, 4, 100/37
    "Adam": (
        Adam(1.0, 0.5, 0.75, delta=0.0),
        0.0,
        [2.0, 2.0, -1.0],
        [-1, -1, -(2 / 7) * 0.37**0.5],
    ),
    # δ stands outside the root, beside r̂: 2/(2 + 2)
    "Adam, δ": (Adam(1.0, 0.5, 0.75, delta=2.0), 0.0, [2.0], [-0.5]),
    # as Adam, and η = 1, ω = ½ halve θ = 8, 3, ½ besides
    "AdamW": (
        AdamW(1.0, 0.5, 0.75, decay=0.5, delta=0.0),
        8.0,
        [2.0, 2.0, -1.0],
        [-5, -2.5, -0.25 - (2 / 7) * 0.37**0.5],
    ),
    # β₁ = ½, β₂ = ¾: c = 2, ¼, −29/16, −27/64; the sign of zero is zero
    "Lion": (Lion(1.0, 0.5, 0.75), 0.0, [4.0, -0.5, -4.0, 0.0], [-1, -1, 1, 1]),
    "Lion at rest": (Lion(1.0), 1.0, [0.0, 0.0], [0, 0]),
}


@pytest.mark.row("L1-26", "L1-27", "L1-28", "L1-29", "L1-30", "L1-31")
@pytest.mark.row("L2-05", "L2-06", "F-05", "F-18")
@pytest.mark.parametrize("label", BY_HAND)
def test_first_steps_match_hand_calculation(label):
    opt, start, gradients, steps = BY_HAND[label]
    grad = gradients if callable(gradients) else given(gradients)
    path = run(opt, grad, np.array([start]), len(steps)).ravel()
    np.testing.assert_allclose(np.diff(path), steps, rtol=1e-14)


# --- gradient descent and its schedules: L1-24, L1-25 -----------------------------------------


@pytest.mark.row("L1-24")
def test_sgd_on_a_quadratic_is_the_matrix_power():
    objective = bowl()
    path = run(SGD(lr=0.2), objective, objective.start, 30)
    A = np.eye(5) - 0.2 * objective.hessian(objective.start)
    error = objective.start - objective.minimum
    expected = [objective.minimum + np.linalg.matrix_power(A, t) @ error for t in range(31)]
    np.testing.assert_allclose(path, expected, atol=1e-13)


@pytest.mark.row("L1-24")
def test_run_stops_at_the_criterion():
    # θ ← θ/2 from 8: the first value below 1 is 0.5, after 4 steps
    path = run(SGD(0.5), lambda theta: theta, np.array([8.0]), 99, stop=lambda theta: theta[0] < 1)
    np.testing.assert_array_equal(path.ravel(), [8, 4, 2, 1, 0.5])
    assert len(run(SGD(0.5), lambda theta: theta, np.array([8.0]), 0)) == 1
    assert len(run(SGD(0.5), lambda t: t, np.array([8.0]), 9, stop=lambda theta: True)) == 1


@pytest.mark.row("L1-24")
def test_minibatch_gradient_is_unbiased_and_draws_without_repetition(rng):
    y = rng.normal(size=6)
    drawn = []

    def mean(theta, rows):
        drawn.append(tuple(sorted(rows)))
        return theta - y[rows].mean()

    grad = minibatch_gradient(mean, m=6, n=2, rng=rng)
    estimates = np.array([grad(np.zeros(1)) for _ in range(3000)])
    assert all(len(set(rows)) == 2 for rows in drawn)
    assert len(set(drawn)) == 15  # every pair of 6 comes up
    # oracle: the spread of a mean of n from m without repetition, σ²/n (m − n)/(m − 1)
    spread = math.sqrt(y.var() / 2 * 4 / 5)
    assert estimates.mean() == pytest.approx(-y.mean(), abs=5 * spread / math.sqrt(3000))
    assert estimates.std() == pytest.approx(spread, rel=0.1)
    with pytest.raises(ValueError, match="1 to m = 6"):
        minibatch_gradient(mean, m=6, n=7, rng=rng)


@pytest.mark.row("L1-25")
def test_linear_decay_ends_in_a_constant():
    schedule = LinearDecay(first=0.5, tau=40)
    rates = [schedule(k) for k in range(100)]
    np.testing.assert_allclose(rates, np.interp(np.arange(100), [0, 40], [0.5, 0.005]), rtol=1e-13)
    assert schedule.final == 0.005


@pytest.mark.row("L1-25")
def test_first_rate_applies_to_first_step():
    # by hand: g = 1, rates 1, 0.5, 0.25
    path = run(SGD(ExponentialDecay(1.0, 0.5)), constant(1.0), np.zeros(1), 3)
    np.testing.assert_array_equal(path.ravel(), [0, -1, -1.5, -1.75])


@pytest.mark.row("L1-25")
@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        (0.1, (True, False)),
        (0.0, (False, True)),
        (LinearDecay(0.1, tau=10), (True, False)),
        (LinearDecay(0.1, tau=10, last=0.0), (False, True)),
        (PowerDecay(0.1, power=0.5), (True, False)),
        (PowerDecay(0.1, power=0.75), (True, True)),
        (PowerDecay(0.1, power=1.0), (True, True)),
        (PowerDecay(0.1, power=1.5), (False, True)),
        (ExponentialDecay(0.1, 0.9), (False, True)),
        (CosineDecay(0.1, tau=10), (False, True)),
        (CosineDecay(0.1, tau=10, last=0.01), (True, False)),
        (Warmup(PowerDecay(0.1, power=1.0), steps=5), (True, True)),
        (Warmup(0.1, steps=5), (True, False)),
    ],
)
def test_robbins_monro_schedules_are_identified(schedule, expected):
    # Σ η_k = ∞ and Σ η_k² < ∞, by the condensation test of Cauchy. Σ aₖ converges exactly when
    # Σ 2ʲ a(2ʲ) does; for these sequences exactly when the terms 2ʲ a(2ʲ) shrink geometrically
    at = schedule if callable(schedule) else lambda k: schedule

    def converges(power):
        terms = [2.0**j * at(2**j) ** power for j in (60, 61)]
        return terms[0] == 0 or terms[1] / terms[0] < 0.999

    assert (not converges(1), converges(2)) == expected


@pytest.mark.row("F-14")
@pytest.mark.parametrize(("lr", "n"), [(0.05, 2), (0.2, 8), (0.2, 2)])
def test_minibatch_noise_floor_matches_prediction(rng, lr, n):
    y = rng.normal(size=2000)
    gradient = minibatch_gradient(lambda theta, rows: theta - y[rows].mean(), 2000, n, rng)
    path = run(SGD(lr), gradient, np.array([y.mean()]), 40_000)
    floor = noise_floor(lr, 1.0, y.std() / math.sqrt(n))
    assert np.mean((path[1000:] - y.mean()) ** 2) == pytest.approx(floor, rel=0.1)


@pytest.mark.row("L1-25")
def test_decaying_rate_gets_below_noise_floor(rng):
    def last_errors(lr):
        grads = rng.normal(size=(4000, 200))
        rows = iter(grads)
        return run(SGD(lr), lambda theta: theta + next(rows), np.ones(200), 4000)[-1]

    constant_rate = np.mean(last_errors(0.1) ** 2)
    assert constant_rate == pytest.approx(noise_floor(0.1, 1.0, 1.0), rel=0.3)
    assert np.mean(last_errors(PowerDecay(0.5, power=1.0, tau=4)) ** 2) < constant_rate / 20
    # its sum is finite: it stops where Π (1 − η_k) leaves it, and the start is never forgotten
    short = ExponentialDecay(0.1, 0.5)
    left = math.prod(1 - short(k) for k in range(60))
    path = run(SGD(short), lambda theta: theta, np.ones(1), 500)
    assert path[-1, 0] == pytest.approx(left, rel=1e-12)
    assert left > 0.8


# --- momentum: L1-26, L2-03 -------------------------------------------------------------------


@pytest.mark.row("L1-26")
@pytest.mark.parametrize("alpha", [0.0, 0.5, 0.9, 0.99])
def test_constant_gradient_velocity_is_a_geometric_sum(alpha):
    g = np.array([3.0, -4.0])
    found = states(Momentum(0.1, alpha), lambda theta: g, np.zeros(2), 2000)
    for t in (1, 2, 3, 50, 2000):
        geometric = -0.1 * g * sum(alpha**k for k in range(t))
        np.testing.assert_allclose(found[t - 1].v, geometric, rtol=1e-11)
        np.testing.assert_allclose(velocity(t, 0.1, alpha, g), geometric, rtol=1e-11)
    speed = np.linalg.norm(found[-1].v)
    assert speed == pytest.approx(0.1 * 5 / (1 - alpha), rel=1e-8)


@pytest.mark.row("L2-03")
def test_friction_notation_gives_the_same_path():
    gamma, eta, objective = 0.7, 0.1, bowl()
    theta, u = objective.start, np.zeros(5)
    expected = [theta]
    for _ in range(100):
        u = gamma * u - eta * objective.gradient(theta)
        theta = theta + u
        expected.append(theta)
    path = run(Momentum.from_l2(eta=eta, gamma=gamma), objective, objective.start, 100)
    np.testing.assert_allclose(path, expected, atol=1e-13)
    assert isinstance(Nesterov.from_l2(eta, gamma), Nesterov)


# --- Nesterov: L1-27 --------------------------------------------------------------------------


@pytest.mark.row("L1-27")
def test_variable_change_maps_torch_nesterov_to_lecture():
    # torch keeps θ̃ and b = −v/η; θ = θ̃ − αv = θ̃ + αηb
    objective, lr, alpha = bowl(), 0.05, 0.9
    tilde = torch.tensor(objective.start)
    optimizer = torch.optim.SGD([tilde], lr=lr, momentum=alpha, nesterov=True)
    expected = [objective.start]
    for _ in range(100):
        tilde.grad = torch.tensor(objective.gradient(tilde.numpy()))
        optimizer.step()
        b = optimizer.state[tilde]["momentum_buffer"]
        expected.append((tilde + alpha * lr * b).numpy())
    path = run(Nesterov(lr, alpha), objective, objective.start, 100)
    np.testing.assert_allclose(path, expected, atol=1e-12)


@pytest.mark.row("L1-27")
def test_nesterov_damps_more_than_momentum():
    # oracle: the spectral radius of the matrix of each method, on the curvature λ
    lam, lr, alpha = 1.0, 0.5, 0.9
    heavy = np.array([[1 - lr * lam, alpha], [-lr * lam, alpha]])
    look = np.array([[1 - lr * lam, alpha * (1 - lr * lam)], [-lr * lam, alpha * (1 - lr * lam)]])
    radius = [np.abs(np.linalg.eigvals(M)).max() for M in (heavy, look)]
    measured = []
    for opt in (Momentum(lr, alpha), Nesterov(lr, alpha)):
        path = np.abs(run(opt, lambda theta: lam * theta, np.ones(1), 200)).ravel()
        measured.append((path[150:].max() / path[50:100].max()) ** (1 / 100))
    np.testing.assert_allclose(measured, radius, rtol=0.01)
    assert radius[1] < radius[0] - 0.2


# --- rates from signs: L1-28 ------------------------------------------------------------------


@pytest.mark.row("L1-28")
def test_rate_grows_until_the_sign_flips():
    opt = DeltaBarDelta(lr=1.0, increase=0.5, decrease=0.25, rho=0.0)
    found = states(opt, given([1.0, 2.0, 3.0, -1.0, -1.0, 1.0]), np.zeros(1), 6)
    rates = [state.rates[0] for state in found]
    np.testing.assert_array_equal(rates, [1, 1.5, 2, 1.5, 2, 1.5])


@pytest.mark.row("L1-28")
def test_averaged_trend_ignores_a_single_flip():
    # ρ = 0.5: trend 1/2 after g = 1 and g = … −0.25 leaves 0.125 > 0, so that the next + agrees
    opt = DeltaBarDelta(lr=1.0, increase=0.5, decrease=0.5, rho=0.5)
    found = states(opt, given([1.0, -0.25, 1.0]), np.zeros(1), 3)
    assert [state.trend[0] for state in found] == [0.5, 0.125, 0.5625]
    assert [state.rates[0] for state in found] == [1.0, 0.5, 1.0]


@pytest.mark.row("L1-28")
def test_printed_delta_bar_delta_rule_is_slower():
    # In the long valley the flat direction keeps its sign. Growing its rate helps; shrinking it,
    # as L1 prints, freezes it. The oracle of the size of the win is plain descent.
    valley = problems.valley(0.01)
    start = np.array([1.0, 1.0])
    loss = {
        name: valley.value(run(opt, valley, start, 60)[-1])
        for name, opt in {
            "plain": SGD(0.5),
            "right": DeltaBarDelta(0.5, increase=0.1, decrease=0.5),
            "printed": DeltaBarDelta(0.5, increase=0.1, decrease=0.5, as_printed=True),
        }.items()
    }
    assert loss["right"] < loss["plain"] / 20
    assert loss["printed"] > loss["plain"]


@pytest.mark.row("L1-28")
def test_as_printed_exchanges_the_two_cases():
    opt = DeltaBarDelta(lr=1.0, increase=0.5, decrease=0.25, rho=0.0, as_printed=True)
    found = states(opt, given([1.0, 1.0, -1.0]), np.zeros(1), 3)
    assert [state.rates[0] for state in found] == [1.0, 0.75, 1.25]


# --- AdaGrad and RMSProp: L1-29, L1-30, L1-31, L2-04 ------------------------------------------


@pytest.mark.row("L1-29")
def test_adagrad_constant_gradient_steps_decay_like_inverse_root():
    # r = t g², so that step t is η g / (δ + |g| √t)
    g, delta = np.array([3.0, -0.5]), 0.25
    path = run(AdaGrad(0.1, delta=delta), lambda theta: g, np.zeros(2), 100)
    t = np.arange(1, 101)[:, None]
    np.testing.assert_allclose(np.diff(path, axis=0), -0.1 * g / (delta + np.abs(g) * np.sqrt(t)))


def rmsprop_box(grad, theta, lr, rho, delta, steps, alpha=0.0):
    """The boxes of the lecture, one number after the other."""
    theta = [float(value) for value in theta]
    r, v = [0.0] * len(theta), [0.0] * len(theta)
    path = [list(theta)]
    for _ in range(steps):
        interim = [theta[i] + alpha * v[i] for i in range(len(theta))]
        g = [float(value) for value in grad(np.array(interim))]
        for i in range(len(theta)):
            r[i] = rho * r[i] + (1 - rho) * g[i] * g[i]
            v[i] = alpha * v[i] - lr / math.sqrt(delta + r[i]) * g[i]
            theta[i] = theta[i] + v[i]
        path.append(list(theta))
    return np.array(path)


@pytest.mark.row("L1-30", "L1-31")
@pytest.mark.parametrize("delta", [0.0, 1e-6, 0.1])
@pytest.mark.parametrize("alpha", [0.0, 0.8])
def test_rmsprop_matches_the_lectures_box(alpha, delta):
    objective = bowl()
    opt = RMSPropNesterov(0.005, 0.9, alpha, delta=delta)
    expected = rmsprop_box(objective.gradient, objective.start, 0.005, 0.9, delta, 100, alpha)
    opts = [opt] if alpha else [opt, RMSProp(0.005, rho=0.9, delta=delta)]
    for each in opts:
        path = run(each, objective, objective.start, 100)
        np.testing.assert_allclose(path, expected, rtol=0, atol=1e-12)


@pytest.mark.row("L1-30")
def test_rmsprop_under_a_constant_gradient():
    # r = (1 − ρᵗ) g²: the steps start large and approach η, whatever the size of g
    g, rho = np.array([100.0, -0.01]), 0.8
    path = run(RMSProp(0.1, rho=rho, delta=0.0), lambda theta: g, np.zeros(2), 60)
    t = np.arange(1, 61)[:, None]
    np.testing.assert_allclose(np.diff(path, axis=0), -0.1 * np.sign(g) / np.sqrt(1 - rho**t))


@pytest.mark.row("L2-04")
def test_reported_diagonal_divides_the_step(rng):
    # θ' − θ = −η G⁻¹ g, whatever the gradients were: G is read off the step itself
    for opt in (AdaGrad(0.3, delta=0.1), RMSProp(0.3, delta=0.1)):
        theta, state = np.zeros(4), opt.init(np.zeros(4))
        for _ in range(5):
            g = rng.normal(size=4)
            new, state = opt.step(theta, state, lambda theta, g=g: g)
            np.testing.assert_allclose(opt.diagonal(state), -0.3 * g / (new - theta), rtol=1e-12)
            theta = new


@pytest.mark.row("L2-04")
def test_lagged_diagonal_divides_by_zero_at_first_step():
    opt, theta = AdaGrad(1.0, delta=0.0), np.array([1.0])
    state = opt.init(theta)
    with np.errstate(divide="ignore"):
        assert np.isinf(1.0 / np.sqrt(state.r)).all()  # G of t − 1 = 0, as L2 prints it
    with pytest.raises(ValueError, match="got t = 0"):
        opt.diagonal(state)
    # the form in use, with the newest gradient in it: a first step of η, for every size of g
    for g in (1e-3, 7.0):
        [_, first] = run(opt, constant(g), theta, 1)
        assert first[0] == pytest.approx(0.0, abs=1e-12)


@pytest.mark.row("L2-04")
def test_l2_counts_the_share_of_the_new_gradient():
    gamma, eta, objective = 0.2, 0.02, bowl()
    theta, ema = objective.start, np.zeros(5)
    expected = [theta]
    for _ in range(100):
        g = objective.gradient(theta)
        ema = gamma * g**2 + (1 - gamma) * ema
        theta = theta - eta / np.sqrt(ema) * g
        expected.append(theta)
    path = run(RMSProp.from_l2(eta, gamma, delta=0.0), objective, objective.start, 100)
    np.testing.assert_allclose(path, expected, atol=1e-12)


@pytest.mark.row("L2-04")
def test_diagonal_tracks_hessian_around_axis_aligned_minimum():
    # with θ drawn around the minimum, √E[g²] of a diagonal bowl is λ times the spread of θ
    rng = np.random.default_rng(0)
    curvature = np.array([0.1, 1.0, 10.0])
    opt, theta = RMSProp(1e-9, rho=0.999, delta=0.0), np.zeros(3)
    state = opt.init(theta)
    for noise in rng.normal(size=(4000, 3)):
        _, state = opt.step(theta, state, lambda theta, z=noise: curvature * z)
    np.testing.assert_allclose(opt.diagonal(state) / curvature, 1.0, rtol=0.1)


# --- AdaDelta and Adam: L2-05, L2-06 ----------------------------------------------------------


@pytest.mark.row("L2-05")
def test_l2_adadelta_matches_the_printed_update():
    gamma, delta, objective = 0.1, 1e-4, bowl()
    theta, G2, D2 = objective.start, np.zeros(5), np.zeros(5)
    expected = [theta]
    for _ in range(100):
        g = objective.gradient(theta)
        G2 = gamma * g**2 + (1 - gamma) * G2
        change = -np.diag(np.sqrt(D2 + delta)) @ np.linalg.inv(np.diag(np.sqrt(G2 + delta))) @ g
        D2 = gamma * change**2 + (1 - gamma) * D2
        theta = theta + change
        expected.append(theta)
    path = run(AdaDelta.from_l2(1.0, gamma, delta), objective, objective.start, 100)
    np.testing.assert_allclose(path, expected, atol=1e-12)


@pytest.mark.row("L2-05")
def test_adadelta_is_invariant_to_loss_units():
    # without δ to speak of, a loss 1000 times as large gives the same path
    small = run(AdaDelta(1.0, delta=1e-20), constant(1.0), np.zeros(1), 50)
    large = run(AdaDelta(1.0, delta=1e-20), constant(1000.0), np.zeros(1), 50)
    np.testing.assert_allclose(small, large, rtol=1e-9)


@pytest.mark.row("L2-06")
def test_adam_constant_gradient_steps_equal_the_rate():
    # both hats undo the bias exactly: m̂ = g, r̂ = g²
    g = np.array([1000.0, -1e-3])
    path = run(Adam(0.1, delta=0.0), lambda theta: g, np.zeros(2), 50)
    np.testing.assert_allclose(
        np.diff(path, axis=0), np.tile(-0.1 * np.sign(g), (50, 1)), rtol=1e-9
    )


@pytest.mark.row("L2-06")
def test_l2s_adam_with_beta_on_the_new_gradient():
    beta1, beta2, eta, objective = 0.1, 0.05, 0.05, bowl()
    theta, m, r = objective.start, np.zeros(5), np.zeros(5)
    expected = [theta]
    for t in range(1, 101):
        g = objective.gradient(theta)
        m = beta1 * g + (1 - beta1) * m
        r = beta2 * g**2 + (1 - beta2) * r
        m_hat, r_hat = m / (1 - (1 - beta1) ** t), r / (1 - (1 - beta2) ** t)
        theta = theta - eta * m_hat / np.sqrt(r_hat)
        expected.append(theta)
    path = run(Adam.from_l2(eta, beta1, beta2, delta=0.0), objective, objective.start, 100)
    np.testing.assert_allclose(path, expected, atol=1e-12)


# --- Newton's method: L1-32, L2-07, L2-08 -----------------------------------------------------


@pytest.mark.row("L1-32")
def test_newton_reaches_quadratic_minimum_in_one_step(rng):
    H, b = bowl().hessian(np.zeros(5)), rng.normal(size=5)
    [_, first] = run(
        Newton(hessian=lambda theta: H), lambda theta: H @ theta - b, rng.normal(size=5), 1
    )
    # oracle: Cholesky, another factorization than the one of solve
    np.testing.assert_allclose(
        first, scipy.linalg.cho_solve(scipy.linalg.cho_factor(H), b), atol=1e-13
    )


@pytest.mark.row("L1-32")
def test_newton_never_forms_the_inverse(monkeypatch):
    monkeypatch.setattr(np.linalg, "inv", None)
    monkeypatch.setattr(torch.linalg, "inv", None)
    [_, first] = run(Newton(hessian=bowl().hessian), bowl(), bowl().start, 1)
    np.testing.assert_allclose(first, bowl().minimum, atol=1e-13)
    # and loses no digits where an inverse would: solving leaves a residual of rounding size
    H = np.vander(np.linspace(1, 2, 8))
    H = H.T @ H
    [start, first] = run(Newton(hessian=lambda theta: H), lambda theta: H @ theta, np.ones(8), 1)
    residual = np.linalg.norm(H @ (start - first) - H @ start) / np.linalg.norm(H @ start)
    assert np.linalg.cond(H) > 1e10
    assert residual < 1e-13


@pytest.mark.row("L1-32", "F-17")
def test_newton_converges_quadratically_at_positive_definite_minimum():
    objective = problems.rosenbrock()
    path = run(Newton(hessian=objective.hessian), objective, np.array([1.1, 1.1]), 6)
    error = np.linalg.norm(path - 1, axis=1)
    # each error is about the square of the one before, and SciPy's own Newton agrees
    assert error[-1] < 1e-12
    assert error[4] < 10 * error[3] ** 2
    assert error[5] < 10 * error[4] ** 2
    scipy_root = scipy.optimize.root(
        objective.gradient, np.array([1.1, 1.1]), jac=objective.hessian, tol=1e-12
    )
    np.testing.assert_allclose(path[-1], scipy_root.x, atol=1e-9)


@pytest.mark.row("L1-32")
def test_damping_turns_newton_away_from_saddle():
    saddle = problems.saddle()
    [_, first] = run(Newton(hessian=saddle.hessian), saddle, saddle.start, 1)
    np.testing.assert_allclose(first, 0, atol=1e-15)  # the saddle itself, from anywhere
    # μ = 2 > −λ_min: the factors are 1 − 1/(1 + 2) along x and 1 + 1/(−1 + 2) along y
    path = run(Newton(hessian=saddle.hessian, damping=2.0), saddle, saddle.start, 3)
    expected = [saddle.start * np.array([2 / 3, 2.0]) ** t for t in range(4)]
    np.testing.assert_allclose(path, expected, rtol=1e-13)
    assert saddle.value(path[-1]) < saddle.value(path[0])


@pytest.mark.row("L1-32")
def test_flat_direction_is_refused():
    for kind in (np.asarray, torch.tensor):
        H = kind([[1.0, 0.0], [0.0, 0.0]])
        opt = Newton(hessian=lambda theta, H=H: H)
        with pytest.raises(ValueError, match=r"singular.*damping > 0"):
            run(opt, lambda theta: theta, kind([1.0, 1.0]), 1)
    # the Hessian of the caller is not changed by damping
    H = np.diag([1.0, 0.0])
    run(Newton(hessian=lambda theta: H, damping=0.5), lambda theta: theta, np.ones(2), 2)
    np.testing.assert_array_equal(H, np.diag([1.0, 0.0]))


@pytest.mark.row("L2-07")
@pytest.mark.parametrize("eta", [0.1, 0.5, 1.0, 1.5])
def test_newton_with_a_rate_shrinks_every_direction_alike(eta):
    # L = θ·Aθ has the gradient 2Aθ and the Hessian 2A: θ(t) = (1 − η)ᵗ θ(0)
    A = np.diag([0.01, 1.0, 300.0])
    start = np.array([1.0, -2.0, 3.0])
    opt = Newton(hessian=lambda theta: 2 * A, lr=eta)
    path = run(opt, lambda theta: 2 * A @ theta, start, 20)
    expected = [(1 - eta) ** t * start for t in range(21)]
    np.testing.assert_allclose(path, expected, rtol=1e-10, atol=1e-15)
    # gradient descent does not: its best step leaves almost all of the flat direction
    descent = run(SGD(1 / (2 * 300.0)), lambda theta: 2 * A @ theta, start, 20)
    assert descent[-1, 0] > 0.99


@pytest.mark.row("L2-07")
@pytest.mark.parametrize("name", ["beale", "rosenbrock", "mixture"])
def test_newton_is_invariant_under_linear_maps(name, rng):
    objective = getattr(problems, name)()
    P = rng.normal(size=(2, 2)) + 2 * np.eye(2)
    inner = change_of_variable(objective, P)
    theta = run(Newton(hessian=objective.hessian, lr=0.5), objective, objective.start, 4)
    z = run(Newton(hessian=inner.hessian, lr=0.5), inner, inner.start, 4)
    np.testing.assert_allclose(z @ P.T, theta, rtol=1e-9, atol=1e-12)
    # gradient descent does
    theta = run(SGD(1e-4), objective, objective.start, 4)
    z = run(SGD(1e-4), inner, inner.start, 4)
    assert np.abs(z @ P.T - theta).max() > 1e-5


@pytest.mark.row("L2-08")
def test_scaling_exponent_is_three_newton_one_gradient():
    sizes = np.geomspace(100, 10_000, 9)
    # additions and multiplications of an elimination with one right-hand side
    solve = 2 / 3 * sizes**3 + 3 / 2 * sizes**2 - 7 / 6 * sizes
    assert scaling_exponent(sizes, solve) == pytest.approx(3, abs=0.01)
    assert scaling_exponent(sizes, [2.0 * n for n in sizes]) == pytest.approx(1, abs=1e-12)
    with pytest.raises(ValueError, match="two points or more"):
        scaling_exponent([10], [1.0])


@pytest.mark.row("L2-08")
def test_measured_seconds_is_the_shortest_of_some_calls(monkeypatch):
    ticks = iter([0.0, 3.0, 10.0, 11.0, 20.0, 22.0])
    monkeypatch.setattr("time.perf_counter", lambda: next(ticks))
    calls = []
    assert measured_seconds(lambda: calls.append(1), repeats=3) == 1.0
    assert len(calls) == 3


# --- momentum on a quadratic: F-01 ------------------------------------------------------------

GRID = [(lr, alpha) for lr in (0.05, 0.3, 0.9, 1.7, 3.1) for alpha in (0.0, 0.1, 0.5, 0.9, 0.99)]


@pytest.mark.row("F-01")
@pytest.mark.parametrize(("lr", "alpha"), GRID)
def test_momentum_eigenvalues_match_iteration_matrix(lr, alpha):
    # oracle: LAPACK on the matrix written out, and its determinant and trace
    for lam in (0.01, 0.5, 1.0, 2.0):
        M = np.array([[1 - lr * lam, alpha], [-lr * lam, alpha]])
        np.testing.assert_array_equal(momentum_matrix(lr, alpha, lam), M)
        z = momentum_eigenvalues(lr, alpha, lam)
        np.testing.assert_allclose(np.poly(z), np.poly(np.linalg.eigvals(M)), atol=1e-12)
        assert np.prod(z).real == pytest.approx(alpha, abs=1e-14)
        assert np.sum(z).real == pytest.approx(1 + alpha - lr * lam, abs=1e-14)
        assert np.abs(z[0]) >= np.abs(z[1]) * (1 - 1e-12)


@pytest.mark.row("F-01")
def test_momentum_coefficients_match_runs_along_eigenvectors(rng):
    # oracle: the optimizer itself, on a quadratic whose eigenvectors are no axes
    objective = bowl()
    eigenvalues, U = np.linalg.eigh(objective.hessian(objective.start))
    path = run(Momentum(0.2, 0.7), objective, objective.start, 60)
    measured = (path - objective.minimum) @ U
    for i, lam in enumerate(eigenvalues):
        predicted = momentum_coefficients(0.2, 0.7, float(lam), 60)
        np.testing.assert_allclose(measured[:, i], measured[0, i] * predicted, atol=1e-13)


@pytest.mark.row("F-01")
@pytest.mark.parametrize("alpha", [0.04, 0.25, 0.81])
def test_momentum_has_three_regimes(alpha):
    root = math.sqrt(alpha)
    low, high = (1 - root) ** 2, (1 + root) ** 2
    z = {x: momentum_eigenvalues(x / 4, alpha, 4.0) for x in (0.9 * low, (low + high) / 2, high)}
    real, complex_z, critical = z.values()
    assert real.imag.tolist() == [0, 0]
    assert abs(real[0]) > root
    assert complex_z[0].imag > 0.1
    np.testing.assert_allclose(np.abs(complex_z), root, rtol=1e-12)
    np.testing.assert_allclose(critical, -root, atol=1e-7)  # a double root is ill-conditioned
    # real: the coefficient approaches 0 from one side; complex: it oscillates with modulus √α
    assert (momentum_coefficients(0.9 * low, alpha, 1.0, 40) > 0).all()
    complex_ = momentum_coefficients((low + high) / 2, alpha, 1.0, 40)
    assert (complex_ > 0).any()
    assert (complex_ < 0).any()
    # critical: c_k = (1 + slope · k) √αᵏ, with the slope that c₀ = 1 and c₁ = 1 − ηλ ask for
    k = np.arange(41)
    slope = (1 - low) / root - 1
    np.testing.assert_allclose(
        momentum_coefficients(low, alpha, 1.0, 40), (1 + slope * k) * root**k, atol=1e-13
    )


@pytest.mark.row("F-01")
def test_momentum_converges_exactly_below_twice_one_plus_alpha():
    for alpha in (0.0, 0.5, 0.9):
        bound = 2 * (1 + alpha)
        assert momentum_rate(0.999 * bound, alpha, np.array([1.0])) < 1
        assert momentum_rate(1.001 * bound, alpha, np.array([1.0])) > 1


@pytest.mark.row("F-01")
@pytest.mark.parametrize(("lr", "alpha"), [(0.1, 0.3), (0.3, 0.8), (0.45, 0.8)])
def test_momentum_rate_matches_measurement(lr, alpha):
    # oracle: the largest error in two windows, far apart
    objective = bowl()
    eigenvalues = np.linalg.eigvalsh(objective.hessian(objective.start))
    error = np.linalg.norm(
        run(Momentum(lr, alpha), objective, objective.start, 160) - objective.minimum, axis=1
    )
    measured = (error[140:161].max() / error[60:81].max()) ** (1 / 80)
    assert measured == pytest.approx(momentum_rate(lr, alpha, eigenvalues), rel=0.01)


@pytest.mark.row("F-01")
@pytest.mark.parametrize(("smallest", "largest"), [(1.0, 9.0), (0.3, 4.0), (0.01, 5.0)])
def test_optimal_momentum_beats_grid_search(smallest, largest):
    # oracle: a search over (η, α), with eigenvalues from LAPACK
    best = optimal_momentum(smallest, largest)

    def radius(point):
        lr, alpha = point
        ends = [np.array([[1 - lr * e, alpha], [-lr * e, alpha]]) for e in (smallest, largest)]
        return max(np.abs(np.linalg.eigvals(M)).max() for M in ends)

    assert radius(best[:2]) == pytest.approx(
        best.rate, abs=1e-6
    )  # a double root is ill-conditioned
    rates = np.linspace(0.2, 2.5, 47) * best.lr
    shares = np.linspace(0, 0.999, 60)
    assert min(radius((lr, alpha)) for lr in rates for alpha in shares) >= best.rate - 1e-6
    found = scipy.optimize.minimize(
        radius, [0.8 * best.lr, 0.9 * best.alpha], method="Nelder-Mead",
        options={"xatol": 1e-10, "fatol": 1e-12, "maxiter": 4000},
    )  # fmt: skip
    assert found.fun == pytest.approx(best.rate, abs=2e-3)
    kappa = largest / smallest
    assert best.rate == pytest.approx((kappa**0.5 - 1) / (kappa**0.5 + 1), rel=1e-12)
    assert best.lr == pytest.approx(4 / (smallest**0.5 + largest**0.5) ** 2, rel=1e-12)
    for end in (smallest, largest):  # both ends are critical: one root, of modulus √α*
        z = momentum_eigenvalues(best.lr, best.alpha, end)
        np.testing.assert_allclose(np.abs(z), best.rate, atol=1e-6)
        assert abs(z[0] - z[1]) < 1e-6


@pytest.mark.row("F-01", "L1-27")
@pytest.mark.parametrize(("smallest", "largest"), [(0.25, 4.0), (0.3, 4.0), (0.01, 5.0)])
def test_standard_nesterov_is_optimal_for_its_rate(smallest, largest):
    # oracle: the matrix of one step, read off the method itself, with eigenvalues from LAPACK
    lr, standard, rate = standard_nesterov(smallest, largest)

    def radius(alpha, lr=lr):
        moduli = []
        for e in np.linspace(smallest, largest, 30):
            opt, columns = Nesterov(lr, alpha), []
            for c, v in ((1.0, 0.0), (0.0, 1.0)):
                state = opt.init(np.zeros(1))._replace(v=np.array([v]))
                theta, state = opt.step(np.array([c]), state, lambda theta, e=e: e * theta)
                columns.append([theta[0], state.v[0]])
            moduli.append(np.abs(np.linalg.eigvals(np.transpose(columns))).max())
        return max(moduli)

    assert lr * largest == 1
    assert radius(standard) == pytest.approx(rate, abs=1e-6)  # a double root is ill-conditioned
    assert min(radius(alpha) for alpha in np.linspace(0, 0.999, 60)) >= rate - 1e-6
    # Lessard, Recht and Packard (2016): a larger learning rate is a little better still
    root = math.sqrt(3 * largest / smallest + 1)
    better = radius((root - 2) / (root + 2), 4 / (3 * largest + smallest))
    assert better == pytest.approx(1 - 2 / root, abs=1e-6)
    assert better < rate


@pytest.mark.row("F-01")
def test_momentum_steps_grow_like_root_kappa():
    kappas = [100.0, 1000.0, 10_000.0]
    descent, momentum = [], []
    for kappa in kappas:
        objective, best = problems.quadratic(np.diag([1.0, kappa])), optimal_momentum(1.0, kappa)
        momentum.append(steps_to_reduce(Momentum(best.lr, best.alpha), objective, 1e-6))
        descent.append(steps_to_reduce(SGD(2 / (1 + kappa)), objective, 1e-6))
        # oracle: k steps of gradient descent leave ((κ − 1)/(κ + 1))ᵏ of the error
        expected = math.log(1e-6) / math.log((kappa - 1) / (kappa + 1))
        assert descent[-1] == math.ceil(expected - 1e-9)
    assert scaling_exponent(kappas, descent) == pytest.approx(1, abs=0.01)
    assert scaling_exponent(kappas, momentum) == pytest.approx(0.5, abs=0.05)
    assert momentum[-1] < descent[-1] / 50


# --- what adaptive methods divide by: F-03 ----------------------------------------------------


@pytest.mark.row("F-03")
@pytest.mark.parametrize("name", ["valley", "beale", "rosenbrock", "mixture", "saddle"])
def test_rotated_problem_matches_complex_rotation(name, rng):
    # oracle: complex multiplication turns a point of the plane
    problem = problems.valley(0.2) if name == "valley" else getattr(problems, name)()
    turn = np.exp(1j * math.radians(35))

    def turned(w):
        z = complex(*w) * turn
        return np.array([z.real, z.imag])

    other, point = problems.rotated(problem, 35), rng.normal(size=2)
    assert other.value(turned(point)) == pytest.approx(problem.value(point), rel=1e-12)
    np.testing.assert_allclose(
        other.gradient(turned(point)), turned(problem.gradient(point)), rtol=1e-9, atol=1e-12
    )
    slopes = [
        (other.gradient(turned(point) + h) - other.gradient(turned(point) - h)) / 2e-6
        for h in 1e-6 * np.eye(2)
    ]
    np.testing.assert_allclose(other.hessian(turned(point)), slopes, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(other.start, turned(problem.start), rtol=1e-13)
    points = rng.normal(size=(3, 2))
    each = [other.gradient(w) for w in points]
    np.testing.assert_allclose(other.gradients(points), each, rtol=1e-10, atol=1e-12)
    if problem.minimum is None:
        assert other.minimum is None
    else:
        np.testing.assert_allclose(other.minimum, turned(problem.minimum), atol=1e-12)


@pytest.mark.row("F-03")
def test_rotation_requires_two_dimensions():
    with pytest.raises(ValueError, match=r"of the plane; its start has \(5,\)"):
        problems.rotated(bowl(), 30.0)


@pytest.mark.row("F-03")
@pytest.mark.parametrize("label", ["SGD", "Momentum", "Nesterov"])
def test_single_rate_methods_are_rotation_invariant(label):
    valley = problems.quadratic(np.diag([1.0, 100.0]))
    opt = dataclasses.replace(EVERY[label], lr=0.01)
    path = run(opt, valley, valley.start, 200)
    other = problems.rotated(valley, 45)
    turned = run(opt, other, other.start, 200)
    np.testing.assert_allclose(
        [other.value(w) for w in turned], [valley.value(w) for w in path], rtol=1e-9
    )


@pytest.mark.row("F-03")
@pytest.mark.parametrize("opt", [Adam(0.1), AdaGrad(1.0)], ids=["Adam", "AdaGrad"])
def test_rotation_slows_adaptive_methods(opt):
    valley = problems.quadratic(np.diag([1.0, 100.0]))
    loss = []
    for degrees in (0, 45):
        problem = problems.rotated(valley, degrees)
        loss.append(problem.value(run(opt, problem, problem.start, 300)[-1]))
    assert loss[1] > 1e5 * loss[0]


@pytest.mark.row("F-03")
def test_g_measures_gradients_and_not_curvature():
    # curvatures 1 and 100, from a start where the flat direction has the larger gradients
    valley = problems.quadratic(np.diag([1.0, 100.0]))
    opt, theta = AdaGrad(1.0), np.array([100.0, 1.0])
    state = opt.init(theta)
    for _ in range(300):
        theta, state = opt.step(theta, state, valley.gradient)
    G = opt.diagonal(state)
    assert G[0] > 5 * G[1]
    assert np.diag(valley.hessian(theta)).tolist() == [1, 100]


@pytest.mark.row("F-03")
@pytest.mark.parametrize("batch", [1, 2, 3, 5])
def test_adaptive_diagonal_matches_mean_over_minibatches(batch, rng):
    # oracle: every minibatch of the 5 examples
    gradients = rng.normal(size=(5, 3)) + 0.5
    squares = [
        gradients[list(rows)].mean(axis=0) ** 2 for rows in itertools.combinations(range(5), batch)
    ]
    expected = np.sqrt(np.mean(squares, axis=0))
    np.testing.assert_allclose(adaptive_diagonal(gradients, batch), expected, rtol=1e-13)
    if batch == 1:
        np.testing.assert_allclose(expected**2, fisher_diagonal(gradients), rtol=1e-13)


@pytest.mark.row("F-03")
def test_rmsprop_at_rest_approaches_the_adaptive_diagonal(rng):
    gradients = rng.normal(size=(20, 3)) * [0.1, 1.0, 10.0] + 0.3
    opt, theta = RMSProp(0.0, rho=0.9995, delta=0.0), np.zeros(3)
    grad = minibatch_gradient(lambda theta, rows: gradients[rows].mean(axis=0), 20, 4, rng)
    state = opt.init(theta)
    for _ in range(20_000):
        _, state = opt.step(theta, state, grad)
    np.testing.assert_allclose(opt.diagonal(state), adaptive_diagonal(gradients, 4), rtol=0.05)


@pytest.mark.row("F-03")
def test_three_diagonals_of_a_small_network():
    # oracle: autograd, one example after the other, and finite differences of the gradient
    torch.manual_seed(0)
    digits = load("digits")
    x = torch.from_numpy(digits.x_train[:30, 20:26].astype(np.float64))
    y = torch.from_numpy(digits.y_train[:30])
    net = torch.nn.Sequential(torch.nn.Linear(6, 4), torch.nn.Tanh(), torch.nn.Linear(4, 10))
    net = net.double()
    parameters = list(net.parameters())

    def gradient(x, y):
        loss = torch.nn.functional.cross_entropy(net(x), y)
        parts = torch.autograd.grad(loss, parameters)
        return torch.cat([part.reshape(-1) for part in parts]).numpy()

    each = np.array([gradient(x[i : i + 1], y[i : i + 1]) for i in range(30)])
    found = network_diagonals(net, x, y, batch=6)
    np.testing.assert_allclose(found.fisher, np.mean(each**2, axis=0), rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(found.adaptive, adaptive_diagonal(each, 6), rtol=1e-9, atol=1e-15)
    curvature = []
    for parameter in parameters:
        for j in range(parameter.numel()):
            entry = parameter.data.view(-1)
            kept, slope = entry[j].item(), []
            for h in (1e-5, -1e-5):
                entry[j] = kept + h
                slope.append(gradient(x, y)[len(curvature)])
            entry[j] = kept
            curvature.append((slope[0] - slope[1]) / 2e-5)
    np.testing.assert_allclose(found.hessian, curvature, rtol=1e-4, atol=1e-8)
    # they are three different things: neither is a multiple of another
    for a, b in itertools.combinations([found.adaptive**2, found.fisher, found.hessian], 2):
        ratio = (a[b > 1e-4]) / b[b > 1e-4]
        assert ratio.max() > 2 * ratio.min()
    assert (found.hessian < 0).any()
    assert (found.fisher >= 0).all()


@pytest.mark.row("F-03")
def test_batch_size_out_of_range_is_refused():
    with pytest.raises(ValueError, match="1 to m = 4 examples; got batch = 5"):
        adaptive_diagonal(np.ones((4, 2)), batch=5)


# --- weight decay, warm-up, cosine: F-05 ------------------------------------------------------


def torch_rates(scheduler, first, steps):
    """The rates of a scheduler of torch, one for each step."""
    optimizer = torch.optim.SGD([torch.zeros(1)], lr=first)
    scheduler, rates = scheduler(optimizer), []
    for _ in range(steps):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return rates


@pytest.mark.row("F-05")
@pytest.mark.parametrize("last", [0.0, 0.01])
def test_cosine_decay_matches_torch(last):
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR
    expected = torch_rates(lambda opt: scheduler(opt, T_max=40, eta_min=last), 0.5, 41)
    schedule = CosineDecay(0.5, tau=40, last=last)
    np.testing.assert_allclose([schedule(k) for k in range(41)], expected, atol=1e-15)
    assert schedule(1000) == last  # torch's rises again
    assert schedule(20) == pytest.approx((0.5 + last) / 2, rel=1e-14)


@pytest.mark.row("F-05")
@pytest.mark.filterwarnings("ignore:.*epoch parameter")
def test_warmup_then_cosine_matches_torch():
    def scheduler(optimizer):
        of = torch.optim.lr_scheduler
        rise = of.LinearLR(optimizer, start_factor=1 / 5, total_iters=4)
        fall = of.CosineAnnealingLR(optimizer, T_max=20, eta_min=0.001)
        return of.SequentialLR(optimizer, [rise, fall], milestones=[5])

    schedule = Warmup(CosineDecay(0.1, tau=20, last=0.001), steps=5)
    rates = [schedule(k) for k in range(26)]
    np.testing.assert_allclose(rates, torch_rates(scheduler, 0.1, 26), atol=1e-15)
    np.testing.assert_allclose(rates[:6], [0.02, 0.04, 0.06, 0.08, 0.1, 0.1], rtol=1e-14)
    assert [Warmup(0.4, steps=2)(k) for k in range(4)] == [0.2, 0.4, 0.4, 0.4]


@pytest.mark.row("F-05")
@pytest.mark.parametrize("name", ["SGD", "Adam"])
def test_l2_penalty_matches_torch_weight_decay(name):
    objective = bowl()
    expected = torch_path(
        name, {"lr": 0.05, "weight_decay": 0.3}, objective.gradient, objective.start, 60
    )
    opt = getattr(optimizers, name)(0.05)
    path = run(opt, with_l2_penalty(objective.gradient, 0.3), objective.start, 60)
    np.testing.assert_allclose(path, expected, rtol=0, atol=1e-12)


@pytest.mark.row("F-05")
def test_penalty_equals_decay_for_sgd_not_adam():
    lr, decay, objective = 0.05, 0.3, bowl()
    # SGD: θ(1 − ηω) − ηg, step by step
    path = run(SGD(lr), with_l2_penalty(objective.gradient, decay), objective.start, 40)
    for before, after in itertools.pairwise(path):
        expected = (1 - lr * decay) * before - lr * objective.gradient(before)
        np.testing.assert_allclose(after, expected, atol=1e-14)
    # Adam: gradients of zero mean and sizes 1 and 100; the penalty hardly shrinks the second
    # parameter, decay shrinks both by (1 − ηω)ᵗ besides the same steps
    signs = [1.0, -1.0] * 1000
    sizes = np.array([1.0, 100.0])

    def end(opt, penalty):
        remaining = iter(signs)
        noise = lambda theta: next(remaining) * sizes  # noqa: E731
        return run(opt, with_l2_penalty(noise, penalty), np.full(2, 1.0), len(signs))[-1]

    penalty, decoupled = end(Adam(1e-2), 0.05), end(AdamW(1e-2, decay=0.05), 0.0)
    still = end(Adam(1e-2), 0.0)
    np.testing.assert_allclose(decoupled[0], decoupled[1], rtol=1e-6)
    assert decoupled[0] < 0.5 * still[0]
    assert penalty[0] < 0.6 * still[0]
    assert penalty[1] > 0.95 * still[1]


# --- Lion: F-18 -------------------------------------------------------------------------------


@pytest.mark.row("F-18")
def test_lion_matches_its_pseudo_code():
    # oracle: the program of Chen et al., number by number, with the standard library
    grads = np.random.default_rng(4).normal(size=(40, 3)) * [0.01, 1.0, 100.0]
    theta, m = [1.0, -2.0, 3.0], [0.0] * 3
    expected = [list(theta)]
    for g in grads:
        for i in range(3):
            interpolated = 0.8 * m[i] + 0.2 * g[i]
            theta[i] -= 0.1 * (math.copysign(1, interpolated) + 0.3 * theta[i])
            m[i] = 0.95 * m[i] + 0.05 * g[i]
        expected.append(list(theta))
    opt, remaining = Lion(0.1, beta1=0.8, beta2=0.95, decay=0.3), iter(grads)
    path = run(opt, lambda theta: next(remaining), np.array(expected[0]), 40)
    np.testing.assert_allclose(path, expected, rtol=0, atol=1e-14)


@pytest.mark.row("F-18", "L2-06")
def test_lion_and_adam_without_memory_agree():
    objective = bowl()
    lion = run(Lion(0.03, beta1=0.0, beta2=0.0), objective, objective.start, 50)
    adam = run(Adam(0.03, beta1=0.0, beta2=0.0, delta=0.0), objective, objective.start, 50)
    np.testing.assert_allclose(lion, adam, rtol=0, atol=1e-14)
    with_memory = run(Lion(0.03), objective, objective.start, 50)
    assert np.abs(with_memory - lion).max() > 0.1


# --- Muon and Shampoo: F-13 -------------------------------------------------------------------


def polar(G):
    """The polar factor by the singular value decomposition."""
    U, _, Vt = np.linalg.svd(G, full_matrices=False)
    return U @ Vt


def muon_path(start, gradients, **settings):
    """The iterates of torch.optim.Muon without weight decay."""
    theta = torch.tensor(start, requires_grad=True)
    optimizer = torch.optim.Muon([theta], weight_decay=0.0, **settings)
    path = [start]
    for g in gradients:
        theta.grad = torch.tensor(g)
        optimizer.step()
        path.append(theta.detach().numpy().copy())
    return np.array(path)


@pytest.mark.row("F-13")
@pytest.mark.parametrize("shape", [(3, 5), (4, 4), (6, 2), (1, 3)])
@pytest.mark.parametrize("nesterov", [True, False])
def test_muon_matches_torch(shape, nesterov, monkeypatch, rng):
    start, gradients = rng.normal(size=shape), rng.normal(size=(50, *shape))
    opt, remaining = Muon(0.05, alpha=0.9, nesterov=nesterov), iter(gradients)
    path = np.array(run(opt, lambda theta: next(remaining), start, 50))
    settings = {"lr": 0.05, "momentum": 0.9, "nesterov": nesterov}
    # torch orthogonalizes in bfloat16, of 8 bits
    np.testing.assert_allclose(path, muon_path(start, gradients, **settings), rtol=0, atol=0.15)
    monkeypatch.setattr(torch.Tensor, "bfloat16", torch.Tensor.clone)
    exact = muon_path(start, gradients, **settings)
    np.testing.assert_allclose(path, exact, rtol=0, atol=1e-13)


@pytest.mark.row("F-13")
def test_muon_steps_vectors_by_plain_momentum(rng):
    theta = {"weight": rng.normal(size=(3, 2)), "bias": rng.normal(size=3)}
    gradients = [{k: rng.normal(size=v.shape) for k, v in theta.items()} for _ in range(20)]
    remaining = iter(gradients)
    last = run(Muon(0.1), lambda theta: next(remaining), theta, 20)[-1]
    bias = torch.tensor(theta["bias"])
    optimizer = torch.optim.SGD([bias], lr=0.1, momentum=0.95, nesterov=True)
    for g in gradients:
        bias.grad = torch.tensor(g["bias"])
        optimizer.step()
    np.testing.assert_allclose(last["bias"], bias, rtol=0, atol=1e-13)
    # while the matrix goes about as far along each of its singular directions
    [_, first] = run(Muon(0.1), lambda theta: gradients[0], theta, 1)
    moved = (first["weight"] - theta["weight"]) / 0.1 / math.sqrt(3 / 2)
    lengths = np.linalg.svd(moved)[1]
    assert lengths.min() > 0.68
    assert lengths.max() < 1.21


@pytest.mark.row("F-13")
@pytest.mark.parametrize("kind", [np.array, torch.tensor], ids=["numpy", "torch"])
@pytest.mark.parametrize("shape", [(3, 5), (4, 4), (6, 2)])
def test_newton_schulz_maps_singular_values_by_its_polynomial(shape, kind, rng):
    # oracle: the singular value decomposition, and the polynomial on numbers
    G = rng.normal(size=shape)
    U, values, Vt = np.linalg.svd(G, full_matrices=False)
    values = values / np.sqrt(np.sum(values**2))
    for steps in (1, 2, 5, 8):
        powers = values
        for _ in range(steps):
            powers = np.polyval([2.0315, 0, -4.775, 0, 3.4445, 0], powers)
        found = np.asarray(newton_schulz(kind(G), steps))
        np.testing.assert_allclose(found, (U * powers) @ Vt, rtol=0, atol=1e-12)
    np.testing.assert_allclose(newton_schulz(kind(1e9 * G)), newton_schulz(kind(G)), atol=1e-12)
    np.testing.assert_array_equal(newton_schulz(kind(0 * G)), 0)


@pytest.mark.row("F-13")
def test_five_newton_schulz_steps_bound_singular_values():
    values = np.geomspace(0.002, 1, 10_001)
    for _ in range(5):
        values = np.polyval([2.0315, 0, -4.775, 0, 3.4445, 0], values)
    assert 0.68 < values.min() < 0.69
    assert 1.2 < values.max() < 1.21


@pytest.mark.row("F-13")
@pytest.mark.parametrize("shape", [(3, 5), (4, 4), (6, 2)])
def test_shampoo_without_accumulation_is_the_polar_factor(shape, rng):
    G = rng.normal(size=shape)
    np.testing.assert_allclose(shampoo_direction(G), polar(G), rtol=0, atol=1e-10)
    # oracle: powers of a positive definite matrix by SciPy, where both are
    if shape == (4, 4):
        power = scipy.linalg.fractional_matrix_power
        expected = power(G @ G.T, -0.25) @ G @ power(G.T @ G, -0.25)
        np.testing.assert_allclose(shampoo_direction(G), expected, rtol=0, atol=1e-10)
    # a matrix of rank 1 has one direction
    u, v = G[:, 0], G[0]
    expected = np.outer(u, v) / np.linalg.norm(u) / np.linalg.norm(v)
    np.testing.assert_allclose(shampoo_direction(np.outer(u, v)), expected, rtol=0, atol=1e-10)
    np.testing.assert_array_equal(shampoo_direction(0 * G), 0)


@pytest.mark.row("F-13", "P-07")
def test_polar_factor_is_steepest_in_spectral_norm(rng):
    # of all D with ‖D‖₂ ≤ 1 it has the largest ⟨G, D⟩, which is the sum of the singular values
    G = rng.normal(size=(3, 5))
    best = np.sum(G * shampoo_direction(G))
    assert best == pytest.approx(np.linalg.norm(G, "nuc"), rel=1e-10)
    others = rng.normal(size=(300, 3, 5))
    others /= np.linalg.norm(others, 2, axis=(1, 2))[:, None, None]
    assert np.max(np.sum(G * others, axis=(1, 2))) < best


# --- averages of the iterates: F-15 -----------------------------------------------------------


@pytest.mark.row("F-15")
def test_iterate_average_is_the_running_mean(rng):
    path = rng.normal(size=(30, 2, 3))
    expected = [path[: k + 1].mean(axis=0) for k in range(30)]
    np.testing.assert_allclose(average_of_iterates(path), expected, rtol=0, atol=1e-14)
    np.testing.assert_allclose(average_of_iterates(path[:, 0, 0]), np.array(expected)[:, 0, 0])


@pytest.mark.row("F-15")
def test_exponential_average_matches_torch(rng):
    path = rng.normal(size=(30, 4))
    module = torch.nn.ParameterList([torch.tensor(path[0])])
    averaged = torch.optim.swa_utils.AveragedModel(
        module, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.9)
    )
    expected = []
    for theta in path:
        module[0].data = torch.tensor(theta)
        averaged.update_parameters(module)
        expected.append(averaged.module[0].detach().numpy().copy())
    before = path.copy()
    np.testing.assert_allclose(exponential_average(path, 0.9), expected, rtol=0, atol=1e-14)
    np.testing.assert_array_equal(path, before)
    np.testing.assert_array_equal(exponential_average(path, 0.0), path)
    with pytest.raises(ValueError, match=r"decay must lie in \[0, 1\), got 1.0"):
        exponential_average(path, 1.0)


@pytest.mark.row("F-15")
@pytest.mark.parametrize(("lr", "curvature"), [(0.1, 1.0), (0.3, 2.0), (1.5, 1.0), (0.5, 2.0)])
def test_averaged_variance_matches_covariance_recursion(lr, curvature):
    # oracle: the covariance of (θ_k, θ₁ + … + θ_k), step by step, from the stationary law of θ,
    # whose variance solves s² = (1 − ηλ)² s² + η²σ²
    sigma, a = 1.5, 1 - lr * curvature
    M, push = np.array([[a, 0.0], [a, 1.0]]), lr * sigma * np.ones((2, 1))
    C = np.zeros((2, 2))
    C[0, 0] = scipy.linalg.solve_discrete_lyapunov(np.array([[a]]), push[:1] @ push[:1].T).item()
    for steps in range(1, 200):
        C = M @ C @ M.T + push @ push.T
        expected = C[1, 1] / steps**2
        assert averaged_variance(lr, curvature, sigma, steps) == pytest.approx(expected, rel=1e-10)
    floor = noise_floor(lr, curvature, sigma)
    assert averaged_variance(lr, curvature, sigma, 1) == pytest.approx(floor, rel=1e-12)


@pytest.mark.row("F-15")
def test_averaged_sgd_iterates_have_predicted_variance(rng):
    # the runs are independent, and their averages scatter as the closed form says
    lr, curvature, sigma, steps = 0.2, 1.0, 1.0, 100
    noise = iter(sigma * rng.normal(size=(50 + steps, 4000)))
    path = run(SGD(lr), lambda theta: curvature * theta + next(noise), np.zeros(4000), 50 + steps)[
        51:
    ]
    measured = np.var(average_of_iterates(path)[-1])
    assert measured == pytest.approx(averaged_variance(lr, curvature, sigma, steps), rel=0.1)
    # a tenth of the noise floor and less, and the same in the limit whatever the rate
    assert measured < noise_floor(lr, curvature, sigma) / 10
    limits = [averaged_variance(lr, 2.0, 3.0, 10**7) * 10**7 for lr in (0.01, 0.1, 0.9)]
    np.testing.assert_allclose(limits, 3.0**2 / 2.0**2, rtol=1e-4)


# --- preconditioning: P-07 --------------------------------------------------------------------


@pytest.mark.row("P-07")
@pytest.mark.parametrize("name", ["quadratic", "beale", "mixture"])
def test_descent_in_z_and_the_preconditioned_descent_agree(name, rng):
    # equation 7 against equation 8
    objective = bowl() if name == "quadratic" else getattr(problems, name)()
    n = len(objective.start)
    P = np.eye(n) + 0.3 * rng.normal(size=(n, n))
    inner = change_of_variable(objective, P)
    z = run(SGD(1e-3), inner, inner.start, 50)
    theta = preconditioned_descent(objective.gradient, P, objective.start, 1e-3, 50)
    np.testing.assert_allclose(z @ P.T, theta, atol=1e-12)
    assert np.linalg.norm(theta[-1] - theta[0]) > 1e-3


@pytest.mark.row("P-07")
def test_derivatives_in_z_match_autograd(rng):
    def loss(theta):
        return torch.exp(theta[0] * theta[1]) + torch.sin(theta[2]) * theta[0] + theta[1] ** 2

    tensor = torch.from_numpy
    problem = problems.Problem(
        "test function",
        lambda w: float(loss(tensor(w))),
        lambda w: torch.func.grad(loss)(tensor(w)).numpy(),
        lambda w: torch.func.hessian(loss)(tensor(w)).numpy(),
        np.array([1.0, 2.0, 3.0]),
        rng.normal(size=3),
    )
    P, z = rng.normal(size=(3, 3)) + 2 * np.eye(3), rng.normal(size=3)
    inner = change_of_variable(problem, P)

    def in_z(z):
        return loss(tensor(P) @ z)

    assert inner.value(z) == pytest.approx(float(in_z(tensor(z))), rel=1e-14)
    np.testing.assert_allclose(inner.gradient(z), torch.func.grad(in_z)(tensor(z)), rtol=1e-11)
    np.testing.assert_allclose(inner.hessian(z), torch.func.hessian(in_z)(tensor(z)), rtol=1e-10)
    np.testing.assert_allclose(P @ inner.minimum, [1, 2, 3], rtol=1e-13)
    np.testing.assert_allclose(P @ inner.start, problem.start, rtol=1e-13)
    assert change_of_variable(problems.saddle(), np.eye(2)).minimum is None


@pytest.mark.row("P-07")
def test_condition_number_in_z_determines_the_rate():
    # oracle: the best rate (κ − 1)/(κ + 1), with κ from the singular values
    objective = bowl()
    H = objective.hessian(objective.start)
    L = np.linalg.cholesky(H)
    root = np.diag(1 / np.sqrt(np.diag(H)))
    rates = []
    for P in (np.eye(5), root, np.linalg.inv(L).T):
        inner = change_of_variable(objective, P).hessian(np.zeros(5))
        kappa = np.linalg.cond(inner)
        lr = 2 / (np.linalg.norm(inner, 2) + np.linalg.norm(inner, -2))
        path = preconditioned_descent(objective.gradient, P, objective.start, lr, 40)
        error = np.linalg.norm(np.linalg.solve(P, (path - objective.minimum).T), axis=0)
        predicted = (kappa - 1) / (kappa + 1)
        assert error[40] <= error[0] * predicted**40 * (1 + 1e-6) + 1e-12
        if predicted > 0.1:
            assert error[40] / error[39] == pytest.approx(predicted, rel=0.02)
        rates.append(predicted)
    assert rates[0] > rates[1] > rates[2]
    # PPᵀ = H⁻¹: Newton's method, and one step is enough
    assert rates[2] < 1e-12


# --- every optimizer on every problem: L2-09 --------------------------------------------------


def decay(first, factor):
    return ExponentialDecay(first, factor)


# method → problem → the tuned method and its number of steps
TABLE = {
    "SGD": {
        "quadratic": (SGD(0.3), 150),
        "valley": (SGD(0.3), 400),
        "mixture": (SGD(0.3), 30),
        "beale": (SGD(0.02), 1500),
        "rosenbrock": (SGD(0.0018), 12_000),
    },
    "Momentum": {
        "quadratic": (Momentum(0.3, 0.5), 100),
        "valley": (Momentum(0.3, 0.8), 150),
        "mixture": (Momentum(0.2, 0.5), 50),
        "beale": (Momentum(0.005, 0.95), 600),
        "rosenbrock": (Momentum(0.002, 0.95), 700),
    },
    "Nesterov": {
        "quadratic": (Nesterov(0.3, 0.5), 100),
        "valley": (Nesterov(0.3, 0.8), 150),
        "mixture": (Nesterov(0.3, 0.5), 50),
        "beale": (Nesterov(0.005, 0.9), 800),
        "rosenbrock": (Nesterov(0.001, 0.95), 1200),
    },
    "DeltaBarDelta": {
        "quadratic": (DeltaBarDelta(0.2, increase=0.04), 100),
        "valley": (DeltaBarDelta(0.3, increase=0.15), 100),
        "mixture": (DeltaBarDelta(0.2, increase=0.02), 50),
        "beale": (DeltaBarDelta(0.01, increase=0.005), 400),
        "rosenbrock": (DeltaBarDelta(0.001, increase=1e-4, decrease=0.7, rho=0.9), 8000),
    },
    "AdaGrad": {
        "quadratic": (AdaGrad(9.0), 50),
        "valley": (AdaGrad(9.0), 50),
        "mixture": (AdaGrad(0.6), 50),
        "beale": (AdaGrad(1.5), 1200),
        "rosenbrock": (AdaGrad(0.5), 12_000),
    },
    "RMSProp": {
        "quadratic": (RMSProp(decay(0.01, 0.995)), 1200),
        "valley": (RMSProp(decay(0.01, 0.995)), 800),
        "mixture": (RMSProp(decay(0.01, 0.995)), 1000),
        "beale": (RMSProp(decay(0.025, 0.995)), 1600),
        "rosenbrock": (RMSProp(decay(0.003, 0.9995)), 10_000),
    },
    "RMSPropNesterov": {
        "quadratic": (RMSPropNesterov(decay(0.001, 0.995), alpha=0.95), 1000),
        "valley": (RMSPropNesterov(decay(0.002, 0.995), alpha=0.9), 800),
        "mixture": (RMSPropNesterov(decay(0.001, 0.995), alpha=0.95), 800),
        "beale": (RMSPropNesterov(decay(0.002, 0.995), alpha=0.95), 1200),
        "rosenbrock": (RMSPropNesterov(decay(0.002, 0.995), alpha=0.95), 1500),
    },
    "AdaDelta": {
        "quadratic": (AdaDelta(60.0, rho=0.9, delta=1e-6), 50),
        "valley": (AdaDelta(1.5, rho=0.99, delta=1e-4), 300),
        "mixture": (AdaDelta(0.6, rho=0.99, delta=1e-4), 100),
        "beale": (AdaDelta(decay(0.1, 0.999), rho=0.9, delta=1e-3), 1500),
        "rosenbrock": (AdaDelta(decay(1.0, 0.9995), rho=0.99, delta=1e-5), 8000),
    },
    "Adam": {
        "quadratic": (Adam(decay(0.1, 0.99)), 800),
        "valley": (Adam(decay(0.05, 0.99)), 800),
        "mixture": (Adam(decay(0.05, 0.99)), 800),
        "beale": (Adam(0.1), 1000),
        "rosenbrock": (Adam(0.1), 3000),
    },
    "AdamW": {
        "quadratic": (AdamW(decay(0.1, 0.99), decay=1e-6), 800),
        "valley": (AdamW(decay(0.05, 0.99), decay=1e-6), 800),
        "mixture": (AdamW(decay(0.05, 0.99), decay=1e-6), 800),
        "beale": (AdamW(0.1, decay=1e-6), 1000),
        "rosenbrock": (AdamW(0.1, decay=1e-6), 3000),
    },
    "Lion": {
        "quadratic": (Lion(decay(0.1, 0.99)), 800),
        "valley": (Lion(decay(0.05, 0.99)), 800),
        "mixture": (Lion(decay(0.05, 0.99)), 800),
        "beale": (Lion(decay(0.01, 0.998)), 3000),
        "rosenbrock": (Lion(decay(0.01, 0.999)), 8000),
    },
    # on vectors it is the momentum of torch with its Nesterov variant
    "Muon": {
        "quadratic": (Muon(0.3, 0.5), 100),
        "valley": (Muon(0.3, 0.8), 150),
        "mixture": (Muon(0.3, 0.5), 50),
        "beale": (Muon(0.005, 0.9), 800),
        "rosenbrock": (Muon(0.001, 0.95), 1200),
    },
    "Newton": {
        "quadratic": (Newton(hessian=bowl().hessian), 1),
        "valley": (Newton(hessian=problems.valley(0.1).hessian), 1),
        "mixture": (Newton(hessian=problems.mixture().hessian, damping=3.0), 40),
        "beale": (Newton(hessian=problems.beale().hessian, damping=30.0), 1200),
        "rosenbrock": (Newton(hessian=problems.rosenbrock().hessian), 6),
    },
}
OBJECTIVES = {
    "quadratic": bowl,
    "valley": lambda: problems.valley(0.1),
    "mixture": problems.mixture,
    "beale": problems.beale,
    "rosenbrock": problems.rosenbrock,
}


def test_tables_cover_all_optimizers_and_problems():
    subclasses = {Optimizer}
    for _ in range(4):
        subclasses |= {sub for one in subclasses for sub in one.__subclasses__()}
    methods = {one.__name__ for one in subclasses if hasattr(one, "update")}
    public = {name for name in methods if hasattr(optimizers, name)}
    # Newton needs a Hessian, Muon is made for matrices: both have tests of their own, as has SGD
    every = {*EVERY, "Newton", "Muon"}
    by_hand = {type(opt).__name__ for opt, *_ in BY_HAND.values()} | {"SGD", "Newton", "Muon"}
    for name, found in {"TABLE": {*TABLE}, "EVERY": every, "BY_HAND": by_hand}.items():
        assert found == public, f"{name} of this module lacks {public - found}"
    assert all(set(row) == set(OBJECTIVES) for row in TABLE.values())
    constructors = {name for name in problems.__all__ if name.islower() and hasattr(problems, name)}
    # the saddle has no minimum, and a rotated problem is that of another one
    assert constructors == set(OBJECTIVES) | {"saddle", "rotated"}


@pytest.mark.row("L2-09")
@pytest.mark.parametrize("problem", OBJECTIVES)
@pytest.mark.parametrize("method", TABLE)
def test_optimizers_reach_known_minima(method, problem):
    opt, steps = TABLE[method][problem]
    objective = OBJECTIVES[problem]()
    assert type(opt).__name__ == method
    assert np.linalg.norm(objective.start - objective.minimum) > 0.3
    theta, state = objective.start, opt.init(objective.start)
    for _ in range(steps):
        theta, state = opt.step(theta, state, objective.gradient)
    assert np.linalg.norm(theta - objective.minimum) < 1e-3


@pytest.mark.row("L2-09")
@pytest.mark.parametrize("method", EVERY)
def test_first_order_methods_leave_the_saddle(method):
    saddle = problems.saddle()
    path = run(
        EVERY[method], saddle, saddle.start, 400, stop=lambda theta: saddle.value(theta) < -0.5
    )
    assert saddle.value(path[-1]) < -0.5


# --- what is refused --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SGD(-0.1), "lr must be 0 or more and finite, got -0.1: a negative rate goes"),
        (lambda: SGD(math.nan), "lr must be 0 or more and finite, got nan"),
        (lambda: Adam(math.inf), "lr must be 0 or more and finite, got inf"),
        (lambda: Momentum(0.1, alpha=1.0), r"alpha must lie in \[0, 1\), got 1.0: a velocity"),
        (lambda: Nesterov(0.1, alpha=-0.1), r"alpha must lie in \[0, 1\), got -0.1"),
        (lambda: RMSProp(0.1, rho=1.0), r"rho must lie in \[0, 1\), got 1.0: the newest"),
        (lambda: RMSPropNesterov(0.1, alpha=1.5), r"alpha must lie in \[0, 1\), got 1.5"),
        (lambda: RMSPropNesterov(0.1, rho=-1.0), r"rho must lie in \[0, 1\), got -1.0"),
        (lambda: AdaGrad(0.1, delta=-1e-9), "delta must be 0 or more and finite, got -1e-09"),
        (lambda: AdaDelta(rho=1.0), r"rho must lie in \[0, 1\), got 1.0"),
        (lambda: AdaDelta(delta=0.0), "delta must be positive, got 0: the first step"),
        (lambda: Adam(beta1=1.0), r"beta1 must lie in \[0, 1\), got 1.0"),
        (lambda: Adam(beta2=math.nan), r"beta2 must lie in \[0, 1\), got nan"),
        (lambda: Adam(delta=math.inf), "delta must be 0 or more and finite, got inf"),
        (lambda: DeltaBarDelta(0.1, decrease=1.0), r"decrease must lie in \[0, 1\), got 1.0"),
        (lambda: DeltaBarDelta(0.1, increase=-1.0), "increase must be 0 or more"),
        (lambda: DeltaBarDelta(LinearDecay(0.1, tau=3)), "lr must be a number, got a schedule"),
        (
            lambda: Newton(hessian=np.diag, damping=-1.0),
            "damping must be 0 or more and finite, got -1.0",
        ),
        (lambda: LinearDecay(0.1, tau=0), "tau must be 1 or more; got 0"),
        (lambda: LinearDecay(0.1, tau=5, last=-0.1), "last must be 0 or more"),
        (lambda: PowerDecay(0.1, power=-1.0), "power must be 0 or more and finite, got -1.0"),
        (lambda: ExponentialDecay(0.1, factor=1.0), r"factor must lie in \[0, 1\), got 1.0"),
        (lambda: noise_floor(2.0, 1.0, 1.0), "between 0 and 2, got 2: outside it SGD diverges"),
        (lambda: velocity(3, 0.1, 1.0, 1.0), r"alpha must lie in \[0, 1\), got 1.0"),
        (lambda: run(SGD(0.1), np.cos, np.zeros(1), -1), "must be 0 or more; got -1"),
        (lambda: measured_seconds(list, repeats=0), "repeats must be 1 or more; got 0"),
        (lambda: change_of_variable(problems.saddle(), np.ones((2, 2))), "must be invertible"),
        (lambda: change_of_variable(problems.saddle(), np.eye(3)), r"\(2, 2\) for 2 parameters"),
        (lambda: AdamW(decay=-0.1), "decay must be 0 or more and finite, got -0.1"),
        (lambda: AdamW(beta1=1.0), r"beta1 must lie in \[0, 1\)"),
        (lambda: AdamW(delta=-1.0), "delta must be 0 or more and finite, got -1.0"),
        (lambda: with_l2_penalty(np.cos, -1.0), "decay must be 0 or more and finite, got -1.0"),
        (lambda: CosineDecay(-0.1, tau=3), "first must be 0 or more"),
        (lambda: CosineDecay(0.1, tau=0), "tau must be 1 or more; got 0"),
        (lambda: CosineDecay(0.1, tau=3, last=-0.1), "last must be 0 or more"),
        (lambda: Warmup(0.1, steps=0), "steps must be 1 or more; got 0"),
        (lambda: Warmup(-0.1, steps=2), "schedule must be 0 or more"),
        (lambda: optimal_momentum(0.0, 1.0), "0 < smallest ≤ largest, got 0.0 and 1.0"),
        (lambda: optimal_momentum(2.0, 1.0), "0 < smallest ≤ largest"),
        (lambda: standard_nesterov(0.0, 1.0), "0 < smallest ≤ largest, got 0.0 and 1.0"),
        (lambda: momentum_matrix(0.1, 0.5, 0.0), "eigenvalue must be positive and finite, got 0.0"),
        (lambda: momentum_rate(0.1, 1.0, np.ones(1)), r"alpha must lie in \[0, 1\)"),
        (lambda: momentum_coefficients(0.1, 0.5, 1.0, 0), "steps must be 1 or more; got 0"),
        (lambda: steps_to_reduce(SGD(0.1), problems.saddle(), 0.1), "known minimum, got saddle"),
        (lambda: steps_to_reduce(SGD(0.1), problems.valley(1.0), 0.1, 5), "by the factor 0.1 in 5"),
    ],
)
def test_invalid_hyperparameters_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_negative_scheduled_rate_is_refused():
    opt = SGD(lambda k: 0.1 - 0.1 * k)
    with pytest.raises(ValueError, match=r"lr\(2\) must be 0 or more"):
        run(opt, lambda theta: theta, np.ones(1), 3)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("kind", [np.array, torch.tensor], ids=["numpy", "torch"])
def test_nonfinite_gradient_is_refused(kind, bad):
    for opt in EVERY.values():
        theta = kind([1.0, 1.0])
        with pytest.raises(ValueError, match="gradient of step 1 must be finite, got NaN or inf"):
            opt.step(theta, opt.init(theta), lambda theta: kind([1.0, bad]))
        with np.errstate(invalid="ignore"):
            opt.step(theta, opt.init(theta), lambda theta: kind([1.0, bad]), check_finite=False)


def test_gradient_with_overflowing_sum_is_accepted():
    huge = np.full(4, 1e308)
    with np.errstate(over="ignore"):
        theta, _ = SGD(1e-308).step(np.zeros(4), SGD(0.1).init(np.zeros(4)), lambda theta: huge)
    np.testing.assert_allclose(theta, -1.0)


@pytest.mark.parametrize(
    ("theta", "gradient", "error", "message"),
    [
        (np.ones(2), np.ones(3), ValueError, r"must have shape \(2,\) like theta, got \(3,\)"),
        (np.ones(2), np.ones((2, 1)), ValueError, r"shape \(2,\) like theta, got \(2, 1\)"),
        (torch.ones(2), torch.ones(1), ValueError, r"shape \(2,\) like theta, got \(1,\)"),
        ([np.ones(2)], [np.ones(2)] * 2, ValueError, "a list of 1, got 2"),
        ([np.ones(2)], np.ones(2), ValueError, "a list of 1, got ndarray"),
        ({"w": np.ones(2)}, {"b": np.ones(2)}, ValueError, r"keys \['w'\], got the keys \['b'"),
        ({"w": np.ones(2)}, [np.ones(2)], ValueError, r"keys \['w'\], got list"),
        ({"w": [np.ones(2)]}, {"w": [np.ones(3)]}, ValueError, r"gradient\['w'\]\[0\] must have"),
        (np.ones(2), None, TypeError, "gradient must hold NumPy arrays or.*got NoneType"),
        (1.0, 1.0, TypeError, r"got float; write np.array\(1.0\)"),
    ],
)
def test_mismatched_trees_are_refused(theta, gradient, error, message):
    for opt in (SGD(0.1), Newton(hessian=lambda theta: np.eye(2))):
        with pytest.raises(error, match=message):
            opt.step(theta, opt.init(theta), lambda theta: gradient)


def test_gradient_keys_may_come_in_any_order():
    opt, theta = SGD(1.0), {"a": np.zeros(1), "b": np.zeros(1)}
    new, _ = opt.step(theta, opt.init(theta), lambda theta: {"b": -np.ones(1), "a": np.ones(1)})
    assert (list(new), new["a"][0], new["b"][0]) == (["a", "b"], -1.0, 1.0)


def test_integers_are_stepped_as_floats():
    for theta in (np.array([4, 2]), torch.tensor([4, 2])):
        [_, first] = run(SGD(0.125), lambda theta: theta, theta, 1)
        np.testing.assert_array_equal(first, [3.5, 1.75])


def test_tree_may_have_empty_parts():
    theta = [{"w": np.ones(2)}, (), {}]
    new, state = Momentum(0.5).step(theta, Momentum(0.5).init(theta), lambda theta: theta)
    np.testing.assert_array_equal(new[0]["w"], [0.5, 0.5])
    assert (new[1:], state.v[1:]) == ([(), {}], [(), {}])


def test_hessian_of_wrong_shape_is_refused():
    opt = Newton(hessian=lambda theta: np.eye(3))
    with pytest.raises(ValueError, match=r"of 2 parameters must have shape \(2, 2\), got \(3, 3\)"):
        run(opt, lambda theta: theta, np.ones(2), 1)


def test_preconditioner_of_wrong_shape_is_refused():
    function = inspect.unwrap(preconditioned_descent)
    with pytest.raises(ValueError, match=r"P must have shape \(2, 2\) for 2 parameters"):
        function(lambda theta: theta, np.eye(3), np.ones(2), 0.1, 1)


@pytest.mark.parametrize("label", EVERY)
def test_optimizers_do_not_change(label):
    with pytest.raises(dataclasses.FrozenInstanceError):
        EVERY[label].lr = 1.0
    assert dataclasses.replace(EVERY[label], lr=0.5).lr == 0.5


def test_arrays_can_be_stepped_without_torch():
    # who optimizes NumPy arrays need not wait for torch to be loaded
    code = """
import sys
import numpy as np
from optdl.optimizers import Adam, run
run(Adam(0.1), lambda theta: theta, np.ones(2), 3)
print("torch" in sys.modules)
"""
    assert run_python(code) == "False"
