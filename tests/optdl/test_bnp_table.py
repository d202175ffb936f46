"""BNP in every kind of loop: each line of the table "What works with what" of the API is tried.

A loop is right where it agrees with P as an explicit matrix, or refused with the remedy.
"""

import copy
import gc
import io
import itertools
import pickle
import re
import shutil
import subprocess
import sys
import warnings
import weakref
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from types import MethodType, SimpleNamespace

import pytest
import torch
from bnp_loops import (
    assert_on_z,
    assert_same,
    batch,
    dense,
    expected,
    gradients,
    loss_of,
    matrices,
    network,
    on_z,
    one,
    preconditioned,
    stepped,
    take_step,
    trained,
    values,
    with_bnp,
)
from processes import given_by_two, in_plain_process
from torch import distributed, func, fx, nn
from torch.distributed.algorithms.join import Join
from torch.func import functional_call
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel
from torch.nn.utils import parametrizations, prune
from torch.optim.optimizer import _global_optimizer_pre_hooks
from torch.utils.checkpoint import checkpoint

from optdl.bnp import BNP, optimizers
from optdl.bnp.coordinates import Coordinates
from optdl.data import Examples
from optdl.optimizers import Nesterov
from optdl.optimizers.in_torch import Stepped
from optdl.training import train

pytestmark = [
    pytest.mark.row("F-11"),
    # of Dynamo itself, wherever it meets an autograd.Function
    pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning"),
]

compiling = pytest.mark.xdist_group("compiling")  # one process imports Dynamo, which takes seconds
PAGE = Path(__file__).resolve().parents[2] / "book" / "api" / "optdl_bnp.md"
LINES = []


def line(*names):
    """Say which lines a test proves."""
    LINES.extend(names)
    return lambda test: test


def same(name, *variants, x=None):
    """Make a test of a loop after which the step is that of a batch; it may make the gradients."""

    def register(loop):
        def test():
            for variant in [(each,) for each in variants] or [()]:
                model, bnp = with_bnp()
                kept = loop(model, bnp, *variant)
                if model[0].weight.grad is None or not model[0].weight.grad.any():
                    backward(model, x)
                assert_step(bnp, model, expected(x=x))
                del kept

        test.__name__ = loop.__name__
        return line(name)(test)

    return register


def test_table_lines_match_tests():
    section = PAGE.read_text(encoding="utf-8").split("## What works with what\n")[1]
    bodies = re.findall(r"^\|-.*\n((?:\|.*\n)+)", section.split("\n## ")[0], re.MULTILINE)
    first_cells = re.findall(r"^\| (.*?) \|", "".join(bodies), re.MULTILINE)
    assert sorted(LINES) == sorted(first_cells), "write a test of each line, with @line"


def refused(loop, reason, error=RuntimeError, model=None):
    """Let a loop of a network and its BNP be refused, with a reason."""
    model = model or network()
    bnp = BNP(model)
    with pytest.raises(error, match=reason):
        loop(model, bnp)
    bnp.remove()


def assert_refused(model, reason, skip=None):
    with pytest.raises(ValueError, match=reason):
        BNP(model)
    if skip is not None:
        BNP(model, skip=skip)


def backward(model, x=None):
    """Make the gradients of one batch."""
    loss_of(model(batch() if x is None else x)).backward()


def assert_step(bnp, model, right):
    """Compare the gradients that a step makes."""
    bnp.step()
    assert_same(gradients(model), right)


# --- Optimizers -------------------------------------------------------------------------------


class Wrapped(torch.optim.SGD):
    """Calls the step of its class, whose hooks run again, with a closure of its own."""

    def step(self, closure):
        return super().step(lambda: closure())


class Visits(torch.optim.Optimizer):
    """Descends by hand after each call of the closure that wants gradients, or without calls."""

    def __init__(self, parameters, *calls):
        super().__init__(parameters, {})
        self.calls, self.seen = calls, []

    @torch.no_grad()
    def step(self, closure):
        ps = self.param_groups[0]["params"]
        for wanted in self.calls or (None,):
            if wanted is not None:
                closure(wanted)
            self.seen.append([p.grad.clone() for p in ps if p.grad is not None])
            for p in ps if wanted is not False else ():
                p.sub_(0.1 * p.grad) if p.grad is not None else None


def closure_of(net, fills=None):
    """Return a closure that may be asked for the loss alone, with or without old gradients."""

    def closure(wanted):
        if wanted or fills is not None:
            net.zero_grad(set_to_none=not fills)
        with torch.set_grad_enabled(wanted):
            loss = loss_of(net(batch()))
        if wanted:
            loss.backward()

    return closure


class Curved(torch.optim.SGD):
    """Differentiates the gradient, as AdaHessian does."""

    def step(self, closure=None):
        weight, *_ = self.param_groups[0]["params"]
        torch.autograd.grad(weight.grad.sum(), weight)
        return super().step()


@line("A step of a step")
@pytest.mark.filterwarnings("ignore:Using backward.. with create_graph:UserWarning")
def test_optimizers_that_step_oddly():
    right = on_z(one(torch.optim.SGD, lr=0.1))
    assert_same(trained("closure", one(Wrapped, lr=0.1)), right)

    # each optimizer sets its own gradients to None after its step
    net = dense()
    optimizers = [torch.optim.SGD([p], lr=0.1) for p in net.parameters()]
    BNP(net, rho=0.0).attach(*optimizers)
    for _ in range(3):
        loss_of(net(batch())).backward()
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
    assert_same(values(net), right)

    # a last call for the loss alone, with the gradients that were there, or with none
    for fills in (None, False, True):
        net = network()
        search = Visits(net.parameters(), True, True, False)
        BNP(net, rho=0.0).attach(search)
        search.step(closure_of(net, fills))
        if fills is None:
            assert_same(search.seen[2], search.seen[1])

    net, ran = network(), []

    @torch.enable_grad()
    def deeper(wanted):
        ran.append(wanted)
        net.zero_grad()
        loss_of(net(batch()) if len(ran) > 1 else net[2](batch(shape=(6,)))).backward()

    search = Visits(net.parameters(), True, True)
    BNP(net).attach(search)
    before = values(net)
    with pytest.raises(RuntimeError, match=r"\['0'\] ran in a later call.*skip"):
        search.step(deeper)
    assert_same(values(net), before)

    net = dense()
    curved = Curved(net.parameters(), lr=0.1)
    BNP(net).attach(curved)
    loss_of(net(batch())).backward(create_graph=True)
    with pytest.raises(RuntimeError, match="does not require grad"):
        curved.step()


@line("A step on zeros")
def test_steps_without_gradients():
    net = dense()
    adamw = torch.optim.AdamW(net.parameters())
    bnp = BNP(net, rho=0.0)
    bnp.attach(adamw)
    for p in net.parameters():  # as to make the state of an optimizer
        p.grad = torch.zeros_like(p)
    adamw.step()
    for p in net.parameters():
        p.grad.fill_(1.0)
    with pytest.raises(RuntimeError, match="none came through a forward pass"):
        adamw.step()
    net.zero_grad()
    loss_of(net(batch() * torch.nan)).backward()
    for refusals in (1, 0):
        with pytest.raises(FloatingPointError) if refusals else nullcontext():
            adamw.step()
        net.zero_grad(set_to_none=False)

    # gradients that were added to used ones, and thrown away, while the layer did not run again
    body, heads = nn.Linear(5, 4), nn.ModuleList([nn.Linear(4, 2), nn.Linear(4, 2)])
    model = nn.ModuleList([body, heads]).double()
    sgd = torch.optim.SGD(model.parameters(), lr=0.1)
    BNP(model).attach(sgd)
    for head in heads:
        sgd.zero_grad()
        loss_of(head(body(batch()))).backward()
        sgd.step()
        loss_of(head(body(batch()))).backward()

    # behind a schedule that was made after it, an attachment ends all the same
    net = dense()
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    attached = BNP(net).attach(sgd)
    torch.optim.lr_scheduler.ExponentialLR(sgd, 0.5)
    attached.detach()
    before = values(net)
    loss_of(net(batch())).backward()
    right = [p - 0.1 * g for p, g in zip(before, gradients(net), strict=True)]
    sgd.step()
    assert_same(values(net), right)


SIZES = [batch(count, seed=count) for count in (6, 3, 9, 6)]


def halving(net, early):
    """Return AdamW whose rate is halved by each step, with the schedule made early or late."""
    adamw, schedule = torch.optim.AdamW(net.parameters(), lr=0.1), []
    make = partial(torch.optim.lr_scheduler.ExponentialLR, adamw, 0.5)
    schedule += [make()] * early

    def halve(*_):
        schedule.extend([make()] * (not schedule))
        schedule[0].step()

    adamw.register_step_post_hook(halve)
    return [adamw]


MAKERS = {
    "decay": one(torch.optim.SGD, lr=0.3, weight_decay=0.1),
    "momentum": one(torch.optim.SGD, lr=0.1, momentum=0.9, weight_decay=0.01),
    "Nesterov": one(torch.optim.SGD, lr=0.1, momentum=0.9, nesterov=True),
    "ASGD": one(torch.optim.ASGD, lr=0.1),
    "Adam": one(torch.optim.Adam, lr=0.1, weight_decay=0.1, amsgrad=True),
    "AdamW": one(torch.optim.AdamW, lr=0.1, weight_decay=0.1),
    "fused": one(torch.optim.AdamW, lr=0.1, weight_decay=0.1, fused=True),
    "foreach": one(torch.optim.AdamW, lr=0.1, weight_decay=0.1, foreach=True),
    "RMSprop": one(torch.optim.RMSprop, lr=0.02, momentum=0.9, centered=True),
    "Adagrad": one(torch.optim.Adagrad, lr=0.1, weight_decay=0.1),
    "Adafactor": one(torch.optim.Adafactor, lr=0.1),
    "Rprop": one(torch.optim.Rprop),
    "Nesterov of optdl": one(Stepped, opt=Nesterov(0.1, alpha=0.9)),
    "schedule made early": partial(halving, early=True),
    "schedule made late": partial(halving, early=False),
}


@line("`attach(optimizer)`", "`foreach=True`, `fused=True`", "Learning rate schedules")
def test_optimizers_step_on_z():
    """With the P of running averages, which moves from step to step."""
    for make in MAKERS.values():
        assert_on_z(make, ("split", "attach", "closure"), network, SIZES, rho=0.8)


@line("SGD, momentum, Nesterov, ASGD", "`weight_decay` of SGD")
def test_weight_decay_is_that_of_z():
    """Weight decay is that of z: a penalty ½λ‖P⁻¹θ‖², in the step form as well."""
    for name in ("decay", "momentum", "Nesterov", "ASGD"):
        assert_on_z(MAKERS[name], ("step",))
    assert_on_z(MAKERS["decay"], ("step",), network, SIZES, rho=0.8)


def with_biases(kind, own, **options):
    """Return what makes an optimizer of a layer, whose bias has some options of its own."""
    return lambda net: [kind([{"params": [net.weight]}, {"params": [net.bias]} | own], **options)]


@line("Another rate, decay or momentum for biases")
def test_rates_of_biases_need_attach():
    for own in ({"lr": 0.05}, {"weight_decay": 0.5}, {"momentum": 0.5}, {"maximize": True}):
        make = with_biases(torch.optim.SGD, own, lr=0.1)
        assert_on_z(make, ("attach",))
        reason = f"weight and bias of '' differ in {next(iter(own))}.*attach"
        with pytest.warns(UserWarning, match=reason):
            wrong = trained("step", make)
        assert not torch.allclose(wrong[1], on_z(make)[1])
    for alone in ("weight", "bias"):
        with pytest.warns(UserWarning, match="it moves only one of weight and bias of ''"):
            trained("step", lambda net, alone=alone: [torch.optim.SGD([getattr(net, alone)], 0.1)])

    def layerwise(net):  # a rate of its own for each layer changes nothing
        groups = [{"params": net[at].parameters(), "lr": 0.1 + at} for at in (0, 2)]
        return [torch.optim.SGD(groups)]

    assert_on_z(layerwise, ("step", "attach"), network)


@line("Adam, AdamW, RMSprop, Adagrad, any other")
def test_nonlinear_optimizers_are_warned_of():
    subclass = type("SignSGD", (torch.optim.SGD,), {})
    for name in ("Adam", "AdamW", "RMSprop", "Adagrad", "Adafactor", "SignSGD"):
        make = MAKERS.get(name) or one(subclass)
        with pytest.warns(UserWarning, match=rf"before {name}: .*bnp\.attach") as caught:
            step = trained("step", make)
        assert len(caught) == 1
        assert name == "SignSGD" or not torch.allclose(step[0], on_z(make)[0])


@line("A step after the block of `split()`")
def test_step_after_split_block_is_refused():
    for parameter in ("0.weight", "2.bias"):
        model, bnp = with_bnp()
        adam = torch.optim.Adam([model.get_parameter(parameter)])
        for none in (True, False):  # new gradients may be stepped on in their block
            model.zero_grad(set_to_none=none)
            take_step("split", bnp, partial(backward, model), adam)
        with pytest.raises(RuntimeError, match="Move it into the block"):
            adam.step()


def refused_in_block(act, reason):
    """Let an act in the block ``split()`` be refused, after which θ is as it was."""

    def loop(model, bnp):
        backward(model)
        with bnp.split():
            act(model, bnp)

    model = network()
    refused(loop, reason, model=model)
    assert_same(values(model), values(network()), 0.0)


def test_split_block_refuses_forward_pass_and_nested_block():
    refused_in_block(lambda net, _: net(batch()), "where its parameters are those of z")
    refused_in_block(lambda _, bnp: bnp.split().__enter__(), "found no forward pass")


@line("An optimizer that is not attached, beside one that is", "An optimizer of another model")
def test_attached_optimizers_are_all_of_the_model():
    other = torch.optim.SGD(network().parameters(), 0.1)
    refused(lambda _, bnp: bnp.attach(other), "moves no parameter of the layers", ValueError)
    model = nn.Sequential(nn.Embedding(4, 5), network())
    BNP(model).attach(*(torch.optim.SGD(part.parameters(), 0.1) for part in model))
    model, bnp = with_bnp()
    weights, biases = ([p for p in model.parameters() if p.ndim == n] for n in (2, 1))
    sgd, adam = torch.optim.SGD(weights, lr=0.1), torch.optim.Adam(biases)
    attachment = bnp.attach(sgd)
    other = nn.Parameter(torch.ones(1))
    other.grad = torch.ones(1)
    torch.optim.Adam([other]).step()  # moves nothing that BNP knows
    backward(model)
    with pytest.raises(RuntimeError, match=r"Adam moves layers .* Attach it as well"):
        adam.step()
    with pytest.raises(ValueError, match="attached already"):
        bnp.attach(adam, sgd)
    with pytest.raises(RuntimeError, match=r"leave bnp\.step\(\) out"):
        bnp.step()
    with pytest.raises(TypeError, match=r"expected a torch\.optim\.Optimizer, got Linear"):
        bnp.attach(model[0])
    attachment.detach()
    assert "step" not in vars(sgd)
    assert not sgd._optimizer_step_pre_hooks
    assert_same(stepped(model, bnp, batch()), expected())


@line("LBFGS")
def test_lbfgs_closure_runs_at_theta():
    for search in (None, "strong_wolfe"):
        make = one(torch.optim.LBFGS, lr=0.1, max_iter=5, line_search_fn=search)
        assert_on_z(make, ("closure",), tolerance=1e-9)

    def kept(model, bnp):
        lbfgs = torch.optim.LBFGS(model.parameters(), max_iter=3)
        bnp.attach(lbfgs)
        lbfgs.step(lambda: (loss := loss_of(model(batch()))).backward() or loss)

    refused(kept, "new gradients were added to those")
    refused_in_block(
        lambda net, _: torch.optim.LBFGS(net.parameters()).step(lambda: loss_of(net(batch()))),
        r"such as LBFGS: bnp\.attach",
    )


@line("Several optimizers, parameter groups")
def test_several_optimizers_share_a_model():
    def muon(net):
        return [torch.optim.Muon([net.weight], lr=0.1), torch.optim.AdamW([net.bias], lr=0.1)]

    assert_on_z(muon, tolerance=1e-2)  # Muon works in bfloat16
    assert_on_z(lambda net: [torch.optim.Adam(net[k].parameters()) for k in (0, 2)], model=network)
    assert_on_z(lambda net: [torch.optim.Adam([{"params": [p]} for p in net.parameters()])])
    for none in (True, False):
        parts = nn.ModuleList([dense(), nn.Linear(3, 1).double()])  # a generator and its critic
        sgds = [torch.optim.SGD(part.parameters(), lr=0.1) for part in parts]
        BNP(parts, rho=0.0).attach(*sgds)
        for turn in (1, 0, 1, 0):  # a gradient that came of the other's turn is thrown away
            sgds[turn].zero_grad(set_to_none=none)
            x = batch(seed=turn)
            h = parts[0](x).detach() if turn else parts[0](x)
            backward(parts[1], h)
            step = preconditioned(parts[turn], h if turn else x)
            right = [v - 0.1 * g for v, g in zip(values(parts[turn]), step, strict=True)]
            sgds[turn].step()
            assert_same(values(parts[turn]), right)


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
def test_wrapped_optimizers_step_on_z():
    def lightning(inner):  # as its automatic optimization steps
        return SimpleNamespace(optimizer=inner, step=lambda closure: inner.step(closure=closure))

    for form, kind in (("closure", lightning), ("attach", Accelerated), ("closure", Accelerated)):
        wrapped = trained(form, lambda net, kind=kind: [kind(MAKERS["AdamW"](net)[0])])
        assert_same(wrapped, on_z(MAKERS["AdamW"]))


class Sharpness(torch.optim.SGD):
    """An optimizer that takes its gradient elsewhere, as SAM does, and is slow, as Lookahead."""

    base = None

    @torch.no_grad()
    def step(self, closure=None):
        parameters = self.param_groups[0]["params"]
        before = [parameter.clone() for parameter in parameters]
        for parameter in parameters:
            parameter.add_(0.1)
        with torch.enable_grad():
            closure()
        for parameter, start in zip(parameters, before, strict=True):
            parameter.copy_(start)
        self.base.step() if self.base else super().step()
        for parameter, start in zip(parameters, before, strict=True):
            parameter.lerp_(start, 0.5)


@line("An optimizer that moves before its closure", "SAM, Lookahead around an optimizer")
def test_moving_before_the_closure_needs_an_inner_optimizer():
    with pytest.raises(RuntimeError, match="Sharpness moves the parameters before it calls its"):
        trained("closure", one(Sharpness))

    def around(net):
        optimizer = Sharpness(net.parameters())
        optimizer.base = torch.optim.SGD(net.parameters(), lr=0.1)
        return [optimizer]

    moved, start = dense(), values(dense())
    with torch.no_grad():
        for parameter in moved.parameters():
            parameter.add_(0.1)
    backward(moved)
    right = [v - 0.05 * g for v, g in zip(start, preconditioned(moved, batch()), strict=True)]
    assert_same(trained("closure", around, batches=[batch()]), right)


@line("A step in a hook of each parameter")
def test_step_in_parameter_hook_is_refused():
    def loop(model, bnp):
        steps = {p: torch.optim.SGD([p], 0.1) for p in model.parameters()}
        bnp.attach(*steps.values())
        for parameter in steps:
            parameter.register_post_accumulate_grad_hook(lambda p: steps[p].step())
        backward(model)

    refused(loop, "before the gradient of its weight is there", model=dense())
    model, bnp = with_bnp(dense())
    bnp.attach(sgd := torch.optim.SGD([model.bias], lr=1.0))
    loss_of(model(batch())).backward(inputs=[model.bias])  # is no such hook
    right = model.bias - model.bias.grad
    sgd.step()
    assert_same(model.bias, right)


@line("An optimizer whose step was replaced, or which calls no closure")
def test_step_past_its_hooks_is_refused():
    def loop(model, bnp, *calls):
        optimizer = Visits(model.parameters(), *calls)
        if calls:
            optimizer.step = MethodType(Visits.step.__wrapped__, optimizer)
        bnp.attach(optimizer)
        backward(model)
        optimizer.step(closure_of(model))

    refused(loop, r"the step of Visits moved .* write: with bnp\.split\(\)")
    reason = "the step of Visits moved the parameters without its hooks"
    refused(lambda *given: loop(*given, True, False), reason)


class Interrupted(torch.optim.SGD):
    """An optimizer that is interrupted when it has moved everything."""

    def step(self, closure=None):
        super().step(closure)
        raise KeyboardInterrupt


@line("An interrupted step")
def test_interrupted_step_restores_parameters(monkeypatch):
    torch.optim.SGD(network().parameters())  # its step has hooks now, and the subclass has its own
    for form, way in itertools.product(("attach", "closure", "split"), ("", "enter", "leave")):
        model, calls = network(), [vars(Coordinates).get(way)]  # none is left for the second layer
        make = one(torch.optim.SGD if way else Interrupted, lr=1.0)
        with monkeypatch.context() as patch:
            if way:
                patch.setattr(Coordinates, way, lambda z, calls=calls: calls.pop()(z))
            with pytest.raises((KeyboardInterrupt, IndexError)):
                trained(form, make, lambda model=model: model)
        assert_same(values(model), values(network()), 0.0)
        model(batch())  # is not refused


@line("Hooks of a step")
@pytest.mark.parametrize("late", [False, True])
def test_step_hooks_see_theta(late):
    model, bnp = with_bnp()
    adam, seen = torch.optim.Adam(model.parameters()), []
    if not late:
        bnp.attach(adam)
    adam.register_step_pre_hook(lambda *_: seen.append([*values(model), *gradients(model)]))
    adam.register_step_post_hook(lambda *_: seen.append(values(model)))
    if late:
        bnp.attach(adam)
    backward(model)
    before = [*values(model), *gradients(model)]
    adam.step()
    assert_same(seen, [before, values(model)], 0.0)


@line("Decoupled weight decay (AdamW)")
def test_decoupled_decay_shrinks_theta():
    """Without decay of the biases each moves by ηλWμ: in z it is q(b + Wμ), which stays."""
    weight, bias = values(dense())
    for own in ({}, {"weight_decay": 0.0}):
        plain, decayed = (
            trained("attach", with_biases(torch.optim.AdamW, own, **options), batches=[batch()])
            for options in ({"lr": 0.1, "weight_decay": 0.0}, {"lr": 0.1, "weight_decay": 0.5})
        )
        moved = 0.05 * weight @ batch().mean(0) if own else -0.05 * bias
        assert_same(decayed, [plain[0] - 0.05 * weight, plain[1] + moved])


@line("Clipping by norm or by value")
def test_clipping_acts_where_it_stands():
    ways = (
        (nn.utils.clip_grad_norm_, lambda g: 0.01 * g / (g.norm() + 1e-6)),
        (nn.utils.clip_grad_value_, lambda g: g.clamp(-0.01, 0.01)),
    )
    for where, (clip, clipped) in itertools.product(("before", "after", "in"), ways):
        model, bnp = with_bnp(dense(), rho=0.0)
        backward(model)
        [P] = matrices(model, batch())
        g = torch.cat([model.bias.grad[None], model.weight.grad.T])
        right = clipped({"before": g, "after": P @ P.T @ g, "in": P.T @ g}[where])
        if where == "after":
            bnp.step()
        with bnp.split() if where == "in" else nullcontext():
            clip(model.parameters(), 0.01)
        assert_same(torch.cat([model.bias.grad[None], model.weight.grad.T]), right, 1e-10)


@line("`GradScaler`")
def test_scaled_steps_skip_overflow():
    """A step that overflows is skipped: θ stays, and the statistics of an infinite input, too."""
    x, make = batch(dtype=torch.float32), one(torch.optim.SGD, lr=0.1)
    narrow, infinite = partial(network, torch.float32), x.index_fill(0, torch.tensor(1), torch.inf)
    right = trained("split", make, narrow, [x, x], rho=0.99)
    for form, fused in itertools.product(("step", "split", "attach"), (False, True)):
        model, bnp = with_bnp(narrow())
        sgd = torch.optim.SGD(model.parameters(), lr=0.1, fused=fused)
        scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
        if form == "attach":
            bnp.attach(sgd)
        for given, factor in ((x, 1.0), (infinite, 1.0), (x, 1.0), (x, 1e38)):
            before, mean = values(model), bnp.state_dict()["0"]["mean"]
            scale = scaler.get_scale()
            sgd.zero_grad()
            loss = scaler.scale(factor * loss_of(model(given)))
            take_step(form, bnp, loss.backward, SimpleNamespace(step=partial(scaler.step, sgd)))
            scaler.update()
            if given is infinite or factor > 1:
                assert scaler.get_scale() == scale / 2
                assert_same(values(model), before, 0.0)
            if given is infinite:
                assert_same(bnp.state_dict()["0"]["mean"], mean, 0.0)
        if form == "split":  # a fused optimizer has written into the gradients
            with pytest.raises(RuntimeError, match="Move it into the block"):
                sgd.step()
        assert_same(values(model), right, 1e-5)
    model, bnp = with_bnp(narrow())
    parts = ([p for p in model.parameters() if p.ndim == n] for n in (2, 1))
    both = [torch.optim.SGD(part, lr=0.1) for part in parts]
    for each in both:
        bnp.attach(each)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    scaler.scale(loss_of(model(x))).backward()
    with pytest.raises(RuntimeError, match=r"scaler\.unscale_\(optimizer\) for each"):
        scaler.step(both[0])  # whose gradients alone are unscaled
    scaler.unscale_(both[1])
    for optimizer in both:
        scaler.step(optimizer)
    assert_same(values(model), trained("split", make, narrow, [x], rho=0.99), 1e-5)


def test_split_form_neither_warns_nor_leaves_hooks(monkeypatch):
    # what tests before this one still hold (a failure's frames, a fixture) is none of its business
    monkeypatch.setattr(optimizers, "_watching", weakref.WeakSet())
    monkeypatch.setattr(optimizers, "_hook", None)
    others = len(_global_optimizer_pre_hooks)
    model, bnp = with_bnp()
    adam, sgd = torch.optim.Adam(model.parameters()), torch.optim.SGD(model.parameters())
    stepped(model, bnp, batch())
    sgd.step()
    model.zero_grad()
    take_step("split", bnp, partial(backward, model), adam)
    assert optimizers._hook is not None
    bnp.remove()
    assert optimizers._hook is None
    assert len(_global_optimizer_pre_hooks) == others
    adam.step()
    bnp = BNP(model)
    stepped(model, bnp, batch())
    assert len(optimizers._watching) == 1
    del bnp
    gc.collect()
    assert not optimizers._watching


# --- The loop ---------------------------------------------------------------------------------


@same("Gradient accumulation")
def test_accumulated_minibatches_count_together(model, bnp):
    for x in batch().split(2):
        (loss_of(model(x)) / 4).backward()


@line("A module used twice")
def test_module_used_twice_has_all_rows():
    layer, x = nn.Linear(3, 3).double(), batch(shape=(3,))
    bnp, hidden = BNP(layer, rho=0.0), layer(x)
    backward(layer, hidden)
    both = torch.cat([x, hidden.detach()])
    assert_step(bnp, layer, preconditioned(layer, both))


@same("Evaluation, in `eval()` or not")
def test_evaluation_leaves_no_trace(model, bnp):
    for mode in (True, False):
        model.train(mode)
        model(batch(seed=1))
        with torch.no_grad():
            model(batch(seed=2))


@same("A forward pass without a backward pass")
def test_undifferentiated_pass_leaves_no_trace(model, bnp):
    return [model(batch(seed=seed)) for seed in range(1, 4)]  # it is kept until after the step


@same("A gradient that is thrown away", True, False)
def test_discarded_gradient_leaves_no_trace(model, bnp, none):
    backward(model, batch(seed=1))
    model.zero_grad(set_to_none=none)
    torch.autograd.grad(loss_of(model(batch(seed=1))), [*model.parameters()])
    if not none:
        bnp.reset()


@line("A gradient that is kept after a step")
def test_gradient_kept_after_step_is_refused():
    def loop(model, bnp, form, moved):
        sgd = torch.optim.SGD(moved(model), lr=0.1)
        if form in ("attach", "closure"):
            bnp.attach(sgd)
        for _ in range(2):
            sgd.zero_grad()  # of what it moves: see whether all is moved
            take_step(form, bnp, lambda: backward(model), sgd)

    for form in ("step", "split", "attach", "closure"):
        for at in (0, 1):  # the bias is kept, or the weight
            kept = partial(loop, form=form, moved=lambda model, at=at: [[*model.parameters()][at]])
            with pytest.warns(UserWarning, match="only one") if form == "step" else nullcontext():
                refused(kept, r"added to .* earlier step has left in \[''\]", model=dense())
        model, bnp = with_bnp()
        loop(model, bnp, form, lambda model: model[2].parameters())  # not of that layer


@same("`torch.autograd.grad` with respect to the input")
def test_input_gradients_leave_no_trace(model, bnp):
    x = batch(seed=1).requires_grad_()
    for part in batch().split(4):
        (loss_of(model(part)) / 2).backward()
        torch.autograd.grad(loss_of(model(x)), x)


@same("`torch.autograd.grad` with respect to the weights")
def test_autograd_of_weights_counts_as_backward(model, bnp):
    ps = [*model.parameters()]
    parts = [torch.autograd.grad(loss_of(model(x)) / 2, ps) for x in batch().split(4)]
    for parameter, *found in zip(ps, *parts, strict=True):
        parameter.grad = sum(found)


@same("A backward pass twice through one forward pass", 64, 2, x=batch(3))  # q² = 5/3: N is 3
def test_rows_count_once_in_two_backward_passes(model, bnp, apart):
    for layer in bnp._layers:
        layer.MAX_PASSES = apart
    value = sum(loss_of(model(row)) for row in batch(3).split(1)) / 3
    (0.25 * value).backward(retain_graph=True)
    (0.75 * value).backward()


@same("A layer in `eval()` that is trained", lambda model: model[2], lambda model: model)
def test_layer_in_eval_is_preconditioned(model, bnp, part):
    part(model).eval()


@line("A frozen weight, a frozen bias")
def test_frozen_parameters_stay():
    model = network()
    model[0].requires_grad_(False)
    model[0].weight.grad = torch.ones_like(model[0].weight)  # of a time before
    model[2].bias.requires_grad_(False)
    bnp = BNP(model, rho=0.0, eps1=0.0, eps2=1e-12)
    backward(model)
    hidden = model[:2](batch()).detach()
    right = model[2].weight.grad / (hidden**2).mean(0)
    bnp.step()
    assert_same(model[2].weight.grad, right, 1e-9)
    assert not bnp.state_dict()["0"]["mean"].any()
    model[2].bias.grad = torch.ones_like(model[2].bias)  # of a time before
    sgd = torch.optim.SGD([model[2].weight], lr=0.1)
    for _ in range(2):
        sgd.zero_grad()
        take_step("step", bnp, partial(backward, model), sgd)
    loss = loss_of(model(batch()))
    model[2].weight.requires_grad_(False)  # between the passes
    loss.backward()
    model[2].bias.requires_grad_(True)  # nothing but a bias
    model.zero_grad()
    backward(model)
    right = model[2].bias.grad.clone()
    assert_step(bnp, model, [right])

    model, bnp = with_bnp(rho=0.0)
    bnp.attach(sgd := torch.optim.SGD(model.parameters(), lr=0.1))
    for _ in range(3):  # frozen when it has a gradient, which is filled with zeros
        sgd.zero_grad(set_to_none=False)
        backward(model)
        plain, before = gradients(model)[:2], values(model)[:2]
        sgd.step()
        model[0].weight.requires_grad_(False)
    right = [p - 0.1 * g for p, g in zip(before, plain, strict=True)]
    assert_same([right[1], before[0]], [model[0].bias.detach(), model[0].weight.detach()])


@line("A layer that did not run")
def test_idle_layer_stays():
    model = nn.ModuleList([nn.Linear(5, 2), nn.Linear(5, 2)]).double()
    bnp, adam = BNP(model), torch.optim.Adam(model.parameters(), lr=0.1)
    before = model[1].weight.detach().clone()
    take_step("split", bnp, partial(backward, model[0]), adam)
    assert torch.equal(model[1].weight, before)
    assert not bnp.state_dict()["1"]["mean"].any()
    kept = stepped(model[1], bnp, batch())[0]
    stepped(model[0], bnp, batch())  # the other still holds the gradient of an old step
    assert torch.equal(model[1].weight.grad, kept)
    model[0].zero_grad()
    backward(model[0])
    with bnp.split():
        assert torch.equal(model[1].weight.grad, kept)


def test_zero_gradient_layer_keeps_momentum_of_z():
    model = nn.ModuleList([dense(), dense()])
    bnp = BNP(model, rho=0.0)
    sgd = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    backward(model[0])
    backward(model[1])
    velocity = preconditioned(model[0], batch())
    for _ in range(2):
        before = values(model[0])
        with bnp.split():
            sgd.step()
        sgd.zero_grad(set_to_none=False)
        backward(model[1])
    right = [b - 0.1 * 0.9 * v for b, v in zip(before, velocity, strict=True)]
    assert_same(values(model[0]), right)


@line("An empty minibatch")
def test_empty_minibatch_is_refused_if_all_are():
    model = nn.ModuleList([nn.Linear(5, 2), nn.Linear(5, 2)]).double()
    bnp = BNP(model)
    bnp.attach(sgd := torch.optim.SGD(model.parameters(), lr=0.1))
    (model[0](batch()).sum() + model[1](batch(0)).sum()).backward()
    sgd.step()  # an expert to which no example was sent
    assert not model[1].weight.grad.any()
    assert not bnp.state_dict()["1"]["mean"].any()
    model.zero_grad()
    model[0](batch(0)).sum().backward()
    with pytest.raises(ValueError, match="all inputs had 0 rows"):
        sgd.step()  # with the P of the last step
    take_step("attach", bnp, partial(backward, model[0]), sgd)

    def all_masked(model, bnp):
        with bnp.mask(torch.zeros(8, dtype=torch.bool)):
            backward(model)
        bnp.step()

    refused(all_masked, "all inputs had 0 rows", ValueError)


def test_odd_makings_step():
    """Of a BNP under ``inference_mode``, of layers without rows or columns, of a copy in a step."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of torch, that there is nothing to initialize
        model = nn.Sequential(nn.Linear(5, 0), nn.Linear(0, 3)).double()
    with torch.inference_mode():
        bnp = BNP(model, rho=0.0)
    bnp.attach(sgd := torch.optim.SGD(model.parameters(), lr=0.1))
    backward(model)
    right = [p - 0.1 * p.grad for p in model.parameters()]
    sgd.step()
    assert_same(values(model), [p.detach() for p in right])

    model, bnp = with_bnp()
    with bnp.mask(torch.ones(8, dtype=torch.bool)):
        backward(model)
    twin, its_bnp = copy.deepcopy((model, bnp))
    twin.zero_grad()
    loss_of(checkpoint(twin, batch().requires_grad_(), use_reentrant=True)).backward()
    assert_step(its_bnp, twin, expected())


@line("NaN or infinity in an input")
def test_nonfinite_input_changes_nothing():
    reason = "inputs of '0' hold NaN or infinity"
    for form in ("step", "split", "raise"):
        model, bnp = with_bnp(check_finite="raise" if form == "raise" else True)
        sgd = torch.optim.SGD(model.parameters(), lr=0.1)
        backward(model, batch().index_fill(0, torch.tensor(1), torch.nan))
        with pytest.raises(FloatingPointError, match=reason) if form == "raise" else nullcontext():
            if form != "split":
                bnp.step()
        if form != "raise":
            block = bnp.split() if form == "split" else nullcontext()
            with pytest.raises(FloatingPointError, match=reason), block:
                sgd.step()
        assert_same(values(model), values(network()), 0.0)
        assert not bnp.state_dict()["0"]["mean"].any()
        assert_same(stepped(model, bnp, batch()), expected())
        sgd.step()
    model, bnp = with_bnp()
    bnp.attach(sgd := torch.optim.SGD(model.parameters(), lr=0.1))
    for first, outcome in ((torch.nan, pytest.raises(FloatingPointError)), (1.0, nullcontext())):
        model.zero_grad()
        backward(model, batch().index_fill(0, torch.tensor(1), first))
        with outcome:
            torch.optim.SGD.step(sgd)  # as wrappers do that call the method of the class
    model(batch())  # at θ again


@line("Padding")
def test_masked_rows_do_not_count():
    """Of sequences and of examples, which are then as if they were not there."""
    model, bnp = with_bnp()
    x, rows = batch(3, shape=(6, 5)), torch.arange(6) < torch.tensor([[2], [6], [1]])
    with bnp.mask(rows.long()):
        loss_of(model(x)[rows]).backward()
    assert_step(bnp, model, expected(x=x[rows]))
    for make, shape in LAYERS.values():
        layer, bnp = with_bnp(make().double(), rho=0.0)
        x = batch(2, shape=shape)
        with bnp.mask(torch.arange(5) < 2):
            loss_of(layer(torch.cat([x, torch.full((3, *shape), 99.0).double()]))[:2]).backward()
        assert_step(bnp, layer, preconditioned(layer, x))


@pytest.mark.parametrize("positions", ["rows", "map"])
def test_flattened_and_pooled_positions_ignore_padding(positions):
    """A layer reads sequences, the next one all their positions in a row, the last one means."""
    moved = []
    for length in (4, 7):
        torch.manual_seed(1)
        layers = nn.Linear(5, 4), nn.Linear(4, 4), nn.Linear(4, 3)
        model, bnp = with_bnp(nn.ModuleList(layers).double(), positions=positions)
        bnp.attach(sgd := torch.optim.SGD(model.parameters(), lr=0.1))
        for seed in range(2):
            x, rows = torch.full((3, length, 5), 99.0).double(), torch.zeros(3, length).bool()
            x[:, :4], rows[:, :4] = batch(3, shape=(4, 5), seed=seed), True
            sgd.zero_grad()
            with bnp.mask(rows):
                hidden = layers[1](layers[0](x).tanh().flatten(0, -2)).tanh().view(3, length, 4)
                means = (hidden * rows[..., None]).sum(1) / rows.sum(1, keepdim=True)
                loss_of(layers[2](means)).backward()
            sgd.step()
        moved.append(values(model))
    assert_same(*moved)


def test_mismatched_mask_is_refused_by_layer_name():
    model, bnp = with_bnp()
    with bnp.mask(torch.ones(4, 3, dtype=torch.bool)):
        reason = r"\(4, 3\) does not fit the input of '0', .* \(5, 3\)"
        with pytest.raises(ValueError, match=reason):
            model(batch(5, shape=(3, 5)))
        with bnp.mask(None):
            backward(model)
    assert_step(bnp, model, expected())


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoint_recomputation_requires_its_mask(reentrant):
    x, rows = torch.cat([batch(), batch(2, seed=1)]), torch.arange(10) < 8

    def loop(model, bnp, inside):
        with bnp.mask(rows):
            loss = loss_of(checkpoint(model, x.requires_grad_(), use_reentrant=reentrant)[:8])
            if inside:
                loss.backward()
        if not inside:
            loss.backward()
        bnp.step()
        return gradients(model)

    model, bnp = with_bnp()
    assert_same(loop(model, bnp, True), expected())
    if reentrant:
        reason = r"outside of bnp\.mask\. Put loss\.backward"
        refused(partial(loop, inside=False), reason)
    else:
        model.zero_grad()
        assert loop(model, bnp, False)


@line("A penalty on the weights in the loss")
def test_weight_penalties_are_preconditioned():
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
        bnp = BNP(layer, rho=0.0)
        for _ in range(3):
            layer.zero_grad()
            (loss_of(layer(batch())) + penalty(layer.weight)).backward()
            assert_step(bnp, layer, preconditioned(layer, batch()))


@line("`functional.linear(x, layer.weight)` beside `layer(x)`")
def test_weight_used_beside_its_layer_counts():
    layer, bnp = with_bnp(dense(), rho=0.0)
    loss_of(functional.linear(layer(batch()), layer.weight.T)).backward()
    assert_step(bnp, layer, preconditioned(layer, batch()))


@line("A hook on the gradient of a weight")
def test_weight_gradient_hook_is_warned_of():
    for register in (torch.Tensor.register_hook, torch.Tensor.register_post_accumulate_grad_hook):
        model, bnp = with_bnp()
        register(model[2].weight, lambda _: None)
        reason = r"\['2'\] have hooks.*multiply the weight by the mask"
        with pytest.warns(UserWarning, match=reason):
            stepped(model, bnp, batch())
        stepped(model, bnp, batch())


@line("A penalty on derivatives of the network")
def test_derivative_penalties_are_preconditioned():
    """The gradient is that of the whole loss, the rows are those of the forward pass."""
    for alone in (False, True):
        model, bnp = with_bnp(rho=0.0)
        x = batch().requires_grad_()
        value = loss_of(model(x))
        (slope,) = torch.autograd.grad(value, x, create_graph=True)
        penalty = slope.square().sum()
        (penalty if alone else value + penalty).backward()
        hidden = model[:2](batch()).detach()
        right = preconditioned(model[0], batch()) + preconditioned(model[2], hidden)
        assert_step(bnp, model, right)
    # a critic's penalty reaches the last weight through the gradient of its input alone
    model, bnp = with_bnp(rho=0.0)
    x, real = batch().requires_grad_(), batch(5, seed=1)
    (slope,) = torch.autograd.grad(model(x).sum(), x, create_graph=True)
    (loss_of(model(real)) + slope.square().sum()).backward()
    both = torch.cat([real, batch()])
    right = preconditioned(model[0], both)
    assert_step(bnp, model, right + preconditioned(model[2], model[:2](both).detach()))


@line("`functional.linear(x, layer.weight)`")
def test_step_without_passes_of_its_layers_is_refused():
    def loop(model, bnp):
        hidden = model[1](functional.linear(batch(), model[0].weight, model[0].bias))
        backward(model[2], hidden)
        bnp.step()

    refused(loop, r"the weights of \['0'\] have a gradient, but none")
    refused(lambda _, bnp: bnp.step(), "found no forward pass since the last step")
    reason = r"call loss\.backward\(\) before bnp"
    refused(lambda model, bnp: (model(batch()), bnp.step()), reason)


@same("Checkpointing, reentrant or not", True, False)
def test_checkpointed_rows_count_once(model, bnp, reentrant):
    x = batch().requires_grad_()  # reentrant checkpoints differentiate only such inputs
    loss_of(checkpoint(model, x, use_reentrant=reentrant)).backward()
    for layer in bnp._layers:
        assert [one.rows.rows for one in layer.passes] == [8]


def test_rows_count_beside_nested_backward_pass():
    layer, bnp = with_bnp(nn.Linear(5, 5).double(), rho=0.0)
    hidden = layer(batch().requires_grad_())
    loss_of(layer(checkpoint(layer, hidden, use_reentrant=True))).backward()
    rows = torch.cat([batch(), hidden, layer(hidden)]).detach()
    assert_step(bnp, layer, preconditioned(layer, rows))


def tie(model):
    model.append(nn.Linear(6, 3).double())
    model[3].weight = model[2].weight
    model[3].forward = lambda x: x


@line("A layer replaced, parametrized or pruned since")
def test_changed_layers_are_refused():
    computed = "'2' .* its weight is computed from other parameters"
    changed = r"the layers \[{}\] are not those that BNP.*bnp = BNP\(model\)"
    deeper = nn.Sequential(nn.Linear(6, 3), nn.Linear(3, 3)).double()
    narrow = nn.Parameter(torch.ones(6, 5).double()[:, :4])
    for change, reason in (
        (lambda m: m.__setitem__(2, nn.Linear(6, 3).double()), changed.format("'2'")),
        (lambda m: m.__setitem__(2, deeper), changed.format("'2', '2.0', '2.1'")),
        (lambda m: setattr(m[0], "weight", narrow), changed.format("'0'")),
        (lambda m: parametrizations.weight_norm(m[2]), computed),
        (lambda m: prune.l1_unstructured(m[2], "weight", 3), computed),
        (lambda m: setattr(m[2], "forward", lambda x: x[:, :3]), "'2'.*forward"),
        (tie, "'2': it shares its weight with '3'"),
    ):
        error = RuntimeError if "the layers" in reason else ValueError
        for act in (BNP.step, lambda bnp: bnp.split().__enter__()):

            def loop(model, bnp, change=change, act=act):
                stepped(model, bnp, batch())
                change(model)
                model.zero_grad()
                backward(model, batch(shape=model[0].weight.shape[1:]))
                act(bnp)

            refused(loop, reason, error)
    model, bnp = with_bnp()
    model[1] = nn.Tanh()  # other modules may change, and so may the tensor of a weight
    model[0].weight = nn.Parameter(model[0].weight.detach().clone())
    assert_same(stepped(model, bnp, batch()), expected())


@line("A second `BNP` on a layer")
def test_second_bnp_on_a_layer_is_refused():
    model = network()
    first = BNP(model)
    with pytest.raises(ValueError, match="'0' has a BNP already"):
        BNP(model)
    first.remove()
    BNP(model)  # nobody holds it, so it is released
    parts = [BNP(model[0]), BNP(model, skip=("0",))]
    assert [len(module._forward_hooks) for module in model] == [1, 0, 1]
    backward(model)
    for part in parts:
        part.step()
    assert_same(gradients(model), expected())


@line("`state_dict`, `load_state_dict`")
def test_resumed_training_is_bit_identical():
    """Training that is resumed from a file is bit-identical, also the constants."""

    def fresh(*constants):
        model = network()
        adam, bnp = torch.optim.Adam(model.parameters(), lr=0.01), BNP(model, *constants)
        bnp.attach(adam)
        return model, bnp, adam

    def go(model, bnp, adam, seeds):
        for seed in seeds:
            adam.zero_grad()
            backward(model, batch(seed=seed))
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


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"var": torch.full((1, 7), 7.0)}, "another model"),
        ({"mean": torch.full((6,), 7.0)}, "another model"),
        ({"rho": 0.5}, "different"),
        (lambda s: {"0": s["0"]}, "another model"),
        (lambda s: s | {"4": s["2"]}, "another model"),
        (lambda s: s | {"2": {"mean": s["2"]["mean"]}}, "another model"),
        (lambda s: {name: part | {"rho": 1.0} for name, part in s.items()}, "rho must lie"),
    ],
)
def test_mismatched_state_is_refused_without_changes(change, reason):
    model, other = network(), network()
    bnp, source = BNP(model), BNP(other, rho=0.7)
    stepped(model, bnp, batch())
    stepped(other, source, batch(9))
    before, state = bnp.state_dict(), source.state_dict()
    state = change(state) if callable(change) else state | {"2": state["2"] | change}
    with pytest.raises(ValueError, match=reason):
        bnp.load_state_dict(state)
    assert_same(bnp.state_dict(), before, 0.0)


@line("`copy.deepcopy((model, bnp))`, pickle, `torch.save`")
def test_copies_train_by_themselves():
    model, bnp = with_bnp()
    file = io.BytesIO()
    torch.save((model, bnp), file)
    file.seek(0)
    for twin, copied in (
        copy.deepcopy((model, bnp)),
        pickle.loads(pickle.dumps((model, bnp))),
        torch.load(file, weights_only=False),
    ):
        assert_same(stepped(twin, copied, batch()), expected())
        with pytest.raises(ValueError, match="has a BNP already"):
            BNP(twin)
    twin = copy.deepcopy(model)  # its hooks are those of no BNP
    assert_same(stepped(twin, BNP(twin), batch()), expected())
    assert not bnp.state_dict()["0"]["mean"].any()


@line("`optdl.training.train`")
def test_training_hook_steps_on_z():
    x = batch(24).numpy()
    examples, model = Examples(x, (x.sum(1) > 15).astype(int)), network()
    twin, adam = copy.deepcopy(model), torch.optim.Adam(model.parameters(), lr=0.01)
    train(model, examples, adam, epochs=2, batch_size=24, hooks=[BNP(model, split=True)])
    bnp, adam = BNP(twin), torch.optim.Adam(twin.parameters(), lr=0.01)
    for _ in range(2):
        adam.zero_grad()
        loss = functional.cross_entropy(twin(batch(24)), torch.from_numpy(examples.y))
        take_step("split", bnp, loss.backward, adam)
    assert_same([*model.parameters()], [*twin.parameters()], 1e-11)


def test_network_is_unchanged_by_bnp():
    model = network()
    names, output = list(model.state_dict()), model(batch())
    model[2].register_forward_hook(lambda *given: given[-1:])  # a tuple, which BNP does not see
    bnp = BNP(model)
    assert torch.equal(model(batch())[0], output)
    assert list(model.state_dict()) == names
    bnp.remove()
    assert not model[0]._forward_hooks


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_idle_optimizer_leaves_parameters_bit_identical(dtype):
    for make, shape in LAYERS.values():
        model = make().to(dtype)
        bnp, before = BNP(model, rho=0.5), values(model)
        for enabled in (True, False):  # and the block has the grad mode of the caller
            model.zero_grad()
            backward(model, batch(6, shape=shape).to(dtype))
            with torch.set_grad_enabled(enabled), bnp.split():
                assert not torch.equal(model.weight, before[0])
                assert torch.is_grad_enabled() is enabled
            assert_same(values(model), before, 0.0)


# --- What one may ask for ---------------------------------------------------------------------


@line("`corrected=True`")
def test_corrected_averages_match_definition():
    """m̂ = m/(1 − ρᵗ) of averages that begin at 0, as Adam's do, and so for the variance."""
    layer, rho = dense(), 0.9
    bnp = BNP(layer, rho=rho, corrected=True)
    mean = var = torch.zeros(5).double()
    for t in range(1, 5):
        x = batch(seed=t)
        mean = rho * mean + (1 - rho) * x.mean(0)
        var = rho * var + (1 - rho) * x.var(0, correction=0)
        layer.zero_grad()
        backward(layer, x)
        share = 1 - rho**t
        assert_step(bnp, layer, preconditioned(layer, x, mean=mean / share, var=var / share))
        if t == 2:  # t is part of the state
            saved = bnp.state_dict()
            bnp.remove()
            bnp = BNP(layer, rho=rho, corrected=True)
            bnp.load_state_dict(saved)
    with pytest.raises(ValueError, match="another model"):
        BNP(dense()).load_state_dict(saved)


@line("`q2`, `constants`")
def test_constants_by_name_and_type_match_matrix():
    x = batch(2)
    for q2, q2_right in {"paper": 2.5, "off": 1.0, max: 5.0}.items():  # n/N = 5/2
        layer, own = dense(), {"q2": q2, "eps1": 0.5, "eps2": 0.25, "rho": 0.0}
        backward(layer, x)
        right = preconditioned(layer, x, q2=q2_right, eps1=0.5, eps2=0.25)
        for options in ({"constants": {"": own}}, {"constants": {nn.Linear: own}}, own):
            bnp = BNP(layer, **options)
            assert_same(stepped(layer, bnp, x), right)
            bnp.remove()


@line("`report()`")
def test_report_lists_each_module():
    model = nn.Sequential(nn.Conv2d(2, 4, 1), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(4, 4))
    model.append(nn.Linear(4, 2, bias=False)).append(nn.Linear(2, 1)).requires_grad_(True)
    model[5].requires_grad_(False)
    bnp = BNP(model.double(), skip=("3",))
    assert bnp.report().splitlines()[1].split()[:3] == ["0", "Conv2d", "2"]
    stepped(model, bnp, batch(1, shape=(2, 1, 1)).repeat(4, 1, 1, 1))
    assert bnp.report().splitlines() == [
        "name  kind         inputs  q²  share",
        "0     Conv2d       2       1   23.5%  preconditioned",
        "1     BatchNorm2d  -       -   15.7%  plain: neither dense nor convolutional",
        "3     Linear       -       -   39.2%  plain: skipped",
        "4     Linear       4       1   15.7%  scaled only: no bias that is trained",
        "5     Linear       2       -   5.9%   frozen",
    ]


# --- Wrappers ---------------------------------------------------------------------------------


def two_steps(kind, sizes=(8,), rank=0):
    """Return the parameters after two attached steps with a share of each batch."""
    model = network()
    ddp = model if kind == "alone" else DistributedDataParallel(model)
    run = nn.Sequential(ddp) if kind == "wrapper" else ddp
    run = torch.compile(ddp, backend="aot_eager") if kind == "compiled" else run
    given = model if kind in ("module", "group") else run
    group = {"process_group": distributed.group.WORLD} if kind == "group" else {}
    bnp = BNP(given, rho=0.5, **group)
    sgd = torch.optim.SGD(model.parameters(), lr=0.1)
    bnp.attach(sgd)
    for step in range(2):
        sgd.zero_grad()
        x = batch(sum(sizes), seed=step).split(sizes)[rank]
        (loss_of(run(x)) * len(x) * len(sizes) / sum(sizes)).backward()
        sgd.step()
    bnp.remove()
    return values(model)


def in_one_of_two(rank):
    """Return what comes of training with a share of the batch, wrapped in each way."""
    kinds = ("ddp", "module", "wrapper", "group", "compiled")
    results = {kind: two_steps(kind, (5, 3), rank) for kind in kinds}
    results["single rows"] = two_steps("ddp", (1, 1), rank)

    def join(ddp, bnp):
        with Join([ddp]):
            for x in batch().split(2)[: 3 - rank]:
                backward(ddp, x)
                bnp.step()

    reason = "the same number of minibatches, as DistributedSampler does"
    with pytest.raises(RuntimeError, match=reason):
        join(*with_bnp(DistributedDataParallel(network())))
    with pytest.raises(RuntimeError, match="2 processes run, but BNP found no DistributedDataPar"):
        stepped(*with_bnp(), batch())  # whose gradients are averaged by nobody
    return results | {"alone": stepped(*with_bnp(process_group=None), batch())}


@compiling
@line(
    "`DistributedDataParallel`",
    "`Join`, for processes with unequal numbers of minibatches",
    "`torch.compile(ddp)`",
    "Several processes in another way",
)
def test_two_processes_match_one(tmp_path):
    for results in given_by_two(in_one_of_two, tmp_path):
        for kind in ("ddp", "module", "wrapper", "compiled", "group"):
            assert_same(results[kind], two_steps("alone"), 1e-11)
        assert_same(results["single rows"], two_steps("alone", (2,)), 1e-11)
        assert_same(results["alone"], expected())


@compiling
@line("`torch.compile(model)`")
@in_plain_process
def test_compiled_passes_count_after_reset():
    model = network()
    torch.compile(model, backend="aot_eager")(batch())  # no hooks are in this code
    compiled = torch.compile(model, backend="aot_eager")
    bnp = BNP(compiled)
    with pytest.raises(RuntimeError, match=r"call torch\.compiler\.reset\(\) after BNP"):
        stepped(model, bnp, batch(), forward=compiled)
    torch.compiler.reset()
    assert_same(stepped(model, bnp, batch(), forward=compiled), expected())
    model.zero_grad()
    beside = loss_of(model(batch(3, seed=1)))  # eager
    (loss_of(compiled(batch())) + beside).backward()
    assert [sum(one.rows.rows for one in layer.passes) for layer in bnp._layers] == [11, 11]
    bnp.reset()
    model[2].eval()  # compiled code does not tell whether it is differentiated
    torch.compiler.reset()
    with pytest.raises(RuntimeError, match=r"the weights of \['2'\] have a gradient"):
        stepped(model, bnp, batch(), forward=compiled)


WANTS_COMPILER = pytest.mark.skipif(shutil.which("g++") is None, reason="needs a C++ compiler")
INDUCTOR = pytest.param("inductor", marks=[pytest.mark.slow, WANTS_COMPILER])


@compiling
@pytest.mark.parametrize("backend", ["aot_eager", INDUCTOR])
@in_plain_process
def test_compiled_steps_match_plain_ones(backend):
    model, twin = network(), network()
    (_, bnp), (_, other) = with_bnp(model), with_bnp(twin)

    def compare(step=bnp.step):
        step()
        other.step()
        assert_same(gradients(model), gradients(twin))
        model.zero_grad()
        twin.zero_grad()

    compiled, x = torch.compile(model, backend=backend, fullgraph=True), batch(4)
    with torch.no_grad():
        compiled(x)
    for parts in (1, 2):  # accumulated ones all count
        for net, part in itertools.product((compiled, twin), x.chunk(parts)):
            backward(net, part)
        compare()
        with bnp.mask(torch.arange(4) < 3):
            loss_of(compiled(x)[:3]).backward()
        backward(twin, x[:3])
        compare()
    compiled(x)
    backward(compiled, x)
    reason = "^4 compiled passes through layers since the last step, and only 2 of them were"
    with pytest.raises(RuntimeError, match=reason):
        bnp.step()
    compiled(x)
    bnp.reset()
    model.zero_grad()
    backward(compiled, x)
    backward(twin, x)
    compare()
    bnp.check_finite = False
    torch.compiler.reset()  # all compiled functions share one limit of recompilations
    step = torch.compile(bnp.step, backend=backend, fullgraph=True)
    for rows in (6, 6, 9):  # the step itself
        backward(model, batch(rows))
        backward(twin, batch(rows))
        compare(step)


def test_bnp_imports_torch_and_numpy_alone():
    code = "import sys, torch.nn.parallel; known = set(sys.modules); from optdl.bnp import BNP; "
    code += "print(*{name.split('.')[0] for name in set(sys.modules) - known})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {*done.stdout.split()} - {"optdl"} <= {"numpy", *sys.stdlib_module_names}


@line("`torch.func`")
def test_functional_gradients_count_unless_vmapped():
    model, bnp = with_bnp()
    theta = {name: p.detach() for name, p in model.named_parameters()}

    def loss(theta, x):
        return loss_of(functional_call(model, theta, x))

    with warnings.catch_warnings():  # of torch's own, at its first jvp
        warnings.simplefilter("ignore", DeprecationWarning)
        func.jvp(model, (batch(seed=1),), (batch(),))
    func.vmap(model)(batch(seed=1))
    for make in (func.grad(loss), func.vmap(func.grad(loss), (None, 0))):
        for name, gradient in make(theta, batch()).items():
            parameter = model.get_parameter(name)
            parameter.grad = gradient.view(-1, *parameter.shape).mean(0)
        with nullcontext() if gradient.ndim == 1 else pytest.raises(RuntimeError, match="nor vmap"):
            assert_step(bnp, model, expected())
    model.zero_grad()
    loss({name: 1 * p for name, p in model.named_parameters()}, batch()).backward()
    with pytest.raises(RuntimeError, match="nor functional_call with tensors"):
        bnp.step()
    model, bnp = with_bnp()
    backward(model)  # then other weights are looked at, whose rows are not those of the step
    copies = {name: p.detach().clone().requires_grad_() for name, p in model.named_parameters()}
    loss_of(functional_call(model, copies, batch(seed=1))).backward()
    assert_step(bnp, model, expected())


@compiling
@in_plain_process
@same(
    "`torch.export`, `torch.fx`",
    lambda model: torch.export.export(model, (batch(),)).module(),
    fx.symbolic_trace,
)
def test_exported_models_leave_no_trace(model, bnp, make):
    assert_same(make(model)(batch()), model(batch()))


@line("FSDP, DTensor", "`nn.DataParallel` on several devices")
def test_sharded_weights_are_refused():
    sharded = type("FullyShardedDataParallel", (nn.Sequential,), {})
    assert_refused(sharded(network()), "in parts on several devices")
    model = network()
    model[0].weight.device_mesh = "as a DTensor has"
    assert_refused(model, "in parts on several devices")
    model = nn.DataParallel(network())
    BNP(model)  # on one device it copies nothing
    model.device_ids = [0, 1]
    assert_refused(model, "Use DistributedDataParallel")


# --- Precision and devices --------------------------------------------------------------------


@line("Autocast")
def test_autocast_statistics_are_float32():
    model = network(torch.float32)
    bnp, x = BNP(model, rho=0.0), batch(dtype=torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        loss = loss_of(model(x).float())
    loss.backward()
    bnp.step()
    state = bnp.state_dict()["0"]
    assert state["mean"].dtype == torch.float32
    assert_same([state["mean"][0]], [x.mean(0)], 1e-6)


@line("Weights of half precision")
def test_half_precision_steps_match_float32():
    """Gradients of step(), and steps of Adam in split form, are nearly those of wide weights."""
    forms = (torch.bfloat16, "step"), (torch.float16, "step"), (torch.bfloat16, "split")
    layers = map(LAYERS.get, ("dense", "convolution", "no bias"))
    for (make, shape), (narrow, form) in itertools.product(layers, forms):
        moved = []
        for dtype in (narrow, torch.float32):
            torch.manual_seed(1)
            model, bnp = with_bnp(make().to(narrow).to(dtype), rho=0.0)
            before, x = values(model), batch(6, shape=shape).to(narrow).to(dtype)
            adam = [torch.optim.Adam([model.weight], lr=0.5)] * (form == "split")
            take_step(form, bnp, loss_of(model(x).float()).backward, *adam)
            result = model.weight.grad if form == "step" else model.weight - before[0]
            assert result.dtype == dtype
            moved.append(result.detach().float())
        assert (moved[0] - moved[1]).abs().max() < 0.1 * moved[1].abs().max(), form


@line("`model.double()`, `.half()`, `.to(device)` afterwards")
def test_statistics_follow_the_model():
    model, bnp = with_bnp(network(torch.float32))
    stepped(model, bnp, batch(seed=1, dtype=torch.float32))
    model.double()
    found = stepped(model, bnp, batch())
    twin = network(torch.float32).double()
    bnp = BNP(twin)
    stepped(twin, bnp, batch(seed=1))
    assert_same(found, stepped(twin, bnp, batch()), 1e-6)
    assert bnp.state_dict()["0"]["mean"].dtype == torch.float64
    model = network(torch.float64)
    bnp = BNP(model)
    model.bfloat16()
    stepped(model, bnp, batch(dtype=torch.bfloat16))
    assert bnp.state_dict()["0"]["mean"].dtype == torch.float32


# --- Layers -----------------------------------------------------------------------------------

LAYERS = {  # and the shape of an example
    "dense": (partial(nn.Linear, 5, 3), (5,)),
    "dense, no bias": (partial(nn.Linear, 5, 3, bias=False), (5,)),
    "wide": (partial(nn.Linear, 40, 2), (40,)),
    "sequence": (partial(nn.Conv1d, 4, 3, 3, stride=2), (4, 7)),
    "convolution": (partial(nn.Conv2d, 4, 6, 3, padding=1), (4, 5, 5)),
    "large maps": (partial(nn.Conv2d, 2, 3, 3), (2, 40, 40)),
    "no bias": (partial(nn.Conv2d, 4, 6, 3, bias=False), (4, 5, 5)),
    "groups": (partial(nn.Conv2d, 4, 6, (3, 1), groups=2), (4, 5, 5)),
    "volume": (partial(nn.Conv3d, 4, 6, (1, 2, 2), groups=2), (4, 3, 4, 4)),
    "dilation": (partial(nn.Conv2d, 3, 4, 2, 2, 1, 2, padding_mode="circular"), (3, 5, 5)),
}


@line("`nn.Conv1d`, `nn.Conv2d`, `nn.Conv3d`", "Groups", "No bias", "`channels_last`")
def test_all_layers_step_on_z():
    """P moves, and features have several sizes."""
    for make, shape in LAYERS.values():

        def seeded(make=make):
            torch.manual_seed(1)
            return make().double()

        sizes = torch.logspace(-1, 1, shape[0]).view(-1, *[1] * (len(shape) - 1))
        batches = [batch(count, seed, shape) * sizes for seed, count in enumerate((6, 2, 6))]
        assert_on_z(MAKERS["decay"], ("step", "split", "attach"), seeded, batches, rho=0.7)
        for name in ("momentum", "AdamW", "RMSprop"):
            assert_on_z(MAKERS[name], ("split", "attach"), seeded, batches, rho=0.7)
        layer, x = seeded(), batch(1, shape=shape)
        bnp = BNP(layer, rho=0.0)
        right = stepped(layer, bnp, x)
        assert_same(stepped(layer, bnp, x[0]), right)  # without the axis of the examples
        if x.ndim == 4:
            layer.to(memory_format=torch.channels_last)
            assert_same(stepped(layer, bnp, x.to(memory_format=torch.channels_last)), right)


@line("`nn.Linear` on any number of axes")
def test_linear_layers_take_any_axes():
    x = batch(24)
    layer, bnp = with_bnp(dense(), rho=0.0)
    for shape in ((24, 5), (2, 3, 4, 5)):
        found = stepped(layer, bnp, x.reshape(shape), forward=lambda x: layer(input=x))
        assert_same(found, expected(dense, x, rho=0.0))
    padded_rows = torch.arange(5) < torch.tensor([[2], [5], [0]])
    for count, length, rows in ((2, 12, None), (12, 2, None), (3, 5, padded_rows)):
        layer, twin, found = dense(), nn.Conv1d(5, 3, 1).double(), []
        twin.load_state_dict({"weight": layer.weight[..., None], "bias": layer.bias})
        h = batch(count, shape=(length, 5))
        for model in (layer, twin):
            bnp = BNP(model, positions="map")
            with bnp.mask(rows):
                output = model(h) if model is layer else model(h.mT).mT
            loss_of(output if rows is None else output[rows]).backward()
            bnp.step()
            found.append([model.weight.grad.view(3, 5), model.bias.grad])
        assert_same(*found)


@line("Embedding and normalization layers")
def test_other_layers_keep_their_gradient():
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Embedding(7, 5), nn.LayerNorm(5), nn.Linear(5, 4), nn.BatchNorm1d(4), nn.Linear(4, 2)
    ).double()
    for layer in (model[2], model[4]):
        layer.bias.requires_grad_(False)  # it may stay: what a normalization hands on is centered
    assert_only_changed(model, BNP(model), torch.arange(7), ("2.weight", "4.weight"))


def assert_only_changed(model, bnp, x, parts):
    """Let a step change the gradients of those parameters alone whose names hold such a part."""
    backward(model, x)
    plain = {name: p.grad.clone() for name, p in model.named_parameters() if p.requires_grad}
    bnp.reset()
    stepped(model, bnp, x)
    for name, gradient in plain.items():
        same = torch.equal(model.get_parameter(name).grad, gradient)
        assert same != any(part in name for part in parts), name


@line("`nn.MultiheadAttention`, `nn.TransformerEncoderLayer`")
def test_attention_is_refused_unless_skipped():
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True).double()
    model = nn.TransformerEncoder(layer, 2)
    assert_refused(model, r"skip=\(nn\.MultiheadAttention,\)\)")
    bnp = BNP(model, skip=(nn.MultiheadAttention,))
    assert [layer.name for layer in bnp._layers] == [
        f"layers.{at}.linear{number}" for at in (0, 1) for number in (1, 2)
    ]
    x = batch(4, shape=(3, 8))
    assert_only_changed(model, bnp, x, ("linear",))
    with torch.no_grad():
        trained = model(x)
        bnp.remove()
        assert_same([model.eval()(x)], [trained], 1e-10)


class Masked(nn.Linear):
    def forward(self, x):
        return functional.linear(x, self.weight.tril(), self.bias)


class Standardized(nn.Conv2d):
    def _conv_forward(self, x, weight, bias):
        return super()._conv_forward(x, weight - weight.mean(), bias)


SCALED = nn.Linear(4, 4)
SCALED.forward = lambda x: functional.linear(x, 2 * SCALED.weight)
OWN = nn.modules.conv._ConvNd(2, 2, (3,), (1,), (0,), (1,), False, (0,), 1, True, "zeros")


@line(
    "Recurrent, bilinear and transposed layers",
    "Masked, equalized and other layers with a forward of their own",
    "Complex weights",
)
def test_layers_with_their_own_forward_are_refused():
    for odd, reason in (
        (nn.LSTM(2, 2), "at every time"),
        (nn.GRUCell(2, 2), "two layers in one"),
        (nn.Bilinear(2, 2, 2), "not linear in one input"),
        (nn.ConvTranspose1d(2, 2, 3), "not inputs under a window"),
        (OWN, "nn.Conv3d have Algorithm 3"),
        (Masked(4, 4), "its forward is not that of nn.Linear"),
        (type("Linear", (Masked,), {"__module__": "qat"})(4, 4), r"skip=\(qat\.Linear,\)"),
        (Standardized(4, 4, 1), "its forward is not that of nn.Conv2d"),
        (SCALED, "its forward is not that of nn.Linear"),
        (nn.Linear(2, 2, dtype=torch.complex64), "its weight is complex"),
    ):
        model = nn.ModuleDict({"dense": nn.Linear(2, 2), "conv": nn.Conv1d(2, 2, 2), "odd": odd})
        assert_refused(model, reason, skip=(type(odd),))
        assert_refused(model, reason, skip=("odd",))
    BNP(nn.Sequential(type("Named", (nn.Linear,), {})(4, 4)))  # a name alone changes nothing


def tied(kind, head_first=False):
    """Return a network in which two modules hold one weight, in either order."""
    torch.manual_seed(1)
    embed = kind(7, 4) if kind is nn.Embedding else kind(4, 7)
    parts = {"embed": embed, "head": nn.Linear(4, 7), "inner": nn.Linear(4, 4)}
    model = nn.ModuleDict(dict(sorted(parts.items(), reverse=head_first))).double()
    model["head"].weight = embed.weight
    model.forward = lambda x: model["head"](model["inner"](embed(x)[..., :4]))
    return model


@line("Sparse and nested inputs")
def test_sparse_and_nested_inputs_are_refused():
    ragged = torch.nested.nested_tensor([batch(2), batch(3)], layout=torch.jagged)
    for x in (batch().to_sparse(), ragged):
        refused(lambda model, _, x=x: model[0](x), "'0' is sparse or nested.*to_dense", ValueError)


@line("Tied, parametrized, lazy and meta weights")
def test_tied_and_computed_weights_are_refused():
    for kind, x in ((nn.Embedding, torch.arange(7)), (nn.Linear, batch(6, shape=(4,)))):
        for head_first in (False, True):
            model = tied(kind, head_first)
            with pytest.raises(ValueError, match="shares its weight with") as caught:
                BNP(model)
            advice = r"To leave (?:it|them) with (?:its|their) plain gradient: (BNP\(.*?\)\))"
            bnp = eval(re.search(advice, str(caught.value))[1])  # is what it names
            assert_only_changed(model, bnp, x, ("inner",))
    for kind, one_alone in ((nn.Embedding, "embed"), (nn.Linear, "embed"), (nn.Linear, "head")):
        with pytest.raises(ValueError, match=r"it shares its weight with '(embed|head)'"):
            BNP(tied(kind), skip=(one_alone,))
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    model[1].weight.data = model[0].weight.data
    assert_refused(model, "'0': it shares its weight with '1'")
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    model[1].bias = model[0].bias
    assert_refused(model, "'0': it shares its bias with '1'")
    for name in ("weight", "bias"):
        normalized = parametrizations.weight_norm(nn.Linear(2, 2), name, dim=None)
        assert_refused(nn.Sequential(normalized), rf"its {name} is computed.*skip=\('0',\)\)$")
    assert_refused(nn.Linear(2, 2, device="meta"), r"make the BNP after model\.to_empty")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert_refused(nn.Sequential(nn.LazyLinear(2)), "run one batch through the model first")


@line("`skip`")
def test_skip_leaves_modules_alone():
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.Linear(8, 4), nn.Linear(4, 2))
    for skip, left in ((("2",), "03"), ((nn.Conv2d,), "23"), ((nn.Linear,), "0")):
        bnp = BNP(model, skip=skip)
        assert [layer.name for layer in bnp._layers] == list(left)
        bnp.remove()
    assert repr(BNP(model, skip=(nn.Conv2d, "3"))).startswith("BNP(layers=['2']")
    model = nn.ModuleDict({"a": nn.Linear(3, 3), "c": nn.Linear(3, 3)})
    model["b"] = model["a"]
    for name in "ab":
        assert repr(BNP(model, skip=(name,))).startswith("BNP(layers=['c']")
