"""The training loop against gradient descent by hand, and its promises one by one."""

import copy
import itertools
import math
from functools import cache, partial
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from scipy.special import log_softmax
from torch import nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from optdl.bnp import BNP
from optdl.data import Examples
from optdl.dropout import Dropout
from optdl.optimizers import Nesterov
from optdl.optimizers.in_torch import Stepped, Together
from optdl.training import Schedule, State, graphed, order_seed, train, zero_one


def squared(scores, labels):
    return ((scores[:, 0] - labels) ** 2).mean()


def linear(d=3, seed=0):
    model, start = nn.Linear(d, 1).double(), np.random.default_rng(seed).normal(size=d + 1)
    vector_to_parameters(torch.tensor(start), model.parameters())
    return model, start


def regression(rng, m=10, d=3):
    return Examples(rng.normal(size=(m, d)), rng.normal(size=m))


def sgd(model, lr=0.05):
    return torch.optim.SGD(model.parameters(), lr=lr)


def fit(model, data, epochs=1, batch_size=5, lr=0.05, **options):
    """Train on the squared loss, by plain gradient descent unless told otherwise."""
    options = {"optimizer": sgd(model, lr), "loss": squared, "error": None, **options}
    optimizer = options.pop("optimizer")
    return train(model, data, optimizer, epochs=epochs, batch_size=batch_size, **options)


def by_hand(x, y, theta, lr, order):
    """Gradient descent on least squares; one row of indices per step."""
    X = np.column_stack([x, np.ones(len(x))])
    path, losses, slopes = [theta], [], []
    for rows in order:
        residual = X[rows] @ path[-1] - y[rows]
        slope = 2 * X[rows].T @ residual / len(rows)
        losses.append(np.mean(residual**2))
        slopes.append(np.linalg.norm(slope))
        path.append(path[-1] - lr * slope)
    return np.array(path), losses, slopes


def parameters(model):
    return parameters_to_vector(model.parameters()).detach().numpy()


def notes(log, name="hook", stop=("", 0)):
    """Return a hook that writes down all its calls, and stops at a step if told to."""

    def note(event, state):
        assert event != "step" or state.model.training
        log.append((name, event, state.epoch, state.step))
        if event == stop[0] and state.step >= stop[1]:
            state.stop = f"enough at step {state.step}"

    events = "backward", "step", "epoch"
    return SimpleNamespace(**{f"after_{event}": partial(note, event) for event in events})


@pytest.mark.row("L1-09", "L1-24")
@pytest.mark.parametrize("sizes", [[10], [4, 4, 2]])
def test_training_is_gradient_descent_by_hand(rng, sizes):
    data, (model, start), order = regression(rng), linear(), []
    record = fit(model, data, epochs=4, batch_size=sizes[0], seed=5)
    generator, per = torch.Generator().manual_seed(5), len(sizes)
    for _ in range(4):  # each epoch sees every example, in a new order
        shuffled = torch.randperm(10, generator=generator).numpy()
        order += np.split(shuffled, np.cumsum(sizes)[:-1])
    path, losses, slopes = by_hand(data.x, data.y, start, 0.05, order)
    assert_allclose(parameters(model), path[-1], rtol=1e-12)
    X = np.column_stack([data.x, np.ones(10)])
    expected = {
        "minibatch_loss": np.average(np.reshape(losses, (4, per)), axis=1, weights=sizes),
        "gradient_norm": np.reshape(slopes, (4, per)).mean(axis=1),
        "train_loss": [np.mean((X @ theta - data.y) ** 2) for theta in path[per::per]],
    }
    assert set(record.curves) == set(expected)
    for name, curve in expected.items():
        assert_allclose(record.curves[name], curve, rtol=1e-12)
    assert record.stop == "all 4 epochs"


def test_seed_alone_decides_without_global_generator(rng):
    data, models = regression(rng), [linear()[0] for _ in range(3)]
    before = torch.get_rng_state()
    one, same, other = (
        fit(model, data, epochs=3, batch_size=3, seed=seed)
        for model, seed in zip(models, (1, 1, 2), strict=True)
    )
    one.seconds = same.seconds
    assert one == same
    assert one.curves != other.curves
    torch.testing.assert_close(torch.get_rng_state(), before)
    # the first numbers that a seed gives its weights and its order are not the same
    seeds = [s for seed in range(20) for s in (seed, order_seed(seed))]
    firsts = {torch.rand(1, generator=torch.Generator().manual_seed(s)).item() for s in seeds}
    assert len(firsts) == 40


def test_hooks_are_called_in_order(rng):
    log = []
    fit(linear()[0], regression(rng), epochs=2, hooks=[notes(log, "a"), notes(log, "b")])
    calls = itertools.product((1, 2, 3, 4), ("backward", "step", "epoch"), "ab")
    called = [(name, event, (step + 1) // 2, step) for step, event, name in calls]
    assert log == [call for call in called if call[1] != "epoch" or call[3] in (2, 4)]


def test_single_method_hooks_change_steps_and_curves(rng):
    def halve(state):
        for p in state.model.parameters():
            p.grad *= 0.5

    def bias(state):
        state.curves.setdefault("bias", []).append(state.model.bias.item())

    data, (model, start) = regression(rng), linear()
    hooks = [SimpleNamespace(after_backward=halve), SimpleNamespace(after_epoch=bias)]
    record = fit(model, data, epochs=3, batch_size=10, hooks=hooks)
    path, _, slopes = by_hand(data.x, data.y, start, 0.025, [np.arange(10)] * 3)
    assert_allclose(parameters(model), path[-1], rtol=1e-13)
    assert_allclose(record.curves["gradient_norm"], slopes, rtol=1e-13)  # before it acts
    assert_allclose(record.curves["bias"], path[1:, -1], rtol=1e-13)


@pytest.mark.row("L1-05")
@pytest.mark.parametrize(("event", "steps"), [("epoch", 6), ("step", 4)])
def test_hook_stop_ends_training_and_is_recorded(rng, event, steps):
    log = []
    hooks = [notes(log, stop=(event, 4))]
    record = fit(linear()[0], regression(rng), epochs=9, batch_size=4, hooks=hooks)
    assert record.stop == f"enough at step {steps}"
    assert {len(curve) for curve in record.curves.values()} == {2}
    assert log[-1] == ("hook", "epoch", 2, steps)


@pytest.mark.row("L1-05")
def test_losses_are_means_in_evaluation_mode(rng):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, 3)).eval()
    sizes = {"train": 1203, "validation": 7, "test": 5}
    parts = {k: Examples(rng.normal(size=(m, 2)), rng.integers(3, size=m))
             for k, m in sizes.items()}  # fmt: skip
    record = train(
        model, parts["train"], sgd(model), validation=parts["validation"], test=parts["test"],
        epochs=1, batch_size=200, config={"lr": 0.05},
    )  # fmt: skip
    assert not model.training
    for name, part in parts.items():
        scores = model(torch.tensor(part.x, dtype=torch.float32)).double().detach().numpy()
        nll = -log_softmax(scores, axis=1)[np.arange(len(part)), part.y].mean()
        assert record.curves[f"{name}_loss"] == [pytest.approx(nll, rel=1e-5)]
        wrong = np.mean(scores.argmax(axis=1) != part.y)
        assert record.curves[f"{name}_error"] == [pytest.approx(wrong)]
    assert record.config == {"epochs": 1, "batch_size": 200, "lr": 0.05}
    assert (record.device, record.seed) == ("cpu", 0)


@pytest.mark.row("L1-03")
def test_zero_one_by_hand():
    scores = torch.tensor([[0.2, 0.5, 0.3], [2.0, 1.0, 0.0]])
    assert zero_one(scores, torch.tensor([1, 1])).tolist() == [False, True]
    one, labels = torch.tensor([[1.0], [-1.0], [0.0], [-2.0]]), torch.tensor([1.0, 1.0, 1.0, -1.0])
    for shape, form in itertools.product((one, one[:, 0]), (labels, labels[:, None], labels > 0)):
        assert zero_one(shape, form).tolist() == [False, True, True, False]
    assert zero_one(math.nan * one, labels).all()
    assert zero_one(scores, torch.tensor([[1], [1]])).tolist() == [False, True]


def test_progress_bar_is_off_unless_asked_for(rng, capsys):
    for progress in (False, True):
        fit(linear()[0], regression(rng), epochs=2, progress=progress)
        assert ("2/2" in capsys.readouterr().err) == progress


def test_divergence_is_reported_with_its_step_and_remedy(rng):
    with pytest.raises(FloatingPointError, match=r"step \d+, in epoch \d+.*smaller.*than 1e\+10"):
        fit(linear()[0], regression(rng), epochs=100, lr=1e10)
    with pytest.raises(FloatingPointError, match="nan at step 1, in epoch 1"):
        fit(linear(1)[0], Examples(np.array([[math.nan]]), np.array([0.0])), batch_size=1)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_on_a_gpu_training_matches_cpu():
    data, curves = regression(np.random.default_rng(20)), []
    for device in ("cpu", "cuda"):
        record = fit(linear()[0].to(device), data, epochs=3, batch_size=4)
        assert record.device.startswith(device)
        curves.append(record.curves["train_loss"])
    assert_allclose(*curves, rtol=1e-10)


class AddDraws:
    """Add to the features what was drawn."""

    def draw(self, m, generator):
        return torch.randint(0, 5, (m, 2), generator=generator)

    def __call__(self, x, draws):
        return x + draws[:, :1]


def test_augmentation_uses_the_draws_of_its_examples():
    m, (model, (weight, bias)), seen = 7, linear(1), []
    x, y = np.arange(m, dtype=float)[:, None], np.zeros(m)
    model.register_forward_pre_hook(lambda _, inputs: seen.extend(inputs[0][:, 0].tolist()))
    options = {"epochs": 2, "batch_size": 3, "seed": 4, "augmentation": AddDraws()}
    record = fit(model, Examples(x, y), lr=0.0, **options)
    generator = torch.Generator().manual_seed(4)
    for epoch in range(2):
        order = torch.randperm(m, generator=generator)
        drawn = torch.randint(0, 5, (m, 2), generator=generator)
        inputs = (order + drawn[:, 0]).numpy()
        # the seven of the epoch, and then those that are measured, which are not changed
        assert seen[2 * m * epoch : 2 * m * (epoch + 1)] == [*inputs, *range(m)]
        expected = np.mean((weight * inputs + bias) ** 2)
        assert record.curves["minibatch_loss"][epoch] == pytest.approx(expected, rel=1e-12)


def test_training_measurement_can_be_turned_off(rng):
    data = regression(rng)
    record = fit(linear()[0], data, validation=data, measure_training=False)
    assert set(record.curves) == {"minibatch_loss", "gradient_norm", "validation_loss"}


def test_autocast_narrows_scores_but_not_loss(rng):
    types, model = [], nn.Linear(3, 1)

    def loss(scores, labels):
        types.append(scores.dtype)
        return squared(scores, labels)

    model.register_forward_hook(lambda layer, inputs, output: types.append(output.dtype))
    fit(model, regression(rng), batch_size=10, loss=loss, autocast=torch.bfloat16)
    assert types == [torch.bfloat16, torch.float32] * 2


def test_graphed_step_without_gpu_is_plain_step(rng):
    data = regression(rng)
    plain, captured = (
        fit(linear()[0], data, epochs=2, batch_size=4, cuda_graph=graph).curves
        for graph in (False, True)
    )
    assert plain == captured
    assert graphed(lambda rows: 2 * rows)(torch.tensor([3])).item() == 6


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_on_a_gpu_graphed_step_matches_plain_step():
    data, curves = regression(np.random.default_rng(20), 64), []
    for cuda_graph in (False, True):
        model = linear()[0].cuda()
        rate = torch.tensor(0.05, device="cuda")
        optimizer = torch.optim.SGD(model.parameters(), rate, momentum=0.9, fused=True)
        hooks = [Schedule(optimizer, 16, (2,)), BNP(model, check_finite=False)]
        options = {"optimizer": optimizer, "hooks": hooks, "cuda_graph": cuda_graph}
        curves.append(fit(model, data, epochs=4, batch_size=4, **options).curves)
    for name, values in curves[0].items():
        assert_allclose(values, curves[1][name], rtol=1e-10)


@pytest.mark.row("P-27", "P-28")
@pytest.mark.parametrize("as_tensor", [False, True])
def test_schedule_warms_up_and_decays(rng, as_tensor):
    (model, _), used = linear(), []
    optimizer = torch.optim.SGD(model.parameters(), torch.tensor(0.1) if as_tensor else 0.1)

    def watch(state):
        used.append(float(state.optimizer.param_groups[0]["lr"]))

    schedule = Schedule(optimizer, 2, decay=(3, 4), warmup=4, start=0.02)
    hooks = [SimpleNamespace(after_backward=watch), schedule]
    fit(model, regression(rng), epochs=5, optimizer=optimizer, hooks=hooks)
    expected = [0.02, 0.04, 0.06, 0.08, 0.1, 0.1, 0.01, 0.01, 0.001, 0.001]
    assert_allclose(used, expected, rtol=1e-6)
    groups = [{"params": [model.weight], "lr": 0.1}, {"params": [model.bias], "lr": 0.5}]
    optimizer = torch.optim.SGD(groups)
    Schedule(optimizer, 2, decay=(1,)).after_step(State(model, optimizer, step=2, curves={}))
    assert [group["lr"] for group in optimizer.param_groups] == [0.01, 0.05]
    jump = Schedule(torch.optim.SGD(model.parameters(), 0.1), 2, warmup=3, linear=False)
    assert [jump.rate(step) for step in range(5)] == [0.01, 0.01, 0.01, 0.1, 0.1]


class Warm:
    """A schedule with a memory of its own."""

    def __init__(self):
        self.count = 0

    def after_step(self, state):
        self.count += 1
        for group in state.optimizer.param_groups:
            group["lr"] *= 1.3 if self.count < 4 else 0.9

    def state_dict(self):
        return {"count": self.count}

    def load_state_dict(self, state):
        self.count = state["count"]


class Interrupt:
    """Ctrl-C in the middle of an epoch, between the forward pass and the step of the next hook."""

    def __init__(self, step):
        self.step = step

    def after_backward(self, state):
        if state.step == self.step:
            raise KeyboardInterrupt


def plain():
    return nn.Sequential(nn.Conv2d(2, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(36, 6),
                         nn.Linear(6, 3))  # fmt: skip


def dropped():
    return nn.Sequential(nn.Flatten(), nn.Linear(50, 8), nn.ReLU(), nn.Dropout(0.4),
                         Dropout(0.1, torch.Generator().manual_seed(5)),
                         nn.Linear(8, 3))  # fmt: skip


def normalized():
    return nn.Sequential(nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(36, 3))


def momentum(model, lr=0.05):
    return torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)


def adam(model):
    return torch.optim.Adam(model.parameters(), lr=0.01)


def together(model):
    rest = Stepped([*model.parameters()][2:], Nesterov(0.05, alpha=0.9))
    return Together(adam(model[0]), rest)


def images(seed=0, m=22):
    rng = np.random.default_rng(seed)
    return Examples(rng.normal(2.0, size=(m, 2, 5, 5)), rng.integers(3, size=m))


class Setup:
    """A model with all that trains it, made the same way each time."""

    def __init__(self, make=plain, optimizer=momentum, bnp=True, warm=True, interrupt=math.inf):
        torch.manual_seed(7)
        self.model = make()
        self.optimizer = optimizer(self.model)
        self.hooks = [Interrupt(interrupt), *[Warm()] * warm, *[BNP(self.model)] * bnp]

    def train(self, epochs=5, train_examples=None, **change):
        settings = {"validation": images(1, 7), "batch_size": 4, "hooks": self.hooks, "seed": 3}
        examples = train_examples or images()
        return train(self.model, examples, self.optimizer, epochs=epochs, **settings | change)

    def interrupted(self, file):
        """Train until Ctrl-C, and go on as the one who pressed it may."""
        with pytest.raises(KeyboardInterrupt):
            self.train(checkpoint=file)
        self.hooks[0].step = math.inf
        return self

    def state(self):
        """Return all that a further step would depend on."""
        states = [self.model.state_dict(), self.optimizer.state_dict(), torch.get_rng_state()]
        hooks = [hook.state_dict() for hook in self.hooks if hasattr(hook, "state_dict")]
        return copy.deepcopy(states + hooks)


@cache
def whole_run(*arguments, epochs=5):
    """Return the state after a training without interruptions, and its record."""
    setup = Setup(*arguments)
    record = setup.train(epochs=epochs)
    return setup.state(), record


def assert_same_run(setup, record, expected):
    state, whole = expected
    torch.testing.assert_close(setup.state(), state, rtol=0, atol=0)
    assert (record.curves, record.stop, record.config) == (whole.curves, whole.stop, whole.config)


@pytest.mark.row("L1-09")
@pytest.mark.parametrize(
    ("arguments", "step"),  # in the first, the second and the last epoch
    [((plain, momentum, True), 2), ((plain, adam, False), 9), ((dropped, adam, True), 29),
     ((dropped, momentum, False), 9), ((normalized, momentum, True), 29),
     ((plain, together, False), 9)],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:bnp.step.. before Adam")
def test_interrupted_and_resumed_training_is_bit_identical(tmp_path, arguments, step):
    expected, file = whole_run(*arguments), tmp_path / "deep" / "run.pt"
    Setup(*arguments, interrupt=step).interrupted(file)
    resumed = copy.deepcopy(Setup(*arguments))
    torch.manual_seed(99)  # a new process starts elsewhere
    assert_same_run(resumed, resumed.train(checkpoint=file), expected)
    assert list(tmp_path.glob("deep/*")) == [file]


@pytest.mark.parametrize(("step", "warm"), [(1, True), (15, False)])
def test_interrupted_model_itself_resumes(tmp_path, step, warm):
    # without a new optimizer; its rate must be that of the file: of the first step, or constant
    expected, file = whole_run(plain, momentum, True, warm), tmp_path / "run.pt"
    stopped = Setup(warm=warm, interrupt=step).interrupted(file)
    saved, epochs = torch.load(file, weights_only=True), (step - 1) // 6  # no more is lost
    assert (saved["epoch"], saved["step"]) == (epochs, 6 * epochs)
    assert len(saved["curves"].get("train_loss", [])) == epochs
    assert_same_run(stopped, stopped.train(checkpoint=file), expected)


def test_more_epochs_continue_and_equal_epochs_stop(tmp_path):
    expected, file = whole_run(epochs=4), tmp_path / "run.pt"
    Setup().train(epochs=2, checkpoint=file)
    for setup in (Setup(), Setup()):
        assert_same_run(setup, setup.train(epochs=4, checkpoint=file), expected)
    with pytest.raises(ValueError, match=r"epochs must be at least 4.*got 3\. Training cannot"):
        Setup().train(epochs=3, checkpoint=file)


def test_stopped_run_stays_stopped_on_resume(tmp_path):
    for _ in range(2):
        setup = Setup()
        setup.hooks[0] = notes([], stop=("epoch", 8))
        record = setup.train(checkpoint=tmp_path / "run.pt")
        assert record.stop == "enough at step 12"
        assert len(record.curves["train_loss"]) == 2


@pytest.mark.parametrize(
    ("made", "change", "message"),
    [
        ({}, {"batch_size": 5}, "batch size: 4 there, 5 here"),
        ({}, {"seed": 4}, "seed: 3 there, 4 here"),
        ({}, {"train_examples": images(2)}, "training examples: "),
        ({}, {"validation": None}, "validation examples: .* there, none here"),
        ({}, {"hooks": []}, "hooks: "),
        ({}, {"config": {"lr": 1}}, r"config: .* there, \[\('lr', 1\)\] here"),
        ({"make": dropped}, {}, "model: "),
        ({"make": lambda: nn.Sequential(*plain(), nn.Dropout(0.1))}, {}, "model: "),
        ({"optimizer": adam}, {}, "optimizer: SGD .* there, Adam .* here"),
        ({"optimizer": partial(momentum, lr=0.3)}, {}, "'lr': 0.05.* there, .*'lr': 0.3.* here"),
    ],
)
def test_checkpoint_of_another_run_is_refused(tmp_path, made, change, message):
    file = tmp_path / "run.pt"
    Setup().train(epochs=1, checkpoint=file)
    before, other = file.read_bytes(), Setup(**made)
    start = copy.deepcopy(other.model.state_dict())
    with pytest.raises(ValueError, match=f"another run.*{message}.*file of its own"):
        other.train(checkpoint=file, **change)
    torch.testing.assert_close(other.model.state_dict(), start, rtol=0, atol=0)
    assert file.read_bytes() == before


def half(file):
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def flipped(file):
    """Change one bit of one number: the file can still be read, and says something else."""
    content = torch.load(file, weights_only=True)
    number = content["model"]["0.weight"].numpy().tobytes()
    place = file.read_bytes().index(number) + len(number) // 2
    damaged = bytearray(file.read_bytes())
    damaged[place] ^= 1
    file.write_bytes(damaged)


class Danger:
    def __reduce__(self):
        return (print, ("a checkpoint ran code",))


DAMAGES = {
    "half": half,
    "flipped": flipped,
    "list": lambda file: torch.save([1, 2], file),
    "dict": lambda file: torch.save({"model": {}}, file),
    "danger": lambda file: torch.save(Danger(), file),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_checkpoint_is_refused_without_running_code(tmp_path, damage, capsys):
    file = tmp_path / "run.pt"
    Setup().train(epochs=1, checkpoint=file)
    DAMAGES[damage](file)
    before = file.read_bytes()
    with pytest.raises(ValueError, match=r"run\.pt is not a.*checkpoint(?=.*elete).*another file"):
        Setup().train(checkpoint=file)
    assert file.read_bytes() == before
    assert "ran code" not in capsys.readouterr().out


def test_failed_save_keeps_the_last_checkpoint(tmp_path, monkeypatch):
    file, write = tmp_path / "run.pt", torch.save
    Setup().train(epochs=1, checkpoint=file)
    before = file.read_bytes()

    def broken(content, path):
        write(content, path)
        half(path)
        raise KeyboardInterrupt

    monkeypatch.setattr(torch, "save", broken)
    with pytest.raises(KeyboardInterrupt):
        Setup().train(checkpoint=file)
    assert file.read_bytes() == before
    assert list(tmp_path.iterdir()) == [file]


def test_unreadable_state_is_refused_at_save(tmp_path):
    setup = Setup()
    setup.hooks[1].count = Danger()
    with pytest.raises(TypeError, match=r"the state of a hook .* must be made of tensors, numbers"):
        setup.train(checkpoint=tmp_path / "run.pt")
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_on_a_gpu_dropout_resumes_bit_identically(tmp_path):
    arguments, file = (lambda: dropped().cuda(), momentum), tmp_path / "run.pt"
    expected = whole_run(*arguments)
    Setup(*arguments, interrupt=13).interrupted(file)
    resumed = Setup(*arguments)
    torch.manual_seed(99)
    assert_same_run(resumed, resumed.train(checkpoint=file), expected)
