"""The table "What works with what" of the API: each of its lines is tried."""

import copy
import inspect
import io
import pickle
import re
import warnings
from contextlib import nullcontext
from functools import partial
from pathlib import Path

import pytest
import torch
import typechecking
from bnp_loops import (
    assert_same,
    batch,
    dense,
    expected,
    gradients,
    loss_of,
    matrix,
    network,
    on_z,
    stepped,
    values,
)
from torch import distributed, nn
from torch.distributed.algorithms.join import Join
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint
from two_processes import given_by_two

from optdl.bnp import BNP
from optdl.data import Examples
from optdl.training import train

torch.set_num_threads(1)
pytestmark = [
    pytest.mark.xdist_group("bnp_table"),  # several lines share two processes
    # of Dynamo itself, wherever it meets an autograd.Function
    pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning"),
]

PAGE = Path(__file__).resolve().parents[2] / "book" / "api" / "optdl_bnp.md"
TITLE = "## What works with what\n"
LINES = {}
NONLINEAR = (
    torch.optim.Adam,
    torch.optim.AdamW,
    torch.optim.RMSprop,
    torch.optim.Adagrad,
    torch.optim.Adafactor,
)


def lines_of_the_page():
    """Return the first cell of each line of the tables of the section."""
    section = PAGE.read_text(encoding="utf-8").split(TITLE)[1].split("\n## ")[0]
    rows = re.findall(r"^\|(.*)\|$", section, re.MULTILINE)
    cells = [re.split(r"(?<!\\)\|", row)[0].strip() for row in rows]
    rules = {at for at, cell in enumerate(cells) if re.fullmatch(r":?-+:?", cell)}
    return [cell for at, cell in enumerate(cells) if at not in rules and at + 1 not in rules]


def line(name):
    """Mark the test of a line."""

    def register(function):
        assert name not in LINES, name
        LINES[name] = function
        return function

    return register


@pytest.mark.row("F-11")
@pytest.mark.parametrize("name", lines_of_the_page())
def test_table_line_is_true(name, request):
    assert name in LINES, f"no test of the line {name!r}: write one, with @line"
    fixtures = inspect.signature(LINES[name]).parameters
    LINES[name](**{fixture: request.getfixturevalue(fixture) for fixture in fixtures})


def test_table_lines_match_tests():
    assert sorted(LINES) == sorted(lines_of_the_page())


def assert_refused(model, reason, skip=None):
    with pytest.raises(ValueError, match=reason):
        BNP(model)
    if skip is not None:
        BNP(model, skip=skip)


# --- Optimizers -------------------------------------------------------------------------------


def trained(form, make, steps=3, model=dense, x=None, **options):
    """Return the parameters after steps of optimizers in a form, on one batch, so that P stays."""
    net, x = model(), batch() if x is None else x
    preconditioner, optimizers = BNP(net, **{"rho": 0.0} | options), make(net)
    if form in ("attach", "closure"):
        preconditioner.attach(*optimizers)

    def closure():
        net.zero_grad()
        value = loss_of(net(x))
        value.backward()
        return value

    for _ in range(steps):
        if form == "closure":
            for optimizer in optimizers:
                optimizer.step(closure)
            continue
        closure()
        if form == "step":
            preconditioner.step()
        with preconditioner.split() if form == "split" else nullcontext():
            for optimizer in optimizers:
                optimizer.step()
    return values(net)


def of(make, **options):
    """Return functions that make one optimizer for a layer, and for its parameters in z."""
    return (
        lambda net: [make(net.parameters(), **options)],
        lambda bias, weight: [make([weight, bias], **options)],
    )


@line("`attach(optimizer)`")
def _():
    for make, options in (
        (torch.optim.AdamW, {"lr": 0.1, "weight_decay": 0.5}),
        (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9}),
    ):
        on_layer, in_z = of(make, **options)
        for form in ("attach", "closure", "split"):
            assert_same(trained(form, on_layer), on_z(in_z, 3))


@line("SGD, momentum, Nesterov, ASGD")
def _():
    for make, options in (
        (torch.optim.SGD, {}),
        (torch.optim.SGD, {"momentum": 0.9, "weight_decay": 0.1}),
        (torch.optim.SGD, {"momentum": 0.9, "nesterov": True}),
        (torch.optim.ASGD, {}),
    ):
        on_layer, in_z = of(make, lr=0.1, **options)
        assert_same(trained("step", on_layer), on_z(in_z, 3))


def sgd_with(own, weight, bias):
    """Return SGD with settings of its own for the bias, or with None for one of the two."""
    groups = [{"params": [weight]}] * (weight is not None)
    return [torch.optim.SGD(groups + [{"params": [bias]} | own] * (bias is not None), lr=0.1)]


@line("Another rate, decay or momentum for biases")
def _():
    for own in ({"lr": 0.05}, {"weight_decay": 0.5}, {"momentum": 0.5}):
        make = partial(sgd_with, own)
        in_z = on_z(lambda bias, weight, make=make: make(weight, bias), 3)
        assert_same(trained("attach", lambda net, make=make: make(net.weight, net.bias)), in_z)
        with pytest.warns(
            UserWarning, match=f"weight and bias of '' differ in {next(iter(own))}.*attach"
        ):
            wrong = trained("step", lambda net, make=make: make(net.weight, net.bias))
        assert not torch.allclose(wrong[1], in_z[1])
    with pytest.warns(UserWarning, match="it moves only one of weight and bias of ''"):
        trained("step", lambda net: sgd_with({}, net.weight, None))
    with pytest.warns(UserWarning, match="it moves only one of weight and bias of ''"):
        trained("step", lambda net: sgd_with({}, None, net.bias))

    def layerwise(net):  # a rate of its own for each layer changes nothing
        groups = [{"params": net[at].parameters(), "lr": 0.1 + at} for at in (0, 2)]
        return [torch.optim.SGD(groups)]

    assert_same(*(trained(form, layerwise, model=network) for form in ("step", "attach")))


@line("Adam, AdamW, RMSprop, Adagrad, any other")
def _():
    class SignSGD(torch.optim.SGD):
        pass

    for make in (*NONLINEAR, SignSGD):
        on_layer, _ = of(make)
        with pytest.warns(UserWarning, match=rf"before {make.__name__}: .*bnp\.attach") as caught:
            step = trained("step", on_layer)
        assert len(caught) == 1
        assert make is SignSGD or not torch.allclose(step[0], trained("attach", on_layer)[0])


@line("`foreach=True`, `fused=True`")
def _():
    found = []
    for options in ({"foreach": False}, {"foreach": True}, {"fused": True}):
        on_layer, _ = of(torch.optim.AdamW, lr=0.01, **options)
        found.append(trained("attach", on_layer, model=network))
    assert_same(found[0], found[1])
    assert_same(found[0], found[2])


@line("A step after the block of `split()`")
def _():
    for parameter in ("0.weight", "2.bias"):
        model = network()
        preconditioner = BNP(model)
        adam = torch.optim.Adam([model.get_parameter(parameter)])
        for none in (True, False):  # new gradients may be stepped on in their block
            adam.zero_grad(set_to_none=none)
            loss_of(model(batch())).backward()
            with preconditioner.split():
                adam.step()
        with pytest.raises(RuntimeError, match="Move it into the block"):
            adam.step()


@line("An optimizer that is not attached, beside one that is")
def _():
    model = network()
    preconditioner = BNP(model)
    weights, biases = ([p for p in model.parameters() if p.ndim == n] for n in (2, 1))
    sgd, adam = torch.optim.SGD(weights, lr=0.1), torch.optim.Adam(biases)
    attachment = preconditioner.attach(sgd)
    other = nn.Parameter(torch.ones(1))
    other.grad = torch.ones(1)
    torch.optim.Adam([other]).step()  # moves nothing that BNP knows
    loss_of(model(batch())).backward()
    with pytest.raises(RuntimeError, match=r"Adam moves layers .* Attach it as well"):
        adam.step()
    with pytest.raises(ValueError, match="attached already"):
        preconditioner.attach(adam, sgd)
    with pytest.raises(RuntimeError, match=r"leave bnp\.step\(\) out"):
        preconditioner.step()
    with pytest.raises(TypeError, match=r"expected a torch\.optim\.Optimizer, got Linear"):
        preconditioner.attach(model[0])
    attachment.detach()
    assert "step" not in vars(sgd)
    assert not sgd._optimizer_step_pre_hooks
    assert_same(stepped(model, preconditioner, batch()), expected())


@line("LBFGS")
def _():
    for search in (None, "strong_wolfe"):
        on_layer, in_z = of(torch.optim.LBFGS, lr=0.1, max_iter=5, line_search_fn=search)
        assert_same(trained("closure", on_layer), on_z(in_z, 3), 1e-9)
    layer = dense()
    preconditioner, lbfgs = BNP(layer), torch.optim.LBFGS(layer.parameters())
    loss_of(layer(batch())).backward()
    with pytest.raises(RuntimeError, match=r"such as LBFGS: bnp\.attach"), preconditioner.split():
        lbfgs.step(lambda: loss_of(layer(batch())))
    assert_same(values(layer), values(dense()), 0.0)


@line("Several optimizers, parameter groups")
def _():
    def on_layer(net):
        return [torch.optim.Muon([net.weight], lr=0.1), torch.optim.AdamW([net.bias], lr=0.1)]

    def in_z(bias, weight):
        return [torch.optim.Muon([weight], lr=0.1), torch.optim.AdamW([bias], lr=0.1)]

    for form in ("attach", "split"):
        assert_same(trained(form, on_layer), on_z(in_z, 3), 1e-2)  # Muon works in bfloat16

    def parts(net):
        return [torch.optim.Adam(net[at].parameters(), lr=0.01) for at in (0, 2)]

    def groups(net):
        return [torch.optim.Adam([{"params": [p]} for p in net.parameters()], lr=0.01)]

    for form in ("attach", "split"):
        assert_same(*(trained(form, make, model=network) for make in (parts, groups)))


@line("Learning rate schedules")
def _():
    def halving(parameters, early=True):
        """Return AdamW whose rate is halved by each step, with the schedule made early or late."""
        adamw, schedule = torch.optim.AdamW(parameters, lr=0.1), []
        make = partial(torch.optim.lr_scheduler.ExponentialLR, adamw, 0.5)
        schedule += [make()] * early

        def halve(*_):
            schedule.extend([make()] * (not schedule))
            schedule[0].step()

        adamw.register_step_post_hook(halve)
        return [adamw]

    in_z = on_z(lambda bias, weight: halving([weight, bias]), 3)
    assert_same(trained("attach", lambda net: halving(net.parameters())), in_z)
    assert_same(trained("attach", lambda net: halving(net.parameters(), early=False)), in_z)


class Lightning:
    """Stands for the wrapper of Lightning, and by ``step`` for its automatic optimization."""

    def __init__(self, optimizer):
        self.optimizer = optimizer

    def step(self, closure):
        return self.optimizer.step(closure=closure)


class Accelerated(torch.optim.Optimizer):
    """Stands for the wrapper of Accelerate, which keeps the method that it finds."""

    def __init__(self, optimizer):
        self.optimizer, self.method = optimizer, optimizer.step
        self.param_groups = optimizer.param_groups

    def step(self, closure=None):
        hidden = self.optimizer.__dict__.pop("step", None)
        self.optimizer.step = self.method
        result = self.optimizer.step(closure)
        del self.optimizer.step
        if hidden is not None:
            self.optimizer.__dict__["step"] = hidden
        return result


@line("Lightning, Accelerate and other wrappers")
def _():
    on_layer, in_z = of(torch.optim.AdamW, lr=0.1)
    for form, kind in (("closure", Lightning), ("attach", Accelerated), ("closure", Accelerated)):
        found = trained(form, lambda net, kind=kind: [kind(*on_layer(net))])
        assert_same(found, on_z(in_z, 3))


class Sharpness(torch.optim.SGD):
    """An optimizer that takes its gradient elsewhere, as SAM does."""

    @torch.no_grad()
    def step(self, closure=None):
        for parameter in self.param_groups[0]["params"]:
            parameter.add_(0.1)
        with torch.enable_grad():
            closure()
        super().step()


@line("An optimizer that moves before its closure, such as SAM")
def _():
    model = network()
    with pytest.raises(RuntimeError, match="Sharpness moves the parameters before it calls its"):
        trained("closure", of(Sharpness, lr=0.1)[0], model=lambda: model)


@line("A step in a hook of each parameter")
def _():
    layer = dense()
    optimizers = {p: torch.optim.SGD([p], 0.1) for p in layer.parameters()}
    BNP(layer).attach(*optimizers.values())
    for parameter in layer.parameters():
        parameter.register_post_accumulate_grad_hook(lambda p: optimizers[p].step())
    with pytest.raises(RuntimeError, match="before the gradient of its weight is there"):
        loss_of(layer(batch())).backward()


@line("An optimizer of another model")
def _():
    with pytest.raises(ValueError, match="moves no parameter of the layers"):
        BNP(network()).attach(torch.optim.SGD(network().parameters(), 0.1))
    model = nn.Sequential(nn.Embedding(4, 5), network())
    tables, rest = (torch.optim.SGD(part.parameters(), 0.1) for part in model)
    BNP(model).attach(tables, rest)


class Interrupted(torch.optim.SGD):
    """An optimizer that is interrupted when it has moved everything."""

    def step(self, closure=None):
        super().step(closure)
        raise KeyboardInterrupt


@line("An interrupted step")
def _():
    torch.optim.SGD(network().parameters())  # its step has hooks now, and the subclass has its own
    for form in ("attach", "closure", "split"):
        model = network()
        with pytest.raises(KeyboardInterrupt):
            trained(form, of(Interrupted, lr=1.0)[0], model=lambda model=model: model)
        assert_same(values(model), values(network()), 0.0)
        model(batch())  # is not refused


@line("`weight_decay` of SGD")
def _():
    """One step moves θ by −ηλPPᵀ∇(½‖P⁻¹θ‖²) = −ηλθ more, whichever the form."""
    for form in ("step", "attach"):
        plain, decayed = (
            trained(form, of(torch.optim.SGD, lr=0.1, weight_decay=decay)[0], 1, network)
            for decay in (0.0, 0.5)
        )
        before = values(network())
        assert_same(decayed, [p - 0.05 * b for p, b in zip(plain, before, strict=True)])


@line("Decoupled weight decay (AdamW)")
def _():
    """Without decay of the biases each moves by ηλWμ: in z it is q(b + Wμ), which stays."""
    for decayed_biases in (True, False):
        found = []
        for decay in (0.0, 0.5):

            def adamw(net, decay=decay, biases=decayed_biases):
                groups = [{"params": [net.weight], "weight_decay": decay}]
                groups += [{"params": [net.bias], "weight_decay": decay * biases}]
                return [torch.optim.AdamW(groups, lr=0.1)]

            found.append(trained("attach", adamw, 1))
        weight, bias = values(dense())
        moved = -0.05 * bias if decayed_biases else 0.05 * weight @ batch().mean(0)
        assert_same(found[1], [found[0][0] - 0.05 * weight, found[0][1] + moved])


@line("Clipping by norm")
def _():
    P = matrix(batch().mean(0), batch().var(0, correction=0))
    for where in ("before", "after", "in"):
        model = dense()
        preconditioner = BNP(model, rho=0.0)
        loss_of(model(batch())).backward()
        g = torch.cat([model.bias.grad[None], model.weight.grad.T])
        right = {"before": g, "after": P @ P.T @ g, "in": P.T @ g}[where]
        if where == "after":
            preconditioner.step()
        with preconditioner.split() if where == "in" else nullcontext():
            norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        assert_same(norm, right.norm(), 1e-10)


@line("`GradScaler`")
def _():
    x = batch(dtype=torch.float32)
    found = {}
    for form in ("plain", "step", "split", "attach"):
        for fused in (False, True):
            model = network(torch.float32)
            bnp, sgd = BNP(model), torch.optim.SGD(model.parameters(), lr=0.1, fused=fused)
            scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, enabled=form != "plain")
            if form == "attach":
                bnp.attach(sgd)
            for given in (x, x.index_fill(0, torch.tensor(1), torch.inf), x):
                if form == "plain" and not given.isfinite().all():
                    continue
                before = values(model), bnp.state_dict()["0"]["mean"]
                sgd.zero_grad()
                scaler.scale(loss_of(model(given))).backward()
                if form in ("plain", "step"):
                    bnp.step()
                with bnp.split() if form == "split" else nullcontext():
                    scaler.step(sgd)
                scaler.update()
                if not given.isfinite().all():  # the step is skipped, and nothing has changed
                    assert scaler.get_scale() == 512.0
                    assert_same((values(model), bnp.state_dict()["0"]["mean"]), before, 0.0)
            found[form, fused] = values(model)
    for other in found.values():
        assert_same(other, found["plain", False], 1e-5)
    for unscaled in (False, True):
        model = network(torch.float32)
        parts = [[p for p in model.parameters() if p.ndim == n] for n in (2, 1)]
        optimizers = [torch.optim.SGD(part, lr=0.1) for part in parts]
        BNP(model).attach(*optimizers)
        scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
        scaler.scale(loss_of(model(x))).backward()
        if not unscaled:
            with pytest.raises(RuntimeError, match=r"scaler\.unscale_\(optimizer\) for each"):
                scaler.step(optimizers[0])
            continue
        for act in (scaler.unscale_, scaler.step):
            for optimizer in optimizers:
                act(optimizer)
        single, _ = of(torch.optim.SGD, lr=0.1)
        assert_same(
            values(model), trained("split", single, 1, partial(network, x.dtype), x, rho=0.99), 1e-5
        )


# --- The loop ---------------------------------------------------------------------------------


@line("Gradient accumulation")
def _():
    model = network()
    assert_same(stepped(model, BNP(model), *batch().split(2)), expected())


@line("A module used twice")
def _():
    layer = nn.Linear(3, 3).double()
    preconditioner, x = BNP(layer, rho=0.0), batch(shape=(3,))
    hidden = layer(x)
    loss_of(layer(hidden)).backward()
    preconditioner.step()
    both = torch.cat([x, hidden.detach()])
    state = preconditioner.state_dict()[""]
    assert_same([state["mean"][0]], [both.mean(0)])
    assert_same([state["var"][0]], [both.var(0, correction=0)])


@line("Evaluation, in `eval()` or not")
def _():
    model = network()
    preconditioner = BNP(model)
    for mode in (True, False):
        model.train(mode)
        model(batch(seed=1))
        with torch.no_grad():
            model(batch(seed=2))
    assert_same(stepped(model, preconditioner, batch()), expected())


@line("A forward pass without a backward pass")
def _():
    model = network()
    preconditioner = BNP(model)
    kept = [model(batch(seed=seed)) for seed in range(1, 4)]
    assert_same(stepped(model, preconditioner, batch()), expected())
    assert len(kept) == 3


@line("A gradient that is thrown away")
def _():
    for none in (True, False):
        model = network()
        preconditioner = BNP(model)
        loss_of(model(batch(seed=1))).backward()
        model.zero_grad(set_to_none=none)
        if not none:
            preconditioner.reset()
        loss_of(model(batch())).backward()
        preconditioner.step()
        assert_same(gradients(model), expected())


@line("`torch.autograd.grad` with respect to the input")
def _():
    model = network()
    preconditioner, x = BNP(model), batch(seed=1).requires_grad_()
    for part in batch().split(4):
        (loss_of(model(part)) / 2).backward()
        torch.autograd.grad(loss_of(model(x)), x)
    preconditioner.step()
    assert_same(gradients(model), expected())


@line("`torch.autograd.grad` with respect to the weights")
def _():
    model = network()
    preconditioner = BNP(model)
    found = torch.autograd.grad(loss_of(model(batch())), [*model.parameters()])
    for parameter, gradient in zip(model.parameters(), found, strict=True):
        parameter.grad = gradient
    preconditioner.step()
    assert_same(gradients(model), expected())


@line("A backward pass twice through one forward pass")
def _():
    model = network()
    preconditioner = BNP(model)
    value = loss_of(model(batch(2)))
    (0.25 * value).backward(retain_graph=True)
    (0.75 * value).backward()
    preconditioner.step()
    assert_same(gradients(model), expected(x=batch(2)))  # q² = 5/2: N is 2, not 4


@line("A layer in `eval()` that is trained")
def _():
    model = network()
    model[2].eval()
    assert_same(stepped(model, BNP(model), batch()), expected())
    model = network().eval()
    assert_same(stepped(model, BNP(model), batch()), expected())


@line("A frozen weight, a frozen bias")
def _():
    model = network()
    model[0].requires_grad_(False)
    model[0].weight.grad = torch.ones_like(model[0].weight)  # of a time before
    model[2].bias.requires_grad_(False)
    preconditioner = BNP(model, rho=0.0, eps1=0.0, eps2=1e-12)
    loss_of(model(batch())).backward()
    plain = model[2].weight.grad.clone()
    preconditioner.step()
    hidden = model[:2](batch()).detach()
    assert_same([model[2].weight.grad], [plain / (hidden**2).mean(0)], 1e-9)
    assert not preconditioner.state_dict()["0"]["mean"].any()


@line("A layer that did not run")
def _():
    model = nn.ModuleList([nn.Linear(5, 2), nn.Linear(5, 2)]).double()
    preconditioner, adam = BNP(model), torch.optim.Adam(model.parameters(), lr=0.1)
    before = model[1].weight.detach().clone()
    loss_of(model[0](batch())).backward()
    with preconditioner.split():
        adam.step()
    assert torch.equal(model[1].weight, before)
    assert not preconditioner.state_dict()["1"]["mean"].any()
    model[0].zero_grad()
    loss_of(model[1](batch())).backward()
    preconditioner.step()
    kept = model[1].weight.grad.clone()
    model[0].zero_grad()
    loss_of(model[0](batch())).backward()
    preconditioner.step()  # the other one still holds the gradient of an old step
    assert torch.equal(model[1].weight.grad, kept)
    model[0].zero_grad()
    loss_of(model[0](batch())).backward()
    with preconditioner.split():
        assert torch.equal(model[1].weight.grad, kept)


@line("An empty minibatch")
def _():
    model = nn.ModuleList([nn.Linear(5, 2), nn.Linear(5, 2)]).double()
    preconditioner = BNP(model)
    (model[0](batch()).sum() + model[1](batch(0)).sum()).backward()
    preconditioner.step()  # an expert to which no example was sent
    assert not model[1].weight.grad.any()
    assert not preconditioner.state_dict()["1"]["mean"].any()
    model.zero_grad()
    model[0](batch(0)).sum().backward()
    with pytest.raises(ValueError, match="all inputs had 0 rows"):
        preconditioner.step()
    assert stepped(model[0], preconditioner, batch())


@line("NaN or infinity in an input")
def _():
    model, x = network(), batch()
    x[0, 0] = torch.inf
    preconditioner = BNP(model, check_finite="raise")
    loss_of(model(x)).backward()
    with pytest.raises(FloatingPointError, match="inputs of '0' hold NaN or infinity"):
        preconditioner.step()
    assert not preconditioner.state_dict()["0"]["mean"].any()


@line("Padding")
def _():
    model, rows = network(), torch.arange(12) % 3 < 2
    preconditioner = BNP(model)
    x = torch.full((12, 5), 99.0).double()
    x[rows] = batch()
    with preconditioner.mask(rows):
        loss_of(model(x)[rows]).backward()
    preconditioner.step()
    assert_same(gradients(model), expected())


@line("A penalty on the weights in the loss")
def _():
    """It is part of g, and the step is PPᵀg: EWC, from the start W₀ or not, L1, orthogonality."""
    for penalty in (
        lambda w: (w - dense().weight.detach()).square().sum(),
        lambda w: (w - 1).square().sum(),
        lambda w: w.abs().sum(),
        lambda w: (w @ w.T - torch.eye(3)).square().sum(),
    ):
        layer = dense()
        with torch.no_grad():
            layer.weight.mul_(1.5)
        preconditioner = BNP(layer, rho=0.0)
        for _ in range(3):
            layer.zero_grad()
            (loss_of(layer(batch())) + penalty(layer.weight)).backward()
            found = gradients(layer)
            preconditioner.step()
            assert_same(gradients(layer), times_ppt(batch(), *found))


def times_ppt(x, weight, bias):
    P = matrix(x.mean(0), x.var(0, correction=0))
    result = P @ P.T @ torch.cat([bias[None], weight.T])
    return [result[1:].T, result[0]]


@line("`functional.linear(x, layer.weight)` beside `layer(x)`")
def _():
    layer = dense()
    preconditioner = BNP(layer, rho=0.0)
    tied = functional.linear(layer(batch()), layer.weight.T)
    loss_of(tied).backward()
    found = gradients(layer)
    preconditioner.step()
    assert_same(gradients(layer), times_ppt(batch(), *found))
    assert sum((g * new).sum() for g, new in zip(found, gradients(layer), strict=True)) > 0


@line("A hook on the gradient of a weight")
def _():
    model = network()
    preconditioner = BNP(model)
    model[2].weight.register_hook(lambda g: g * (model[2].weight > 0))
    with pytest.warns(UserWarning, match=r"\['2'\] have hooks.*multiply the weight by the mask"):
        stepped(model, preconditioner, batch())
    stepped(model, preconditioner, batch())


@line("A penalty on derivatives of the network")
def _():
    """The gradient is that of the whole loss, the rows are those of the forward pass."""
    for alone in (False, True):
        model, twin = network(), network()
        preconditioner, other = BNP(model), BNP(twin)
        for net in (model, twin):
            x = batch().requires_grad_()
            value = loss_of(net(x))
            (slope,) = torch.autograd.grad(value, x, create_graph=True)
            penalty = slope.square().sum()
            (penalty if alone else value + penalty).backward()
        plain = gradients(twin)
        twin.zero_grad()
        other.reset()
        loss_of(twin(batch())).backward()
        for parameter, gradient in zip(twin.parameters(), plain, strict=True):
            parameter.grad.copy_(gradient)
        other.step()
        preconditioner.step()
        assert_same(gradients(model), gradients(twin))


@line("A layer replaced, parametrized or pruned since")
def _():
    model = network()
    preconditioner = BNP(model)
    stepped(model, preconditioner, batch())
    model[2] = nn.Linear(6, 3).double()
    with pytest.raises(RuntimeError, match=r"the layers \['2'\] are not those that BNP"):
        stepped(model, preconditioner, batch())


@line("A second `BNP` on a layer")
def _():
    model = network()
    first = BNP(model)
    with pytest.raises(ValueError, match="'0' has a BNP already"):
        BNP(model)
    first.remove()
    BNP(model)


@line("`functional.linear(x, layer.weight)`")
def _():
    model = network()
    preconditioner = BNP(model)
    hidden = model[1](functional.linear(batch(), model[0].weight, model[0].bias))
    loss_of(model[2](hidden)).backward()
    with pytest.raises(RuntimeError, match=r"the weights of \['0'\] have a gradient, but none"):
        preconditioner.step()


@line("Checkpointing, reentrant or not")
def _():
    for reentrant in (True, False):
        model = network()
        preconditioner = BNP(model)
        x = batch().requires_grad_()  # reentrant checkpoints differentiate only such inputs
        loss_of(checkpoint(model, x, use_reentrant=reentrant)).backward()
        for layer in preconditioner._layers:
            assert [one.rows.rows for one in layer.passes] == [8]
        preconditioner.step()
        assert_same(gradients(model), expected())


@line("`state_dict`, `load_state_dict`")
def _():
    """Training that is resumed from a file is bit-identical, also the constants."""

    def fresh(*constants):
        model = network()
        adam, preconditioner = torch.optim.Adam(model.parameters(), lr=0.01), BNP(model, *constants)
        preconditioner.attach(adam)
        return model, preconditioner, adam

    def go(model, preconditioner, adam, seeds):
        for seed in seeds:
            adam.zero_grad()
            loss_of(model(batch(seed=seed))).backward()
            adam.step()
        return values(model)

    whole, first, second = fresh(0.5, 0.03, 0.002), fresh(0.5, 0.03, 0.002), fresh()
    go(*first, range(3))
    file = io.BytesIO()
    torch.save([part.state_dict() for part in first], file)
    file.seek(0)
    for part, state in zip(second, torch.load(file), strict=True):
        part.load_state_dict(state)
    assert repr(second[1]) == repr(first[1])
    assert_same(go(*second, range(3, 6)), go(*whole, range(6)), 0.0)


@line("`copy.deepcopy((model, bnp))`, pickle, `torch.save`")
def _():
    model = network()
    preconditioner = BNP(model)
    file = io.BytesIO()
    torch.save((model, preconditioner), file)
    file.seek(0)
    for twin, copied in (
        copy.deepcopy((model, preconditioner)),
        pickle.loads(pickle.dumps((model, preconditioner))),
        torch.load(file, weights_only=False),
    ):
        assert_same(stepped(twin, copied, batch()), expected())
        with pytest.raises(ValueError, match="has a BNP already"):
            BNP(twin)
    twin = copy.deepcopy(model)  # its hooks are those of no BNP
    assert_same(stepped(twin, BNP(twin), batch()), expected())
    assert not preconditioner.state_dict()["0"]["mean"].any()


@line("`optdl.training.train`")
def _():
    x = batch(24).numpy()
    examples, model = Examples(x, (x.sum(1) > 15).astype(int)), network()
    twin, adam = copy.deepcopy(model), torch.optim.Adam(model.parameters(), lr=0.01)
    train(model, examples, adam, epochs=2, batch_size=24, hooks=[BNP(model, split=True)])
    preconditioner, adam = BNP(twin), torch.optim.Adam(twin.parameters(), lr=0.01)
    for _ in range(2):
        adam.zero_grad()
        functional.cross_entropy(twin(batch(24)), torch.from_numpy(examples.y)).backward()
        with preconditioner.split():
            adam.step()
    assert_same([*model.parameters()], [*twin.parameters()], 1e-11)


# --- What one may ask for ---------------------------------------------------------------------


@line("`corrected=True`")
def _():
    """m̂ = m/(1 − ρᵗ) of averages that begin at 0, as Adam's do, and so for the variance."""
    layer, rho = dense(), 0.9
    preconditioner = BNP(layer, rho=rho, corrected=True)
    mean = var = torch.zeros(5).double()
    for t in range(1, 5):
        x = batch(seed=t)
        mean = rho * mean + (1 - rho) * x.mean(0)
        var = rho * var + (1 - rho) * x.var(0, correction=0)
        layer.zero_grad()
        loss_of(layer(x)).backward()
        plain = gradients(layer)
        P = matrix(mean / (1 - rho**t), var / (1 - rho**t))
        right = P @ P.T @ torch.cat([plain[1][None], plain[0].T])
        preconditioner.step()
        assert_same(gradients(layer), [right[1:].T, right[0]])
        if t == 2:  # t is part of the state
            saved = preconditioner.state_dict()
            preconditioner.remove()
            preconditioner = BNP(layer, rho=rho, corrected=True)
            preconditioner.load_state_dict(saved)
    with pytest.raises(ValueError, match="another model"):
        BNP(dense()).load_state_dict(saved)


@line("`q2`, `constants`")
def _():
    x, q2s = batch(2), {"paper": 2.5, "off": 1.0, max: 5.0}  # n/N = 5/2
    for q2, right in q2s.items():
        layer, own = dense(), {"": {"q2": q2, "eps1": 0.5, "eps2": 0.25, "rho": 0.0}}
        loss_of(layer(x)).backward()
        plain = gradients(layer)
        layer.zero_grad()
        P = matrix(x.mean(0), x.var(0, correction=0), 1, right, 0.5, 0.25)
        product = P @ P.T @ torch.cat([plain[1][None], plain[0].T])
        for options in ({"constants": own}, {"constants": {nn.Linear: own[""]}}, own[""]):
            preconditioner = BNP(layer, **options)
            assert_same(stepped(layer, preconditioner, x), [product[1:].T, product[0]])
            preconditioner.remove()
    for wrong, reason in (
        ({"q2": "on"}, "q2 must be 'paper', 'off', or a function; got 'on'"),
        ({"constants": {"": {"rho": 1.0}}}, "rho must lie"),
        ({"constants": {"9": {}}}, "names no module of this model"),
        ({"rho": -0.1}, "rho must lie"),
        ({"eps1": -1.0}, "eps1 and eps2 must be 0 or more"),
        ({"eps1": 0.0, "eps2": 0.0}, "not both 0"),
        ({"positions": "all"}, "positions must be 'rows' or 'map', got 'all'"),
    ):
        with pytest.raises(ValueError, match=reason):
            BNP(dense(), **wrong)


@line("`report()`")
def _():
    model = nn.Sequential(nn.Conv2d(2, 4, 1), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(4, 4))
    model.append(nn.Linear(4, 2, bias=False)).append(nn.Linear(2, 1)).requires_grad_(True)
    model[5].requires_grad_(False)
    preconditioner = BNP(model.double(), skip=("3",))
    assert preconditioner.report().splitlines()[1].split()[:3] == ["0", "Conv2d", "2"]
    loss_of(model(batch(1, shape=(2, 1, 1)).repeat(4, 1, 1, 1))).backward()
    preconditioner.step()
    assert preconditioner.report().splitlines() == [
        "name  kind         inputs  q²  share",
        "0     Conv2d       2       1   23.5%  preconditioned",
        "1     BatchNorm2d  -       -   15.7%  plain: neither dense nor convolutional",
        "3     Linear       -       -   39.2%  plain: skipped",
        "4     Linear       4       1   15.7%  scaled only: no bias that is trained",
        "5     Linear       2       -   5.9%   frozen",
    ]


# --- Wrappers ---------------------------------------------------------------------------------


class Wrapper(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner(x)


def of_wrapped(model):
    """Return for each way to wrap: what to run, and what BNP is given."""
    ddp = DistributedDataParallel(model)
    return {
        "ddp": (ddp, ddp),
        "module": (ddp, ddp.module),
        "wrapper": (wrapper := Wrapper(ddp), wrapper),
        "compiled": (compiled := torch.compile(ddp, backend="aot_eager"), compiled),
        "group": (ddp, model),
    }


def two_steps(kind, sizes=(8,), rank=0):
    """Return the parameters after two attached steps with a share of each batch."""
    torch.compiler.reset()
    model = network()
    run, given = (model, model) if kind == "alone" else of_wrapped(model)[kind]
    group = {"process_group": distributed.group.WORLD} if kind == "group" else {}
    preconditioner = BNP(given, rho=0.5, **group)
    sgd = torch.optim.SGD(model.parameters(), lr=0.1)
    preconditioner.attach(sgd)
    for step in range(2):
        sgd.zero_grad()
        x = batch(sum(sizes), seed=step).split(sizes)[rank]
        (loss_of(run(x)) * len(x) * len(sizes) / sum(sizes)).backward()
        sgd.step()
    preconditioner.remove()
    return values(model)


def in_one_of_two(rank):
    """Return what comes of training with a share of the batch, wrapped in each way."""
    kinds = ("ddp", "module", "wrapper", "group", "compiled")
    results = {kind: two_steps(kind, (5, 3), rank) for kind in kinds}
    results["single rows"] = two_steps("ddp", (1, 1), rank)
    model = network()
    ddp = DistributedDataParallel(model)
    preconditioner = BNP(ddp)
    try:
        with Join([ddp]):
            for x in batch().split(2)[: 3 - rank]:
                loss_of(ddp(x)).backward()
                preconditioner.step()
    except RuntimeError as error:
        results["join"] = str(error)
    model = network()  # its gradients are averaged by nobody
    for kind, group in (("none", {}), ("alone", {"process_group": None})):
        model.zero_grad()
        preconditioner = BNP(model, **group)
        loss_of(model(batch())).backward()
        try:
            preconditioner.step()
            results[kind] = gradients(model)
        except RuntimeError as error:
            results[kind] = str(error)
        preconditioner.remove()
    return results


@pytest.fixture(scope="module")
def two_processes(tmp_path_factory):
    return given_by_two(in_one_of_two, tmp_path_factory.mktemp("processes"))


@line("`DistributedDataParallel`")
def _(two_processes):
    for results in two_processes:
        for kind in ("ddp", "module", "wrapper"):
            assert_same(results[kind], two_steps("alone"), 1e-11)
        assert_same(results["single rows"], two_steps("alone", (2,)), 1e-11)


@line("`Join`, for processes with unequal numbers of minibatches")
def _(two_processes):
    for results in two_processes:
        assert "the same number of minibatches, as DistributedSampler does" in results["join"]


@line("`torch.compile(ddp)`")
def _(two_processes):
    for results in two_processes:
        assert_same(results["compiled"], two_steps("alone"), 1e-11)


@line("Several processes in another way")
def _(two_processes):
    for results in two_processes:
        assert "2 processes run, but BNP found no DistributedDataParallel" in results["none"]
        assert_same(results["alone"], expected())
        assert_same(results["group"], two_steps("alone"), 1e-11)


@line("`torch.compile(model)`")
def _():
    typechecking.end()
    torch.compiler.reset()
    model = network()
    compiled = torch.compile(model, backend="aot_eager")
    assert_same(stepped(model, BNP(compiled), batch(), forward=compiled), expected())
    model[2].eval()  # compiled code does not tell whether it is differentiated
    preconditioner = BNP(compiled)
    torch.compiler.reset()
    with pytest.raises(RuntimeError, match=r"the weights of \['2'\] have a gradient"):
        stepped(model, preconditioner, batch(), forward=compiled)


@line("FSDP, DTensor")
def _():
    sharded = type("FullyShardedDataParallel", (Wrapper,), {})
    assert_refused(sharded(network()), "in parts on several devices")
    model = network()
    model[0].weight.device_mesh = "as a DTensor has"
    assert_refused(model, "in parts on several devices")


@line("`nn.DataParallel` on several devices")
def _():
    model = nn.DataParallel(network())
    BNP(model)  # on one device it copies nothing
    model.device_ids = [0, 1]
    assert_refused(model, "Use DistributedDataParallel")


# --- Precision and devices --------------------------------------------------------------------


@line("Autocast")
def _():
    model = network(torch.float32)
    preconditioner, x = BNP(model, rho=0.0), batch(dtype=torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        loss = loss_of(model(x).float())
    loss.backward()
    preconditioner.step()
    state = preconditioner.state_dict()["0"]
    assert state["mean"].dtype == torch.float32
    assert_same([state["mean"][0]], [x.mean(0)], 1e-6)


@line("Weights of half precision")
def _():
    for dtype in (torch.bfloat16, torch.float16):
        model = network().to(dtype)
        wide = copy.deepcopy(model).float()
        x = batch().to(dtype)
        found = stepped(model, BNP(model), x, forward=lambda x, m=model: m(x).float())
        right = stepped(wide, BNP(wide), x.float())
        assert all(one.dtype == dtype for one in found)
        for one, other in zip(found, right, strict=True):
            assert (one.float() - other).abs().max() < 0.05 * other.abs().max()


@line("`model.double()`, `.half()`, `.to(device)` afterwards")
def _():
    model = network(torch.float32)
    preconditioner = BNP(model)
    stepped(model, preconditioner, batch(seed=1, dtype=torch.float32))
    model.double()
    found = stepped(model, preconditioner, batch())
    twin = network(torch.float32).double()
    preconditioner = BNP(twin)
    stepped(twin, preconditioner, batch(seed=1))
    assert_same(found, stepped(twin, preconditioner, batch()), 1e-6)
    assert preconditioner.state_dict()["0"]["mean"].dtype == torch.float64
    model = network(torch.float64)
    preconditioner = BNP(model)
    model.bfloat16()
    stepped(model, preconditioner, batch(dtype=torch.bfloat16))
    assert preconditioner.state_dict()["0"]["mean"].dtype == torch.float32


@line("`channels_last`")
def _():
    found = []
    for memory in (torch.contiguous_format, torch.channels_last):
        torch.manual_seed(0)
        model = nn.Conv2d(3, 4, 3).double().to(memory_format=memory)
        x = batch(shape=(3, 6, 6)).to(memory_format=memory)
        found.append(stepped(model, BNP(model), x))
    assert_same(*found)


# --- Layers -----------------------------------------------------------------------------------


def in_matrices(layer, x):
    """Return PPᵀg of a layer without groups, with P = UD/q written out as a matrix."""
    output = layer(x)
    loss_of(output).backward()
    axes = (0, *range(2, x.ndim))
    q2 = max(layer.weight[0].numel() / len(x), output[0, 0].numel() ** 0.5)
    P = matrix(x.mean(axes), x.var(axes, correction=0), layer.weight[0, 0].numel(), q2)
    g = torch.cat([layer.bias.grad[None], layer.weight.grad.flatten(1).T])
    result = P @ P.T @ g
    return [result[1:].T.reshape(layer.weight.shape), result[0]]


@line("`nn.Linear` on any number of axes")
def _():
    x = batch(24)
    right = in_matrices(dense(), x)
    for shape in ((24, 5), (2, 3, 4, 5)):
        layer = dense()
        assert_same(stepped(layer, BNP(layer, rho=0.0), x.reshape(shape)), right)
    layer = dense()
    preconditioner = BNP(layer, rho=0.0)
    named = stepped(layer, preconditioner, x, forward=lambda x: layer(input=x))
    assert_same(named, right)
    assert_same(stepped(layer, preconditioner, x[0]), stepped(layer, preconditioner, x[:1]))
    for count, length in ((2, 12), (12, 2)):
        layer, twin, h = dense(), nn.Conv1d(5, 3, 1).double(), batch(count, shape=(length, 5))
        twin.load_state_dict({"weight": layer.weight[..., None], "bias": layer.bias})
        found = stepped(layer, BNP(layer, positions="map"), h)
        right = stepped(twin, BNP(twin), h, forward=lambda x, m=twin: m(x.mT).mT)
        assert_same([found[0][..., None], found[1]], right)


@line("`nn.Conv1d`, `nn.Conv2d`, `nn.Conv3d`")
def _():
    for kind, axes in ((nn.Conv1d, 1), (nn.Conv2d, 2), (nn.Conv3d, 3)):
        for count in (1, 40):
            layer = kind(3, 4, 2, stride=2, padding=1, dilation=2, padding_mode="circular").double()
            x = batch(count, shape=(3, *[5] * axes))
            twin = copy.deepcopy(layer)
            right = in_matrices(twin, x)
            assert_same(stepped(layer, BNP(layer, rho=0.0), x), right, 1e-11)
            if count == 1:  # without the axis of the examples
                assert_same(stepped(layer, BNP(layer, rho=0.0), x[0]), right, 1e-11)


@line("Groups")
def _():
    layer = nn.Conv1d(4, 6, 3, groups=2).double()
    x = batch(shape=(4, 7))
    found = stepped(layer, BNP(layer, rho=0.0), x)
    # the mean of the loss is over both halves of the channels
    for half in range(2):
        part = nn.Conv1d(2, 3, 3).double()
        part.weight.data = layer.weight.data[3 * half : 3 * half + 3]
        part.bias.data = layer.bias.data[3 * half : 3 * half + 3]
        right = in_matrices(part, x[:, 2 * half : 2 * half + 2])
        assert_same([one[3 * half : 3 * half + 3] for one in found], [r / 2 for r in right], 1e-11)


@line("No bias")
def _():
    layer = nn.Linear(5, 3, bias=False).double()
    loss_of(layer(batch())).backward()
    square = (batch() ** 2).mean(0)
    right = layer.weight.grad / (square + 0.01 * square.max() + 1e-4)
    assert_same(stepped(layer, BNP(layer, rho=0.0), batch()), [right])


@line("Embedding and normalization layers")
def _():
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Embedding(7, 5), nn.LayerNorm(5), nn.Linear(5, 4), nn.BatchNorm1d(4), nn.Linear(4, 2)
    ).double()
    for layer in (model[2], model[4]):
        layer.bias.requires_grad_(False)  # it may stay: what a normalization hands on is centered
    tokens = torch.arange(7)
    loss_of(model(tokens)).backward()
    plain = {name: p.grad.clone() for name, p in model.named_parameters() if p.requires_grad}
    preconditioner = BNP(model)
    stepped(model, preconditioner, tokens)
    for name in plain:
        parameter = model.get_parameter(name)
        assert torch.equal(parameter.grad, plain[name]) == (name not in ("2.weight", "4.weight"))


@line("`nn.MultiheadAttention`, `nn.TransformerEncoderLayer`")
def _():
    torch.manual_seed(0)
    model = nn.TransformerEncoder(
        nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True).double(), 2
    )
    assert_refused(model, r"skip=\(nn\.MultiheadAttention,\)\)")
    preconditioner = BNP(model, skip=(nn.MultiheadAttention,))
    assert [layer.name for layer in preconditioner._layers] == [
        f"layers.{at}.linear{number}" for at in (0, 1) for number in (1, 2)
    ]
    x = batch(4, shape=(3, 8))
    loss_of(model(x)).backward()
    plain = {name: p.grad.clone() for name, p in model.named_parameters()}
    preconditioner.reset()
    stepped(model, preconditioner, x)
    for name, parameter in model.named_parameters():
        assert torch.equal(parameter.grad, plain[name]) == ("linear" not in name)
    with torch.no_grad():
        trained = model(x)
        preconditioner.remove()
        assert_same([model.eval()(x)], [trained], 1e-10)


OWN = nn.modules.conv._ConvNd(2, 2, (3,), (1,), (0,), (1,), False, (0,), 1, True, "zeros")


@line("Recurrent, bilinear and transposed layers")
def _():
    for odd, reason in (
        (nn.LSTM(2, 2), "at every time"),
        (nn.GRUCell(2, 2), "two layers in one"),
        (nn.Bilinear(2, 2, 2), "not linear in one input"),
        (nn.ConvTranspose1d(2, 2, 3), "not inputs under a window"),
        (OWN, "nn.Conv3d have Algorithm 3"),
    ):
        model = nn.ModuleDict({"good": nn.Linear(2, 2), "odd": odd})
        assert_refused(model, reason, skip=(type(odd),))
        assert_refused(model, reason, skip=("odd",))


@line("Tied, parametrized and lazy weights")
def _():
    tied = nn.ModuleDict({"embed": nn.Embedding(3, 5), "out": nn.Linear(5, 3)})
    tied["out"].weight = tied["embed"].weight
    assert_refused(tied, "shares its weight with 'embed'")
    normalized = nn.utils.parametrizations.weight_norm(nn.Linear(2, 2))
    assert_refused(nn.Sequential(normalized), "computed from other parameters")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert_refused(nn.Sequential(nn.LazyLinear(2)), "run one batch through the model first")


class Masked(nn.Linear):
    def forward(self, x):
        return functional.linear(x, self.weight.tril(), self.bias)


class Standardized(nn.Conv2d):
    def _conv_forward(self, x, weight, bias):
        return super()._conv_forward(x, weight - weight.mean(), bias)


@line("Masked, equalized and other layers with a forward of their own")
def _():
    assert_refused(nn.Sequential(Masked(4, 4)), "its forward is not that of nn.Linear")
    assert_refused(nn.Sequential(Standardized(4, 4, 1)), "its forward is not that of nn.Conv2d")
    scaled = nn.Linear(4, 4)
    scaled.forward = lambda x: functional.linear(x, 2 * scaled.weight)
    assert_refused(nn.Sequential(scaled), "its forward is not that of nn.Linear")
    BNP(nn.Sequential(type("Named", (nn.Linear,), {})(4, 4)))  # a name alone changes nothing


@line("Complex weights")
def _():
    model = nn.ModuleList([nn.Linear(2, 2, dtype=torch.complex64), nn.Linear(2, 2)])
    assert_refused(model, "its weight is complex", skip=("0",))


@line("`skip`")
def _():
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.Linear(8, 4), nn.Linear(4, 2))
    for skip, left in ((("2",), "03"), ((nn.Conv2d,), "23"), ((nn.Linear,), "0")):
        preconditioner = BNP(model, skip=skip)
        assert [layer.name for layer in preconditioner._layers] == list(left)
        preconditioner.remove()
    assert repr(BNP(model, skip=(nn.Conv2d, "3"))).startswith("BNP(layers=['2']")
    for wrong, reason in ((("9",), r"no module of this model: \['9'\]"), ("head", "add a comma")):
        with pytest.raises(ValueError, match=reason):
            BNP(model, skip=wrong)
