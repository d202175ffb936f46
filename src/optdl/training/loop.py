"""The one training loop: model, examples, optimizer and hooks in, a record out."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor, nn
from tqdm.auto import tqdm

from optdl.data import Examples
from optdl.records import Record
from optdl.training.checkpoints import Checkpoint, checksum
from optdl.training.hooks import EVENTS, Hook, Schedule, State

__all__ = ["Hook", "Schedule", "State", "graphed", "order_seed", "train", "zero_one"]

Loss = Callable[[Tensor, Tensor], Tensor]
"""Scores and labels of a batch to one number, the mean over the batch."""


@runtime_checkable
class Streamed(Protocol):
    """Examples that are read when they are asked for, such as ``optdl.images.StreamedImages``."""

    y: np.ndarray

    def __len__(self) -> int:
        """Return m."""

    def __getitem__(self, rows: Tensor) -> Tensor:
        """Return the features of these examples, on the CPU."""

    def begin(self, epoch: int) -> None:
        """Prepare for an epoch."""

    def identity(self) -> str:
        """Return what tells these examples from others."""


@runtime_checkable
class Augmentation(Protocol):
    """Changes the features of a minibatch, by numbers that are drawn once an epoch."""

    def draw(self, m: int, generator: torch.Generator) -> Tensor:
        """Return one row of whole numbers for each of m examples."""

    def __call__(self, x: Tensor, draws: Tensor) -> Tensor:
        """Return the features of a minibatch, changed by the rows of its examples."""


Error = Callable[[Tensor, Tensor], Tensor]
"""Scores and labels of a batch to one truth value per example: is it wrong?"""


def zero_one(scores: Tensor, labels: Tensor) -> Tensor:
    """Tell which of m examples are misclassified.

    The answer is the largest of c scores, for classes 0 … c−1; or the sign of a single score, for
    labels +1 and either −1 or 0. A single score of exactly 0, or NaN, is wrong. Raises RuntimeError
    where there is not one label for each example.

    Examples
    --------
    >>> zero_one(torch.tensor([[0.1, 0.9], [0.8, 0.2]]), torch.tensor([1, 1]))
    tensor([False,  True])
    >>> zero_one(torch.tensor([2.0, -3.0]), torch.tensor([1.0, 1.0]))
    tensor([False,  True])
    """
    if scores.ndim == 2 and scores.shape[1] > 1:
        return scores.argmax(dim=1) != labels.reshape(len(scores))
    scores, positive = scores.reshape(len(labels)), labels.reshape(len(labels)) > 0
    return ~torch.where(positive, scores > 0, scores < 0)


def order_seed(seed: int) -> int:
    """Return the seed for the order of the examples, where ``seed`` itself draws the weights.

    Weights and order then come from two streams: the same numbers do not decide both.

    Examples
    --------
    >>> order_seed(0) == order_seed(0), order_seed(0) == order_seed(1)
    (True, False)
    """
    return int(np.random.SeedSequence(seed).spawn(1)[0].generate_state(1)[0])


def train(
    model: nn.Module,
    train_examples: Examples | Streamed,
    optimizer: torch.optim.Optimizer,
    *,
    validation: Examples | Streamed | None = None,
    test: Examples | Streamed | None = None,
    epochs: int,
    batch_size: int,
    hooks: Sequence[Any] = (),
    seed: int = 0,
    loss: Loss = nn.functional.cross_entropy,
    error: Error | None = zero_one,
    config: Mapping[str, Any] | None = None,
    progress: bool = False,
    checkpoint: str | os.PathLike[str] | None = None,
    augmentation: Augmentation | None = None,
    autocast: torch.dtype | None = None,
    cuda_graph: bool = False,
    measure_training: bool = True,
) -> Record:
    """Train a model by minibatches, without replacement, and record its curves.

    The examples lie on the device of the model. A GPU is waited for once an epoch, or as hooks ask.
    Going on from a checkpoint gives the same bits on the same machine, as far as torch's kernels
    do: some on a GPU never give the same twice. On another device it goes on as well, with other
    rounding errors. Source: L1-05, L1-09, L1-24, F-16.

    Raises ValueError where there are no examples, the batch size or the number of epochs is out of
    range, the optimizer moves none of the model's parameters, or the checkpoint is damaged, of
    another run, or of more epochs than asked for; TypeError where a hook has none of the three
    methods, or a state not of tensors, numbers, strings, lists and dicts; FloatingPointError where
    the loss is no longer finite: it says at which step, on a GPU at the end of the epoch.

    Parameters
    ----------
    model : Module
        Maps (n, ...) features to scores. Its first parameter says on which device and with which
        precision to work.
    train_examples : Examples or Streamed
        m examples; each epoch visits all of them once, in a new order.
    optimizer : Optimizer
        Any optimizer of torch over the parameters of the model.
    validation, test : Examples, optional
        What is measured after each epoch: examples by which something is chosen, or nothing.
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
    checkpoint : path, optional
        A file that holds, after each epoch, all that is needed to go on: model, optimizer, hooks,
        generators (of the minibatches, of layers, and torch's global ones) and curves. Where it
        exists, training goes on from it, and ends as if it had never stopped. An interruption
        costs the epoch under way. More epochs may be asked for than before, but nothing else may
        change. Torch's global generators are put where the file says.
    augmentation : object, optional
        What is done to the features of a minibatch on the device, such as
        :class:`optdl.images.PadCropFlip`.
    autocast : dtype, optional
        Run forward passes under ``torch.autocast`` with this type, such as ``torch.bfloat16``.
    cuda_graph : bool
        On a GPU, capture the operations of a step once and replay them (a CUDA graph). Hooks that
        act after the backward pass are captured with it and must not wait for the device:
        ``BNP(model, check_finite=False)``. A learning rate that changes must be a tensor, and the
        optimizer ``fused``. Elsewhere it does nothing.
    measure_training : bool
        Whether to measure the training examples after each epoch.

    Returns
    -------
    Record
        One number per epoch in each curve:

        - ``train_loss``, ``train_error``, ``validation_loss``, ``validation_error``,
          ``test_loss``, ``test_error``: means over all examples, with the parameters at the end of
          the epoch, in evaluation mode; the first two only with ``measure_training``;
        - ``minibatch_loss``: mean over the examples of the loss just before their step;
        - ``gradient_norm``: mean over the steps of ‖g‖ of the minibatch, before any hook acts.

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
    given = {"training": train_examples, "validation": validation, "test": test}
    parts = {
        name.removesuffix("ing"): _tensors(examples, parameter, name)
        for name, examples in given.items()
        if examples is not None
    }
    generator = torch.Generator().manual_seed(seed)
    state = State(model, optimizer, curves={})
    file = None
    if checkpoint is not None:
        # before resume, which puts the optimizer's rates where the file left them
        identity = _run_identity(state, given, batch_size, seed, hooks, config)
        file = Checkpoint(Path(checkpoint), identity, generator, hooks)
        began -= file.resume(state, epochs)
    measured = {name: part for name, part in parts.items() if measure_training or name != "train"}
    epoch = _Epoch(state, *parts["train"], batch_size, loss, hooks, augmentation, autocast)
    if cuda_graph and isinstance(epoch.x, Tensor):
        epoch.advance = graphed(epoch.advance)
    todo = range(state.epoch + 1, epochs + 1) if state.stop is None else ()
    bar = _bar(state.epoch, epochs, len(train_examples), progress)
    for state.epoch in todo:
        model.train()
        epoch.run(generator, bar.update)
        _measure(state, measured, batch_size, loss, error, autocast)
        _call(hooks, "after_epoch", state)
        if file is not None:
            # after the hooks: what they remember, and whether they stop, belongs to this epoch
            file.save(state, time.perf_counter() - began)
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


@dataclass
class _Epoch:
    """Visits every training example once."""

    state: State
    x: Tensor | Streamed
    y: Tensor
    batch_size: int
    loss: Loss
    hooks: Sequence[Any]
    augmentation: Augmentation | None
    autocast: torch.dtype | None

    def __post_init__(self) -> None:
        self.advance: Callable[[Tensor], Tensor] = self._advance

    def run(self, generator: torch.Generator, count_examples: Callable[[int], Any]) -> None:
        """Take the steps of an epoch, and append to the curves."""
        plan, state, results = self._plan(generator), self.state, []
        if not isinstance(self.x, Tensor):
            self.x.begin(state.epoch)
        for rows in torch.split(plan, self.batch_size):
            state.step += 1
            # a CUDA graph writes each result to the same place
            results.append(self.advance(rows).clone())
            _call(self.hooks, "after_step", state)
            count_examples(len(rows))
            if state.stop:
                break
        losses, norms = (values.tolist() for values in torch.stack(results).T)
        for number, value in enumerate(losses, state.step - len(losses) + 1):
            _require_finite(value, number, state)
        sizes = [len(rows) for rows in torch.split(plan, self.batch_size)][: len(losses)]
        total = sum(value * size for value, size in zip(losses, sizes, strict=True))
        state.append(minibatch_loss=total / sum(sizes), gradient_norm=sum(norms) / len(norms))

    def _plan(self, generator: torch.Generator) -> Tensor:
        """Return the order of the examples, and what the augmentation draws for each."""
        # drawn on the CPU, so that both are the same on every device
        order = torch.randperm(len(self.y), generator=generator)[:, None]
        if self.augmentation is not None:
            order = torch.cat([order, self.augmentation.draw(len(self.y), generator)], dim=1)
        # what is read from files is asked for by the CPU
        return order.to(self.y.device) if isinstance(self.x, Tensor) else order

    def _advance(self, plan: Tensor) -> Tensor:
        """Take a step, and return the loss before it and the norm of its gradient."""
        state, rows = self.state, plan[:, 0]
        x = _features(self.x, rows, state.model)
        if self.augmentation is not None:
            x = self.augmentation(x, plan[:, 1:])
        state.optimizer.zero_grad()
        value = self.loss(_scores(state.model, x, self.autocast), self.y[rows])
        # to read it costs nothing on the CPU; a GPU would be waited for
        state.loss = value.detach() if value.is_cuda else value.item()
        if not value.is_cuda:
            _require_finite(value.item(), state.step, state)
        value.backward()  # type: ignore[no-untyped-call]
        # before the hooks, which may precondition or clip the gradient in place
        gradients = [p.grad for p in state.model.parameters() if p.grad is not None]
        norm = torch.nn.utils.get_total_norm(gradients)
        _call(self.hooks, "after_backward", state)
        state.optimizer.step()
        return torch.stack([value.detach().double(), norm.double()])


def _features(x: Tensor | Streamed, rows: Tensor, model: nn.Module) -> Tensor:
    """Return the features of some examples where the model is."""
    if isinstance(x, Tensor):
        return x[rows]
    return x[rows].to(next(model.parameters()), non_blocking=True)


def _scores(model: nn.Module, x: Tensor, autocast: torch.dtype | None) -> Tensor:
    with torch.autocast(x.device.type, autocast, enabled=autocast is not None):
        scores: Tensor = model(x)
    return scores if autocast is None else scores.float()


@torch.no_grad()
def _measure(
    state: State,
    parts: Mapping[str, tuple[Tensor | Streamed, Tensor]],
    batch_size: int,
    loss: Loss,
    error: Error | None,
    autocast: torch.dtype | None,
) -> None:
    state.model.eval()
    for name, (x, y) in parts.items():
        losses = torch.zeros((), dtype=torch.float64, device=y.device)
        errors = torch.zeros((), dtype=torch.int64, device=y.device)
        # large chunks are faster; they bound the memory, and weighting makes their size irrelevant
        chunk = max(batch_size, 1000) if isinstance(x, Tensor) else batch_size
        for rows in torch.split(torch.arange(len(y), device=y.device), chunk):
            ys = y[rows]
            scores = _scores(state.model, _features(x, rows, state.model), autocast)
            losses += loss(scores, ys).double() * len(ys)
            if error is not None:
                errors += error(scores, ys).sum()
        state.append(**{f"{name}_loss": losses.item() / len(y)})
        if error is not None:
            state.append(**{f"{name}_error": errors.item() / len(y)})


def _call(hooks: Sequence[Any], event: str, state: State) -> None:
    for hook in hooks:
        if method := getattr(hook, event, None):
            method(state)


def _bar(done: int, epochs: int, m: int, progress: bool) -> Any:
    """Return a bar that counts examples and shows epochs: the first one has an estimate too."""
    shown = "{l_bar}{bar}| {n:.3g}/{total:.0f} epochs [{elapsed}<{remaining}{postfix}]"
    sizes = {"initial": done * m, "total": epochs * m, "unit_scale": 1 / m}
    return tqdm(**sizes, bar_format=shown, disable=not progress)


def _tensors(
    examples: Examples | Streamed, like: Tensor, part: str
) -> tuple[Tensor | Streamed, Tensor]:
    if len(examples) == 0:
        raise ValueError(f"the {part} examples must be at least one; got none")
    y = torch.from_numpy(np.ascontiguousarray(examples.y))
    y = y.to(like) if y.is_floating_point() else y.to(like.device, torch.int64)
    if not isinstance(examples, Examples):
        return examples, y
    return torch.from_numpy(np.ascontiguousarray(examples.x)).to(like), y


def _require_sense(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    examples: Examples | Streamed,
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
        if not any(hasattr(hook, event) for event in EVENTS):
            raise TypeError(
                f"a hook needs one of the methods {', '.join(EVENTS)}; "
                f"{type(hook).__name__} has none"
            )


def _require_finite(loss: float, step: int, state: State) -> None:
    if math.isfinite(loss):
        return
    rates = ", ".join(f"{float(group['lr']):g}" for group in state.optimizer.param_groups)
    raise FloatingPointError(
        f"the loss is {loss} at step {step}, in epoch {state.epoch}. "
        f"Try a smaller learning rate than {rates}; check the features and the initial parameters "
        "for nan, inf and very large numbers."
    )


# --- A GPU ------------------------------------------------------------------------------------


def graphed(step: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """Return a step whose operations a GPU captures once and then replays (a CUDA graph).

    Without a GPU it is the step itself. On a GPU the first calls run as usual, so that libraries
    start and optimizers allocate what they keep; then each number of rows has one graph, whose
    result the next call overwrites. A step takes rows of the examples to a tensor. It may change
    tensors in place, but must not wait for the device, nor decide by their values.
    """
    graphs: dict[torch.Size, tuple[Any, Tensor, Tensor]] = {}
    calls: dict[torch.Size, int] = {}

    def replay(rows: Tensor) -> Tensor:
        if not rows.is_cuda:
            return step(rows)
        calls[rows.shape] = calls.get(rows.shape, 0) + 1
        if calls[rows.shape] <= 3:
            return _on_side_stream(step, rows)
        if rows.shape not in graphs:
            # a graph reads its input where it lay at the capture: the rows get a place of their own
            given, graph = rows.clone(), torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                result = step(given)
            graphs[rows.shape] = (graph, given, result)
        graph, given, result = graphs[rows.shape]
        given.copy_(rows)
        graph.replay()
        return result

    return replay


def _on_side_stream(step: Callable[[Tensor], Tensor], rows: Tensor) -> Tensor:
    """Take a step on a stream of its own, which a capture asks for beforehand."""
    stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        result = step(rows)
    torch.cuda.current_stream().wait_stream(stream)
    return result


# --- Going on after an interruption -----------------------------------------------------------


def _run_identity(
    state: State,
    given: Mapping[str, Examples | Streamed | None],
    batch_size: int,
    seed: int,
    hooks: Sequence[Any],
    config: Mapping[str, Any] | None,
) -> dict[str, str]:
    """Return what must not change between two parts of a run; large things by a checksum."""
    shapes = {name: (tuple(v.shape), v.dtype) for name, v in state.model.state_dict().items()}
    groups = [
        {name: value for name, value in group.items() if name != "params"}
        for group in state.optimizer.param_groups
    ]
    return {
        "model": checksum(repr(state.model).encode(), repr(shapes).encode()),
        "optimizer": f"{type(state.optimizer).__name__} {groups}",
        "batch size": str(batch_size),
        "seed": str(seed),
        **{
            f"{name} examples": "none" if part is None else _examples_checksum(part)
            for name, part in given.items()
        },
        "hooks": str([type(hook).__name__ for hook in hooks]),
        "config": repr(sorted((config or {}).items())),
    }


def _examples_checksum(examples: Examples | Streamed) -> str:
    if not isinstance(examples, Examples):
        return examples.identity()
    x, y = (np.ascontiguousarray(values) for values in (examples.x, examples.y))
    return checksum(repr((x.shape, x.dtype, y.dtype)).encode(), x.data, y.data)
