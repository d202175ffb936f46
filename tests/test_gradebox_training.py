"""What trains a network crosses between the tests and a student's code, as in one process."""

import struct
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import pytest
import torch
from test_gradebox_proxy import Lend, bad_kind, lend, server
from torch import nn
from torch.optim import lr_scheduler

from gradebox.codec.encoding import BadValue, Decoder
from gradebox.line.peer import StudentError

__all__ = ["lend", "server"]  # fixtures

pytestmark = pytest.mark.xdist_group("gradebox")

ANSWERS = """
import torch
from torch import nn

class Norm(nn.Module):
    def __init__(self, features, momentum=0.1):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(features))
        self.momentum = momentum
        self.register_buffer("running_mean", torch.zeros(features))

    def forward(self, x):
        mean = self.running_mean
        if self.training:
            mean = x.mean(0)
            with torch.no_grad():
                self.running_mean.lerp_(mean, self.momentum)
        return (x - mean) * self.weight

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.inner, self.norm, self.outer = nn.Linear(2, 3), Norm(3), nn.Linear(3, 1)

    def forward(self, x): return self.outer(torch.tanh(self.norm(self.inner(x))))

class Momentum(torch.optim.Optimizer):
    def __init__(self, params, lr=0.1, alpha=0.9):
        super().__init__(params, {"lr": lr, "alpha": alpha})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                velocity = self.state[p].setdefault("velocity", torch.zeros_like(p))
                velocity.mul_(group["alpha"]).sub_(group["lr"] * p.grad)
                p.add_(velocity)

class Watch:
    def __init__(self, model):
        self.means, linear = [], [one for one in model.modules() if isinstance(one, nn.Linear)]
        self.handles = [one.register_forward_hook(self.note) for one in linear]

    def note(self, module, inputs, output): self.means.append(output.mean().item())

    def remove(self):
        for handle in self.handles: handle.remove()

class Evaluating:
    def __init__(self, model): self.model = model

    def __enter__(self):
        self.before = self.model.training
        return self.model.eval()

    def __exit__(self, *error): self.model.train(self.before)

def change(model, number):
    if number == 0: model[0].weight.data.add_(1)
    if number == 1: model[2].bias.grad = torch.ones(1)
    if number == 2: model[2].bias.grad.data.mul_(3)
    if number == 3: model[1] = nn.Tanh()
    if number == 4: model[0].bias.requires_grad_(False)
    if number == 5: model[1].eval()
    if number == 6: model[0].bias = None
    if number == 7: model.append(nn.Dropout(0.5).eval())
    if number == 8: model[3].p = 0.25
    if number == 9: model.register_buffer("scale", torch.ones(2, dtype=torch.bfloat16))
    if number == 10: model.scale.add_(1)
    if number == 11: model[2].weight.detach().numpy()[0, 0] = 7
    if number == 12: model[1].register_forward_hook(lambda *all: 2 * all[2])

class Keeper:
    def __init__(self, model): self.model = model

    def look(self):
        parameters, modules = list(self.model.parameters()), list(self.model.modules())
        found = [self.model(torch.ones(1, 2)), [p.grad for p in parameters]]
        found += [[p.requires_grad for p in parameters], [type(one).__name__ for one in modules]]
        found += [[one.training for one in modules], [getattr(one, "p", 0) for one in modules]]
        return [*found, [one.float() for one in self.model.buffers()]]

    def change(self, number): change(self.model, number)

kept = []

def forgets(model):
    for one in model: one.register_forward_hook(lambda module, inputs, out: kept.append(out.mean()))

def forgets_backward(model):
    for one in model: one.register_full_backward_hook(lambda *all: kept.append(all[2][0].mean()))

def forgets_before(model):
    def double(module, args, kwargs): return tuple(2 * one for one in args), kwargs
    model[0].register_forward_pre_hook(double, with_kwargs=True)

def recorded(): return [one.item() for one in kept]

def statistics(model, x):
    found, handles = [], []
    for one in model:
        handles.append(one.register_forward_hook(lambda *all: found.append(all[2].std().item())))
    try:
        model(x)
    finally:
        for handle in handles: handle.remove()
    return found

def fit(model, optimizer, batches, scheduler=None):
    losses = []
    for x, y in batches:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        if scheduler: scheduler.step()
        losses.append(loss.item())
    return losses

def schedules_first(optimizer, scheduler):
    scheduler.step()
    optimizer.step()

def steps(n):
    for t in range(n): yield t, torch.full((2,), float(t))

def draw(generator): return torch.randn(3, generator=generator)

def double(values):
    values["twice"] = 2 * values["once"]
    values["once"].add_(1)
    return {"sum": [values["once"].sum()]}

def put(model): model[1] = Norm(3)

def watch_steps(optimizer): optimizer.register_step_post_hook(lambda *all: None)
"""

Names = Mapping[str, Any]

X, Y = torch.linspace(-1, 1, 8).reshape(4, 2), torch.ones(4, 1)


def of_one_process() -> dict[str, Any]:
    """Return the same names in this process."""
    names: dict[str, Any] = {"__name__": "answers"}
    exec(ANSWERS, names)
    return names


def plain(value: Any) -> Any:
    """Return numbers for tensors, however deep they lie."""
    if isinstance(value, torch.Tensor):
        return str(value.dtype), value.detach().tolist()
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items()}
    return [plain(one) for one in value] if isinstance(value, list | tuple) else value


def network() -> Any:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))


def counts(model: Any, name: str = "_forward_hooks") -> list[int]:
    return [len(getattr(one, name)) for one in model]


def weights(model: Any) -> list[Any]:
    return [one.detach().clone() for one in model.parameters()]


# --- each does the same with the names of the other process, and with those of this one ---------


def a_module_with_buffers(names: Names) -> Any:
    norm, other = names["Norm"](2), names["Norm"](2)
    found = [norm(X), norm.eval()(X), norm.training, norm.state_dict()]
    found += [[name for name, _ in each()] for each in (norm.named_parameters, norm.named_buffers)]
    state = norm.state_dict() | {"weight": torch.tensor([2.0, 3.0])}
    other.load_state_dict(state)
    found += [other.weight, other.double().running_mean, other.to(torch.float32).weight]
    with pytest.raises(RuntimeError, match="Missing key"):
        other.load_state_dict({})
    other.momentum = 0.5
    other(X)
    return [*found, other.running_mean, type(other.weight) is nn.Parameter]


def a_module_of_modules(names: Names) -> Any:
    model = names["Net"]()
    model(X)
    found = [list(model.state_dict()), [name for name, _ in model.named_modules()]]
    return [*found, model.eval().norm.training, weights(model.double())]


def an_optimizer_of_the_students(names: Names) -> Any:
    w, b = (nn.Parameter(torch.tensor(one)) for one in ([1.0, 2.0], [3.0]))
    groups = [{"params": [w], "lr": 0.5}, {"params": [b]}]
    optimizer, found = names["Momentum"](groups), []
    for _ in range(3):
        optimizer.zero_grad()
        (w.square().sum() + b.square().sum()).backward()
        optimizer.step()
        found += [w.detach().clone(), b.detach().clone()]
    again = names["Momentum"]([{"params": [w]}, {"params": [b]}])
    again.load_state_dict(optimizer.state_dict())
    again.param_groups[0]["lr"] = 0.0
    again.step()
    return [*found, w, b, optimizer.state[w]["velocity"], again.state_dict()]


def an_optimizer_and_a_module_of_the_students(names: Names) -> Any:
    model = names["Net"]()
    optimizer, found = names["Momentum"](model.parameters()), []
    for _ in range(3):
        optimizer.zero_grad()
        loss = (model(X) - Y).square().mean()
        loss.backward()
        optimizer.step()
        found.append(loss)
    return [*found, weights(model)]


def an_optimizer_of_torchs(make: Callable[[Any], Any]) -> Callable[[Names], Any]:
    def run(names: Names) -> Any:
        model = network()
        optimizer, batches = make(model.parameters()), [(X, Y)] * 3
        group, found = optimizer.param_groups[0], [names["fit"](model, optimizer, batches)]
        found += [plain(optimizer.state_dict()), names["fit"](model, optimizer, batches)]
        optimizer.zero_grad()
        nn.functional.mse_loss(model(X), Y).backward()
        optimizer.step()
        found += [weights(model), optimizer.state_dict(), group is optimizer.param_groups[0]]
        return [*found, group["params"][0] is model[0].weight, model[0].weight in optimizer.state]

    return run


def torchs_optimizer_of_a_module_of_the_students(names: Names) -> Any:
    model = names["Net"]()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    return [names["fit"](model, optimizer, [(X, Y)] * 3), weights(model)]


def a_scheduler(make: Callable[[Any], Any]) -> Callable[[Names], Any]:
    def run(names: Names) -> Any:
        model = network()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        scheduler = make(optimizer)
        found = [names["fit"](model, optimizer, [(X, Y)] * 3, scheduler), scheduler.get_last_lr()]
        optimizer.step()
        scheduler.step()
        return [*found, scheduler.state_dict(), optimizer.param_groups[0]["lr"]]

    return run


def a_scheduler_before_its_optimizer(names: Names) -> Any:
    found = []
    for has_stepped in (False, True):
        optimizer = torch.optim.SGD(network().parameters(), lr=0.1)
        scheduler = lr_scheduler.StepLR(optimizer, 1)
        if has_stepped:
            optimizer.step()
        for _ in range(2):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                names["schedules_first"](optimizer, scheduler)
            found.append([str(one.message).partition(".")[0] for one in caught])
        found.append([optimizer.param_groups[0]["lr"]])
    assert [len(one) for one in found] == [1, 0, 1, 0, 0, 1]  # it warns where none has stepped
    return found


def hooks_that_are_removed(names: Names) -> Any:
    model = network()
    return [names["statistics"](model, X), counts(model)]


def hooks_that_are_forgotten(names: Names) -> Any:
    model = network()
    names["forgets"](model)
    found = [counts(model), model(X), names["recorded"](), names["statistics"](model, X)]
    return [*found, counts(model), names["recorded"]()]


def backward_hooks_that_are_forgotten(names: Names) -> Any:
    model, x = network(), X.clone().requires_grad_()
    names["forgets_backward"](model)
    model(x).sum().backward()
    return [counts(model, "_backward_hooks"), names["recorded"](), x.grad]


def hooks_that_change_arguments(names: Names) -> Any:
    model = network()
    names["forgets_before"](model)
    return [model(X), counts(model, "_forward_pre_hooks")]


def hooks_of_both(names: Names) -> Any:
    model, seen = network(), []
    first = model[0].register_forward_hook(lambda module, *_: seen.append(module is model[0]))
    found = [names["statistics"](model, X), counts(model)]
    names["forgets"](model)
    second = model[1].register_forward_hook(lambda *_: seen.append("second"))
    found += [counts(model), model(X), list(seen)]
    first.remove()
    second.remove()
    return [*found, counts(model)]


def a_watch_of_a_network_of_the_tests(names: Names) -> Any:
    model = network()
    watch = names["Watch"](model)
    model(X)
    found = [list(watch.means), counts(model)]
    watch.remove()
    model(X)
    return [*found, list(watch.means), counts(model)]


def a_watch_of_a_network_of_the_students(names: Names) -> Any:
    model = names["Net"]()
    watch = names["Watch"](model)
    model(X)
    watch.remove()
    model(X)
    return [list(watch.means), len(model.inner._forward_hooks)]


def a_network_that_is_kept(by_student: bool) -> Callable[[Names], Any]:
    def run(names: Names) -> Any:
        here = of_one_process()
        model = network()
        keeper, own = names["Keeper"](model), here["Keeper"](model)
        found = [plain(keeper.look())]
        for number in range(13):
            (keeper if by_student else own).change(number)
            seen = plain((own if by_student else keeper).look())
            assert seen not in found, number
            found.append(seen)
        return found

    return run


def a_context_manager(names: Names) -> Any:
    found = []
    for model in (network(), names["Net"]()):
        with names["Evaluating"](model) as inner:
            found += [inner is model, model.training]
        found.append(model.training)
    return found


def other_things(names: Names) -> Any:
    generator, values = torch.Generator().manual_seed(3), {"once": torch.ones(2)}
    found = [names["draw"](generator), torch.randn(2, generator=generator)]
    found += [list(names["steps"](3)), next(names["steps"](1))]
    return [*found, names["draw"](generator), names["double"](values), values]


OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "SGD": lambda parameters: torch.optim.SGD(parameters, lr=0.1),
    "momentum": lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9),
    "Adam": lambda parameters: torch.optim.Adam(parameters, lr=0.1, amsgrad=True),
    "groups": lambda parameters: torch.optim.RMSprop(
        [{"params": [one], "lr": 0.01 * one.ndim} for one in parameters], centered=True
    ),
}
SCHEDULERS: dict[str, Callable[[Any], Any]] = {
    "steps": lambda optimizer: lr_scheduler.StepLR(optimizer, 2),
    "cosine": lambda optimizer: lr_scheduler.CosineAnnealingLR(optimizer, 5),
    "milestones": lambda optimizer: lr_scheduler.MultiStepLR(optimizer, [1, 3]),
    "one cycle": lambda optimizer: lr_scheduler.OneCycleLR(optimizer, 0.2, 10),
}
PLAYS: dict[str, Callable[[Names], Any]] = {
    **{
        one.__name__: one
        for one in (
            *(a_module_with_buffers, a_module_of_modules, an_optimizer_of_the_students),
            *(an_optimizer_and_a_module_of_the_students, a_scheduler_before_its_optimizer),
            *(torchs_optimizer_of_a_module_of_the_students, hooks_that_are_removed),
            *(hooks_that_are_forgotten, backward_hooks_that_are_forgotten, hooks_of_both),
            *(hooks_that_change_arguments, a_watch_of_a_network_of_the_tests),
            *(a_watch_of_a_network_of_the_students, a_context_manager, other_things),
        )
    },
    "changes by the student": a_network_that_is_kept(by_student=True),
    "changes by the tests": a_network_that_is_kept(by_student=False),
    **{f"torch's {name}": an_optimizer_of_torchs(make) for name, make in OPTIMIZERS.items()},
    **{f"scheduler: {name}": a_scheduler(make) for name, make in SCHEDULERS.items()},
}


@pytest.mark.parametrize("play", PLAYS.values(), ids=PLAYS)
def test_it_is_as_in_one_process(lend: Lend, play: Callable[[Names], Any]) -> None:
    expected = plain(play(of_one_process()))
    assert plain(play(lend(ANSWERS))) == expected  # type: ignore[arg-type]


def test_what_cannot_go_back_is_told(lend: Lend) -> None:
    student, model = lend(ANSWERS), network()
    with pytest.raises(StudentError, match="put something else there, which cannot go back"):
        student["put"](model)
    optimizer = torch.optim.SGD(model.parameters())
    with pytest.raises(StudentError, match="a test's SGD"):
        student["watch_steps"](optimizer)
    assert isinstance(model[1], nn.ReLU)  # nothing has changed
    assert not optimizer._optimizer_step_post_hooks


def test_a_hook_that_is_registered_here_takes_the_place_of_none() -> None:
    handles = torch.utils.hooks.RemovableHandle
    key = handles.next_id + 5
    node = [*LINEAR, [["_forward_hooks", key, ["handle"]]]]
    model = Decoder([], lambda other: print).decode(node)
    while handles.next_id <= key + 5:
        model.register_forward_hook(lambda *_: None)
    assert model._forward_hooks[key] is print
    assert handles.next_id - key == len(model._forward_hooks)


NONE: list[Any] = ["dict", []]
LIST: list[Any] = ["list", []]
TENSOR = ["tensor", "float32", [1], True, False, None]
LR = ["dict", [["lr", 0.1]]]
GROUP = ["dict", [["params", ["list", [TENSOR]]], ["lr", 0.1]]]
SGD = ["optimizer", "SGD", LR, ["list", [GROUP]], [], None]
LINEAR = ["module", "Linear", NONE, NONE, NONE, NONE]
EPOCH = ["dict", [["last_epoch", 1]]]


def holds(*state: Any) -> list[Any]:
    return [*SGD[:4], list(state), None]


@pytest.mark.parametrize(
    "node",
    [
        SGD[:4],
        ["optimizer", "Optimizer_", *SGD[2:]],
        ["optimizer", "lr_scheduler", *SGD[2:]],
        ["optimizer", ["SGD"], *SGD[2:]],
        ["optimizer", "SGD", LIST, *SGD[3:]],
        ["optimizer", "SGD", ["dict", [["lr", LIST]]], *SGD[3:]],
        ["optimizer", "SGD", LR, NONE, [], None],
        ["optimizer", "SGD", LR, ["list", [NONE]], [], None],
        ["optimizer", "SGD", LR, ["list", [["dict", [["params", TENSOR]]]]], [], None],
        ["optimizer", "SGD", LR, ["list", [["dict", [["params", ["list", [3]]]]]]], [], None],
        ["optimizer", "SGD", LR, ["list", [GROUP]], 3, None],
        ["optimizer", "SGD", LR, ["list", [["dict", [["params", LIST]]]]], [], True],
        holds(3),
        holds([3, NONE]),
        holds([TENSOR]),
        holds([TENSOR, LIST]),
        holds([TENSOR, ["dict", [["step", LIST]]]]),
        holds([TENSOR, ["dict", [[3, 3]]]]),
        ["scheduler", "StepLR", SGD],
        ["scheduler", "LRScheduler", SGD, EPOCH],
        ["scheduler", "Optimizer", SGD, EPOCH],
        ["scheduler", ["StepLR"], SGD, EPOCH],
        ["scheduler", "StepLR", LINEAR, EPOCH],
        ["scheduler", "StepLR", SGD, LIST],
        ["scheduler", "StepLR", SGD, ["dict", [["__class__", 1]]]],
        ["scheduler", "StepLR", SGD, ["dict", [["a b", 1]]]],
        ["scheduler", "StepLR", SGD, ["dict", [["last_epoch", TENSOR]]]],
        [*LINEAR, 3],
        [*LINEAR, [3]],
        [*LINEAR, [["_forward_hooks", 0]]],
        [*LINEAR, [["_state_dict_hooks", 0, True]]],
        [*LINEAR, [[["_forward_hooks"], 0, True]]],
        [*LINEAR, [["_forward_hooks", "0", True]]],
        [*LINEAR, [["_forward_hooks", -1, True]]],
        [*LINEAR, [["_forward_hooks", 2**62, True]]],
        [*LINEAR, [["_forward_hooks", 0, True]]],
        [*LINEAR, [["_forward_hooks", 0, ["builtin", "type"]]]],
        [*LINEAR, [["_forward_hooks_with_kwargs", 0, 1]]],
    ],
    ids=lambda node: str(node)[:70],
)
def test_what_no_honest_process_sends_is_refused(node: Any) -> None:
    one = struct.pack("<f", 1.0)
    with pytest.raises(BadValue):
        Decoder([one] * 3, lambda other: type if other[0] == "builtin" else bad_kind(other)).decode(
            node
        )


@pytest.mark.parametrize("width", [8, 64, 90])
def test_parameters_of_any_size_are_those_of_the_network(lend: Lend, width: int) -> None:
    """``model.parameters()`` gives them one by one, while the optimizer's class is being called."""
    trained = []
    for names in (lend(ANSWERS), of_one_process()):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 2))
        optimizer = names["Momentum"](model.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.ones(3, width)).square().sum().backward()
            optimizer.step()
        trained.append([value.detach() for value in model.parameters()])
    for ours, expected in zip(*trained, strict=True):
        torch.testing.assert_close(ours, expected)
