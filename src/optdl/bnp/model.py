"""``BNP(model)``: preconditioning in any training loop."""

from __future__ import annotations

import math
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

import torch
from torch import nn

from optdl.bnp.coordinates import Coordinates
from optdl.bnp.layers import Layer, Mask, Rows, Surroundings
from optdl.bnp.optimizers import (
    Attachment,
    Watch,
    has_gradient,
    innermost,
    moves,
    require_fresh,
)
from optdl.bnp.processes import group_around, over_processes, unwrapped
from optdl.bnp.support import selected, supported_layers

CONSTANTS = ("rho", "eps1", "eps2")


def _paper(columns: int, examples: int, positions: float) -> float:
    return max(columns / examples, math.sqrt(positions))


def _off(columns: int, examples: int, positions: float) -> float:
    return 1.0


SCALES: dict[Any, Any] = {"paper": _paper, "off": _off}


class BNP:
    r"""Batch Normalization Preconditioning for all dense and convolutional layers of a model.

    The network stays as it is, also at inference. Attach the optimizer, once::

        bnp = BNP(model)
        bnp.attach(optimizer)           # or several: bnp.attach(muon, adamw)
        for x, y in batches:
            optimizer.zero_grad()
            loss_function(model(x), y).backward()
            optimizer.step()            # P Opt(Pᵀg)

    Each ``nn.Linear`` follows Algorithm 2 and each convolution (``nn.Conv1d`` to ``nn.Conv3d``)
    Algorithm 3, with the running mean and variance of the layer's input. Other layers keep their
    gradient; :meth:`report` names them. Source: P-14, P-15, P-20, P-24, P-25.

    **Three forms.** An attached optimizer moves θ by :math:`P\,\mathrm{Opt}(P^Tg)`, which is right
    for any optimizer. :meth:`split` is a block that does the same by hand. :meth:`step` makes the
    gradient :math:`PP^Tg`, without touching the parameters. That is the same for an optimizer which
    multiplies the gradients of weight and bias of a layer by one number, as SGD and momentum do
    where both have the same rate, decay and momentum; elsewhere ``step`` warns.

    **What counts.** A forward pass counts once a backward pass comes through it to the weight, and
    until a step uses it or the weight's gradient is set to None. So evaluation, in either mode, and
    a forward pass that nobody differentiates leave no trace. The statistics are those of all rows
    since the last step, and N counts them all. In a compiled model a pass counts when it runs, if
    its layer is in training mode: where nobody uses its gradient, call :meth:`reset`.

    :ref:`What works with what <bnp-what-works>` has optimizers, loops, wrappers, precision and
    kinds of layers line by line. Raises ValueError where an argument is out of range or names no
    module, the model has a layer that BNP cannot handle, or a layer has a BNP already; the message
    names the layer and a remedy.

    Parameters
    ----------
    model : nn.Module
        The network; also one that is wrapped in ``DistributedDataParallel`` or compiled.
    rho : float
        ρ in [0, 1): the weight of the old statistics in the new ones.
    eps1, eps2 : float
        What is added to the variance: :math:`\epsilon_1\max\sigma^2 + \epsilon_2`.
    corrected : bool
        Whether the running averages are divided by :math:`1-\rho^t`, as Adam's are. P is then whole
        from the first step on, unless that has one row; and the best learning rate is smaller.
    q2 : "paper", "off" or callable
        The scale q² of a layer: the paper's, 1, or ``q2(columns, examples, positions)``, where a
        row of the weight has so many columns.
    constants : mapping
        What ``rho``, ``eps1``, ``eps2`` and ``q2`` are in some layers, by name or type as in
        ``skip``: ``{nn.Conv2d: {"q2": "off"}, "head": {"rho": 0.9}}``. Later entries come first.
    skip : sequence of str and types
        Modules to leave alone, with all they contain: by name, or all of a type.
    positions : "rows" or "map"
        What the axes between the first and the last are at a dense layer. More rows, for a mean
        loss over all positions: :math:`q^2 = \max\{n/(BT), 1\}`. Or a map, for a mean loss over
        examples: :math:`q^2 = \max\{n/B, \sqrt T\}`, as in ``nn.Conv1d`` with kernel size 1.
    check_finite : bool or "raise"
        Whether each step looks for NaN and infinity among the inputs of the layers. On a GPU
        this waits for the device. Such a minibatch changes neither statistics nor gradients, which
        are not finite themselves: a ``GradScaler`` skips its step, and any other step of the
        optimizer raises the error. With ``"raise"`` it comes from ``bnp.step()`` at once.
    split : bool
        Which form :func:`optdl.training.train` gets from this hook: ``step``, or ``attach``.
    process_group : process group, None or "auto"
        Processes that share a batch. ``"auto"`` finds those of ``DistributedDataParallel``; None is
        for processes that train each on its own.

    Examples
    --------
    >>> model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
    >>> bnp, adam = BNP(model), torch.optim.Adam(model.parameters())
    >>> attachment = bnp.attach(adam)
    >>> model(torch.ones(5, 3)).mean().backward()
    >>> adam.step()
    >>> bnp
    BNP(layers=['0', '2'], rho=0.99, eps1=0.01, eps2=0.0001)
    """

    def __init__(
        self,
        model: nn.Module,
        rho: float = 0.99,
        eps1: float = 1e-2,
        eps2: float = 1e-4,
        *,
        corrected: bool = False,
        q2: str | Callable[[int, int, float], float] = "paper",
        constants: Mapping[str | type[nn.Module], Mapping[str, Any]] = MappingProxyType({}),
        skip: Sequence[str | type[nn.Module]] = (),
        positions: str = "rows",
        check_finite: bool | str = True,
        split: bool = False,
        process_group: Any = "auto",
    ) -> None:
        _require_constants(rho, eps1, eps2, q2)
        self.rho, self.eps1, self.eps2, self.check_finite = rho, eps1, eps2, check_finite
        self.corrected = corrected
        if positions not in ("rows", "map"):
            raise ValueError(f"positions must be 'rows' or 'map', got {positions!r}")
        group = group_around(model) if process_group == "auto" else process_group
        self._splits, self._surroundings = split, Surroundings(positions, group)
        self._model, self._skip = unwrapped(model), skip
        found = list(supported_layers(self._model, skip))
        chosen = [(selected(self._model, (key,)), values) for key, values in constants.items()]
        self._layers: list[Layer] = []
        for name, module in found:
            _require_free(name, module)
            own: dict[str, Any] = {"q2": q2}
            for modules, values in chosen:
                own |= values if id(module) in modules else {}
            _require_constants(**{"rho": rho, "eps1": eps1, "eps2": eps2} | own)
            own["q2"] = SCALES.get(own["q2"], own["q2"])
            self._layers.append(Layer(name, module, self._surroundings, own))
        self._shape = _shape(self._model)
        _living.add(self)
        self._attached: list[Attachment] = []
        self._watch = Watch(self._layers, self._attached)
        self._bad, self._hooked = "", False
        self._z: list[Coordinates] = []
        self._entered: list[Coordinates] = []

    def __repr__(self) -> str:
        """Return the layers by name, and the constants."""
        names = [layer.name for layer in self._layers]
        return f"BNP(layers={names}, rho={self.rho}, eps1={self.eps1}, eps2={self.eps2})"

    @torch.no_grad()
    def step(self) -> None:
        """Transform the gradients of all layers in place, with the inputs seen since the last step.

        Call it between ``loss.backward()`` and ``optimizer.step()``, which may be SGD or ASGD, with
        the same rate, decay and momentum for weight and bias of each layer. It warns once where
        this is not so: see :meth:`attach`.

        Raises
        ------
        RuntimeError
            If no gradient came through a layer since the last step, or came past all its forward
            passes; if several processes run and nothing says how they share a batch; if an
            optimizer is attached.
        FloatingPointError
            If the inputs of a layer hold NaN or infinity and ``check_finite`` is ``"raise"``;
            otherwise the optimizer's step raises it.
        ValueError
            If all inputs were empty.
        """
        if self._attached:
            raise RuntimeError(
                "the optimizer is attached, and takes P into its step by itself: leave bnp.step() "
                "out, or detach() what bnp.attach(optimizer) has returned"
            )
        for layer in self._update():
            layer.precondition()
        if not torch.compiler.is_compiling():
            self._mark()
            self._watch.begin("step", self._bad)

    def attach(self, optimizer: Any, *others: Any) -> Attachment:
        """Let each ``step()`` of these optimizers be in the split form (Source: F-11).

        Attach all optimizers that move the layers. They may take a closure, also one that they call
        several times, as LBFGS does: P stays in a step. Schedules, ``state_dict`` and a
        ``GradScaler`` work as without BNP, and an interrupted step leaves θ as it was. What happens
        before ``step()``, such as clipping, sees the plain gradient; :meth:`split` has a place for
        the clipping of :math:`P^Tg`. After it the gradients are those of z, until ``zero_grad``. A
        wrapper, and SAM or Lookahead around an optimizer, stand for the one that they hold: all
        else they do to θ. The result's ``detach()`` ends the attachment, as :meth:`remove` does. A
        copy of an optimizer is not attached. An optimizer that is attached already, or moves none
        of the layers, raises ValueError. What is no optimizer of torch, and holds none, raises
        TypeError.

        >>> layer = nn.Linear(2, 1)
        >>> bnp, adam = BNP(layer), torch.optim.AdamW(layer.parameters())
        >>> attachment = bnp.attach(adam)
        >>> layer(torch.ones(4, 2)).sum().backward()
        >>> adam.step()
        >>> attachment.detach()
        """
        optimizers = [one for each in (optimizer, *others) for one in innermost(each)]
        if any(each in one.optimizers for one in self._attached for each in optimizers):
            raise ValueError("the optimizer is attached already: detach() it first")
        parameters = [p for layer in self._layers for p in layer.module.parameters()]
        if not any(any(map(moves(each), parameters)) for each in optimizers):
            raise ValueError(
                "the optimizer moves no parameter of the layers that BNP preconditions: attach "
                "that of the same model, after a copy that of the copy"
            )
        attachment = Attachment(self, optimizers)
        self._attached.append(attachment)
        self._watch.begin("z")
        return attachment

    @contextmanager
    def split(self) -> Iterator[None]:
        r"""Let an optimizer work on z, where θ = Pz: any optimizer, in the place of :meth:`step`.

        .. math:: \Delta\theta = P\,\mathrm{Opt}(P^Tg), \qquad P = \tfrac1q UD

        In the block the parameters of each layer hold :math:`z = P^{-1}\theta` and their gradients
        :math:`P^Tg`. At its end θ moves by :math:`P(z' - z)`, so that it has the same bits again
        where the optimizer did nothing. After an exception θ is as it was before the block; the
        gradients remain those of z. It raises what :meth:`step` raises, and RuntimeError at a
        forward pass in the block or at an optimizer's step after it, on gradients of z.
        Source: F-11.

        >>> layer = nn.Linear(2, 1)
        >>> bnp, adam = BNP(layer), torch.optim.AdamW(layer.parameters())
        >>> layer(torch.ones(4, 2)).sum().backward()
        >>> with bnp.split():
        ...     norm = nn.utils.clip_grad_norm_(layer.parameters(), 1.0)
        ...     adam.step()
        """
        self._pull()
        self._enter(lambda _: True)
        try:
            yield
            self._leave("leave")
        except BaseException:
            self._leave("restore")
            raise

    @torch.no_grad()
    def _pull(self) -> None:
        """Take the passes into P, and make Pᵀg of the gradients."""
        self._update()
        weights = ((one, one.module.weight) for one in self._layers if one.q2)
        ready = [one for one, w in weights if w.requires_grad and w.grad is not None]
        self._z = [] if self._bad else [Coordinates(layer) for layer in ready]
        for part in self._z:
            part.pull()
        self._mark()

    def _mark(self) -> None:
        for layer in self._layers:
            layer.mark()

    @torch.no_grad()
    def _enter(self, moved: Callable[[torch.Tensor], bool]) -> None:
        """Put z in the place of θ, in the layers with a parameter that is moved."""
        if self._bad:
            self._watch.begin("step", self._bad)
            return
        self._watch.begin("block")
        self._entered = [z for z in self._z if moved(z.weight) or moved(z.layer.module.bias)]
        try:
            for part in self._entered:
                part.enter()
        except BaseException:
            self._leave("restore")
            raise
        self._surroundings.inside = True

    @torch.no_grad()
    def _leave(self, how: str) -> None:
        """Return to θ: with what the optimizer did ("leave"), or as it was ("restore")."""
        for part in self._entered:
            getattr(part, how)()
        for part in self._entered:  # until all have left, an interruption takes all back
            part.before = None
        self._entered = []
        self._surroundings.inside = False
        self._mark()  # again: fused optimizers write into the gradients
        self._watch.begin("z")

    def _enter_attached(self, optimizer: torch.optim.Optimizer) -> bool:
        """Enter z for a step of an attached optimizer, if there is anything to step on.

        Several optimizers step one after another on gradients that the first one pulled.
        """
        layers, moved = self._layers, moves(optimizer)
        for layer in layers if torch._C._current_graph_task_id() != -1 else ():  # in backward()
            weight, bias = layer.module.weight, layer.module.bias
            early = weight.grad is None and bias is not None and bias.grad is not None
            if early and weight.requires_grad and moved(bias):
                raise RuntimeError(
                    f"a step on the bias of {layer.name!r} before the gradient of its weight is "
                    "there, as in a hook of each parameter: step after backward()"
                )
        # each of several optimizers may set its own to None after its step
        biases = (z.bias is not None and z.layer.holds_used_gradient(z.bias) for z in self._z)
        if all(layer.module.weight.grad is None for layer in layers) and not any(biases):
            return False
        require_fresh(layers, moved)
        fresh = any(one.passes or one.empty or one.has_unseen_gradient() for one in layers)
        if not (fresh or self._z or any(map(has_gradient, layers))):
            self._bad = ""  # zeros, as before the first pass
            return False
        if fresh or not (self._z or self._bad):
            self._pull()
        if self._bad:
            # a GradScaler that skips the step asks no optimizer, but for those that look themselves
            if getattr(optimizer, "found_inf", None) is None:
                raise FloatingPointError(self._bad)
            return False
        self._enter(moved)
        return True

    def _visit(self, closure: Callable[[], Any]) -> Any:
        """Return what a closure does at θ = Pz, with its gradient pulled by the P of the step."""
        with torch.no_grad():
            z = [(p, p.clone()) for part in self._entered for p in part.layer.module.parameters()]
            for part in self._entered:
                part.leave()
        self._surroundings.inside = False
        try:
            result = closure()
        finally:
            self._surroundings.inside = True
            known = {part.layer for part in self._z}
            late = [one.name for one in self._layers if one.passes and one not in known]
            self.reset()
        if late:
            raise RuntimeError(
                f"the layers {late} ran in a later call of the closure in a step, and not in the "
                "first one, so that they have no z. Let each call run the same layers, or leave "
                "these with their plain gradient: skip"
            )
        require_fresh([part.layer for part in self._entered], lambda parameter: True)
        with torch.no_grad():
            for part in self._z:
                if part.weight.grad is not None:  # not of a call for the loss alone
                    part.pull()
            self._mark()
            for parameter, value in z:
                parameter.copy_(value)
        return result

    @contextmanager
    def mask(self, rows: Any) -> Iterator[None]:
        """Leave padding out: in the forward passes of the block only these rows count.

        The others count neither in the statistics nor in N. Their gradient is that of the loss,
        which is to leave them out as well. Raises ValueError where ``rows`` is no such tensor and,
        in a forward pass, where it does not fit the input of a layer.

        Parameters
        ----------
        rows : tensor of bool or integers, or None
            True where a row counts (``key_padding_mask`` of torch is the opposite): one value for
            each example, or for each position of each example. It fits inputs with these axes
            before (in a convolution: around) the features, with further axes, with the positions
            flattened, or without positions. None: all rows count.

        Examples
        --------
        >>> layer, x = nn.Linear(2, 1), torch.tensor([[1.0, 3.0], [5.0, 7.0], [0.0, 0.0]])
        >>> bnp = BNP(layer, rho=0.0)
        >>> with bnp.mask(torch.tensor([True, True, False])):
        ...     loss = layer(x)[:2].mean()
        >>> loss.backward()
        >>> bnp.step()
        >>> bnp.state_dict()[""]["mean"]
        tensor([[3., 5.]])
        """
        surroundings, before = self._surroundings, self._surroundings.mask
        surroundings.mask = None if rows is None else Mask.of(rows)
        surroundings.masked |= rows is not None
        try:
            yield
        finally:
            surroundings.mask = before

    def reset(self) -> None:
        """Forget the passes that no step has used yet; the running statistics stay.

        Call it where gradients are thrown away by filling them with zeros, and after compiled
        forward passes whose gradient nobody uses. All else is noticed.
        """
        self._surroundings.masked = self._surroundings.mask is not None
        self._surroundings.differentiated = 0
        for layer in self._layers:
            layer.clear()

    def _update(self) -> list[Layer]:
        """Take the passes into the running statistics; return the layers that ran."""
        layers = self._layers
        try:
            if not torch.compiler.is_compiling():
                self._require_unchanged()
                self._warn_of_hooks()
            gathered = [layer.gathered() for layer in layers]
            group = self._surroundings.processes()
            if group is not None and layers:
                gathered = over_processes(layers, gathered, group)
            ran = [
                (layer, rows)
                for layer, rows in zip(layers, gathered, strict=True)
                if rows is not None and layer.module.weight.grad is not None
            ]
            _require_passes(layers, ran, self._surroundings.differentiated)
            self._bad = _not_finite(ran) if self.check_finite and ran else ""
            if self._bad and self.check_finite == "raise":
                raise FloatingPointError(self._bad)
            if self._bad:  # the gradients are not finite either, and stay as they are
                return []
            constants = {name: getattr(self, name) for name in CONSTANTS}
            for layer, rows in ran:
                vars(layer).update(constants | layer.own)
                layer.update(rows, self.corrected)
            return [layer for layer, _ in ran]
        finally:
            # after an error, too: the next step must not count these passes once more
            self.reset()

    def _require_unchanged(self) -> None:
        """Refuse a model with other layers than those that have hooks.

        A layer replaced, parametrized or pruned would have its plain gradient, at a rate chosen
        for the others.
        """
        shape = _shape(self._model)
        if not self._layers or shape == self._shape:
            return
        now: dict[str, Any] = dict(supported_layers(self._model, self._skip))
        wider = (one for one in self._layers if one.mean.shape[1] != one.module.weight.shape[1])
        now |= {layer.name: None for layer in wider}
        before = {layer.name: layer.module for layer in self._layers}
        if changed := [n for n in {**before, **now} if before.get(n) is not now.get(n)]:
            raise RuntimeError(
                f"the layers {changed} are not those that BNP(model) has found: they were "
                "replaced, added or taken out since. Make a new one: bnp.remove(); bnp = BNP(model)"
                "; attach to it an optimizer of the parameters that the model has now"
            )
        self._shape = shape

    def _warn_of_hooks(self) -> None:
        """Warn of hooks on gradients: a mask that zeroes entries of g zeroes none of PPᵀg."""
        weights = [(layer.name, layer.module.weight) for layer in self._layers]
        found = [n for n, w in weights if w._backward_hooks or w._post_accumulate_grad_hooks]
        if found and not self._hooked:
            self._hooked = True
            warnings.warn(
                f"the gradients of {found} have hooks. One that masks entries, as for pruning, "
                "masks them before BNP, which fills them again: after the step, multiply the "
                "weight by the mask as well. Hooks that only look are harmless",
                UserWarning,
                stacklevel=5,
            )

    def report(self) -> str:
        """Return a table of the modules with parameters: what BNP does with each, and why.

        q² is that of the last step; the share is that of all parameters of the model.

        >>> bnp = BNP(nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.Linear(4, 1)), skip=("2",))
        >>> print(bnp.report())
        name  kind       inputs  q²  share
        0     Linear     3       -   55.2%  preconditioned
        1     LayerNorm  -       -   27.6%  plain: neither dense nor convolutional
        2     Linear     -       -   17.2%  plain: skipped
        """
        layers = {layer.module: layer for layer in self._layers}
        skipped = selected(self._model, self._skip)
        total = sum(p.numel() for p in self._model.parameters())
        rows = [("name", "kind", "inputs", "q²", "share", "")]
        for name, module in self._model.named_modules():
            own = [p for p in module._parameters.values() if p is not None]
            if not own:
                continue
            inputs, q2, what = "-", "-", "plain: neither dense nor convolutional"
            if id(module) in skipped:
                what = "plain: skipped"
            if layer := layers.get(module):
                inputs, q2 = str(layer.mean.numel()), f"{layer.q2:.4g}" if layer.q2 else "-"
                bias = module.bias is not None and module.bias.requires_grad
                what = "preconditioned" if bias else "scaled only: no bias that is trained"
            if not any(p.requires_grad for p in own):
                what = "frozen"
            share = f"{sum(p.numel() for p in own) / total:.1%}"
            rows.append((name, type(module).__name__, inputs, q2, share, what))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [map(str.ljust, row, widths) for row in rows]
        return "\n".join("  ".join(line).rstrip() for line in lines)

    def after_backward(self, state: Any) -> None:
        """Take a step, or attach the optimizer; so that BNP is a hook of ``training.train``."""
        if not self._splits:
            self.step()
        elif not any(state.optimizer in one.optimizers for one in self._attached):
            self.attach(state.optimizer)

    def state_dict(self) -> dict[str, dict[str, Any]]:
        """Return copies of the running statistics of each layer, by name, with ρ and ε.

        Other arguments of ``BNP``, ``constants`` too, are not part of it, as ``skip`` is not.
        """
        constants = {name: getattr(self, name) for name in CONSTANTS}
        states: dict[str, dict[str, Any]] = {}
        for layer in self._layers:
            steps = {"steps": layer.steps} if self.corrected else {}
            statistics = {"mean": layer.mean.clone(), "var": layer.var.clone()}
            states[layer.name] = statistics | constants | steps
        return states

    def load_state_dict(self, state: Mapping[str, Mapping[str, Any]]) -> None:
        """Take over running statistics, ρ and ε, as an optimizer takes over its rate.

        Forward passes that no step has used yet are forgotten: they are not of that state. Where
        layers or shapes differ, or something is missing or out of range, it raises ValueError and
        takes over nothing.
        """
        expected = {name: _described(values) for name, values in self.state_dict().items()}
        found = {name: _described(values) for name, values in state.items()}
        if expected != found:
            raise ValueError(
                f"the state is that of another model: expected layers with {expected}, "
                f"found {found}"
            )
        constants = {tuple(values[name] for name in CONSTANTS) for values in state.values()}
        if len(constants) > 1:
            raise ValueError(f"the layers of the state have different {CONSTANTS}: {constants}")
        for values in constants:
            _require_constants(*values)
            self.rho, self.eps1, self.eps2 = values
        for layer in self._layers:
            layer.mean.copy_(state[layer.name]["mean"])
            layer.var.copy_(state[layer.name]["var"])
            layer.steps = state[layer.name].get("steps", 0)
        self.reset()

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy takes along: all but the optimizers, of which there are no copies."""
        return vars(self) | {"_attached": [], "_watch": None, "_z": [], "_entered": []}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Be the copy that was made of another object, together with its model."""
        self.__dict__.update(state)
        self._shape, self._watch = _shape(self._model), Watch(self._layers, self._attached)
        _living.add(self)

    def remove(self) -> None:
        """Take the hooks off the model and its optimizers; there is then nothing to step."""
        for attachment in list(self._attached):
            attachment.detach()
        for layer in self._layers:
            layer.hook.remove()
        self._watch.end()
        self._layers, self._z = [], []


def _require_constants(rho: float, eps1: float, eps2: float, q2: Any = "paper") -> None:
    if not (callable(q2) or q2 in SCALES):
        raise ValueError(f"q2 must be 'paper', 'off', or a function; got {q2!r}")
    if not 0 <= rho < 1:
        raise ValueError(f"rho must lie in [0, 1), got {rho}: at 1 the statistics never move")
    if eps1 < 0 or eps2 < 0 or eps1 + eps2 == 0:
        raise ValueError(
            f"eps1 and eps2 must be 0 or more, and not both 0; got {eps1} and {eps2}: "
            "a constant feature would divide by zero"
        )


def _described(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return what must agree between a state and what takes it over."""
    return {
        name: tuple(value.shape) if isinstance(value, torch.Tensor) else "a number"
        for name, value in values.items()
    }


def _shape(model: nn.Module) -> list[int]:
    """Return what tells whether layers or weights of a model were exchanged, in little time."""
    found, modules = [], [model]
    for module in modules:
        weight = module._parameters.get("weight")
        forward = vars(module).get("forward")  # an attribute that hides the method
        found += [id(module), id(weight), id(module._parameters.get("bias")), id(forward)]
        modules += [child for child in module._modules.values() if child is not None]
    return found


def _require_free(name: str, module: nn.Module) -> None:
    """Refuse a layer that another BNP transforms; take off the hook of one that nobody holds.

    The copy of a model has copies of its hooks, and no BNP.
    """
    for key, hook in list(module._forward_hooks.items()):
        if not isinstance(hook, Layer):
            continue
        if any(hook in bnp._layers for bnp in _living):
            raise ValueError(
                f"the layer {name!r} has a BNP already: each gradient would be transformed "
                "twice. Call remove() on the first one"
            )
        del module._forward_hooks[key], module._forward_hooks_with_kwargs[key]


_living: weakref.WeakSet[BNP] = weakref.WeakSet()


def _require_passes(
    layers: Sequence[Layer], ran: Sequence[tuple[Layer, Rows]], differentiated: int
) -> None:
    """Refuse a step without passes, or with too many, and a gradient that came past all passes."""
    compiled = [one for layer in layers for one in layer.passes if one.backward == -1]
    if 0 < differentiated < len(compiled):
        raise RuntimeError(
            f"{len(compiled)} compiled passes through layers since the last step, and only "
            f"{differentiated} of them were differentiated: the others would be in the statistics. "
            "After a forward pass that nobody differentiates call bnp.reset(), or run it under "
            "torch.no_grad()"
        )
    if not ran and any(layer.empty for layer in layers):
        raise ValueError(
            "expected at least one example since the last step; all inputs had 0 rows. Leave "
            "empty minibatches out"
        )
    counted = {layer.name for layer, _ in ran}
    past = [
        layer.name for layer in layers if layer.name not in counted and layer.has_unseen_gradient()
    ]
    if past:
        raise RuntimeError(
            f"the weights of {past} have a gradient, but none came through a forward pass of these "
            "layers since the last step. Call the layer, layer(x), and not functional.linear(x, "
            "layer.weight), nor functional_call with tensors computed from its weights, nor vmap; "
            "call torch.compiler.reset() after BNP(model), and compile it in training mode; set "
            "gradients to None after each step; change them before the first of several optimizers "
            "steps. A penalty reaches layers that did not run, too: weight_decay in its place. To "
            "leave them with their plain gradient: skip"
        )
    if ran or not any(layer.module.weight.requires_grad for layer in layers):
        return
    if any(layer.seen for layer in layers):
        raise RuntimeError("found no gradients: call loss.backward() before bnp.step()")
    raise RuntimeError(
        "expected a forward pass and loss.backward() before bnp.step(); "
        "found no forward pass since the last step"
    )


def _not_finite(ran: Sequence[tuple[Layer, Rows]]) -> str:
    """Return what is wrong with the inputs of the layers, or an empty string."""
    # one number for all layers: a GPU is waited for once; a mean that is not finite has no variance
    if math.isfinite(torch.cat([rows.var for _, rows in ran]).sum().item()):
        return ""
    bad = [layer.name for layer, rows in ran if not torch.isfinite(rows.var.sum())]
    return (
        f"the inputs of {bad[0]!r} hold NaN or infinity (in all: {len(bad)} layers). "
        "Lower the learning rate, or look at the data; nothing was changed"
    )
