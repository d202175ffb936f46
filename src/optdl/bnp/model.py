"""``BNP(model)``: preconditioning in any training loop."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from optdl.bnp.coordinates import Scaled
from optdl.bnp.layers import Layer
from optdl.bnp.optimizers import Watch
from optdl.bnp.processes import Processes, over_processes, unwrapped
from optdl.bnp.support import supported_layers
from optdl.bnp.taps import Rows


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

    **Weight decay and clipping**, with :math:`z = P^{-1}\theta` and P held fixed:

    * ``weight_decay`` of SGD, after ``step`` or in ``split``: both end at a minimum of
      :math:`J + \frac\lambda2\lVert P^{-1}\theta\rVert^2`. So does that of Adam, in ``split``.
    * Decoupled decay (AdamW): :math:`P(\lambda z) = \lambda\theta`, the same shrinking of θ as
      without BNP. Without decay of the bias, :math:`b + W\mu` is what keeps its value in ``split``.
    * A penalty :math:`\frac\lambda2\lVert\theta\rVert^2` in the loss stays what it is.
    * Clipping by norm limits :math:`\lVert g\rVert` before ``step``, :math:`\lVert PP^Tg\rVert`
      after it, and :math:`\lVert P^Tg\rVert`, the gradient with respect to z, in ``split``.

    **What counts.** A forward pass counts once a backward pass comes through it to the weight, and
    until a step uses it or the weight's gradient is set to None. So evaluation, in either mode, and
    a forward pass that nobody differentiates leave no trace; a layer in ``eval()`` that is trained
    is preconditioned; and checkpoints, reentrant or not, count once.

    * **Several passes** before a step (gradient accumulation, a module used twice): the statistics
      are those of all rows together, and N counts them all.
    * **More than two dimensions** at a dense layer: every position is a row.
    * **Stride, dilation, padding of any mode**: the statistics are those of the input's channels,
      without the padding; r and s are the size of the output.
    * **Groups**: each group is a convolution of its own, with its own largest variance.
    * **No bias** (or a frozen one): nothing can take up the mean, so the columns of H are only
      scaled, by their root mean square :math:`\sqrt{\sigma^2 + \mu^2}`.
    * **Frozen weights** and layers that did not run keep their gradient.
    * **Half precision and autocast**: statistics in float32. ``model.double()`` and ``.to(device)``
      may come at any time. With a ``GradScaler`` call ``step`` right after ``backward``, or write
      ``with bnp.split(): scaler.step(optimizer)``: the scale passes through.
    * **Several processes**: with ``DistributedDataParallel``, wherever it is around the model, the
      statistics are those of the global batch.
    * **torch.compile**: compile the model as ever, and with ``check_finite=False`` also
      ``torch.compile(bnp.step)``. Compiled code does not look for hooks; where a model of the
      same make was compiled before, without BNP, call ``torch.compiler.reset()`` first. Compiled
      passes count when they run, if the layer is in training mode: where no backward pass follows,
      call :meth:`reset`.

    Parameters
    ----------
    model : nn.Module
        The network; also one that is wrapped in ``DistributedDataParallel`` or compiled.
    rho : float
        ρ in [0, 1): the share of the old statistics in the new ones.
    eps1, eps2 : float
        What is added to the variance: :math:`\epsilon_1\max\sigma^2 + \epsilon_2`.
    skip : sequence of str and types
        Modules to leave alone, with all they contain: by name, or all of a type.
    check_finite : bool
        Whether each step looks for NaN and infinity among the inputs of the layers. On a GPU
        this waits for the device.
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
        check_finite: bool = True,
        split: bool = False,
        process_group: Any = "auto",
    ) -> None:
        if not 0 <= rho < 1:
            raise ValueError(f"rho must lie in [0, 1), got {rho}: at 1 the statistics never move")
        if eps1 < 0 or eps2 < 0 or eps1 + eps2 == 0:
            raise ValueError(
                f"eps1 and eps2 must be 0 or more, and not both 0; got {eps1} and {eps2}: "
                "a constant feature would divide by zero"
            )
        self.rho, self.eps1, self.eps2, self.check_finite = rho, eps1, eps2, check_finite
        self._splits = split
        self._forward = _Forward(Processes(model, process_group))
        found = list(supported_layers(unwrapped(model), skip))
        self._layers = [Layer(name, module, self._forward) for name, module in found]
        self._watch = Watch(self._layers)

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
            If the inputs of a layer hold NaN or infinity; statistics and gradients stay as
            they were.
        ValueError
            If all inputs were empty.
        """
        for layer, rows in self._update():
            layer.precondition(rows, self.eps1, self.eps2)
        if not torch.compiler.is_compiling():
            self._mark()
            self._watch.begin(split=False)

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
            self._forward.inside = False
            self._mark()
            self._watch.begin(split=True)

    @torch.no_grad()
    def _enter(self) -> list[Scaled]:
        """Put z and its gradient in place, in all layers that have a gradient."""
        self._update()
        self._watch.end()
        parts = [layer.split(self.eps1, self.eps2) for layer in self._layers]
        entered = [part for part in parts if part is not None]
        for part in entered:
            part.enter()
        self._forward.inside = True
        return entered

    def reset(self) -> None:
        """Forget the passes that no step has used yet; the running statistics stay.

        Call it where gradients are thrown away by filling them with zeros, and after compiled
        forward passes that nobody differentiates. All else is noticed.
        """
        for layer in self._layers:
            layer.tap.clear()

    def _update(self) -> list[tuple[Layer, Rows]]:
        """Take the passes into the running statistics; return the layers that ran."""
        layers = self._layers
        try:
            gathered = [layer.tap.gathered() for layer in layers]
            group = self._forward.processes.found()
            if group is not None and layers:
                gathered = over_processes(layers, gathered, group)
            ran = [
                (layer, rows)
                for layer, rows in zip(layers, gathered, strict=True)
                if rows is not None and layer.module.weight.grad is not None
            ]
            _require_passes(layers, ran)
            if self.check_finite:
                _require_finite(ran)
            for layer, rows in ran:
                layer.update(rows, self.rho)
            return ran
        finally:
            self.reset()

    def _mark(self) -> None:
        for layer in self._layers:
            layer.mark()

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

    def state_dict(self) -> dict[str, dict[str, torch.Tensor]]:
        """Return copies of the running statistics of each layer, by name."""
        return {
            layer.name: {"mean": layer.mean.clone(), "var": layer.var.clone()}
            for layer in self._layers
        }

    def load_state_dict(self, state: Mapping[str, Mapping[str, torch.Tensor]]) -> None:
        """Take over running statistics, as :meth:`state_dict` gave them.

        Forward passes that no step has used yet are forgotten: they are not of that state.

        Raises
        ------
        ValueError
            If the layers or their shapes differ; nothing is then taken over.
        """
        expected = {layer.name: tuple(layer.mean.shape) for layer in self._layers}
        found = {name: tuple(values["mean"].shape) for name, values in state.items()}
        if expected != found:
            raise ValueError(
                f"the state is that of another model: expected layers with shapes {expected}, "
                f"found {found}"
            )
        for layer in self._layers:
            layer.mean.copy_(state[layer.name]["mean"])
            layer.var.copy_(state[layer.name]["var"])
        self.reset()

    def remove(self) -> None:
        """Take the hooks off the model; there is then nothing to step."""
        for layer in self._layers:
            layer.hook.remove()
        self._watch.end()
        self._layers = []


class _Forward:
    """What happens before the forward pass of any layer: it is refused while θ is elsewhere."""

    def __init__(self, processes: Processes) -> None:
        self.processes, self.inside = processes, False

    def __call__(self, name: str) -> None:
        if self.inside:
            raise RuntimeError(
                f"the layer {name!r} ran inside bnp.split(), where its parameters are those of z. "
                "Run the model before or after the block; optimizers that run it in their step, "
                "such as LBFGS, cannot be preconditioned"
            )
        self.processes.look()


def _require_passes(layers: Sequence[Layer], ran: Sequence[tuple[Layer, Rows]]) -> None:
    """Refuse a step without passes, and a gradient that came past all passes of its layer."""
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
    if any(layer.tap.empty for layer in layers):
        return ValueError(
            "expected at least one example since the last step; all inputs had 0 rows. Leave "
            "empty minibatches out"
        )
    if any(layer.tap.seen for layer in layers):
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


def _require_finite(ran: Sequence[tuple[Layer, Rows]]) -> None:
    # one number for all layers: a GPU is waited for once; a mean that is not finite has no variance
    if math.isfinite(torch.cat([rows.var for _, rows in ran]).sum().item()):
        return
    bad = [layer.name for layer, rows in ran if not torch.isfinite(rows.var.sum())]
    raise FloatingPointError(
        f"the inputs of {bad[0]!r} hold NaN or infinity (in all: {len(bad)} layers). "
        "Lower the learning rate, or look at the data; nothing was changed"
    )
