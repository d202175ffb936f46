"""Checks of the lab on dropout: the layer, early stopping, the loop by epochs, many passes.

Layers draw from generators of their own, so that their masks can be compared; networks are small
and in float64.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from optdl.checks.exercise import Case, Exercise, Property
from optdl.checks.labs.mistakes import mistake
from optdl.checks.labs.records import RecordCheck
from optdl.labs.drivers import dropout as drivers
from optdl.labs.drivers.figures import drawn
from optdl.labs.dropout import EPOCHS, LAB, RATES, accuracy, curves, network
from optdl.observation import observe

__all__ = ["EXERCISES", "RECORD"]


# --- The layer --------------------------------------------------------------------------------


class Dropout(nn.Module):
    """Drop each entry with probability p in training: y = x [u ≥ p] / (1 − p), u uniform.

    Source: LAB-4.
    """

    def __init__(self, p: float, seed: int) -> None:
        super().__init__()
        self.p = p
        self.generator = torch.Generator().manual_seed(seed)

    def forward(self, x: Tensor) -> Tensor:
        """Return x with entries dropped, or x itself in evaluation mode."""
        if not self.training:
            return x
        kept = torch.rand(x.shape, generator=self.generator) >= self.p
        return x * kept / (1 - self.p)


def _layer_cases(rng: np.random.Generator) -> Iterator[Case]:
    for shape, p, modes, dtype in [
        ((3, 4), 0.5, ("train",), "float64"),
        ((5, 6), 0.8, ("train", "eval", "train"), "float32"),
        ((2, 3, 4), 0.4, ("eval", "train", "train"), "float64"),
        ((4, 8), 0.5, ("train", "train"), "float16"),
    ]:
        yield {
            "x": rng.integers(1, 16, size=shape) / 4,
            "p": p,
            "seed": int(rng.integers(1000)),
            "modes": modes,
            "dtype": dtype,
        }


def _drops_the_share_p(kind: Any, rng: np.random.Generator) -> bool:
    """Return whether about p of 40000 ones are dropped, and the others are 1/(1 - p)."""
    p, ones = float(rng.uniform(0.2, 0.8)), np.ones((200, 200))
    seed = int(rng.integers(1000))
    y = observe(drivers.drop, kind, ones, p, seed, ("train",), "float64")[0][0]
    kept = y[y != 0]
    share = 1 - len(kept) / y.size
    # six standard deviations of a share of 40000 draws
    return abs(share - p) < 0.015 and np.allclose(kept, 1 / (1 - p))


def _is_as_torch_where_it_keeps(kind: Any, rng: np.random.Generator) -> bool:
    """Return whether an entry that both layers keep is the same as in nn.Dropout."""
    x, seed = rng.normal(size=(20, 30)), int(rng.integers(1000))
    modes = ("train", "eval")
    trained, _, _, evaluated, _, _ = observe(drivers.drop, kind, x, 0.4, seed, modes, "float64")[0]
    torch.manual_seed(seed)
    expected = nn.Dropout(0.4)(torch.tensor(x)).numpy()
    both = (trained != 0) & (expected != 0)
    return np.allclose(trained[both], expected[both]) and np.array_equal(evaluated, x)


_DRAW = "torch.rand(x.shape, generator=self.generator) >= self.p"

DROPOUT = Exercise(
    key="LAB-4:dropout",
    reference=Dropout,
    use=drivers.drop,
    cases=_layer_cases,
    parts=("the outputs", "the gradients", "their dtype", "the parameters of your layer"),
    misconceptions=(
        mistake(
            "you drop entries in evaluation mode, too; ask `self.training` (`self.train` is a "
            "method, and always true)",
            Dropout,
            ("if not self.training:", "if not self.train:"),
        ),
        mistake(
            "you drop nothing in training, or only in evaluation mode; `self.training` is true "
            "in training",
            Dropout,
            ("if not self.training:", "if self.training:"),
        ),
        mistake(
            "you multiply by 1 − p in evaluation mode, although you divide by 1 − p in "
            "training; in evaluation mode x passes unchanged",
            Dropout,
            ("            return x\n", "            return x * (1 - self.p)\n"),
        ),
        mistake(
            "you scale in evaluation mode and not in training; divide by 1 − p in training",
            Dropout,
            ("            return x\n", "            return x * (1 - self.p)\n"),
            (" / (1 - self.p)", ""),
        ),
        mistake(
            "your kept entries lack the scale; divide by 1 − p in training",
            Dropout,
            (" / (1 - self.p)", ""),
        ),
        mistake(
            "you divide by p, the probability of dropping; divide by 1 − p",
            Dropout,
            (" / (1 - self.p)", " / self.p"),
        ),
        mistake(
            "you take p for the probability of keeping; as in nn.Dropout, it is the "
            "probability of dropping",
            Dropout,
            (_DRAW, _DRAW.replace(">=", "<")),
            (" / (1 - self.p)", " / self.p"),
        ),
        mistake(
            "you keep where u < 1 − p, as `torch.bernoulli` does; that has the same "
            "probability, but here an entry is kept where u ≥ p",
            Dropout,
            (_DRAW, _DRAW.replace(">= self.p", "< 1 - self.p")),
        ),
        mistake(
            "all examples of the minibatch share one mask; draw a number for each entry of x",
            Dropout,
            ("torch.rand(x.shape, ", "torch.rand(x.shape[1:], "),
        ),
        mistake(
            "your layer draws from PyTorch's global generator, which every other part of the "
            "program shares; give `torch.rand` the layer's own, `generator=self.generator`",
            Dropout,
            ("torch.rand(x.shape, generator=self.generator)", "torch.rand(x.shape)"),
        ),
        mistake(
            "`torch.manual_seed` seeds the global generator, which all layers share; make a "
            "generator of the layer's own, `torch.Generator().manual_seed(seed)`",
            Dropout,
            ("self.generator = torch.Generator().manual_seed(seed)", "torch.manual_seed(seed)"),
            ("torch.rand(x.shape, generator=self.generator)", "torch.rand(x.shape)"),
        ),
        mistake(
            "you seed the generator in each call, so that the mask is the same each time; make "
            "the generator once, in `__init__`",
            Dropout,
            (
                "self.generator = torch.Generator().manual_seed(seed)",
                "self.seed = seed",
            ),
            (
                "        kept = torch.rand(x.shape, generator=self.generator)",
                "        generator = torch.Generator().manual_seed(self.seed)\n"
                "        kept = torch.rand(x.shape, generator=generator)",
            ),
        ),
        mistake(
            "you draw a mask in evaluation mode, too, which advances the generator for "
            "nothing; return x first",
            Dropout,
            (
                "        if not self.training:",
                f"        kept = {_DRAW}\n        if not self.training:",
            ),
            (f"            return x\n        kept = {_DRAW}\n", "            return x\n"),
        ),
        mistake(
            "your mask is float32 whatever x is, so that the output has another dtype or a "
            "rounded scale; the output has the dtype of x",
            Dropout,
            (
                "x * kept / (1 - self.p)",
                "x * (kept.float() / torch.tensor(1 - self.p, dtype=torch.float32))",
            ),
        ),
        mistake(
            "your mask is float64, and so is your output; the output has the dtype of x",
            Dropout,
            ("x * kept / (1 - self.p)", "x * kept.double() / (1 - self.p)"),
        ),
        mistake(
            "you draw in the dtype of x, which gives other numbers; draw "
            "`torch.rand(x.shape, generator=self.generator)`, and compare with p",
            Dropout,
            ("torch.rand(x.shape, ", "torch.rand(x.shape, dtype=x.dtype, "),
        ),
        mistake(
            "you change x in place, and the caller's tensor with it; return a new tensor",
            Dropout,
            ("return x * kept / (1 - self.p)", "return x.mul_(kept).div_(1 - self.p)"),
        ),
        mistake(
            "no gradient passes your layer; use x itself in `forward`, without `detach()`, "
            "`.data` or `no_grad`",
            Dropout,
            ("return x * kept", "return x.detach() * kept"),
        ),
        mistake(
            "you keep p as a parameter, which an optimizer would change; keep the number",
            Dropout,
            ("self.p = p\n", "self.p = nn.Parameter(torch.tensor(float(p)))\n"),
        ),
        mistake(
            "you call `torch.nn.functional.dropout`, which draws from the global generator; "
            "draw the mask with the layer's own",
            Dropout,
            (
                "return x * kept / (1 - self.p)",
                "return torch.nn.functional.dropout(x, self.p, self.training)",
            ),
        ),
    ),
    properties=(
        Property("about p of the entries are dropped, the others scaled", _drops_the_share_p),
        Property(
            "what is kept is as in torch.nn.Dropout, in both modes", _is_as_torch_where_it_keeps
        ),
    ),
)


# --- The network ------------------------------------------------------------------------------


def with_dropout(model: nn.Sequential, p: float, seed: int) -> nn.Sequential:
    """Return the layers of a network, and behind its k-th ReLU, from 0 on, Dropout(p, seed + k).

    Source: LAB-4.
    """
    layers = []
    count = 0
    for layer in model:
        layers.append(layer)
        if isinstance(layer, nn.ReLU):
            layers.append(Dropout(p, seed + count))
            count += 1
    return nn.Sequential(*layers)


def _layouts(rng: np.random.Generator) -> Iterator[Case]:
    for sizes, p in [([3, 4, 2], 0.4), ([2, 3, 4, 3, 2], 0.6)]:
        yield {"sizes": sizes, "p": p, "seed": int(rng.integers(1000))}


def _predicts_as_before(function: Any, rng: np.random.Generator) -> bool:
    """Return whether the new network gives the old scores in evaluation mode."""
    seed, sizes = int(rng.integers(1000)), [4, 6, 6, 3]
    x = rng.normal(size=(5, 4))
    scores = observe(drivers.score, function, x, sizes, 0.7, seed)
    expected = drivers.plain_network(sizes, seed)(torch.tensor(x)).detach().numpy()
    return np.allclose(scores, expected)


_OWN = {"Dropout": Dropout}

WITH_DROPOUT = Exercise(
    key="LAB-4:network",
    reference=with_dropout,
    use=drivers.insert_layers,
    cases=_layouts,
    parts=("the layers", "the weights", "what the dropout layers make of ones"),
    misconceptions=(
        mistake(
            "all your dropout layers have the same seed, so that their masks are alike; the "
            "k-th has seed + k",
            with_dropout,
            ("            count += 1\n", ""),
            given=_OWN,
        ),
        mistake(
            "you put one and the same layer behind each ReLU; make a new one for each",
            with_dropout,
            ("    count = 0\n", "    drop = Dropout(p, seed)\n"),
            ("layers.append(Dropout(p, seed + count))", "layers.append(drop)"),
            ("            count += 1\n", ""),
            given=_OWN,
        ),
        mistake(
            "your k begins at 1; the layer behind the first ReLU has the seed itself",
            with_dropout,
            ("    count = 0\n", "    count = 1\n"),
            given=_OWN,
        ),
        mistake(
            "you drop before the ReLU; the dropout layer stands behind it",
            with_dropout,
            ("        layers.append(layer)\n", ""),
            (
                "            count += 1\n",
                "            count += 1\n        layers.append(layer)\n",
            ),
            given=_OWN,
        ),
        mistake(
            "you drop scores: a dropout layer stands behind the last layer; put one behind "
            "each ReLU only",
            with_dropout,
            (
                "isinstance(layer, nn.ReLU):",
                "layer is model[-1] or isinstance(layer, nn.ReLU):",
            ),
            given=_OWN,
        ),
        mistake(
            "you drop behind each linear layer; put a dropout layer behind each ReLU only",
            with_dropout,
            ("isinstance(layer, nn.ReLU)", "isinstance(layer, nn.Linear)"),
            given=_OWN,
        ),
        mistake(
            "only the first ReLU has a dropout layer; put one behind each",
            with_dropout,
            ("isinstance(layer, nn.ReLU):", "isinstance(layer, nn.ReLU) and not count:"),
            given=_OWN,
        ),
        mistake(
            "you give your layers 1 − p; p is the probability of dropping, as it comes",
            with_dropout,
            ("append(Dropout(p, seed + count)", "append(Dropout(1 - p, seed + count)"),
            given=_OWN,
        ),
        mistake(
            "you insert PyTorch's nn.Dropout, which has no generator of its own; insert your "
            "Dropout",
            with_dropout,
            ("layers.append(Dropout(p, seed + count))", "layers.append(nn.Dropout(p))"),
            given=_OWN,
        ),
        mistake(
            "you make new linear layers, with other weights; take the layers of the network "
            "as they are",
            with_dropout,
            (
                "        layers.append(layer)\n",
                "        layers.append(\n"
                "            nn.Linear(layer.in_features, layer.out_features).double()\n"
                "            if isinstance(layer, nn.Linear) else layer\n"
                "        )\n",
            ),
            given=_OWN,
        ),
    ),
    properties=(
        Property("in evaluation mode the scores are those without dropout", _predicts_as_before),
    ),
)


# --- Early stopping ---------------------------------------------------------------------------


class EarlyStopping:
    """Stop after ``patience`` epochs without a new best loss; keep the weights of the best one.

    A loss is a new best one when it is below the best so far by more than ``min_delta``.

    Source: LAB-4.
    """

    def __init__(self, patience: int, min_delta: float = 0.0) -> None:
        self.patience, self.min_delta = patience, min_delta
        self.best, self.waited = float("inf"), 0
        self.state: dict[str, Tensor] = {}

    def update(self, model: nn.Module, loss: float) -> bool:
        """Return whether training should stop."""
        if loss < self.best - self.min_delta:
            self.best, self.waited = loss, 0
            self.state = {name: value.clone() for name, value in model.state_dict().items()}
        else:
            self.waited += 1
        return self.waited >= self.patience

    def restore(self, model: nn.Module) -> None:
        """Give the network the weights that it had at the best loss."""
        model.load_state_dict(self.state)


def _histories(rng: np.random.Generator) -> Iterator[Case]:
    nan = float("nan")
    histories: list[tuple[list[float], int, float]] = [
        ([3, 2, 2.5, 2.4, 2.3, 2.6, 1], 3, 0.0),
        ([3, 2, 2.5, 1.5, 1.8, 1.9, 1], 2, 0.0),
        ([4, 2, 2, 2, 2, 1], 3, 0.0),
        ([3, 2.9, 2.8, 2.7, 2.65, 2.6, 1], 2, 0.15),
        ([3, 2.5, nan, 2.6, nan, 1.5], 2, 0.0),
        ([30, 18, 19.8, 17, 16.5, 16.8, 16.7, 1], 2, 0.4),
        ([3, 2, 1, 0.5], 1, 0.0),
    ]
    for losses, patience, min_delta in histories:
        scale = float(rng.choice([0.5, 1.0, 2.0]))  # a power of two: nothing is rounded
        yield {
            "losses": [scale * loss for loss in losses],
            "patience": patience,
            "min_delta": scale * min_delta,
        }


def _goes_on_while_the_loss_falls(kind: Any, rng: np.random.Generator) -> bool:
    losses = np.sort(rng.uniform(0, 3, size=8))[::-1]
    said, weights, _ = observe(drivers.stop, kind, losses.tolist(), 1, 0.0)
    return not said.any() and np.array_equal(weights, [8])


def _waits_as_long_as_it_should(kind: Any, rng: np.random.Generator) -> bool:
    """Return whether a loss that only rises stops after patience more epochs, with the first."""
    patience = int(rng.integers(2, 6))
    losses = np.arange(1.0, 20.0).tolist()
    said, weights, _ = observe(drivers.stop, kind, losses, patience, 0.0)
    return len(said) == patience + 1 and np.array_equal(weights, [1])


EARLY_STOPPING = Exercise(
    key="LAB-4:stopping",
    reference=EarlyStopping,
    use=drivers.stop,
    cases=_histories,
    parts=("what `update` returned", "the restored weights", "the restored buffers"),
    misconceptions=(
        mistake(
            "you keep the network's own tensors, which training goes on to change: "
            "`state_dict()` gives no copies; clone each value, or use `copy.deepcopy`",
            EarlyStopping,
            (
                "{name: value.clone() for name, value in model.state_dict().items()}",
                "model.state_dict()",
            ),
        ),
        mistake(
            "you never start again with counting: the epochs without a new best loss must "
            "follow each other",
            EarlyStopping,
            ("self.best, self.waited = loss, 0", "self.best = loss"),
        ),
        mistake(
            "you stop at the first epoch without a new best loss; wait for `patience` of them",
            EarlyStopping,
            ("return self.waited >= self.patience", "return self.waited > 0"),
        ),
        mistake(
            "you wait one epoch too long; stop when `patience` epochs gave no new best loss",
            EarlyStopping,
            ("self.waited >= self.patience", "self.waited > self.patience"),
        ),
        mistake(
            "you compare with the loss of the epoch before; compare with the best so far",
            EarlyStopping,
            (
                "        else:\n            self.waited += 1\n",
                "        else:\n            self.waited += 1\n            self.best = loss\n",
            ),
        ),
        mistake(
            "you take an equal loss for a new best one; it must be below the best by more "
            "than `min_delta`",
            EarlyStopping,
            ("loss < self.best - self.min_delta", "loss <= self.best - self.min_delta"),
        ),
        mistake(
            "you keep the weights of each epoch, and so those of the last one; keep them only "
            "at a new best loss",
            EarlyStopping,
            (
                "        return self.waited",
                "        self.state = {name: value.clone() for name, value in "
                "model.state_dict().items()}\n        return self.waited",
            ),
        ),
        mistake(
            "your `restore` leaves the network as it is; give it the weights with "
            "`model.load_state_dict(…)`",
            EarlyStopping,
            ("model.load_state_dict(self.state)", "model = self.state"),
        ),
        mistake(
            "you keep the weights with the largest value, as for an accuracy; a loss is best "
            "when it is smallest",
            EarlyStopping,
            ('float("inf")', '-float("inf")'),
            ("loss < self.best - self.min_delta", "loss > self.best + self.min_delta"),
        ),
        mistake(
            "you add `min_delta` to the best loss, so that a worse loss counts as a new best "
            "one; subtract it",
            EarlyStopping,
            ("self.best - self.min_delta", "self.best + self.min_delta"),
        ),
        mistake(
            "you ignore `min_delta`; a new best loss is below the best by more than that",
            EarlyStopping,
            ("self.best - self.min_delta", "self.best"),
        ),
        mistake(
            "you take `min_delta` as a share of the best loss; it is a difference",
            EarlyStopping,
            ("self.best - self.min_delta", "self.best * (1 - self.min_delta)"),
        ),
        mistake(
            "you lower the best loss without counting it as a new best one, so that many small "
            "gains never add up; leave `best` as it is until it is beaten by `min_delta`",
            EarlyStopping,
            (
                "        else:\n            self.waited += 1\n",
                "        else:\n            self.waited += 1\n"
                "            self.best = min(self.best, loss)\n",
            ),
        ),
        mistake(
            "you take a loss that is NaN for a new best one, as no comparison with NaN is "
            "true; ask whether the loss is smaller, not whether it is not larger",
            EarlyStopping,
            (
                "if loss < self.best - self.min_delta",
                "if not loss >= self.best - self.min_delta",
            ),
        ),
        mistake(
            "you keep the parameters and not the buffers, such as running means; "
            "`state_dict()` has both",
            EarlyStopping,
            ("in model.state_dict().items()", "in model.named_parameters()"),
            ("value.clone()", "value.detach().clone()"),
            ("load_state_dict(self.state)", "load_state_dict(self.state, strict=False)"),
        ),
        mistake(
            "you keep the weights once, at the first loss; keep them at each new best loss",
            EarlyStopping,
            (
                "            self.state = {",
                "            self.state = self.state or {",
            ),
        ),
        mistake(
            "your `update` says nothing; return whether training should stop",
            EarlyStopping,
            (
                "        return self.waited >= self.patience",
                "        self.waited >= self.patience",
            ),
        ),
    ),
    properties=(
        Property("training goes on while the loss falls", _goes_on_while_the_loss_falls),
        Property(
            "a loss that only rises stops training after `patience` more epochs, and the first "
            "weights come back",
            _waits_as_long_as_it_should,
        ),
    ),
)


# --- The loop ---------------------------------------------------------------------------------


def fit(
    model: nn.Module,
    train: tuple[Tensor, Tensor],
    validation: tuple[Tensor, Tensor],
    epochs: int,
    lr: float,
    batch: int,
    generator: torch.Generator,
    stopper: Any = None,
) -> tuple[list[float], list[float]]:
    """Return the training and the validation loss of each epoch, while the model is trained.

    Source: LAB-4.
    """
    x, y = train
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    losses, checked = [], []
    for _ in range(epochs):
        model.train()
        total = 0.0
        order = torch.randperm(len(y), generator=generator)
        for rows in torch.split(order, batch):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            total += loss.item() * len(rows)
        losses.append(total / len(y))
        model.eval()
        with torch.no_grad():
            scores = model(validation[0])
            checked.append(nn.functional.cross_entropy(scores, validation[1]).item())
        if stopper is not None and stopper.update(model, checked[-1]):
            break
    if stopper is not None:
        stopper.restore(model)
    return losses, checked


def _trainings(rng: np.random.Generator) -> Iterator[Case]:
    for m, epochs, batch, last in [(6, 2, 2, 0), (10, 3, 3, 0), (12, 3, 3, 9), (15, 4, 4, 2)]:
        yield {
            "x": rng.normal(size=(m, 3)).round(2),
            "y": rng.integers(0, 2, size=m),
            "epochs": epochs,
            "batch": batch,
            "seed": int(rng.integers(1000)),
            "last": last,
        }


def _stays_without_a_rate(function: Any, rng: np.random.Generator) -> bool:
    """Return whether both losses of each epoch are those of the network, when no step moves it."""
    seed, sizes = int(rng.integers(1000)), [4, 5, 3]
    x, y = rng.normal(size=(11, 4)), rng.integers(0, 3, size=11)
    curves = observe(drivers.train_at_rate_zero, function, x, y, sizes, seed)
    with torch.no_grad():
        scores = drivers.plain_network(sizes, seed)(torch.tensor(x))
    losses = nn.functional.cross_entropy(scores, torch.tensor(y), reduction="none").numpy()
    means = losses[:7].mean(), losses[7:].mean()
    return all(np.allclose(*pair) for pair in zip(curves, means, strict=True))


FIT = Exercise(
    key="LAB-4:fit",
    reference=fit,
    use=drivers.fit,
    cases=_trainings,
    parts=(
        *("the training losses", "the validation losses", "their type", "the weights"),
        "whether the network is in training mode at the end",
        *("the losses that the stopper saw", "what the stopper was asked"),
    ),
    misconceptions=(
        mistake(
            "you compute the validation loss with dropout; call `model.eval()` first",
            fit,
            ("        model.eval()\n", ""),
        ),
        mistake(
            "after the first validation your network stays in evaluation mode; call "
            "`model.train()` in each epoch",
            fit,
            ("        model.train()\n", ""),
            (
                "    losses, checked = [], []\n",
                "    losses, checked = [], []\n    model.train()\n",
            ),
        ),
        mistake(
            "your network is never in training mode, so that dropout does nothing; call "
            "`model.train()` in each epoch",
            fit,
            ("        model.train()\n", ""),
        ),
        mistake(
            "your network is in training mode at the end; leave it in evaluation mode",
            fit,
            ("    return losses, checked", "    model.train()\n    return losses, checked"),
        ),
        mistake(
            "you never clear the gradients, and `backward` adds to them; call "
            "`optimizer.zero_grad()` for each minibatch",
            fit,
            ("            optimizer.zero_grad()\n", ""),
        ),
        mistake(
            "you clear the gradients once in an epoch; clear them for each minibatch",
            fit,
            ("            optimizer.zero_grad()\n", ""),
            ("        total = 0.0\n", "        total = 0.0\n        optimizer.zero_grad()\n"),
        ),
        mistake(
            "you train on the validation examples, too: their loss needs no `backward`",
            fit,
            ("        with torch.no_grad():\n", "        with torch.enable_grad():\n"),
            (
                "            checked.append(nn.functional.cross_entropy(scores, "
                "validation[1]).item())\n",
                "            loss = nn.functional.cross_entropy(scores, validation[1])\n"
                "            optimizer.zero_grad()\n"
                "            loss.backward()\n"
                "            optimizer.step()\n"
                "            checked.append(loss.item())\n",
            ),
        ),
        mistake(
            "you draw the order of the examples once; draw a new one in each epoch",
            fit,
            (
                "    losses, checked = [], []\n",
                "    losses, checked = [], []\n"
                "    order = torch.randperm(len(y), generator=generator)\n",
            ),
            ("        order = torch.randperm(len(y), generator=generator)\n", ""),
        ),
        mistake(
            "you take the examples in their order; draw a new order in each epoch",
            fit,
            ("torch.randperm(len(y), generator=generator)", "torch.arange(len(y))"),
        ),
        mistake(
            "you draw the order from the global generator; use the one that you are given",
            fit,
            ("torch.randperm(len(y), generator=generator)", "torch.randperm(len(y))"),
        ),
        mistake(
            "you shuffle the examples and not their labels; take the same rows of both",
            fit,
            ("x[rows]), y[rows])", "x[rows]), y[: len(rows)])"),
        ),
        mistake(
            "you leave out the last examples of an epoch when their number is not a multiple "
            "of `batch`; the last minibatch may be smaller",
            fit,
            ("        for rows in", "        for rows in [part for part in"),
            (", batch):", ", batch) if len(part) == batch]:"),
        ),
        mistake(
            "your training loss is the mean over the minibatches, so that a small last one "
            "counts too much; weight each by its number of examples",
            fit,
            ("loss.item() * len(rows)", "loss.item()"),
            ("total / len(y)", "total / -(-len(y) // batch)"),
        ),
        mistake(
            "your training loss is that of the last minibatch; it is the mean over the "
            "examples of the epoch",
            fit,
            ("losses.append(total / len(y))", "losses.append(loss.item())"),
        ),
        mistake(
            "you compute the training loss after the epoch, without dropout; it is the mean of "
            "the losses from which the steps were taken",
            fit,
            ("        losses.append(total / len(y))\n", ""),
            (
                "            scores = model(validation[0])\n",
                "            losses.append(nn.functional.cross_entropy(model(x), y).item())\n"
                "            scores = model(validation[0])\n",
            ),
        ),
        mistake(
            "you divide the sum by the number of examples, but the losses in it are means over "
            "minibatches; multiply each by its number of examples first",
            fit,
            ("loss.item() * len(rows)", "loss.item()"),
        ),
        mistake(
            "your loss is a sum over the minibatch; cross_entropy takes the mean unless you "
            "tell it otherwise",
            fit,
            (
                "cross_entropy(model(x[rows]), y[rows])",
                'cross_entropy(model(x[rows]), y[rows], reduction="sum")',
            ),
            ("loss.item() * len(rows)", "loss.item()"),
        ),
        mistake(
            "you keep losses as tensors; keep the numbers, with `item()`",
            fit,
            ("validation[1]).item())", "validation[1]))"),
            ("loss.item() * len(rows)", "loss.detach() * len(rows)"),
        ),
        mistake(
            "you make a new optimizer in each epoch, which begins again with the velocity 0; "
            "make it once",
            fit,
            (
                "        total = 0.0\n",
                "        total = 0.0\n"
                "        optimizer = "
                "torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)\n",
            ),
        ),
        mistake(
            "your optimizer has no momentum; give torch.optim.SGD `momentum=0.9`",
            fit,
            (", momentum=0.9", ""),
        ),
        mistake(
            "you apply softmax before cross_entropy, which applies it itself; give it the scores",
            fit,
            ("model(x[rows])", "model(x[rows]).softmax(dim=1)"),
            ("scores = model(validation[0])", "scores = model(validation[0]).softmax(dim=1)"),
        ),
        mistake(
            "you take one step for each epoch; take one for each minibatch",
            fit,
            ("            optimizer.step()\n", ""),
            ("        losses.append(", "        optimizer.step()\n        losses.append("),
        ),
        mistake(
            "you compute the validation loss before the epoch; compute it after its steps",
            fit,
            (
                "        model.eval()\n        with torch.no_grad():\n"
                "            scores = model(validation[0])\n"
                "            checked.append(nn.functional.cross_entropy(scores, "
                "validation[1]).item())\n",
                "        model.eval()\n",
            ),
            (
                "        model.train()\n",
                "        model.eval()\n        with torch.no_grad():\n"
                "            scores = model(validation[0])\n"
                "            checked.append(nn.functional.cross_entropy(scores, "
                "validation[1]).item())\n        model.train()\n",
            ),
        ),
        mistake(
            "you restore the best weights only when training is stopped early; restore them "
            "after the last epoch, too",
            fit,
            ("            break\n    if stopper is not None:\n", "            "),
            ("        stopper.restore(model)\n", "stopper.restore(model)\n            break\n"),
        ),
        mistake(
            "you do not restore the best weights; call `stopper.restore(model)` at the end",
            fit,
            ("        stopper.restore(model)\n", "        pass\n"),
        ),
        mistake(
            "your stopper sees the training loss; give it the validation loss",
            fit,
            ("stopper.update(model, checked[-1])", "stopper.update(model, losses[-1])"),
        ),
        mistake(
            "you ask the stopper and do not stop; leave the loop when `update` returns True",
            fit,
            ("            break\n", "            pass\n"),
        ),
        mistake(
            "your loop fails without a stopper; `stopper` may be None",
            fit,
            ("if stopper is not None and stopper.update", "if stopper.update"),
            ("    if stopper is not None:\n        stopper.", "    stopper."),
        ),
    ),
    properties=(
        Property(
            "at the rate 0 the losses are those of the network, in each epoch",
            _stays_without_a_rate,
        ),
    ),
)


# --- Many passes ------------------------------------------------------------------------------


@torch.no_grad()
def monte_carlo(model: nn.Module, x: Tensor, passes: int) -> tuple[Tensor, Tensor]:
    """Return the mean and the standard deviation of the probabilities over passes with dropout.

    Source: LAB-4.
    """
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    for module, _ in modes:
        if type(module).__name__ == "Dropout":
            module.train()
    found = torch.stack([model(x).softmax(dim=1) for _ in range(passes)])
    for module, mode in modes:
        module.training = mode
    return found.mean(dim=0), found.std(dim=0)


def _pass_cases(rng: np.random.Generator) -> Iterator[Case]:
    for m, p, passes, mode in [
        (2, 0.5, 2, "eval"),
        (4, 0.3, 5, "train"),
        (3, 0.5, 4, "frozen"),
        (5, 0.8, 3, "eval"),
    ]:
        yield {
            "x": rng.normal(size=(m, 2)).round(2),
            "p": p,
            "passes": passes,
            "seed": int(rng.integers(1000)),
            "mode": mode,
        }


def _is_one_pass_without_dropout(function: Any, rng: np.random.Generator) -> bool:
    """Return whether a network that drops nothing has its own probabilities, without a spread."""
    seed, sizes = int(rng.integers(1000)), [4, 5, 3]
    x = rng.normal(size=(6, 4))
    mean, deviation = observe(drivers.average_masks, function, x, sizes, 0.0, 3, seed)
    model = drivers.plain_network(sizes, seed)
    expected = model(torch.tensor(x)).softmax(dim=1).detach().numpy()
    return np.allclose(mean, expected) and bool(abs(deviation).max() < 1e-12)


def _is_the_mean_of_all_masks(function: Any, rng: np.random.Generator) -> bool:
    """Return whether 4000 passes of two units are near the mean over all four masks."""
    seed, sizes = int(rng.integers(1000)), [2, 2]
    x = rng.normal(size=(1, 2))
    mean, deviation = observe(drivers.average_masks, function, x, sizes, 0.5, 4000, seed)
    masks = torch.tensor([[0.0, 0], [0, 2], [2, 0], [2, 2]], dtype=torch.float64)
    model = drivers.plain_network(sizes, seed)
    exact = model(torch.tensor(x) * masks).softmax(dim=1).detach().numpy()
    # the error of the mean is at most 0.5 / √4000
    near = np.allclose(mean[0], exact.mean(axis=0), atol=0.04)
    return near and np.allclose(deviation[0], exact.std(axis=0), atol=0.04)


MONTE_CARLO = Exercise(
    key="LAB-4:passes",
    reference=monte_carlo,
    use=drivers.average_passes,
    cases=_pass_cases,
    parts=(
        *("the mean", "the standard deviation", "whether they have a graph"),
        *("the modes of all modules after it", "the running mean of the normalization"),
    ),
    misconceptions=(
        mistake(
            "your whole network is in training mode, and its normalization uses and changes "
            "the statistics of the minibatch; switch on the dropout layers alone",
            monte_carlo,
            ("    model.eval()\n", "    model.train()\n"),
        ),
        mistake(
            "your dropout layers are not switched on, so that all passes are alike; call "
            "`train()` of each module whose class is named Dropout",
            monte_carlo,
            ("            module.train()\n", "            pass\n"),
        ),
        mistake(
            "you look at the outermost layers only; `model.modules()` goes into the blocks within",
            monte_carlo,
            ("    for module, _ in modes:\n", "    for module in model.children():\n"),
        ),
        mistake(
            "you leave the modes of the network changed; put back the mode of each module",
            monte_carlo,
            ("        module.training = mode\n", "        pass\n"),
        ),
        mistake(
            "you leave the whole network in evaluation mode; put back the mode in which each "
            "module came",
            monte_carlo,
            ("        module.training = mode\n", "        module.training = False\n"),
        ),
        mistake(
            "you leave the whole network in training mode; put back the mode in which each "
            "module came",
            monte_carlo,
            ("        module.training = mode\n", "        module.training = True\n"),
        ),
        mistake(
            "you put back the mode of the network for all its modules; one of them may have "
            "had another, so keep the mode of each",
            monte_carlo,
            ("        module.training = mode\n", "        module.training = modes[0][1]\n"),
        ),
        mistake(
            "you average the scores; average the probabilities of the passes",
            monte_carlo,
            ("model(x).softmax(dim=1)", "model(x)"),
            (
                "return found.mean(dim=0), found.std(dim=0)",
                "return found.mean(dim=0).softmax(dim=1), found.softmax(dim=2).std(dim=0)",
            ),
        ),
        mistake(
            "you return scores; take the softmax of each pass first",
            monte_carlo,
            ("model(x).softmax(dim=1)", "model(x)"),
        ),
        mistake(
            "your softmax goes over the examples; the probabilities of each example add up to 1",
            monte_carlo,
            ("softmax(dim=1)", "softmax(dim=0)"),
        ),
        mistake(
            "your results keep the graph of all passes; put `@torch.no_grad()` above the function",
            monte_carlo,
            ("@torch.no_grad()\n", "\n"),
        ),
        mistake(
            "you compute one pass and repeat it; draw new masks for each pass",
            monte_carlo,
            (
                "[model(x).softmax(dim=1) for _ in range(passes)]",
                "[model(x).softmax(dim=1)] * passes",
            ),
        ),
        mistake(
            "you return the variance; take its square root",
            monte_carlo,
            ("found.std(dim=0)", "found.var(dim=0)"),
        ),
        mistake(
            "you divide by the number of passes; the standard deviation here divides by "
            "one less, as `std` does",
            monte_carlo,
            ("found.std(dim=0)", "found.std(dim=0, correction=0)"),
        ),
        mistake(
            "your mean and deviation go over the examples; take them over the passes",
            monte_carlo,
            (
                "return found.mean(dim=0), found.std(dim=0)",
                "return found.mean(dim=1), found.std(dim=1)",
            ),
        ),
    ),
    properties=(
        Property(
            "a network that drops nothing keeps its probabilities, without a spread",
            _is_one_pass_without_dropout,
        ),
        Property("many passes come near the mean over all masks", _is_the_mean_of_all_masks),
    ),
)


# --- The figure -------------------------------------------------------------------------------


def plot_curves(ax: Any, curves: dict[str, dict[str, list[float]]]) -> None:
    """Draw the training and the validation loss of each run by epoch.

    Source: LAB-4.
    """
    for name, losses in curves.items():
        for kind in ("training", "validation"):
            epochs = range(1, len(losses[kind]) + 1)
            ax.plot(epochs, losses[kind], label=f"{name}, {kind}")
    ax.set_yscale("log")
    ax.set_xlabel("epoch")
    ax.set_ylabel("loss")
    ax.legend()


def _draws_each_run_in_full(function: Any, rng: np.random.Generator) -> bool:
    """Return whether runs of different lengths, as early stopping leaves them, are drawn whole."""
    lengths = {f"run {number}": int(rng.integers(1, 9)) for number in range(3)}
    kinds = ("training", "validation")
    curves = {
        name: {kind: [1.0 + k for k in range(length)] for kind in kinds}
        for name, length in lengths.items()
    }
    lines = observe(drawn, function, curves)["lines"]
    whole = {f"{name}, {kind}": length for name, length in lengths.items() for kind in kinds}
    return {label: len(line[0]) for label, line in lines.items()} == whole


def _figures(rng: np.random.Generator) -> Iterator[Case]:
    for names, epochs in [(("p = 0",), 3), (("p = 0", "p = 0.5"), 6), (("a", "b", "c"), 4)]:
        yield {
            "curves": {
                name: {
                    kind: rng.uniform(0.01, 3, size=epochs).round(3).tolist()
                    for kind in ("training", "validation")
                }
                for name in names
            }
        }


PLOT_CURVES = Exercise(
    key="LAB-4:plot",
    reference=plot_curves,
    use=drawn,
    cases=_figures,
    misconceptions=(
        mistake(
            "your epochs are counted from 0; count them from 1",
            plot_curves,
            ("range(1, len(losses[kind]) + 1)", "range(len(losses[kind]))"),
        ),
        mistake(
            "your losses lie on a linear axis, where the small ones cannot be told apart; use "
            '`ax.set_yscale("log")`',
            plot_curves,
            ('    ax.set_yscale("log")\n', ""),
        ),
        mistake(
            "an axis has no label; add it with `ax.set_xlabel` and `ax.set_ylabel`",
            plot_curves,
            ('    ax.set_xlabel("epoch")\n', ""),
        ),
        mistake(
            "there is no legend, so nobody knows which line is which; call `ax.legend()`",
            plot_curves,
            ("    ax.legend()", "    pass"),
        ),
        mistake(
            "your lines have no labels; give each one such as `p = 0, training`",
            plot_curves,
            (', label=f"{name}, {kind}"', ""),
        ),
        mistake(
            "both lines of a run have the same label; say which is training and which is "
            "validation",
            plot_curves,
            ('label=f"{name}, {kind}"', "label=name"),
        ),
        mistake(
            "you draw the validation losses only; draw both losses of each run",
            plot_curves,
            ('("training", "validation")', '("validation",)'),
        ),
        mistake(
            "you draw the training losses under the label of the validation losses, and the "
            "other way round",
            plot_curves,
            (
                "ax.plot(epochs, losses[kind],",
                'ax.plot(epochs, losses["training" if kind == "validation" else "validation"],',
            ),
        ),
        mistake(
            "you draw the first run only; draw all of them",
            plot_curves,
            ("in curves.items():", "in list(curves.items())[:1]:"),
        ),
    ),
    properties=(Property("runs of different lengths are drawn whole", _draws_each_run_in_full),),
)


# --- The exercises ----------------------------------------------------------------------------

EXERCISES: tuple[Exercise, ...] = (
    DROPOUT,
    WITH_DROPOUT,
    EARLY_STOPPING,
    FIT,
    MONTE_CARLO,
    PLOT_CURVES,
)


# --- The record -------------------------------------------------------------------------------


def _is_rate(value: Any) -> bool:
    return value in RATES


def _is_epoch(value: Any) -> bool:
    return isinstance(value, int) and 1 <= value <= EPOCHS


def _evaluate(weights: Mapping[str, Tensor]) -> float:
    """Return the accuracy of weights, in the order of the layers, on the validation examples."""
    model = network(0)
    names = model.state_dict()
    model.load_state_dict(dict(zip(names, weights.values(), strict=True)))
    return accuracy(model)


def _best_epoch(record: Any) -> float:
    """Return the epoch, from 1 on, with the smallest validation loss without dropout."""
    return float(1 + np.argmin(curves(record)["p = 0"]["validation"]))


def _gap(record: Any) -> float:
    """Return by how much the last validation loss without dropout exceeds the training loss."""
    losses = curves(record)["p = 0"]
    return losses["validation"][-1] - losses["training"][-1]


RECORD = RecordCheck(
    key="LAB-4:record",
    lab=LAB,
    predictions={
        "p": ("one of the rates " + ", ".join(map(str, RATES)), _is_rate),
        "epoch": (f"a whole number from 1 to {EPOCHS}", _is_epoch),
    },
    evaluate=_evaluate,
    level=0.7,
    readings={
        "epoch": ("the epoch with the smallest validation loss without dropout", _best_epoch),
        "gap": (
            "the validation loss minus the training loss after the last epoch, without dropout "
            "and without early stopping",
            _gap,
        ),
    },
    steps=2,
)
