"""The student writes batch normalization as a module of PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from optdl.checks.compare import disagreement
from optdl.checks.exercise import Case, Exercise
from optdl.labs.drivers import batchnorm as drivers
from optdl.observation import observe


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
        axes = [0, *range(2, x.dim())]
        mean, var = x.mean(axes), x.var(axes, unbiased=False)
        if self.training:
            self.update(mean, var, x.numel() // x.shape[1])
        else:
            mean, var = self.running_mean, self.running_var
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


exercise = Exercise(
    "LAB-3:module",
    BatchNorm,
    use=drivers.normalized,
    parts=(
        "whether weight and bias are the only parameters",
        "whether state_dict saves the parameters and the buffers",
        "the start values of weight, bias and the buffers",
        "outputs in training",
        "gradients of x in training",
        ("running_mean", "running_var", "num_batches_tracked"),
        "whether num_batches_tracked is an integer",
        "whether the running averages have no graph",
        "output and gradient of x in evaluation mode",
        "output after load_state_dict",
    ),
    rtol=1e-6,
    atol=1e-6,  # `1 / num_batches_tracked` is a number in float32
)


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
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


@exercise.fact("nn.BatchNorm1d loads its state, and gives the same answers")
def _(kind: Any, rng: np.random.Generator) -> bool:
    values = rng.normal(size=(3, 6, 4)).astype(np.float32)
    _, tested, state = observe(drivers.passed, kind, values, 0.1)
    theirs = nn.BatchNorm1d(4)
    theirs.load_state_dict({name: torch.tensor(value) for name, value in state.items()})
    expected = theirs.eval()(torch.tensor(values[0])).detach().numpy()
    return disagreement(expected, tested, 1e-5, 1e-5) is None


exercise.fact("ten minibatches leave what nn.BatchNorm1d has")(
    _is_that_of_torch(nn.BatchNorm1d, (6, 4), 0.1)
)


exercise.fact("ten minibatches leave what nn.BatchNorm1d with momentum=None has")(
    _is_that_of_torch(nn.BatchNorm1d, (3, 2), None)
)


exercise.fact("ten minibatches of images leave what nn.BatchNorm2d has")(
    _is_that_of_torch(nn.BatchNorm2d, (2, 3, 4, 5), 0.1)
)


exercise.hints(
    "Which quantities in the formulas are trained, which are remembered from minibatch to "
    "minibatch, and which are computed anew each time?",
    "For features and for images, the statistics run over every axis except axis 1. To broadcast a "
    "vector over `x`, reshape it to its length on axis 1 and to 1 on all other axes.",
    "In training, compute the mean and the variance of the minibatch and, without autograd, move "
    "each running average by $s$ times the difference. Otherwise use the averages. In both cases "
    "normalize, scale and shift.",
)

exercise.mistakes(r"""
your running averages are parameters, which an optimizer would train; register them as buffers
    self.register_buffer("running_mean", → self.running_mean = nn.Parameter(
    )\n\n    def forward → )\n\n        self.running_mean.requires_grad = False\n\n    def forward
your running averages are plain attributes, so neither `state_dict()` nor `.to(…)` has them;
register them as buffers
    self.register_buffer("running_mean", → self.running_mean = (
    self.register_buffer("running_var", → self.running_var = (
your num_batches_tracked is a plain number, so `state_dict()` does not save it; register a buffer
with `torch.tensor(0)`
    self.register_buffer("num_batches_tracked", torch.tensor(0)) → self.num_batches_tracked = 0
    tracked.item() → tracked
your num_batches_tracked is a float; it counts, so begin with the integer `torch.tensor(0)`
    torch.tensor(0) → torch.tensor(0.0)
your weight and bias are plain tensors, which no optimizer is given; make each an `nn.Parameter`
    nn.Parameter(torch.ones(features)) → torch.ones(features)
    nn.Parameter(torch.zeros(features)) → torch.zeros(features)
your weight begins with zeros; it begins with ones, so at first it changes nothing
    weight = nn.Parameter(torch.ones → weight = nn.Parameter(torch.zeros
your running_var begins with zeros; it begins with ones
    "running_var", torch.ones → "running_var", torch.zeros
your running variance averages the biased variance; it is the unbiased one that it averages, with
count − 1 in the denominator
    var * count / (count - 1) → var
you normalize with the unbiased variance; in training the variance that you divide by is the biased
one, with the number of values in its denominator
    , unbiased=False →
    var * count / (count - 1) → var
you correct the variance with the number of examples; a channel of an image has m · h · w values
    x.numel() // x.shape[1] → x.shape[0]
your running_var averages the standard deviation; it is the variance that it averages
    var * count / (count - 1) → (var * count / (count - 1)).sqrt()
your running averages keep the graph of the earlier minibatches; change them under `torch.no_grad()`
    @torch.no_grad() →
you compute the statistics of the minibatch without gradients; the gradient of x goes through the
mean and the variance as well
    x.mean(axes), x.var(axes, unbiased=False)
    → x.mean(axes).detach(), x.var(axes, unbiased=False).detach()
you have the momentum the wrong way round; here it is the weight of the new value
    self.running_mean += share * → share = 1 - share\n        self.running_mean += share *
you normalize with the statistics of the minibatch in evaluation mode, too; there the running
averages take their place
    mean, var = self.running_mean, self.running_var → pass
your running averages change in evaluation mode as well; update them in training only
    )\n        if self.training:\n            s → )\n        s
    else: → if not self.training:
you normalize with the running averages in training, too; there the statistics of the minibatch are
used, and the averages are only updated
    )\n        else:\n            m → )\n        m
your statistics of images are averaged over the examples alone; those of a channel are averaged over
its positions as well
    [0, *range(2, x.dim())] → [0]
the numbers of your channels are broadcast along the last axis of an image; give them the shape (1,
c, 1, 1)
    [1, -1] + [1] * (x.dim() - 2) → [-1]
ε stands outside your root; it is added to the variance under it
    + self.eps).sqrt() → ** 0.5 + self.eps)
your `running_mean = …` gives a name to a new tensor and leaves the buffer as it is; change
`self.running_mean` in place, and likewise the variance
    self.running_mean += share * → mean = share *
    self.running_var += share * → var = share *
your share is 1 / (t + 1) when momentum is None, where t counts this minibatch already; the first
minibatch has the share 1
    1 / self.num_batches_tracked.item() → 1 / (self.num_batches_tracked.item() + 1)
you take the share 0.1 when momentum is None; there all minibatches have the same share, 1 /
num_batches_tracked
    1 / self.num_batches_tracked.item() → 0.1
you take the momentum 0 for None, as `momentum or …` does; ask whether it `is None`: with the share
0 the running averages stay as they are
    if share is None: → if not share:
you leave out ε; it is added to the variance under the root
    + self.eps) → )
""")
