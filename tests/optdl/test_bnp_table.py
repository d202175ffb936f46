"""The table "What works with what" of the API: each of its lines is tried."""

import copy
import inspect
import io
import pickle
import re
import warnings
from pathlib import Path

import pytest
import torch
import typechecking
from torch import distributed, nn
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


# --- Small networks ---------------------------------------------------------------------------


def network(dtype=torch.float64):
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, 3)).to(dtype)


def batch(count=8, seed=0, shape=(5,), dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    x = 3 + 2 * torch.randn(count, *shape, generator=generator, dtype=torch.float64)
    return x.to(dtype)


def loss_of(output):
    return (output.sin() + 0.1 * output**2).mean()


def stepped(model, preconditioner, *batches, forward=None):
    """Return the gradients that a step makes of some batches."""
    model.zero_grad()
    for x in batches:
        (loss_of((forward or model)(x)) / len(batches)).backward()
    preconditioner.step()
    return gradients(model)


def gradients(model):
    return [p.grad.clone() for p in model.parameters() if p.grad is not None]


def expected(build=network, x=None):
    """Return the gradients of a step of an undisturbed network."""
    model = build()
    return stepped(model, BNP(model), batch() if x is None else x)


def assert_same(found, right, tolerance=1e-12):
    for one, other in zip(found, right, strict=True):
        torch.testing.assert_close(one, other, rtol=tolerance, atol=tolerance)


def assert_refused(model, reason, skip=None):
    with pytest.raises(ValueError, match=reason):
        BNP(model)
    if skip is not None:
        BNP(model, skip=skip)


# --- Optimizers -------------------------------------------------------------------------------


def both_forms(make, steps=3, model=network):
    """Return the parameters after some steps in each form, on one batch, so that P stays."""
    results = []
    for form in ("step", "split"):
        net = model()
        preconditioner, optimizer = BNP(net, rho=0.0), make(net.parameters())
        for _ in range(steps):
            optimizer.zero_grad()
            loss_of(net(batch())).backward()
            if form == "step":
                preconditioner.step()
                optimizer.step()
            else:
                with preconditioner.split():
                    optimizer.step()
        results.append([p.detach().clone() for p in net.parameters()])
    return results


def dense():
    torch.manual_seed(1)
    return nn.Linear(5, 3).double()


@line("SGD, momentum, Nesterov, ASGD")
def _():
    for options in ({}, {"momentum": 0.9}, {"momentum": 0.9, "nesterov": True}):
        assert_same(*both_forms(lambda p, o=options: torch.optim.SGD(p, lr=0.1, **o), model=dense))
    assert_same(*both_forms(lambda p: torch.optim.ASGD(p, lr=0.1), model=dense))


@line("Adam, AdamW, RMSprop, Adagrad, any other")
def _():
    for make in (torch.optim.Adam, torch.optim.AdamW, torch.optim.RMSprop, torch.optim.Adagrad):
        with pytest.warns(UserWarning, match=rf"before {make.__name__}.*with bnp\.split\(\)"):
            step, split = both_forms(lambda p, m=make: m(p, lr=0.01))
        assert not torch.allclose(step[0], split[0])


@line("`foreach=True`, `fused=True`")
def _():
    results = []
    for options in ({"foreach": False}, {"foreach": True}, {"fused": True}):
        model = network()
        preconditioner = BNP(model)
        adam = torch.optim.AdamW(model.parameters(), lr=0.01, **options)
        loss_of(model(batch())).backward()
        with preconditioner.split():
            adam.step()
        results.append([p.detach() for p in model.parameters()])
    assert_same(results[0], results[1])
    assert_same(results[0], results[2])


@line("A step after the block of `split()`")
def _():
    model = network()
    preconditioner, adam = BNP(model), torch.optim.Adam(model.parameters())
    loss_of(model(batch())).backward()
    with preconditioner.split():
        pass
    with pytest.raises(RuntimeError, match="Move it into the block"):
        adam.step()


@line("LBFGS")
def _():
    model = network()
    preconditioner, lbfgs = BNP(model), torch.optim.LBFGS(model.parameters())
    loss_of(model(batch())).backward()
    with pytest.raises(RuntimeError, match="such as LBFGS"), preconditioner.split():
        lbfgs.step(lambda: loss_of(model(batch())))


@line("Several optimizers, parameter groups")
def _():
    model, twin = network(), network()
    x = batch()
    for net, optimizers in (
        (model, [torch.optim.Adam(part.parameters(), lr=0.01) for part in (model[0], model[2])]),
        (twin, [torch.optim.Adam([{"params": [p]} for p in twin.parameters()], lr=0.01)]),
    ):
        preconditioner = BNP(net)
        loss_of(net(x)).backward()
        with preconditioner.split():
            for optimizer in optimizers:
                optimizer.step()
    assert_same([*model.parameters()], [*twin.parameters()])


@line("`weight_decay` of SGD")
def _():
    """One step moves θ by −ηλPPᵀ∇(½‖P⁻¹θ‖²) = −ηλθ more, whichever the form."""
    plain = both_forms(lambda p: torch.optim.SGD(p, lr=0.1), steps=1)[0]
    before = [p.detach() for p in network().parameters()]
    for decayed in both_forms(lambda p: torch.optim.SGD(p, lr=0.1, weight_decay=0.5), steps=1):
        assert_same(decayed, [p - 0.05 * b for p, b in zip(plain, before, strict=True)])


@line("Decoupled weight decay (AdamW)")
def _():
    found = []
    for decay in (0.0, 0.5):
        model = network()
        preconditioner = BNP(model)
        before = [p.detach().clone() for p in model.parameters()]
        adamw = torch.optim.AdamW(model.parameters(), lr=0.1, weight_decay=decay)
        loss_of(model(batch())).backward()
        with preconditioner.split():
            adamw.step()
        found.append([p.detach() for p in model.parameters()])
    assert_same(found[1], [p - 0.05 * b for p, b in zip(found[0], before, strict=True)])


@line("Clipping by norm")
def _():
    norms = {}
    for where in ("before", "after", "in"):
        model = dense()
        preconditioner = BNP(model, rho=0.0)
        loss_of(model(batch())).backward()
        g = torch.cat([model.bias.grad[None], model.weight.grad.T])
        if where == "before":
            norms[where] = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        elif where == "after":
            preconditioner.step()
            norms[where] = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        else:
            with preconditioner.split():
                norms[where] = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    x = batch()
    var = x.var(0, correction=0)
    P = torch.diag(torch.cat([torch.ones(1).double(), (var + 0.01 * var.max() + 1e-4).rsqrt()]))
    P[0, 1:] = -x.mean(0) * P.diag()[1:]
    right = {"before": g, "after": P @ P.T @ g, "in": P.T @ g}
    for where, gradient in right.items():
        torch.testing.assert_close(norms[where], gradient.norm(), rtol=1e-10, atol=0)


@line("`GradScaler`")
def _():
    results = []
    for scaled in (False, True):
        for form in ("step", "split"):
            model = network(torch.float32)
            preconditioner = BNP(model)
            sgd = torch.optim.SGD(model.parameters(), lr=0.1)
            scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, enabled=scaled)
            scaler.scale(loss_of(model(batch(dtype=torch.float32)))).backward()
            if form == "step":
                preconditioner.step()
                scaler.step(sgd)
            else:
                with preconditioner.split():
                    scaler.step(sgd)
            results.append([p.detach() for p in model.parameters()])
    for other in results[1:]:
        assert_same(other, results[0], 1e-5)


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
    for penalty in (
        lambda w: w.abs().sum(),
        lambda w: w.square().sum(),
        lambda w: w.norm(dim=1).sum(),
    ):
        model = network()
        preconditioner = BNP(model)
        (loss_of(model(batch())) + sum(penalty(model[at].weight) for at in (0, 2))).backward()
        preconditioner.step()
    model = network()
    preconditioner = BNP(model)
    loss_of(model(batch())).backward()
    (model[2].weight @ model[2].weight.T - torch.eye(3)).square().sum().backward()
    preconditioner.step()


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
    model = network()
    preconditioner = BNP(model)
    stepped(model, preconditioner, batch(seed=1))
    saved = preconditioner.state_dict()
    preconditioner.remove()
    resumed = BNP(model)
    resumed.load_state_dict(saved)
    found = stepped(model, resumed, batch())
    model = network()
    preconditioner = BNP(model)
    stepped(model, preconditioner, batch(seed=1))
    assert all(map(torch.equal, found, stepped(model, preconditioner, batch())))


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
    assert not preconditioner.state_dict()["0"]["mean"].any()


@line("`optdl.training.train`")
def _():
    x = batch(24).numpy()
    examples, model = Examples(x, (x.sum(1) > 15).astype(int)), network()
    before = copy.deepcopy(model)
    adam = torch.optim.Adam(model.parameters(), lr=0.01)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        train(model, examples, adam, epochs=1, batch_size=24, hooks=[BNP(model, split=True)])
    preconditioner, adam = BNP(before), torch.optim.Adam(before.parameters(), lr=0.01)
    functional.cross_entropy(before(batch(24)), torch.from_numpy(examples.y)).backward()
    with preconditioner.split():
        adam.step()
    assert_same([*model.parameters()], [*before.parameters()], 1e-11)


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


def with_half_of_the_batch(rank):
    """Take steps with half of the batch, wrapped in each way; return what came of it."""
    results = {}
    for kind in ("ddp", "module", "wrapper", "group", "compiled"):
        torch.compiler.reset()
        model = network()
        run, given = of_wrapped(model)[kind]
        group = {"process_group": distributed.group.WORLD} if kind == "group" else {}
        preconditioner = BNP(given, rho=0.5, **group)
        for step in range(2):
            model.zero_grad()
            x = batch(seed=step).split((5, 3))[rank]
            (loss_of(run(x)) * len(x) / 4).backward()
            preconditioner.step()
        results[kind] = gradients(model)
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
    return given_by_two(with_half_of_the_batch, tmp_path_factory.mktemp("processes"))


def of_the_whole():
    """Return the gradients after the same two steps of one process with all examples."""
    model = network()
    preconditioner = BNP(model, rho=0.5)
    for step in range(2):
        found = stepped(model, preconditioner, batch(seed=step))
    return found


@line("`DistributedDataParallel`")
def _(two_processes):
    for results in two_processes:
        for kind in ("ddp", "module", "wrapper"):
            assert_same(results[kind], of_the_whole(), 1e-11)


@line("`torch.compile(ddp)`")
def _(two_processes):
    for results in two_processes:
        assert_same(results["compiled"], of_the_whole(), 1e-11)


@line("Several processes in another way")
def _(two_processes):
    for results in two_processes:
        assert "2 processes run, but BNP found no DistributedDataParallel" in results["none"]
        assert_same(results["alone"], expected())
        assert_same(results["group"], of_the_whole(), 1e-11)


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
    loss_of(layer(x)).backward()
    axes = (0, *range(2, x.ndim))
    mean, var = x.mean(axes), x.var(axes, correction=0)
    repeats = layer.weight[0, 0].numel()
    std = (var + 0.01 * var.max() + 1e-4).sqrt().repeat_interleave(repeats)
    P = torch.diag(torch.cat([torch.ones(1).double(), 1 / std]))
    P[0, 1:] = -mean.repeat_interleave(repeats) / std
    positions = layer(x)[0, 0].numel()
    q2 = max(layer.weight[0].numel() / len(x), positions**0.5)
    g = torch.cat([layer.bias.grad[None], layer.weight.grad.flatten(1).T])
    result = P @ P.T @ g / q2
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
            layer = kind(3, 4, 2, stride=2, padding=1, padding_mode="circular").double()
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


@line("Recurrent, bilinear and transposed layers")
def _():
    for odd, reason in (
        (nn.LSTM(2, 2), "at every time"),
        (nn.GRUCell(2, 2), "two layers in one"),
        (nn.Bilinear(2, 2, 2), "not linear in one input"),
        (nn.ConvTranspose1d(2, 2, 3), "not inputs under a window"),
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
