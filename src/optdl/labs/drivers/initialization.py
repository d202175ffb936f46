"""What the lab on initialization does with the answers to its exercises."""

from itertools import pairwise

import torch
from torch import nn

from optdl.labs.drivers.follow import HOOKS, STILL, are_same, driver, fill, hooks, mode, type_of


@driver(f"the weights; the biases; the parameters of other layers; {STILL}")
def initialize(function, kind, sizes, gain, seed):
    """Initialize a network: dense, nested with a subclass, convolutional, or with groups."""
    a, b, c = sizes
    if kind == "dense":
        model = nn.Sequential(nn.Linear(a, b), nn.ReLU(), nn.Linear(b, c))
    elif "subclass" in kind:
        last = nn.modules.linear.NonDynamicallyQuantizableLinear(b, c)  # a subclass of nn.Linear
        inner = nn.Sequential(nn.Linear(b, b, bias=False), nn.LayerNorm(b), nn.ReLU())
        first = nn.Embedding(c, a), nn.Conv1d(b, a, 2), nn.Linear(a, b), nn.ReLU()
        model = nn.Sequential(*first, inner, last)
    else:
        second = nn.Conv2d(2 * b, 2, (1, 2), groups=2 if kind == "groups" else 1)
        convolutions = nn.Conv2d(a, 2 * b, 3), nn.ReLU(), second, nn.BatchNorm2d(2)
        model = nn.Sequential(*convolutions, nn.Flatten(), nn.Linear(4, c))
    before = [*fill(model.double(), seed).parameters()]
    torch.default_generator.manual_seed(seed + 1)
    function(model, gain, torch.Generator().manual_seed(seed))
    layers = [layer for layer in model.modules() if isinstance(layer, nn.Linear | nn.Conv2d)]
    others = [one for one in model.modules() if one not in layers and not [*one.children()]]
    return (
        [layer.weight for layer in layers],
        [layer.bias for layer in layers if layer.bias is not None],
        [value for layer in others for value in layer.parameters()],
        are_same(before, model),
    )


@driver(f"the weights; the biases; the deviations of the outputs; {STILL}; {HOOKS}")
def mend(function, equal, widths, x, seed):
    """Mend a network with layers of equal weights, of equal rows, and of a single last unit."""
    layers = [nn.Linear(x.shape[1], widths[0]), nn.ReLU()]
    for inputs, units in pairwise(widths):
        layers.append(nn.Sequential(nn.Linear(inputs, units), nn.Tanh()))
    model = nn.Sequential(*layers, nn.Linear(widths[-1], 1))
    before = [*fill(model, seed).parameters()]
    with torch.no_grad():
        before[-4].copy_(before[-4][0].abs())
        before[2].fill_(equal)
        before[0].copy_(before[0][:, :1])  # constant rows, which differ
        before[-2].mul_(1e-9)
    model.register_forward_hook(lambda *_: None)
    torch.default_generator.manual_seed(seed + 1)
    function(model, x.float(), torch.Generator().manual_seed(seed))
    left, deviations = hooks(model), []
    for layer in model.modules():
        if isinstance(layer, nn.Linear):
            layer.register_forward_hook(
                lambda *given: deviations.append(given[2].std(correction=0))
            )
    with torch.no_grad():
        model(x.float())
    weights, biases = [*model.parameters()][::2], [*model.parameters()][1::2]
    return weights, biases, deviations, are_same(before, model), left


@driver(
    "the ratios of the first step; the ratios of the second step; the order of the names; the "
    "type of what is returned; the parameters afterwards",
)
def ratios(function, x, y, seed, optimizer, last):
    """Take two steps with a network that has batch normalization and comes in evaluation mode."""
    layers = [nn.Linear(x.shape[2], 5), nn.BatchNorm1d(5), nn.Tanh(), nn.Linear(5, 3)]
    if last == "convolution":
        layers[3:] = nn.Unflatten(1, (1, 5)), nn.Conv1d(1, 1, 3), nn.Flatten()
    model = fill(nn.Sequential(*layers).double().eval(), seed)
    model[0].requires_grad_("frozen" not in last)
    rule = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
    if optimizer == "Adam":
        rule = torch.optim.Adam(model.parameters(), lr=0.02)
    first, second = (function(model, rule, *batch) for batch in zip(x, y, strict=True))
    names = [*first] if isinstance(first, dict) else None
    return first, second, str(names), type_of(first), [*model.parameters()]


@driver(
    "what is returned; the order of the names; the type of what is returned; the mode afterwards;"
    f" the mode of a part that was in evaluation mode; {HOOKS}; the number of hooks after a "
    "forward pass that fails; the modes after a forward pass that fails; forward passes",
)
def statistics(function, widths, x, seed, training):
    """Look at two networks, where a module behind a ReLU overwrites its output."""

    def made(widths, seed):
        layers = [nn.Linear(x.shape[1], widths[0]), nn.ReLU()]
        for inputs, units in pairwise(widths):
            last = nn.ReLU(), nn.Hardtanh(0, 0.3, inplace=True)
            layers.append(nn.Sequential(nn.Linear(inputs, units), nn.BatchNorm1d(units), *last))
        if len(widths) > 2:  # what is called last comes early in ``named_modules``
            layers[0].add_module("last", layers[-1])
        model = fill(nn.Sequential(*layers).double(), seed)
        model[0].weight.data.abs_()  # an input may be below all of its units
        for layer in model.modules():
            if isinstance(layer, nn.BatchNorm1d):
                # the first unit is dead, and the second one nearly so
                nn.init.constant_(layer.bias[:1], -30)
                nn.init.constant_(layer.bias[1:2], 5e-5)
                nn.init.zeros_(layer.weight[1:2])
        return model

    function(made([3] * 4, seed + 1), x)
    model = made(widths, seed).train(training)
    model[2].eval()  # as a part that is frozen
    passes = []
    # of the first layer: those of the network are not called by `model.forward(x)`
    model[0].register_forward_hook(lambda *_: passes.append(1))
    found = function(model, x)
    count = len(passes)
    names = [*found] if isinstance(found, dict) else None
    parts = model[0], model[2]
    left, left_in = hooks(model), [*map(mode, parts)]
    try:
        function(model, x[:, 1:])
    except RuntimeError:
        late = str(hooks(model)), ", ".join(map(mode, parts))
    else:
        late = ("no error is raised",) * 2
    return found, str(names), type_of(found), *left_in, left, *late, count
