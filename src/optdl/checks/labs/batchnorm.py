"""Checks of the lab on batch normalization: a module, a network with it, and how it is tested.

Answers are called by :mod:`optdl.labs.drivers.batchnorm`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from optdl.checks.compare import disagreement
from optdl.checks.exercise import Case, Exercise, Property
from optdl.checks.labs.mistakes import mistake
from optdl.checks.labs.records import RecordCheck
from optdl.labs.batchnorm import (
    LAB,
    NAMES,
    SIZES,
    WIDTHS,
    accuracies,
    examples,
    examples_seen,
)
from optdl.labs.drivers import batchnorm as drivers
from optdl.labs.drivers.figures import drawn, labelled
from optdl.labs.records import LabRecord
from optdl.observation import observe

__all__ = ["EXERCISES", "RECORD"]


# --- The module -------------------------------------------------------------------------------


class BatchNorm(nn.Module):
    """Batch normalization of (m, n) features, or of the c channels of (m, c, h, w) images.

    y = γ (x − μ) / √(σ² + ε) + β, with the statistics of the minibatch in training, and with
    their running averages in evaluation mode. The averages are those of the mean and of the
    unbiased variance. Each new value has the share ``momentum`` in them; with ``momentum=None``
    all minibatches count equally.

    Source: LAB-3.
    """

    running_mean: Tensor
    running_var: Tensor
    num_batches_tracked: Tensor

    def __init__(self, features: int, momentum: float | None = 0.1, eps: float = 1e-5) -> None:
        super().__init__()
        self.momentum, self.eps = momentum, eps
        self.weight = nn.Parameter(torch.ones(features))
        self.bias = nn.Parameter(torch.zeros(features))
        self.register_buffer("running_mean", torch.zeros(features))
        self.register_buffer("running_var", torch.ones(features))
        self.register_buffer("num_batches_tracked", torch.tensor(0))

    def forward(self, x: Tensor) -> Tensor:
        """Normalize x."""
        shape = [1, -1] + [1] * (x.dim() - 2)
        mean, var = self.running_mean, self.running_var
        if self.training:
            axes = [0, *range(2, x.dim())]
            mean, var = x.mean(axes), x.var(axes, unbiased=False)
            self.update(mean, var, x.numel() // x.shape[1])
        normalized = (x - mean.view(shape)) / (var.view(shape) + self.eps).sqrt()
        return self.weight.view(shape) * normalized + self.bias.view(shape)

    @torch.no_grad()
    def update(self, mean: Tensor, var: Tensor, count: int) -> None:
        """Let the statistics of a minibatch into the running averages."""
        self.num_batches_tracked += 1
        share = self.momentum
        if share is None:
            share = 1 / self.num_batches_tracked.item()
        self.running_mean += share * (mean - self.running_mean)
        self.running_var += share * (var * count / (count - 1) - self.running_var)


_PARTS = (
    "its parameters and buffers",
    "outputs in training",
    "gradients of x in training",
    ("running_mean", "running_var", "num_batches_tracked"),
    "the type of num_batches_tracked",
    "the running averages are kept",
    "output in evaluation mode",
    "gradient of x in evaluation mode",
    "output after load_state_dict",
)


def _minibatches(rng: np.random.Generator) -> Iterator[Case]:
    for shape, steps, options in [
        ((3, 2), 1, {"momentum": 0.0}),
        ((4, 3), 3, {"momentum": 0.3}),
        ((3, 2, 1, 2), 2, {"eps": 0.5}),
        ((2, 3, 3, 3), 3, {"momentum": None}),
    ]:
        features = shape[1]
        spread = rng.uniform(0.5, 2, size=(features,) + (1,) * (len(shape) - 2))
        yield {
            "batches": [(1 + spread * rng.normal(size=shape)).round(2) for _ in range(steps)],
            "weight": rng.uniform(1.5, 3, size=features).round(2),
            "bias": rng.uniform(1.5, 3, size=features).round(2),
            "options": options,
        }


def _is_that_of_torch(
    theirs: Callable[..., nn.Module], shape: tuple[int, ...], momentum: float | None
) -> Callable[[Any, np.random.Generator], bool]:
    """Return whether ten minibatches leave what one of PyTorch's own modules has, in float32."""

    def holds(kind: Any, rng: np.random.Generator) -> bool:
        values = rng.normal(2, 3, size=(10, *shape)).astype(np.float32)
        ours = observe(drivers.passed, kind, values, momentum)
        return disagreement(drivers.passed(theirs, values, momentum), ours, 1e-4, 1e-5) is None

    return holds


def _torch_loads_it(kind: Any, rng: np.random.Generator) -> bool:
    """Return whether PyTorch's own module takes the state, and gives the same answers with it."""
    values = rng.normal(size=(3, 6, 4)).astype(np.float32)
    _, tested, state = observe(drivers.passed, kind, values, 0.1)
    theirs = nn.BatchNorm1d(4)
    theirs.load_state_dict({name: torch.tensor(value) for name, value in state.items()})
    expected = theirs.eval()(torch.tensor(values[0])).detach().numpy()
    return disagreement(expected, tested, 1e-5, 1e-5) is None


BATCH_NORM = Exercise(
    key="LAB-3:module",
    reference=BatchNorm,
    use=drivers.normalized,
    cases=_minibatches,
    parts=_PARTS,
    # 1 / num_batches_tracked, a tensor of one integer, is a float32
    rtol=1e-6,
    misconceptions=(
        mistake(
            "your running averages are parameters, which an optimizer would train; register "
            "them as buffers",
            BatchNorm,
            (
                'self.register_buffer("running_mean", torch.zeros(features))',
                "self.running_mean = nn.Parameter(torch.zeros(features), requires_grad=False)",
            ),
            (
                'self.register_buffer("running_var", torch.ones(features))',
                "self.running_var = nn.Parameter(torch.ones(features), requires_grad=False)",
            ),
        ),
        mistake(
            "your running averages are plain attributes, so that neither `state_dict()` nor "
            "`.to(…)` has them; register them as buffers",
            BatchNorm,
            (
                'self.register_buffer("running_mean", torch.zeros(features))',
                "self.running_mean = torch.zeros(features)",
            ),
            (
                'self.register_buffer("running_var", torch.ones(features))',
                "self.running_var = torch.ones(features)",
            ),
        ),
        mistake(
            "your buffers are registered with `persistent=False`, so that `state_dict()` does "
            "not save them; they have to be saved",
            BatchNorm,
            (
                '"running_mean", torch.zeros(features))',
                '"running_mean", torch.zeros(features), persistent=False)',
            ),
            (
                '"running_var", torch.ones(features))',
                '"running_var", torch.ones(features), persistent=False)',
            ),
        ),
        mistake(
            "your num_batches_tracked is a plain number, so that `state_dict()` does not save "
            "it; register a buffer with `torch.tensor(0)`",
            BatchNorm,
            (
                'self.register_buffer("num_batches_tracked", torch.tensor(0))',
                "self.num_batches_tracked = 0",
            ),
            ("self.num_batches_tracked.item()", "self.num_batches_tracked"),
        ),
        mistake(
            "your num_batches_tracked is a float; it counts, so begin with the integer "
            "`torch.tensor(0)`",
            BatchNorm,
            ("torch.tensor(0))", "torch.tensor(0.0))"),
        ),
        mistake(
            "your `running_var` begins with zeros; it begins with ones",
            BatchNorm,
            ('"running_var", torch.ones(features)', '"running_var", torch.zeros(features)'),
        ),
        mistake(
            "your weight and bias are plain tensors, which no optimizer is given; make each an "
            "`nn.Parameter`",
            BatchNorm,
            (
                "self.weight = nn.Parameter(torch.ones(features))",
                "self.weight = torch.ones(features)",
            ),
            (
                "self.bias = nn.Parameter(torch.zeros(features))",
                "self.bias = torch.zeros(features)",
            ),
        ),
        mistake(
            "your running variance averages the biased variance; it is the unbiased one that "
            "it averages, with count − 1 in the denominator",
            BatchNorm,
            ("var * count / (count - 1)", "var"),
        ),
        mistake(
            "you normalize with the unbiased variance; in training the transform divides by "
            "the number of values itself",
            BatchNorm,
            ("x.var(axes, unbiased=False)", "x.var(axes)"),
            ("var * count / (count - 1)", "var"),
        ),
        mistake(
            "you correct the variance with the number of examples; a channel of an image has "
            "m · h · w values",
            BatchNorm,
            ("x.numel() // x.shape[1]", "x.shape[0]"),
        ),
        mistake(
            "your running averages keep the graph of the minibatches before; change them "
            "under `torch.no_grad()`",
            BatchNorm,
            ("    @torch.no_grad()\n", ""),
        ),
        mistake(
            "you compute the statistics of the minibatch without gradients; the gradient of x "
            "goes through the mean and the variance as well",
            BatchNorm,
            (
                "x.mean(axes), x.var(axes, unbiased=False)",
                "x.mean(axes).detach(), x.var(axes, unbiased=False).detach()",
            ),
        ),
        mistake(
            "you have the momentum the wrong way round; here it is the share of the new value",
            BatchNorm,
            (
                "self.running_mean += share *",
                "share = 1 - share\n        self.running_mean += share *",
            ),
        ),
        mistake(
            "you normalize with the statistics of the minibatch in evaluation mode, too; there "
            "the running averages take their place",
            BatchNorm,
            (
                "        if self.training:\n            axes = [0, *range(2, x.dim())]\n"
                "            mean, var = x.mean(axes), x.var(axes, unbiased=False)\n",
                "        axes = [0, *range(2, x.dim())]\n"
                "        mean, var = x.mean(axes), x.var(axes, unbiased=False)\n"
                "        if self.training:\n",
            ),
        ),
        mistake(
            "your running averages change in evaluation mode as well; update them in training only",
            BatchNorm,
            (
                "            self.update(mean, var, x.numel() // x.shape[1])\n",
                "        else:\n            axes = [0, *range(2, x.dim())]\n"
                "        new = x.mean(axes), x.var(axes, unbiased=False)\n"
                "        self.update(*new, x.numel() // x.shape[1])\n",
            ),
        ),
        mistake(
            "you normalize with the running averages in training; there the statistics of the "
            "minibatch are used, and the averages only updated",
            BatchNorm,
            (
                "mean, var = x.mean(axes), x.var(axes, unbiased=False)\n"
                "            self.update(mean, var, x.numel() // x.shape[1])",
                "new = x.mean(axes), x.var(axes, unbiased=False)\n"
                "            mean, var = mean.clone(), var.clone()\n"
                "            self.update(*new, x.numel() // x.shape[1])",
            ),
        ),
        mistake(
            "you normalize with the running averages that you have just updated; in training "
            "the statistics of the minibatch itself are used",
            BatchNorm,
            (
                "            self.update(mean, var, x.numel() // x.shape[1])\n",
                "            self.update(mean, var, x.numel() // x.shape[1])\n"
                "            mean, var = self.running_mean, self.running_var\n",
            ),
        ),
        mistake(
            "your statistics of images are averaged over the examples alone; those of a "
            "channel are averaged over its positions as well",
            BatchNorm,
            ("axes = [0, *range(2, x.dim())]", "axes = [0]"),
        ),
        mistake(
            "your numbers of the channels are broadcast along the last axis of an image; give "
            "them the shape (1, c, 1, 1)",
            BatchNorm,
            ("shape = [1, -1] + [1] * (x.dim() - 2)", "shape = [-1]"),
        ),
        mistake(
            "ε stands outside your root; it is added to the variance under it",
            BatchNorm,
            (
                "(var.view(shape) + self.eps).sqrt()",
                "(var.view(shape).sqrt() + self.eps)",
            ),
        ),
        mistake(
            "you change the variance by ε before it enters the running average; add ε only "
            "where you divide",
            BatchNorm,
            (
                "mean, var = x.mean(axes), x.var(axes, unbiased=False)",
                "mean, var = x.mean(axes), x.var(axes, unbiased=False) + self.eps",
            ),
            ("(var.view(shape) + self.eps).sqrt()", "var.view(shape).sqrt()"),
            (
                "        normalized =",
                "        else:\n            var = var + self.eps\n        normalized =",
            ),
        ),
        mistake(
            "your `running_mean = …` gives a name to a new tensor and leaves the buffer as it "
            "is; change `self.running_mean` in place, and likewise the variance",
            BatchNorm,
            ("self.running_mean += share * (", "mean = share * ("),
            ("self.running_var += share * (", "var = share * ("),
        ),
        mistake(
            "you do not count the minibatches; add 1 to num_batches_tracked in each training step",
            BatchNorm,
            (
                "self.num_batches_tracked += 1",
                "self.seen = getattr(self, 'seen', 0) + 1",
            ),
            ("self.num_batches_tracked.item()", "self.seen"),
        ),
        mistake(
            "you count the minibatch after you have divided by the count; the first one has "
            "the share 1",
            BatchNorm,
            ("        self.num_batches_tracked += 1\n", ""),
            (
                "1 / self.num_batches_tracked.item()",
                "1 / (self.num_batches_tracked.item() + 2)",
            ),
            (
                "(count - 1) - self.running_var)",
                "(count - 1) - self.running_var)\n        self.num_batches_tracked += 1",
            ),
        ),
        mistake(
            "you take the share 0.1 when momentum is None; there all minibatches have the same "
            "share, 1 / num_batches_tracked",
            BatchNorm,
            ("share = 1 / self.num_batches_tracked.item()", "share = 0.1"),
        ),
        mistake(
            "you take the momentum 0 for None, as `momentum or …` does; ask whether it "
            "`is None`: with the share 0 the running averages stay as they are",
            BatchNorm,
            ("if share is None:", "if not share:"),
        ),
    ),
    properties=(
        Property(
            "ten minibatches leave what nn.BatchNorm1d has",
            _is_that_of_torch(nn.BatchNorm1d, (6, 4), 0.1),
        ),
        Property(
            "ten minibatches leave what nn.BatchNorm1d with momentum=None has",
            _is_that_of_torch(nn.BatchNorm1d, (3, 2), None),
        ),
        Property(
            "ten minibatches of images leave what nn.BatchNorm2d has",
            _is_that_of_torch(nn.BatchNorm2d, (2, 3, 4, 5), 0.1),
        ),
        Property("nn.BatchNorm1d loads its state, and gives the same answers", _torch_loads_it),
    ),
)


# --- The network ------------------------------------------------------------------------------


class Network(nn.Module):
    """A network of dense layers with ReLU, normalized before each ReLU if asked.

    Source: LAB-3.
    """

    def __init__(self, widths: Sequence[int], normalization: Any = None, momentum: float = 0.1):
        super().__init__()
        layers: list[nn.Module] = []
        for k in range(len(widths) - 2):
            layers.append(nn.Linear(widths[k], widths[k + 1], bias=normalization is None))
            if normalization is not None:
                layers.append(normalization(widths[k + 1], momentum=momentum))
            layers.append(nn.ReLU())
        layers.append(nn.Linear(widths[-2], widths[-1]))
        self.layers = nn.Sequential(*layers)

    def forward(self, x: Tensor) -> Tensor:
        """Return the scores of examples."""
        return self.layers(x)

    def fit(self, batches: Iterable[tuple[Tensor, Tensor]], lr: float) -> list[float]:
        """Take a step of gradient descent for each minibatch; return the loss before each."""
        optimizer = torch.optim.SGD(self.parameters(), lr=lr)
        self.train()
        losses = []
        for x, y in batches:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(self(x), y)
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            losses.append(loss.item())
        return losses


_NETWORK_PARTS = (
    "its parameters and buffers",
    "scores in evaluation mode",
    "losses of three steps",
    "scores in evaluation mode after them",
)


def _networks(rng: np.random.Generator) -> Iterator[Case]:
    for widths, normalized in [
        ((2, 3, 2), False),
        ((2, 4, 3), True),
        ((3, 4, 5, 2), True),
    ]:
        yield {
            "widths": widths,
            "normalized": normalized,
            "x": rng.normal(size=(6, widths[0])).round(2),
            "y": rng.integers(0, widths[-1], size=6),
            "seed": int(rng.integers(1000)),
        }


def _is_invariant(kind: Any, rng: np.random.Generator) -> bool:
    """Return whether the scale of the hidden weights changes no score in training."""
    x, weight = rng.normal(size=(6, 3)), rng.normal(size=(4, 3))
    factors = 1e2, 1e4  # so large that ε does not count
    small, large = observe(drivers.rescaled, kind, x, weight, factors)
    return disagreement(large, small, 1e-6, 1e-7) is None


NETWORK = Exercise(
    key="LAB-3:network",
    reference=Network,
    use=drivers.built,
    cases=_networks,
    parts=_NETWORK_PARTS,
    misconceptions=(
        mistake(
            "your layers before a normalization have a bias, which the mean removes again; "
            "leave it out there with `bias=False`",
            Network,
            (", bias=normalization is None", ""),
        ),
        mistake(
            "your hidden layers have no bias where there is no normalization; leave it out "
            "before a normalization only",
            Network,
            ("bias=normalization is None", "bias=False"),
        ),
        mistake(
            "your last layer has no bias; no normalization follows there",
            Network,
            (
                "nn.Linear(widths[-2], widths[-1])",
                "nn.Linear(widths[-2], widths[-1], bias=normalization is None)",
            ),
        ),
        mistake(
            "your normalization stands behind the ReLU; here it stands between the dense layer "
            "and the ReLU",
            Network,
            (
                "            if normalization is not None:\n",
                "            layers.append(nn.ReLU())\n            if normalization is not None:\n",
            ),
            ("            layers.append(nn.ReLU())\n        layers", "        layers"),
        ),
        mistake(
            "you normalize the scores, too; the last layer has neither normalization nor ReLU",
            Network,
            (
                "        self.layers =",
                "        if normalization is not None:\n"
                "            layers.append(normalization(widths[-1], momentum=momentum))\n"
                "        self.layers =",
            ),
        ),
        mistake(
            "you normalize the inputs of the network, too; only the outputs of the hidden "
            "dense layers are normalized",
            Network,
            (
                " = []\n        for k",
                " = []\n        if normalization is not None:\n"
                "            layers.append(normalization(widths[0], momentum=momentum))\n"
                "        for k",
            ),
        ),
        mistake(
            "only your first hidden layer is normalized; each hidden layer is",
            Network,
            (
                "if normalization is not None:",
                "if normalization is not None and not layers[1:]:",
            ),
        ),
        mistake(
            "you do not pass `momentum` on to the normalization, which takes its own default",
            Network,
            ("normalization(widths[k + 1], momentum=momentum)", "normalization(widths[k + 1])"),
        ),
        mistake(
            "you pass momentum by position, where `nn.BatchNorm1d` expects eps; pass it by its "
            "name, `momentum=momentum`",
            Network,
            (
                "normalization(widths[k + 1], momentum=momentum)",
                "normalization(widths[k + 1], momentum)",
            ),
        ),
        mistake(
            "your scores go through a ReLU; the last layer has none",
            Network,
            (
                "nn.Linear(widths[-2], widths[-1]))",
                "nn.Linear(widths[-2], widths[-1]))\n        layers.append(nn.ReLU())",
            ),
        ),
        mistake(
            "your network ends with a softmax, which cross_entropy applies itself; return the "
            "scores",
            Network,
            (
                "nn.Linear(widths[-2], widths[-1]))",
                "nn.Linear(widths[-2], widths[-1]))\n        layers.append(nn.Softmax(dim=1))",
            ),
        ),
        mistake(
            "your dense layers follow one another without a ReLU",
            Network,
            ("            layers.append(nn.ReLU())\n", ""),
        ),
        mistake(
            "your layers are those of a plain list, which a module does not know; put them "
            "into `nn.Sequential`",
            Network,
            (
                "self.layers = nn.Sequential(*layers)",
                "self.layers = lambda x, run=nn.Sequential(*layers): run(x)",
            ),
        ),
    ),
    properties=(
        Property(
            "with normalization the scale of the hidden weights changes no score in training",
            _is_invariant,
        ),
    ),
)


# --- How a network is tested ------------------------------------------------------------------


@torch.no_grad()
def evaluate(model: nn.Module, x: Tensor, y: Tensor, size: int) -> tuple[float, float]:
    """Return the mean cross-entropy and the share of correct answers, in evaluation mode.

    Source: LAB-3.
    """
    training = model.training
    model.eval()
    loss, correct = 0.0, 0.0
    for inputs, labels in zip(torch.split(x, size), torch.split(y, size), strict=True):
        scores = model(inputs)
        loss += nn.functional.cross_entropy(scores, labels, reduction="sum").item()
        correct += (scores.argmax(dim=1) == labels).sum().item()
    model.train(training)
    return loss / len(y), correct / len(y)


_EVALUATED_PARTS = (
    "the loss",
    "the accuracy",
    "their types",
    "the sizes of the minibatches",
    "the scores were computed with",
    "the network is left in",
    ("running_mean", "running_var"),
)


def _tests(rng: np.random.Generator) -> Iterator[Case]:
    for m, size, training in [(4, 2, True), (5, 2, False), (7, 3, True), (9, 4, False)]:
        yield {
            "x": rng.normal(size=(m, 4)).round(2),
            "y": rng.integers(0, 3, size=m),
            "size": size,
            "training": training,
            "seed": int(rng.integers(1000)),
        }


def _rests_in_evaluation_mode(function: Any, rng: np.random.Generator) -> bool:
    """Return whether the size of the minibatches has no influence on the answer."""
    x, y, seed = rng.normal(size=(11, 4)), rng.integers(0, 3, size=11), int(rng.integers(1000))
    whole, split = (
        observe(drivers.evaluated, function, x, y, size, True, seed)[:2] for size in (11, 3)
    )
    return disagreement(whole, split, 1e-5, 1e-8) is None


EVALUATE = Exercise(
    key="LAB-3:evaluate",
    reference=evaluate,
    use=drivers.evaluated,
    cases=_tests,
    parts=_EVALUATED_PARTS,
    # the mean of zeros and ones may be taken in float32
    rtol=1e-6,
    misconceptions=(
        mistake(
            "you compute all scores at once; compute them in minibatches of `size` examples",
            evaluate,
            (
                "zip(torch.split(x, size), torch.split(y, size), strict=True)",
                "[(x, y)]",
            ),
        ),
        mistake(
            "your network is tested in training mode, with the statistics of each minibatch; "
            "call `model.eval()` first",
            evaluate,
            ("    model.eval()\n", "    model.train()\n"),
        ),
        mistake(
            "your network is tested in the mode in which it comes; call `model.eval()` first",
            evaluate,
            ("    model.eval()\n", ""),
        ),
        mistake(
            "you leave the network in evaluation mode; give it back in the mode in which it came",
            evaluate,
            ("    model.train(training)\n", ""),
        ),
        mistake(
            "you put the network into training mode at the end, whatever its mode was; give it "
            "back in the mode in which it came",
            evaluate,
            ("model.train(training)", "model.train()"),
        ),
        mistake(
            "you compute the scores with their graph; nothing goes back here: use "
            "`torch.no_grad()`",
            evaluate,
            ("@torch.no_grad()\n", ""),
        ),
        mistake(
            "your results are means over the minibatches, in which the examples of a smaller "
            "last one count for more; take the mean over the examples",
            evaluate,
            (', reduction="sum")', ")"),
            (".sum().item()", ".double().mean().item()"),
            (
                "return loss / len(y), correct / len(y)",
                "return loss / len(torch.split(x, size)), correct / len(torch.split(x, size))",
            ),
        ),
        mistake(
            "you add the mean losses of the minibatches; multiply each by the number of its "
            "examples, and divide the sum by the number of all",
            evaluate,
            (', reduction="sum")', ")"),
            ("return loss / len(y)", "return loss"),
        ),
        mistake(
            "you divide the sum of the mean losses by the number of examples; multiply each "
            "mean by the number of its examples first",
            evaluate,
            (', reduction="sum")', ")"),
        ),
        mistake(
            "you multiply each mean loss by `size`, though the last minibatch is smaller; "
            "multiply by the number of its own examples",
            evaluate,
            (
                'nn.functional.cross_entropy(scores, labels, reduction="sum").item()',
                "nn.functional.cross_entropy(scores, labels).item() * size",
            ),
        ),
        mistake(
            "you leave out the last minibatch when it is smaller; all examples count",
            evaluate,
            (
                "        scores = model(inputs)\n",
                "        if len(inputs) < size:\n            break\n"
                "        scores = model(inputs)\n",
            ),
            (
                "return loss / len(y), correct / len(y)",
                "return loss / (len(y) // size * size), correct / (len(y) // size * size)",
            ),
        ),
        mistake(
            "your accuracy is the number of correct answers; divide it by the number of examples",
            evaluate,
            ("correct / len(y)", "correct"),
        ),
        mistake(
            "your accuracy is in percent; here it is a share between 0 and 1",
            evaluate,
            ("correct / len(y)", "100 * correct / len(y)"),
        ),
        mistake(
            "your second number is the error; asked is the accuracy",
            evaluate,
            ("correct / len(y)", "1 - correct / len(y)"),
        ),
        mistake(
            "you return tensors; return numbers, with `.item()`",
            evaluate,
            ('reduction="sum").item()', 'reduction="sum")'),
            (".sum().item()", ".sum()"),
        ),
        mistake(
            "you apply softmax before cross_entropy, which applies it itself; give it the scores",
            evaluate,
            ("cross_entropy(scores,", "cross_entropy(scores.softmax(dim=1),"),
        ),
    ),
    properties=(
        Property("the size of the minibatches changes nothing", _rests_in_evaluation_mode),
    ),
)


# --- Statistics computed anew -----------------------------------------------------------------


@torch.no_grad()
def recalibrate(model: nn.Module, batches: Iterable[Tensor]) -> None:
    """Replace the running averages by means over minibatches, with all weights fixed.

    Source: LAB-3.
    """
    layers: list[Any] = [one for one in model.modules() if hasattr(one, "running_mean")]
    momenta = [layer.momentum for layer in layers]
    training = model.training
    for layer in layers:
        layer.num_batches_tracked.zero_()
        layer.momentum = None
    model.train()
    for x in batches:
        model(x)
    model.train(training)
    for layer, momentum in zip(layers, momenta, strict=True):
        layer.momentum = momentum


_RECALIBRATED_PARTS = (
    ("running_mean", "running_var", "running_mean of the last layer", "its running_var"),
    "num_batches_tracked",
    "the momenta",
    "the network is left in",
    "the parameters",
)


def _passes(rng: np.random.Generator) -> Iterator[Case]:
    for sizes, training in [((3, 3), True), ((4, 4, 3), False), ((5, 2, 3, 3), True)]:
        yield {
            "batches": [rng.normal(1, 2, size=(m, 2)).round(2) for m in sizes],
            "training": training,
            "seed": int(rng.integers(1000)),
        }


def _are_those_of_all_examples(function: Any, rng: np.random.Generator) -> bool:
    """Return whether one minibatch leaves the mean and the unbiased variance of its features."""
    x = rng.normal(4, 2, size=(8, 3))
    expected = x.mean(axis=0), x.var(axis=0, ddof=1)
    return disagreement(expected, observe(drivers.averaged, function, x), 1e-5, 1e-8) is None


RECALIBRATE = Exercise(
    key="LAB-3:recalibrate",
    reference=recalibrate,
    use=drivers.recalibrated,
    cases=_passes,
    parts=_RECALIBRATED_PARTS,
    misconceptions=(
        mistake(
            "your network is in evaluation mode during the pass, where the averages do not "
            "change; call `model.train()` first",
            recalibrate,
            ("    model.train()\n", "    model.eval()\n"),
        ),
        mistake(
            "your network passes the minibatches in the mode in which it comes; call "
            "`model.train()` first",
            recalibrate,
            ("    model.train()\n", ""),
        ),
        mistake(
            "you leave the network in training mode; give it back in the mode in which it came",
            recalibrate,
            ("    model.train(training)\n", ""),
        ),
        mistake(
            "you put the network into evaluation mode at the end, whatever its mode was; give "
            "it back in the mode in which it came",
            recalibrate,
            ("model.train(training)", "model.eval()"),
        ),
        mistake(
            "your layers go on from their old averages and counts; set num_batches_tracked to "
            "0 first",
            recalibrate,
            ("        layer.num_batches_tracked.zero_()\n", ""),
        ),
        mistake(
            "your layers keep their momentum, so that the last minibatches count most and the "
            "old averages still count; set momentum to None for the pass",
            recalibrate,
            ("        layer.momentum = None\n", ""),
        ),
        mistake(
            "your layers have no momentum afterwards; give each its own back",
            recalibrate,
            ("        layer.momentum = momentum\n", "        pass\n"),
        ),
        mistake(
            "your layers have the momentum 0.1 afterwards; give each its own back",
            recalibrate,
            ("        layer.momentum = momentum\n", "        layer.momentum = 0.1\n"),
        ),
        mistake(
            "you reset the parameters of the layers, too; weight and bias stay as they are",
            recalibrate,
            (
                "layer.num_batches_tracked.zero_()",
                "layer.num_batches_tracked.zero_()\n        layer.weight.fill_(1)\n"
                "        layer.bias.zero_()",
            ),
        ),
        mistake(
            "you find certain classes only, by `isinstance`; a normalization is any module that "
            "has the attribute `running_mean`",
            recalibrate,
            (
                'if hasattr(one, "running_mean")',
                "if isinstance(one, nn.BatchNorm1d | nn.BatchNorm2d)",
            ),
        ),
        mistake(
            "you go through the children of the network and miss the layers within them; go "
            "through `model.modules()`",
            recalibrate,
            ("model.modules()", "model.children()"),
        ),
        mistake(
            "your statistics are those of the first minibatch; go through all of them",
            recalibrate,
            ("        model(x)\n", "        model(x)\n        break\n"),
        ),
        mistake(
            "your statistics are those of the last minibatch; take the mean over all of them",
            recalibrate,
            ("        layer.momentum = None\n", "        layer.momentum = 1.0\n"),
        ),
        mistake(
            "you join all examples into one minibatch; here the statistics of the minibatches "
            "are averaged",
            recalibrate,
            ("for x in batches:", "for x in [torch.cat(list(batches))]:"),
        ),
        mistake(
            "you pass the minibatches twice; each counts once",
            recalibrate,
            ("        model(x)\n", "        model(x)\n        model(x)\n"),
        ),
    ),
    properties=(
        Property(
            "one minibatch leaves its mean and its unbiased variance",
            _are_those_of_all_examples,
        ),
    ),
)


# --- The figure -------------------------------------------------------------------------------


def plot_curves(ax: Any, seen: Sequence[int], curves: dict[str, list[float]], ylabel: str) -> None:
    """Draw curves over the number of examples that the network had seen.

    Source: LAB-3.
    """
    for name, values in curves.items():
        ax.plot(seen, values, marker="o", label=name)
    ax.set_xlabel("training examples seen")
    ax.set_ylabel(ylabel)
    ax.legend()


def _curves(rng: np.random.Generator) -> Iterator[Case]:
    for names, count, ylabel in [
        (NAMES[:1], 2, "training loss"),
        (NAMES, 4, "validation accuracy"),
        (NAMES[:2], 10, "validation accuracy"),
    ]:
        yield {
            "seen": examples_seen()[:count],
            "curves": {name: rng.uniform(size=count).round(2).tolist() for name in names},
            "ylabel": ylabel,
        }


def _draws_as_many_lines_as_curves(plot: Any, rng: np.random.Generator) -> bool:
    """Return whether each of five curves is a line with its name."""
    curves = {f"curve {k}": rng.uniform(size=3).tolist() for k in rng.permutation(5)}
    lines = observe(drawn, plot, [10, 20, 30], curves, "loss")["lines"]
    return set(lines) == set(curves) and all(list(x) == [10, 20, 30] for x, _ in lines.values())


PLOT_CURVES = Exercise(
    key="LAB-3:plot",
    reference=plot_curves,
    use=labelled,
    cases=_curves,
    misconceptions=(
        mistake(
            "you draw the curves over 0, 1, 2, …; draw them over the numbers in `seen`",
            plot_curves,
            ("ax.plot(seen, values,", "ax.plot(values,"),
        ),
        mistake(
            "your axes are swapped; the examples seen lie on the x axis",
            plot_curves,
            ("ax.plot(seen, values,", "ax.plot(values, seen,"),
        ),
        mistake(
            "your curves have no labels; give each `label=name`",
            plot_curves,
            (", label=name", ""),
        ),
        mistake(
            "there is no legend, so nobody knows which curve is which; call `ax.legend()`",
            plot_curves,
            ("    ax.legend()", "    pass"),
        ),
        mistake(
            "the x axis has no label; add it with `ax.set_xlabel`",
            plot_curves,
            ('    ax.set_xlabel("training examples seen")\n', ""),
        ),
        mistake(
            "you give the y axis a label of your own; it is given as `ylabel`",
            plot_curves,
            ("ax.set_ylabel(ylabel)", 'ax.set_ylabel("accuracy")'),
        ),
        mistake(
            "your axis of the examples is logarithmic; here it is linear",
            plot_curves,
            (
                "    ax.set_ylabel(ylabel)",
                '    ax.set_xscale("log")\n    ax.set_ylabel(ylabel)',
            ),
        ),
        mistake(
            "you draw the last curve only; put `ax.plot` into the loop",
            plot_curves,
            (
                '        ax.plot(seen, values, marker="o", label=name)\n',
                '        pass\n    ax.plot(seen, values, marker="o", label=name)\n',
            ),
        ),
    ),
    properties=(Property("each curve is a line with its name", _draws_as_many_lines_as_curves),),
)


# --- The exercises ----------------------------------------------------------------------------

EXERCISES: tuple[Exercise, ...] = (
    BATCH_NORM,
    NETWORK,
    EVALUATE,
    RECALIBRATE,
    PLOT_CURVES,
)


# --- The record -------------------------------------------------------------------------------


def _is_size(value: Any) -> bool:
    return value in SIZES


def _is_share(value: Any) -> bool:
    return isinstance(value, int | float) and 0 <= value <= 1


def _evaluate(weights: Mapping[str, Tensor]) -> float:
    """Return the accuracy of weights on the validation examples, in PyTorch's own modules."""
    is_normalized = "layers.1.running_mean" in weights
    model = Network(WIDTHS, nn.BatchNorm1d if is_normalized else None)
    model.load_state_dict(dict(weights))
    _, _, x, y = examples()
    return evaluate(model, x, y, len(y))[1]


def _first_above(name: str) -> Callable[[LabRecord], float]:
    """Return a function of a record: after how many examples a curve of size 64 exceeds 0.8."""

    def find(record: LabRecord) -> float:
        found = zip(examples_seen(), accuracies(record, 64)[name], strict=True)
        return next((seen for seen, accuracy in found if accuracy > 0.8), 0)

    return find


_NUMBER = "after how many examples the accuracy at 64 first exceeds 0.8 (0 if it never does), with "

RECORD = RecordCheck(
    key="LAB-3:record",
    lab=LAB,
    predictions={
        "size": ("one of the sizes 64, 8 and 2", _is_size),
        "accuracy": ("a number between 0 and 1", _is_share),
    },
    evaluate=_evaluate,
    level=0.84,
    readings={
        "averages": (f"{_NUMBER}running averages", _first_above("running averages")),
        "anew": (f"{_NUMBER}statistics computed anew", _first_above("computed anew")),
    },
)
