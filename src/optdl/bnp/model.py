"""``BNP(model)``: preconditioning in any training loop."""

from __future__ import annotations

import math
import sys
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from optdl.bnp.coordinates import Coordinates
from optdl.bnp.layers import Layer, Mask, Rows, Surroundings
from optdl.bnp.optimizers import Watch
from optdl.bnp.processes import group_around, over_processes, unwrapped
from optdl.bnp.support import supported_layers

CONSTANTS = ("rho", "eps1", "eps2")
CHECKED = 100
"""In each step of so many, gradients that come past the layers are looked for."""


class BNP:
    r"""Batch Normalization Preconditioning for all dense and convolutional layers of a model.

    The network stays as it is, also at inference. Add one line to the loop::

        bnp = BNP(model)
        for x, y in batches:
            optimizer.zero_grad()
            loss_function(model(x), y).backward()
            bnp.step()                  # transforms the gradients in place
            optimizer.step()            # SGD, with or without momentum

    Each ``nn.Linear`` follows Algorithm 2 and each convolution (``nn.Conv1d`` to ``nn.Conv3d``)
    Algorithm 3, with the running mean and variance of the layer's input. Other layers keep their
    gradient.

    **Other optimizers.** ``step`` makes the gradient :math:`PP^Tg`. That is right for an optimizer
    whose step is linear in the gradient. Adam, AdamW, RMSprop, Adagrad and others are not: they
    divide each component by its own size. For them (and as well for SGD) use the split form
    :math:`\Delta\theta = P\,\mathrm{Opt}(P^Tg)` in the place of ``bnp.step()``::

        with bnp.split():               # parameters and gradients are those of z, θ = Pz
            optimizer.step()

    **What counts.** A forward pass counts once a backward pass comes through it to the weight, and
    until a step uses it or the weight's gradient is set to None. So evaluation, in either mode, and
    a forward pass that nobody differentiates leave no trace. The statistics are those of all rows
    since the last step, and N counts them all. In a compiled model a pass counts when it runs, if
    its layer is in training mode: where no backward pass follows, call :meth:`reset`.

    :ref:`What works with what <bnp-what-works>` has optimizers, loops, wrappers, precision and
    kinds of layers line by line.

    **Positions.** A dense layer follows Algorithm 2 on any number of axes: each position of its
    input is a row, since the mean loss over tokens gives each of them the weight
    :math:`1/(BT)`, as an example of its own has it, and q² is :math:`\max\{n/(BT), 1\}`. A
    convolution follows Algorithm 3, whose loss is a mean over examples, with all positions of a map
    in each. Where the loss is such a mean, :math:`q^2 = \max\{n/B, \sqrt T\}` is right for a dense
    layer as well: ``positions="map"`` makes it equal to ``nn.Conv1d`` with kernel size 1.

    Parameters
    ----------
    model : nn.Module
        The network; also one that is wrapped in ``DistributedDataParallel`` or compiled.
    rho : float
        ρ in [0, 1): the weight of the old statistics in the new ones.
    eps1, eps2 : float
        What is added to the variance: :math:`\epsilon_1\max\sigma^2 + \epsilon_2`.
    skip : sequence of str and types
        Modules to leave alone, with all they contain: by name, or all of a type.
    positions : "rows" or "map"
        What the axes between the first and the last are at a dense layer: more rows, or a map.
    check_finite : bool or "raise"
        Whether each step looks for NaN and infinity among the inputs of the layers. On a GPU
        this waits for the device. Such a minibatch changes neither statistics nor gradients, which
        are not finite themselves: a ``GradScaler`` skips its step, and any other step of the
        optimizer raises the error. With ``"raise"`` it comes from ``bnp.step()`` at once.
    split : bool
        Which form :func:`optdl.training.train` gets from this hook: ``step``, or ``split``.
    process_group : process group, None or "auto"
        Processes that share a batch. ``"auto"`` finds those of ``DistributedDataParallel``; None is
        for processes that train each on its own.

    Raises
    ------
    ValueError
        If a parameter is out of range, or the model has a layer that BNP cannot handle.

    Notes
    -----
    Source: P-14, P-15, P-20, P-24, P-25

    Examples
    --------
    >>> model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
    >>> bnp, adam = BNP(model), torch.optim.Adam(model.parameters())
    >>> model(torch.ones(5, 3)).mean().backward()
    >>> with bnp.split():
    ...     adam.step()
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
        skip: Sequence[str | type[nn.Module]] = (),
        positions: str = "rows",
        check_finite: bool | str = True,
        split: bool = False,
        process_group: Any = "auto",
    ) -> None:
        _require_constants(rho, eps1, eps2)
        self.rho, self.eps1, self.eps2, self.check_finite = rho, eps1, eps2, check_finite
        if positions not in ("rows", "map"):
            raise ValueError(f"positions must be 'rows' or 'map', got {positions!r}")
        group = group_around(model) if process_group == "auto" else process_group
        self._splits, self._surroundings = split, Surroundings(positions, group)
        self._model, self._skip = unwrapped(model), skip
        found = list(supported_layers(self._model, skip))
        for name, module in found:
            _require_free(name, module)
        self._layers = [Layer(name, module, self._surroundings) for name, module in found]
        self._shape = _shape(self._model)
        _living.add(self)
        self._watch = Watch(self._layers)
        self._steps, self._bad = 0, ""

    def __repr__(self) -> str:
        """Return the layers by name, and the constants."""
        names = [layer.name for layer in self._layers]
        return f"BNP(layers={names}, rho={self.rho}, eps1={self.eps1}, eps2={self.eps2})"

    @torch.no_grad()
    def step(self) -> None:
        """Transform the gradients of all layers in place, with the inputs seen since the last step.

        Call it between ``loss.backward()`` and ``optimizer.step()``. It warns once where the
        optimizer is another than SGD or ASGD: see :meth:`split`.

        Raises
        ------
        RuntimeError
            If no gradient came through a layer since the last step, or came past all its forward
            passes; if several processes run and nothing says how they share a batch.
        FloatingPointError
            If the inputs of a layer hold NaN or infinity and ``check_finite`` is ``"raise"``;
            otherwise the optimizer's step raises it.
        ValueError
            If all inputs were empty.
        """
        for layer in self._update():
            layer.precondition(self.eps1, self.eps2)
        if not torch.compiler.is_compiling():
            for layer in self._layers:
                layer.mark()
            self._watch.begin(split=False, bad=self._bad)

    @contextmanager
    def split(self) -> Iterator[None]:
        r"""Let an optimizer work on z, where θ = Pz: any optimizer, in the place of :meth:`step`.

        .. math:: \Delta\theta = P\,\mathrm{Opt}(P^Tg), \qquad P = \tfrac1q UD

        In the block the parameters of each layer hold :math:`z = P^{-1}\theta` and their gradients
        :math:`P^Tg`. At its end θ moves by :math:`P(z' - z)`, so that it has the same bits again
        where the optimizer did nothing. After an exception θ is as it was before the block; the
        gradients remain those of z. With plain SGD the result is that of :meth:`step`.

        Raises
        ------
        RuntimeError, FloatingPointError, ValueError
            As :meth:`step`. A forward pass in the block is refused, as L-BFGS wants one; so is a
            step of the optimizer after the block, on gradients of z.

        Notes
        -----
        Source: F-11

        Examples
        --------
        >>> layer = nn.Linear(2, 1)
        >>> bnp, adam = BNP(layer), torch.optim.AdamW(layer.parameters())
        >>> layer(torch.ones(4, 2)).sum().backward()
        >>> with bnp.split():
        ...     norm = nn.utils.clip_grad_norm_(layer.parameters(), 1.0)
        ...     adam.step()
        """
        entered = self._enter()
        try:
            yield
            with torch.no_grad():
                for part in entered:
                    part.leave()
        except BaseException:
            with torch.no_grad():
                for part in entered:
                    part.restore()
            raise
        finally:
            self._surroundings.inside = False
            for layer in self._layers:
                layer.mark()
            self._watch.begin(split=True)

    @torch.no_grad()
    def _enter(self) -> list[Coordinates]:
        """Put z and its gradient in place, in all layers that have a gradient."""
        self._update()
        if self._bad:
            self._watch.begin(split=False, bad=self._bad)
            return []
        self._watch.end()
        parts = [layer.split(self.eps1, self.eps2) for layer in self._layers]
        entered = [part for part in parts if part is not None]
        for part in entered:
            part.enter()
        self._surroundings.inside = True
        return entered

    @contextmanager
    def mask(self, rows: Any) -> Iterator[None]:
        """Leave padding out: in the forward passes of the block only these rows count.

        The others count neither in the statistics nor in N. Their gradient is that of the loss,
        which is to leave them out as well.

        Parameters
        ----------
        rows : tensor of bool or integers, or None
            True where a row counts (``key_padding_mask`` of torch is the opposite): one value for
            each example, or for each position of each example. It fits inputs with these axes
            before (in a convolution: around) the features, with further axes, with the positions
            flattened, or without positions. None: all rows count.

        Raises
        ------
        ValueError
            If it is no such tensor; in a forward pass, if it does not fit the input of a layer.

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
        forward passes that nobody differentiates. All else is noticed.
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
            self._bad = _not_finite(ran) if self.check_finite else ""
            if self._bad and self.check_finite == "raise":
                raise FloatingPointError(self._bad)
            if self._bad:  # the gradients are not finite either, and stay as they are
                return []
            for layer, rows in ran:
                layer.update(rows, self.rho)
            return [layer for layer, _ in ran]
        finally:
            # after an error, too: the next step must not count these passes once more
            self.reset()
            self._steps += 1
            for layer in layers:
                layer.checks = self._steps % CHECKED == 0

    def _require_unchanged(self) -> None:
        """Refuse a model with other layers than those that have hooks.

        A layer replaced, parametrized or pruned would have its plain gradient, at a rate chosen
        for the others.
        """
        shape = _shape(self._model)
        if not self._layers or shape == self._shape:
            return
        now = dict(supported_layers(self._model, self._skip))
        before = {layer.name: layer.module for layer in self._layers}
        if changed := [n for n in {**before, **now} if before.get(n) is not now.get(n)]:
            raise RuntimeError(
                f"the layers {changed} are not those that BNP(model) has found: they were "
                "replaced, added or taken out since. Make a new one: bnp.remove(); bnp = BNP(model)"
            )
        self._shape = shape

    def after_backward(self, state: Any) -> None:
        """Take a step, or prepare the split form; so that BNP is a hook of ``training.train``."""
        if self._splits:
            self._split_next(state.optimizer)
        else:
            self.step()

    def _split_next(self, optimizer: torch.optim.Optimizer) -> None:
        """Let the next step of an optimizer be in the split form.

        An attribute of the object hides the method for one call, so that an interruption of the
        step leaves the block as any exception does.
        """
        own = optimizer.__dict__.get("step")
        plain = optimizer.step

        def step(*args: Any, **kwargs: Any) -> Any:
            restore()
            with self.split():
                return plain(*args, **kwargs)

        def restore() -> None:
            if own is None:
                del optimizer.__dict__["step"]
            else:
                optimizer.__dict__["step"] = own

        optimizer.__dict__["step"] = step

    def state_dict(self) -> dict[str, dict[str, Any]]:
        """Return copies of the running statistics of each layer, by name, with ρ and ε."""
        constants = {name: getattr(self, name) for name in CONSTANTS}
        return {
            layer.name: {"mean": layer.mean.clone(), "var": layer.var.clone(), **constants}
            for layer in self._layers
        }

    def load_state_dict(self, state: Mapping[str, Mapping[str, Any]]) -> None:
        """Take over running statistics, ρ and ε, as :meth:`state_dict` gave them.

        Forward passes that no step has used yet are forgotten: they are not of that state.

        Raises
        ------
        ValueError
            If the layers or their shapes differ, or something is missing or out of range; nothing
            is then taken over.
        """
        expected = {layer.name: _described(vars(layer) | vars(self)) for layer in self._layers}
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
        self.reset()

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Be the copy that was made of another object, together with its model."""
        self.__dict__.update(state)
        self._shape = _shape(self._model)
        _living.add(self)

    def remove(self) -> None:
        """Take the hooks off the model; there is then nothing to step."""
        for layer in self._layers:
            layer.hook.remove()
        self._watch.end()
        self._layers = []


def _require_constants(rho: float, eps1: float, eps2: float) -> None:
    if not 0 <= rho < 1:
        raise ValueError(f"rho must lie in [0, 1), got {rho}: at 1 the statistics never move")
    if eps1 < 0 or eps2 < 0 or eps1 + eps2 == 0:
        raise ValueError(
            f"eps1 and eps2 must be 0 or more, and not both 0; got {eps1} and {eps2}: "
            "a constant feature would divide by zero"
        )


def _described(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return what must agree between a state and what takes it over."""
    shapes = {name: tuple(values[name].shape) for name in ("mean", "var") if name in values}
    return shapes | {name: "a number" for name in CONSTANTS if name in values}


def _shape(model: nn.Module) -> list[int]:
    """Return what tells whether layers or weights of a model were exchanged, in little time."""
    found, modules = [], [model]
    for module in modules:
        weight = module._parameters.get("weight")
        found += [id(module), id(weight), id(module._parameters.get("bias"))]
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
    if beside := tuple(layer.name for layer in layers if layer.beside):
        raise RuntimeError(
            f"the weights of {list(beside)} are also used outside of their layers, as in "
            "functional.linear(x, layer.weight): their gradient has a part whose inputs were not "
            f"seen. To leave them with their plain gradient: BNP(model, skip={beside}). If it is "
            "a penalty on the weights, differentiate it apart, with penalty.backward()"
        )
    if not ran:
        raise _nothing(layers)
    counted = {layer.name for layer, _ in ran}
    past = [
        layer.name for layer in layers if layer.name not in counted and layer.has_unseen_gradient()
    ]
    if past:
        raise RuntimeError(
            f"the weights of {past} have a gradient, but none came through a forward pass of these "
            "layers since the last step. Call the layer, layer(x), and not functional.linear(x, "
            "layer.weight); compile the model after BNP(model), in training mode; set gradients "
            "to None after each step. To leave them with their plain gradient: skip"
        )


def _nothing(layers: Sequence[Layer]) -> Exception:
    """Return why there is nothing to do."""
    if any(layer.empty for layer in layers):
        return ValueError(
            "expected at least one example since the last step; all inputs had 0 rows. Leave "
            "empty minibatches out"
        )
    if any(layer.seen for layer in layers):
        return RuntimeError("found no gradients: call loss.backward() before bnp.step()")
    compiled = (
        ". If the model is compiled, it may run code compiled before BNP was there: "
        "call torch.compiler.reset() after BNP(model)"
    )
    return RuntimeError(
        "expected a forward pass and loss.backward() before bnp.step(); "
        "found no forward pass since the last step"
        + (compiled if "torch._dynamo" in sys.modules else "")
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
