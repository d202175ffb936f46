"""What the lab on bnp does with the answers to its exercises."""

import torch
from torch import nn

from optdl.labs.drivers.follow import HOOKS, driver, fill, hooks, mode, type_of


@driver(
    "the means, then the variances; the gradients after step 1; the gradients after the last "
    "step; the dtype of the averages at the start; whether the averages have a graph; the "
    "averages that were saved after step 1, at the end; the exception of a second step without a "
    "pass; the gradients after a second step without a pass; how many more hooks there are after "
    "remove() than before BNP; the output of the network after remove()",
)
def bnp(kind, x, widths, seed, options, event):
    """Train a network with BNP; the event is what happens on the way, if anything."""

    def network():
        layers = []
        for k in range(len(widths) - 1):
            layers += [nn.Linear(*widths[k : k + 2]), nn.Tanh()]
        model = fill(nn.Sequential(nn.Sequential(*layers[:-2]), layers[-2]).double(), seed)
        return model.to(x[0].dtype)

    def averages(state):
        return [*state["mean"], *state["var"]]

    def gradients():
        return [p.grad.clone() for p in model.parameters() if p.grad is not None]

    model, saved, after = network(), None, []
    if "frozen" in event:
        model[0][0].requires_grad_(False)
        model[-1].add_module("unused", nn.Linear(2, 2).to(x[0].dtype))
    if "another hook" in event:
        model[-1].register_forward_pre_hook(lambda layer, inputs: None)
    own = hooks(model)
    bnp = kind(model[1:] if "model[1:]" in event else model, **options)
    dtypes = ", ".join({str(value.dtype) for value in averages(bnp.state_dict())})
    for number, rows in enumerate(x):
        if "resumed" in event and number == 1:
            saved, old, model = bnp.state_dict(), model, network()
            old(2 * rows)
            model.load_state_dict(old.state_dict())
            bnp = kind(model, **options)
            bnp.load_state_dict(saved)
        model.zero_grad()
        if "two passes" in event:
            model(torch.cat([rows, 3 * rows + 1]))
        (model(rows) - 1).square().mean().backward()
        if "evaluated" in event:
            model.eval()(3 * rows[:1] + 1)
            model.train()
        bnp.step()
        after.append(gradients())
        with torch.no_grad():
            for p in model.parameters():
                p.sub_(0.1 * (0 if p.grad is None else p.grad))
    state, raised = bnp.state_dict(), None
    graph = any(value.requires_grad for value in averages(state))
    try:
        bnp.step()
    except Exception as error:
        raised = type(error).__name__
    unwatched = gradients()
    bnp.remove()
    return (
        *(averages(state), after[0], after[-1], dtypes, graph or "grad_fn" in repr(vars(bnp))),
        *(averages(saved) if saved else [], raised, unwatched, hooks(model) - own, model(x[0])),
    )


@driver(
    f"the statistics; whether they have a graph; {HOOKS}; the mode of the network afterwards; the "
    "exception of a pass that fails; forward passes",
)
def input_statistics(function, x, widths, seed, fails):
    """Run a network whose last layer comes first in ``modules()``; a second pass fails."""
    layers = []
    for k in range(len(widths) - 1):
        layers += [nn.Linear(*widths[k : k + 2]), nn.Tanh() if k else nn.Dropout(0.4)]
    model = fill(nn.Sequential(nn.Sequential(*layers[:-2]), layers[-2]).double(), seed)
    model[1].eval()  # as a part that is frozen, beside dropout in training mode
    torch.default_generator.manual_seed(seed + 1)
    passes, raised = [], None
    layers[-2].register_forward_pre_hook(lambda *_: passes.append(1))
    if fails:
        early = nn.Identity()
        early.add_module("last", layers[-2])
        model.insert(0, early)
    result = function(model, x)
    count = len(passes)
    if fails:
        try:
            function(model, torch.zeros(2, widths[0] + 1, dtype=x.dtype))
        except RuntimeError as error:
            raised = type(error).__name__
    has_graph = "grad" in repr(result)  # whatever was returned
    pairs = tuple(result) if isinstance(result, list) else result  # of arrays of several lengths
    return pairs, has_graph, hooks(model), mode(model), raised, count


@driver(
    "grad_weight; grad_bias; mean after the call; var after the call; the type of what is returned",
)
def precondition(function, gradients, mean, var, batch_size, options):
    """Precondition in place; the statistics are to stay."""
    returned = function(*gradients, mean, var, batch_size, **options)
    return *gradients, mean, var, type_of(returned)


@driver(
    "the losses; the type of what is returned; the weights at the end; how many gradients each "
    "bnp.step finds; forward passes",
)
def train(function, x, y, lr, seed, preconditioned):
    """Train a network with dropout; BNP's stand-in makes gradients twice as large, plus a tenth."""
    found = []

    class BNP:
        def step(self):
            gradients = [p.grad for p in model.parameters() if p.grad is not None]
            found.append(len(gradients))
            for gradient in gradients:
                gradient.mul_(2).add_(0.1)

        def remove(self):
            raise RuntimeError("training goes on after this call: leave the hooks of `bnp`")

    layers = nn.Linear(x[0].shape[1], 4), nn.Tanh(), nn.Dropout(0.5), nn.Linear(4, 3)
    model = fill(nn.Sequential(*layers).double(), seed).eval()
    model(x[0]).sum().backward()  # gradients are there already
    passes = []
    model[0].register_forward_hook(lambda *_: passes.append(1))
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.5)
    torch.default_generator.manual_seed(seed + 1)
    losses = function(model, optimizer, BNP() if preconditioned else None, [*zip(x, y)])  # noqa: B905
    return losses, type_of(losses), [*model.parameters()], found, len(passes)
