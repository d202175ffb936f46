"""What the lab on batchnorm does with the answers to its exercises."""

import torch
from torch import nn

from optdl.labs.drivers.follow import STILL, are_same, driver, fill, mode, type_of


@driver(
    "the examples of each forward pass; the loss | the accuracy; the type of what is returned; "
    "whether the scores have a graph; the mode afterwards; "
    "running_mean | running_var | num_batches_tracked",
)
def evaluate(function, x, y, size, training, seed):
    """Test a network, and watch its forward passes at the first layer."""
    model = nn.Sequential(nn.Linear(x.shape[1], 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, 3))
    fill(model.double(), seed).train(training)
    seen = []
    graphs = []
    model[0].register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    model[0].register_forward_hook(lambda *given: graphs.append(given[2].requires_grad))
    result = function(model, x, y, size)
    return seen, result, type_of(result), any(graphs), mode(model), [*model.buffers()]


@driver(
    "the state of a new module; its parameters; outputs in training; gradients of x in training; "
    "running_mean | running_var | num_batches_tracked; whether num_batches_tracked is an integer; "
    "whether the running averages have a graph; output and gradient of x in evaluation mode; "
    "output after load_state_dict",
    closed="torch.nn.BatchNorm1d; torch.nn.BatchNorm2d; torch.batch_norm",
)
def module(kind, batches, weight, bias, options):
    """Train with minibatches, test the first one, and test it with the state in a new module."""

    def made():
        return kind(len(weight), **options).double()

    def passed(x):
        x = x.clone().requires_grad_()
        y = layer(x)
        (y**3).sum().backward()
        return y, x.grad

    layer = made()
    begins = {name: value.clone() for name, value in layer.state_dict().items()}
    trained = ", ".join(sorted(name for name, _ in layer.named_parameters()))
    with torch.no_grad():
        layer.weight.copy_(weight)
        layer.bias.copy_(bias)
    outputs, gradients = zip(*map(passed, batches), strict=True)
    layer.eval()
    tested, other = passed(batches[0]), made()
    count, *averages = layer.num_batches_tracked, layer.running_mean, layer.running_var
    kept = [torch.as_tensor(value).clone() for value in (*averages, count)]
    is_whole = not torch.as_tensor(count).is_floating_point()
    has_graph = any(value.requires_grad for value in averages)
    other.load_state_dict(layer.state_dict())
    resumed = other.eval()(batches[0])
    return begins, trained, outputs, gradients, kept, is_whole, has_graph, tested, resumed


@driver(
    "the shapes in state_dict(); scores in evaluation mode; losses of three steps; scores in "
    "evaluation mode after them; whether self.layers is an nn.Sequential",
)
def network(kind, widths, normalized, options, x, y, seed):
    """Make a network, test it, take three steps with one minibatch, and test it again."""

    class Own(nn.BatchNorm1d):
        def forward(self, x):
            return 2 * super().forward(x)

    normalization = Own if len(widths) > 3 else nn.BatchNorm1d
    model = kind(widths, normalization if normalized else None, **options).double()
    shapes = {name: str(tuple(value.shape)) for name, value in model.state_dict().items()}
    with torch.no_grad():
        tested = fill(model, seed).eval()(x)
    losses = model.fit([(x, y)] * 3, lr=0.1)
    is_sequential = isinstance(getattr(model, "layers", None), nn.Sequential)
    with torch.no_grad():
        return shapes, tested, losses, model.eval()(x), is_sequential


@driver(
    "the running averages; num_batches_tracked of each normalization; the momentum of each "
    f"normalization; the mode afterwards; the parameters; {STILL}",
    closed="torch.optim.swa_utils.update_bn",
)
def recalibrate(function, batches, once, momenta, training, seed):
    """Compute the statistics of two normalizations anew, from what one may go through ``once``."""

    class Own(nn.Module):  # as a student's own, which is no class of PyTorch's
        forward, _check_input_dim = nn.BatchNorm3d.forward, nn.BatchNorm3d._check_input_dim

    block = nn.Linear(batches[0].shape[1], 3), nn.BatchNorm1d(3, momentum=momenta[0])
    inner = nn.Sequential(nn.Sequential(nn.Sequential(*block)))
    # of a class that no dense network has, so that no answer looks for certain classes
    last = nn.Unflatten(1, (2, 1, 1, 1)), nn.BatchNorm3d(2, momentum=momenta[1]), nn.Flatten()
    model = nn.Sequential(inner, nn.ReLU(), nn.Linear(3, 2), *last)
    fill(model.double(), seed).train(training)
    norms, before = [block[1], model[4]], [*model.parameters()]
    if once or len(batches) == 2:
        norms[1].__class__ = Own
    for norm in norms:
        norm.num_batches_tracked.fill_(5)
    function(model, (x for x in batches) if once else batches)
    averages = [value for norm in norms for value in (norm.running_mean, norm.running_var)]
    counts = [norm.num_batches_tracked for norm in norms]
    left = str([norm.momentum for norm in norms])
    after = mode(model), [*model.parameters()], are_same(before, model)
    return averages, counts, left, *after
