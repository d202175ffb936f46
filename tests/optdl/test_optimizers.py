"""Chapter 4: every result is compared with one that the code did not produce."""

import copy
import dataclasses
import itertools
import math
import subprocess
import sys
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.linalg
import torch
from numpy.testing import assert_allclose, assert_array_equal
from oracles import slopes, torch_path, with_spectrum
from torch.nn.functional import cross_entropy
from torch.optim import lr_scheduler as of

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
    Lion,
    Momentum,
    Muon,
    Nesterov,
    Newton,
    RMSProp,
    RMSPropNesterov,
    run,
)
from optdl.optimizers.in_torch import Stepped

# torch's own forward-mode code still uses it
pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")


def bowl(n=5, seed=3):
    """A quadratic with a full Hessian, eigenvalues from 0.3 to 4, and its minimum away from 0."""
    rng = np.random.default_rng(seed)
    return problems.quadratic(with_spectrum(rng, np.linspace(0.3, 4.0, n)), rng.normal(size=n))


OBJECTIVES = [bowl(), problems.valley(0.1), problems.mixture(), problems.beale(),
              problems.rosenbrock()]  # fmt: skip
kinds = pytest.mark.parametrize("kind", [np.array, torch.tensor], ids=["numpy", "torch"])


def identity(theta):
    return theta


def given(gradients):
    """Gradients that come one after the other, wherever θ is."""
    remaining = iter(gradients)
    return lambda theta: np.asarray(next(remaining))


class Method(NamedTuple):
    """A method with constants that suit a bowl, steps by hand, and constants as torch has them.

    By hand: method, start, gradients one after the other or the rule of θ, and the steps. Where
    the constants are left out, the gradients are so small that each of them is seen.
    """

    opt: Any
    by_hand: list[tuple]
    in_torch: tuple = ()


ROOT2 = math.sqrt(2)
METHODS = {
    "SGD": Method(SGD(0.05), [(SGD(0.5), 8.0, identity, [-4, -2, -1])], (SGD(0.05),)),
    "Momentum": Method(
        Momentum(0.02, alpha=0.9),
        [(Momentum.from_l2(0.5, 0.5), 8.0, identity, [-4, -4, -2])],  # v = −4, −4, −2
        (Momentum(0.05, alpha=0.5), Momentum(0.02, alpha=0.9), Momentum(0.002, alpha=0.99)),
    ),
    "Nesterov": Method(
        Nesterov(0.02, alpha=0.9),
        # θ̃ = 8, 2, −½ and v = −4, −3, −1¼
        [(Nesterov.from_l2(0.5, 0.5), 8.0, identity, [-4, -3, -1.25])],
        (Nesterov(0.02, alpha=0.9),),
    ),
    "DeltaBarDelta": Method(
        DeltaBarDelta(0.01),
        # a rate grows until the sign flips: 1, 1½, 2, 1½, 2, 1½
        [(DeltaBarDelta(1.0, increase=0.5, decrease=0.25, rho=0.0), 0.0,
          [1.0, 2.0, 3.0, -1.0, -1.0, 1.0], [-1, -3, -6, 1.5, 2, -1.5]),
         # the trend ½ after g = 1 and ⅛ after −¼: one flip does not change its sign
         (DeltaBarDelta(1.0, increase=0.5, decrease=0.5, rho=0.5), 0.0, [1.0, -0.25, 1.0],
          [-1, 0.125, -1]),
         (DeltaBarDelta(1.0, increase=0.5, decrease=0.25, rho=0.0, as_printed=True), 0.0,
          [1.0, 1.0, -1.0], [-1, -0.75, 1.25])],
    ),
    "AdaGrad": Method(
        AdaGrad(0.2),
        [(AdaGrad(1.0), 0.0, [1e-7], [-0.5])],
        (AdaGrad(0.3, delta=1e-7), AdaGrad(0.3, delta=0.1)),
    ),
    "RMSProp": Method(
        RMSProp(0.01),
        # ρ = ¾: r = 1, 1¾, 1⁹⁄₁₆, and with δ = 3 the roots of 4, 4¾, 4⁹⁄₁₆
        [(RMSProp.from_l2(1.0, 0.25, delta=3.0), 0.0, [2.0, 2.0, 1.0],
          [-1, -2 / 4.75**0.5, -1 / 4.5625**0.5]),
         (RMSProp(1.0), 0.0, [1e-3], [-1 / 1.1**0.5])],
        # so small a rate that no path arrives: where g changes its sign, g / √r is random
        (RMSProp(0.002, rho=0.9, delta=0.0),),
    ),
    "RMSPropNesterov": Method(
        RMSPropNesterov(0.005),
        # ρ = 0 makes r = g², each step sign(g): v = −1, −1.5, −1.75
        [(RMSPropNesterov(1.0, 0.0, 0.5, delta=0.0), 8.0, identity, [-1, -1.5, -1.75]),
         # and δ = 3 the roots of RMSProp: v = −1, −½ − 2/√4¾
         (RMSPropNesterov(1.0, 0.75, 0.5, delta=3.0), 0.0, [2.0, 2.0],
          [-1, -0.5 - 2 / 4.75**0.5]),
         (RMSPropNesterov(1.0), 0.0, [1e-3, 0.0], [-1 / 1.1**0.5, -0.9 / 1.1**0.5])],
    ),
    "AdaDelta": Method(
        AdaDelta(1.0),
        # ρ = ½, δ = 1: r = 1, 1½, 1¾ and d = 0, ½, 17⁄20, of which each step takes the old one
        [(AdaDelta.from_l2(1.0, 0.5, delta=1.0), 0.0, [ROOT2, ROOT2, ROOT2],
          [-1, -((1.5 / 2.5) ** 0.5) * ROOT2, -((1.85 / 2.75) ** 0.5) * ROOT2]),
         (AdaDelta(), 0.0, [1e-3], [-1e-3 / 1.1**0.5])],
        (AdaDelta(1.0, rho=0.9, delta=1e-6), AdaDelta(0.5, rho=0.95, delta=1e-3)),
    ),
    "Adam": Method(
        Adam(0.05),
        [(Adam(), 0.0, [1e-8, 0.0], [-5e-4, -0.09 / 190 / ((0.999 / 1.999) ** 0.5 + 1)])],
        (Adam(0.05, beta1=0.9, beta2=0.999, delta=1e-8),
         Adam(0.05, beta1=0.8, beta2=0.9, delta=0.1)),
    ),
    "AdamW": Method(
        AdamW(0.05, decay=0.1),
        # β₁ = ½, β₂ = ¾: m̂ = 2, 2, 2/7; r̂ = 4, 4, 100/37; η = 1, ω = ½ halve θ = 8, 3, ½ besides
        [(AdamW(1.0, 0.5, 0.75, decay=0.5, delta=0.0), 8.0, [2.0, 2.0, -1.0],
          [-5, -2.5, -0.25 - (2 / 7) * 0.37**0.5])],
        (AdamW(0.05, decay=0.1), AdamW(0.05, beta1=0.8, beta2=0.9, decay=0.5, delta=0.1)),
    ),
    "Lion": Method(
        Lion(0.02, decay=0.1),
        # β₁ = ½, β₂ = ¾: c = 2, ¼, −29/16, −27/64; the sign of zero is zero
        [(Lion(1.0, 0.5, 0.75), 0.0, [4.0, -0.5, -4.0, 0.0], [-1, -1, 1, 1]),
         (Lion(1.0, decay=0.5), 8.0, [0.0, 0.0], [-4, -2])],
    ),
    # on vectors it is the momentum of torch with its Nesterov variant: g + ½b = 12, 5, −¾
    "Muon": Method(Muon(0.02, 0.9), [(Muon(0.5, 0.5), 8.0, [8.0, 2.0, -1.5], [-6, -2.5, 0.375])]),
    "Newton": Method(
        Newton(hessian=bowl().hessian, lr=0.1, damping=0.5),
        # (1 + 1) s = −½ θ: each step takes a quarter
        [(Newton(hessian=lambda theta: np.eye(1), lr=0.5, damping=1.0), 8.0, identity, [-2, -1.5])],
    ),
}  # fmt: skip
FIRST_ORDER = {name: method.opt for name, method in METHODS.items() if name != "Newton"}
each = pytest.mark.parametrize("name", METHODS)


@pytest.mark.row("L1-26", "L1-27", "L1-28", "L1-29", "L1-30", "L1-31")
@pytest.mark.row("L2-03", "L2-04", "L2-05", "L2-06", "F-05", "F-18")
@each
def test_first_steps_match_hand_calculation(name):
    for opt, start, gradients, steps in METHODS[name].by_hand:
        grad = gradients if callable(gradients) else given([[g] for g in gradients])
        path = run(opt, grad, np.array([start]), len(steps)).ravel()
        assert_allclose(np.diff(path), steps, rtol=1e-14)


@pytest.mark.row("L2-09")
@pytest.mark.parametrize("name", FIRST_ORDER)
def test_first_order_methods_leave_the_saddle(name):
    saddle, opt = problems.saddle(), FIRST_ORDER[name]
    path = run(opt, saddle, saddle.start, 400, stop=lambda theta: saddle.value(theta) < -0.5)
    assert saddle.value(path[-1]) < -0.5


def in_torch(make, grad, start, steps):
    """The iterates of an optimizer of torch that is made of one tensor, in float64."""
    theta = torch.tensor(start, requires_grad=True)
    optimizer = make([theta])
    # the gradient of θ · g is g
    loss = lambda: (theta * torch.tensor(grad(theta.detach().numpy()))).sum()  # noqa: E731
    return torch_path(optimizer, theta, loss, steps)


@pytest.mark.row("L1-24", "L1-26", "L1-27", "L1-29", "L1-30", "L2-05", "L2-06", "F-05")
@pytest.mark.parametrize(
    ("opt", "decay"),
    [(opt, 0.0) for method in METHODS.values() for opt in method.in_torch]
    + [(SGD(0.05), 0.3), (Adam(0.05), 0.3)],
    ids=repr,
)
def test_paths_match_torch_over_120_steps(opt, decay):
    name, settings = optimizers.torch_equivalent(opt)
    settings |= {"weight_decay": decay} if decay else {}

    def in_groups(parameters):  # of ours, where one group has another rate and no gradients
        groups = [{"params": [torch.ones(1)]}, {"params": parameters, "lr": opt.lr}]
        return Stepped(groups, dataclasses.replace(opt, lr=1.0))

    for objective in OBJECTIVES[:3]:
        penalized = optimizers.with_l2_penalty(objective.gradient, decay)
        theta, state = objective.start, opt.init(objective.start)
        ours = [opt.interim(theta, state)]  # for Nesterov they are what torch keeps
        for _ in range(120):
            theta, state = opt.step(theta, state, penalized)
            ours.append(opt.interim(theta, state))
        make = partial(getattr(torch.optim, name), foreach=False, **settings)
        theirs = in_torch(make, objective.gradient, objective.start, 120)
        grouped = in_torch(in_groups, penalized, objective.start, 120)
        assert_allclose(grouped, theirs, rtol=0, atol=4e-15)
        # a comparison of two paths that stand still would prove nothing
        assert np.linalg.norm(ours[-1] - ours[0]) > 0.05
        assert_allclose(ours, theirs, rtol=0, atol=4e-15)


def nest(row):
    """Five numbers in a nested tree, with a matrix and a single number among them."""
    return {"layer": [{"weight": row[:4].reshape(2, 2)}, (row[4:].reshape(()),)]}


def flatten(tree):
    """The numbers of that tree in a row again."""
    [layer, (bias,)] = tree["layer"]
    return np.append(np.asarray(layer["weight"]).ravel(), float(bias))


@pytest.mark.row("L1-24", "L1-26", "L1-27", "L1-28", "L1-29", "L1-30", "L1-31", "L2-05", "L2-06")
@pytest.mark.parametrize("name", [name for name in METHODS if name != "Muon"])  # needs no vectors
def test_same_optimizer_steps_arrays_tensors_and_trees(name):
    opt, objective = METHODS[name].opt, bowl()
    expected = run(opt, objective, objective.start, 20)
    for kind in (np.asarray, torch.from_numpy):
        if name == "Newton":
            opt = dataclasses.replace(
                opt, hessian=lambda theta, kind=kind: kind(objective.hessian(objective.start))
            )

        def gradient(theta, kind=kind):
            return kind(objective.gradient(np.asarray(theta)))

        start = kind(objective.start)
        rows = run(opt, gradient, start, 20)
        assert {type(theta) for theta in rows} == {type(start)}
        assert_allclose(np.stack(list(rows)), expected, rtol=0, atol=1e-14)
        trees = run(opt, lambda tree, g=gradient: nest(g(flatten(tree))), nest(start), 20)
        assert isinstance(trees[-1]["layer"][1], tuple)
        assert_allclose([*map(flatten, trees)], expected, rtol=0, atol=1e-14)


@kinds
@each
def test_step_preserves_arguments_dtype_and_shape(name, kind):
    of = np if kind is np.array else torch
    for dtype in (of.float32, of.float64):
        opt, g = METHODS[name].opt, kind(np.full((2, 3), 2.0), dtype=dtype)
        if name == "Newton":
            eye = kind(np.eye(6), dtype=dtype)
            opt = dataclasses.replace(opt, hessian=lambda theta, eye=eye: eye)
        theta = torch.nn.Parameter(g / 2) if of is torch else g / 2
        state = opt.init(theta)
        for _ in range(3):
            before = copy.deepcopy((theta, *state, g))
            new, after = opt.step(theta, state, lambda theta, g=g: g)
            for old, now in zip(before, (theta, *state, g), strict=True):
                assert torch.as_tensor(old == now).all()
            theta, state = new, after
            for array in (theta, *state[1:]):
                assert (array.dtype, array.shape) == (dtype, g.shape)
                assert not getattr(array, "requires_grad", False)


def test_tensor_stays_on_its_device():
    # the meta device computes shapes only, and refuses to meet a tensor of another device
    for opt in FIRST_ORDER.values():
        theta = torch.ones(3, device="meta")
        state = opt.init(theta)
        for _ in range(2):
            theta, state = opt.step(theta, state, identity, check_finite=False)
        assert {tensor.device.type for tensor in (theta, *state[1:])} == {"meta"}


@pytest.mark.row("L1-24", "L1-25")
def test_run_obeys_stop_criterion_and_rate_schedule():
    # θ ← θ/2 from 8: the first value below 1 is 0.5, after 4 steps
    for steps, stop, expected in (
        (99, lambda t: t[0] < 1, [8, 4, 2, 1, 0.5]),
        (0, None, [8]),
        (9, lambda t: True, [8]),
    ):
        path = run(SGD(0.5), identity, np.array([8.0]), steps, stop=stop)
        assert_array_equal(path.ravel(), expected)
    # g = 1, rates 1, 0.5, 0.25
    path = run(SGD(optimizers.ExponentialDecay(1.0, 0.5)), np.ones_like, np.zeros(1), 3)
    assert_array_equal(path.ravel(), [0, -1, -1.5, -1.75])


@pytest.mark.row("L1-24")
def test_minibatch_gradient_is_unbiased_and_draws_without_repetition(rng):
    y, drawn = rng.normal(size=6), []

    def mean(theta, rows):
        drawn.append(tuple(sorted(rows)))
        return theta - y[rows].mean()

    grad = optimizers.minibatch_gradient(mean, m=6, n=2, rng=rng)
    estimates = np.array([grad(np.zeros(1)) for _ in range(3000)])
    assert len(set(drawn)) == 15  # every pair of 6 comes up, and nothing else
    # oracle: the spread of a mean of n from m without repetition, σ²/n (m − n)/(m − 1)
    spread = math.sqrt(y.var() / 2 * 4 / 5)
    assert estimates.mean() == pytest.approx(-y.mean(), abs=5 * spread / math.sqrt(3000))
    assert estimates.std() == pytest.approx(spread, rel=0.1)


def in_turn(optimizer, step, *schedulers):
    return of.SequentialLR(optimizer, [*schedulers], milestones=[step])


SCHEDULES = [  # and those of torch: the rate begins at ½
    (optimizers.LinearDecay(0.5, tau=40), lambda o: of.LinearLR(o, 1.0, 0.01, total_iters=40)),
    (optimizers.PowerDecay(0.5, 0.75, 4), lambda o: of.LambdaLR(o, lambda k: (1 + k / 4) ** -0.75)),
    (optimizers.ExponentialDecay(0.5, 0.9), lambda o: of.ExponentialLR(o, 0.9)),
    (CosineDecay(0.5, tau=40), lambda o: of.CosineAnnealingLR(o, 40)),
    (optimizers.Warmup(CosineDecay(0.5, tau=36, last=0.001), steps=5),
     lambda o: in_turn(o, 5, of.LinearLR(o, 1 / 5, total_iters=4),
                       of.CosineAnnealingLR(o, 36, eta_min=0.001))),
    (optimizers.StableDecay(0.5, stable=10, tau=20),
     lambda o: in_turn(o, 10, of.ConstantLR(o, 1), of.LinearLR(o, 1.0, 0.0, total_iters=20))),
]  # fmt: skip


@pytest.mark.row("L1-25", "F-05", "F-20")
@pytest.mark.filterwarnings("ignore:.*epoch parameter")
def test_schedules_match_torch():
    for schedule, make in SCHEDULES:
        optimizer = torch.optim.SGD([torch.zeros(1)], lr=0.5)
        scheduler, rates = make(optimizer), []
        for _ in range(41):
            rates.append(optimizer.param_groups[0]["lr"])
            optimizer.step()
            scheduler.step()
        assert_allclose([schedule(k) for k in range(41)], rates, rtol=1e-13, atol=1e-15)
    assert CosineDecay(0.5, tau=40, last=0.01)(1000) == 0.01  # torch's rises again
    assert [optimizers.Warmup(0.4, steps=2)(k) for k in range(4)] == [0.2, 0.4, 0.4, 0.4]


@pytest.mark.row("F-20")
@pytest.mark.parametrize(
    "schedule", [optimizers.StableDecay(0.9, 9, 6), CosineDecay(1.4, 15), lambda k: 0.3]
)
def test_variance_sums_the_effect_of_each_noise(schedule):
    # oracle: SGD is linear here; it runs once from the start, and once for the noise of each step
    curvature, sigma, pushes = 1.2, 0.7, np.vstack([np.zeros(15), 0.7 * np.eye(15)]).T
    remaining = iter(pushes)
    starts = np.append(2.0, np.zeros(15))
    ends = run(SGD(schedule), lambda t: curvature * t + next(remaining), starts, 15)[-1]
    found = optimizers.scheduled_variance(schedule, curvature, sigma, 15, start=2.0)
    assert found == pytest.approx(np.sum(ends**2), rel=1e-12)


@pytest.mark.row("L2-04")
def test_reported_diagonal_divides_the_step(rng):
    # θ' − θ = −η G⁻¹ g, whatever the gradients were: G is read off the step itself
    nesterov = RMSPropNesterov(0.3, alpha=0.0, delta=0.1)
    for opt in (AdaGrad(0.3, delta=0.1), RMSProp(0.3, delta=0.1), nesterov):
        theta, state = np.zeros(4), opt.init(np.zeros(4))
        for g in rng.normal(size=(5, 4)):
            new, state = opt.step(theta, state, lambda theta, g=g: g)
            assert_allclose(opt.diagonal(state), -0.3 * g / (new - theta), rtol=1e-12)
            theta = new


@pytest.mark.row("F-03")
def test_three_diagonals_of_a_small_network():
    # oracle: autograd, one example after the other, every minibatch of the 8 examples, and finite
    # differences of the gradient
    torch.manual_seed(0)
    digits = load("digits")
    x, y = torch.tensor(digits.x_train[:8, 20:26]).double(), torch.from_numpy(digits.y_train[:8])
    net = torch.nn.Sequential(torch.nn.Linear(6, 4), torch.nn.Tanh(), torch.nn.Linear(4, 10))
    parameters = list(net.double().parameters())

    def gradient(values, rows=slice(None)):
        torch.nn.utils.vector_to_parameters(torch.from_numpy(values), parameters)
        parts = torch.autograd.grad(cross_entropy(net(x[rows]), y[rows]), parameters)
        return torch.cat([part.reshape(-1) for part in parts]).numpy()

    at = torch.nn.utils.parameters_to_vector(parameters).detach().numpy()
    found = optimizers.network_diagonals(net, x, y, batch=3)
    for diagonal, batch in ((found.fisher, 1), (found.adaptive**2, 3)):
        rows = itertools.combinations(range(8), batch)
        squares = [gradient(at, list(minibatch)) ** 2 for minibatch in rows]
        assert_allclose(diagonal, np.mean(squares, axis=0), rtol=1e-9, atol=1e-15)
    assert_allclose(found.hessian, np.diag(slopes(gradient, at, 1e-5)), rtol=1e-4, atol=1e-8)


@pytest.mark.row("F-21")
def test_decoupled_decay_averages_the_updates_of_adam(rng):
    # oracle: Adam, whose updates do not depend on θ once the gradients are given
    gradients, start = rng.normal(size=(60, 3)), rng.normal(size=3)
    updates = -np.diff(run(Adam(0.05), given(gradients), start, 60), axis=0) / 0.05
    left, factors = optimizers.update_weights(0.05, 0.4, 60)
    end = run(AdamW(0.05, decay=0.4), given(gradients), start, 60)[-1]
    assert_allclose(left * start - factors @ updates, end, atol=1e-13)
    assert left + 0.4 * factors.sum() == pytest.approx(1, abs=1e-14)


# --- Newton's method: L1-32, L2-07, L2-08 -----------------------------------------------------


@pytest.mark.row("L1-32")
def test_newton_solves_to_rounding_where_inverse_loses_digits():
    V = np.vander(np.linspace(1, 2, 8))
    A = V.T @ V
    [start, first] = run(Newton(hessian=lambda theta: A), lambda theta: A @ theta, np.ones(8), 1)
    assert np.linalg.cond(A) > 1e10
    assert np.linalg.norm(A @ (start - first) - A @ start) < 1e-13 * np.linalg.norm(A @ start)


@pytest.mark.row("L1-32", "F-17")
def test_newton_converges_quadratically_at_positive_definite_minimum():
    objective, start = problems.rosenbrock(), np.array([1.1, 1.1])
    path = run(Newton(hessian=objective.hessian), objective, start, 6)
    error = np.linalg.norm(path - 1, axis=1)
    # each error is about the square of the one before
    assert error[-1] < 1e-12
    assert np.all(error[4:] < 10 * error[3:-1] ** 2)


@pytest.mark.row("L1-32", "F-17")
def test_damping_frees_newton_from_saddle_and_singularity():
    saddle = problems.saddle()
    [_, first] = run(Newton(hessian=saddle.hessian), saddle, saddle.start, 1)
    assert_allclose(first, 0, atol=1e-15)  # the saddle itself, from anywhere
    # μ = 2 > −λ_min: the factors are 1 − 1/(1 + 2) along x and 1 + 1/(−1 + 2) along y
    path = run(Newton(hessian=saddle.hessian, damping=2.0), saddle, saddle.start, 3)
    assert_allclose(path, [saddle.start * [(2 / 3) ** t, 2.0**t] for t in range(4)], rtol=1e-13)
    # the Hessian of the caller is not changed by damping
    flat = np.diag([1.0, 0.0])
    run(Newton(hessian=lambda theta: flat, damping=0.5), identity, np.ones(2), 2)
    assert_array_equal(flat, np.diag([1.0, 0.0]))


@pytest.mark.row("L2-07", "P-07")
@pytest.mark.parametrize("objective", OBJECTIVES[2:])
def test_coordinates_matter_to_descent_and_not_to_newton(objective, rng):
    P = rng.normal(size=(2, 2)) + 2 * np.eye(2)
    both = objective, optimizers.change_of_variable(objective, P)
    theta, z = (run(Newton(hessian=of.hessian, lr=0.5), of, of.start, 4) for of in both)
    assert_allclose(z @ P.T, theta, rtol=1e-9, atol=1e-12)
    theta, z = (run(SGD(1e-4), of, of.start, 50) for of in both)
    assert np.abs(z @ P.T - theta).max() > 1e-4
    # equation 7 against equation 8
    theta = optimizers.preconditioned_descent(objective.gradient, P, objective.start, 1e-4, 50)
    assert_allclose(z @ P.T, theta, atol=1e-12)


@pytest.mark.row("L2-08")
def test_scaling_exponent_is_three_newton_one_gradient():
    sizes = np.geomspace(100, 10_000, 9)
    # additions and multiplications of an elimination with one right-hand side
    solve = 2 / 3 * sizes**3 + 3 / 2 * sizes**2 - 7 / 6 * sizes
    assert optimizers.scaling_exponent(sizes, solve) == pytest.approx(3, abs=0.01)
    assert optimizers.scaling_exponent(sizes, [2.0 * n for n in sizes]) == pytest.approx(1)
    calls = []
    assert 0 <= optimizers.measured_seconds(lambda: calls.append(1), repeats=3) < 1
    assert len(calls) == 3


# --- momentum on a quadratic: F-01 ------------------------------------------------------------


def heavy_ball(lr, alpha, lam):
    """The matrix of one step of momentum, written out."""
    return np.array([[1 - lr * lam, alpha], [-lr * lam, alpha]])


def radius(matrices):
    return max(np.abs(np.linalg.eigvals(M)).max() for M in matrices)


@pytest.mark.row("F-01")
@pytest.mark.parametrize("lr", [0.05, 0.3, 0.9, 1.7, 3.1])
def test_momentum_eigenvalues_match_iteration_matrix(lr):
    # oracle: LAPACK on the matrix written out
    for alpha, lam in itertools.product((0.0, 0.1, 0.5, 0.9, 0.99), (0.01, 0.5, 1.0, 2.0)):
        M, z = heavy_ball(lr, alpha, lam), optimizers.momentum_eigenvalues(lr, alpha, lam)
        assert_array_equal(optimizers.momentum_matrix(lr, alpha, lam), M)
        assert_allclose(np.poly(z), np.poly(np.linalg.eigvals(M)), atol=1e-12)
        assert np.abs(z[0]) >= np.abs(z[1]) * (1 - 1e-12)


@pytest.mark.row("F-01")
def test_momentum_coefficients_match_runs_along_eigenvectors():
    # oracle: the optimizer itself, on a quadratic whose eigenvectors are no axes
    eigenvalues, U = np.linalg.eigh(bowl().hessian(np.zeros(5)))
    measured = (run(Momentum(0.2, 0.7), bowl(), bowl().start, 60) - bowl().minimum) @ U
    predicted = [optimizers.momentum_coefficients(0.2, 0.7, float(lam), 60) for lam in eigenvalues]
    assert_allclose(measured, measured[0] * np.transpose(predicted), atol=1e-13)


@pytest.mark.row("F-25")
@pytest.mark.parametrize("product", [0.02, 0.3, 1.2, 1.9])
@pytest.mark.parametrize("alpha", [0.3, 0.7])
def test_momentum_samples_a_damped_oscillator(product, alpha):
    # oracle: the logarithm of the matrix is that of a flow, whose trace and determinant it has
    flow = scipy.linalg.logm(heavy_ball(product, alpha, 1.0))
    expected = -np.trace(flow) / (2 * np.sqrt(np.linalg.det(flow)))
    ratio = optimizers.damping_ratio(product, alpha, 1.0)
    assert ratio == pytest.approx(expected.real, rel=1e-9)
    assert (ratio < 1) == (product > (1 - math.sqrt(alpha)) ** 2)


@pytest.mark.row("F-01")
@pytest.mark.parametrize(("smallest", "largest"), [(1.0, 9.0), (0.3, 4.0), (0.01, 5.0)])
def test_optimal_momentum_beats_grid_search(smallest, largest):
    # oracle: a search over (η, α), with eigenvalues from LAPACK
    best, ends = optimizers.optimal_momentum(smallest, largest), (smallest, largest)
    # a double root is ill-conditioned
    found = radius(heavy_ball(best.lr, best.alpha, end) for end in ends)
    assert found == pytest.approx(best.rate, abs=1e-6)
    grid = itertools.product(np.linspace(0.2, 2.5, 47) * best.lr, np.linspace(0, 0.999, 60))
    radii = (radius(heavy_ball(lr, alpha, end) for end in ends) for lr, alpha in grid)
    assert min(radii) >= best.rate - 1e-6


@pytest.mark.row("F-01", "L1-27")
@pytest.mark.parametrize(("smallest", "largest"), [(0.25, 4.0), (0.01, 5.0)])
def test_standard_nesterov_is_optimal_for_its_rate(smallest, largest):
    # oracle: the matrix of one step, with eigenvalues from LAPACK
    lr, standard, rate = optimizers.standard_nesterov(smallest, largest)

    def worst(alpha):
        left = 1 - lr * np.linspace(smallest, largest, 30)  # v ← α left v − (1 − left) θ
        return radius(np.array([[a, alpha * a], [a - 1, alpha * a]]) for a in left)

    assert lr * largest == 1
    assert worst(standard) == pytest.approx(rate, abs=1e-6)  # a double root is ill-conditioned
    assert min(worst(alpha) for alpha in np.linspace(0, 0.999, 60)) >= rate - 1e-6


# --- Muon and Shampoo: F-13 -------------------------------------------------------------------

matrices = pytest.mark.parametrize("shape", [(3, 5), (4, 4), (6, 2)])


@pytest.mark.row("F-13", "F-19")
@pytest.mark.parametrize("shape", [(3, 5), (4, 4), (6, 2), (1, 3)])
@pytest.mark.parametrize(
    ("nesterov", "adjust", "decay"),
    [(True, "original", 0.0), (False, "original", 0.5), (True, "match_rms_adamw", 0.1)],
)
def test_muon_matches_torch(shape, nesterov, adjust, decay, monkeypatch, rng):
    start, gradients = rng.normal(size=shape), rng.normal(size=(50, *shape))
    opt = Muon(0.05, 0.9, nesterov, match_adamw=adjust != "original", decay=decay)
    path = np.array(run(opt, given(gradients), start, 50))
    settings = {"lr": 0.05, "momentum": 0.9, "nesterov": nesterov, "weight_decay": decay,
                "adjust_lr_fn": adjust}  # fmt: skip
    # torch orthogonalizes in bfloat16, of 8 bits
    for tolerance in (0.15, 1e-13):
        expected = in_torch(partial(torch.optim.Muon, **settings), given(gradients), start, 50)
        assert_allclose(path, expected, rtol=0, atol=tolerance)
        monkeypatch.setattr(torch.Tensor, "bfloat16", torch.Tensor.clone)


@pytest.mark.row("F-13")
@kinds
@matrices
def test_newton_schulz_maps_singular_values_by_its_polynomial(shape, kind, rng):
    # oracle: the singular value decomposition, and the polynomial on numbers
    G, polynomial = rng.normal(size=shape), [2.0315, 0, -4.775, 0, 3.4445, 0]
    U, values, Vt = np.linalg.svd(G, full_matrices=False)
    for steps in (1, 2, 5, 8):
        powers = values / np.sqrt(np.sum(values**2))
        for _ in range(steps):
            powers = np.polyval(polynomial, powers)
        found = np.asarray(optimizers.newton_schulz(kind(G), steps))
        assert_allclose(found, (U * powers) @ Vt, rtol=0, atol=1e-12)
    scaled, zero = (optimizers.newton_schulz(kind(c * G)) for c in (1e9, 0))
    assert_allclose(scaled, optimizers.newton_schulz(kind(G)), atol=1e-12)
    assert_array_equal(zero, 0)
    half = optimizers.newton_schulz(torch.from_numpy(1e3 * G).half())
    assert_allclose(half, optimizers.newton_schulz(G), atol=0.1)


@pytest.mark.row("F-13", "P-07")
@matrices
def test_shampoo_without_accumulation_is_the_polar_factor(shape, rng):
    G = rng.normal(size=shape)
    U, _, Vt = np.linalg.svd(G, full_matrices=False)
    assert_allclose(optimizers.shampoo_direction(G), U @ Vt, rtol=0, atol=1e-10)
    # a matrix of rank 1 has one direction
    u, v = G[:, 0], G[0]
    expected = np.outer(u, v) / np.linalg.norm(u) / np.linalg.norm(v)
    assert_allclose(optimizers.shampoo_direction(np.outer(u, v)), expected, rtol=0, atol=1e-10)
    assert_array_equal(optimizers.shampoo_direction(0 * G), 0)


@pytest.mark.row("F-14", "F-15")
@pytest.mark.parametrize(("lr", "curvature"), [(1e-9, 1.0), (0.3, 2.0), (1.5, 1.0), (0.5, 2.0)])
def test_averaged_variance_matches_covariance_recursion(lr, curvature):
    # oracle: the covariance of (θ_k, θ₁ + … + θ_k), step by step, from the stationary law of θ,
    # whose variance solves s² = (1 − ηλ)² s² + η²σ²
    sigma, a = 1.5, 1 - lr * curvature
    M, push = np.array([[a, 0.0], [a, 1.0]]), lr * sigma * np.ones((2, 1))
    C = np.diag([optimizers.noise_floor(lr, curvature, sigma), 0.0])
    assert C[0, 0] == pytest.approx(a**2 * C[0, 0] + (lr * sigma) ** 2, rel=1e-12)
    for steps in range(1, 200):
        C = M @ C @ M.T + push @ push.T
        found = optimizers.averaged_variance(lr, curvature, sigma, steps)
        assert found == pytest.approx(C[1, 1] / steps**2, rel=1e-10)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@kinds
def test_nonfinite_gradient_is_refused(kind, bad):
    for opt in FIRST_ORDER.values():
        theta = kind([1.0, 1.0])
        with pytest.raises(ValueError, match="gradient of step 1 must be finite, got NaN or inf"):
            opt.step(theta, opt.init(theta), lambda theta: kind([1.0, bad]))
        with np.errstate(invalid="ignore"):
            opt.step(theta, opt.init(theta), lambda theta: kind([1.0, bad]), check_finite=False)
    # a sum that overflows is no infinite gradient
    with np.errstate(over="ignore"):
        huge, zero = np.full(4, 1e308), np.zeros(4)
        theta, _ = SGD(1e-308).step(zero, SGD(0.1).init(zero), lambda theta: huge)
    assert_allclose(theta, -1.0)


def test_unusual_trees_are_stepped():
    """Keys in any order, integers as floats, empty parts, and named tuples."""
    pair = RMSProp.memory(np.ones(2), np.ones(1))
    assert type(run(SGD(0.5), identity, pair, 1)[1]) is type(pair)
    opt, theta = SGD(1.0), {"a": np.zeros(1), "b": np.zeros(1)}
    new, _ = opt.step(theta, opt.init(theta), lambda theta: {"b": -np.ones(1), "a": np.ones(1)})
    assert (list(new), new["a"][0], new["b"][0]) == (["a", "b"], -1.0, 1.0)
    for theta in (np.array([4, 2]), torch.tensor([4, 2])):
        assert_array_equal(run(SGD(0.125), identity, theta, 1)[1], [3.5, 1.75])
    theta = [{"w": np.ones(2)}, (), {}]
    new, state = Momentum(0.5).step(theta, Momentum(0.5).init(theta), identity)
    assert_array_equal(new[0]["w"], [0.5, 0.5])
    assert (new[1:], state.v[1:]) == ([(), {}], [(), {}])


def test_arrays_can_be_stepped_without_torch():
    # who optimizes NumPy arrays need not wait for torch to be loaded
    code = "import sys; import numpy as np; from optdl.optimizers import Adam, run; "
    code += "run(Adam(0.1), lambda theta: theta, np.ones(2), 3); print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
