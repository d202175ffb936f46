"""The training loop against gradient descent by hand, and its promises one by one."""

import math
from itertools import chain

import numpy as np
import pytest
import torch
from torch import nn

from optdl.data import Examples
from optdl.training import Hook, State, train, zero_one

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
def test_each_epoch_visits_every_example_once_in_a_new_order():
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


def test_a_hook_between_backward_and_step_changes_the_step(rng):
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
def test_a_hook_stops_training_and_the_record_says_why(rng, event, steps, epochs):
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


def test_a_hook_may_add_a_curve(rng):
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
def test_losses_and_errors_are_means_over_all_examples_in_evaluation_mode(rng):
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


def test_model_is_in_training_mode_at_every_step_and_left_as_it_was(rng):
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


def test_divergence_says_where_and_what_to_try(rng):
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


def test_nan_in_the_features_is_found_at_the_first_step():
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
def test_runs_where_the_model_is(rng):
    data = regression(rng)
    curves = []
    for device in ("cpu", "cuda"):
        model = linear()[0].to(device)
        record = train(model, data, sgd(model), epochs=3, batch_size=4, loss=squared, error=None)
        assert record.device.startswith(device)
        curves.append(record.curves["train_loss"])
    np.testing.assert_allclose(*curves, rtol=1e-10)
