"""The student writes an epoch in mixed precision that never waits for the device."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from optdl.bnp import BNP
from optdl.checks.exercise import Case, Exercise
from optdl.labs.bnp_cnn import network, precision
from optdl.labs.drivers import bnp_cnn as drivers
from optdl.observation import observe


class Trainer:
    """A network, its optimizer and its loss scale on a device.

    Source: LAB-6.
    """

    def __init__(
        self,
        model: Any,
        lr: float,
        device: str = "cpu",
        dtype: torch.dtype | None = None,
        bnp: bool = False,
        channels_last: bool = True,
        compiled: bool = False,
        max_norm: float = 5.0,
        weight_decay: float = 0.0,
    ) -> None:
        model = network(**model) if isinstance(model, dict) else model
        self.device, self.max_norm = torch.device(device), max_norm
        self.format = torch.channels_last if channels_last else torch.contiguous_format
        self.model: Any = model.to(self.device, memory_format=self.format)
        self.bnp = BNP(self.model, check_finite=False) if bnp else None
        self.forward = torch.compile(self.model) if compiled else self.model
        settings: Any = {"lr": lr, "momentum": 0.9, "weight_decay": weight_decay}
        on_gpu = self.device.type == "cuda"
        self.optimizer = torch.optim.SGD(self.model.parameters(), **settings, fused=on_gpu)
        in_half = dtype == torch.float16
        self.scaler = torch.amp.GradScaler(self.device.type, init_scale=1024.0, enabled=in_half)
        self.autocast = precision(self.device, dtype)

    def epoch(self, batches: Iterable[tuple[Tensor, Tensor]]) -> list[float]:
        """Train on each minibatch, and return the loss of each step."""
        self.model.train()
        losses = []
        for x, y in batches:
            x = x.to(self.device, memory_format=self.format, non_blocking=True)
            y = y.to(self.device, non_blocking=True)
            self.optimizer.zero_grad()
            with self.autocast:
                loss = nn.functional.cross_entropy(self.forward(x), y)
            self.scaler.scale(loss).backward()  # type: ignore[no-untyped-call]
            self.scaler.unscale_(self.optimizer)
            nn.utils.clip_grad_norm_(self.model.parameters(), self.max_norm)
            if self.bnp is not None:
                self.bnp.step()
            self.scaler.step(self.optimizer)
            self.scaler.update()
            losses.append(loss.detach())
        numbers: list[float] = torch.stack(losses).tolist()
        return numbers


exercise = Exercise(
    "LAB-6:trainer",
    Trainer,
    use=drivers.train,
    rtol=3e-3,
    atol=1e-4,
    parts=(
        *("the steps before a number is read", "whether a list is returned"),
        *("whether each loss is a float", "the losses", "the weights", "the loss scale"),
        "whether the cross-entropy is computed under autocast",
        "whether the backward pass runs outside of autocast",
        "whether the images lie in memory as `self.format` says",
    ),
)


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    settings: list[tuple[str, int, dict[str, Any]]] = [
        ("bn", 3, {"lr": 0.5}),
        ("none", 3, {"lr": 0.5, "max_norm": 0.2, "bnp": True}),
        ("none", 4, {"lr": 0.1, "max_norm": 0.5, "dtype": "float16"}),
        ("none", 2, {"lr": 0.1, "device": "meta"}),
    ]
    for norm, steps, options in settings:
        shape = (3, 8, 8) if "device" in options else (1, 4, 4)
        x = rng.normal(size=(steps, 4, *shape)).round(2)
        if "dtype" in options:
            x[1] = 1e5  # more than float16 can hold
        yield {
            "x": x,
            "y": rng.integers(0, 3, size=(steps, 4)),
            "options": options,
            "norm": norm,
            "seed": int(rng.integers(1000)),
        }


@exercise.fact("with a loss scale, float16 gives the losses of float32 to two digits")
def _(kind: Any, rng: np.random.Generator) -> bool:
    x, y = rng.normal(size=(3, 4, 1, 4, 4)), rng.integers(0, 3, size=(3, 4))
    seed = int(rng.integers(1000))
    whole, half = (
        observe(drivers.train, kind, x, y, {"lr": 0.1, "dtype": dtype}, "none", seed)[3]
        for dtype in (None, "float16")
    )
    return bool(np.allclose(half, whole, rtol=0.02, atol=0.01))


exercise.hints(
    "Which of the operations in the five points run under autocast, and which of them need the "
    "gradients without the scale?",
    "Only the forward pass and the loss run under autocast. The scaler is needed four times: "
    "`scale` before the backward pass, then `unscale_`, and at the end `step` and `update`.",
    "Switch to training mode, and turn each point into one to three lines, in the given order. "
    "Keep the detached loss of each step in a list, and after the loop stack the losses and "
    "convert them into numbers at once.",
)

_BNP_STEP = "            if self.bnp is not None:\n                self.bnp.step()\n"
_CLIP = "            nn.utils.clip_grad_norm_(self.model.parameters(), self.max_norm)\n"

exercise.mistakes(r"""
you read the loss in the loop, and each time the program waits for the device; keep `loss.detach()`
there, and read all of them once, behind the loop
    loss.detach() → loss.item()
    torch.stack(losses).tolist() → losses
your network stays in evaluation mode; call `self.model.train()` first
    self.model.train() →
you never clear the gradients, and `backward` adds to them; call `self.optimizer.zero_grad()` in
each step
    self.optimizer.zero_grad() →
your forward pass calls `self.model`, which is never compiled; call `self.forward`
    self.forward(x) → self.model(x)
your minibatches stay where they are; bring x and y to `self.device`
    x = x.to(self.device, → x = x.to(
    y = y.to(self.device, → y = y.to(y.device,
your forward pass runs in float32; put it and the loss into `with self.autocast:`
    with self.autocast: → if True:
you compute the cross-entropy outside of autocast, in float16, which rounds it to three digits; put
it into `with self.autocast:`, where it is computed in float32
    loss = nn.functional.cross_entropy(self.forward(x), y)
    → scores = self.forward(x)\n            loss = nn.functional.cross_entropy(scores, y)
your backward pass runs under autocast; end the `with` before it, as each operation has the type of
its forward pass anyway
    )\n            self.scaler.scale(loss) → )\n                self.scaler.scale(loss)
you run the backward pass from the loss itself; run it from `self.scaler.scale(loss)`, which keeps
small gradients above the smallest number of float16
    self.scaler.scale(loss).backward() → loss.backward()
you clip gradients that are still multiplied by the loss scale; call
`self.scaler.unscale_(self.optimizer)` before you clip
    self.scaler.unscale_(self.optimizer) →
you do not clip; limit the norm of all gradients together to `self.max_norm`
    nn.utils.clip_grad_norm_(self.model.parameters(), self.max_norm) →
you clip each entry of the gradients; clip the norm of all of them together, with `clip_grad_norm_`
    clip_grad_norm_ → clip_grad_value_
you limit each parameter's norm by itself; limit that of all together
    nn.utils.clip_grad_norm_(self.model.parameters(), self.max_norm)
    → [nn.utils.clip_grad_norm_(p, self.max_norm) for p in self.model.parameters()]
you clip what BNP has made of the gradient; clip the gradient itself, before `self.bnp.step()`
    nn.utils.clip_grad_norm_(self.model.parameters(), self.max_norm)\n
                if self.bnp is not None:\n
                    self.bnp.step()
    → if self.bnp is not None:\n
                    self.bnp.step()\n
                nn.utils.clip_grad_norm_(self.model.parameters(), self.max_norm)
BNP has no part in your steps: `self.bnp.step()` is missing, or comes after the optimizer's step; it
belongs before it
    self.bnp.step() → pass
you step where the gradients overflowed, and the weights are no numbers any more;
`self.scaler.step(self.optimizer)` leaves such a step out
    self.scaler.step(self.optimizer) → self.optimizer.step()
your loss scale never changes, since `self.scaler.update()` is missing at the end of the step
    self.scaler.update() →
your loss is a sum over the minibatch; cross_entropy takes the mean unless you tell it otherwise
    (self.forward(x), y) → (self.forward(x), y, reduction="sum")
you return the scaled losses; the scale is for `backward` alone
    loss.detach() → loss.detach() * self.scaler.get_scale()
you return tensors; after the loop make numbers of them, all at once: `torch.stack(losses).tolist()`
    torch.stack(losses).tolist() → losses
you limit the norm to a number of your own; the limit is `self.max_norm`
    parameters(), self.max_norm) → parameters(), 1.0)
your images lie in memory as they came; give `to` the format, too, with `memory_format=self.format`
    x.to(self.device, memory_format=self.format, → x.to(self.device,
""")
