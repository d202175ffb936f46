"""One layer of a network: what passes through it, its running statistics, and P for its gradient.

Each tensor is read once. The forward pass takes the statistics of the rows, the backward pass
counts them, and a step moves the running statistics, computes q², and transforms the gradient. A
grouped convolution is several convolutions side by side: the statistics have one row for each
group, and a dense layer or a plain convolution is one group.
"""

from __future__ import annotations

import copy
import math
import weakref
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel

_exporting = getattr(torch.compiler, "is_exporting", bool)  # PyTorch 2.5 has none
Dense = nn.Linear
Convolution = nn.Conv1d | nn.Conv2d | nn.Conv3d
SMALL = 2**13
"""So many numbers a CPU reads by one slow kernel sooner than by four fast ones."""


# --- The rows of H ----------------------------------------------------------------------------


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
    added: bool = True
    """Whether that pass added to the weight's gradient; ``torch.autograd.grad`` returns it."""


class Mask(NamedTuple):
    """Which rows count, how many these are, and in how many examples."""

    flags: torch.Tensor
    rows: int
    examples: int

    @classmethod
    def of(cls, flags: Any) -> Mask:
        """Return the mask that a user has given as a tensor."""
        if not isinstance(flags, torch.Tensor) or flags.is_floating_point() or not flags.ndim:
            raise ValueError(
                "a mask must be a tensor of bool or integers, (examples,) or (examples, "
                f"positions), that is True where a row counts; got {flags!r:.80}"
            )
        flags = flags.detach().bool()
        examples = flags.flatten(1).any(1) if flags.ndim > 1 else flags
        return cls(flags, int(flags.sum()), int(examples.sum()))

    def fitted(self, name: str, shape: tuple[int, ...]) -> Mask:
        """Return the mask of inputs whose axes, but for the features, have this shape."""
        given, one = tuple(self.flags.shape), len(shape) == 1
        if given == shape[: len(given)]:
            more = shape[len(given) :]
            flags = self.flags.view(*given, *[1] * len(more)).expand(shape)
            return Mask(flags, self.rows * math.prod(more), self.examples)
        if one and shape[0] == self.flags.numel():  # the positions lie one after another
            return Mask(self.flags.flatten(), self.rows, self.rows)
        if one and shape[0] == given[0]:  # the positions are pooled
            return Mask(self.flags.flatten(1).any(1), self.examples, self.examples)
        raise ValueError(
            f"the mask of shape {given} does not fit the input of {name!r}, which has "
            f"{shape} beside its features. Run this part of the model in a block of its "
            "own: with bnp.mask(...), or bnp.mask(None), where all rows count"
        )


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


def statistics(inputs: torch.Tensor, shape: Any, mask: Mask | None) -> Rows | None:
    """Return the statistics of (examples, features, ...), None without rows; half is widened.

    ``shape`` holds the axes of the output that are positions.
    """
    examples, sizes = inputs.shape[0], inputs.shape[2:]
    rows = examples * math.prod(sizes) if mask is None else mask.rows
    count = inputs.numel()
    if not rows or not count:
        return None
    if inputs.dtype not in (torch.float32, torch.float64):
        inputs = inputs.float()  # in float16 the square of 256 is infinite already
    axes = (0, *range(2, inputs.ndim))
    if mask is not None:
        outside = mask.flags.logical_not().to(inputs.device).unsqueeze(1)
        mean = inputs.masked_fill(outside, 0).sum(axes, keepdim=True) / rows
        var = (inputs - mean).masked_fill_(outside, 0).square_().sum(axes) / rows
        positions = rows * math.prod(shape) // math.prod(sizes)
        return Rows(mask.examples, rows, positions, mean.flatten(), var)
    positions = examples * math.prod(shape)
    small = not sizes or inputs.is_cuda or count <= SMALL
    if small and not torch.compiler.is_compiling():  # a compiled graph would end there
        # batch norm's own kernel in place of four
        both = torch.batch_norm_update_stats(inputs, None, None, 0.0)
        return Rows(examples, rows, positions, *both)
    # in two passes: the difference of E h² and μ² loses its digits where the mean is large
    mean = inputs.mean(axes, keepdim=True)
    var = (inputs - mean).square_().mean(axes)
    return Rows(examples, rows, positions, mean.flatten(), var)


# --- A layer ----------------------------------------------------------------------------------


class Counted(torch.autograd.Function):
    """The identity, whose backward pass adds 1 to the gradient of an anchor, also if compiled."""

    # functions without annotations: those with are wrapped in the tests, and a compiler stops there
    forward = staticmethod(lambda ctx, output, anchor: output.view_as(output))
    backward = staticmethod(lambda ctx, gradient: (gradient, torch.ones(())))


class Surroundings:
    """What the layers of a model have in common: positions, mask, processes; and where θ is."""

    def __init__(self, positions: str, group: Any) -> None:
        self.positions, self.group = positions, group
        self.inside, self.masked = False, False
        """Whether θ is elsewhere, and whether a pass since the last step had a mask."""
        self.running: set[int] = set()
        """The backward passes under way: one that runs another one waits for it."""
        self.mask: Mask | None = None
        self.anchor, self.differentiated = self._new_anchor(), 0
        """What compiled passes are attached to, and how many were differentiated."""

    def __getstate__(self) -> dict[str, Any]:
        """Return what a file can hold: no group of processes, and no hook."""
        kept: dict[str, Any] = {"inside": False, "masked": False, "running": set()}
        kept |= {"mask": None, "anchor": None}
        return vars(self) | kept | {"group": self.group if self.group is None else "auto"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Be a copy."""
        vars(self).update(state, anchor=self._new_anchor())

    def _new_anchor(self) -> torch.Tensor:
        def count(gradient: torch.Tensor) -> None:
            self.differentiated += int(gradient)

        anchor: Any = torch.zeros((), requires_grad=True)
        anchor.register_hook(count)
        return anchor

    def __deepcopy__(self, memo: dict[int, Any]) -> Surroundings:
        """Return a copy with the same group, which cannot be copied."""
        twin = copy.copy(self)
        twin.group = self.group
        return twin

    def look(self, name: str) -> None:
        """Refuse a forward pass that would go wrong; note the processes that share its batch."""
        if self.inside:
            raise RuntimeError(
                f"the layer {name!r} ran inside bnp.split(), where its parameters are those of z. "
                "Run the model before or after the block; for optimizers that run it in their "
                "step, such as LBFGS: bnp.attach(optimizer) in the place of the block"
            )
        if torch._C._current_graph_task_id() == -1:
            self.running.clear()  # one of them was interrupted
        # DistributedDataParallel notes itself there for the time of its forward pass
        active = getattr(DistributedDataParallel, "_active_ddp_module", None)
        if active is None:
            return
        if active._join_config.enable:
            raise RuntimeError(
                "BNP exchanges statistics in each step, and a process that has no more minibatches "
                "would not answer under torch.distributed.algorithms.join.Join. Give all processes "
                "the same number of minibatches, as DistributedSampler does"
            )
        if self.group == "auto":
            self.group = active.process_group

    def backward(self) -> int:
        """Return the number of the backward pass under way; of nested ones that of the outermost.

        A reentrant checkpoint or an adjoint runs one inside; until it ends, ``grad`` is None.
        """
        number = torch._C._current_graph_task_id()
        if number not in self.running:
            self.running.add(number)
            engine = torch.autograd.Variable._execution_engine
            engine.queue_callback(partial(self.running.discard, number))
        return min(self.running)

    def processes(self) -> Any:
        """Return the group to exchange statistics with, None for a process by itself."""
        if self.group != "auto":
            return self.group
        if not (distributed.is_available() and distributed.is_initialized()):
            return None
        if distributed.get_world_size() > 1:
            raise RuntimeError(
                f"{distributed.get_world_size()} processes run, but BNP found no "
                "DistributedDataParallel around the model. Give BNP what you train: "
                "BNP(DistributedDataParallel(model)). Where gradients are averaged in another "
                "way: BNP(model, process_group=torch.distributed.group.WORLD); where each process "
                "trains alone: BNP(model, process_group=None)"
            )
        return None


class Layer:
    """One preconditioned layer. It is the forward hook of its module.

    A pass counts once the gradient comes back through it, and for as long as the weight holds
    that gradient. So evaluation, a forward pass that nobody differentiates, and the two passes of
    a checkpoint need no rule of their own.
    """

    MAX_PASSES = 64
    """So many passes are kept apart; a model that nobody steps then holds no more than that."""

    rho: float
    eps1: float
    eps2: float

    def __init__(
        self, name: str, module: Any, surroundings: Surroundings, own: dict[str, Any]
    ) -> None:
        self.name, self.module, self.surroundings, self.own = name, module, surroundings, own
        self.scale: Callable[[int, int, float], float] = own.pop("q2")
        groups, weight = getattr(module, "groups", 1), module.weight
        exact = torch.float64 if weight.dtype == torch.float64 else torch.float32
        with torch.inference_mode(False):
            self.mean = torch.zeros(groups, weight.shape[1], dtype=exact, device=weight.device)
            self.var = torch.ones_like(self.mean)
        self.q2, self.steps = 0.0, 0
        """The scale of the last step, 0 before the first one; and how many there were."""
        self.used: list[tuple[weakref.ref[torch.Tensor], int]] = []
        """The gradients that the last step left, and which version of each."""
        self.passes: list[Pass] = []
        self.merged: dict[int, weakref.ref[torch.Tensor]] = {}
        """The means of those passes that are parts of the first one, while their graphs live."""
        self.seen = self.empty = self.mixed = False
        """Whether it ran, without rows; and whether a used gradient has a new one added to it."""
        self.hook = module.register_forward_hook(self, with_kwargs=True, prepend=True)

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy takes along: all but the gradient that was used, which it has not."""
        return vars(self) | {"used": [], "merged": {}}

    def __call__(
        self,
        module: Any,
        inputs: tuple[Any, ...],
        named: dict[str, Any],
        output: torch.Tensor,
    ) -> Any:
        """Take the statistics of one forward pass; a compiled one returns the output, counted."""
        compiling = torch.compiler.is_compiling()
        if not compiling:
            self.surroundings.look(self.name)
            if not output.requires_grad or _vectorized():
                return None
        if not (torch.is_grad_enabled() and module.weight.requires_grad):
            return None
        # compiled code calls nobody during its backward pass: there the mode of the layer decides
        if compiling and (_exporting() or not module.training):
            return None
        self.seen = True
        given = (inputs[0] if inputs else named["input"]).detach()
        if torch.is_autocast_enabled(given.device.type):
            with torch.autocast(given.device.type, enabled=False):
                rows = self._rows(module, given, output.shape)
        else:
            rows = self._rows(module, given, output.shape)
        if rows is None:
            self.empty = True
        elif compiling:
            self._append(Pass(rows, -1))
            identity: Any = Counted
            return identity.apply(output, self.surroundings.anchor)
        else:
            self._wait(rows, output, module.weight, inputs[0] if inputs else named["input"])
        return None

    def _rows(self, module: Any, given: torch.Tensor, shape: torch.Size) -> Rows | None:
        """Return the statistics of the input of a layer, as (examples, features, ...)."""
        if given.layout is not torch.strided or given.is_nested:
            raise ValueError(
                f"the input of {self.name!r} is sparse or nested, and BNP reads dense tensors: "
                "x.to_dense(); or torch.nested.to_padded_tensor(x, 0.0), in a block bnp.mask(rows)"
            )
        dense = isinstance(module, Dense)
        if not dense and given.ndim < module.weight.ndim:
            given = given.unsqueeze(0)
        mask = self.surroundings.mask
        if mask is not None:
            others = given.shape[:-1] if dense else (given.shape[0], *given.shape[2:])
            mask = mask.fitted(self.name, tuple(others))
        if not dense:
            return statistics(given, shape[2 - module.weight.ndim :], mask)
        if given.ndim > 2 and self.surroundings.positions == "map":
            return statistics(given.movedim(-1, 1), given.shape[1:-1], mask)
        if mask is not None:
            mask = Mask(mask.flags.reshape(-1), mask.rows, mask.rows)
        return statistics(given.reshape(math.prod(given.shape[:-1]), given.shape[-1]), (), mask)

    def _wait(self, rows: Rows, output: Any, weight: torch.Tensor, given: Any) -> None:
        """Count a pass when its gradient comes, or that of the gradient of its input."""
        if not weight.is_leaf:  # pruned since: the next step refuses it
            return
        unmasked = self.surroundings.masked and self.surroundings.mask is None
        late = unmasked and torch._C._current_graph_task_id() != -1
        view: Any = weight.view_as(weight)
        node = view.grad_fn.next_functions[0][0]

        def count(_: torch.Tensor) -> None:
            self._count(rows, weight, node, late)

        def count_both(_: torch.Tensor) -> None:
            self._count(rows, weight, node, late)
            if given.requires_grad and torch.is_grad_enabled():
                # with create_graph=True the gradient of the input is a function of the weight, and
                # a loss may reach the weight through it alone, as a penalty on slopes does
                def once(gradient: Any) -> None:
                    handle.remove()
                    if gradient.requires_grad:
                        gradient.register_hook(count)

                handle = given.register_hook(once)

        output.register_hook(count_both)

    def _count(self, rows: Rows, weight: torch.Tensor, node: Any, late: bool) -> None:
        """Count a pass, now that a gradient comes back through it on its way to the weight."""
        if late:
            raise RuntimeError(
                f"the layer {self.name!r} ran again in the backward pass, in a reentrant "
                "checkpoint, outside of bnp.mask. Put loss.backward() into the block as well"
            )
        added = _executes(node) if weight.requires_grad else None  # frozen since
        own = self.module.weight
        if added is None or (added and weight is not own):  # functional_call had another one
            return
        backward = self.surroundings.backward()
        # with retain_graph=True one pass can be differentiated several times: its rows count once
        kept = [one for one in self.passes if one.rows is not rows]
        if own.grad is None:  # what was added there is thrown away; what was returned may not be
            now = (backward, -1)  # compiled passes do not tell theirs
            kept = [one for one in kept if one.backward in now or not (one.added or added)]
        if not kept or kept[0] is not self.passes[0]:
            self.merged = {}
        self.passes = kept
        known = self.merged.get(id(rows.mean))
        if known is None or known() is not rows.mean:
            self._append(Pass(rows, backward, added))
        if added or self.mixed:
            old = [
                p.grad
                for p in self.module._parameters.values()
                if p is not None and p.requires_grad and (self.mixed or self.holds_used_gradient(p))
            ]
            self.mixed = any(gradient is not None and bool(gradient.any()) for gradient in old)

    def _append(self, new: Pass) -> None:
        if len(self.passes) == self.MAX_PASSES:
            parts = [*self.merged.values(), *(weakref.ref(one.rows.mean) for one in self.passes)]
            self.merged = {id(mean): part for part in parts if (mean := part()) is not None}
            whole = together([one.rows for one in self.passes])
            self.passes = [self.passes[-1]._replace(rows=whole)]
        self.passes.append(new)

    def gathered(self) -> Rows | None:
        """Return the statistics of all passes together, or None if there were none."""
        return together([one.rows for one in self.passes]) if self.passes else None

    def clear(self) -> None:
        """Forget all passes."""
        self.passes = []
        self.seen = self.empty = False

    # --- A step -------------------------------------------------------------------------------

    def update(self, gathered: Rows, corrected: bool) -> None:
        """Take the gathered statistics into the running ones: steps 1 and 2.

        Corrected averages divide those that begin at zero by 1 − ρᵗ, as Adam's do: the weight of
        the new statistics is then (1 − ρ)/(1 − ρᵗ).
        """
        if corrected and self.mean.is_cuda and torch.cuda.is_current_stream_capturing():
            raise RuntimeError("a CUDA graph would repeat the first weight of corrected averages")
        self.steps += 1
        rate = (1 - self.rho) / (1 - self.rho**self.steps) if corrected else 1 - self.rho
        mean, var = gathered.mean, gathered.var
        if len(self.mean) > 1:
            mean, var = mean.view_as(self.mean), var.view_as(self.mean)
        if (self.mean.device, self.mean.dtype) != (mean.device, mean.dtype):  # the model moved
            self.mean, self.var = self.mean.to(mean), self.var.to(mean)
        self.mean.lerp_(mean, rate)
        if gathered.rows == 1:  # one row has no spread: it is measured from the running mean
            var = (mean - self.mean).square_()
        self.var.lerp_(var, rate)
        # a dense layer is a convolution whose examples have one position each
        columns = self.mean.shape[1] * math.prod(self.module.weight.shape[2:])
        self.q2 = self.scale(columns, gathered.examples, gathered.positions / gathered.examples)

    @property
    def bias(self) -> torch.Tensor | None:
        """The bias, if the layer has one that is trained."""
        bias = self.module.bias
        trained = isinstance(bias, torch.Tensor) and bias.requires_grad and bias.grad is not None
        return bias if trained else None

    def aligned(self, statistic: torch.Tensor) -> torch.Tensor:
        """Shape a (groups, inputs) statistic so that it meets the weight output by output."""
        weight, groups = self.module.weight, statistic.shape[0]
        if weight.ndim == 2:
            return statistic
        if groups > 1:
            statistic = statistic.repeat_interleave(len(weight) // groups, 0)
        return statistic.view(*statistic.shape, *[1] * (weight.ndim - 2))

    def smoothed(self, centered: bool) -> torch.Tensor:
        """Return q² times the variance of step 3, or the mean square where no bias is there."""
        spread = self.var if centered else self.var + self.mean**2
        smoothed = torch.add(spread, spread.amax(1, keepdim=True), alpha=self.eps1)
        return self.aligned(smoothed.add_(self.eps2).mul_(self.q2))

    def taken_up(self, weight: torch.Tensor) -> torch.Tensor:
        r"""Return what the rows of a weight make of the mean, :math:`w^T\mu`."""
        if weight.ndim == 2 and weight.dtype == self.mean.dtype:
            return weight @ self.mean[0]
        return (weight * self.aligned(self.mean)).flatten(1).sum(1)

    def precondition(self) -> None:
        """Transform the gradients in place: steps 3 to 5."""
        weight, bias, center = self.module.weight.grad, self.bias, self.mean
        inverse = self.smoothed(bias is not None).reciprocal_()
        if bias is None:
            weight.mul_(inverse.to(weight.dtype))
            return
        outputs: Any = bias.grad
        if weight.ndim == 2 and weight.dtype == inverse.dtype:
            weight.addcmul_(outputs.unsqueeze(1), center, value=-1).mul_(inverse)
            # step 5 uses the weight's gradient that step 4 has made, and so comes after it
            outputs.div_(self.q2).addmv_(weight, center[0], alpha=-1)
            return
        # any shape and precision, computed in that of the statistics
        wide = outputs.to(inverse.dtype)
        column = wide.view(-1, *[1] * (weight.ndim - 1))
        new = (weight - column * self.aligned(center)) * inverse
        weight.copy_(new)
        outputs.copy_(wide / self.q2 - self.taken_up(new))

    def mark(self) -> None:
        """Remember the gradients, which a step has used."""
        found = [p.grad for p in self.module._parameters.values() if p is not None]
        # weak references, or zero_grad would not free the memory of the gradients
        self.used = [(weakref.ref(g), g._version) for g in found if g is not None]

    def has_unseen_gradient(self) -> bool:
        """Tell whether a gradient is there that came past the forward passes of this layer.

        Zeros are none; a frozen layer, or one whose turn is later, may hold that of an old step.
        """
        weight = self.module.weight
        if weight.grad is None or not weight.requires_grad:
            return False
        return not self.holds_used_gradient(weight) and bool(weight.grad.any())

    def holds_used_gradient(self, parameter: torch.Tensor) -> bool:
        """Tell whether the gradient of a parameter is still one that :meth:`mark` has seen."""
        gradient = parameter.grad
        # zero_grad(set_to_none=False) keeps the tensor, and every change of it raises its version
        return gradient is not None and any(
            gradient is used() and gradient._version == version for used, version in self.used
        )


def _vectorized() -> bool:
    """Tell whether ``torch.func.vmap`` is at work, under which no layer sees the rows."""
    stack = torch._C._functorch.get_interpreter_stack() or ()
    return any(one.key() == torch._C._functorch.TransformType.Vmap for one in stack)


def _executes(node: Any) -> bool | None:
    """Tell whether the backward pass under way adds to the gradient of the parameter of a node.

    ``torch.autograd.grad(loss, weight)`` returns it. None: the pass leaves the weight out, as that
    of ``torch.autograd.grad(loss, inputs)``.
    """
    try:
        return torch._C._will_engine_execute_node(node) or None
    except RuntimeError:  # so the engine says that it is returned
        return False
