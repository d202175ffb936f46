"""The student writes batch normalization as a module of PyTorch."""

import torch
from torch import nn

from optdl.checks.exercise import Exercise
from optdl.labs.drivers import batchnorm as drivers


class BatchNorm(nn.Module):
    """Batch normalization of (m, n) features, or of the c channels of (m, c, h, w) images.

    y = γ (x − μ) / √(σ² + ε) + β, with the statistics of the minibatch in training, and with
    their running averages in evaluation mode. The averages are those of the mean and of the
    unbiased variance. Each new value has the share ``momentum`` in them; with ``momentum=None``
    all minibatches count equally. Source: LAB-3.
    """

    def __init__(self, features, momentum=0.1, eps=1e-5):
        super().__init__()
        self.momentum, self.eps = momentum, eps
        self.weight = nn.Parameter(torch.ones(features))
        self.bias = nn.Parameter(torch.zeros(features))
        self.register_buffer("running_mean", torch.zeros(features))
        self.register_buffer("running_var", torch.ones(features))
        self.register_buffer("num_batches_tracked", torch.tensor(0))

    def forward(self, x):
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
    def update(self, mean, var, count):
        """Let the statistics of a minibatch into the running averages."""
        self.num_batches_tracked += 1
        share = self.momentum
        if share is None:
            share = 1 / self.num_batches_tracked.item()
        self.running_mean += share * (mean - self.running_mean)
        self.running_var += share * (var * count / (count - 1) - self.running_var)


exercise = Exercise("LAB-3:module", BatchNorm, use=drivers.module, rtol=1e-6, atol=1e-6)  # float32


def _case(rng, axes, options):
    m, features, *positions = map(int, rng.integers(2, 5, size=2 + axes))
    shape = m + 1, features, *positions
    spread = rng.uniform(0.5, 2, size=(features, *[1] * axes))
    batches = [(1 + spread * rng.normal(size=shape)).round(2) for _ in range(m)]
    weight, bias = rng.uniform(1.5, 3, size=(2, features)).round(2)
    return batches, weight, bias, options


@exercise.cases
def _(rng):
    momentum, eps = rng.uniform(0.2, 0.8, size=2).round(2).tolist()
    yield _case(rng, 0, {"momentum": 0.0})
    yield _case(rng, 0, {"momentum": momentum})
    yield _case(rng, 2, {"eps": eps})
    yield _case(rng, 2, {"momentum": None})


@exercise.fact("parameters, buffers, outputs and gradients are those of nn.BatchNorm1d, and of 2d")
def _(kind, rng):
    equal = {"momentum": None}
    theirs = (nn.BatchNorm1d, 0, {}), (nn.BatchNorm1d, 0, equal), (nn.BatchNorm2d, 2, {})
    return all(
        exercise.agrees(kind, oracle, _case(rng, axes, options), rtol=1e-6, atol=1e-6)
        for oracle, axes, options in theirs
    )


exercise.help(r"""
1. Which quantities are trained, which are remembered, and which are computed anew each time?
2. For features and for images, the statistics run over every axis except axis 1. To broadcast a
   vector over `x`, reshape it to its length on axis 1 and to 1 on all other axes.
3. In training, compute the mean and the variance of the minibatch and, without autograd, move each
   running average by $s$ times the difference. Otherwise use the averages. Normalize in both cases.
your running variance averages the biased variance; average the unbiased one, k/(k − 1) · σ²
    var * count / (count - 1) → var
you normalize with the unbiased variance; in training divide by the biased one
    , unbiased=False → ; var * count / (count - 1) → var
you correct the variance with the number of examples; a channel of an image has m · h · w values
    x.numel() // x.shape[1] → x.shape[0]
each pixel of yours has its own mean and variance; a channel has one, over all images and places
    (x - mean.view(shape)) → (x - (x.mean(0) if self.training else mean.view(shape)))
    (var.view(shape) + → ((x.var(0, False) if self.training else var.view(shape)) +
your running averages keep the graph of the earlier minibatches; change them under `torch.no_grad()`
    @torch.no_grad() →
your mean and variance have no gradients; the gradient of x goes through both of them as well
    x.mean(axes), x.var(axes, unbiased=False)
    → x.mean(axes).detach(), x.var(axes, unbiased=False).detach()
you normalize with the minibatch in evaluation mode, too; there the running averages are used
    mean, var = self.running_mean, self.running_var → pass
your running averages change in evaluation mode as well; update them in training only
    )\n        if self.training:\n            s → )\n        s ; else: → if not self.training:
you normalize with the running averages in training; take the statistics of the minibatch there
    )\n        else:\n            m → )\n        m
ε stands outside your root; it is added to the variance under it
    + self.eps).sqrt() → ** 0.5 + self.eps)
without a momentum your share is 1 / (t + 1); it is 1 / t, where t counts this minibatch already
    1 / self.num_batches_tracked.item() → 1 / (self.num_batches_tracked.item() + 1)
you take the momentum 0 for None, as `momentum or …` does; ask whether it `is None`
    if share is None: → if not share:
your ε is always the same; keep the `eps` that the constructor is given
    = momentum, eps → = momentum, 1e-5
each `momentum` but None gives you the share 0.1; keep the one that the constructor is given
    = momentum, eps → = 0.1 if momentum is not None else None, eps
you give the old average the weight `momentum`; here it is the weight of the new value
    share = self.momentum → share = None if self.momentum is None else 1 - self.momentum
your weights of the old and the new value are exchanged; s is the weight of the new value
    share * (mean → (1 - share) * (mean ; share * (var → (1 - share) * (var
your layer does in evaluation mode what it does in training; ask `self.training`
    if self.training: → if True:
your variance is the mean of those of the images, each around its own mean; a channel has one mean
    x.var(axes, unbiased=False) → x.var(axes[1:] or axes, False).view(-1, x.shape[1]).mean(0)
""")
