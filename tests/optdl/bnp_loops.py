"""What the tests of BNP share: small networks, the loops around them, and P as a matrix."""

from contextlib import nullcontext

import torch
from torch import nn
from torch.func import functional_call

from optdl.bnp import BNP


def network(dtype=torch.float64):
    torch.default_generator.manual_seed(1)
    return nn.Sequential(nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, 3)).to(dtype)


def dense():
    torch.default_generator.manual_seed(1)
    return nn.Linear(5, 3).double()


def batch(count=8, seed=0, shape=(5,), dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    x = 3 + 2 * torch.randn(count, *shape, generator=generator, dtype=torch.float64)
    return x.to(dtype)


def loss_of(output):
    return (output.sin() + 0.1 * output**2).mean()


def gradients(model):
    return [p.grad.clone() for p in model.parameters() if p.grad is not None]


def values(model):
    return [p.detach().clone() for p in model.parameters()]


def assert_same(actual, expected, tolerance=1e-12):
    torch.testing.assert_close(actual, expected, rtol=tolerance, atol=tolerance)


def with_bnp(model=None, **options):
    """Return a network and its BNP."""
    model = model or network()
    return model, BNP(model, **options)


def stepped(model, preconditioner, *batches, forward=None):
    """Return the gradients that a step makes of some batches."""
    model.zero_grad()
    for x in batches:
        (loss_of((forward or model)(x)) / len(batches)).backward()
    preconditioner.step()
    return gradients(model)


def take_step(form, preconditioner, closure, *optimizers):
    """Let optimizers step on the gradients that a closure makes, in one of the forms."""
    if form != "closure":
        closure()
    if form == "step":
        preconditioner.step()
    with preconditioner.split() if form == "split" else nullcontext():
        for optimizer in optimizers:
            optimizer.step(*[closure] * (form == "closure"))


def one(kind, **options):
    """Return what makes a single optimizer of all parameters."""
    return lambda net: [kind(net.parameters(), **options)]


def trained(form, make, model=dense, batches=None, **options):
    """Return the parameters after a step of optimizers, in one of the forms, on each batch."""
    net = model()
    preconditioner, optimizers = BNP(net, **{"rho": 0.0} | options), make(net)
    if form in ("attach", "closure"):
        preconditioner.attach(*optimizers)
    for x in batches or [batch()] * 3:

        def closure(x=x):
            net.zero_grad()
            loss = loss_of(net(x))
            loss.backward()
            return loss

        take_step(form, preconditioner, closure, *optimizers)
    return values(net)


def matrices(layer, x, mean=None, var=None, q2=None, eps1=1e-2, eps2=1e-4):
    """Return P = UD/q of each group of a layer, of its input's or of given statistics.

    Without a bias there is nothing to center, and the mean squares stand for the variances.
    """
    axes, groups = (0, *range(2, x.ndim)), getattr(layer, "groups", 1)
    mean = x.mean(axes) if mean is None else mean
    var = x.var(axes, correction=0) if var is None else var
    kernel, positions = layer.weight[0, 0].numel(), layer(x)[0, 0].numel()
    q2 = q2 or max(layer.weight[0].numel() / len(x), positions**0.5)
    result = []
    for m, v in zip(mean.chunk(groups), var.chunk(groups), strict=True):
        spread = v if layer.bias is not None else v + m**2
        std = (spread + eps1 * spread.max() + eps2).sqrt().repeat_interleave(kernel)
        P = torch.diag(torch.cat([torch.ones(1).to(std), 1 / std]))
        P[0, 1:] = -m.repeat_interleave(kernel) / std
        result.append((P if layer.bias is not None else P[1:, 1:]) / q2**0.5)
    return result


def columns(layer, of=lambda parameter: parameter):
    """Return the rows [b, w] of each group of a layer as the columns of a matrix."""
    rows = of(layer.weight).flatten(1).T
    if layer.bias is not None:
        rows = torch.cat([of(layer.bias)[None], rows])
    return rows.chunk(getattr(layer, "groups", 1), 1)


def parameters_of(layer, blocks):
    """Return the parameters of a layer that have these columns: weight and bias, if it has one."""
    rows = torch.cat(blocks, 1)
    biases = len(rows) - layer.weight[0].numel()
    return [rows[biases:].T.reshape(layer.weight.shape), *rows[:biases]]


def preconditioned(layer, x, **statistics):
    """Return PPᵀg of a layer whose gradient is g."""
    blocks = columns(layer, lambda parameter: parameter.grad)
    Ps = matrices(layer, x, **statistics)
    return parameters_of(layer, [P @ P.T @ g for P, g in zip(Ps, blocks, strict=True)])


def on_z(make, model=dense, batches=None, rho=0.0):
    """Return θ after steps of optimizers on z = P⁻¹θ, whose gradient autograd takes through Pz.

    Each step has the P of the running averages, and z of the θ that the last one has left.
    """
    theta, z = model(), model()  # the parameters of the second are z
    optimizers, inputs = make(z), {}
    layers = [m for m in theta.modules() if hasattr(m, "weight")]
    twins = [m for m in z.modules() if hasattr(m, "weight")]
    for layer in layers:
        layer.register_forward_pre_hook(lambda layer, given: inputs.update({layer: given[0]}))
    averages, Ps = [(0.0, 1.0)] * len(layers), [[]] * len(layers)

    def in_theta():
        """Return Pz, by the names of the parameters."""
        moved = []
        for own, each in zip(twins, Ps, strict=True):
            moved += parameters_of(own, [*map(torch.matmul, each, columns(own))])
        return dict(zip(dict(z.named_parameters()), moved, strict=True))

    for x in batches or [batch()] * 3:
        with torch.no_grad():
            theta(x)
            for at, (layer, own) in enumerate(zip(layers, twins, strict=True)):
                h = inputs[layer]
                axes = (0, *range(2, h.ndim))
                mean, var = averages[at]
                mean = rho * mean + (1 - rho) * h.mean(axes)
                var = rho * var + (1 - rho) * h.var(axes, correction=0)
                averages[at], Ps[at] = (mean, var), matrices(layer, h, mean, var)
                blocks = [*map(torch.linalg.solve, Ps[at], columns(layer))]
                for p, value in zip(own.parameters(), parameters_of(own, blocks), strict=True):
                    p.copy_(value)

        def closure(x=x):
            z.zero_grad()
            loss = loss_of(functional_call(z, in_theta(), x))
            loss.backward()
            return loss

        closure()
        for optimizer in optimizers:
            optimizer.step(*[closure] * isinstance(optimizer, torch.optim.LBFGS))
        theta.load_state_dict(in_theta())
    return values(theta)


def expected(model=network, x=None, rho=0.99):
    """Return PPᵀg of the first step of a network: how far gradient descent at rate 1 moves θ."""
    after = on_z(one(torch.optim.SGD, lr=1.0), model, [batch() if x is None else x], rho)
    return [start - end for start, end in zip(values(model()), after, strict=True)]


def assert_on_z(make, forms=("split", "attach"), *given, tolerance=1e-12, **options):
    """Compare the steps of each form with those of the optimizers on z."""
    right = on_z(make, *given, **options)
    for form in forms:
        assert_same(trained(form, make, *given, **options), right, tolerance)
