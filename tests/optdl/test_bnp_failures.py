"""What BNP must not do in silence: each test failed, or went wrong unnoticed, once."""

import re
import shutil
import subprocess
import sys

import pytest
import torch
from bnp_loops import assert_same, batch, loss_of, network
from torch import nn
from torch.nn.utils import prune
from torch.utils.checkpoint import checkpoint

from optdl.bnp import BNP

torch.set_num_threads(1)


def gradients(model, x, preconditioner=None):
    """Return the gradients of a model, by name, after a step of BNP if one is given."""
    model.zero_grad()
    loss_of(model(x)).backward()
    if preconditioner is not None:
        preconditioner.step()
    return {name: p.grad.clone() for name, p in model.named_parameters()}


def follow(message, model):
    """Do what a message advises: return the BNP that it names."""
    advice = re.search(
        r"To leave (?:it|them) with (?:its|their) plain gradient: (BNP\(.*?\)\))", message
    )
    assert advice, message
    return eval(advice[1], {"BNP": BNP, "model": model})


def alone(code):
    """Run code in a process of its own; return what it printed."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


# --- Weights with several users ---------------------------------------------------------------


class Tied(nn.Module):
    """A network in which two modules hold one weight, in either order."""

    def __init__(self, kind, head_first):
        super().__init__()
        torch.manual_seed(1)
        modules = {
            "embed": kind(7, 4) if kind is nn.Embedding else kind(4, 7),
            "head": nn.Linear(4, 7),
        }
        for name in sorted(modules, reverse=head_first):
            self.add_module(name, modules[name])
        self.inner = nn.Linear(4, 4)
        self.head.weight = self.embed.weight
        self.double()

    def forward(self, x):
        hidden = self.embed(x)
        return self.head(self.inner(hidden if hidden.shape[-1] == 4 else hidden[..., :4]))


@pytest.mark.parametrize("head_first", [False, True])
@pytest.mark.parametrize("kind", [nn.Embedding, nn.Linear])
def test_skipped_shared_weight_keeps_its_plain_gradient(kind, head_first):
    model = Tied(kind, head_first)
    x = torch.arange(7) if kind is nn.Embedding else batch(6, shape=(4,))
    with pytest.raises(ValueError, match="shares its weight with") as caught:
        BNP(model)
    plain = gradients(model, x)
    after = gradients(model, x, follow(str(caught.value), model))
    for name in plain:
        assert torch.equal(after[name], plain[name]) == (not name.startswith("inner")), name


@pytest.mark.parametrize("skip", [("embed",), (nn.Embedding,)])
def test_shared_weight_is_refused_until_fully_skipped(skip):
    with pytest.raises(ValueError, match="'head': it shares its weight with 'embed'"):
        BNP(Tied(nn.Embedding, False), skip=skip)
    for name in ("embed", "head"):
        with pytest.raises(ValueError, match="shares its weight"):
            BNP(Tied(nn.Linear, False), skip=(name,))


def test_shared_bias_is_refused():
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    model[1].bias = model[0].bias
    with pytest.raises(ValueError, match="'0': it shares its bias with '1'"):
        BNP(model)


def test_module_is_skipped_under_either_name():
    model = nn.ModuleDict({"a": nn.Linear(3, 3), "c": nn.Linear(3, 3)})
    model["b"] = model["a"]
    for name in "ab":
        assert repr(BNP(model, skip=(name,))).startswith("BNP(layers=['c']")


# --- A model that changes, and a second BNP ---------------------------------------------------


def replaced(model):
    model[2] = nn.Linear(6, 3).double()


def wrapped(model):
    model[2] = nn.Sequential(model[2], nn.Linear(3, 3).double())


def parametrized(model):
    nn.utils.parametrizations.weight_norm(model[2])


def normalized(model):
    nn.utils.parametrizations.spectral_norm(model[0])


def pruned(model):
    prune.l1_unstructured(model[2], "weight", 3)


def bypassed(model):
    model[2].forward = lambda x: x[:, :3]


def tied(model):
    model.append(nn.Linear(6, 3).double())
    model[3].weight = model[2].weight
    model[3].forward = lambda x: x


@pytest.mark.parametrize("form", ["step", "split"])
@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        (replaced, RuntimeError, r"the layers \['2'\] are not those.*bnp = BNP\(model\)"),
        (wrapped, RuntimeError, r"the layers \['2', '2.0', '2.1'\] are not those"),
        (parametrized, ValueError, "'2' .* its weight is computed from other parameters"),
        (normalized, ValueError, "'0' .* its weight is computed from other parameters"),
        (pruned, ValueError, "'2' .* its weight is computed from other parameters"),
        (bypassed, ValueError, "'2'.*forward"),
        (tied, ValueError, "'2': it shares its weight with '3'"),
    ],
)
def test_changed_layer_is_refused(change, error, said, form):
    model = network()
    preconditioner = BNP(model)
    gradients(model, batch(4), preconditioner)
    change(model)
    model.zero_grad()
    loss_of(model(batch(4))).backward()
    with pytest.raises(error, match=said):
        preconditioner.step() if form == "step" else preconditioner.split().__enter__()
    preconditioner.remove()


def test_other_layers_may_change():
    expected = gradients(network(), batch(4))
    model, twin = network(), network()
    preconditioner = BNP(model)
    expected = gradients(twin, batch(4), BNP(twin))
    model[1] = nn.Tanh()
    model[0].weight = nn.Parameter(model[0].weight.detach().clone())
    assert_same(gradients(model, batch(4), preconditioner), expected)


def test_model_parts_may_have_separate_bnps():
    model, twin = network(), network()
    parts = [BNP(model[0]), BNP(model, skip=("0",))]
    expected = gradients(twin, batch(4), BNP(twin))
    gradients(model, batch(4))
    for part in parts:
        part.step()
    assert_same({name: p.grad for name, p in model.named_parameters()}, expected)


def test_unreferenced_bnp_is_released():
    model = network()
    BNP(model)
    kept = BNP(model)
    assert [len(module._forward_hooks) for module in model] == [1, 0, 1]
    assert kept


# --- State and copies -------------------------------------------------------------------------


def changed(state, name, value):
    state["2"][name] = value
    return state


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda s: changed(s, "var", torch.full((1, 1), 7.0)), "another model"),
        (lambda s: changed(s, "var", torch.full((1, 7), 7.0)), "another model"),
        (lambda s: changed(s, "mean", torch.full((6,), 7.0)), "another model"),
        (lambda s: {"0": s["0"]}, "another model"),
        (lambda s: s | {"4": s["2"]}, "another model"),
        (lambda s: s | {"2": {"mean": s["2"]["mean"]}}, "another model"),
        (lambda s: changed(s, "rho", 0.5), "different"),
        (lambda s: {name: part | {"rho": 1.0} for name, part in s.items()}, "rho must lie"),
    ],
)
def test_mismatched_state_is_refused_without_changes(change, said):
    model = network()
    preconditioner, other = BNP(model), network()
    gradients(model, batch(4), preconditioner)
    before = preconditioner.state_dict()
    source = BNP(other, rho=0.7)
    gradients(other, batch(9), source)
    with pytest.raises(ValueError, match=said):
        preconditioner.load_state_dict(change(source.state_dict()))
    after = preconditioner.state_dict()
    assert after["0"].keys() == before["0"].keys() >= {"rho", "eps1", "eps2"}
    for name, part in before.items():
        for key, value in part.items():
            assert torch.equal(torch.as_tensor(after[name][key]), torch.as_tensor(value))


# --- Overflow under a GradScaler --------------------------------------------------------------


@pytest.mark.parametrize("form", ["step", "split", "raise"])
def test_nonfinite_gradients_take_no_step_without_scaler(form):
    model = network()
    preconditioner = BNP(model, check_finite="raise" if form == "raise" else True)
    sgd = torch.optim.SGD(model.parameters(), lr=0.1)
    before = [p.detach().clone() for p in model.parameters()]
    loss_of(model(batch(4).fill_(torch.nan))).backward()

    def take():
        if form == "split":
            with preconditioner.split():
                sgd.step()
        else:
            preconditioner.step()
            assert form == "step"
            sgd.step()

    with pytest.raises(FloatingPointError, match="inputs of '0' hold NaN or infinity"):
        take()
    assert_same([*model.parameters()], before, 0.0)
    gradients(model, batch(4), preconditioner)
    sgd.step()
    assert all(torch.isfinite(p).all() for p in model.parameters())


# --- Padding ----------------------------------------------------------------------------------


class Tagger(nn.Module):
    """A network on sequences, whose positions it keeps, flattens and pools."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.each, self.flat, self.pooled = nn.Linear(5, 4), nn.Linear(4, 4), nn.Linear(4, 3)
        self.double()

    def forward(self, x, rows):
        hidden = self.flat(self.each(x).tanh().flatten(0, -2)).tanh().view(*rows.shape, 4)
        means = (hidden * rows[..., None]).sum(1) / rows.sum(1, keepdim=True)
        return self.pooled(means)


def padded(x, length, value=99.0):
    """Return sequences with padding behind them, and where there is none."""
    whole = torch.full((len(x), length, *x.shape[2:]), value, dtype=x.dtype)
    whole[:, : x.shape[1]] = x
    rows = (torch.arange(length) < x.shape[1]).expand(len(x), length)
    return whole, rows


@pytest.mark.parametrize("positions", ["rows", "map"])
@pytest.mark.parametrize("form", ["step", "split"])
def test_padding_leaves_no_trace(positions, form):
    results = []
    for length in (4, 7):
        model = Tagger()
        preconditioner = BNP(model, positions=positions)
        sgd = torch.optim.SGD(model.parameters(), lr=0.1)
        for seed in range(2):
            x, rows = padded(batch(3, shape=(4, 5), seed=seed), length)
            sgd.zero_grad()
            with preconditioner.mask(rows):
                loss_of(model(x, rows)).backward()
            if form == "step":
                preconditioner.step()
                sgd.step()
            else:
                with preconditioner.split():
                    sgd.step()
        results.append([*model.parameters()])
    assert_same(*results)


def test_sequences_of_any_length_are_their_rows():
    model, twin = network(), network()
    preconditioner, other = BNP(model), BNP(twin)
    x, rows = batch(3, shape=(6, 5)), torch.arange(6) < torch.tensor([[2], [6], [1]])
    with preconditioner.mask(rows.long()):
        loss_of(model(x)[rows]).backward()
    preconditioner.step()
    assert_same({n: p.grad for n, p in model.named_parameters()}, gradients(twin, x[rows], other))
    assert_same(preconditioner.state_dict()["0"]["var"], other.state_dict()["0"]["var"])


@pytest.mark.parametrize("options", [{}, {"stride": 2, "padding": 1, "groups": 2}])
def test_filler_examples_do_not_count(options):
    results = []
    for filling in (0, 3):
        torch.manual_seed(1)
        layer = nn.Conv2d(4, 6, 3, **options).double()
        preconditioner, x = BNP(layer), batch(2, shape=(4, 7, 7))
        x = torch.cat([x, torch.full((filling, 4, 7, 7), 99.0).double()])
        with preconditioner.mask(torch.arange(2 + filling) < 2):
            loss_of(layer(x)[:2]).backward()
        preconditioner.step()
        results.append([layer.weight.grad, layer.bias.grad])
    assert_same(*results)


def test_convolution_position_mask_matches_dense_layer():
    results = []
    for kind in ("dense", "convolution"):
        torch.manual_seed(1)
        dense, layer = nn.Linear(4, 6).double(), nn.Conv1d(4, 6, 1).double()
        layer.load_state_dict({"weight": dense.weight[..., None], "bias": dense.bias})
        x, rows = batch(3, shape=(5, 4)), torch.arange(5) < torch.tensor([[2], [5], [0]])
        layer = dense if kind == "dense" else layer
        preconditioner = BNP(layer, positions="map")
        with preconditioner.mask(rows):
            output = dense(x) if kind == "dense" else layer(x.mT).mT
        loss_of(output[rows]).backward()
        preconditioner.step()
        results.append([layer.weight.grad.view(6, 4), layer.bias.grad])
    assert_same(*results)


def test_mismatched_mask_is_refused_by_layer_name():
    model = network()
    preconditioner = BNP(model)
    for wrong in (torch.ones(4), torch.tensor(True), [True], torch.full((4,), -torch.inf)):
        with pytest.raises(ValueError, match="a mask must be"), preconditioner.mask(wrong):
            pass
    with preconditioner.mask(torch.ones(4, 3, dtype=torch.bool)):
        with pytest.raises(
            ValueError, match=r"\(4, 3\) does not fit the input of '0', .* \(5, 3\)"
        ):
            model(batch(5, shape=(3, 5)))
        with preconditioner.mask(None):
            loss_of(model(batch(4))).backward()
    preconditioner.step()
    assert_same(
        {name: p.grad for name, p in model.named_parameters()},
        gradients(twin := network(), batch(4), BNP(twin)),
    )


def test_fully_masked_batch_is_refused():
    model = network()
    preconditioner = BNP(model)
    with preconditioner.mask(torch.zeros(4, dtype=torch.bool)):
        loss_of(model(batch(4))).backward()
    with pytest.raises(ValueError, match="all inputs had 0 rows"):
        preconditioner.step()


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoint_recomputation_requires_its_mask(reentrant):
    expected = gradients(twin := network(), batch(4), BNP(twin))
    model = network()
    preconditioner = BNP(model)
    x, rows = torch.cat([batch(4), batch(2, seed=1)]), torch.arange(6) < 4
    for inside in (True, False):
        model.zero_grad()
        with preconditioner.mask(rows):
            loss = loss_of(checkpoint(model, x.requires_grad_(), use_reentrant=reentrant)[:4])
            if inside:
                loss.backward()
        if not inside and reentrant:
            with pytest.raises(RuntimeError, match=r"outside of bnp\.mask\. Put loss\.backward"):
                loss.backward()
            return
        if not inside:
            loss.backward()
        preconditioner.rho = 0.99
        preconditioner.step()
        if inside:
            assert_same({name: p.grad for name, p in model.named_parameters()}, expected)


# --- Compiled passes --------------------------------------------------------------------------

COMPILED = """
import torch
from torch import nn
from optdl.bnp import BNP

torch.manual_seed(0)
def loss_of(output):
    return output.sin().mean()
model = nn.Sequential(nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, 3)).double()
twin = nn.Sequential(nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, 3)).double()
twin.load_state_dict(model.state_dict())
bnp, other = BNP(model), BNP(twin)
compiled = torch.compile(model, backend="BACKEND")
x = torch.randn(4, 5).double()
with torch.no_grad():
    compiled(x)
for parts in (1, 2):  # accumulated ones all count
    for net in (compiled, twin):
        for part in x.chunk(parts):
            (loss_of(net(part)) / parts).backward()
    bnp.step()
    other.step()
    with bnp.mask(torch.arange(4) < 3):
        loss_of(compiled(x)[:3]).backward()
    loss_of(twin(x[:3])).backward()
    bnp.step()
    other.step()
    for one, another in zip(model.parameters(), twin.parameters()):
        torch.testing.assert_close(one.grad, another.grad, rtol=0, atol=1e-12)
    model.zero_grad()
    twin.zero_grad()
compiled(x)
loss_of(compiled(x)).backward()
try:
    bnp.step()
except RuntimeError as error:
    print(error)
compiled(x)
bnp.reset()
model.zero_grad()
loss_of(compiled(x)).backward()
bnp.step()
"""


@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.slow)])
def test_undifferentiated_compiled_pass_is_reported(backend):
    if backend == "inductor" and shutil.which("g++") is None:
        pytest.skip("inductor wants a C++ compiler")
    # in a process of its own: here each function of optdl is wrapped to check its arguments
    message = alone(COMPILED.replace("BACKEND", backend))
    assert message.startswith("4 compiled passes through layers since the last step, and only 2")


# --- What is not taken for a failure ----------------------------------------------------------


def test_nearly_cancelling_passes_are_accepted():
    model, x = network().float(), batch(4, dtype=torch.float32)
    preconditioner = BNP(model)
    (model(x) - model(x + 1e-6)).square().sum().backward()
    preconditioner.step()


# --- A library --------------------------------------------------------------------------------


def test_only_torch_and_numpy_are_imported():
    before = "import sys, torch, torch.nn.parallel; known = set(sys.modules)\n"
    shown = "print(*{name.split('.')[0] for name in set(sys.modules) - known})"
    new = set(alone(f"{before}from optdl.bnp import BNP\n{shown}").split())
    assert new - {"optdl"} <= {"numpy", *sys.stdlib_module_names}
