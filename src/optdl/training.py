"""The one training loop: model, examples, optimizer and hooks in, a record out."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from tqdm.auto import tqdm

from optdl.data import Examples
from optdl.records import Record

__all__ = ["Hook", "State", "train", "zero_one"]

Loss = Callable[[Tensor, Tensor], Tensor]
"""Scores and labels of a batch to one number, the mean over the batch."""

Error = Callable[[Tensor, Tensor], Tensor]
"""Scores and labels of a batch to one truth value per example: is it wrong?"""

_EVENTS = ("after_backward", "after_step", "after_epoch")


@dataclass
class State:
    """What a hook sees, and where it leaves its word.

    Parameters
    ----------
    model : Module
        The model in training.
    optimizer : Optimizer
        Its optimizer.
    curves : dict
        Names to one number per epoch so far. A hook may add curves of its own.
    epoch, step : int
        Counted from 1; steps are counted through all epochs.
    loss : float
        Loss of the present minibatch, before its step.
    stop : str or None
        Set it to a reason, and training ends after the present step and its measurements.
    """

    model: nn.Module
    optimizer: torch.optim.Optimizer
    curves: dict[str, list[float]]
    epoch: int = 0
    step: int = 0
    loss: float = math.nan
    stop: str | None = None


class Hook:
    """Something to do at the joints of training. All methods do nothing until overridden.

    An object need not inherit from this class: one of the three methods is enough.
    """

    def after_backward(self, state: State) -> None:
        """Act when the gradients are there and the parameters have not moved."""

    def after_step(self, state: State) -> None:
        """Act when the optimizer has moved the parameters."""

    def after_epoch(self, state: State) -> None:
        """Act when the epoch has been measured."""


def zero_one(scores: Tensor, labels: Tensor) -> Tensor:
    """Tell which examples are misclassified.

    Parameters
    ----------
    scores : (m, c), (m, 1) or (m,) tensor
        One score per class, of which the largest is the answer; or one score, whose sign is.
    labels : (m,) tensor
        Classes 0 … c−1; or −1 and +1 for a single score.

    Returns
    -------
    (m,) boolean tensor
        True where the answer is wrong. A single score of exactly 0 is wrong.

    Examples
    --------
    >>> zero_one(torch.tensor([[0.1, 0.9], [0.8, 0.2]]), torch.tensor([1, 1]))
    tensor([False,  True])
    >>> zero_one(torch.tensor([2.0, -3.0]), torch.tensor([1.0, 1.0]))
    tensor([False,  True])
    """
    if scores.ndim == 2 and scores.shape[1] > 1:
        return scores.argmax(dim=1) != labels
    return scores.reshape(-1) * labels <= 0


def train(
    model: nn.Module,
    train_examples: Examples,
    optimizer: torch.optim.Optimizer,
    *,
    validation: Examples | None = None,
    epochs: int,
    batch_size: int,
    hooks: Sequence[Any] = (),
    seed: int = 0,
    loss: Loss = nn.functional.cross_entropy,
    error: Error | None = zero_one,
    config: Mapping[str, Any] | None = None,
    progress: bool = False,
) -> Record:
    """Train a model by minibatches, without replacement, and record its curves.

    Parameters
    ----------
    model : Module
        Maps (n, ...) features to scores. Its first parameter says on which device and with which
        precision to work.
    train_examples : Examples
        m examples; each epoch visits all of them once, in a new order.
    optimizer : Optimizer
        Any optimizer of torch over the parameters of the model.
    validation : Examples, optional
        Examples to measure after each epoch.
    epochs : int
        Passes through the training examples, unless a hook stops earlier.
    batch_size : int
        n ≤ m. The last minibatch of an epoch is smaller where n does not divide m.
    hooks : sequence
        Objects like :class:`Hook`, called in their order.
    seed : int
        Seed of the order of the examples. Torch's global generator is not touched; where the model
        draws from it, as dropout does, seed it yourself.
    loss : callable
        Scores and labels of a minibatch to their mean loss.
    error : callable or None
        Scores and labels to one truth value per example; None for a task that has no 0–1 loss.
    config : mapping, optional
        What else the record should say about the run.
    progress : bool
        Show a progress bar.

    Returns
    -------
    Record
        One number per epoch in each curve:

        - ``train_loss``, ``train_error``, ``validation_loss``, ``validation_error``: means over
          all examples, with the parameters at the end of the epoch, in evaluation mode;
        - ``minibatch_loss``: mean over the examples of the loss just before their step;
        - ``gradient_norm``: mean over the steps of ‖g‖ of the minibatch, before any hook acts.

    Raises
    ------
    ValueError
        If there are no examples, the batch size or the number of epochs is
        out of range, or the optimizer moves none of the model's parameters.
    TypeError
        If a hook has none of the three methods.
    FloatingPointError
        If the loss is no longer finite; the message says at which step.

    Notes
    -----
    Source: L1-05, L1-09, L1-24

    Examples
    --------
    >>> x = np.array([[-1.0], [-2.0], [1.0], [2.0]])
    >>> model = nn.Linear(1, 2, dtype=torch.float64)
    >>> sgd = torch.optim.SGD(model.parameters(), lr=1.0)
    >>> examples = Examples(x, np.array([0, 0, 1, 1]))
    >>> record = train(model, examples, sgd, epochs=20, batch_size=2)
    >>> record.curves["train_error"][-1], record.stop
    (0.0, 'all 20 epochs')
    """
    _require_sense(model, optimizer, train_examples, epochs, batch_size, hooks)
    began, mode = time.perf_counter(), model.training
    parameter = next(model.parameters())
    parts = {"train": _tensors(train_examples, parameter, "training")}
    if validation is not None:
        parts["validation"] = _tensors(validation, parameter, "validation")
    generator = torch.Generator().manual_seed(seed)
    state = State(model, optimizer, curves={})
    bar = tqdm(range(1, epochs + 1), unit="epoch", disable=not progress)
    for state.epoch in bar:
        model.train()
        _run_epoch(state, *parts["train"], batch_size, generator, loss, hooks)
        _measure(state, parts, batch_size, loss, error)
        _call(hooks, "after_epoch", state)
        bar.set_postfix({name: f"{curve[-1]:.3g}" for name, curve in state.curves.items()})
        if state.stop:
            break
    bar.close()
    model.train(mode)
    return Record(
        curves=state.curves,
        config={"epochs": epochs, "batch_size": batch_size, **(config or {})},
        seed=seed,
        stop=state.stop or f"all {epochs} epochs",
        device=str(parameter.device),
        seconds=time.perf_counter() - began,
    )


def _run_epoch(
    state: State,
    x: Tensor,
    y: Tensor,
    batch_size: int,
    generator: torch.Generator,
    loss: Loss,
    hooks: Sequence[Any],
) -> None:
    total, visited, norms = 0.0, 0, []
    for rows in _minibatches(len(y), batch_size, generator):
        rows = rows.to(y.device)
        state.optimizer.zero_grad()
        value = loss(state.model(x[rows]), y[rows])
        state.step, state.loss = state.step + 1, value.item()
        _require_finite(state)
        value.backward()  # type: ignore[no-untyped-call]
        norms.append(_gradient_norm(state.model))
        _call(hooks, "after_backward", state)
        state.optimizer.step()
        _call(hooks, "after_step", state)
        total, visited = total + state.loss * len(rows), visited + len(rows)
        if state.stop:
            break
    _append(state.curves, "minibatch_loss", total / visited)
    _append(state.curves, "gradient_norm", sum(norms) / len(norms))


def _minibatches(m: int, batch_size: int, generator: torch.Generator) -> Iterator[Tensor]:
    # drawn on the CPU, so that the order is the same on every device
    yield from torch.split(torch.randperm(m, generator=generator), batch_size)


@torch.no_grad()
def _measure(
    state: State,
    parts: Mapping[str, tuple[Tensor, Tensor]],
    batch_size: int,
    loss: Loss,
    error: Error | None,
) -> None:
    state.model.eval()
    # large chunks are faster; they bound the memory, and weighting makes their size irrelevant
    chunk = max(batch_size, 1000)
    for name, (x, y) in parts.items():
        losses, errors = 0.0, 0.0
        for xs, ys in zip(torch.split(x, chunk), torch.split(y, chunk), strict=True):
            scores = state.model(xs)
            losses += loss(scores, ys).item() * len(ys)
            errors += 0.0 if error is None else error(scores, ys).sum().item()
        _append(state.curves, f"{name}_loss", losses / len(y))
        if error is not None:
            _append(state.curves, f"{name}_error", errors / len(y))


def _append(curves: dict[str, list[float]], name: str, value: float) -> None:
    curves.setdefault(name, []).append(value)


def _call(hooks: Sequence[Any], event: str, state: State) -> None:
    for hook in hooks:
        if method := getattr(hook, event, None):
            method(state)


def _gradient_norm(model: nn.Module) -> float:
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    return torch.nn.utils.get_total_norm(gradients).item()


def _tensors(examples: Examples, like: Tensor, part: str) -> tuple[Tensor, Tensor]:
    if len(examples) == 0:
        raise ValueError(f"the {part} examples must be at least one; got none")
    x = torch.from_numpy(np.ascontiguousarray(examples.x)).to(like)
    y = torch.from_numpy(np.ascontiguousarray(examples.y))
    return x, y.to(like) if y.is_floating_point() else y.to(like.device, torch.int64)


def _require_sense(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    examples: Examples,
    epochs: int,
    batch_size: int,
    hooks: Sequence[Any],
) -> None:
    m = len(examples)
    if epochs < 1:
        raise ValueError(f"epochs must be at least 1; got {epochs}")
    if m and not 1 <= batch_size <= m:
        raise ValueError(
            f"batch_size must be from 1 to {m}, the number of training examples; got {batch_size}. "
            f"For batch gradient descent use {m}."
        )
    moved = {id(p) for group in optimizer.param_groups for p in group["params"]}
    if not any(id(p) in moved for p in model.parameters()):
        raise ValueError(
            "the optimizer moves none of the model's parameters; make it from "
            "model.parameters() of this very model"
        )
    for hook in hooks:
        if not any(hasattr(hook, event) for event in _EVENTS):
            raise TypeError(
                f"a hook needs one of the methods {', '.join(_EVENTS)}; "
                f"{type(hook).__name__} has none"
            )


def _require_finite(state: State) -> None:
    if math.isfinite(state.loss):
        return
    rates = ", ".join(f"{group['lr']:g}" for group in state.optimizer.param_groups)
    raise FloatingPointError(
        f"the loss is {state.loss} at step {state.step}, in epoch {state.epoch}. "
        f"Try a smaller learning rate than {rates}; check the features and the initial parameters "
        "for nan, inf and very large numbers."
    )
