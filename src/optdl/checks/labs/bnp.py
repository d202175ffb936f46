"""Checks of the lab on BNP: hooks, a preconditioner attached to a network, a loop, a figure.

Networks are the check's own; what a hook of the student sees there shows in what the drivers
return.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import optdl.bnp
from optdl.checks.exercise import Case, Exercise, Property
from optdl.checks.labs.mistakes import mistake
from optdl.checks.labs.records import RecordCheck
from optdl.labs.bnp import (
    EVERY,
    INPUTS,
    LAB,
    METHODS,
    STEPS,
    accuracy,
    best_curves,
    network,
)
from optdl.labs.drivers import bnp as drivers
from optdl.labs.drivers.figures import drawn
from optdl.observation import observe

__all__ = ["EXERCISES", "RECORD"]


# --- Precondition in place --------------------------------------------------------------------


def precondition(
    grad_weight: Tensor,
    grad_bias: Tensor,
    mean: Tensor,
    var: Tensor,
    batch_size: int,
    eps1: float = 1e-2,
    eps2: float = 1e-4,
) -> None:
    """Change the gradients of a layer as steps 3 to 5 of Algorithm 2 do, in place.

    Source: LAB-5.
    """
    q2 = max(grad_weight.shape[1] / batch_size, 1)
    smoothed = var + eps1 * var.max() + eps2
    grad_weight.sub_(torch.outer(grad_bias, mean)).div_(q2 * smoothed)
    grad_bias.div_(q2).sub_(grad_weight @ mean)


def _gradients(rng: np.random.Generator) -> Iterator[Case]:
    for outputs, inputs, rows in [(1, 2, 4), (2, 2, 1), (3, 5, 2), (4, 3, 8)]:
        yield {
            "grad_weight": rng.normal(size=(outputs, inputs)).round(2),
            "grad_bias": rng.normal(size=outputs).round(2),
            "mean": rng.normal(size=inputs).round(2),
            "var": rng.uniform(0.2, 3, size=inputs).round(2),
            "batch_size": rows,
            "eps1": 0.1 if rows > 1 else 0.2,
            "eps2": 0.05,
        }


def _is_that_of_arrays(function: Any, rng: np.random.Generator) -> bool:
    """Return whether the gradients are those of the function of the chapter, on arrays."""
    arrays = [rng.normal(size=(3, 6)), rng.normal(size=3), rng.normal(size=6)]
    arrays += [rng.uniform(0.1, 2, size=6)]
    gradients = observe(drivers.change_gradients, function, *arrays, 4)[:2]
    weight, bias, mean, var = arrays
    expected = optdl.bnp.precondition_dense(weight, bias, mean, var, 4)
    return all(np.allclose(*pair) for pair in zip(gradients, expected, strict=True))


def _works_on_a_layers_gradients(function: Any, rng: np.random.Generator) -> bool:
    """Return whether a function changes gradients in float32, which stay the tensors they are."""
    G_w, G_b = rng.normal(size=(2, 3)).astype(np.float32), rng.normal(size=2).astype(np.float32)
    mean, var = np.zeros(3, np.float32), np.ones(3, np.float32)
    arrays = G_w, G_b, mean, var
    weight, bias = observe(drivers.change_gradients, function, *arrays, 3, 0.0, 1.0)[:2]
    return np.allclose(weight, G_w / 2) and np.allclose(bias, G_b)


PRECONDITION = Exercise(
    key="LAB-5:precondition",
    reference=precondition,
    use=drivers.change_gradients,
    cases=_gradients,
    parts=("grad_weight", "grad_bias", "mean after the call", "var after the call"),
    misconceptions=(
        mistake(
            "you compute new tensors, and the gradients stay as they are: `a = a - b` gives "
            "the name a to another tensor; change the tensor itself, with `sub_`, `div_` or "
            "`copy_`",
            precondition,
            (
                "grad_weight.sub_(torch.outer(grad_bias, mean)).div_(q2 * smoothed)",
                "grad_weight = (grad_weight - torch.outer(grad_bias, mean)) / (q2 * smoothed)",
            ),
            (
                "grad_bias.div_(q2).sub_(grad_weight @ mean)",
                "grad_bias = grad_bias / q2 - grad_weight @ mean\n"
                "    return grad_weight, grad_bias",
            ),
        ),
        mistake(
            "the gradient of your bias stays as it is; it changes, too, and in place, by an "
            "operation whose name ends in _",
            precondition,
            ("grad_bias.div_(q2).sub_(", "grad_bias.div(q2).sub("),
        ),
        mistake(
            "you smooth `var` in place and so spoil the running average, which belongs to the "
            "caller; compute a new tensor",
            precondition,
            (
                "smoothed = var + eps1 * var.max() + eps2",
                "smoothed = var.add_(eps1 * var.max() + eps2)",
            ),
        ),
        mistake(
            "your new bias gradient uses the old weight gradient; it uses the new one",
            precondition,
            ("    grad_weight.sub_(", "    old = grad_weight.clone()\n    grad_weight.sub_("),
            ("sub_(grad_weight @ mean)", "sub_(old @ mean)"),
        ),
        mistake(
            "your outer product is transposed, (n, o) in place of (o, n): μ belongs to the "
            "columns of the weight gradient, one for each input",
            precondition,
            ("torch.outer(grad_bias, mean)", "torch.outer(mean, grad_bias)"),
        ),
        mistake(
            "you divide the rows of the weight gradient by the variances; they belong to the "
            "columns, one for each input",
            precondition,
            (".div_(q2 * smoothed)", ".div_(q2 * smoothed[:, None])"),
        ),
        mistake(
            "you divide by the standard deviation; P and Pᵀ divide by it once each, which "
            "makes the variance",
            precondition,
            (".div_(q2 * smoothed)", ".div_(q2 * smoothed.sqrt())"),
        ),
        mistake(
            "your q² counts the outputs of the layer; it is max{n/N, 1} with the number n of "
            "inputs",
            precondition,
            ("grad_weight.shape[1]", "grad_weight.shape[0]"),
        ),
        mistake(
            "your q² falls below 1 for minibatches that are larger than the layer; it is "
            "max{n/N, 1}",
            precondition,
            ("max(grad_weight.shape[1] / batch_size, 1)", "grad_weight.shape[1] / batch_size"),
        ),
        mistake(
            "you divide the weight gradient by q² once more on its way into the bias; only the "
            "old bias gradient is divided by q²",
            precondition,
            (
                "grad_bias.div_(q2).sub_(grad_weight @ mean)",
                "grad_bias.sub_(grad_weight @ mean).div_(q2)",
            ),
        ),
        mistake(
            "you do not divide the bias gradient by q²; both gradients are divided",
            precondition,
            ("grad_bias.div_(q2).sub_(", "grad_bias.sub_("),
        ),
        mistake(
            "you leave out the largest variance in the floor; σ̃² is σ² + ε₁ max σ² + ε₂",
            precondition,
            ("eps1 * var.max()", "eps1"),
        ),
        mistake(
            "you add the means times the bias gradient; they are subtracted from the weight "
            "gradient",
            precondition,
            ("grad_weight.sub_(", "grad_weight.add_("),
        ),
    ),
    properties=(
        Property("the gradients are those of the function on arrays", _is_that_of_arrays),
        Property(
            "with μ = 0, σ² = 1 and ε₂ = 1 the weight gradient is halved, in float32, too",
            _works_on_a_layers_gradients,
        ),
    ),
)


# --- Statistics through hooks -----------------------------------------------------------------


def input_statistics(model: nn.Module, x: Tensor) -> list[tuple[Tensor, Tensor]]:
    """Return the mean and the variance of what each dense layer reads, in one pass.

    Source: LAB-5.
    """
    layers = [one for one in model.modules() if isinstance(one, nn.Linear)]
    seen = {}

    def observe(layer: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        h = inputs[0]
        seen[layer] = (h.mean(dim=0), h.var(dim=0, correction=0))

    handles = [layer.register_forward_pre_hook(observe) for layer in layers]
    try:
        with torch.no_grad():
            model(x)
    finally:
        for handle in handles:
            handle.remove()
    return [seen[layer] for layer in layers]


def _passes(rng: np.random.Generator) -> Iterator[Case]:
    for rows, widths, fails in [(2, [2, 1], False), (3, [2, 3, 2], False), (5, [3, 4, 2, 2], True)]:
        yield {
            "x": rng.normal(1, 2, size=(rows, widths[0])).round(2),
            "widths": widths,
            "seed": int(rng.integers(1000)),
            "fails": fails,
        }


def _sees_shift_and_scale(function: Any, rng: np.random.Generator) -> bool:
    """Return whether the first mean and variance follow the minibatch as they must."""
    x = rng.normal(size=(5, 3))
    (mean, var), (shifted, scaled) = (
        observe(drivers.read_statistics, function, batch, [3, 2, 2], 0, False)[0][0]
        for batch in (x, 2 * x + 1)
    )
    return np.allclose(shifted, 2 * mean + 1) and np.allclose(scaled, 4 * var)


INPUT_STATISTICS = Exercise(
    key="LAB-5:input_statistics",
    reference=input_statistics,
    use=drivers.read_statistics,
    cases=_passes,
    parts=(
        *("the statistics", "with a graph", "hooks that are left", "the network's mode"),
        "the exception of a pass that fails",
    ),
    misconceptions=(
        mistake(
            "your hooks stay on the network and go on working in each later pass; keep the "
            "handles and call `remove()` on each",
            input_statistics,
            ("            handle.remove()", "            pass"),
        ),
        mistake(
            "your hooks stay on the network when the pass fails; remove them in `finally`",
            input_statistics,
            ("    finally:\n", "    except ZeroDivisionError:\n        pass\n    else:\n"),
        ),
        mistake(
            "your statistics are those of what the layers give; they are those of what the "
            "layers read, `inputs[0]`",
            input_statistics,
            (
                "inputs: tuple[Tensor, ...]) -> None:\n        h = inputs[0]",
                "inputs: tuple[Tensor, ...], output) -> None:\n        h = output",
            ),
            ("register_forward_pre_hook", "register_forward_hook"),
        ),
        mistake(
            "your variance divides by N − 1; BNP divides by N, which is `correction=0`",
            input_statistics,
            ("h.var(dim=0, correction=0)", "h.var(dim=0)"),
        ),
        mistake(
            "you return standard deviations; BNP averages variances",
            input_statistics,
            ("h.var(dim=0, correction=0)", "h.std(dim=0, correction=0)"),
        ),
        mistake(
            "your pairs are (variance, mean), as `torch.var_mean` returns them; return the mean "
            "first",
            input_statistics,
            (
                "(h.mean(dim=0), h.var(dim=0, correction=0))",
                "torch.var_mean(h, dim=0, correction=0)",
            ),
        ),
        mistake(
            "your variance is the mean of the squares; subtract the mean before you square, or "
            "use `h.var(dim=0, correction=0)`",
            input_statistics,
            ("h.var(dim=0, correction=0)", "h.square().mean(dim=0)"),
        ),
        mistake(
            "your list is in the order in which the layers were called; the order is that of "
            "`model.modules()`",
            input_statistics,
            ("[seen[layer] for layer in layers]", "list(seen.values())"),
        ),
        mistake(
            "your function hides the exception of a pass that fails; remove the hooks in "
            "`finally`, which passes the exception on",
            input_statistics,
            ("    finally:\n", "    except RuntimeError:\n        pass\n    finally:\n"),
            ("[seen[layer] for layer in layers]", "list(map(seen.get, layers))"),
        ),
        mistake(
            "you take statistics of each example over its features; they are those of each "
            "feature over the minibatch, with dim=0",
            input_statistics,
            ("h.mean(dim=0), h.var(dim=0,", "h.mean(dim=1), h.var(dim=1,"),
        ),
        mistake(
            "your hook returns something, and what a pre-hook returns takes the place of the "
            "layer's input; let it return None",
            input_statistics,
            (
                "seen[layer] = (h.mean(dim=0), h.var(dim=0, correction=0))",
                "seen[layer] = (h.mean(dim=0), h.var(dim=0, correction=0))\n"
                "        return h - h.mean(dim=0)",
            ),
        ),
        mistake(
            "your statistics hold the graph of the pass, and so its memory; compute them "
            "without a graph, under `torch.no_grad()` or after `detach()`",
            input_statistics,
            ("with torch.no_grad():", "if True:"),
        ),
        mistake(
            "you look at the children of the network alone and miss the layers in its blocks; "
            "`modules()` finds layers at every depth",
            input_statistics,
            ("model.modules()", "model.children()"),
        ),
        mistake(
            "you leave the network in evaluation mode; it is to stay in the mode in which it came",
            input_statistics,
            ("    seen = {}\n", "    seen = {}\n    model.eval()\n"),
        ),
    ),
    properties=(
        Property(
            "twice the inputs plus 1 have twice the mean plus 1, and four times the variance",
            _sees_shift_and_scale,
        ),
    ),
)


# --- BNP --------------------------------------------------------------------------------------


class BNP:
    """Batch Normalization Preconditioning for the dense layers of a network.

    Source: LAB-5.
    """

    def __init__(
        self, model: nn.Module, rho: float = 0.99, eps1: float = 1e-2, eps2: float = 1e-4
    ) -> None:
        self.rho, self.eps1, self.eps2 = rho, eps1, eps2
        self.layers = [one for one in model.modules() if isinstance(one, nn.Linear)]
        self.place = {layer: k for k, layer in enumerate(self.layers)}
        self.mean = [torch.zeros_like(layer.weight[0]) for layer in self.layers]
        self.var = [torch.ones_like(layer.weight[0]) for layer in self.layers]
        self.rows = [0 for layer in self.layers]
        self.handles = [layer.register_forward_pre_hook(self.observe) for layer in self.layers]

    @torch.no_grad()
    def observe(self, layer: Any, inputs: tuple[Tensor, ...]) -> None:
        """Take the minibatch that a layer reads into its averages."""
        if not layer.training:
            return
        k, h = self.place[layer], inputs[0]
        self.rows[k] = len(h)
        self.mean[k].lerp_(h.mean(dim=0), 1 - self.rho)
        self.var[k].lerp_(h.var(dim=0, correction=0), 1 - self.rho)

    @torch.no_grad()
    def step(self) -> None:
        """Precondition the gradients that are there, in place."""
        if not any(self.rows):
            raise RuntimeError("no minibatch has passed since the last step: run the network first")
        for k, layer in enumerate(self.layers):
            mean, var, rows = self.mean[k], self.var[k], self.rows[k]
            self.rows[k] = 0
            weight, bias = layer.weight.grad, layer.bias.grad
            if weight is None or bias is None or not rows:
                continue
            q2 = max(len(mean) / rows, 1)
            smoothed = var + self.eps1 * var.max() + self.eps2
            weight.sub_(torch.outer(bias, mean)).div_(q2 * smoothed)
            bias.div_(q2).sub_(weight @ mean)

    def remove(self) -> None:
        """Take the hooks away."""
        for handle in self.handles:
            handle.remove()

    def state_dict(self) -> dict[str, list[Tensor]]:
        """Return copies of the averages."""
        mean = [one.clone() for one in self.mean]
        var = [one.clone() for one in self.var]
        return {"mean": mean, "var": var}

    def load_state_dict(self, state: Mapping[str, Sequence[Tensor]]) -> None:
        """Go on with averages that were saved."""
        for k in range(len(self.layers)):
            self.mean[k].copy_(state["mean"][k])
            self.var[k].copy_(state["var"][k])


def _trainings(rng: np.random.Generator) -> Iterator[Case]:
    for event, widths, sizes in [
        ("none", [4, 3, 2], [3, 2]),
        ("evaluated", [3, 1], [4]),
        ("resumed", [2, 1], [4, 4]),
        ("frozen", [2, 3, 2], [3]),
        ("float32", [4, 3, 2], [2]),
    ]:
        yield {
            "x": [rng.normal(1, 1, size=(rows, widths[0])).round(2) for rows in sizes],
            "widths": widths,
            "seed": int(rng.integers(1000)),
            "rho": 0.8 if event == "none" else 0.5,
            "event": event,
        }


def _agrees_with_the_finished_one(kind: Any, rng: np.random.Generator) -> bool:
    """Return whether five steps on one network are those of the course's own BNP."""
    x = list(rng.normal(1, 2, size=(5, 4, 3)))
    steps = observe(drivers.follow_with_defaults, kind, x, [3, 6, 2], 0, 0.9)
    expected = drivers.follow_with_defaults(optdl.bnp.BNP, x, [3, 6, 2], 0, 0.9)
    return all(
        np.allclose(*pair)
        for step in zip(steps, expected, strict=True)
        for pair in zip(*step, strict=True)
    )


def _leaves_the_network_as_it_was(kind: Any, rng: np.random.Generator) -> bool:
    """Return whether the outputs are those of a network without BNP, in training as in testing."""
    x = rng.normal(size=(5, 3))
    outputs = observe(drivers.output_around, kind, x, [3, 4, 2], 1)
    expected = drivers.nested_network([3, 4, 2], 1)(torch.tensor(x)).detach().numpy()
    return all(np.array_equal(output, expected) for output in outputs)


_OBSERVE = "    def observe(self, layer: Any, inputs: tuple[Tensor, ...]) -> None:"
_IS_DENSE = "self.layers = [one for one in model.modules() if isinstance(one, nn.Linear)]"

BNP_PRECONDITIONER = Exercise(
    key="LAB-5:bnp",
    reference=BNP,
    use=drivers.follow,
    cases=_trainings,
    parts=(
        "the gradients after each step",
        ("the averages", "with a graph"),
        "the saved averages at the end",
        "a second step",
        "hooks after remove()",
    ),
    rtol=1e-4,
    atol=1e-5,
    misconceptions=(
        mistake(
            "your averages take in what the layers give; they are those of what the layers read",
            BNP,
            (
                _OBSERVE,
                "    def observe(self, layer, inputs, output) -> None:\n        inputs = [output]",
            ),
            ("register_forward_pre_hook", "register_forward_hook"),
        ),
        mistake(
            "your averages take in the passes in evaluation mode; leave the hook when "
            "`layer.training` is False",
            BNP,
            ("if not layer.training:", "if False:"),
        ),
        mistake(
            "the hooks are still there after `remove()`; keep the handles that registering "
            "gives you, and call `remove()` on each",
            BNP,
            ("            handle.remove()", "            pass"),
        ),
        mistake(
            "your `remove()` takes away the hooks of others, too; keep the handles that "
            "registering gives you, and call `remove()` on each",
            BNP,
            (
                "        for handle in self.handles:\n            handle.remove()",
                "        for layer in self.layers:\n            layer._forward_pre_hooks.clear()",
            ),
        ),
        mistake(
            "your `state_dict()` gives the averages themselves, which change as the training "
            "goes on; return copies, with `clone()`",
            BNP,
            ("mean = [one.clone() for one in self.mean]", "mean = self.mean"),
            ("var = [one.clone() for one in self.var]", "var = self.var"),
        ),
        mistake(
            "your averages are saved under the layer objects of one network, and a new network "
            "does not find them; save lists, in the order of the layers",
            BNP,
            (
                'return {"mean": mean, "var": var}',
                'return {"mean": dict(zip(self.layers, mean)), "var": dict(zip(self.layers, var))}',
            ),
            ('state["mean"][k]', 'state["mean"][self.layers[k]]'),
            ('state["var"][k]', 'state["var"][self.layers[k]]'),
        ),
        mistake(
            "`load_state_dict` does not take up what was saved, so that the averages begin "
            "anew when training is resumed",
            BNP,
            ('self.mean[k].copy_(state["mean"][k])', "pass"),
            ('self.var[k].copy_(state["var"][k])', "pass"),
        ),
        mistake(
            "`load_state_dict` keeps the tensors of the state, and the passes that follow change "
            "what was saved; copy their numbers, with `copy_` or `clone()`",
            BNP,
            ('self.mean[k].copy_(state["mean"][k])', 'self.mean[k] = state["mean"][k]'),
            ('self.var[k].copy_(state["var"][k])', 'self.var[k] = state["var"][k]'),
        ),
        mistake(
            "your variances begin at 0; BNP begins with the mean 0 and the variance 1",
            BNP,
            ("torch.ones_like(layer.weight[0])", "torch.zeros_like(layer.weight[0])"),
        ),
        mistake(
            "you divide the averages by 1 − ρᵗ, as Adam does; BNP does not correct for the start",
            BNP,
            (
                "        self.rows[k] = len(h)\n",
                "        self.rows[k] = len(h)\n"
                "        self.t = getattr(self, 't', {})\n"
                "        self.t[k] = self.t.get(k, 0) + 1\n",
            ),
            (
                "            if weight is None or",
                "            correction = 1 - self.rho ** self.t.get(k, 1)\n"
                "            mean, var = mean / correction, var / correction\n"
                "            if weight is None or",
            ),
        ),
        mistake(
            "your step leaves `eps1` and `eps2` at their default values; use those that the "
            "constructor is given",
            BNP,
            ("self.eps1 * var.max() + self.eps2", "1e-2 * var.max() + 1e-4"),
        ),
        mistake(
            "your averages begin with the first minibatch; BNP begins with the mean 0 and the "
            "variance 1",
            BNP,
            (
                "        self.rows[k] = len(h)\n",
                "        self.rows[k] = len(h)\n"
                "        if not self.mean[k].any():\n"
                "            self.mean[k].copy_(h.mean(dim=0))\n"
                "            self.var[k].copy_(h.var(dim=0, correction=0))\n",
            ),
        ),
        mistake(
            "ρ and 1 − ρ are the wrong way round; ρ is the share of the old average",
            BNP,
            ("h.mean(dim=0), 1 - self.rho", "h.mean(dim=0), self.rho"),
            (
                "h.var(dim=0, correction=0), 1 - self.rho",
                "h.var(dim=0, correction=0), self.rho",
            ),
        ),
        mistake(
            "your variance divides by N − 1; BNP divides by N, which is `correction=0`",
            BNP,
            ("h.var(dim=0, correction=0)", "h.var(dim=0)"),
        ),
        mistake(
            "you precondition with the statistics of the last minibatch; BNP uses the running "
            "averages",
            BNP,
            (
                "        self.rows[k] = len(h)\n",
                "        self.rows[k] = len(h)\n"
                "        self.last = getattr(self, 'last', {})\n"
                "        self.last[k] = h.mean(dim=0), h.var(dim=0, correction=0)\n",
            ),
            (
                "mean, var, rows = self.mean[k], self.var[k], self.rows[k]",
                "mean, var = self.last[k]\n            rows = self.rows[k]",
            ),
        ),
        mistake(
            "your averages hold the graphs of the passes, more with every step; compute them "
            "without a graph, for example from `inputs[0].detach()`",
            BNP,
            ("    @torch.no_grad()\n    def observe", "    def observe"),
            ("[one.clone() for one in self.mean]", "[one.detach().clone() for one in self.mean]"),
            ("[one.clone() for one in self.var]", "[one.detach().clone() for one in self.var]"),
        ),
        mistake(
            "your averages are in float32, whatever the network is; make them like the "
            "weights, for example with `torch.zeros_like(layer.weight[0])`",
            BNP,
            ("torch.zeros_like(layer.weight[0])", "torch.zeros(layer.in_features)"),
            ("torch.ones_like(layer.weight[0])", "torch.ones(layer.in_features)"),
        ),
        mistake(
            "you leave the gradient of the bias as it is; it takes up the means",
            BNP,
            ("            bias.div_(q2).sub_(weight @ mean)\n", ""),
        ),
        mistake(
            "your step computes new gradients, and those of the parameters stay as they are; "
            "change them in place",
            BNP,
            (
                "weight.sub_(torch.outer(bias, mean)).div_(",
                "weight = weight.sub(torch.outer(bias, mean)).div(",
            ),
            ("bias.div_(q2).sub_(", "bias = bias.div(q2).sub("),
        ),
        mistake(
            "your hook returns something, and what a pre-hook returns takes the place of the "
            "layer's input; let it return None",
            BNP,
            (
                "        self.var[k].lerp_(h.var(dim=0, correction=0), 1 - self.rho)",
                "        self.var[k].lerp_(h.var(dim=0, correction=0), 1 - self.rho)\n"
                "        return h - self.mean[k]",
            ),
        ),
        mistake(
            "you look at the children of the network alone and miss the layers in its blocks; "
            "`modules()` finds layers at every depth",
            BNP,
            ("model.modules()", "model.children()"),
        ),
        mistake(
            "you find a layer several times, once for each block around it, and precondition "
            "it as often; `model.modules()` finds each once",
            BNP,
            (
                _IS_DENSE,
                "self.layers = [one for block in model.modules() for one in block.modules() "
                "if isinstance(one, nn.Linear)]",
            ),
        ),
        mistake(
            "your step fails at a layer without gradients, such as a frozen one; leave it as it is",
            BNP,
            ("if weight is None or bias is None or not rows:", "if not rows:"),
        ),
        mistake(
            "a second step without a pass preconditions the gradients once more; forget the "
            "pass in `step`, and raise RuntimeError when there was none",
            BNP,
            ("            self.rows[k] = 0\n", ""),
        ),
        mistake(
            "a second step without a pass must raise RuntimeError; yours gives no error",
            BNP,
            (
                'raise RuntimeError("no minibatch has passed since the last step: '
                'run the network first")',
                "return",
            ),
        ),
        mistake(
            "a pass in evaluation mode changes N, the size of the minibatch; leave the hook at "
            "once when `layer.training` is False",
            BNP,
            (
                "        if not layer.training:\n            return\n"
                "        k, h = self.place[layer], inputs[0]\n        self.rows[k] = len(h)\n",
                "        k, h = self.place[layer], inputs[0]\n        self.rows[k] = len(h)\n"
                "        if not layer.training:\n            return\n",
            ),
        ),
        mistake(
            "you keep the size of the first minibatch; q² needs that of the last one",
            BNP,
            (
                "        self.rows[k] = len(h)\n",
                "        self.first = getattr(self, 'first', {})\n"
                "        self.rows[k] = self.first.setdefault(k, len(h))\n",
            ),
        ),
    ),
    properties=(
        Property("five steps are those of the course's own BNP", _agrees_with_the_finished_one),
        Property("the network gives what it gave without BNP", _leaves_the_network_as_it_was),
    ),
)


# --- The training loop ------------------------------------------------------------------------


def train(
    model: nn.Module, optimizer: torch.optim.Optimizer, bnp: Any, batches: Any
) -> list[float]:
    """Return the loss of each step, while the model is trained, with BNP if it is not None.

    Source: LAB-5.
    """
    model.train()
    losses = []
    for x, y in batches:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()  # type: ignore[no-untyped-call]
        if bnp is not None:
            bnp.step()
        optimizer.step()
        losses.append(loss.item())
    return losses


def _batches(rng: np.random.Generator) -> Iterator[Case]:
    for steps, rows, preconditioned in [(3, 2, True), (4, 3, False), (5, 4, True)]:
        yield {
            "x": rng.normal(size=(steps, rows, 3)).round(2),
            "y": rng.integers(0, 3, size=(steps, rows)),
            "seed": int(rng.integers(1000)),
            "preconditioned": preconditioned,
        }


def _stands_still_at_rate_zero(function: Any, rng: np.random.Generator) -> bool:
    """Return whether weights stay and losses repeat when no step has a length."""
    seed, widths = int(rng.integers(1000)), [3, 4, 2]
    x, y = rng.normal(size=(4, 3)), np.array([0, 1, 1, 0])
    (first, second), weights = observe(drivers.train_at_rate_zero, function, x, y, widths, seed)
    before = (value.detach().numpy() for value in drivers.nested_network(widths, seed).parameters())
    stay = zip(weights, before, strict=True)
    return bool(first == second) and all(np.array_equal(*pair) for pair in stay)


TRAIN = Exercise(
    key="LAB-5:train",
    reference=train,
    use=drivers.train,
    cases=_batches,
    parts=(
        *("the losses", "their type", "the weights"),
        *("calls of bnp.step", "calls without gradients"),
    ),
    misconceptions=(
        mistake(
            "you precondition after the optimizer's step, which has used the plain gradients "
            "by then; call `bnp.step()` between `backward` and `optimizer.step()`",
            train,
            ("        if bnp is not None:\n            bnp.step()\n", ""),
            (
                "optimizer.step()",
                "optimizer.step()\n        if bnp is not None:\n            bnp.step()",
            ),
        ),
        mistake(
            "you precondition before `backward`, when there are no gradients; call "
            "`bnp.step()` between `backward` and `optimizer.step()`",
            train,
            ("        if bnp is not None:\n            bnp.step()\n", ""),
            (
                "        loss.backward()",
                "        if bnp is not None:\n            bnp.step()\n        loss.backward()",
            ),
        ),
        mistake(
            "your loop fails when `bnp` is None; leave its step out then",
            train,
            ("if bnp is not None:", "if True:"),
        ),
        mistake(
            "you never call `bnp.step()`; its place is between `backward` and `optimizer.step()`",
            train,
            ("            bnp.step()", "            pass"),
        ),
        mistake(
            "you precondition twice in each step; call `bnp.step()` once for each minibatch",
            train,
            ("            bnp.step()", "            bnp.step()\n            bnp.step()"),
        ),
        mistake(
            "you never clear the gradients, and `backward` adds to those that were "
            "preconditioned; call `optimizer.zero_grad()` in each step",
            train,
            ("        optimizer.zero_grad()\n", ""),
        ),
        mistake(
            "you clear the gradients after `backward`, so that no step changes anything; clear "
            "them before",
            train,
            ("        optimizer.zero_grad()\n", ""),
            (
                "        loss.backward()",
                "        loss.backward()\n        optimizer.zero_grad()",
            ),
        ),
        mistake(
            "you keep the loss as a tensor, and with it the nodes of the graph of every step; "
            "keep the number, `loss.item()`",
            train,
            ("loss.item()", "loss"),
        ),
        mistake(
            "your model stays in evaluation mode, in which dropout does nothing and the hooks "
            "of BNP see nothing; call `model.train()` first",
            train,
            ("    model.train()\n", ""),
        ),
        mistake(
            "you return after the first minibatch; move `return` out of the loop",
            train,
            ("    return losses", "        return losses"),
        ),
    ),
    properties=(
        Property(
            "with a rate of 0 the weights stay, and the same minibatch has the same loss",
            _stands_still_at_rate_zero,
        ),
    ),
)


# --- The figure -------------------------------------------------------------------------------


def plot_curves(ax: Any, curves: dict[str, list[float]], every: int) -> None:
    """Draw training losses over the steps: one labelled line for each method.

    Source: LAB-5.
    """
    for name, losses in curves.items():
        steps = [every * (k + 1) for k in range(len(losses))]
        ax.plot(steps, losses, marker="o", label=name)
    ax.set_yscale("log")
    ax.set_xlabel("step")
    ax.set_ylabel("training loss")
    ax.legend()


def _measured(rng: np.random.Generator) -> Iterator[Case]:
    for names, count, every in [(("SGD",), 2, 10), (METHODS[:3], 5, 20), (METHODS, 4, 25)]:
        yield {
            "curves": {name: rng.uniform(0.05, 2, size=count).round(3).tolist() for name in names},
            "every": every,
        }


def _draws_each_measurement(function: Any, rng: np.random.Generator) -> bool:
    """Return whether lines hold the losses that were given, also of a single measurement."""
    curves = {name: rng.uniform(0.1, 2, size=n).tolist() for n, name in enumerate(METHODS, start=1)}
    lines = observe(drawn, function, curves, 7)["lines"]
    return sorted(lines) == sorted(curves) and all(
        np.allclose(lines[name][1], curves[name]) and lines[name][0][-1] == 7 * len(curves[name])
        for name in curves
    )


PLOT_CURVES = Exercise(
    key="LAB-5:plot",
    reference=plot_curves,
    use=drawn,
    cases=_measured,
    misconceptions=(
        mistake(
            "you draw the losses over 0, 1, 2, …; draw them over the steps, of which there are "
            "`every` between two measurements",
            plot_curves,
            ("[every * (k + 1) for k in range(len(losses))]", "range(len(losses))"),
        ),
        mistake(
            "your first measurement stands at step 0; it was made after `every` steps",
            plot_curves,
            ("every * (k + 1)", "every * k"),
        ),
        mistake(
            "your losses lie on a linear axis, where the small ones cannot be told apart; use "
            '`ax.set_yscale("log")`',
            plot_curves,
            ('    ax.set_yscale("log")\n', ""),
        ),
        mistake(
            "your steps lie on a logarithmic axis; leave that axis linear",
            plot_curves,
            (
                '    ax.set_yscale("log")\n',
                '    ax.set_yscale("log")\n    ax.set_xscale("log")\n',
            ),
        ),
        mistake(
            "an axis has no label; add it with `ax.set_xlabel` and `ax.set_ylabel`",
            plot_curves,
            ('    ax.set_xlabel("step")\n', ""),
        ),
        mistake(
            "there is no legend, so nobody knows which line is which; call `ax.legend()`",
            plot_curves,
            ("    ax.legend()", "    pass"),
        ),
        mistake(
            "your lines have no labels; give each `label=name`",
            plot_curves,
            (", label=name", ""),
        ),
    ),
    properties=(Property("each line holds the losses of its method", _draws_each_measurement),),
)


# --- The exercises ----------------------------------------------------------------------------

EXERCISES: tuple[Exercise, ...] = (
    PRECONDITION,
    INPUT_STATISTICS,
    BNP_PRECONDITIONER,
    TRAIN,
    PLOT_CURVES,
)


# --- The record -------------------------------------------------------------------------------

LEVEL = 0.3
"""A training loss; the readings are the steps after which it is first below."""


def _is_method(value: Any) -> bool:
    return value in METHODS


def _evaluate(weights: Mapping[str, Tensor]) -> float:
    """Return the accuracy of weights, on the inputs with which they were trained.

    The weights do not say which these are; on the other ones they do worse.
    """
    model = network(0, normalized=any(name.endswith("running_mean") for name in weights))
    model.load_state_dict(dict(weights))
    return max(accuracy(model, inputs) for inputs in INPUTS)


def _steps(name: str, inputs: str) -> Callable[[Any], float]:
    def find(record: Any) -> float:
        losses = best_curves(record, inputs).get(name, [])
        below = [k for k, loss in enumerate(losses) if loss < LEVEL]
        return EVERY * (below[0] + 1) if below else STEPS

    return find


_ASKED = "one of the methods " + ", ".join(METHODS)

RECORD = RecordCheck(
    key="LAB-5:record",
    lab=LAB,
    predictions=dict.fromkeys(INPUTS, (_ASKED, _is_method)),
    evaluate=_evaluate,
    level=0.8,
    readings={
        f"{name}, {inputs}": (
            f"the step at which the line of {name} on {inputs} pixels is first below {LEVEL}",
            _steps(name, inputs),
        )
        for inputs in INPUTS
        for name in ("SGD", "BNP")
    },
    again=LAB.settings[::5],  # all methods, rates and inputs
)
