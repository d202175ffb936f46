"""What the lab on dropout does with the answers to its exercises."""

import torch
from torch import nn

from optdl.labs.drivers.follow import driver, fill, mode, type_of


@driver(
    "the outputs of both layers, call by call; the gradient of x in training; the dtype of the "
    "outputs; x after the calls; the number of parameters",
    closed="torch.nn.Dropout; torch.nn.functional.dropout",
)
def dropout(kind, x, p, seed, modes, dtype):
    """Call two layers in each mode; the gradients are those of the first one, in training."""
    torch.default_generator.manual_seed(seed + 5)
    layers = kind(p, seed), kind(p, seed + 1)
    given = x.to(getattr(torch, dtype))
    called = [layer.train(mode == "train")(given) for mode in modes for layer in layers]
    graded = x.to(given.dtype).requires_grad_()
    y = layers[0].train()(graded)
    if y.requires_grad:
        (y * (1 + x)).sum().backward()
    dtypes = ", ".join(sorted({str(y.dtype) for y in called}))
    return called, graded.grad, dtypes, given, len([*layers[0].parameters()])


@driver(
    "whether the generator that is given is drawn from; the training losses | the validation "
    "losses; the type of each list; the weights at the end; the mode of the network at the end; "
    "the losses that the stopper sees; calls of restore after the last loss; "
    "whether a network in evaluation mode makes a graph",
)
def fit(function, x, y, epochs, lr, batch, seed, last):
    """Train a network with dropout; a stopper says stop in the epoch ``last``, if it is not 0."""
    seen = []
    restored = 0

    class Stopper:
        def update(self, model, loss):
            nonlocal restored
            self.known(model)
            restored = 0
            seen.append(loss)
            return len(seen) >= last

        def restore(self, model):
            nonlocal restored
            self.known(model)
            restored += 1

        def known(self, given):
            if given is not model:
                raise TypeError("the methods of a stopper take the network that is trained")

    layers = nn.Linear(x.shape[1], 6), nn.Tanh(), nn.Dropout(0.5), nn.Linear(6, 2)
    model = fill(nn.Sequential(*layers).double(), seed).eval()
    graphs = []
    model.register_forward_hook(lambda m, _, s: graphs.append(not m.training and s.requires_grad))
    third = len(y) // 3
    train, validation = (x[third:], y[third:]), (x[:third], y[:third])
    torch.default_generator.manual_seed(seed + 1)
    generator = torch.Generator().manual_seed(seed)
    curves = function(
        *(model, train, validation, epochs, lr, batch, generator),
        stopper=Stopper() if last else None,
    )
    drawn = bool((generator.get_state() != torch.Generator().manual_seed(seed).get_state()).any())
    kind = type_of(curves).split(" of ", 1)[-1]
    return drawn, curves, kind, [*model.parameters()], mode(model), seen, restored, any(graphs)


@driver(
    "the layers of your network; the layers of the given network afterwards; whether all layers "
    "but Dropout are those of the given network; what the dropout layers make of ones; the scores"
    " in evaluation mode",
)
def network(function, x, sizes, p, seed):
    """Look at the layers of the new network and of the given one; x passes in evaluation mode."""
    before, relu = [nn.Linear(*sizes[:2]), nn.LeakyReLU()], nn.ReLU()
    for k in range(1, len(sizes) - 1):
        before += [relu, nn.Linear(*sizes[k : k + 2])]  # one layer may stand in several places
    given = fill(nn.Sequential(*before).double(), seed + 50)
    model = function(given, p, seed)
    layers, ones = list(model), torch.ones(2, 6)
    torch.default_generator.manual_seed(seed + 70)
    dropped = [layer for layer in layers if type(layer).__name__ == "Dropout"]
    masks = [layer(ones) for layer in model.modules() if type(layer).__name__ == "Dropout"]
    kept = [layer for layer in layers if layer not in dropped] == before
    names = (" ".join(type(layer).__name__ for layer in network) for network in (layers, given))
    return *names, kept, masks, model.eval()(x)


@driver(
    "the mean | the standard deviation; the type of each; whether they have a graph; which modules "
    "are in training mode afterwards; the running mean of the normalization afterwards",
)
def passes(function, x, p, passes, seed, comes):
    """Average over passes of a network with three kinds of dropout, a normalization, a block."""

    class Dropout(nn.AlphaDropout):
        """Stands in for a student's own layer, which is no `nn.Dropout`."""

    n, norm = x.shape[1], nn.BatchNorm1d(4)
    block = nn.Sequential(nn.Linear(4, 5), nn.Dropout(p), nn.Tanh(), Dropout(p), nn.Dropout1d(p))
    layers = nn.Linear(n, 4), norm, nn.ReLU(), nn.Dropout(p), block, nn.Linear(5, 3)
    model = fill(nn.Sequential(*layers).double(), seed).train("training" in comes)
    norm.train(comes == "training")
    if comes == "dropout alone":
        model = fill(nn.Sequential(nn.Dropout(p), nn.Linear(n, 2)).double(), seed).eval()
    torch.default_generator.manual_seed(seed + 1)
    result = function(model, x, passes)
    kind, has_graph = type_of(result).split(" of ")[-1], "grad" in repr(result)
    modes = [module.training for module in model.modules()]
    return result, kind, has_graph, modes, norm.running_mean


@driver(
    "what update returns, epoch by epoch, and once more for a NaN after the first True (−1: None); "
    "the epoch whose weights are restored; the epoch whose running averages are restored (−1: "
    "none)",
)
def stopping(kind, losses, patience, min_delta):
    """Fill a network with k in epoch k and with 99 at the end; restore the best one in others."""
    model, first, other = (nn.BatchNorm1d(2).double() for _ in range(3))

    @torch.no_grad()
    def fill(model, number):
        for value in model.state_dict().values():
            value.fill_(number)

    options = {"min_delta": min_delta} if min_delta else {}  # else the default
    stopper, returned = kind(patience, **options), []
    for epoch, loss in enumerate(losses, start=1):
        fill(model, epoch)
        returned.append(stopper.update(model, float(loss)))
        if returned[-1]:
            returned.append(stopper.update(model, float("nan")))  # one more epoch of no use
            break
    fill(model, 99)
    fill(other, -1)
    if any(loss < float("inf") for loss in losses):  # else nothing was kept
        stopper.restore(first)
        fill(first, -2)  # training goes on
        stopper.restore(other)
    said = [-1 if value is None else bool(value) for value in returned]
    restored = [*other.parameters()], [*other.buffers()][:2]
    return said, *(torch.unique(torch.cat(values)) for values in restored)
