r"""Several fully connected networks trained side by side, as one more axis of every array.

A network of three layers of 100 units is so small that a step spends its time on starting
operations, not on arithmetic. The five seeds of an experiment ask for the same operations, so they
share them: a weight is an (s, n, o) array, and one batched product serves all members.
Members differ in their seed, which gives initial weights and the order of the examples, and may
differ in their learning rate. They share nothing else: each has the curves it would have alone,
up to rounding.

Forward and backward pass are written out, as the chapters derive them. The gradient of a weight
never exists by itself: it is the product :math:`H^T\delta` that goes straight into the
parameters. BNP then costs no pass over the weights, because its transformation of the gradient is
one of the input:

.. math:: \frac1{q^2}\,\frac{G_w - G_b\,\mu^T}{\tilde\sigma^2}
    = \delta^T\, \frac{H - e\mu^T}{q^2\,\tilde\sigma^2}

Axis letters, fixed for the module: ``s`` members, ``N`` examples of a minibatch, ``n`` inputs,
``o`` outputs, ``d`` features, ``c`` classes.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional
from tqdm.auto import tqdm

from optdl import checkpoints
from optdl.bnp import scale_dense
from optdl.data import Examples
from optdl.networks import fully_connected
from optdl.records import Record
from optdl.training import order_seed, recorded

__all__ = ["METHODS", "RULES", "Ensemble", "train_ensemble"]

Features = Float[Tensor, "s N d"]
Labels = Int[Tensor, "s N"]
Left = Float[Tensor, "s N n"]
Right = Float[Tensor, "s N o"]
"""Factors of a gradient, which is ``left.mT @ right``."""

METHODS = ("vanilla", "BN", "LN", "Renorm", "BNP")
"""What a member may do beside gradient descent; a normalization stands after each ReLU."""


# --- What moves a parameter -------------------------------------------------------------------


class SGD:
    """Gradient descent; the gradient goes into the parameter without being stored."""

    def __init__(self, rates: Float[Tensor, "s 1 1"], parameters: Sequence[Tensor]) -> None:
        self.rates = rates

    def move(self, p: Tensor, left: Left, right: Right) -> None:
        """Take a step along the gradient ``left.mT @ right``."""
        p.baddbmm_(left.mT, right * -self.rates)

    def tensors(self) -> list[Tensor]:
        """Return what the rule remembers."""
        return []


class Momentum(SGD):
    r"""Heavy ball, as torch writes it: :math:`v \leftarrow \alpha v + g`, and a step along v."""

    alpha = 0.9

    def __init__(self, rates: Float[Tensor, "s 1 1"], parameters: Sequence[Tensor]) -> None:
        super().__init__(rates, parameters)
        self.velocities = {id(p): torch.zeros_like(p) for p in parameters}

    def move(self, p: Tensor, left: Left, right: Right) -> None:
        """Take a step along the velocity, to which the gradient is added."""
        velocity = self.velocities[id(p)].baddbmm_(left.mT, right, beta=self.alpha)
        p.addcmul_(velocity, self.rates, value=-1)

    def tensors(self) -> list[Tensor]:
        """Return the velocities."""
        return list(self.velocities.values())


class Adam(SGD):
    """Adam with the constants of torch."""

    beta1, beta2, eps = 0.9, 0.999, 1e-8

    def __init__(self, rates: Float[Tensor, "s 1 1"], parameters: Sequence[Tensor]) -> None:
        super().__init__(rates, parameters)
        self.moments = {
            id(p): (torch.zeros_like(p), torch.zeros_like(p), p.new_zeros(())) for p in parameters
        }

    def move(self, p: Tensor, left: Left, right: Right) -> None:
        """Take a step along the corrected first moment over the root of the second."""
        first, second, steps = self.moments[id(p)]
        gradient = torch.bmm(left.mT, right)
        steps += 1
        first.lerp_(gradient, 1 - self.beta1)
        second.mul_(self.beta2).addcmul_(gradient, gradient, value=1 - self.beta2)
        root = (second / (1 - self.beta2**steps)).sqrt_().add_(self.eps)
        p.sub_(first / root * (self.rates / (1 - self.beta1**steps)))

    def tensors(self) -> list[Tensor]:
        """Return the moments, and how many steps they count."""
        return [tensor for moments in self.moments.values() for tensor in moments]


RULES: dict[str, type[SGD]] = {"sgd": SGD, "momentum": Momentum, "adam": Adam}
"""Names of optimizers to what they do."""


# --- Layers -----------------------------------------------------------------------------------


class Dense:
    r"""A dense layer of every member: :math:`h \mapsto hW + b`."""

    def __init__(
        self, weights: Sequence[Tensor], biases: Sequence[Tensor], outputs_last: bool = True
    ) -> None:
        weight = torch.stack([weight.detach().T for weight in weights])
        self.weight = weight if outputs_last else weight.mT.contiguous().mT
        self.bias = torch.stack([bias.detach()[None] for bias in biases])

    def forward(self, h: Features) -> Float[Tensor, "s N o"]:
        """Return the outputs."""
        return torch.baddbmm(self.bias, h, self.weight)

    def backward(
        self, h: Features, delta: Float[Tensor, "s N o"], rule: SGD, first: bool
    ) -> Features | None:
        """Move the parameters, and return the gradient of the inputs, if anyone asks for it."""
        gradient = None if first else torch.bmm(delta, self.weight.mT)
        self.learn(h, delta, rule)
        return gradient

    def learn(self, h: Features, delta: Float[Tensor, "s N o"], rule: SGD) -> None:
        """Take a step with the gradients of weight and bias."""
        ones = h.new_ones(len(h), 1, 1)
        rule.move(self.weight, h, delta)
        rule.move(self.bias, ones, delta.sum(1, keepdim=True))

    def parameters(self) -> list[Tensor]:
        """Return what the rule moves."""
        return [self.weight, self.bias]

    def tensors(self) -> list[Tensor]:
        """Return all that training changes."""
        return self.parameters()


class PreconditionedDense(Dense):
    r"""A dense layer with BNP: Algorithm 2, applied to the input in place of the gradient.

    Parameters
    ----------
    weights, biases : sequence of tensors
        Those of each member.
    outputs_last : bool
        How a weight lies in memory: see :class:`Ensemble`.
    rho, eps1, eps2 : float
        As in :class:`optdl.bnp.BNP`.
    corrected : bool
        Whether to begin with the first minibatch instead of μ = 0 and σ² = 1: after t steps the
        new statistics count :math:`(1-\rho)/(1-\rho^t)`. A moving average that starts at 0 and
        is divided by :math:`1-\rho^t`, as in Adam, has the same values.
    split : bool
        Whether the rule works in the coordinates z of θ = Pz: it is given :math:`P^T g`, and its
        step goes through P. Otherwise it is given :math:`P P^T g`. For gradient descent both are
        the same.
    """

    def __init__(
        self,
        weights: Sequence[Tensor],
        biases: Sequence[Tensor],
        outputs_last: bool = True,
        rho: float = 0.99,
        eps1: float = 1e-2,
        eps2: float = 1e-4,
        corrected: bool = False,
        split: bool = False,
    ) -> None:
        super().__init__(weights, biases, outputs_last)
        members, inputs, _ = self.weight.shape
        self.rho, self.eps1, self.eps2, self.corrected = rho, eps1, eps2, corrected
        self.mean = self.weight.new_zeros(members, 1, inputs)
        self.var = torch.ones_like(self.mean)
        self.steps = self.weight.new_zeros(())
        self.moves = [torch.zeros_like(p) for p in super().parameters()] if split else []

    def learn(self, h: Features, delta: Float[Tensor, "s N o"], rule: SGD) -> None:
        """Update the statistics, then take a step with the preconditioned gradients."""
        self._update(h)
        scale = scale_dense(h.shape[2], h.shape[1])
        smoothed = torch.add(self.var, self.var.amax(2, keepdim=True), alpha=self.eps1)
        inverse = smoothed.add_(self.eps2).mul_(scale).reciprocal_()
        if self.moves:
            self._learn_split(h, delta, rule, scale, inverse.sqrt_())
            return
        inputs = torch.sub(h, self.mean).mul_(inverse)
        rule.move(self.weight, inputs, delta)
        # G_b/q² − Σ_j G_w(·, j) μ(j), where G_w is a product as well
        shares = 1 / scale - torch.bmm(inputs, self.mean.mT)
        rule.move(self.bias, h.new_ones(len(h), 1, 1), torch.bmm(shares.mT, delta))

    def _learn_split(
        self,
        h: Features,
        delta: Float[Tensor, "s N o"],
        rule: SGD,
        scale: float,
        inverse: Float[Tensor, "s 1 n"],
    ) -> None:
        """Take a step of the rule in z, and carry it over to the parameters."""
        ones = h.new_full((len(h), 1, 1), 1 / math.sqrt(scale))
        weight, bias = (move.zero_() for move in self.moves)
        rule.move(weight, torch.sub(h, self.mean).mul_(inverse), delta)
        rule.move(bias, ones, delta.sum(1, keepdim=True))
        weight.mul_(inverse.mT)
        self.weight += weight
        self.bias += bias.mul_(ones).sub_(torch.bmm(self.mean, weight))

    def _update(self, h: Features) -> None:
        self.steps += 1
        new: float | Tensor = 1 - self.rho
        if self.corrected:
            new = (1 - self.rho) / (1 - self.rho**self.steps)
        mean = h.mean(1, keepdim=True)
        self.mean.lerp_(mean, new)
        # one row has no spread: it is measured from the running mean
        center = self.mean if h.shape[1] == 1 else mean
        self.var.lerp_((h - center).square_().mean(1, keepdim=True), new)

    def parameters(self) -> list[Tensor]:
        """Return what the rule moves."""
        return self.moves or super().parameters()

    def tensors(self) -> list[Tensor]:
        """Return all that training changes."""
        return [self.weight, self.bias, self.mean, self.var, self.steps]


class Normalization:
    r"""Standardizes along one axis, then scales and shifts each feature: BN over 1, LN over 2.

    Parameters
    ----------
    like : (s, N, d) tensor
        Its members, features, precision and device.
    axis : int
        1 for batch normalization, which keeps moving averages for inference; 2 for layer
        normalization.
    renorm : bool
        Whether the outputs in training are those of inference, as in batch renormalization.
    s_max, d_max : float
        Limits of its correction, as in :class:`optdl.batchnorm.BatchRenorm`.
    rho, eps : float
        Share of the old average, and what is added to the variance.
    """

    def __init__(
        self,
        like: Tensor,
        axis: int,
        renorm: bool = False,
        rho: float = 0.99,
        eps: float = 1e-3,
        s_max: float = math.inf,
        d_max: float = math.inf,
    ) -> None:
        self.s_max, self.d_max = s_max, d_max
        members, features = like.shape[0], like.shape[2]
        self.axis, self.renorm, self.rho, self.eps = axis, renorm, rho, eps
        self.gamma, self.beta = (
            like.new_ones(members, 1, features),
            like.new_zeros(members, 1, features),
        )
        self.mean, self.var = torch.zeros_like(self.beta), torch.ones_like(self.gamma)

    def forward(self, h: Features, training: bool) -> Features:
        """Return the normalized features; in training keep what the backward pass needs."""
        if self.axis == 1 and not training:
            return self._scaled((h - self.mean) * (self.var + self.eps).rsqrt())
        mean = h.mean(self.axis, keepdim=True)
        centered = h - mean
        var = centered.square().mean(self.axis, keepdim=True)
        inverse = (var + self.eps).rsqrt()
        self.standardized = self.normalized = centered.mul_(inverse)
        self.factor = inverse
        if self.axis == 1:
            if self.renorm:
                self._renormalize(mean)
            self._remember(mean, var, h.shape[1])
        return self._scaled(self.normalized)

    def _scaled(self, normalized: Features) -> Features:
        return torch.addcmul(self.beta, normalized, self.gamma)

    def _renormalize(self, mean: Tensor) -> None:
        """Correct to the moving averages; the correction counts as constant when backward."""
        kept = (self.var + self.eps).rsqrt()
        ratio = (kept / self.factor).clamp(1 / self.s_max, self.s_max)
        shift = ((mean - self.mean) * kept).clamp(-self.d_max, self.d_max)
        self.normalized = self.standardized * ratio + shift
        self.gain = ratio

    def _remember(self, mean: Tensor, var: Tensor, rows: int) -> None:
        self.mean.lerp_(mean, 1 - self.rho)
        self.var.lerp_(var * (rows / (rows - 1)), 1 - self.rho)

    def backward(self, delta: Features, rule: SGD) -> Features:
        """Move γ and β, and return the gradient of the inputs."""
        upstream = delta * self.gamma
        if self.renorm:
            upstream.mul_(self.gain)
        ones = delta.new_ones(len(delta), 1, 1)
        rule.move(self.gamma, ones, (delta * self.normalized).sum(1, keepdim=True))
        rule.move(self.beta, ones, delta.sum(1, keepdim=True))
        mean = upstream.mean(self.axis, keepdim=True)
        along = (upstream * self.standardized).mean(self.axis, keepdim=True)
        return upstream.sub_(mean).addcmul_(self.standardized, along, value=-1).mul_(self.factor)

    def measure(self, h: Features) -> None:
        """Take the statistics for inference from these features, all of them at once."""
        self.var, self.mean = torch.var_mean(h, 1, correction=0, keepdim=True)

    def parameters(self) -> list[Tensor]:
        """Return what the rule moves."""
        return [self.gamma, self.beta]

    def tensors(self) -> list[Tensor]:
        """Return all that training changes."""
        return [*self.parameters(), self.mean, self.var]


# --- Networks ---------------------------------------------------------------------------------


class Ensemble:
    """Fully connected networks with ReLU, one for each seed, in one set of arrays.

    Parameters
    ----------
    widths : sequence of int
        Inputs, hidden layers, classes.
    method : str
        One of ``METHODS``.
    seeds : sequence of int
        One for each member; its weights are those of ``fully_connected(widths, seed=seed)``.
    rates : float or sequence of float
        The learning rate, for all or for each member.
    rule : str
        One of ``RULES``.
    settings : mapping
        What the layers of the method should have other than their defaults, such as ``rho``; and
        what happens at the network's input: ``input=True`` puts a batch normalization there, too
        (BN, Renorm), ``first=False`` leaves the first layer without preconditioning (BNP).
    outputs_last : bool
        Whether a weight lies in memory as (n, o); otherwise as (o, n), as in ``nn.Linear``. With 6
        examples the first makes the update four times faster, with 60 the second makes it a sixth
        faster (3072 × 100, AVX-512).
    device, dtype
        Where and how precisely to compute.

    Raises
    ------
    ValueError
        If the method or the rule is unknown, or there is not one rate for each seed.

    Notes
    -----
    Source: P-19

    Examples
    --------
    >>> ensemble = Ensemble((2, 3, 2), "BNP", seeds=(0, 1), rates=0.1)
    >>> ensemble.scores(torch.ones(5, 2)).shape
    torch.Size([2, 5, 2])
    """

    def __init__(
        self,
        widths: Sequence[int],
        method: str,
        seeds: Sequence[int],
        rates: float | Sequence[float],
        *,
        rule: str = "sgd",
        settings: Mapping[str, Any] | None = None,
        outputs_last: bool = True,
        device: str | torch.device = "cpu",
        dtype: torch.dtype = torch.float32,
    ) -> None:
        each = [rates] * len(seeds) if isinstance(rates, float | int) else list(rates)
        _require_known(method, rule, seeds, each)
        self.method, self.seeds = method, tuple(seeds)
        self.last: tuple[Tensor, Tensor] | None = None
        models = [fully_connected(widths, seed=seed).to(device, dtype) for seed in seeds]
        own = dict(settings or {})
        from_layer = 0 if own.pop("first", True) else 1
        at_input = own.pop("input", False)
        self.dense: list[Dense] = []
        for number, place in enumerate(range(1, 2 * len(widths) - 2, 2)):
            weights = [model.get_parameter(f"{place}.weight") for model in models]
            biases = [model.get_parameter(f"{place}.bias") for model in models]
            if method == "BNP" and number >= from_layer:
                self.dense.append(PreconditionedDense(weights, biases, outputs_last, **own))
            else:
                self.dense.append(Dense(weights, biases, outputs_last))
        self.norms: list[Normalization | None] = [None] * len(self.dense)
        if method in ("BN", "LN", "Renorm"):
            axis, renorm = 2 if method == "LN" else 1, method == "Renorm"
            self.norms = [
                Normalization(layer.weight[:, :, :1].mT, axis, renorm, **own)
                if number or at_input
                else None
                for number, layer in enumerate(self.dense)
            ]
        rates_of = torch.tensor(each, device=device, dtype=dtype)[:, None, None]
        self.rule = RULES[rule](
            rates_of, [p for layer in self._layers() for p in layer.parameters()]
        )

    @torch.no_grad()
    def step(self, x: Features, y: Labels) -> Float[Tensor, " s"]:
        """Take one step of every member, and return their losses before it."""
        if self.method in ("BN", "Renorm") and x.shape[1] == 1:
            raise ValueError(
                f"{self.method} needs 2 examples or more in a minibatch: one has no variance"
            )
        inputs, active, scores = self._forward(x, training=True)
        self.last = (inputs[-1], scores)
        logs = functional.log_softmax(scores, dim=2)
        losses = -logs.gather(2, y[..., None]).mean((1, 2))
        delta = logs.exp_().scatter_add_(2, y[..., None], logs.new_full((*y.shape, 1), -1.0))
        self._backward(inputs, active, delta.div_(x.shape[1]))
        return losses

    def _forward(self, x: Features, training: bool) -> tuple[list[Tensor], list[Tensor], Tensor]:
        """Return the inputs of the dense layers, what left the ReLUs, and the scores."""
        inputs: list[Tensor] = []
        active, h = [x], x
        for layer, norm in zip(self.dense, self.norms, strict=True):
            inputs.append(norm.forward(h, training) if norm else h)
            h = layer.forward(inputs[-1])
            if layer is not self.dense[-1]:
                active.append(h.relu_())
        return inputs, active, h

    def _backward(self, inputs: list[Tensor], active: list[Tensor], delta: Features) -> None:
        for number in reversed(range(len(self.dense))):
            norm = self.norms[number]
            alone = not number and norm is None
            gradient = self.dense[number].backward(inputs[number], delta, self.rule, alone)
            if gradient is not None and norm:
                gradient = norm.backward(gradient, self.rule)
            if number and gradient is not None:
                delta = torch.ops.aten.threshold_backward(gradient, active[number], 0)

    @torch.no_grad()
    def scores(self, x: Float[Tensor, "N n"]) -> Float[Tensor, "s N c"]:
        """Return the scores of every member for the same examples, in evaluation."""
        return self._forward(x.expand(len(self.seeds), *x.shape), training=False)[2]

    @contextmanager
    @torch.no_grad()
    def measured(self, x: Float[Tensor, "N n"]) -> Iterator[None]:
        """Judge with statistics of these examples, in place of the moving averages, for a while.

        The statistics of a normalization are those of what reaches it once the ones before it
        have been replaced.
        """
        norms = [norm for norm in self.norms if norm]
        kept = [(norm.mean, norm.var) for norm in norms]
        h = x.expand(len(self.seeds), *x.shape)
        for layer, norm in zip(self.dense, self.norms, strict=True):
            if norm:
                norm.measure(h)
                h = norm.forward(h, training=False)
            h = layer.forward(h).relu_()
        try:
            yield
        finally:
            for norm, (mean, var) in zip(norms, kept, strict=True):
                norm.mean, norm.var = mean, var

    def tensors(self) -> list[Tensor]:
        """Return all that training changes, in a fixed order; the rule's memory comes last."""
        own = [tensor for layer in self._layers() for tensor in layer.tensors()]
        return own + self.rule.tensors()

    def _layers(self) -> list[Dense | Normalization]:
        return [*self.dense, *(norm for norm in self.norms if norm)]


def _require_known(method: str, rule: str, seeds: Sequence[int], rates: Sequence[float]) -> None:
    if method not in METHODS or rule not in RULES:
        raise ValueError(
            f"method must be one of {', '.join(METHODS)} and rule one of {', '.join(RULES)}; "
            f"got {method!r} and {rule!r}"
        )
    if not seeds or len(rates) != len(seeds):
        raise ValueError(
            f"expected a seed for each member and one rate, or one rate for each seed; got "
            f"{len(seeds)} seeds and {len(rates)} rates"
        )


# --- Training ---------------------------------------------------------------------------------


def train_ensemble(
    ensemble: Ensemble,
    train_examples: Examples,
    validation: Examples,
    *,
    epochs: int,
    batch_size: int,
    test: Examples | None = None,
    recompute: int = 0,
    config: Mapping[str, Any] | None = None,
    watch: Callable[[Ensemble], Sequence[Mapping[str, float]]] | None = None,
    watch_every: int = 1,
    progress: bool = False,
    checkpoint: str | os.PathLike[str] | None = None,
) -> list[Record]:
    """Train every member by minibatches, without replacement, and record their curves.

    The counterpart of :func:`optdl.training.train` for many seeds at once: a member sees the
    minibatches that :func:`optdl.training.order_seed` of its seed gives there. The examples lie
    on the device, and the device is waited for once an epoch.

    Parameters
    ----------
    ensemble : Ensemble
        The members.
    train_examples, validation : Examples
        What to train on, and what to measure after each epoch.
    epochs, batch_size : int
        Passes through the training examples, and examples in a step of each member.
    test : Examples, optional
        Examples that judge: they are measured after each epoch, too.
    recompute : int
        So many of the training examples, the first ones, give the statistics with which a network
        with BN or Renorm is judged once more; 0 for not at all.
    config : mapping, optional
        What else the records should say.
    watch : callable, optional
        The ensemble to one mapping from names to numbers for each member, which are added to the
        curves of these names. Of the step just taken, ``ensemble.last`` holds the inputs of the
        last layer and the scores.
    watch_every : int
        Steps from one call to the next; the first is after step 1. The curve ``watched_step``
        counts them.
    progress : bool
        Show a progress bar with an estimate of the end.
    checkpoint : path, optional
        A file that holds after each epoch all that is needed to go on, to the same bits.

    Returns
    -------
    list of Record
        One for each member. Curves: ``minibatch_loss``, ``validation_loss`` and
        ``validation_error``, as in :func:`optdl.training.train`; ``test_loss`` and ``test_error``;
        ``recomputed_loss`` and ``recomputed_error``, on the test examples if there are any, and
        else on those of validation. ``stop`` says "all ... epochs",
        or at which step the loss was no longer finite; the curves end with that epoch.
        ``seconds`` is the member's share of the wall time.

    Raises
    ------
    ValueError
        If the checkpoint is damaged, of another run, or has more epochs than asked for; if the
        batch size does not lie between 1 and the number of examples.

    Notes
    -----
    Source: F-12
    """
    if epochs < 1 or not 1 <= batch_size <= len(train_examples):
        raise ValueError(
            f"expected 1 epoch or more and a batch_size from 1 to {len(train_examples)}, the "
            f"number of examples; got {epochs} and {batch_size}"
        )
    run = _Run(ensemble, train_examples, validation, test, batch_size, dict(config or {}))
    run.recompute = recompute
    if watch is not None:
        run.watch, run.watch_every = watch, watch_every
    run.resume(None if checkpoint is None else Path(checkpoint), epochs)
    steps = math.ceil(len(train_examples) / batch_size)
    with tqdm(
        total=epochs * steps,
        initial=run.epoch * steps,
        unit="step",
        disable=not progress,
        mininterval=1.0,
        desc=f"{ensemble.method} {batch_size}",
    ) as bar:
        while run.epoch < epochs and not all(run.diverged):
            run.train_epoch(bar.update)
            bar.set_postfix_str(f"epoch {run.epoch}, error {run.mean_error():.3f}")
    return run.records(epochs)


class _Run:
    """Where a training run stands, and how it goes on."""

    def __init__(
        self,
        ensemble: Ensemble,
        train_examples: Examples,
        validation: Examples,
        test: Examples | None,
        batch_size: int,
        config: dict[str, Any],
    ) -> None:
        self.ensemble, self.batch_size, self.config = ensemble, batch_size, config
        like = ensemble.dense[0].weight
        self.x, self.y = _on_device(train_examples, like)
        self.parts = {"validation": _on_device(validation, like)}
        if test is not None:
            self.parts["test"] = _on_device(test, like)
        self.recompute = 0
        self.generators = [
            torch.Generator().manual_seed(order_seed(seed)) for seed in ensemble.seeds
        ]
        self.step = recorded(self._step)
        self.curves: list[dict[str, list[float]]] = [{} for _ in ensemble.seeds]
        self.diverged: list[int] = [0] * len(ensemble.seeds)
        self.epoch, self.seconds = 0, 0.0
        self.path: Path | None = None
        self.watch: Callable[[Ensemble], Sequence[Mapping[str, float]]] | None = None
        self.watch_every = 1

    def train_epoch(self, tell: Callable[[int], Any]) -> None:
        """Visit every example once, measure, and write the checkpoint."""
        began = time.perf_counter()
        order = torch.stack([torch.randperm(len(self.y), generator=g) for g in self.generators])
        parts = torch.split(order.to(self.y.device), self.batch_size, dim=1)
        losses = self.x.new_empty(len(parts), len(order))
        for number, rows in enumerate(parts):
            losses[number] = self.step(rows)
            if self.watch is not None:
                self._look(self.epoch * len(parts) + number, self.watch)
            tell(1)
        self._record(losses, self.x.new_tensor([rows.shape[1] for rows in parts]))
        self.epoch += 1
        self.seconds += time.perf_counter() - began
        self._save()

    def _look(self, step: int, watch: Callable[[Ensemble], Sequence[Mapping[str, float]]]) -> None:
        if step % self.watch_every:
            return
        for curves, seen in zip(self.curves, watch(self.ensemble), strict=True):
            for name, value in {"watched_step": step + 1, **seen}.items():
                curves.setdefault(name, []).append(value)

    def _step(self, rows: Int[Tensor, "s N"]) -> Float[Tensor, " s"]:
        x = self.x.index_select(0, rows.reshape(-1)).view(*rows.shape, -1)
        return self.ensemble.step(x, self.y[rows])

    def _record(self, losses: Tensor, sizes: Tensor) -> None:
        """Add to the curves of the members that are still finite."""
        means = (losses.T @ sizes / sizes.sum()).tolist()
        finite = losses.isfinite()
        first = (~finite).int().argmax(0).tolist()
        whole = finite.all(0).tolist()
        curves = {"minibatch_loss": means, **self._measure()}
        for member, kept in enumerate(self.curves):
            if self.diverged[member]:
                continue
            if not whole[member]:
                self.diverged[member] = self.epoch * len(losses) + first[member] + 1
            for name, values in curves.items():
                kept.setdefault(name, []).append(values[member])

    def _measure(self) -> dict[str, list[float]]:
        """Return the losses and the errors of the members on each part."""
        found = {}
        for part, (x, y) in self.parts.items():
            found[f"{part}_loss"], found[f"{part}_error"] = self._judge(x, y)
        if self.recompute:
            x, y = list(self.parts.values())[-1]
            with self.ensemble.measured(self.x[: self.recompute]):
                found["recomputed_loss"], found["recomputed_error"] = self._judge(x, y)
        return found

    def _judge(self, x: Tensor, y: Tensor) -> tuple[list[float], list[float]]:
        loss, wrong = x.new_zeros(len(self.curves)), x.new_zeros(len(self.curves))
        for xs, ys in zip(torch.split(x, 1000), torch.split(y, 1000), strict=True):
            scores = self.ensemble.scores(xs)
            logs = functional.log_softmax(scores, dim=2)
            loss -= logs[:, torch.arange(len(ys)), ys].sum(1)
            wrong += (scores.argmax(2) != ys).sum(1)
        return (loss / len(y)).tolist(), (wrong / len(y)).tolist()

    def mean_error(self) -> float:
        """Return the error that the members have now, on average."""
        return float(np.mean([curves["validation_error"][-1] for curves in self.curves]))

    def records(self, epochs: int) -> list[Record]:
        """Return one record for each member."""
        return [
            Record(
                curves=curves,
                config={"epochs": epochs, "batch_size": self.batch_size, **self.config},
                seed=seed,
                stop=f"diverged at step {step}" if step else f"all {epochs} epochs",
                device=str(self.x.device),
                seconds=self.seconds / len(self.curves),
            )
            for seed, curves, step in zip(
                self.ensemble.seeds, self.curves, self.diverged, strict=True
            )
        ]

    # --- Going on after an interruption

    def resume(self, path: Path | None, epochs: int) -> None:
        """Go on from a checkpoint, if there is one; write the next ones there."""
        self.path = path
        if path is None or not path.exists():
            return
        saved = checkpoints.read(path)
        if saved.get("run") != self._identity() or saved["epoch"] > epochs:
            raise ValueError(
                f"{path} is the checkpoint of another run, or of more than {epochs} epochs; "
                "delete it, or give another file"
            )
        for tensor, value in zip(self.ensemble.tensors(), saved["tensors"], strict=True):
            tensor.copy_(value)
        for generator, state in zip(self.generators, saved["generators"], strict=True):
            generator.set_state(state)
        self.epoch, self.seconds = saved["epoch"], saved["seconds"]
        self.curves, self.diverged = saved["curves"], saved["diverged"]

    def _save(self) -> None:
        if self.path is None:
            return
        content = {
            "run": self._identity(),
            "tensors": self.ensemble.tensors(),
            "generators": [generator.get_state() for generator in self.generators],
            "epoch": self.epoch,
            "seconds": self.seconds,
            "curves": self.curves,
            "diverged": self.diverged,
        }
        checkpoints.write(self.path, content)

    def _identity(self) -> str:
        """Return what must not change between two parts of a run."""
        rates = self.ensemble.rule.rates.flatten().tolist()
        shapes = [tuple(tensor.shape) for tensor in self.ensemble.tensors()]
        return repr(
            (
                self.ensemble.method,
                type(self.ensemble.rule).__name__,
                self.ensemble.seeds,
                rates,
                shapes,
                self.x.dtype,
                self.batch_size,
                self.x.shape,
                sorted(self.config.items()),
            )
        )


def _on_device(examples: Examples, like: Tensor) -> tuple[Tensor, Tensor]:
    x = torch.from_numpy(np.ascontiguousarray(examples.x)).flatten(1).to(like)
    return x, torch.from_numpy(np.ascontiguousarray(examples.y)).to(like.device, torch.int64)
