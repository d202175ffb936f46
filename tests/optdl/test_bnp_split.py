"""The split form P·Opt(Pᵀg) against Opt on z, with P written out as a matrix."""

import copy
import gc
import inspect
import io
import math
import warnings

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.optim.optimizer import _global_optimizer_pre_hooks

from optdl.bnp import BNP, optimizers, split_adam_step
from optdl.data import Examples
from optdl.training import train

torch.set_num_threads(1)

OPTIMIZERS = {
    "SGD": (torch.optim.SGD, {"lr": 0.3}),
    "SGD, decay": (torch.optim.SGD, {"lr": 0.3, "weight_decay": 0.1}),
    "momentum": (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01}),
    "Nesterov": (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    "Adam": (torch.optim.Adam, {"lr": 0.1}),
    "Adam, decay": (torch.optim.Adam, {"lr": 0.1, "weight_decay": 0.1, "amsgrad": True}),
    "AdamW": (torch.optim.AdamW, {"lr": 0.1, "weight_decay": 0.1}),
    "AdamW, fused": (torch.optim.AdamW, {"lr": 0.1, "weight_decay": 0.1, "fused": True}),
    "AdamW, foreach": (torch.optim.AdamW, {"lr": 0.1, "weight_decay": 0.1, "foreach": True}),
    "RMSprop": (torch.optim.RMSprop, {"lr": 0.02, "momentum": 0.9, "centered": True}),
    "Adagrad": (torch.optim.Adagrad, {"lr": 0.1, "weight_decay": 0.1}),
    "Adadelta": (torch.optim.Adadelta, {"lr": 1.0}),
    "Adamax": (torch.optim.Adamax, {"lr": 0.1}),
    "NAdam": (torch.optim.NAdam, {"lr": 0.1}),
    "RAdam": (torch.optim.RAdam, {"lr": 0.1}),
    "ASGD": (torch.optim.ASGD, {"lr": 0.1}),
    "Rprop": (torch.optim.Rprop, {"lr": 0.01}),
}

LAYERS = {
    "dense": lambda: nn.Linear(5, 3),
    "dense, no bias": lambda: nn.Linear(5, 3, bias=False),
    "wide": lambda: nn.Linear(40, 2),
    "convolution": lambda: nn.Conv2d(4, 6, 3, padding=1),
    "no bias": lambda: nn.Conv2d(4, 6, 3, bias=False),
    "groups": lambda: nn.Conv2d(4, 6, (3, 1), groups=2),
    "sequence": lambda: nn.Conv1d(4, 3, 3, stride=2),
    "volume": lambda: nn.Conv3d(4, 6, (1, 2, 2), groups=2),
}


def build(layer):
    torch.manual_seed(1)
    return LAYERS[layer]().double()


def inputs(module, count=6, seed=0):
    """Return a batch with features of different sizes and means away from zero."""
    torch.manual_seed(seed)
    columns = module.weight.shape[1] * getattr(module, "groups", 1)
    shape = (count, columns, *[5] * (module.weight.ndim - 2))
    sizes = torch.logspace(-1, 1, columns).view(-1, *[1] * (module.weight.ndim - 2))
    return (2 + torch.randn(shape, dtype=torch.float64)) * sizes


def loss_of(output):
    return (output.sin() + 0.1 * output**2).mean()


# --- Oracles: P as a matrix, θ and z as columns ------------------------------------------------


def matrix(mean, var, repeats, q2, bias):
    """Return P = UD/q of one group in float64; without a bias there is nothing to center."""
    spread = var if bias else var + mean**2
    std = np.sqrt(spread + 1e-2 * spread.max() + 1e-4)
    D = np.diag(np.concatenate([[1.0], 1 / np.repeat(std, repeats)]))
    U = np.eye(len(D))
    U[0, 1:] = -np.repeat(mean, repeats)
    return (U @ D if bias else D[1:, 1:]) / math.sqrt(q2)


def matrices(module, x, statistics=None):
    """Return P of each group of a layer, from its input or from given statistics."""
    groups, axes = getattr(module, "groups", 1), (0, *range(2, x.ndim))
    mean, var = (x.numpy().mean(axes), x.numpy().var(axes)) if statistics is None else statistics
    kernel = math.prod(module.weight.shape[2:])
    columns = module.weight.shape[1] * kernel
    positions = math.prod(module(x).shape[2:])
    q2 = max(columns / len(x), math.sqrt(positions))
    return [
        matrix(*parts, kernel, q2, module.bias is not None)
        for parts in zip(np.split(mean, groups), np.split(var, groups), strict=True)
    ]


def stacked(weight, bias, groups):
    """Return the rows [b, w] of each group as the columns of a matrix."""
    columns = weight.detach().flatten(1).numpy().T
    if bias is not None:
        columns = np.vstack([bias.detach().numpy(), columns])
    return np.split(columns, groups, axis=1)


def solved(P, theta):
    return [np.linalg.solve(one, part) for one, part in zip(P, theta, strict=True)]


def pulled(P, gradient):
    return [one.T @ part for one, part in zip(P, gradient, strict=True)]


def pushed(P, z):
    return [one @ part for one, part in zip(P, z, strict=True)]


def put(module, theta):
    """Write the columns of θ into a layer."""
    theta = torch.from_numpy(np.hstack(theta))
    with torch.no_grad():
        if module.bias is not None:
            module.bias.copy_(theta[0])
            theta = theta[1:]
        module.weight.copy_(theta.T.reshape(module.weight.shape))


def columns_of(module, gradient=False):
    parts = [module.weight, module.bias]
    if gradient:
        parts = [None if p is None else p.grad for p in parts]
    return stacked(*parts, getattr(module, "groups", 1))


def assert_close(actual, expected, tolerance=1e-12):
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)


def assert_equal_columns(module, expected, tolerance=1e-12):
    for one, right in zip(columns_of(module), expected, strict=True):
        assert_close(one, right, tolerance)


def opt_in_z(module, x, make, options, steps):
    """Return θ = Pz after some steps of an optimizer on z, with P held fixed."""
    module = copy.deepcopy(module)
    P = matrices(module, x)
    z = [torch.from_numpy(part).requires_grad_() for part in solved(P, columns_of(module))]
    optimizer = make(z, **options)
    for _ in range(steps):
        put(module, pushed(P, [part.detach().numpy() for part in z]))
        module.zero_grad()
        loss_of(module(x)).backward()
        for part, gradient in zip(z, pulled(P, columns_of(module, gradient=True)), strict=True):
            part.grad = torch.from_numpy(gradient)
        optimizer.step()
    return pushed(P, [part.detach().numpy() for part in z])


# --- Equality with Opt on z -------------------------------------------------------------------


def split_steps(module, x, optimizer, steps, **options):
    preconditioner = BNP(module, rho=0.0, **options)
    for _ in range(steps):
        optimizer.zero_grad()
        loss_of(module(x)).backward()
        with preconditioner.split():
            optimizer.step()


@pytest.mark.row("F-11")
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_split_form_matches_optimizer_on_z(name):
    module, (make, options) = build("dense"), OPTIMIZERS[name]
    x = inputs(module)
    expected = opt_in_z(module, x, make, options, 6)
    split_steps(module, x, make(module.parameters(), **options), 6)
    assert_equal_columns(module, expected)


@pytest.mark.row("F-11")
@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("name", ["momentum", "AdamW", "RMSprop"])
def test_split_form_works_for_all_layers(layer, name):
    module, (make, options) = build(layer), OPTIMIZERS[name]
    x = inputs(module)
    expected = opt_in_z(module, x, make, options, 4)
    split_steps(module, x, make(module.parameters(), **options), 4)
    assert_equal_columns(module, expected)


def running(statistics, x, rho):
    """Return the statistics after one more minibatch."""
    mean, var = statistics
    return rho * mean + (1 - rho) * x.mean(0), rho * var + (1 - rho) * x.var(0)


@pytest.mark.row("F-11")
@pytest.mark.parametrize("name", ["momentum", "Adam", "AdamW"])
def test_moving_statistics_step_in_current_z(name):
    torch.manual_seed(2)
    model = nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 3)).double()
    make, options = OPTIMIZERS[name]
    options = options | {"lr": 0.03}
    twin = copy.deepcopy(model)
    layers = [twin[0], twin[2]]
    z = [torch.zeros(6, 7).double(), torch.zeros(8, 3).double()]
    theirs, ours = make(z, **options), make(model.parameters(), **options)
    preconditioner = BNP(model, rho=0.8)
    statistics = [(np.zeros(n), np.ones(n)) for n in (5, 7)]
    for step, count in enumerate((6, 3, 9, 6)):
        x = inputs(model[0], count, seed=step)
        ours.zero_grad()
        loss_of(model(x)).backward()
        with preconditioner.split():
            ours.step()
        twin.zero_grad()
        loss_of(twin(x)).backward()
        read = [x, twin[:2](x).detach()]
        before, Ps = [columns_of(layer)[0] for layer in layers], []
        for at, layer in enumerate(layers):
            statistics[at] = running(statistics[at], read[at].numpy(), 0.8)
            Ps.append(matrices(layer, read[at], statistics[at])[0])
            z[at].copy_(torch.from_numpy(np.linalg.solve(Ps[at], before[at])))
            z[at].grad = torch.from_numpy(Ps[at].T @ columns_of(layer, gradient=True)[0])
        theirs.step()
        for layer, P, part in zip(layers, Ps, z, strict=True):
            put(layer, [P @ part.numpy()])
    for one, other in zip(model.parameters(), twin.parameters(), strict=True):
        assert_close(one.detach().numpy(), other.detach().numpy())


@pytest.mark.row("F-11")
@pytest.mark.parametrize("layer", LAYERS)
def test_with_plain_descent_both_forms_agree(layer):
    module, results = build(layer), []
    for form in ("step", "split"):
        model = copy.deepcopy(module)
        preconditioner = BNP(model, rho=0.7)
        sgd = torch.optim.SGD(model.parameters(), lr=0.3, weight_decay=0.1)
        for step in range(4):
            sgd.zero_grad()
            loss_of(model(inputs(module, seed=step))).backward()
            if form == "step":
                preconditioner.step()
                sgd.step()
            else:
                with preconditioner.split():
                    sgd.step()
        results.append(np.hstack(columns_of(model)))
    assert_close(*results)


@pytest.mark.row("F-11")
def test_adam_of_the_preconditioned_gradient_is_another_method():
    """Why step() warns: P·Opt(Pᵀg) and Opt(PPᵀg) differ after one step of Adam."""
    module = build("dense")
    x, moved = inputs(module), []
    for split in (False, True):
        model = copy.deepcopy(module)
        preconditioner = BNP(model, rho=0.0)
        adam = torch.optim.Adam(model.parameters(), lr=0.01)
        loss_of(model(x)).backward()
        if split:
            with preconditioner.split():
                adam.step()
        else:
            preconditioner.step()
            with pytest.warns(UserWarning, match="before Adam"):
                adam.step()
        moved.append((model.weight - module.weight).detach().numpy())
    # Adam alone moves each weight by its rate; in z it does so there, and P scales
    assert_close(np.abs(moved[0]), 0.01, 1e-6)
    std = np.sqrt(x.numpy().var(0) + 1e-2 * x.numpy().var(0).max() + 1e-4)
    assert_close(np.abs(moved[1]), np.broadcast_to(0.01 / std, (3, 5)), 1e-6)


# --- What the block leaves as it is -----------------------------------------------------------


def differentiated(layer="convolution", dtype=torch.float64):
    module = build(layer).to(dtype)
    preconditioner = BNP(module, rho=0.5)
    loss_of(module(inputs(module).to(dtype))).backward()
    return module, preconditioner, [p.detach().clone() for p in module.parameters()]


def unchanged(module, before):
    return all(torch.equal(p, b) for p, b in zip(module.parameters(), before, strict=True))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("layer", LAYERS)
def test_idle_optimizer_leaves_parameters_bit_identical(layer, dtype):
    module, preconditioner, before = differentiated(layer, dtype)
    with preconditioner.split():
        assert not unchanged(module, before)
    assert unchanged(module, before)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_exception_restores_parameters(error):
    module, preconditioner, before = differentiated()
    adam = torch.optim.Adam(module.parameters(), lr=1.0)

    def interrupted():
        with preconditioner.split():
            adam.step()
            raise error

    with pytest.raises(error):
        interrupted()
    assert unchanged(module, before)
    module(inputs(module))  # is no longer refused


def test_grad_mode_inside_block_matches_caller():
    _, preconditioner, _ = differentiated()
    with preconditioner.split():
        assert torch.is_grad_enabled()
    _, preconditioner, _ = differentiated()
    with torch.no_grad(), preconditioner.split():
        assert not torch.is_grad_enabled()


def test_forward_pass_in_block_is_refused():
    module, preconditioner, before = differentiated()
    with (
        pytest.raises(RuntimeError, match="where its parameters are those of z"),
        preconditioner.split(),
        torch.no_grad(),
    ):
        module(inputs(module))
    assert unchanged(module, before)


def test_nested_block_is_refused():
    module, preconditioner, before = differentiated()
    with (
        pytest.raises(RuntimeError, match="found no forward pass"),
        preconditioner.split(),
        preconditioner.split(),
    ):
        pass
    assert unchanged(module, before)


@pytest.mark.parametrize("frozen", ["weight", "bias"])
def test_frozen_parameters_stay_and_others_move(frozen):
    module = build("dense")
    module.get_parameter(frozen).requires_grad_(False)
    other = nn.Linear(3, 2).double()
    model = nn.Sequential(module, other)
    x, before = inputs(module), copy.deepcopy(module)
    preconditioner = BNP(model, rho=0.0)
    adam = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=0.1)
    loss_of(model(x)).backward()
    gradient = module.weight.grad if frozen == "bias" else module.bias.grad
    gradient = gradient.clone()
    with preconditioner.split():
        adam.step()
    assert torch.equal(module.get_parameter(frozen), before.get_parameter(frozen))
    if frozen == "weight":  # Adam alone, in θ
        assert_close((module.bias - before.bias).detach(), -0.1 * gradient.sign(), 1e-6)
    else:
        square = (x**2).mean(0)
        root = (square + 1e-2 * square.max() + 1e-4).sqrt()
        moved = (module.weight - before.weight).detach()
        assert_close(moved, -0.1 * gradient.sign() / root, 1e-5)


def test_zero_gradient_layer_moves_with_momentum_in_z():
    """Momentum goes on where gradients are filled with zeros; it is that of z."""
    module = build("dense")
    model = nn.ModuleList([module, nn.Linear(5, 1).double()])
    x, P = inputs(module), matrices(module, inputs(module))
    preconditioner = BNP(model, rho=0.0)
    sgd = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    (loss_of(module(x)) + loss_of(model[1](x))).backward()
    velocity = pulled(P, columns_of(module, gradient=True))
    with preconditioner.split():
        sgd.step()
    sgd.zero_grad(set_to_none=False)
    before = columns_of(module)
    loss_of(model[1](x)).backward()
    with preconditioner.split():
        sgd.step()
    expected = before[0] - 0.1 * 0.9 * pushed(P, velocity)[0]
    assert_equal_columns(module, [expected])


# --- Weight decay -----------------------------------------------------------------------------


def ridge(x, y, penalty):
    """Return the rows [b, w] that minimize ½·mean (wᵀh + b − y)² + ½θᵀAθ."""
    H = np.column_stack([np.ones(len(x)), x.numpy()])
    return np.linalg.solve(H.T @ H / len(x) + penalty, H.T @ y.numpy() / len(x))


def regression():
    module = nn.Linear(3, 1).double()
    x = inputs(module, 20)
    return module, x, x.sum(1, keepdim=True) + torch.randn(20, 1, dtype=torch.float64)


def settled(module, x, y, optimizer, form, extra=lambda: 0.0, steps=400):
    """Return the row [b, w] after many steps on the whole data, with P held fixed."""
    preconditioner = BNP(module, rho=0.0)
    for _ in range(steps):
        optimizer.zero_grad()
        ((module(x) - y).square().mean() / 2 + extra()).backward()
        if form == "step":
            preconditioner.step()
            optimizer.step()
        else:
            with preconditioner.split():
                optimizer.step()
    return np.vstack(columns_of(module))


@pytest.mark.row("F-11")
@pytest.mark.parametrize("form", ["step", "split"])
def test_sgd_weight_decay_penalizes_z_in_both_forms(form):
    module, x, y = regression()
    inverse = np.linalg.inv(matrices(module, x)[0])
    expected = ridge(x, y, 0.3 * inverse.T @ inverse)
    sgd = torch.optim.SGD(module.parameters(), lr=0.4, weight_decay=0.3)
    assert_close(settled(module, x, y, sgd, form), expected, 1e-9)
    assert np.abs(expected - ridge(x, y, 0.3 * np.eye(4))).max() > 0.01


@pytest.mark.row("F-11")
def test_adam_weight_decay_has_ridge_fixed_point():
    module, x, y = regression()
    inverse = np.linalg.inv(matrices(module, x)[0])
    expected = ridge(x, y, 0.3 * inverse.T @ inverse)
    put(module, [expected])
    # one step: near a minimum Adam with its tiny ε amplifies rounding from step to step
    adam = torch.optim.Adam(module.parameters(), lr=1e-3, weight_decay=0.3)
    assert_close(settled(module, x, y, adam, "split", steps=1), expected, 1e-8)
    put(module, [ridge(x, y, 0.3 * np.eye(4))])
    moved = settled(module, x, y, adam, "split", steps=1) - ridge(x, y, 0.3 * np.eye(4))
    assert np.abs(moved).max() > 1e-4


@pytest.mark.row("F-11")
@pytest.mark.parametrize("form", ["step", "split"])
def test_loss_penalty_is_unchanged(form):
    module, x, y = regression()
    sgd = torch.optim.SGD(module.parameters(), lr=0.2)

    def penalty():
        return 0.15 * sum(p.square().sum() for p in module.parameters())

    found = settled(module, x, y, sgd, form, penalty, steps=1200)
    assert_close(found, ridge(x, y, 0.3 * np.eye(4)), 1e-9)


@pytest.mark.row("F-11")
@pytest.mark.parametrize("form", ["step", "split"])
@pytest.mark.filterwarnings("ignore:bnp.step.. before AdamW")
def test_decoupled_decay_shrinks_theta_itself(form):
    """The difference that decay makes to one step is −ηλθ, as without BNP."""
    results = []
    for decay in (0.0, 0.5):
        torch.manual_seed(0)
        module, x, y = regression()
        before = np.vstack(columns_of(module))
        adamw = torch.optim.AdamW(module.parameters(), lr=0.1, weight_decay=decay)
        results.append(settled(module, x, y, adamw, form, steps=1))
    assert_close(results[1] - results[0], -0.1 * 0.5 * before)


@pytest.mark.row("F-11")
def test_weight_decay_without_bias_keeps_mean_output():
    """In z the bias is q(b + Wμ), which is what has no decay there."""
    results = []
    for decay in (0.0, 0.5):
        torch.manual_seed(0)
        module, x, y = regression()
        groups = [{"params": [module.weight], "weight_decay": decay}, {"params": [module.bias]}]
        before = module.weight.detach().clone()
        adamw = torch.optim.AdamW(groups, lr=0.1, weight_decay=0.0)
        settled(module, x, y, adamw, "split", steps=1)
        results.append(copy.deepcopy(module))
    assert_close((results[1].weight - results[0].weight).detach().numpy(), (-0.05 * before).numpy())
    outputs = [module(x.mean(0)).detach().numpy() for module in results]
    assert_close(*outputs)


# --- Clipping ---------------------------------------------------------------------------------


def norm(columns):
    return math.sqrt(sum(float((part**2).sum()) for part in columns))


@pytest.mark.row("F-11")
@pytest.mark.parametrize("where", ["before step", "after step", "in split"])
@pytest.mark.parametrize("layer", ["dense", "groups"])
def test_clipping_limits_the_current_gradient(where, layer):
    module = build(layer)
    x = inputs(module)
    P = matrices(module, x)
    preconditioner = BNP(module, rho=0.0)
    loss_of(module(x)).backward()
    plain = columns_of(module, gradient=True)
    limit = 1e-3
    if where == "before step":
        found = nn.utils.clip_grad_norm_(module.parameters(), limit)
        preconditioner.step()
        assert_close(found.item(), norm(plain))
        expected = [limit / norm(plain) * g for g in pushed(P, pulled(P, plain))]
    elif where == "after step":
        preconditioner.step()
        full = pushed(P, pulled(P, plain))
        assert_close(nn.utils.clip_grad_norm_(module.parameters(), limit).item(), norm(full))
        expected = [limit / norm(full) * g for g in full]
    else:
        expected = pulled(P, plain)
        with preconditioner.split():
            found = nn.utils.clip_grad_norm_(module.parameters(), limit)
            assert_close(found.item(), norm(expected))
        expected = [limit / norm(expected) * g for g in expected]
    for one, right in zip(columns_of(module, gradient=True), expected, strict=True):
        assert_close(one, right, 1e-7)  # torch adds 1e-6 to the norm
    assert norm(columns_of(module, gradient=True)) > 1e-6


# --- Several optimizers, half precision, scaled losses -----------------------------------------


def test_two_optimizers_share_one_block():
    model = nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 2)).double()
    twin = copy.deepcopy(model)
    x = inputs(model[0])
    for net, optimizers_ in (
        (
            model,
            [
                torch.optim.SGD(model[0].parameters(), lr=0.1),
                torch.optim.Adam(model[2].parameters(), lr=0.1),
            ],
        ),
        (twin, [torch.optim.Adam(twin.parameters(), lr=0.1)]),
    ):
        preconditioner = BNP(net)
        loss_of(net(x)).backward()
        with preconditioner.split():
            for optimizer in optimizers_:
                optimizer.step()
    assert_close(model[2].weight.detach(), twin[2].weight.detach())
    assert not torch.allclose(model[0].weight, twin[0].weight)


@pytest.mark.parametrize("layer", ["dense", "convolution", "no bias"])
def test_half_precision_matches_single_precision(layer):
    moved = []
    for dtype in (torch.float32, torch.bfloat16):
        module = build(layer).bfloat16().to(dtype)
        before = copy.deepcopy(module)
        preconditioner = BNP(module, rho=0.0)
        adam = torch.optim.Adam(module.parameters(), lr=0.05)
        x = inputs(module).bfloat16().to(dtype)
        loss_of(module(x).float()).backward()
        with preconditioner.split():
            adam.step()
        assert module.weight.dtype == dtype
        moved.append((module.weight.float() - before.weight.float()).detach().numpy())
    assert np.abs(moved[1] - moved[0]).max() < 0.1 * np.abs(moved[0]).max()


def test_scaler_unscales_in_the_block():
    results = []
    for scaled in (False, True):
        module = build("dense").float()
        preconditioner = BNP(module)
        adam = torch.optim.Adam(module.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, enabled=scaled)
        scaler.scale(loss_of(module(inputs(module).float()))).backward()
        with preconditioner.split():
            scaler.step(adam)
        scaler.update()
        results.append(module.weight.detach().clone())
    assert_close(*results, 1e-5)
    before = [p.detach().clone() for p in module.parameters()]
    scaler.scale(1e38 * loss_of(module(inputs(module).float()))).backward()
    with preconditioner.split():
        scaler.step(adam)
    scaler.update()
    assert scaler.get_scale() == 512.0
    assert unchanged(module, before)


# --- L-BFGS, and optimizers that want the split form -------------------------------------------


def test_optimizer_with_closure_is_refused():
    module, preconditioner, before = differentiated("dense")
    lbfgs = torch.optim.LBFGS(module.parameters())

    def closure():
        lbfgs.zero_grad()
        value = loss_of(module(inputs(module)))
        value.backward()
        return value

    with pytest.raises(RuntimeError, match="such as LBFGS"), preconditioner.split():
        lbfgs.step(closure)
    assert unchanged(module, before)


def stepped(make, times=1, preconditioner=None, module=None):
    module = module or build("dense")
    preconditioner = preconditioner or BNP(module)
    optimizer = make(module.parameters())
    for _ in range(times):
        optimizer.zero_grad()
        loss_of(module(inputs(module))).backward()
        preconditioner.step()
        optimizer.step()
    return module, preconditioner


@pytest.mark.row("F-11")
@pytest.mark.parametrize(
    "make",
    [
        torch.optim.Adam,
        torch.optim.AdamW,
        torch.optim.RMSprop,
        torch.optim.Adagrad,
        torch.optim.Adadelta,
        torch.optim.Adamax,
        torch.optim.NAdam,
        torch.optim.RAdam,
        torch.optim.Rprop,
        torch.optim.Adafactor,
    ],
)
def test_plain_step_with_nonlinear_optimizer_warns_once(make):
    with pytest.warns(UserWarning, match=r"with bnp\.split\(\): optimizer\.step\(\)") as caught:
        stepped(make, times=3)
    [warning] = caught
    assert f"before {make.__name__}" in str(warning.message)


@pytest.mark.parametrize("make", [torch.optim.SGD, torch.optim.ASGD])
def test_linear_optimizers_do_not_warn(make):
    stepped(lambda parameters: make(parameters, lr=0.1), times=2)


def test_optimizer_of_other_parameters_does_not_warn():
    module, preconditioner = stepped(lambda p: torch.optim.SGD(p, lr=0.1))
    other = nn.Parameter(torch.ones(1))
    other.grad = torch.ones(1)
    torch.optim.Adam([other]).step()
    with pytest.warns(UserWarning, match="before Adam"):
        stepped(torch.optim.Adam, preconditioner=preconditioner, module=module)


@pytest.mark.row("F-11")
def test_step_after_block_requires_new_gradients():
    module, preconditioner, before = differentiated("dense")
    adam = torch.optim.Adam(module.parameters())
    with preconditioner.split():
        nn.utils.clip_grad_norm_(module.parameters(), 1.0)
    with pytest.raises(RuntimeError, match="Move it into the block"):
        adam.step()
    assert unchanged(module, before)
    for none in (True, False):
        adam.zero_grad(set_to_none=none)
        loss_of(module(inputs(module))).backward()
        with preconditioner.split():
            adam.step()


def test_split_form_neither_warns_nor_leaves_hooks():
    gc.collect()  # what other tests have left
    module, preconditioner = stepped(lambda p: torch.optim.SGD(p, lr=0.1))
    adam = torch.optim.Adam(module.parameters())
    loss_of(module(inputs(module))).backward()
    with preconditioner.split():
        adam.step()
    assert optimizers._hook is not None
    preconditioner.remove()
    assert optimizers._hook is None
    assert not _global_optimizer_pre_hooks
    adam.step()
    _, preconditioner = stepped(lambda p: torch.optim.SGD(p, lr=0.1))
    assert len(optimizers._watching) == 1
    del preconditioner
    gc.collect()
    assert not optimizers._watching


# --- In the loop of this course, and resumed ---------------------------------------------------


def digits():
    generator = np.random.default_rng(0)
    x = 2 + generator.normal(size=(24, 5))
    return Examples(x, (x.sum(1) > 10).astype(int))


def network():
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(5, 6), nn.ReLU(), nn.Linear(6, 2)).double()


@pytest.mark.row("F-11")
@pytest.mark.parametrize("scheduled", [False, True])
def test_train_hook_uses_split_form(scheduled):
    model, twin, examples = network(), network(), digits()
    adam = torch.optim.Adam(model.parameters(), lr=0.05)
    if scheduled:  # a schedule of torch puts a step of its own in the optimizer
        torch.optim.lr_scheduler.StepLR(adam, 1)
    found = adam.step
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        train(model, examples, adam, epochs=2, batch_size=24, hooks=[BNP(model, split=True)])
    assert adam.step == found
    theirs, preconditioner = torch.optim.Adam(twin.parameters(), lr=0.05), BNP(twin)
    x, y = torch.from_numpy(examples.x), torch.from_numpy(examples.y)
    for _ in range(2):
        theirs.zero_grad()
        functional.cross_entropy(twin(x), y).backward()
        with preconditioner.split():
            theirs.step()
    for one, other in zip(model.parameters(), twin.parameters(), strict=True):
        assert_close(one.detach().numpy(), other.detach().numpy(), 1e-11)


def test_interrupted_train_step_restores_parameters():
    model = network()
    before = [p.detach().clone() for p in model.parameters()]

    class Interrupted(torch.optim.SGD):
        def step(self, closure=None):
            super().step(closure)
            raise KeyboardInterrupt

    optimizer = Interrupted(model.parameters(), lr=0.1)
    with pytest.raises(KeyboardInterrupt):
        train(model, digits(), optimizer, epochs=1, batch_size=24, hooks=[BNP(model, split=True)])
    assert unchanged(model, before)
    assert "step" not in optimizer.__dict__


def test_resumed_training_with_adam_is_bit_identical():
    def fresh():
        model = network()
        return model, BNP(model), torch.optim.Adam(model.parameters(), lr=0.01)

    def go(model, preconditioner, adam, steps):
        for step in steps:
            adam.zero_grad()
            loss_of(model(inputs(model[0], seed=step))).backward()
            with preconditioner.split():
                adam.step()
        return torch.cat([p.detach().flatten() for p in model.parameters()])

    expected = go(*fresh(), range(6))
    first, second, file = fresh(), fresh(), io.BytesIO()
    go(*first, range(3))
    torch.save([part.state_dict() for part in first], file)
    file.seek(0)
    for part, state in zip(second, torch.load(file), strict=True):
        part.load_state_dict(state)
    assert torch.equal(go(*second, range(3, 6)), expected)


# --- One step as arrays -----------------------------------------------------------------------


@pytest.mark.row("F-11")
@pytest.mark.parametrize("outputs", [1, 4])
def test_first_adam_step_matches_torch_on_z(outputs, rng):
    G, z = rng.normal(size=(outputs, 6)), rng.normal(size=(outputs, 6))
    mean, std, q = rng.normal(2, 1, size=5), rng.uniform(0.1, 3, size=5), 1.7
    D, U = np.diag([1.0, *(1 / std)]), np.eye(6)
    U[0, 1:] = -mean
    P = U @ D / q
    parameter = torch.from_numpy(z.copy()).requires_grad_()
    parameter.grad = torch.from_numpy(G @ P)
    torch.optim.Adam([parameter], lr=0.3, eps=0.05).step()
    expected = (parameter.detach().numpy() - z) @ P.T
    weight, bias = split_adam_step(G[:, 1:], G[:, 0], mean, std, q, lr=0.3, eps=0.05)
    assert_close(np.column_stack([bias, weight]), expected)
    with pytest.raises(ValueError, match=r"^std must have shape"):
        inspect.unwrap(split_adam_step)(G[:, 1:], G[:, 0], mean, std[:4], q, lr=0.3)
