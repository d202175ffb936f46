"""The training loop against gradient descent by hand, and its promises one by one."""

import copy
import math
import pickle
from itertools import chain

import numpy as np
import pytest
import torch
from torch import nn

from optdl.bnp import BNP
from optdl.data import Examples
from optdl.training import Hook, Schedule, State, graphed, order_seed, train, zero_one

torch.set_num_threads(1)


def squared(scores, labels):
    return ((scores[:, 0] - labels) ** 2).mean()


def linear(d=3, seed=0):
    model = nn.Linear(d, 1, dtype=torch.float64)
    start = np.random.default_rng(seed).normal(size=d + 1)
    with torch.no_grad():
        model.weight.copy_(torch.from_numpy(start[None, :d]))
        model.bias.fill_(start[d])
    return model, start


def regression(rng, m=10, d=3):
    return Examples(rng.normal(size=(m, d)), rng.normal(size=m))


def sgd(model, lr=0.05):
    return torch.optim.SGD(model.parameters(), lr=lr)


def by_hand(x, y, theta, lr, order):
    """Gradient descent on least squares; one row of indices per step."""
    X = np.column_stack([x, np.ones(len(x))])
    path, losses, slopes = [theta], [], []
    for rows in order:
        residual = X[rows] @ theta - y[rows]
        slope = 2 * X[rows].T @ residual / len(rows)
        losses.append(float(np.mean(residual**2)))
        slopes.append(float(np.linalg.norm(slope)))
        theta = theta - lr * slope
        path.append(theta)
    return np.array(path), losses, slopes


def parameters(model):
    return np.append(model.weight.detach().numpy()[0], model.bias.item())


class Notes(Hook):
    """Write down everything."""

    def __init__(self, name="hook", log=None):
        self.name = name
        self.log = [] if log is None else log
        self.path = []

    def after_backward(self, state: State) -> None:
        self.log.append((self.name, "backward", state.epoch, state.step))

    def after_step(self, state: State) -> None:
        self.log.append((self.name, "step", state.epoch, state.step))
        self.path.append([p.detach().clone() for p in state.model.parameters()])

    def after_epoch(self, state: State) -> None:
        self.log.append((self.name, "epoch", state.epoch, state.step))


class Rows(Hook):
    """Read which examples a step saw, from a model whose features are their numbers."""

    def __init__(self, model):
        self.seen = []
        model.register_forward_pre_hook(self.watch)

    def watch(self, model, inputs):
        if model.training:
            self.seen.append(inputs[0][:, 0].long().tolist())

    def after_step(self, state):
        pass


@pytest.mark.row("L1-09", "L1-24")
def test_full_batch_is_gradient_descent_by_hand(rng):
    data, (model, start) = regression(rng), linear()
    record = train(
        model, data, sgd(model), epochs=4, batch_size=10, loss=squared, error=None, seed=3
    )
    path, losses, slopes = by_hand(data.x, data.y, start, 0.05, [np.arange(10)] * 4)
    np.testing.assert_allclose(parameters(model), path[-1], rtol=1e-13)
    np.testing.assert_allclose(record.curves["minibatch_loss"], losses, rtol=1e-13)
    np.testing.assert_allclose(record.curves["gradient_norm"], slopes, rtol=1e-13)
    X = np.column_stack([data.x, np.ones(10)])
    after = [np.mean((X @ theta - data.y) ** 2) for theta in path[1:]]
    np.testing.assert_allclose(record.curves["train_loss"], after, rtol=1e-13)
    assert set(record.curves) == {"minibatch_loss", "gradient_norm", "train_loss"}
    assert record.stop == "all 4 epochs"


@pytest.mark.row("L1-09", "L1-24")
def test_minibatches_with_a_ragged_last_one_by_hand(rng):
    m, seed = 10, 5
    data, (model, start) = regression(rng, m), linear()
    record = train(
        model, data, sgd(model), epochs=2, batch_size=4, loss=squared, error=None, seed=seed
    )
    generator = torch.Generator().manual_seed(seed)
    order = []
    for _ in range(2):
        shuffled = torch.randperm(m, generator=generator).numpy()
        order += [shuffled[:4], shuffled[4:8], shuffled[8:]]
    path, losses, slopes = by_hand(data.x, data.y, start, 0.05, order)
    np.testing.assert_allclose(parameters(model), path[-1], rtol=1e-12)
    weighted = [np.average(losses[k : k + 3], weights=[4, 4, 2]) for k in (0, 3)]
    assert weighted[0] != pytest.approx(np.mean(losses[:3]), rel=1e-3)
    np.testing.assert_allclose(record.curves["minibatch_loss"], weighted, rtol=1e-12)
    norms = [np.mean(slopes[:3]), np.mean(slopes[3:])]
    np.testing.assert_allclose(record.curves["gradient_norm"], norms, rtol=1e-12)


def numbered(m):
    return Examples(np.arange(m, dtype=float)[:, None], np.zeros(m))


@pytest.mark.row("L1-09")
def test_epoch_visits_every_example_in_new_order():
    model, _ = linear(1)
    rows = Rows(model)
    train(model, numbered(10), sgd(model, 1e-3), epochs=2, batch_size=3, loss=squared, hooks=[rows])
    assert [len(batch) for batch in rows.seen] == [3, 3, 3, 1] * 2
    first, second = list(chain(*rows.seen[:4])), list(chain(*rows.seen[4:]))
    assert sorted(first) == sorted(second) == list(range(10))
    assert first != second
    assert first != list(range(10))


def test_same_seed_same_record_and_another_seed_another(rng):
    data = regression(rng)

    def run(seed):
        model, _ = linear()
        record = train(
            model, data, sgd(model), epochs=3, batch_size=3, loss=squared, error=None, seed=seed
        )
        record.seconds = 0.0
        return record

    assert run(1) == run(1)
    assert run(1).curves != run(2).curves


def test_global_generator_is_not_touched(rng):
    model, _ = linear()
    before = torch.get_rng_state()
    train(model, regression(rng), sgd(model), epochs=1, batch_size=3, loss=squared, error=None)
    torch.testing.assert_close(torch.get_rng_state(), before)


def test_hooks_are_called_in_order(rng):
    model, _ = linear()
    log = []
    hooks = [Notes("a", log), Notes("b", log)]
    train(
        model,
        regression(rng),
        sgd(model),
        epochs=2,
        batch_size=5,
        loss=squared,
        error=None,
        hooks=hooks,
    )
    expected = []
    for epoch in (1, 2):
        for step in (2 * epoch - 1, 2 * epoch):
            for event in ("backward", "step"):
                expected += [("a", event, epoch, step), ("b", event, epoch, step)]
        expected += [("a", "epoch", epoch, 2 * epoch), ("b", "epoch", epoch, 2 * epoch)]
    assert log == expected


class Halve:
    """Halve the gradient: a preconditioner that needs one method only."""

    def after_backward(self, state):
        for p in state.model.parameters():
            p.grad *= 0.5


def test_hook_after_backward_changes_the_step(rng):
    data, (model, start) = regression(rng), linear()
    record = train(
        model,
        data,
        sgd(model),
        epochs=3,
        batch_size=10,
        loss=squared,
        error=None,
        hooks=[Halve()],
    )
    path, _, slopes = by_hand(data.x, data.y, start, 0.025, [np.arange(10)] * 3)
    np.testing.assert_allclose(parameters(model), path[-1], rtol=1e-13)
    # recorded before the hook acts
    np.testing.assert_allclose(record.curves["gradient_norm"], slopes, rtol=1e-13)


class StopAt(Hook):
    def __init__(self, event, step):
        self.event, self.step = event, step

    def _stop(self, state, event):
        if event == self.event and state.step >= self.step:
            state.stop = f"enough at step {state.step}"

    def after_step(self, state):
        self._stop(state, "step")

    def after_epoch(self, state):
        self._stop(state, "epoch")


@pytest.mark.row("L1-05")
@pytest.mark.parametrize(("event", "steps", "epochs"), [("epoch", 6, 2), ("step", 4, 2)])
def test_hook_stop_ends_training_and_is_recorded(rng, event, steps, epochs):
    model, _ = linear()
    notes = Notes()
    record = train(
        model,
        regression(rng),
        sgd(model),
        epochs=9,
        batch_size=4,
        loss=squared,
        error=None,
        hooks=[StopAt(event, 4), notes],
    )
    assert record.stop == f"enough at step {steps}"
    assert len(notes.path) == steps
    assert {len(curve) for curve in record.curves.values()} == {epochs}
    assert notes.log[-1] == ("hook", "epoch", epochs, steps)


def test_hook_can_add_a_curve(rng):
    class Weight:
        def after_epoch(self, state):
            state.curves.setdefault("bias", []).append(state.model.bias.item())

    model, _ = linear()
    record = train(
        model,
        regression(rng),
        sgd(model),
        epochs=2,
        batch_size=4,
        loss=squared,
        error=None,
        hooks=[Weight()],
    )
    assert record.curves["bias"][-1] == model.bias.item()


class Classifier(nn.Module):
    """A network with dropout, to see the difference between training and evaluation."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, 3))

    def forward(self, x):
        return self.layers(x)


@pytest.mark.row("L1-05")
def test_losses_are_means_in_evaluation_mode(rng):
    model = Classifier()
    data = Examples(rng.normal(size=(1203, 2)), rng.integers(3, size=1203))
    held = Examples(rng.normal(size=(7, 2)), rng.integers(3, size=7))
    model.eval()
    record = train(
        model, data, sgd(model), validation=held, epochs=1, batch_size=200, config={"lr": 0.05}
    )
    assert not model.training
    for name, part in (("train", data), ("validation", held)):
        with torch.no_grad():
            scores = model(torch.tensor(part.x, dtype=torch.float32)).double().numpy()
        shifted = scores - scores.max(axis=1, keepdims=True)
        log_p = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
        nll = -log_p[np.arange(len(part)), part.y].mean()
        assert record.curves[f"{name}_loss"] == [pytest.approx(nll, rel=1e-5)]
        wrong = np.mean(scores.argmax(axis=1) != part.y)
        assert record.curves[f"{name}_error"] == [pytest.approx(wrong)]
    assert record.config == {"epochs": 1, "batch_size": 200, "lr": 0.05}
    assert (record.device, record.seed) == ("cpu", 0)


def test_test_examples_are_measured_with_validation(rng):
    one, other = (regression(rng, m) for m in (7, 5))
    (model, _), data = linear(), regression(rng)
    record = train(
        model, data, sgd(model), validation=one, test=other,
        epochs=1, batch_size=10, loss=squared, error=None,
    )  # fmt: skip
    theta = parameters(model)
    for name, part in (("validation", one), ("test", other)):
        expected = np.mean((np.column_stack([part.x, np.ones(len(part.x))]) @ theta - part.y) ** 2)
        assert record.curves[f"{name}_loss"] == [pytest.approx(expected)]


def test_order_seed_differs_from_weight_seed():
    """The first numbers that a seed gives its weights and its order are not the same."""
    streams = [
        torch.rand(3, generator=torch.Generator().manual_seed(s)).tolist()
        for seed in range(20)
        for s in (seed, order_seed(seed))
    ]
    assert len({tuple(values) for values in streams}) == 40


def test_model_trains_in_training_mode(rng):
    seen = []

    class Mode:
        def after_step(self, state):
            seen.append(state.model.training)

    model = Classifier()
    data = Examples(rng.normal(size=(8, 2)), rng.integers(3, size=8))
    train(model, data, sgd(model), epochs=2, batch_size=4, hooks=[Mode()])
    assert seen == [True] * 4
    assert model.training


@pytest.mark.row("L1-03")
def test_zero_one_by_hand():
    scores = torch.tensor([[0.2, 0.5, 0.3], [2.0, 1.0, 0.0]])
    assert zero_one(scores, torch.tensor([1, 1])).tolist() == [False, True]
    one = torch.tensor([[1.0], [-1.0], [0.0], [-2.0]])
    labels = torch.tensor([1.0, 1.0, 1.0, -1.0])
    for shape in (one, one[:, 0]):
        assert zero_one(shape, labels).tolist() == [False, True, True, False]


def test_labels_of_two_signs(rng):
    x = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    model = nn.Linear(1, 1)
    record = train(
        model,
        Examples(x, np.array([-1.0, -1.0, 1.0, 1.0])),
        sgd(model, 0.5),
        epochs=20,
        batch_size=2,
        loss=lambda s, y: nn.functional.softplus(-y * s[:, 0]).mean(),
    )
    assert record.curves["train_error"][-1] == 0


def test_progress_bar_is_off_unless_asked_for(rng, capsys):
    for progress in (False, True):
        model, _ = linear()
        train(
            model,
            regression(rng),
            sgd(model),
            epochs=2,
            batch_size=5,
            loss=squared,
            error=None,
            progress=progress,
        )
        assert ("2/2" in capsys.readouterr().err) == progress


def test_divergence_message_names_step_and_remedy(rng):
    model, _ = linear()
    with pytest.raises(FloatingPointError, match=r"step \d+, in epoch \d+.*smaller.*than 1e\+10"):
        train(
            model,
            regression(rng),
            sgd(model, 1e10),
            epochs=100,
            batch_size=5,
            loss=squared,
            error=None,
        )


def test_nan_feature_is_reported_at_first_step():
    model, _ = linear(1)
    data = Examples(np.array([[math.nan]]), np.array([0.0]))
    with pytest.raises(FloatingPointError, match="nan at step 1, in epoch 1"):
        train(model, data, sgd(model), epochs=1, batch_size=1, loss=squared, error=None)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"epochs": 0}, ValueError, "epochs must be at least 1; got 0"),
        ({"batch_size": 11}, ValueError, "from 1 to 10.*got 11"),
        ({"batch_size": 0}, ValueError, "from 1 to 10.*got 0"),
        ({"hooks": [object()]}, TypeError, "object has none"),
        (
            {"train_examples": Examples(np.ones((0, 3)), np.ones(0))},
            ValueError,
            "the training examples.*none",
        ),
        ({"validation": Examples(np.ones((0, 3)), np.ones(0))}, ValueError, "the validation ex"),
        ({"optimizer": sgd(nn.Linear(1, 1))}, ValueError, "moves none of the model's"),
    ],
)
def test_errors_say_what_was_expected(rng, change, error, message):
    model, _ = linear()
    arguments = {
        "train_examples": regression(rng),
        "optimizer": sgd(model),
        "epochs": 1,
        "batch_size": 2,
        "loss": squared,
        "error": None,
        **change,
    }
    with pytest.raises(error, match=message):
        train(model, arguments.pop("train_examples"), arguments.pop("optimizer"), **arguments)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_on_a_gpu_training_matches_cpu():
    data = regression(np.random.default_rng(20))
    curves = []
    for device in ("cpu", "cuda"):
        model = linear()[0].to(device)
        record = train(model, data, sgd(model), epochs=3, batch_size=4, loss=squared, error=None)
        assert record.device.startswith(device)
        curves.append(record.curves["train_loss"])
    np.testing.assert_allclose(*curves, rtol=1e-10)


# --- What the experiments ask for --------------------------------------------------------------


class AddDraws:
    """Add to the features what was drawn, and keep it."""

    def __init__(self):
        self.seen = []

    def draw(self, m, generator):
        return torch.randint(0, 5, (m, 2), generator=generator)

    def __call__(self, x, draws):
        self.seen.append((x[:, 0].clone(), draws))
        return x + draws[:, :1]


def test_augmentation_uses_the_draws_of_its_examples():
    m, augmentation, drawn = 7, AddDraws(), {}
    x, y = np.arange(m, dtype=float)[:, None], np.zeros(m)
    model, (weight, bias) = linear(1)
    frozen = sgd(model, 0.0)
    record = train(
        model, Examples(x, y), frozen, epochs=2, batch_size=3, loss=squared, error=None, seed=4,
        augmentation=augmentation,
    )  # fmt: skip
    generator = torch.Generator().manual_seed(4)
    for epoch in range(2):
        order = torch.randperm(m, generator=generator)
        drawn = torch.randint(0, 5, (m, 2), generator=generator)
        seen = augmentation.seen[3 * epoch : 3 * epoch + 3]
        assert torch.equal(torch.cat([rows for rows, _ in seen]), order.double())
        assert torch.equal(torch.cat([draws for _, draws in seen]), drawn)
        inputs = order.numpy() + drawn[:, 0].numpy()
        expected = np.mean((weight * inputs + bias) ** 2)
        assert record.curves["minibatch_loss"][epoch] == pytest.approx(expected, rel=1e-12)
    # what is measured is not changed
    assert record.curves["train_loss"][0] == pytest.approx(np.mean((weight * x + bias) ** 2))


def test_training_examples_are_measured_unless_it_is_refused(rng):
    model, _ = linear()
    data = regression(rng)
    options = {"epochs": 1, "batch_size": 5, "loss": squared, "error": None, "validation": data}
    record = train(model, data, sgd(model), measure_training=False, **options)
    assert set(record.curves) == {"minibatch_loss", "gradient_norm", "validation_loss"}


def test_autocast_narrows_scores_but_not_loss(rng):
    types = []

    def loss(scores, labels):
        types.append(scores.dtype)
        return ((scores[:, 0] - labels) ** 2).mean()

    model = nn.Linear(3, 1)
    model.register_forward_hook(lambda layer, inputs, output: types.append(output.dtype))
    train(
        model, regression(rng), sgd(model), epochs=1, batch_size=10, loss=loss, error=None,
        autocast=torch.bfloat16,
    )  # fmt: skip
    assert types == [torch.bfloat16, torch.float32] * 2


def test_graphed_step_without_gpu_is_plain_step(rng):
    data, curves = regression(rng), []
    for cuda_graph in (False, True):
        model, _ = linear()
        options = {"epochs": 2, "batch_size": 4, "loss": squared, "error": None}
        curves.append(train(model, data, sgd(model), cuda_graph=cuda_graph, **options).curves)
    assert curves[0] == curves[1]
    assert graphed(lambda rows: 2 * rows)(torch.tensor([3])).item() == 6


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_on_a_gpu_graphed_step_matches_plain_step():
    data, curves = regression(np.random.default_rng(20), 64), []
    for cuda_graph in (False, True):
        model = linear()[0].cuda()
        rate = torch.tensor(0.05, device="cuda")
        optimizer = torch.optim.SGD(model.parameters(), rate, momentum=0.9, fused=True)
        hooks = [Schedule(optimizer, 16, (2,)), BNP(model, check_finite=False)]
        options = {"epochs": 4, "batch_size": 4, "loss": squared, "error": None, "hooks": hooks}
        curves.append(train(model, data, optimizer, cuda_graph=cuda_graph, **options).curves)
    for name, values in curves[0].items():
        np.testing.assert_allclose(values, curves[1][name], rtol=1e-10)


@pytest.mark.row("P-27", "P-28")
@pytest.mark.parametrize("as_tensor", [False, True])
def test_schedule_warms_up_and_decays(rng, as_tensor):
    model, _ = linear()
    rate = torch.tensor(0.1) if as_tensor else 0.1
    optimizer = torch.optim.SGD(model.parameters(), rate)
    used = []

    class Watch(Hook):
        def after_backward(self, state):
            used.append(float(state.optimizer.param_groups[0]["lr"]))

    hooks = [Watch(), Schedule(optimizer, 2, decay=(3, 4), warmup=4, start=0.02)]
    options = {"epochs": 5, "batch_size": 5, "loss": squared, "error": None, "hooks": hooks}
    train(model, regression(rng), optimizer, **options)
    expected = [0.02, 0.04, 0.06, 0.08, 0.1, 0.1, 0.01, 0.01, 0.001, 0.001]
    np.testing.assert_allclose(used, expected, rtol=1e-6)
    groups = [
        {"params": [p], "lr": lr} for p, lr in zip(model.parameters(), (0.1, 0.5), strict=True)
    ]
    optimizer = torch.optim.SGD(groups)
    Schedule(optimizer, 2, decay=(1,)).after_step(State(model, optimizer, step=2, curves={}))
    assert [group["lr"] for group in optimizer.param_groups] == [0.01, 0.05]
    jump = Schedule(torch.optim.SGD(model.parameters(), 0.1), 2, warmup=3, linear=False)
    assert [jump.rate(step) for step in range(5)] == [0.01, 0.01, 0.01, 0.1, 0.1]


# --- Going on after an interruption -----------------------------------------------------------


class Warm:
    """A schedule with a memory of its own."""

    def __init__(self, factor=1.3):
        self.factor, self.count = factor, 0

    def after_step(self, state):
        self.count += 1
        for group in state.optimizer.param_groups:
            group["lr"] *= self.factor if self.count < 4 else 0.9

    def after_epoch(self, state):
        state.curves.setdefault("count", []).append(self.count)
        state.curves.setdefault("step", []).append(state.step)

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


def plain(channels=2):
    return nn.Sequential(
        nn.Conv2d(channels, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 9, 6), nn.Linear(6, 3)
    )


def dropped():
    return nn.Sequential(
        nn.Flatten(), nn.Linear(50, 8), nn.ReLU(), nn.Dropout(0.4), nn.Linear(8, 3)
    )


def normalized():
    return nn.Sequential(nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(36, 3))


def momentum(model):
    return torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)


def adam(model):
    return torch.optim.Adam(model.parameters(), lr=0.01)


def images(seed=0, m=22, channels=2):
    rng = np.random.default_rng(seed)
    return Examples(rng.normal(2.0, size=(m, channels, 5, 5)), rng.integers(3, size=m))


class Setup:
    """A model with all that trains it, made the same way each time."""

    def __init__(self, make=plain, optimizer=momentum, bnp=True, interrupt=None):
        torch.manual_seed(7)
        self.model = make()
        self.optimizer = optimizer(self.model)
        self.hooks = [Interrupt(interrupt or math.inf), Warm()]
        if bnp:
            self.hooks.append(BNP(self.model))

    def train(self, epochs=5, **change):
        arguments = {
            "validation": images(1, 7),
            "batch_size": 4,
            "hooks": self.hooks,
            "seed": 3,
            **change,
        }
        examples = arguments.pop("train_examples", images())
        return train(self.model, examples, self.optimizer, epochs=epochs, **arguments)

    def tensors(self):
        """Return all numbers that a further step would depend on."""
        states = [self.model.state_dict(), self.optimizer.state_dict()]
        states += [hook.state_dict() for hook in self.hooks if hasattr(hook, "state_dict")]
        return [*leaves(states), torch.get_rng_state()]


def leaves(value):
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, list | tuple):
        yield value if isinstance(value, torch.Tensor) else torch.tensor(value or 0)
        return
    for item in value:
        yield from leaves(item)


def assert_same_run(one, other, record, expected):
    for a, b in zip(one.tensors(), other.tensors(), strict=True):
        assert torch.equal(a, b)
    assert record.curves == expected.curves
    assert (record.stop, record.config) == (expected.stop, expected.config)


@pytest.mark.row("L1-09")
@pytest.mark.parametrize(
    ("make", "optimizer", "bnp"),
    [
        (plain, momentum, True),
        (plain, adam, False),
        (dropped, adam, True),
        (dropped, momentum, False),
        (normalized, momentum, True),
    ],
)
@pytest.mark.parametrize("step", [2, 9, 29])  # in the first, the second and the last epoch
@pytest.mark.filterwarnings("ignore:bnp.step.. before Adam")
def test_interrupted_and_resumed_training_is_bit_identical(tmp_path, make, optimizer, bnp, step):
    whole = Setup(make, optimizer, bnp)
    expected = whole.train()
    after = whole.tensors()[-1]
    file = tmp_path / "deep" / "run.pt"
    stopped = Setup(make, optimizer, bnp, interrupt=step)
    with pytest.raises(KeyboardInterrupt):
        stopped.train(checkpoint=file)
    resumed = Setup(make, optimizer, bnp)
    torch.manual_seed(99)  # a new process starts elsewhere
    record = resumed.train(checkpoint=file)
    torch.testing.assert_close(torch.get_rng_state(), after, rtol=0, atol=0)
    assert_same_run(resumed, whole, record, expected)
    assert len(record.curves["train_loss"]) == 5
    assert list(tmp_path.glob("deep/*")) == [file]


def test_interrupted_model_itself_resumes(tmp_path):
    # without a new optimizer; its rate is that of the first step, as no step was taken
    whole, stopped = Setup(), Setup(interrupt=1)
    expected = whole.train()
    with pytest.raises(KeyboardInterrupt):
        stopped.train(checkpoint=tmp_path / "run.pt")
    stopped.hooks[0].step = math.inf
    record = stopped.train(checkpoint=tmp_path / "run.pt")
    assert_same_run(stopped, whole, record, expected)


def test_preconditioner_discards_interrupted_pass(tmp_path):
    def constant(setup):
        setup.hooks.pop(1)  # the schedule, so that the optimizer stays the one of the file
        return setup

    whole, stopped = constant(Setup()), constant(Setup(interrupt=15))
    expected = whole.train()
    with pytest.raises(KeyboardInterrupt):
        stopped.train(checkpoint=tmp_path / "run.pt")
    stopped.hooks[0].step = math.inf
    record = stopped.train(checkpoint=tmp_path / "run.pt")
    assert_same_run(stopped, whole, record, expected)


def test_checkpoint_loses_at_most_one_epoch(tmp_path):
    stopped, steps = Setup(interrupt=17), 6
    with pytest.raises(KeyboardInterrupt):
        stopped.train(checkpoint=tmp_path / "run.pt")
    saved = torch.load(tmp_path / "run.pt", weights_only=True)
    assert (saved["epoch"], saved["step"]) == (2, 2 * steps)
    assert len(saved["curves"]["train_loss"]) == 2


def test_more_epochs_continue_and_equal_epochs_stop(tmp_path):
    whole, first, second, third = Setup(), Setup(), Setup(), Setup()
    expected = whole.train(epochs=4)
    first.train(epochs=2, checkpoint=tmp_path / "run.pt")
    record = second.train(epochs=4, checkpoint=tmp_path / "run.pt")
    assert_same_run(second, whole, record, expected)
    again = third.train(epochs=4, checkpoint=tmp_path / "run.pt")
    assert_same_run(third, whole, again, expected)
    assert third.hooks[1].count == second.hooks[1].count
    with pytest.raises(ValueError, match=r"epochs must be at least 4.*got 3\. Training cannot"):
        Setup().train(epochs=3, checkpoint=tmp_path / "run.pt")


def test_stopped_run_stays_stopped_on_resume(tmp_path):
    def run():
        setup = Setup()
        setup.hooks[0] = StopAt("epoch", 8)
        return setup.train(checkpoint=tmp_path / "run.pt")

    first, second = run(), run()
    assert first.stop == second.stop == "enough at step 12"
    assert first.curves == second.curves


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"batch_size": 5}, "batch size: 4 there, 5 here"),
        ({"seed": 4}, "seed: 3 there, 4 here"),
        ({"train_examples": images(2)}, "training examples: "),
        ({"validation": None}, "validation examples: .* there, none here"),
        ({"hooks": []}, "hooks: "),
        ({"config": {"lr": 1}}, r"config: .* there, \[\('lr', 1\)\] here"),
        ({"make": dropped}, "model: "),
        ({"make": lambda: nn.Sequential(*plain(), nn.Dropout(0.1))}, "model: "),
        ({"optimizer": adam}, "optimizer: SGD .* there, Adam .* here"),
        (
            {"optimizer": lambda m: torch.optim.SGD(m.parameters(), lr=0.3, momentum=0.9)},
            "optimizer: .*'lr': 0.05.* there, .*'lr': 0.3.* here",
        ),
    ],
)
def test_checkpoint_of_another_run_is_refused(tmp_path, change, said):
    file = tmp_path / "run.pt"
    Setup().train(epochs=1, checkpoint=file)
    before = file.read_bytes()
    how = {name: change[name] for name in ("make", "optimizer") if name in change}
    other = Setup(**how)
    start = copy.deepcopy(other.model.state_dict())
    rest = {name: value for name, value in change.items() if name not in how}
    with pytest.raises(ValueError, match=f"another run.*{said}.*file of its own"):
        other.train(checkpoint=file, **rest)
    assert all(torch.equal(v, start[k]) for k, v in other.model.state_dict().items())
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


@pytest.mark.parametrize(
    "damage",
    [
        half,
        flipped,
        lambda file: file.write_bytes(b""),
        lambda file: file.write_text("not a checkpoint"),
        lambda file: torch.save([1, 2], file),
        lambda file: torch.save({"model": {}}, file),
        lambda file: file.write_bytes(pickle.dumps(Danger(), 2)),
        lambda file: torch.save(Danger(), file),
    ],
    ids=["half", "flipped", "empty", "text", "list", "dict", "pickle", "danger"],
)
def test_damaged_checkpoint_is_refused_without_running_code(tmp_path, damage, capsys):
    file = tmp_path / "run.pt"
    Setup().train(epochs=1, checkpoint=file)
    damage(file)
    before = file.read_bytes()
    with pytest.raises(ValueError, match=r"run\.pt is not a.*checkpoint") as caught:
        Setup().train(checkpoint=file)
    assert "elete" in str(caught.value)
    assert "another file" in str(caught.value)
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
    def setup(interrupt=None):
        return Setup(lambda: dropped().cuda(), momentum, interrupt=interrupt)

    whole, stopped, resumed = setup(), setup(13), setup()
    torch.cuda.manual_seed_all(5)
    expected = whole.train()
    torch.cuda.manual_seed_all(5)
    with pytest.raises(KeyboardInterrupt):
        stopped.train(checkpoint=tmp_path / "run.pt")
    torch.cuda.manual_seed_all(6)
    record = resumed.train(checkpoint=tmp_path / "run.pt")
    assert record.curves == expected.curves
    for a, b in zip(resumed.tensors()[:-1], whole.tensors()[:-1], strict=True):
        assert torch.equal(a, b)
