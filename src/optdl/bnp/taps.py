"""What passes through a layer: statistics of its inputs, pass by pass, until a step uses them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import nn

Dense = nn.Linear
Convolution = nn.Conv1d | nn.Conv2d | nn.Conv3d


class Rows(NamedTuple):
    """What some rows of H were: how many, and the spread of each feature about its mean."""

    examples: int
    rows: int
    positions: int
    """The rows of the output: as many as those of H, but for a convolution that is not 'same'."""
    mean: torch.Tensor
    var: torch.Tensor


class Pass(NamedTuple):
    """One forward pass, and the number of the last backward pass that came through it."""

    rows: Rows
    backward: int


def together(parts: Sequence[Rows]) -> Rows:
    """Return the statistics of all rows of the parts together."""
    whole, *others = parts
    for other in others:
        rows = whole.rows + other.rows
        share = other.rows / rows
        shift = other.mean - whole.mean
        whole = Rows(
            whole.examples + other.examples,
            rows,
            whole.positions + other.positions,
            whole.mean + share * shift,
            (1 - share) * whole.var + share * other.var + share * (1 - share) * shift**2,
        )
    return whole


class Tap:
    """Gathers the inputs of one layer, forward pass by forward pass, until the next step.

    A pass counts once the gradient comes back through it, and for as long as the weight holds
    that gradient. So evaluation, a forward pass that nobody differentiates, and the two passes of
    a checkpoint need no rule of their own.
    """

    LONGEST = 64
    """So many passes are kept apart; a model that nobody steps then holds no more than that."""

    def __init__(self, name: str, before: Callable[[str], None]) -> None:
        self.name, self.before = name, before
        self.passes: list[Pass] = []
        self.seen = self.empty = False

    def __call__(
        self,
        module: nn.Module,
        inputs: tuple[Any, ...],
        named: dict[str, Any],
        output: torch.Tensor,
    ) -> None:
        """Gather the statistics of one forward pass."""
        compiling = torch.compiler.is_compiling()
        if not compiling:
            self.before(self.name)
        if not (torch.is_grad_enabled() and module.weight.requires_grad):
            return
        # compiled code calls nobody during its backward pass: there the mode of the layer decides
        if compiling and not module.training:
            return
        given = channels_first(module, (inputs[0] if inputs else named["input"]).detach())
        self.seen = True
        if given.numel() == 0:
            self.empty = True
            return
        if torch.is_autocast_enabled(given.device.type):
            with torch.autocast(given.device.type, enabled=False):
                rows = moments(given, output)
        else:
            rows = moments(given, output)
        if compiling:
            self._append(Pass(rows, -1))
        else:
            self._wait(rows, output, module)

    def _wait(self, rows: Rows, output: Any, module: Any) -> None:
        """Count a pass when its gradient comes; apart, as no compiler is to read it."""
        weight = module.weight
        output.register_hook(lambda _: self._count(rows, weight))

    def _count(self, rows: Rows, weight: torch.Tensor) -> None:
        """Count a pass, now that a gradient comes back through it on its way to the weight."""
        if not _reaches(weight):
            return
        backward = torch._C._current_graph_task_id()
        kept = [one for one in self.passes if one.rows is not rows]
        if weight.grad is None:  # what other backward passes left there was thrown away
            kept = [one for one in kept if one.backward == backward]
        self.passes = kept
        self._append(Pass(rows, backward))

    def _append(self, new: Pass) -> None:
        if len(self.passes) == self.LONGEST:
            whole = together([one.rows for one in self.passes])
            self.passes = [Pass(whole, self.passes[-1].backward)]
        self.passes.append(new)

    def gathered(self) -> Rows | None:
        """Return the statistics of all passes together, or None if there were none."""
        return together([one.rows for one in self.passes]) if self.passes else None

    def clear(self) -> None:
        """Forget all passes."""
        self.passes = []
        self.seen = self.empty = False


def _reaches(weight: torch.Tensor) -> bool:
    """Tell whether the backward pass under way goes on to this parameter.

    ``torch.autograd.grad(loss, inputs)`` comes through a layer, but leaves its weight out.
    """
    with torch.enable_grad():
        view: Any = weight.view_as(weight)
    try:
        return bool(torch._C._will_engine_execute_node(view.grad_fn.next_functions[0][0]))
    except RuntimeError:  # torch.autograd.grad(loss, weight): it is returned, not accumulated
        return True


def channels_first(module: Any, inputs: torch.Tensor) -> torch.Tensor:
    """Return a dense layer's input as (rows, features), a convolution's as (N, c, ...)."""
    if isinstance(module, Dense):
        return inputs.reshape(-1, inputs.shape[-1])
    return inputs.unsqueeze(0) if inputs.ndim < module.weight.ndim else inputs


def moments(inputs: torch.Tensor, output: torch.Tensor) -> Rows:
    """Return the statistics of the rows that pass through a layer; half precision is widened."""
    inputs = inputs if inputs.dtype == torch.float64 else inputs.float()
    examples, sizes = inputs.shape[0], inputs.shape[2:]
    if not sizes:
        # batch norm's own kernel: half the time of two sums, a twentieth of var_mean's on a CPU
        mean, var = torch.batch_norm_update_stats(inputs, None, None, 0.0)
        return Rows(examples, examples, examples, mean, var)
    axes = (0, *range(2, inputs.ndim))
    mean = inputs.mean(axes, keepdim=True)
    var = (inputs - mean).square_().mean(axes)
    positions = examples * math.prod(output.shape[-len(sizes) :])
    return Rows(examples, examples * math.prod(sizes), positions, mean.flatten(), var)
