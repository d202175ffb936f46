"""What the lab on optimizers does with the answers to its exercises."""

from copy import deepcopy

import torch
from torch import nn

from optdl.labs.drivers.follow import driver, type_of


@driver("the losses; the type of what is returned; the weights; forward passes")
def train(function, x, y, seed, momentum, given):
    """Train a network that has dropout and comes in evaluation mode, as after a test."""
    torch.default_generator.manual_seed(seed)
    model = nn.Sequential(nn.Linear(x[0].shape[1], 5), nn.Tanh(), nn.Dropout(0.5), nn.Linear(5, 3))
    optimizer = torch.optim.SGD(model.double().eval().parameters(), lr=0.5, momentum=momentum)
    if "gradients" in given:
        model(x[0]).sum().backward()
    passes = []
    # of the first layer: those of the network are not called by `model.forward(x)`
    model[0].register_forward_hook(lambda *_: passes.append(1))
    batches = zip(x, y, strict=True)
    losses = function(model, optimizer, batches if given == "an iterator" else list(batches))
    if isinstance(losses, torch.Tensor):  # its values have less precision, which tells nothing
        raise TypeError("expected a list of numbers, got a tensor")
    return losses, type_of(losses), [*model.parameters()], len(passes)


@driver(
    "step 1 of the parameters that have a gradient then; all steps, with a row for each; "
    "the parameter whose gradient is None; the gradients after a step, beside those before it",
    closed="torch.optim.SGD; torch.optim.Adam; torch.optim.AdamW",
)
def path(kind, start, options, rates, event):
    """Descend a bowl; ``rates`` are set before each step, as a schedule does."""
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
