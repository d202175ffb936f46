"""The student writes BNP as a class that observes a network through hooks."""

import numpy as np
import torch
from torch import nn

import optdl.bnp
from optdl.checks.compare import disagreement
from optdl.checks.exercise import Exercise
from optdl.labs.drivers import bnp as drivers


class BNP:
    """Batch Normalization Preconditioning for the dense layers of a network. Source: LAB-5."""

    def __init__(self, model, rho=0.99, eps1=0.01, eps2=0.0001):
        self.rho, self.eps1, self.eps2 = rho, eps1, eps2
        self.layers = [one for one in model.modules() if isinstance(one, nn.Linear)]
        self.place = {layer: k for k, layer in enumerate(self.layers)}
        self.mean = [torch.zeros_like(layer.weight[0]) for layer in self.layers]
        self.var = [torch.ones_like(layer.weight[0]) for layer in self.layers]
        self.rows = [0 for layer in self.layers]
        self.handles = [layer.register_forward_pre_hook(self.observe) for layer in self.layers]

    @torch.no_grad()
    def observe(self, layer, inputs):
        """Take the minibatch that a layer reads into its averages."""
        if not layer.training:
            return
        k, h = self.place[layer], inputs[0]
        self.rows[k] = len(h)
        self.mean[k].lerp_(h.mean(dim=0), 1 - self.rho)
        self.var[k].lerp_(h.var(dim=0, correction=0), 1 - self.rho)

    @torch.no_grad()
    def step(self):
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

    def remove(self):
        """Take the hooks away."""
        for handle in self.handles:
            handle.remove()

    def state_dict(self):
        """Return copies of the averages."""
        mean = [one.clone() for one in self.mean]
        var = [one.clone() for one in self.var]
        return {"mean": mean, "var": var}

    def load_state_dict(self, state):
        """Go on with averages that were saved."""
        for k in range(len(self.layers)):
            self.mean[k].copy_(state["mean"][k])
            self.var[k].copy_(state["var"][k])


exercise = Exercise("LAB-5:bnp", BNP, use=drivers.bnp, rtol=1e-4, atol=1e-5)


@exercise.cases
def _(rng):
    for event, layers in [
        ("", 2),
        ("evaluated between backward and step", 1),
        ("evaluated between backward and step, where BNP observes model[1:]", 2),
        ("two passes before each step", 1),
        ("resumed after step 1 with a new network of the same weights", 1),
        ("a frozen first layer, and a layer within the last that is never called", 2),
        ("another hook on the last layer, and float32", 2),
    ]:
        widths = rng.integers(3, 6, size=layers + 1).tolist()
        sizes = [int(rng.integers(2, widths[0])), int(rng.integers(2, 7))]
        dtype = np.float32 if "float32" in event else np.float64
        x = [rng.normal(1, 1, size=(m, widths[0])).round(2).astype(dtype) for m in sizes]
        options = {"rho": round(rng.uniform(0.4, 0.8), 2), "eps1": 0.1, "eps2": 0.01}
        yield x, widths, int(rng.integers(1000)), options, event


@exercise.fact("gradients after steps 1 and 5 and the last outputs are those of the course's BNP")
def _(kind, rng):
    class CoursesOwn(optdl.bnp.BNP):
        def state_dict(self):
            return {"mean": [], "var": []}

    case = [*rng.normal(1, 2, size=(5, 4, 3))], [3, 6, 2], int(rng.integers(1000)), {}, ""
    got, expected = exercise.observe(kind, *case), exercise.use(CoursesOwn, *case)
    return all(disagreement(expected[k], got[k], 1e-7, 1e-9) is None for k in (1, 2, 9))


exercise.help(r"""
1. What must the object keep for each layer, and which of its methods read or change it?
2. For each layer, it keeps two averages, the size of the last minibatch, and the handle of the
   hook. The hook sets averages and size; `step` reads them, and sets the size to 0, as used up.
3. The hook returns at once in evaluation mode; otherwise it moves both averages in place, without a
   graph. `step` raises the error if all sizes are 0; else it preconditions where gradients exist.
your averages take in what the layers give; they are those of what the layers read
    (self, layer, inputs) → (self, layer, inputs, output) ; inputs[0] → output
    forward_pre_hook → forward_hook
your averages take in the passes in evaluation mode; leave the hook when `layer.training` is False
    if not layer.training: → if False:
you ask the network for its mode; ask the layer: leave the hook when `layer.training` is False
    self.layers = [one → self.model = model\n        self.layers = [one
    if not layer.training → if not self.model.training
your `state_dict()` gives the averages themselves, which go on changing; return copies, by `clone()`
    [one.clone() for one in self.mean] → self.mean ; [one.clone() for one in self.var] → self.var
you save averages under layer objects, which a new network does not have; save lists, layer by layer
    "mean": mean, "var": var → "mean": dict(zip(self.layers, mean)), "var": {}
    state["mean"][k] → state["mean"][self.layers[k]]
your step leaves `eps1` and `eps2` at their default values; use those that the constructor is given
    self.eps1 * var.max() + self.eps2 → 1e-2 * var.max() + 1e-4
your averages begin with the first minibatch; they begin with the mean 0 and the variance 1
    self.rows[k] = len(h)
    → self.rows[k], share, layer.seen = len(h), 1 - self.rho * hasattr(layer, "seen"), True
    h.mean(dim=0), 1 - self.rho → h.mean(dim=0), share
    correction=0), 1 - self.rho → correction=0), share
ρ and 1 − ρ are the wrong way round; ρ is the weight of the old average
    = rho, eps1, eps2 → = 1 - rho, eps1, eps2
your variance divides by N − 1; BNP divides by N, which is `correction=0`
    , correction=0 →
you precondition with the statistics of the last minibatch; BNP uses the running averages
    self.rows[k] = len(h)
    → self.rows[k], layer.last = len(h), (h.mean(dim=0), h.var(dim=0, correction=0))
    mean, var, rows = self.mean[k], self.var[k], self.rows[k]
    → (mean, var), rows = layer.last, self.rows[k]
you leave the gradient of the bias as it is; it becomes G_b/q² minus the new G_w times μ
    bias.div_(q2).sub_(weight @ mean) →
your step leaves the gradients of the parameters as they are; change them in place
    weight.sub_( → weight = weight.sub( ; .div_(q2 * → .div(q2 *
    bias.div_(q2).sub_( → bias = bias.div(q2).sub(
you look at the children alone and miss layers in blocks; `modules()` finds layers at every depth
    model.modules() → model.children()
you keep the size of the first minibatch; q² needs that of the last one
    self.rows[k] = len(h) → self.rows[k] = layer.first = getattr(layer, "first", len(h))
you take the size of a minibatch in evaluation mode; q² needs that of the last one in training mode
    if not layer.training:\n            return → self.rows[self.place[layer]] = len(inputs[0])\n
            if not layer.training:\n            return
your N is wrong where several minibatches pass before a step; it is the size of the last of them
    self.rows[k] = len(h) → self.rows[k] += len(h)
your ρ is always the same; keep the `rho` that the constructor is given
    = rho, eps1, eps2 → = 0.99, eps1, eps2
your variance is around the running mean; take that of the minibatch, around its own mean
    h.var(dim=0, correction=0) → (h - self.mean[k]).square().mean(dim=0)
your step does not forget the minibatch; a second step without a new pass raises `RuntimeError`
    self.rows[k] = 0 → pass
""")
