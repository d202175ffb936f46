"""The student averages the probabilities of many passes with dropout, and measures their spread."""

import numpy as np
import torch
from torch import nn

from optdl.checks.exercise import Exercise
from optdl.labs.drivers import dropout as drivers
from optdl.labs.drivers.follow import fill


@torch.no_grad()
def monte_carlo(model, x, passes):
    """Return mean and deviation of the probabilities over passes with dropout (Source: LAB-4)."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    for module, _ in modes:
        if type(module).__name__ == "Dropout":
            module.train()
    found = torch.stack([model(x).softmax(dim=1) for _ in range(passes)])
    for module, mode in modes:
        module.training = mode
    return found.mean(dim=0), found.std(dim=0)


# the root of a difference of sums of squares has half their digits
exercise = Exercise("LAB-4:passes", monte_carlo, use=drivers.passes, atol=1e-7)


@exercise.cases
def _(rng):
    for comes in ("evaluation", "training", "training, and the normalization frozen", "evaluation"):
        x, p = rng.normal(size=rng.integers((3, 2), 6)).round(2), round(rng.uniform(0.3, 0.8), 2)
        yield x, p, int(rng.integers(2, 6)), int(rng.integers(1000)), comes


@exercise.fact("4000 passes have mean and deviation near those over all masks, or without dropout")
def _(function, rng):
    x, seed = rng.normal(size=(1, 2)), int(rng.integers(1000))
    model = fill(nn.Sequential(nn.Linear(2, 2)).double(), seed)
    for p, passes in ((0.5, 4000), (0.0, 3)):
        mean, deviation = exercise.observe(function, x, p, passes, seed, "dropout alone")[0]
        masks = torch.tensor([[0.0, 0], [0, 2], [2, 0], [2, 2]]).double() if p else torch.ones(1, 2)
        exact = model(torch.tensor(x) * masks).softmax(dim=1).detach().numpy()
        # the error of the mean is at most 0.5 / √4000; that of a deviation of 0 is √ε or less
        atol = 0.04 if p else 1e-7
        if not np.allclose(
            [mean[0], deviation[0]], [exact.mean(axis=0), exact.std(axis=0)], atol=atol
        ):
            return False
    return True


exercise.help(r"""
1. Which modules must be in training mode during the passes, and how do you restore all modes?
2. Store the mode of every module in `model.modules()` first. Then put the whole network into
   evaluation mode, and only the dropout layers back into training mode.
3. Without gradients, take the softmax over the classes in each pass, and stack the results along a
   new axis. Take mean and standard deviation over it, and give each module its old mode.
your whole network is in training mode, its normalization too; switch on the dropout layers alone
    model.eval() → model.train()
your whole network is in training mode, its normalization too; switch on the dropout layers alone
    model.eval() → model.train() ; module.training = mode → model.train(modes[0][1])
all your passes are alike: call `train()` of each module whose class is named Dropout
    module.train() → pass
you look at the outermost layers only; `model.modules()` goes into the blocks within
    for module, _ in modes: → for module in model.children():
you average the scores; average the probabilities of the passes
    model(x).softmax(dim=1) → model(x)
    found.mean(dim=0), found.std → found.mean(dim=0).softmax(dim=1), found.softmax(dim=2).std
you average the scores, and measure their spread; take the softmax of each pass first
    model(x).softmax(dim=1) → model(x) ; found.mean(dim=0) → found.mean(dim=0).softmax(dim=1)
your spread is that of the scores; measure that of the probabilities
    model(x).softmax(dim=1) → model(x) ; found.mean(dim=0) → found.softmax(dim=2).mean(dim=0)
you return scores; take the softmax of each pass first
    model(x).softmax(dim=1) → model(x)
your softmax goes over the examples; the probabilities of each example add up to 1
    softmax(dim=1) → softmax(dim=0)
you compute one pass and repeat it; draw new masks for each pass
    [model(x).softmax(dim=1) for _ in range(passes)] → [model(x).softmax(dim=1)] * passes
your deviation divides by T; here it divides by T − 1, as `std` does
    std(dim=0) → std(dim=0, correction=0)
you switch on layers of other names, such as `nn.Dropout1d`; the name of the class is Dropout
    type(module).__name__ == "Dropout" → "Dropout" in type(module).__name__
you switch on nn.Dropout alone, and your own layer stays off; go by the class's name, Dropout
    type(module).__name__ == "Dropout" → isinstance(module, nn.Dropout)
""")
