"""Gradients and networks cross between the tests and a student's code, as in one process."""

import struct
from typing import Any

import pytest
import torch
from test_gradebox_proxy import Lend, bad_kind, lend, server, there
from torch import nn

from gradebox.codec.encoding import BadValue, Decoder
from gradebox.codec.gradients import attached

__all__ = ["lend", "server"]  # fixtures

pytestmark = pytest.mark.xdist_group("gradebox")

ANSWERS = """
import torch
from torch import nn

scale = torch.tensor([2.0, 3.0], requires_grad=True)

def scaled(x): return x * scale
def both(x): return x.sin(), x.cos()
def loss(model, x): return (model(x) ** 2).mean()

class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, grad):
        return 3 * grad * ctx.saved_tensors[0] ** 2

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.inner = nn.Linear(2, 3)
        self.outer = nn.Linear(3, 1)

    def forward(self, x): return self.outer(torch.tanh(self.inner(x)))

def fit(model, x, y, steps=20):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(steps):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
    model.eval()

network = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.ReLU(), nn.Dropout(0.5))
def bias(): return network[0].bias.detach().clone(), network.training
"""


def of_one_process() -> dict[str, Any]:
    """Return the same names in this process."""
    names: dict[str, Any] = {"__name__": "answers"}
    exec(ANSWERS, names)
    return names


def test_gradients_are_those_of_one_process(lend: Lend) -> None:
    found = []
    for names in (lend(ANSWERS), of_one_process()):
        x = torch.tensor([0.5, -1.0], requires_grad=True)
        h = x.exp()  # no leaf
        out = names["scaled"](h)
        (out.sum() + 2 * out[0]).backward(retain_graph=True)
        first = x.grad.clone()
        out.sum().backward()
        sine, cosine = names["both"](x)
        (sine * cosine).sum().backward()
        [alone] = torch.autograd.grad(names["Cube"].apply(x).sum(), [x])
        found.append([first, x.grad, names["scale"].grad, alone])
    for ours, expected in zip(*found, strict=True):
        torch.testing.assert_close(ours, expected)


def test_a_function_of_the_students_passes_gradcheck(lend: Lend) -> None:
    x = torch.tensor([0.3, -2.0], dtype=torch.double, requires_grad=True)
    assert torch.autograd.gradcheck(lend(ANSWERS)["Cube"].apply, (x,))


@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.AdamW])
def test_a_test_trains_a_module_of_the_students(lend: Lend, kind: Any) -> None:
    found = []
    for names in (lend(ANSWERS), of_one_process()):
        model = names["Net"]()
        optimizer = kind(model.parameters(), lr=0.05)
        x = torch.linspace(-1, 1, 8).reshape(4, 2)
        losses = []
        for _ in range(5):
            optimizer.zero_grad()
            loss = (model(x) - 1).square().mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        weights = [one.detach() for one in model.parameters()]
        found.append([*losses, *weights, model.outer.weight.grad])
    for ours, expected in zip(*found, strict=True):
        torch.testing.assert_close(ours, expected)


def make_network() -> Any:
    torch.manual_seed(1)
    return nn.Sequential(
        nn.Conv1d(1, 2, 3, padding=1), nn.BatchNorm1d(2), nn.Flatten(), nn.Linear(6, 1)
    )


def test_an_answer_trains_a_network_of_the_tests(lend: Lend) -> None:
    x, y = torch.linspace(-1, 1, 12).reshape(4, 1, 3), torch.ones(4, 1)
    ours, expected = make_network(), make_network()
    lend(ANSWERS)["fit"](ours, x, y)
    of_one_process()["fit"](expected, x, y)
    for name, value in expected.state_dict().items():
        torch.testing.assert_close(ours.state_dict()[name], value)
    assert not ours.training
    torch.testing.assert_close(ours[0].weight.grad, expected[0].weight.grad)


def test_a_network_of_the_students_is_one_here(lend: Lend) -> None:
    student = lend(ANSWERS)
    network = student["network"]
    assert isinstance(network[2], nn.ReLU)
    assert [type(one).__name__ for one in network] == ["Linear", "BatchNorm1d", "ReLU", "Dropout"]
    with torch.no_grad():
        network[0].bias.fill_(7)
    network.eval()
    told, training = student["bias"]()
    assert (told.tolist(), training) == ([7, 7, 7], False)
    assert student["network"] is network


def test_what_is_no_network_of_torchs_own_is_an_object() -> None:
    class Own(nn.Linear):
        pass

    hooked = nn.Linear(1, 1)
    hooked.register_forward_hook(lambda *args: None)
    odd = nn.Linear(1, 1)
    odd.extra = object()  # type: ignore[assignment]
    for value in (Own(1, 1), nn.Sequential(Own(1, 1)), hooked, odd):
        with pytest.raises(Exception, match="plain data"):
            there(value)


def test_a_tensor_keeps_what_it_is() -> None:
    weight = nn.Parameter(torch.tensor([1.0, 2.0]))
    weight.grad = torch.tensor([3.0, 4.0])
    found = there(weight)
    assert type(found) is nn.Parameter
    assert found.grad.tolist() == [3, 4]
    frozen = there(nn.Parameter(torch.ones(1), requires_grad=False))
    assert (type(frozen), frozen.requires_grad) == (nn.Parameter, False)


F4 = struct.pack("<f", 1.0)
TENSOR = ["tensor", "float32", [1], True, False, None]
NONE: list[Any] = ["dict", []]


@pytest.mark.parametrize(
    "node",
    [
        ["tensor", "float32", [1], True, False, ["float64", [1]]],
        ["tensor", "float32", [1], True, False, ["float32", [2]]],
        ["tensor", "float32", [1], False, False, ["float32", [1]]],
        ["tensor", "float32", [1], True, 1, None],
        ["graph", 3, TENSOR],
        ["graph", ["list", []], TENSOR],
        ["graph", ["list", []], ["list", []]],
        ["graph", ["list", []], [*TENSOR[:3], False, False, None]],
        ["module", "Linear"],
        ["module", "Linear", NONE, NONE, NONE],
        ["module", "init", NONE, NONE, NONE, NONE],
        ["module", "os", NONE, NONE, NONE, NONE],
        ["module", ["Linear"], NONE, NONE, NONE, NONE],
        ["module", "Linear", NONE, ["dict", [["weight", TENSOR]]], NONE, NONE],
        ["module", "Linear", NONE, NONE, ["dict", [["weight", 3]]], NONE],
        ["module", "Linear", NONE, NONE, NONE, ["dict", [["inner", TENSOR]]]],
        ["module", "Linear", NONE, NONE, NONE, ["list", []]],
        ["module", "Linear", ["dict", [["training", 3]]], NONE, NONE, NONE],
        ["module", "Linear", ["dict", [["a b", 3]]], NONE, NONE, NONE],
        ["module", "Linear", ["dict", [["__class__", 3]]], NONE, NONE, NONE],
        ["module", "Linear", ["dict", [["_forward_hooks", ["list", []]]]], NONE, NONE, NONE],
        ["module", "Linear", ["dict", [["x", ["list", [["list", []]]]]]], NONE, NONE, NONE],
        ["module", "Linear", ["dict", [[3, 3]]], NONE, NONE, NONE],
    ],
    ids=lambda node: str(node)[:60],
)
def test_what_no_honest_process_sends_is_refused(node: Any) -> None:
    with pytest.raises(BadValue):
        Decoder([F4, F4], bad_kind).decode(node)


@pytest.mark.parametrize(
    "answer",
    [
        None,
        [],
        [torch.ones(2), torch.ones(2)],
        [torch.ones(3)],
        [torch.ones(2, dtype=torch.double)],
        [3],
        ["x"],
    ],
    ids=str,
)
def test_a_gradient_that_makes_no_sense_ends_the_test(answer: Any) -> None:
    class Graph:
        class _gradebox:  # noqa: N801  as of a stand-in
            class peer:  # noqa: N801
                ask = staticmethod(lambda question, value: answer)

    x = torch.ones(2, requires_grad=True)
    out = attached(torch.ones(2), Graph(), [x])
    with pytest.raises((ValueError, TypeError, RuntimeError)):
        out.sum().backward()
    assert x.grad is None
