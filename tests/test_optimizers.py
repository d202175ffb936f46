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
    Momentum,
    Nesterov,
    Newton,
    Optimizer,
    PowerDecay,
    RMSProp,
    RMSPropNesterov,
    Warmup,
    adaptive_diagonal,
    base,
    change_of_variable,
    fisher_diagonal,
    measured_seconds,
    minibatch_gradient,
    momentum_coefficients,
    momentum_eigenvalues,
    momentum_matrix,
    momentum_rate,
    momentum_regime,
    network_diagonals,
    noise_floor,
    optimal_momentum,
    preconditioned_descent,
    robbins_monro,
    run,
    scaling_exponent,
    solve_flops,
    standard_nesterov,
    steps_to_reduce,
    terminal_velocity,
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


# --- against torch.optim ----------------------------------------------------------------------

SAME_IN_TORCH = {
    "SGD": SGD(lr=0.05),
    "Momentum 0.5": Momentum(lr=0.05, alpha=0.5),
    "Momentum 0.9": Momentum(lr=0.02, alpha=0.9),
    "Momentum 0.99": Momentum(lr=0.002, alpha=0.99),
    "Nesterov 0.9": Nesterov(lr=0.02, alpha=0.9),
    "AdaGrad": AdaGrad(lr=0.3, delta=1e-7),
    "AdaGrad, large δ": AdaGrad(lr=0.3, delta=0.1),
    "RMSProp, δ = 0": RMSProp(lr=0.01, rho=0.9, delta=0.0),
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


def deviations(steps=100):
    """The largest deviation from torch.optim of each method, over some smooth problems."""
    objectives = (bowl(), problems.valley(0.1), problems.mixture())
    found = {}
    for label, opt in SAME_IN_TORCH.items():
        name, settings = torch_equivalent(opt)
        found[label] = max(
            np.abs(
                our_path(opt, objective.gradient, objective.start, steps)
                - torch_path(name, settings, objective.gradient, objective.start, steps)
            ).max()
            for objective in objectives
        )
    return found


@pytest.mark.row("L1-24", "L1-26", "L1-27", "L1-29", "L1-30", "L2-05", "L2-06", "F-05")
def test_largest_deviation_from_torch_over_100_steps():
    # pytest -s -k deviation prints the numbers
    found = deviations()
    for label, deviation in found.items():
        print(f"{label:20} {deviation:.1e}")
    assert max(found.values()) <= 1e-12, found


@pytest.mark.row("L1-24")
@pytest.mark.parametrize("label", SAME_IN_TORCH)
def test_the_methods_move_at_all_when_compared_with_torch(label):
    # a comparison of two paths that stand still would prove nothing
    path = our_path(SAME_IN_TORCH[label], bowl().gradient, bowl().start, 100)
    assert np.linalg.norm(path[-1] - path[0]) > 0.05


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


@pytest.mark.row("L1-30")
def test_delta_inside_the_root_is_not_eps_outside():
    # one step from g = 1: 1/√(δ + 0.1) inside, 1/(√0.1 + eps) outside
    [_, inside] = run(RMSProp(1.0, rho=0.9, delta=0.01), constant(1.0), np.zeros(1), 1)
    outside = torch_path(
        "RMSprop", {"lr": 1.0, "alpha": 0.9, "eps": 0.01}, constant(1.0), np.zeros(1), 1
    )
    assert inside[0] == pytest.approx(-1 / math.sqrt(0.11), rel=1e-14)
    assert outside[1, 0] == pytest.approx(-1 / (math.sqrt(0.1) + 0.01), rel=1e-14)


@pytest.mark.row("L1-26")
def test_torch_rescales_the_velocity_when_the_rate_changes_and_the_lecture_does_not():
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
def test_momentum_with_one_minus_alpha_is_momentum_with_a_smaller_rate():
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
        (SGD(LinearDecay(0.1, tau=5)), "lr_scheduler"),
    ],
)
def test_what_torch_does_not_have_is_said_with_the_reason(opt, reason):
    with pytest.raises(ValueError, match=reason):
        torch_equivalent(opt)


@pytest.mark.row("L1-27")
def test_nesterov_without_momentum_is_plain_gradient_descent_in_torch():
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
def test_the_same_object_steps_arrays_tensors_and_nested_trees(label):
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
def test_a_step_changes_none_of_its_arguments(label, tensor):
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


@pytest.mark.parametrize("label", OBJECT)
@pytest.mark.parametrize("tensor", [False, True], ids=["numpy", "torch"])
def test_a_step_in_place_gives_the_same_and_writes_over_its_arguments(label, tensor):
    kind = torch.tensor if tensor else np.array
    opt = OBJECT[label]
    if isinstance(opt, Newton):
        opt = dataclasses.replace(opt, hessian=lambda theta: kind(bowl().hessian(np.zeros(5))))

    def grad(tree):
        return [kind(part) for part in np.split(bowl().gradient(np.concatenate(tree)), [2])]

    old = [kind(part) for part in np.split(bowl().start, [2])]
    new = copy.deepcopy(old)
    old_state, new_state = opt.init(old), opt.init(new)
    for _ in range(5):
        old, old_state = opt.step(old, old_state, grad)
        after, state = opt.step(new, new_state, grad, in_place=True)
        for tree, written in zip((after, *state[1:]), (new, *new_state[1:]), strict=True):
            for array, place in zip(tree, written, strict=True):
                assert np.shares_memory(np.asarray(array), np.asarray(place))
        new_state = state
        for tree, expected in zip((new, *state[1:]), (old, *old_state[1:]), strict=True):
            np.testing.assert_array_equal(np.concatenate(tree), np.concatenate(expected))


def test_a_step_in_place_trains_a_module():
    # oracle: torch.optim on a copy of the module
    torch.manual_seed(0)
    net = torch.nn.Linear(3, 2).double()
    twin = copy.deepcopy(net)
    x = torch.randn(8, 3, dtype=torch.float64)
    opt, optimizer = Adam(0.05), torch.optim.Adam(twin.parameters(), lr=0.05, foreach=False)
    theta = dict(net.named_parameters())
    state = opt.init(theta)

    def grad(theta):
        net.zero_grad()
        net(x).square().mean().backward()
        return {name: parameter.grad for name, parameter in theta.items()}

    for _ in range(100):
        _, state = opt.step(theta, state, grad, in_place=True)
        optimizer.zero_grad()
        twin(x).square().mean().backward()
        optimizer.step()
    for ours, theirs in zip(net.parameters(), twin.parameters(), strict=True):
        assert ours.requires_grad
        np.testing.assert_allclose(ours.detach(), theirs.detach(), rtol=0, atol=1e-12)


@pytest.mark.parametrize("label", EVERY)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_precision_and_shape_stay_and_the_history_is_dropped(label, dtype):
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
def test_a_real_network_takes_the_path_of_torch(label):
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


def test_a_tensor_stays_on_its_device():
    # the meta device computes shapes only, and refuses to meet a tensor of another device
    theta = torch.ones(3, device="meta")
    for opt in EVERY.values():
        state = opt.init(theta)
        for _ in range(2):
            theta, state = opt.step(theta, state, lambda theta: theta, check_finite=False)
        assert {tensor.device.type for tensor in (theta, *state[1:])} == {"meta"}


# --- the formula and its fast form ------------------------------------------------------------


def formula_path(opt, grad, theta, steps):
    """The iterates by ``update`` and ``look_ahead`` alone, without the rest of the package."""
    memory, path = [0 * theta for _ in opt.memory._fields[1:]], [theta]
    for t in range(1, steps + 1):
        g = grad(opt.look_ahead(theta, *memory) if opt.look_ahead else theta)
        theta, *memory = opt.update(t, theta, g, *memory)
        path.append(theta)
    return path


@pytest.mark.parametrize("label", [label for label in EVERY if label != "DeltaBarDelta"])
@pytest.mark.parametrize("kind", [np.array, torch.tensor], ids=["numpy", "torch"])
@pytest.mark.parametrize("schedule", [False, True], ids=["constant", "schedule"])
def test_the_fast_step_is_the_formula(label, kind, schedule):
    opt, H = EVERY[label], kind(bowl().hessian(bowl().start))
    opt = dataclasses.replace(opt, lr=LinearDecay(opt.lr, tau=30)) if schedule else opt
    start = kind(bowl().start)
    formula = formula_path(opt, lambda theta: H @ theta, start, 50)
    fast = run(opt, lambda theta: H @ theta, start, 50)
    assert type(opt) in base.KERNELS
    for t, (ours, expected) in enumerate(zip(fast, formula, strict=True)):
        np.testing.assert_allclose(ours, expected, rtol=0, atol=1e-15 * (t + 1))


@pytest.mark.parametrize("label", EVERY)
@pytest.mark.parametrize("in_place", [False, True])
def test_a_step_needs_no_fast_form(label, in_place, monkeypatch):
    monkeypatch.setattr(base, "KERNELS", {})
    opt, grad = EVERY[label], bowl().gradient
    theta, state = bowl().start.copy(), opt.init(bowl().start)
    for _ in range(20):
        new, state = opt.step(theta, state, grad, in_place=in_place)
        assert (new is theta) == in_place
        theta = new
    monkeypatch.undo()
    np.testing.assert_allclose(theta, run(opt, grad, bowl().start, 20)[-1], rtol=0, atol=1e-14)


def test_a_new_method_is_a_formula_and_needs_no_fast_form():
    class Sign(FirstOrder):
        def update(self, t, theta, g):
            return (theta - self.rate(t) * g / (g * g) ** 0.5,)

    path = run(Sign(lr=0.5), lambda theta: theta, np.array([2.0, -2.0]), 3)
    np.testing.assert_array_equal(path, [[2, -2], [1.5, -1.5], [1, -1], [0.5, -0.5]])


def test_a_subclass_with_another_formula_does_not_get_the_fast_form_of_its_parent():
    class Halved(SGD):
        def update(self, t, theta, g):
            return (theta - 0.5 * self.rate(t) * g,)

    path = run(Halved(lr=1.0), lambda theta: theta, np.array([8.0]), 2)
    np.testing.assert_array_equal(path.ravel(), [8, 4, 2])


def test_newton_has_a_formula_of_its_own():
    assert not issubclass(Newton, FirstOrder)
    opt, objective = Newton(hessian=bowl().hessian, lr=0.5, damping=0.3), bowl()
    H, g = objective.hessian(objective.start), objective.gradient(objective.start)
    expected = objective.start - 0.5 * np.linalg.inv(H + 0.3 * np.eye(5)) @ g
    np.testing.assert_allclose(opt.update(1, objective.start, g, H), expected, rtol=1e-13)
    np.testing.assert_array_equal(
        run(opt, objective, objective.start, 1)[1], opt.update(1, objective.start, g, H)
    )


def test_arguments_by_position_mean_what_the_signature_says():
    assert RMSProp(0.01, 0.8) == RMSProp(lr=0.01, rho=0.8)
    assert AdaDelta(0.5, 0.8) == AdaDelta(lr=0.5, rho=0.8)
    assert RMSPropNesterov(0.01, 0.8, 0.7) == RMSPropNesterov(lr=0.01, rho=0.8, alpha=0.7)
    assert Adam(0.1, 0.5, 0.75) == Adam(lr=0.1, beta1=0.5, beta2=0.75)
    assert AdamW(0.1, 0.5, 0.75) == AdamW(lr=0.1, beta1=0.5, beta2=0.75)
    for method in (AdaGrad, RMSProp, RMSPropNesterov, AdaDelta, Adam, AdamW):
        parameters = inspect.signature(method).parameters
        assert parameters["delta"].kind is inspect.Parameter.KEYWORD_ONLY


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
def test_a_run_ends_when_the_stopping_criterion_is_met():
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
def test_linear_decay_is_a_line_and_then_a_constant():
    schedule = LinearDecay(first=0.5, tau=40)
    rates = [schedule(k) for k in range(100)]
    np.testing.assert_allclose(rates, np.interp(np.arange(100), [0, 40], [0.5, 0.005]), rtol=1e-13)
    assert schedule.final == 0.005
    torch_rates = []
    optimizer = torch.optim.SGD([torch.zeros(1)], lr=0.5)
    scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.01, total_iters=40)
    for _ in range(100):
        torch_rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    np.testing.assert_allclose(rates, torch_rates, rtol=1e-12)


@pytest.mark.row("L1-25")
def test_a_schedule_gives_its_first_rate_to_the_first_step():
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
def test_robbins_monro_conditions_agree_with_the_tails_of_the_sums(schedule, expected):
    # oracle: the condensation test of Cauchy. Σ aₖ converges exactly when Σ 2ʲ a(2ʲ) does; for
    # these sequences exactly when the terms 2ʲ a(2ʲ) shrink geometrically
    assert robbins_monro(schedule) == expected
    at = schedule if callable(schedule) else lambda k: schedule

    def converges(power):
        terms = [2.0**j * at(2**j) ** power for j in (60, 61)]
        return terms[0] == 0 or terms[1] / terms[0] < 0.999

    assert (not converges(1), converges(2)) == expected


@pytest.mark.row("L1-25")
def test_sgd_with_a_constant_rate_stalls_at_its_noise_floor(rng):
    # oracle: the average of θ² over a long run
    lr, curvature, sigma = 0.3, 2.0, 1.5
    noise = sigma * rng.normal(size=20_000)
    grad = (g for g in noise)
    path = run(
        SGD(lr), lambda theta: curvature * theta + next(grad), np.zeros(1), len(noise)
    ).ravel()
    assert np.mean(path[100:] ** 2) == pytest.approx(noise_floor(lr, curvature, sigma), rel=0.05)


@pytest.mark.row("L1-25")
def test_a_rate_that_falls_gets_below_the_noise_floor(rng):
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
def test_velocity_under_a_constant_gradient_is_a_geometric_sum(alpha):
    g = np.array([3.0, -4.0])
    found = states(Momentum(0.1, alpha), lambda theta: g, np.zeros(2), 2000)
    for t in (1, 2, 3, 50, 2000):
        geometric = -0.1 * g * sum(alpha**k for k in range(t))
        np.testing.assert_allclose(found[t - 1].v, geometric, rtol=1e-11)
        np.testing.assert_allclose(velocity(t, 0.1, alpha, g), geometric, rtol=1e-11)
    speed = np.linalg.norm(found[-1].v)
    assert speed == pytest.approx(0.1 * 5 / (1 - alpha), rel=1e-8)
    assert terminal_velocity(0.1, alpha, g) == pytest.approx(0.1 * 5 / (1 - alpha), rel=1e-14)


@pytest.mark.row("L1-26")
def test_momentum_on_a_bowl_is_the_power_of_its_matrix():
    # oracle: (θ, v) ↦ (θ + αv − ηλθ, αv − ηλθ) for each eigenvalue
    lam, lr, alpha = 2.0, 0.1, 0.8
    M = np.array([[1 - lr * lam, alpha], [-lr * lam, alpha]])
    path = run(Momentum(lr, alpha), lambda theta: lam * theta, np.array([1.0]), 50)
    expected = [(np.linalg.matrix_power(M, t) @ [1, 0])[0] for t in range(51)]
    np.testing.assert_allclose(path.ravel(), expected, atol=1e-13)


@pytest.mark.row("L1-26")
def test_three_steps_of_momentum_on_paper():
    # v = −1, −1.5 + 0.5 …: θ' = 8 − 4 = 4; v = −2 − 2 = −4, θ = 0; v = −2 − 0, θ = −2
    path = run(Momentum(lr=0.5, alpha=0.5), lambda theta: theta, np.array([8.0]), 3)
    np.testing.assert_array_equal(path.ravel(), [8, 4, 0, -2])


@pytest.mark.row("L2-03")
def test_the_notation_with_friction_gives_the_same_path():
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


@pytest.mark.row("L2-03")
def test_less_gamma_is_more_friction():
    # without a gradient the ball keeps γᵗ of its velocity, and rolls v/(1 − γ) γ in all
    grads = [-1.0] + [0.0] * 200
    for gamma in (0.5, 0.9):
        path = run(Momentum.from_l2(1.0, gamma), given(grads), np.zeros(1), 201)
        assert path[-1, 0] == pytest.approx(1 / (1 - gamma), rel=1e-8)


# --- Nesterov: L1-27 --------------------------------------------------------------------------


@pytest.mark.row("L1-27")
def test_nesterov_asks_for_the_gradient_at_the_interim_point():
    asked = []

    def grad(theta):
        asked.append(theta.copy())
        return np.ones(1)

    opt = Nesterov(lr=1.0, alpha=0.5)
    run(opt, grad, np.zeros(1), 3)
    # by hand: v = −1, −1.5, so that θ = 0, −1, −2.5 and θ̃ = θ + v/2 = 0, −1.5, −3.25
    np.testing.assert_array_equal(np.ravel(asked), [0, -1.5, -3.25])


@pytest.mark.row("L1-27")
def test_three_steps_of_nesterov_on_paper():
    # θ̃ = 8, v = −4, θ = 4; θ̃ = 2, v = −2 − 1 = −3, θ = 1; θ̃ = −½, v = −1½ + ¼, θ = −¼
    path = run(Nesterov(lr=0.5, alpha=0.5), lambda theta: theta, np.array([8.0]), 3)
    np.testing.assert_array_equal(path.ravel(), [8, 4, 1, -0.25])


@pytest.mark.row("L1-27")
def test_the_change_of_variable_leads_back_from_torch_to_the_lecture():
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
def test_nesterov_is_stable_where_momentum_is_too_and_damps_more():
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
def test_three_steps_of_delta_bar_delta_on_paper():
    # ρ = 0, κ = ¼, φ = ½, rate ½ from 8. The first trend is 0: θ = 4. Same sign, rate ¾: θ = 1.
    # Same sign, rate 1: θ = 0. With the trend 1 and g = 0 nothing changes.
    opt = DeltaBarDelta(lr=0.5, increase=0.25, decrease=0.5, rho=0.0)
    path = run(opt, lambda theta: theta, np.array([8.0]), 4)
    np.testing.assert_array_equal(path.ravel(), [8, 4, 1, 0, 0])


@pytest.mark.row("L1-28")
def test_the_rate_grows_while_the_sign_persists_and_shrinks_at_a_flip():
    opt = DeltaBarDelta(lr=1.0, increase=0.5, decrease=0.25, rho=0.0)
    found = states(opt, given([1.0, 2.0, 3.0, -1.0, -1.0, 1.0]), np.zeros(1), 6)
    rates = [state.rates[0] for state in found]
    np.testing.assert_array_equal(rates, [1, 1.5, 2, 1.5, 2, 1.5])


@pytest.mark.row("L1-28")
def test_the_trend_is_a_moving_average_so_that_one_flip_can_be_noise():
    # ρ = 0.5: trend 1/2 after g = 1 and g = … −0.25 leaves 0.125 > 0, so that the next + agrees
    opt = DeltaBarDelta(lr=1.0, increase=0.5, decrease=0.5, rho=0.5)
    found = states(opt, given([1.0, -0.25, 1.0]), np.zeros(1), 3)
    assert [state.trend[0] for state in found] == [0.5, 0.125, 0.5625]
    assert [state.rates[0] for state in found] == [1.0, 0.5, 1.0]


@pytest.mark.row("L1-28")
def test_erratum_the_rule_as_printed_is_the_slower_one():
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
def test_adagrad_under_a_constant_gradient_steps_like_one_over_the_root_of_t():
    # r = t g², so that step t is η g / (δ + |g| √t)
    g, delta = np.array([3.0, -0.5]), 0.25
    path = run(AdaGrad(0.1, delta=delta), lambda theta: g, np.zeros(2), 100)
    t = np.arange(1, 101)[:, None]
    np.testing.assert_allclose(np.diff(path, axis=0), -0.1 * g / (delta + np.abs(g) * np.sqrt(t)))


@pytest.mark.row("L1-29")
def test_three_steps_of_adagrad_on_paper():
    # r = 9, 25, 169: roots 3, 5, 13. With δ = 0 the steps are 3/3, 4/5, 12/13
    path = run(AdaGrad(1.0, delta=0.0), given([3.0, 4.0, 12.0]), np.zeros(1), 3)
    np.testing.assert_allclose(path.ravel(), [0, -1, -1.8, -1.8 - 12 / 13], rtol=1e-15)
    # with δ = 1: 3/4, 4/6, 12/14
    path = run(AdaGrad(1.0, delta=1.0), given([3.0, 4.0, 12.0]), np.zeros(1), 3)
    np.testing.assert_allclose(np.diff(path.ravel()), [-3 / 4, -2 / 3, -6 / 7], rtol=1e-14)


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


@pytest.mark.row("L1-30")
@pytest.mark.parametrize("delta", [0.0, 1e-6, 0.1])
def test_rmsprop_is_the_box_of_the_lecture(delta):
    objective = bowl()
    expected = rmsprop_box(objective.gradient, objective.start, 0.02, 0.9, delta, 100)
    path = run(RMSProp(0.02, rho=0.9, delta=delta), objective, objective.start, 100)
    np.testing.assert_allclose(path, expected, rtol=0, atol=1e-12)


@pytest.mark.row("L1-30")
def test_rmsprop_under_a_constant_gradient():
    # r = (1 − ρᵗ) g²: the steps start large and approach η, whatever the size of g
    g, rho = np.array([100.0, -0.01]), 0.8
    path = run(RMSProp(0.1, rho=rho, delta=0.0), lambda theta: g, np.zeros(2), 60)
    t = np.arange(1, 61)[:, None]
    np.testing.assert_allclose(np.diff(path, axis=0), -0.1 * np.sign(g) / np.sqrt(1 - rho**t))


@pytest.mark.row("L1-30")
def test_three_steps_of_rmsprop_on_paper():
    # ρ = ¾, g = 2, 2, 1: r = 1, 1¾, 1⁹⁄₁₆ with roots 1, √1.75, 1¼
    path = run(RMSProp(1.0, rho=0.75, delta=0.0), given([2.0, 2.0, 1.0]), np.zeros(1), 3)
    steps = [-2, -2 / math.sqrt(1.75), -0.8]
    np.testing.assert_allclose(np.diff(path.ravel()), steps, rtol=1e-14)
    # with δ = 3: roots of 4, 4¾, 4⁹⁄₁₆
    path = run(RMSProp(1.0, rho=0.75, delta=3.0), given([2.0, 2.0, 1.0]), np.zeros(1), 3)
    steps = [-1, -2 / math.sqrt(4.75), -1 / math.sqrt(4.5625)]
    np.testing.assert_allclose(np.diff(path.ravel()), steps, rtol=1e-14)


@pytest.mark.row("L1-31")
@pytest.mark.parametrize("delta", [0.0, 1e-6, 0.1])
def test_rmsprop_with_nesterov_is_the_box_of_the_lecture(delta):
    objective = bowl()
    expected = rmsprop_box(objective.gradient, objective.start, 0.005, 0.9, delta, 100, alpha=0.8)
    path = run(RMSPropNesterov(0.005, 0.9, 0.8, delta=delta), objective, objective.start, 100)
    np.testing.assert_allclose(path, expected, rtol=0, atol=1e-12)


@pytest.mark.row("L1-31")
def test_rmsprop_with_nesterov_joins_its_two_parents():
    objective = bowl()
    # without momentum it is RMSProp
    alone = run(RMSPropNesterov(0.02, 0.9, 0.0), objective, objective.start, 50)
    parent = run(RMSProp(0.02, 0.9), objective, objective.start, 50)
    np.testing.assert_allclose(alone, parent, atol=1e-14)
    # with a huge δ the root is √δ for all, and it is Nesterov with the rate η/√δ
    alone = run(RMSPropNesterov(0.02e8, 0.9, 0.8, delta=1e16), objective, objective.start, 50)
    parent = run(Nesterov(0.02, 0.8), objective, objective.start, 50)
    np.testing.assert_allclose(alone, parent, atol=1e-12)


@pytest.mark.row("L1-31")
def test_three_steps_of_rmsprop_with_nesterov_on_paper():
    # ρ = 0 makes r = g², each step sign(g): J = θ²/2 from 8 with η = 1, α = ½.
    # v = −1, −1.5, −1.75
    path = run(RMSPropNesterov(1.0, 0.0, 0.5, delta=0.0), lambda theta: theta, np.array([8.0]), 3)
    np.testing.assert_array_equal(path.ravel(), [8, 7, 5.5, 3.75])


@pytest.mark.row("L2-04")
def test_the_methods_divide_by_the_diagonal_that_they_report(rng):
    # θ' − θ = −η G⁻¹ g, whatever the gradients were: G is read off the step itself
    for opt in (AdaGrad(0.3, delta=0.1), RMSProp(0.3, delta=0.1)):
        theta, state = np.zeros(4), opt.init(np.zeros(4))
        for _ in range(5):
            g = rng.normal(size=4)
            new, state = opt.step(theta, state, lambda theta, g=g: g)
            np.testing.assert_allclose(opt.diagonal(state), -0.3 * g / (new - theta), rtol=1e-12)
            np.testing.assert_allclose(opt.effective_lr(state), -(new - theta) / g, rtol=1e-12)
            theta = new


@pytest.mark.row("L2-04")
def test_note_the_lagged_diagonal_divides_by_zero_in_the_first_step():
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
    assert RMSPropNesterov.from_l2(eta, gamma).rho == 1 - gamma


@pytest.mark.row("L2-04")
def test_the_diagonal_approaches_the_hessian_up_to_a_factor_in_one_case_only():
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
def test_three_steps_of_adadelta_on_paper():
    # ρ = ½, δ = 1, g = √2, …: r = 1, 1½, 1¾; Δ = √(1 + d)/√(1 + r) g with the old d
    g = math.sqrt(2)
    d1 = 0.5 * 1.0  # Δ² = (1 + 0)/2 · 2 = 1
    s2 = (1 + d1) / 2.5 * 2  # Δ² of step 2
    d2 = 0.5 * d1 + 0.5 * s2
    s3 = (1 + d2) / 2.75 * 2
    path = run(AdaDelta(1.0, rho=0.5, delta=1.0), constant(g), np.zeros(1), 3)
    steps = [-1, -math.sqrt(s2), -math.sqrt(s3)]
    np.testing.assert_allclose(np.diff(path.ravel()), steps, rtol=1e-14)


@pytest.mark.row("L2-05")
def test_l2s_adadelta_with_the_newest_g_and_the_oldest_d():
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
def test_adadelta_does_not_feel_the_units_of_the_loss():
    # without δ to speak of, a loss 1000 times as large gives the same path
    small = run(AdaDelta(1.0, delta=1e-20), constant(1.0), np.zeros(1), 50)
    large = run(AdaDelta(1.0, delta=1e-20), constant(1000.0), np.zeros(1), 50)
    np.testing.assert_allclose(small, large, rtol=1e-9)


@pytest.mark.row("L2-05")
def test_adadelta_reports_its_effective_rate():
    opt, objective = AdaDelta(0.5, rho=0.9, delta=1e-3), bowl()
    state = states(opt, objective.gradient, objective.start, 7)[-1]
    expected = 0.5 * np.sqrt((state.d + 1e-3) / (state.r + 1e-3))
    np.testing.assert_allclose(opt.effective_lr(state), expected, rtol=1e-13)


@pytest.mark.row("L2-06")
def test_adam_under_a_constant_gradient_steps_by_its_rate_from_the_first_step():
    # both hats undo the bias exactly: m̂ = g, r̂ = g²
    g = np.array([1000.0, -1e-3])
    path = run(Adam(0.1, delta=0.0), lambda theta: g, np.zeros(2), 50)
    np.testing.assert_allclose(
        np.diff(path, axis=0), np.tile(-0.1 * np.sign(g), (50, 1)), rtol=1e-9
    )


@pytest.mark.row("L2-06")
def test_three_steps_of_adam_on_paper():
    # β₁ = ½, β₂ = ¾, g = 2, 2, −1: m̂ = 2, 2, 2/7; r̂ = 4, 4, 100/37
    path = run(Adam(1.0, 0.5, 0.75, delta=0.0), given([2.0, 2.0, -1.0]), np.zeros(1), 3)
    steps = [-1, -1, -(2 / 7) / math.sqrt(100 / 37)]
    np.testing.assert_allclose(np.diff(path.ravel()), steps, rtol=1e-14)
    # δ stands outside the root, beside r̂: 2/(2 + 2)
    [_, first] = run(Adam(1.0, 0.5, 0.75, delta=2.0), constant(2.0), np.zeros(1), 1)
    assert first[0] == pytest.approx(-0.5, rel=1e-15)


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


@pytest.mark.row("L2-06")
def test_adam_reports_its_effective_rate(rng):
    # oracle: with β₁ = 0 a step is −rate · g
    opt, theta = Adam(0.3, beta1=0.0, delta=0.1), np.zeros(4)
    state = opt.init(theta)
    for _ in range(4):
        g = rng.normal(size=4)
        new, state = opt.step(theta, state, lambda theta, g=g: g)
        np.testing.assert_allclose(opt.effective_lr(state), (theta - new) / g, rtol=1e-12)
        theta = new


# --- Newton's method: L1-32, L2-07, L2-08 -----------------------------------------------------


@pytest.mark.row("L1-32")
def test_one_step_of_newton_reaches_the_minimum_of_a_quadratic(rng):
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


@pytest.mark.row("L1-32")
def test_newton_converges_quadratically_where_the_hessian_is_positive_definite():
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
def test_newton_is_attracted_by_a_saddle_and_damping_turns_it_downhill():
    saddle = problems.saddle()
    [_, first] = run(Newton(hessian=saddle.hessian), saddle, saddle.start, 1)
    np.testing.assert_allclose(first, 0, atol=1e-15)  # the saddle itself, from anywhere
    # μ = 2 > −λ_min: the factors are 1 − 1/(1 + 2) along x and 1 + 1/(−1 + 2) along y
    path = run(Newton(hessian=saddle.hessian, damping=2.0), saddle, saddle.start, 3)
    expected = [saddle.start * np.array([2 / 3, 2.0]) ** t for t in range(4)]
    np.testing.assert_allclose(path, expected, rtol=1e-13)
    assert saddle.value(path[-1]) < saddle.value(path[0])


@pytest.mark.row("L1-32")
def test_strong_damping_is_gradient_descent_with_a_short_step():
    objective = bowl()
    path = run(Newton(hessian=objective.hessian, damping=1e9), objective, objective.start, 3)
    expected = run(SGD(1e-9), objective, objective.start, 3)
    np.testing.assert_allclose(path - path[0], expected - expected[0], rtol=1e-6, atol=1e-15)


@pytest.mark.row("L1-32")
def test_newton_takes_hessians_of_autograd():
    def loss(theta):
        return torch.exp(theta[0]) + torch.exp(-theta[0] + theta[1] ** 2) + theta[1] ** 2

    opt = Newton(hessian=torch.func.hessian(loss))
    start = torch.tensor([0.3, 0.2], dtype=torch.float64)
    last = run(opt, torch.func.grad(loss), start, 8)[-1]
    np.testing.assert_allclose(last, 0, atol=1e-12)


@pytest.mark.row("L1-32")
def test_a_flat_direction_is_named():
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
def test_newton_does_not_feel_linear_coordinates(name, rng):
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
def test_flops_are_those_of_an_elimination_that_counts_them(rng):
    def solve_and_count(H, g):
        H, g, n, count = H.copy(), g.copy(), len(g), 0
        for k in range(n):
            for i in range(k + 1, n):
                factor = H[i, k] / H[k, k]
                H[i, k + 1 :] -= factor * H[k, k + 1 :]
                g[i] -= factor * g[k]
                count += 1 + 2 * (n - k - 1) + 2
        for i in reversed(range(n)):
            g[i] = (g[i] - H[i, i + 1 :] @ g[i + 1 :]) / H[i, i]
            count += 2 * (n - i - 1) + 1
        return g, count

    for n in (1, 2, 3, 8, 20):
        M = rng.normal(size=(n, n))
        H, g = M @ M.T + np.eye(n), rng.normal(size=n)
        solution, count = solve_and_count(H, g)
        np.testing.assert_allclose(solution, np.linalg.solve(H, g), rtol=1e-9)
        assert solve_flops(n) == count


@pytest.mark.row("L2-08")
def test_the_exponent_of_the_cost_is_three_for_newton_and_one_for_a_gradient_step():
    sizes = np.geomspace(100, 10_000, 9).astype(int)
    newton = scaling_exponent(sizes, [float(solve_flops(int(n))) for n in sizes])
    assert newton == pytest.approx(3, abs=0.01)
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
def test_eigenvalues_of_momentum_are_those_of_its_matrix(lr, alpha):
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
def test_momentum_takes_the_2_by_2_iteration_along_each_eigenvector(rng):
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
def test_the_three_regimes_of_momentum(alpha):
    root = math.sqrt(alpha)
    low, high = (1 - root) ** 2, (1 + root) ** 2
    assert momentum_regime(0.9 * low, alpha, 1.0) == "real"
    assert momentum_regime(low, alpha, 1.0) == "critical"
    assert momentum_regime((low + high) / 2, alpha, 1.0) == "complex"
    assert momentum_regime(high / 4, alpha, 4.0) == "critical"
    assert momentum_regime((low + high) / 8, alpha, 4.0) == "complex"  # what counts is ηλ
    assert momentum_regime(1.1 * high, alpha, 1.0) == "real"
    # real: the coefficient approaches 0 from one side; complex: it oscillates with modulus √α
    assert (momentum_coefficients(0.9 * low, alpha, 1.0, 40) > 0).all()
    complex_ = momentum_coefficients((low + high) / 2, alpha, 1.0, 40)
    assert (complex_ > 0).any()
    assert (complex_ < 0).any()
    assert abs(momentum_eigenvalues((low + high) / 2, alpha, 1.0)[0]) == pytest.approx(root)
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
        end = [
            abs(run(Momentum(f * bound, alpha), lambda w: w, np.ones(1), 9000)[-1, 0])
            for f in (0.999, 1.001)
        ]
        assert end[0] < 1e-2
        assert end[1] > 1e2


@pytest.mark.row("F-01")
@pytest.mark.parametrize(("lr", "alpha"), [(0.1, 0.3), (0.3, 0.8), (0.45, 0.8)])
def test_the_rate_of_momentum_is_measured(lr, alpha):
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
def test_no_constants_of_momentum_are_better_than_the_optimal_ones(smallest, largest):
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
    for end in (smallest, largest):
        assert momentum_regime(best.lr, best.alpha, end) == "critical"


@pytest.mark.row("F-01", "L1-27")
@pytest.mark.parametrize(("smallest", "largest"), [(0.25, 4.0), (0.3, 4.0), (0.01, 5.0)])
def test_the_standard_constants_of_nesterov_are_best_for_their_learning_rate(smallest, largest):
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
def test_steps_grow_like_the_root_of_kappa_with_momentum():
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


@pytest.mark.row("F-01", "L1-26")
def test_tuned_momentum_wins_in_the_long_valley():
    valley, start = problems.valley(0.05), np.ones(2)
    best = optimal_momentum(0.05, 1.0)
    loss = {
        name: valley.value(run(opt, valley, start, 60)[-1])
        for name, opt in {
            "descent": SGD(2 / 1.05),
            "untuned": Momentum(0.3, 0.9),
            "tuned": Momentum(best.lr, best.alpha),
        }.items()
    }
    assert loss["tuned"] < 1e-19
    assert loss["descent"] > 1e-6
    assert loss["untuned"] > 1e-4


@pytest.mark.row("F-01")
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: optimal_momentum(0.0, 1.0), "0 < smallest ≤ largest, got 0.0 and 1.0"),
        (lambda: optimal_momentum(2.0, 1.0), "0 < smallest ≤ largest"),
        (lambda: standard_nesterov(0.0, 1.0), "0 < smallest ≤ largest, got 0.0 and 1.0"),
        (lambda: momentum_matrix(0.1, 0.5, 0.0), "eigenvalue must be positive and finite, got 0.0"),
        (lambda: momentum_regime(0.1, 1.0, 1.0), r"alpha must lie in \[0, 1\)"),
        (lambda: momentum_coefficients(0.1, 0.5, 1.0, 0), "steps must be 1 or more; got 0"),
        (lambda: steps_to_reduce(SGD(0.1), problems.saddle(), 0.1), "known minimum, got saddle"),
        (lambda: steps_to_reduce(SGD(0.1), problems.valley(1.0), 0.1, 5), "by the factor 0.1 in 5"),
    ],
)
def test_what_has_no_rate_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


# --- what adaptive methods divide by: F-03 ----------------------------------------------------


@pytest.mark.row("F-03")
@pytest.mark.parametrize("name", ["valley", "beale", "rosenbrock", "mixture", "saddle"])
def test_a_rotated_problem_is_the_problem_in_turned_coordinates(name, rng):
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
def test_only_a_problem_of_the_plane_is_rotated():
    with pytest.raises(ValueError, match=r"of the plane; its start has \(5,\)"):
        problems.rotated(bowl(), 30.0)


@pytest.mark.row("F-03")
@pytest.mark.parametrize("label", ["SGD", "Momentum", "Nesterov"])
def test_methods_with_one_rate_do_not_see_a_rotation(label):
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
def test_adaptive_methods_lose_their_speed_when_the_valley_is_rotated(opt):
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
def test_the_adaptive_diagonal_is_the_mean_over_all_minibatches(batch, rng):
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
        _, state = opt.step(theta, state, grad, in_place=True)
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
def test_a_minibatch_has_one_to_m_examples():
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
def test_cosine_decay_is_that_of_torch(last):
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR
    expected = torch_rates(lambda opt: scheduler(opt, T_max=40, eta_min=last), 0.5, 41)
    schedule = CosineDecay(0.5, tau=40, last=last)
    np.testing.assert_allclose([schedule(k) for k in range(41)], expected, atol=1e-15)
    assert schedule(1000) == last  # torch's rises again
    assert schedule(20) == pytest.approx((0.5 + last) / 2, rel=1e-14)


@pytest.mark.row("F-05")
@pytest.mark.filterwarnings("ignore:.*epoch parameter")
def test_warmup_then_cosine_is_that_of_torch():
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
def test_adamw_with_a_schedule_takes_the_path_of_torch():
    objective = bowl()
    schedule = Warmup(CosineDecay(0.1, tau=60), steps=10)
    theta = torch.tensor(objective.start, requires_grad=True)
    optimizer = torch.optim.AdamW([theta], lr=0.1, weight_decay=0.2, foreach=False)
    expected = [objective.start]
    for k in range(70):
        optimizer.param_groups[0]["lr"] = schedule(k)
        theta.grad = torch.tensor(objective.gradient(theta.detach().numpy()))
        optimizer.step()
        expected.append(theta.detach().numpy().copy())
    path = run(AdamW(schedule, decay=0.2), objective, objective.start, 70)
    np.testing.assert_allclose(path, expected, rtol=0, atol=1e-12)


@pytest.mark.row("F-05")
def test_three_steps_of_adamw_on_paper():
    # g = 2, 2, −1 as for Adam, whose steps are −1, −1, −(2/7)/√(100/37); η = 1 and ω = ½ halve θ
    opt = AdamW(1.0, 0.5, 0.75, decay=0.5, delta=0.0)
    path = run(opt, given([2.0, 2.0, -1.0]), np.array([8.0]), 3).ravel()
    np.testing.assert_allclose(path, [8, 3, 0.5, 0.25 - (2 / 7) / math.sqrt(100 / 37)], rtol=1e-14)
    # without decay it is Adam
    objective = bowl()
    plain = run(AdamW(0.05, decay=0.0), objective, objective.start, 50)
    np.testing.assert_array_equal(plain, run(Adam(0.05), objective, objective.start, 50))


@pytest.mark.row("F-05")
@pytest.mark.parametrize("name", ["SGD", "Adam"])
def test_the_l2_penalty_is_the_weight_decay_of_torchs_sgd_and_adam(name):
    objective = bowl()
    expected = torch_path(
        name, {"lr": 0.05, "weight_decay": 0.3}, objective.gradient, objective.start, 60
    )
    opt = getattr(optimizers, name)(0.05)
    path = run(opt, with_l2_penalty(objective.gradient, 0.3), objective.start, 60)
    np.testing.assert_allclose(path, expected, rtol=0, atol=1e-12)


@pytest.mark.row("F-05")
def test_penalty_and_decay_are_one_for_sgd_and_two_for_adam():
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


@pytest.mark.row("F-05")
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: AdamW(decay=-0.1), "decay must be 0 or more and finite, got -0.1"),
        (lambda: AdamW(beta1=1.0), r"beta1 must lie in \[0, 1\)"),
        (lambda: AdamW(delta=-1.0), "delta must be 0 or more, got -1.0"),
        (lambda: with_l2_penalty(np.cos, -1.0), "decay must be 0 or more and finite, got -1.0"),
        (lambda: CosineDecay(-0.1, tau=3), "first must be 0 or more"),
        (lambda: CosineDecay(0.1, tau=0), "tau must be 1 or more; got 0"),
        (lambda: CosineDecay(0.1, tau=3, last=-0.1), "last must be 0 or more"),
        (lambda: Warmup(0.1, steps=0), "steps must be 1 or more; got 0"),
        (lambda: Warmup(-0.1, steps=2), "schedule must be 0 or more"),
    ],
)
def test_decay_and_schedules_outside_their_range_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


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
def test_derivatives_in_z_are_those_of_autograd(rng):
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
def test_the_condition_number_in_z_rules_the_rate():
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


def test_the_table_has_every_optimizer_and_every_problem_with_a_minimum():
    subclasses = {Optimizer}
    for _ in range(4):
        subclasses |= {sub for one in subclasses for sub in one.__subclasses__()}
    methods = {one.__name__ for one in subclasses if hasattr(one, "update")}
    assert set(TABLE) == {name for name in methods if hasattr(optimizers, name)}
    assert all(set(row) == set(OBJECTIVES) for row in TABLE.values())
    constructors = {name for name in problems.__all__ if name.islower() and hasattr(problems, name)}
    # the saddle has no minimum, and a rotated problem is that of another one
    assert constructors == set(OBJECTIVES) | {"saddle", "rotated"}


@pytest.mark.row("L2-09")
@pytest.mark.parametrize("problem", OBJECTIVES)
@pytest.mark.parametrize("method", TABLE)
def test_every_optimizer_reaches_every_known_minimum(method, problem):
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
def test_every_method_of_first_order_leaves_the_saddle(method):
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
        (lambda: AdaGrad(0.1, delta=-1e-9), "delta must be 0 or more, got -1e-09"),
        (lambda: AdaDelta(rho=1.0), r"rho must lie in \[0, 1\), got 1.0"),
        (lambda: AdaDelta(delta=0.0), "delta must be positive, got 0: the first step"),
        (lambda: Adam(beta1=1.0), r"beta1 must lie in \[0, 1\), got 1.0"),
        (lambda: Adam(beta2=math.nan), r"beta2 must lie in \[0, 1\), got nan"),
        (lambda: Adam(delta=math.inf), "delta must be 0 or more, got inf"),
        (lambda: DeltaBarDelta(0.1, decrease=1.0), r"decrease must lie in \[0, 1\), got 1.0"),
        (lambda: DeltaBarDelta(0.1, increase=-1.0), "increase must be 0 or more"),
        (lambda: DeltaBarDelta(LinearDecay(0.1, tau=3)), "lr must be a number, got a schedule"),
        (lambda: Newton(hessian=np.diag, damping=-1.0), "damping must be 0 or more, got -1.0"),
        (lambda: LinearDecay(0.1, tau=0), "tau must be 1 or more; got 0"),
        (lambda: LinearDecay(0.1, tau=5, last=-0.1), "last must be 0 or more"),
        (lambda: PowerDecay(0.1, power=-1.0), "power must be 0 or more, got -1.0"),
        (lambda: ExponentialDecay(0.1, factor=1.0), r"factor must lie in \[0, 1\), got 1.0"),
        (lambda: noise_floor(2.0, 1.0, 1.0), "between 0 and 2, got 2: outside it SGD diverges"),
        (lambda: terminal_velocity(0.1, 1.0, 1.0), r"alpha must lie in \[0, 1\), got 1.0"),
        (lambda: velocity(3, 0.1, 1.0, 1.0), r"alpha must lie in \[0, 1\), got 1.0"),
        (lambda: run(SGD(0.1), np.cos, np.zeros(1), -1), "must be 0 or more; got -1"),
        (lambda: solve_flops(0), "n must be 1 or more; got 0"),
        (lambda: change_of_variable(problems.saddle(), np.ones((2, 2))), "must be invertible"),
        (lambda: change_of_variable(problems.saddle(), np.eye(3)), r"\(2, 2\) for 2 parameters"),
    ],
)
def test_bad_numbers_are_refused_with_the_reason(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_schedule_that_turns_negative_is_refused_in_its_step():
    opt = SGD(lambda k: 0.1 - 0.1 * k)
    with pytest.raises(ValueError, match=r"lr\(2\) must be 0 or more"):
        run(opt, lambda theta: theta, np.ones(1), 3)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("kind", [np.array, torch.tensor], ids=["numpy", "torch"])
def test_a_gradient_that_is_not_finite_is_refused(kind, bad):
    for opt in EVERY.values():
        theta = kind([1.0, 1.0])
        with pytest.raises(ValueError, match="gradient of step 1 must be finite, got NaN or inf"):
            opt.step(theta, opt.init(theta), lambda theta: kind([1.0, bad]))
        with np.errstate(invalid="ignore"):
            opt.step(theta, opt.init(theta), lambda theta: kind([1.0, bad]), check_finite=False)


def test_a_gradient_whose_sum_overflows_is_finite_all_the_same():
    huge = np.full(4, 1e308)
    with np.errstate(over="ignore"):
        theta, _ = SGD(1e-308).step(np.zeros(4), SGD(0.1).init(np.zeros(4)), lambda theta: huge)
    np.testing.assert_allclose(theta, -1.0)


@pytest.mark.parametrize(
    ("theta", "gradient", "error", "message"),
    [
        (
            np.ones(2),
            np.ones(3),
            ValueError,
            r"gradient must be shape \(2,\).*got ndarray of shape",
        ),
        (np.ones(2), np.ones((2, 1)), ValueError, r"shape \(2,\) like theta.*\(2, 1\)"),
        ([np.ones(2)], [np.ones(2)] * 2, ValueError, "a list of 1, got list of 2"),
        ([np.ones(2)], np.ones(2), ValueError, "a list of 1, got ndarray"),
        (
            {"w": np.ones(2)},
            {"b": np.ones(2)},
            ValueError,
            r"keys \['w'\], got dict with keys \['b'",
        ),
        (
            {"w": [np.ones(2)]},
            {"w": [np.ones(3)]},
            ValueError,
            r"gradient\['w'\]\[0\] must be shape",
        ),
        (np.ones(2), torch.ones(2), TypeError, "a ndarray like theta, got Tensor"),
        (torch.ones(2), np.ones(2), TypeError, "a Tensor like theta, got ndarray"),
        (np.ones(2), np.array([1, 2]), TypeError, "gradient must hold floating-point.*got int64"),
        (np.ones(2), None, TypeError, "gradient must be a NumPy array or a torch tensor, got None"),
        (np.array([1, 2]), np.ones(2), TypeError, "theta must hold floating-point.*cut to whole"),
        (torch.tensor([1]), torch.ones(1), TypeError, "theta must hold floating-point.*int64"),
        (1.0, 1.0, TypeError, r"got float; write np.array\(1.0\)"),
    ],
)
def test_trees_that_do_not_fit_are_refused(theta, gradient, error, message):
    opt = Momentum(0.1)
    with pytest.raises(error, match=message):
        opt.step(theta, opt.init(theta), lambda theta: gradient)


def test_the_keys_of_a_gradient_may_come_in_any_order():
    opt, theta = SGD(1.0), {"a": np.zeros(1), "b": np.zeros(1)}
    new, _ = opt.step(theta, opt.init(theta), lambda theta: {"b": -np.ones(1), "a": np.ones(1)})
    assert (list(new), new["a"][0], new["b"][0]) == (["a", "b"], -1.0, 1.0)


def test_a_state_of_other_parameters_is_refused():
    opt = Adam(0.1)
    with pytest.raises(ValueError, match=r"state must be shape \(2,\) like theta"):
        opt.step(np.ones(2), opt.init(np.ones(3)), lambda theta: theta)


def test_a_hessian_of_another_shape_is_refused():
    opt = Newton(hessian=lambda theta: np.eye(3))
    with pytest.raises(ValueError, match=r"of 2 parameters must have shape \(2, 2\), got \(3, 3\)"):
        run(opt, lambda theta: theta, np.ones(2), 1)


def test_a_preconditioner_of_another_shape_is_refused():
    function = inspect.unwrap(preconditioned_descent)
    with pytest.raises(ValueError, match=r"P must have shape \(2, 2\) for 2 parameters"):
        function(lambda theta: theta, np.eye(3), np.ones(2), 0.1, 1)


@pytest.mark.parametrize("label", EVERY)
def test_optimizers_do_not_change(label):
    with pytest.raises(dataclasses.FrozenInstanceError):
        EVERY[label].lr = 1.0
    assert dataclasses.replace(EVERY[label], lr=0.5).lr == 0.5


def test_arrays_can_be_stepped_without_torch(run_python):
    # who optimizes NumPy arrays need not wait for torch to be loaded
    code = """
import sys
import numpy as np
from optdl.optimizers import Adam, run
run(Adam(0.1), lambda theta: theta, np.ones(2), 3)
print("torch" in sys.modules)
"""
    assert run_python(code) == "False"


@pytest.fixture
def run_python():
    """Run a program in a fresh interpreter and return what it prints."""

    def program(code):
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    return program
