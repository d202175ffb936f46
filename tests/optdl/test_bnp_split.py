"""The split form P·Opt(Pᵀg) against Opt on z, with P written out as a matrix."""

import copy
import gc
import inspect
import math
import weakref
from contextlib import nullcontext

import numpy as np
import pytest
import torch
from torch import nn
from torch.optim.optimizer import _global_optimizer_pre_hooks

from optdl.bnp import BNP, optimizers, split_adam_step

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
    "depthwise": lambda: nn.Conv2d(4, 8, 3, groups=4),
    "reflect": lambda: nn.Conv2d(4, 6, 3, padding=1, padding_mode="reflect"),
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


def assert_on_z(layer, name, steps):
    """Compare steps of each form with those of the optimizer on z, with P as a matrix."""
    make, options = OPTIMIZERS[name]
    for form in ("split", "attach"):
        module = build(layer)
        x = inputs(module)
        expected = opt_in_z(module, x, make, options, steps)
        preconditioner, optimizer = BNP(module, rho=0.0), make(module.parameters(), **options)
        if form == "attach":
            preconditioner.attach(optimizer)
        for _ in range(steps):
            optimizer.zero_grad()
            loss_of(module(x)).backward()
            with preconditioner.split() if form == "split" else nullcontext():
                optimizer.step()
        assert_equal_columns(module, expected)


@pytest.mark.row("F-11")
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_split_form_matches_optimizer_on_z(name):
    assert_on_z("dense", name, 6)


@pytest.mark.row("F-11")
@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("name", ["momentum", "AdamW", "RMSprop"])
def test_split_form_works_for_all_layers(layer, name):
    assert_on_z(layer, name, 4)


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


# --- What the block leaves as it is -----------------------------------------------------------


def differentiated(layer="convolution", dtype=torch.float64):
    module = build(layer).to(dtype)
    preconditioner = BNP(module, rho=0.5)
    loss_of(module(inputs(module).to(dtype))).backward()
    return module, preconditioner, [p.detach().clone() for p in module.parameters()]


@pytest.mark.row("F-11")
@pytest.mark.parametrize("form", ["step", "split"])
def test_sgd_weight_decay_ends_at_ridge_in_z(form):
    """The minimum of ½·mean (wᵀh + b − y)² + ½ω‖P⁻¹θ‖², by solving a linear system."""
    module = nn.Linear(3, 1).double()
    x = inputs(module, 20)
    y = x.sum(1, keepdim=True) + torch.randn(20, 1, dtype=torch.float64)
    inverse, H = np.linalg.inv(matrices(module, x)[0]), np.column_stack([np.ones(20), x.numpy()])
    penalty = 0.3 * inverse.T @ inverse
    sgd = torch.optim.SGD(module.parameters(), lr=0.4, weight_decay=0.3)
    preconditioner = BNP(module, rho=0.0)
    for _ in range(400):
        sgd.zero_grad()
        ((module(x) - y).square().mean() / 2).backward()
        if form == "step":
            preconditioner.step()
        with preconditioner.split() if form == "split" else nullcontext():
            sgd.step()
    expected = np.linalg.solve(H.T @ H / 20 + penalty, H.T @ y.numpy() / 20)
    assert_close(np.vstack(columns_of(module)), expected, 1e-9)


@pytest.mark.parametrize("layer", ["dense", "convolution", "no bias"])
def test_half_precision_matches_single_precision(layer):
    moved = []
    for dtype in (torch.float32, torch.bfloat16):
        module = build(layer).bfloat16().to(dtype)
        before = copy.deepcopy(module)
        preconditioner = BNP(module, rho=0.0)
        adam = torch.optim.Adam(module.parameters(), lr=0.05)
        loss_of(module(inputs(module).bfloat16().to(dtype)).float()).backward()
        with preconditioner.split():
            adam.step()
        assert module.weight.dtype == dtype
        moved.append((module.weight.float() - before.weight.float()).detach().numpy())
    assert np.abs(moved[1] - moved[0]).max() < 0.1 * np.abs(moved[0]).max()


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


# --- L-BFGS, and optimizers that want the split form -------------------------------------------


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


def test_split_form_neither_warns_nor_leaves_hooks(monkeypatch):
    # what tests before this one still hold (a failure's frames, a fixture) is none of its business
    monkeypatch.setattr(optimizers, "_watching", weakref.WeakSet())
    monkeypatch.setattr(optimizers, "_hook", None)
    others = len(_global_optimizer_pre_hooks)
    module, preconditioner = stepped(lambda p: torch.optim.SGD(p, lr=0.1))
    adam = torch.optim.Adam(module.parameters())
    loss_of(module(inputs(module))).backward()
    with preconditioner.split():
        adam.step()
    assert optimizers._hook is not None
    preconditioner.remove()
    assert optimizers._hook is None
    assert len(_global_optimizer_pre_hooks) == others
    adam.step()
    _, preconditioner = stepped(lambda p: torch.optim.SGD(p, lr=0.1))
    assert len(optimizers._watching) == 1
    del preconditioner
    gc.collect()
    assert not optimizers._watching


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
