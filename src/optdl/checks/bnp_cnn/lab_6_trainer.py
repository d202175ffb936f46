"""The student writes an epoch in mixed precision that never waits for the device."""

import numpy as np
import torch
from torch import nn

from optdl.bnp import BNP
from optdl.checks.exercise import Exercise
from optdl.labs.bnp_cnn import network, precision
from optdl.labs.drivers import bnp_cnn as drivers


class Trainer:
    """A network, its optimizer and its loss scale on a device. Source: LAB-6."""

    def __init__(
        self,
        model,
        lr,
        device="cpu",
        dtype=None,
        bnp=False,
        channels_last=True,
        compiled=False,
        max_norm=5.0,
        weight_decay=0.0,
    ):
        model = network(**model) if isinstance(model, dict) else model
        self.device, self.max_norm = torch.device(device), max_norm
        self.format = torch.channels_last if channels_last else torch.contiguous_format
        self.model = model.to(self.device, memory_format=self.format)
        self.bnp = BNP(self.model, check_finite=False) if bnp else None
        self.forward = torch.compile(self.model) if compiled else self.model
        settings = {"lr": lr, "momentum": 0.9, "weight_decay": weight_decay}
        on_gpu = self.device.type == "cuda"
        self.optimizer = torch.optim.SGD(self.model.parameters(), **settings, fused=on_gpu)
        in_half = dtype == torch.float16
        self.scaler = torch.amp.GradScaler(self.device.type, init_scale=1024.0, enabled=in_half)
        self.autocast = precision(self.device, dtype)

    def epoch(self, batches):
        """Train on each minibatch, and return the loss of each step."""
        self.model.train()
        losses = []
        for x, y in batches:
            x = x.to(self.device, memory_format=self.format, non_blocking=True)
            y = y.to(self.device, non_blocking=True)
            self.optimizer.zero_grad()
            with self.autocast:
                loss = nn.functional.cross_entropy(self.forward(x), y)
            self.scaler.scale(loss).backward()
            self.scaler.unscale_(self.optimizer)
            nn.utils.clip_grad_norm_(self.model.parameters(), self.max_norm)
            if self.bnp is not None:
                self.bnp.step()
            self.scaler.step(self.optimizer)
            self.scaler.update()
            losses.append(loss.detach())
        return torch.stack(losses).tolist()


exercise = Exercise("LAB-6:trainer", Trainer, use=drivers.trainer, rtol=3e-3, atol=1e-4)


@exercise.cases
def _(rng):
    limit = round(rng.uniform(0.2, 0.5), 2)
    settings = [
        (True, 1, {"lr": 0.5}),
        (False, 10, {"lr": 0.1, "max_norm": limit, "bnp": True}),
        (False, 1, {"lr": 0.1, "max_norm": limit, "dtype": "float16"}),
        (False, 1, {"lr": 0.1, "device": "meta"}),
    ]
    for with_bn, scale, options in settings:
        count, rows, height, width = rng.integers(3, 6, size=4)
        shape = (1, height + 1, width + 1)
        if "device" in options:
            count, shape = 2, (3, 8, 8)  # a number that is read in the loop is read after one step
        x = scale * rng.normal(size=(count, rows, *shape)).round(2)
        if "dtype" in options:
            x[1] = 1e5  # more than float16 can hold
        y = rng.integers(0, 3, size=(count, rows))
        yield x, y, options, with_bn, int(rng.integers(1000))


@exercise.fact("with a loss scale, float16 gives the losses of float32 to two digits")
def _(kind, rng):
    x, y = rng.normal(size=(3, 4, 1, 4, 4)), rng.integers(0, 3, size=(3, 4))
    seed = int(rng.integers(1000))
    whole, half = (
        exercise.observe(kind, x, y, {"lr": 0.1, "dtype": dtype}, False, seed)[1]
        for dtype in (None, "float16")
    )
    return np.allclose(half, whole, rtol=0.02, atol=0.01)


exercise.help(r"""
1. Which of the five points run under autocast, and which need the gradients without the scale?
2. Only the forward pass and the loss run under autocast. The scaler is needed four times: `scale`
   before the backward pass, then `unscale_`, and at the end `step` and `update`.
3. Switch to training mode, and turn each point into one to three lines, in the given order. Keep
   the detached losses in a list, and after the loop convert their stack into numbers at once.
you read a number in the loop and wait for the device; keep `loss.detach()`, and read all at the end
    loss.detach() → loss.item() ; torch.stack(losses).tolist() → losses
your network stays in evaluation mode; call `self.model.train()` first
    self.model.train() →
you never clear the gradients, to which `backward` adds; call `self.optimizer.zero_grad()` each time
    self.optimizer.zero_grad() →
your first step has the gradients from before the call, too; clear them before each `backward`
    self.optimizer.zero_grad() →
    self.scaler.update() → self.scaler.update(), self.optimizer.zero_grad()
your forward pass calls `self.model`, which is never compiled; call `self.forward`
    self.forward(x) → self.model(x)
your minibatches stay where they are; bring x and y to `self.device`
    x = x.to(self.device, → x = x.to( ; y = y.to(self.device, → y = y.to(y.device,
your forward pass runs in float32; put it and the loss into `with self.autocast:`
    with self.autocast: → if True:
you run the backward pass from the loss itself; run it from `self.scaler.scale(loss)`
    self.scaler.scale(loss).backward() → loss.backward()
you return the losses times the scale; return the losses themselves
    loss.detach() → self.scaler.scale(loss).detach()
you clip gradients times the loss scale; call `self.scaler.unscale_(self.optimizer)` before you clip
    self.scaler.unscale_(self.optimizer) →
you do not clip; limit the norm of all gradients together to `self.max_norm`
    without `clip…`, else your steps are those of gradients whose norm has no limit
    nn.utils.clip_grad_norm_(self.model.parameters(), self.max_norm) →
you clip each entry of the gradients; clip the norm of all of them together, with `clip_grad_norm_`
    clip_grad_norm_ → clip_grad_value_
you limit each parameter's norm by itself; limit that of all together
    nn.utils.clip_grad_norm_(self.model.parameters(), self.max_norm)
    → [nn.utils.clip_grad_norm_(p, self.max_norm) for p in self.model.parameters()]
you clip what BNP has made of the gradient; clip the gradient itself, before `self.bnp.step()`
    nn.utils.clip_grad_norm_(self.model.parameters(), self.max_norm) → self.bnp and self.bnp.step()
    if self.bnp is not None:\n                self.bnp.step()
    → nn.utils.clip_grad_norm_(self.model.parameters(), self.max_norm)
`self.bnp.step()` is missing, or comes after the optimizer's step; it belongs before that step
    self.bnp.step() → pass
you step where gradients overflowed; `self.scaler.step(self.optimizer)` leaves such a step out
    self.scaler.step(self.optimizer) → self.optimizer.step()
your loss scale never changes, since `self.scaler.update()` is missing at the end of the step
    without `scaler.update`
    self.scaler.update() →
your loss is a sum over the minibatch; cross_entropy takes the mean unless you tell it otherwise
    (self.forward(x), y) → (self.forward(x), y, reduction="sum")
you limit the norm to a number of your own; the limit is `self.max_norm`
    parameters(), self.max_norm) → parameters(), 5.0)
you call `self.scaler.update()` before `self.scaler.step(…)`, which unscales once more; call it last
    with `scaler.update`
    self.scaler.step(self.optimizer)\n            self.scaler.update()
    → self.scaler.update()\n            self.scaler.step(self.optimizer)
""")
