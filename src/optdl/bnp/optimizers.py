"""The optimizers that step on what BNP has made: attached to the split form, or looked at."""

from __future__ import annotations

import functools
import sys
import warnings
import weakref
from collections.abc import Callable, Sequence
from types import MethodType
from typing import Any

import torch
from torch.optim.optimizer import Optimizer, register_optimizer_step_pre_hook

from optdl.bnp.layers import Layer

LINEAR = (torch.optim.SGD, torch.optim.ASGD)
"""Optimizers that move θ linearly in the gradients.

P·Opt(Pᵀg) and Opt(PPᵀg) are then the same if Opt treats weight and bias of a layer alike.
"""
ALIKE = (
    *("lr", "weight_decay", "momentum", "dampening", "nesterov", "maximize"),
    *("lambd", "alpha", "t0"),
)
"""What has to be the same for weight and bias of a layer."""


def moves(*optimizers: Optimizer) -> Callable[[torch.Tensor], bool]:
    """Return the test whether one of the optimizers moves a parameter."""
    moved = {id(p) for one in optimizers for group in one.param_groups for p in group["params"]}
    return lambda parameter: id(parameter) in moved


def innermost(optimizer: Any) -> list[Optimizer]:
    """Return the optimizers inside of a wrapper, or of one that leaves the step to them.

    What SAM or Lookahead do around the optimizer that they hold, they do to θ.
    """
    held = {id(v): v for v in getattr(optimizer, "__dict__", {}).values()}
    inner = [each for one in held.values() if isinstance(one, Optimizer) for each in innermost(one)]
    own = [p for group in getattr(optimizer, "param_groups", ()) for p in group["params"]]
    if inner and all(map(moves(*inner), own)):
        return inner
    if not isinstance(optimizer, Optimizer):
        raise TypeError(
            f"expected a torch.optim.Optimizer, got {type(optimizer).__name__}. If it holds "
            "others, attach these; for any other: with bnp.split(): optimizer.step()"
        )
    return [optimizer]


def require_fresh(layers: Sequence[Layer], moved: Callable[[torch.Tensor], bool]) -> None:
    """Refuse to move layers whose gradients a step has left, and a backward pass has added to."""
    mixed = [one for one in layers if one.mixed and any(map(moved, one.module.parameters()))]
    if mixed := list(filter(has_gradient, mixed)):
        raise RuntimeError(
            f"new gradients were added to those that an earlier step has left in "
            f"{[layer.name for layer in mixed]}, which are those of z or PPᵀg. Set all to None "
            "after each step: model.zero_grad(). Where one optimizer accumulates while another "
            "steps, give each a BNP of its own: BNP(model, skip=...)"
        )


def has_gradient(layer: Layer) -> bool:
    """Return whether a parameter of a layer has a gradient that is not zero."""
    gradients = [p.grad for p in layer.module.parameters() if p.grad is not None]
    return any(bool(gradient.any()) for gradient in gradients)


class Attachment:
    """Optimizers whose every step is in the split form, until :meth:`detach`."""

    def __init__(self, bnp: Any, optimizers: Sequence[Optimizer]) -> None:
        self.optimizers, self._bnp = optimizers, bnp
        self._entered, self._depth, self._guarded = False, 0, False
        """Whether θ is z, and how many steps are under way: that of a subclass calls another."""
        self._asked = False
        """Whether the step under way has come by :meth:`_before`, and has called its closure."""
        self._closure: Any = None
        """What a step calls in the place of its closure."""
        self._undo: list[Callable[[], Any]] = []
        for optimizer in optimizers:
            before = optimizer.register_step_pre_hook(self._before)
            after = optimizer.register_step_post_hook(self._after)
            self._undo += [before.remove, after.remove]
            self._guard(optimizer, before.id, after.id)

    def detach(self) -> None:
        """Let the optimizers step on plain gradients again."""
        for undo in self._undo:
            undo()
        self._undo = []
        self._bnp._attached.remove(self)

    def _before(self, optimizer: Optimizer, args: Any, kwargs: Any) -> Any:
        """Enter z; a closure is to make the gradients first, at θ."""
        self._asked = True
        named = [value for name, value in kwargs.items() if "closure" in name]
        closure = next((each for each in (*args[1:2], *named) if callable(each)), None)
        is_inner = closure is self._closure is not None or (self._guarded and self._depth)
        if self._bnp._surroundings.inside or is_inner:
            self._depth += 1
            return None  # in bnp.split(), or of the step of a subclass
        self._depth = 1  # whatever a step that was refused has left
        self._require_one_scale()
        if closure is None:
            self._entered = self._bnp._enter_attached(optimizer)
            return None

        weights = [layer.module.weight for layer in self._bnp._layers]
        before = [weight._version for weight in weights]
        self._asked = False

        def evaluated(*given: Any, **named: Any) -> Any:
            self._asked = True
            if self._entered:  # once more in the same step, as LBFGS does
                return self._bnp._visit(functools.partial(closure, *given, **named))
            if before != [weight._version for weight in weights]:
                raise RuntimeError(
                    f"{type(optimizer).__name__} moves the parameters before it calls its closure, "
                    "as SAM does, when they are not yet z: detach() it, call bnp.step() at the end "
                    "of its closure, and leave a warning aside if it steps with SGD in the end"
                )
            result = closure(*given, **named)
            self._entered = self._bnp._enter_attached(optimizer)
            return result

        def replaced(given: Any) -> Any:
            return evaluated if given is closure else given

        self._closure = evaluated

        return tuple(map(replaced, args)), {key: replaced(kwargs[key]) for key in kwargs}

    def _require_one_scale(self) -> None:
        """Refuse a GradScaler that has unscaled the gradients of some of the optimizers only.

        The bias's gradient is subtracted from the weight's, and may belong to another optimizer.
        """
        optimizers = [each for one in self._bnp._attached for each in one.optimizers]
        frame = sys._getframe() if len(optimizers) > 1 else None
        while frame is not None:
            scaler = frame.f_locals.get("self")
            if isinstance(scaler, torch.amp.GradScaler):
                stages = (scaler._per_optimizer_states[id(one)]["stage"] for one in optimizers)
                if len({stage.name == "READY" for stage in stages}) > 1:
                    raise RuntimeError(
                        "the gradients of one attached optimizer are unscaled and those of another "
                        "are not: call scaler.unscale_(optimizer) for each before the first "
                        "scaler.step"
                    )
            frame = frame.f_back

    def _after(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        self._depth -= 1
        if not self._depth:
            self._leave("leave")

    def _leave(self, how: str) -> None:
        if self._entered:
            self._bnp._leave(how)
            self._entered = False

    def _guard(self, optimizer: Any, before: int, after: int) -> None:
        """Have θ restored where a step is interrupted, and other hooks than those of BNP see θ.

        Torch has no hook for the one, and for the other z is entered last and left first.
        An attribute of the object hides the method, as those of learning rate schedules do.
        """
        hidden, plain = optimizer.__dict__.get("step"), optimizer.step

        @functools.wraps(plain)
        def step(_: Optimizer, *args: Any, **kwargs: Any) -> Any:
            if before not in optimizer._optimizer_step_pre_hooks:  # detached behind a schedule
                return plain(*args, **kwargs)
            optimizer._optimizer_step_pre_hooks.move_to_end(before)
            optimizer._optimizer_step_post_hooks.move_to_end(after, last=False)
            self._asked, self._guarded = False, True
            weights = [layer.module.weight for layer in self._bnp._layers]
            versions = [weight._version for weight in weights]
            try:
                result = plain(*args, **kwargs)
                if not self._asked and versions != [weight._version for weight in weights]:
                    raise RuntimeError(
                        f"the step of {type(optimizer).__name__} moved the parameters without its "
                        "hooks, or without calling its closure, so that it was no step of BNP. "
                        "Leave out attach, and write: with bnp.split(): optimizer.step()"
                    )
                return result
            except BaseException:
                self._leave("restore")
                raise
            finally:
                self._depth, self._guarded = 0, False

        own = optimizer.__dict__["step"] = MethodType(step, optimizer)

        def undo() -> None:
            if optimizer.__dict__.get("step") is not own:
                return  # a schedule has come in front of it
            if hidden is None:
                del optimizer.__dict__["step"]
            else:
                optimizer.__dict__["step"] = hidden

        self._undo.append(undo)


class Watch:
    """Looks at the optimizers that step on what BNP has made of the gradients of some layers."""

    def __init__(self, layers: Sequence[Layer], attached: Sequence[Attachment]) -> None:
        self.layers, self.attached = layers, attached
        self.warned, self.form, self.bad = False, "", ""
        self.alike: weakref.WeakKeyDictionary[Optimizer, Any] = weakref.WeakKeyDictionary()
        """The groups of optimizers that have weight and bias of each layer in one of them."""

    def begin(self, form: str, bad: str = "") -> None:
        """Look at the optimizers that step from now on: after ``"step"``, in a ``"block"``.

        After the block the gradients are those of ``"z"``. ``bad`` says why no optimizer may step.
        """
        global _hook
        self.form, self.bad = form, bad
        _watching.add(self)
        if _hook is None:
            # a hook on all optimizers, since BNP is not told which one will step
            _hook = register_optimizer_step_pre_hook(_look)

    def end(self) -> None:
        """Look no more; the last one takes the hook with it."""
        global _hook
        _watching.discard(self)
        if _hook is not None and not _watching:
            _hook.remove()
            _hook = None

    def look(self, optimizer: Optimizer) -> None:
        """Refuse gradients of z outside of the block; warn where the two forms differ."""
        if any(layer.mixed for layer in self.layers):
            require_fresh(self.layers, moves(optimizer))
        elif (
            self.form == "step" and not self.bad and self.alike.get(optimizer) == _sizes(optimizer)
        ):
            return
        steps = [each for one in self.attached for each in one.optimizers]
        if self.form == "block" or any(each in steps for each in innermost(optimizer)):
            return
        name, moved = type(optimizer).__name__, moves(optimizer)
        layers = [
            (layer, [p for p in layer.module.parameters() if moved(p)]) for layer in self.layers
        ]
        layers = [(layer, parameters) for layer, parameters in layers if parameters]
        if not layers:
            return
        if self.bad:
            # a GradScaler that skips the step asks no optimizer, but for those that look themselves
            if getattr(optimizer, "found_inf", None) is None:
                raise FloatingPointError(self.bad)
        elif self.attached:
            raise RuntimeError(
                f"{name} moves layers of a BNP that is attached to other optimizers: the gradients "
                f"of all are those of z. Attach it as well: bnp.attach(..., {name.lower()})"
            )
        elif self.form == "z":
            if any(layer.holds_used_gradient(p) for layer, own in layers for p in own):
                raise RuntimeError(
                    "optimizer.step() came after the block of bnp.split(), where the parameters "
                    "are no longer those of the gradients. Move it into the block: "
                    "with bnp.split(): optimizer.step(); after detach(), call zero_grad() first"
                )
        elif not self.warned and (reason := self._reason(optimizer, [one for one, _ in layers])):
            self.warned = True
            warnings.warn(
                f"bnp.step() before {name}: {reason}, so the step is not that of BNP and may raise "
                "the loss. Right for any optimizer is the split form, without bnp.step(): "
                "bnp.attach(optimizer), once; or with bnp.split(): optimizer.step()",
                UserWarning,
                stacklevel=4,
            )

    def _reason(self, optimizer: Optimizer, layers: Sequence[Layer]) -> str:
        """Return why Opt(PPᵀg) is not P·Opt(Pᵀg), or an empty string."""
        if type(optimizer) not in LINEAR:
            return (
                "only SGD and ASGD are known to be linear in the gradient; others may undo the "
                "scaling and break the balance of weight and bias"
            )
        groups = {id(p): group for group in optimizer.param_groups for p in group["params"]}
        together = len(layers) == len(self.layers)
        for layer in layers:
            if layer.bias is None or not layer.module.weight.requires_grad:
                together &= layer.module.bias is None  # one that is frozen may thaw
                continue
            weight, bias = (groups.get(id(p)) for p in (layer.module.weight, layer.bias))
            if weight is bias:
                continue
            if weight is None or bias is None:
                return f"it moves only one of weight and bias of {layer.name!r}"
            together = False
            for key in ALIKE:
                one, other = weight.get(key), bias.get(key)
                if one is not other and one != other:
                    return f"weight and bias of {layer.name!r} differ in {key}"
        if together:
            self.alike[optimizer] = _sizes(optimizer)
        return ""


def _sizes(optimizer: Optimizer) -> list[tuple[int, int]]:
    """Return which groups an optimizer has, and of how many parameters."""
    return [(id(group), len(group["params"])) for group in optimizer.param_groups]


_watching: weakref.WeakSet[Watch] = weakref.WeakSet()
_hook: Any = None


def _look(optimizer: Optimizer, args: Any, kwargs: Any) -> None:
    for watch in list(_watching):
        watch.look(optimizer)
