"""What the two optimizers of the lab have in common."""

import torch
from torch import nn

from optdl.checks.labs.driver import agrees
from optdl.labs.drivers.follow import steps

PARTS = (
    "the first step of each parameter; all steps, with a row for each; "
    "the parameter whose gradient is None; the gradients after a step, beside those before it"
)
"""The names of what ``path`` returns."""


@steps("torch.optim.SGD", "torch.optim.Adam", "torch.optim.AdamW")
def path(kind, start, options, rates, event):
    """Descend a bowl; ``rates`` are set before each step, as a schedule does."""
    from copy import deepcopy

    *theta, unused = map(nn.Parameter, start)
    groups = [{"params": [theta[0], unused, theta[1]]}, {"params": theta[2:]}]
    if "group 2" in event:
        groups, options = [groups[0] | options, groups[1] | {"lr": rates[0] / 2}], {}
    optimizer, moves, gradients = kind(groups, lr=rates[0], **options), [], "as before"
    for number, rate in enumerate(rates):
        for group in optimizer.param_groups:
            group["lr"] *= rate / rates[max(number - 1, 0)]
        optimizer.zero_grad(set_to_none="zeros" not in event)
        if "zeros" not in event or number < len(rates) - 1:
            bowl = sum((k + 1) / 2 * (p - 1).square().sum() for k, p in enumerate(theta))
            if f"step {number + 1} only" in event:
                bowl = bowl + torch.sin(3 * unused).sum()  # of gradients of either sign
            bowl.backward()
        given = [None if p.grad is None else p.grad.clone() for p in theta]
        places = [p.detach().clone() for p in theta]
        optimizer.step()
        for p, before in zip(theta, given, strict=True):
            if p.grad is None:
                gradients = "None"
            elif not torch.allclose(p.grad, before, rtol=0, atol=0, equal_nan=True):
                gradients = "changed"
        moves.append([p.detach() - place for p, place in zip(theta, places, strict=True)])
        if "loaded" in event and number == len(rates) // 2:
            state = optimizer.state_dict()
            groups, theta, unused = deepcopy((groups, theta, unused))  # as in another program
            optimizer = kind(groups, lr=rate, **options)
            optimizer.load_state_dict(state)
    rows = [torch.cat([move.flatten() for move in moved]) for moved in moves]
    return moves[0], torch.stack(rows), unused, gradients


EVENTS = (
    "",
    "a parameter has a gradient in step 1 only",
    "group 2 has the default settings, and half the learning rate",
    "the state is saved halfway, and loaded by a new optimizer",
    "gradients are cleared to zeros, not to None, and are zero in the last step",
    "a parameter has a gradient in step 3 only",
)


def paths(rng, settings):
    """Yield the path of an optimizer for each of six settings."""
    for options, event in zip(settings, EVENTS, strict=True):
        sizes = rng.integers(1, 4, size=5)
        shapes = [tuple(sizes[:2]), *((size,) for size in sizes[2:])]
        falling = [0.1, 0.1, *([0.05] * rng.integers(1, 3)), 0.02, 0.02]
        start = [rng.normal(size=shape).round(2) for shape in shapes]
        yield start, options, falling if event else [0.1] * int(rng.integers(3, 6)), event


def agrees_with_torch(theirs, **options):
    """Return whether an optimizer takes the same ten steps as one of PyTorch's own."""

    def holds(kind, rng):
        case = [rng.normal(size=3) for _ in range(4)], options, [0.05] * 10, ""
        return agrees(path, kind, theirs, case, slice(3))

    return holds
