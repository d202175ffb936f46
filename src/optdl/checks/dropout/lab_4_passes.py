"""The student averages the probabilities of many passes with dropout, and measures their spread."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from optdl.checks.exercise import Case, Exercise
from optdl.labs.drivers import dropout as drivers
from optdl.observation import observe


@torch.no_grad()
def monte_carlo(model: nn.Module, x: Tensor, passes: int) -> tuple[Tensor, Tensor]:
    """Return the mean and the standard deviation of the probabilities over passes with dropout.

    Source: LAB-4.
    """
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    for module, _ in modes:
        if type(module).__name__ == "Dropout":
            module.train()
    found = torch.stack([model(x).softmax(dim=1) for _ in range(passes)])
    for module, mode in modes:
        module.training = mode
    return found.mean(dim=0), found.std(dim=0)


exercise = Exercise(
    "LAB-4:passes",
    monte_carlo,
    use=drivers.average_passes,
    parts=(
        *("the mean", "the standard deviation", "whether they have no graph"),
        *("the modes of all modules afterwards", "the running mean of the normalization"),
    ),
    atol=1e-7,  # the root of a difference of sums of squares has half their digits
)


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    for m, p, passes, mode in [
        (2, 0.5, 2, "eval"),
        (4, 0.3, 5, "train"),
        (3, 0.5, 4, "frozen"),
        (5, 0.8, 3, "eval"),
    ]:
        yield {
            "x": rng.normal(size=(m, 2)).round(2),
            "p": p,
            "passes": passes,
            "seed": int(rng.integers(1000)),
            "mode": mode,
        }


@exercise.fact("a network that drops nothing keeps its probabilities, without a spread")
def _(function: Any, rng: np.random.Generator) -> bool:
    seed, sizes = int(rng.integers(1000)), [4, 5, 3]
    x = rng.normal(size=(6, 4))
    mean, deviation = observe(drivers.average_masks, function, x, sizes, 0.0, 3, seed)
    model = drivers.plain_network(sizes, seed)
    expected = model(torch.tensor(x)).softmax(dim=1).detach().numpy()
    return np.allclose(mean, expected) and bool(abs(deviation).max() < 1e-12)


@exercise.fact("4000 passes come near the mean over all masks")
def _(function: Any, rng: np.random.Generator) -> bool:
    seed, sizes = int(rng.integers(1000)), [2, 2]
    x = rng.normal(size=(1, 2))
    mean, deviation = observe(drivers.average_masks, function, x, sizes, 0.5, 4000, seed)
    masks = torch.tensor([[0.0, 0], [0, 2], [2, 0], [2, 2]], dtype=torch.float64)
    model = drivers.plain_network(sizes, seed)
    exact = model(torch.tensor(x) * masks).softmax(dim=1).detach().numpy()
    # the error of the mean is at most 0.5 / √4000
    near = np.allclose(mean[0], exact.mean(axis=0), atol=0.04)
    return near and np.allclose(deviation[0], exact.std(axis=0), atol=0.04)


exercise.hints(
    "Which modules must be in training mode during the passes, and what must you know to restore "
    "the modes of all modules afterwards?",
    "Store the mode of every module in `model.modules()` first. Then put the whole network into "
    "evaluation mode, and only the dropout layers back into training mode.",
    "Without gradients, take the softmax over the classes in each pass, and stack the results "
    "along a new first axis. Take the mean and the standard deviation over this axis, and give "
    "each module its old mode.",
)

exercise.mistakes(r"""
your whole network is in training mode, and its normalization uses and changes the statistics of the
minibatch; switch on the dropout layers alone
    model.eval() → model.train()
your dropout layers are not switched on, so all passes are alike; call `train()` of each module
whose class is named Dropout
    module.train() → pass
you look at the outermost layers only; `model.modules()` goes into the blocks within
    for module, _ in modes: → for module in model.children():
you leave the modes of the network changed; put back the mode of each module
    module.training = mode → pass
you put back the mode of the network for all its modules; one of them may have had another, so keep
the mode of each
    module.training = mode → module.training = modes[0][1]
you average the scores; average the probabilities of the passes
    model(x).softmax(dim=1) → model(x)
    found.mean(dim=0), found.std → found.mean(dim=0).softmax(dim=1), found.softmax(dim=2).std
you average the scores, and measure their spread; take the softmax of each pass first
    model(x).softmax(dim=1) → model(x)
    found.mean(dim=0) → found.mean(dim=0).softmax(dim=1)
you return scores; take the softmax of each pass first
    model(x).softmax(dim=1) → model(x)
your softmax goes over the examples; the probabilities of each example add up to 1
    softmax(dim=1) → softmax(dim=0)
your results keep the graph of all passes; put `@torch.no_grad()` above the function
    @torch.no_grad() →
you compute one pass and repeat it; draw new masks for each pass
    [model(x).softmax(dim=1) for _ in range(passes)] → [model(x).softmax(dim=1)] * passes
you return the variance; take its square root
    found.std(dim=0) → found.var(dim=0)
you divide by the number of passes; the standard deviation here divides by one less, as `std` does
    std(dim=0) → std(dim=0, correction=0)
you return the standard error of the mean; do not divide the standard deviation by √T
    found.std(dim=0) → found.std(dim=0) / passes**0.5
your mean and deviation go over the examples; take them over the passes
    found.mean(dim=0), found.std(dim=0) → found.mean(dim=1), found.std(dim=1)
you switch on PyTorch's nn.Dropout alone, and your own layer stays off; go by the name of the class,
which is Dropout in both cases
    type(module).__name__ == "Dropout" → isinstance(module, nn.Dropout)
""")
