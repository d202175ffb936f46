"""A small network, its batches, and P written out as a matrix: what the tests of BNP share."""

import torch
from torch import nn

from optdl.bnp import BNP


def network(dtype=torch.float64):
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, 3)).to(dtype)


def dense():
    torch.manual_seed(1)
    return nn.Linear(5, 3).double()


def batch(count=8, seed=0, shape=(5,), dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    x = 3 + 2 * torch.randn(count, *shape, generator=generator, dtype=torch.float64)
    return x.to(dtype)


def loss_of(output):
    return (output.sin() + 0.1 * output**2).mean()


def gradients(model):
    return [p.grad.clone() for p in model.parameters() if p.grad is not None]


def stepped(model, preconditioner, *batches, forward=None):
    """Return the gradients that a step makes of some batches."""
    model.zero_grad()
    for x in batches:
        (loss_of((forward or model)(x)) / len(batches)).backward()
    preconditioner.step()
    return gradients(model)


def expected(build=network, x=None):
    """Return the gradients of a step of an undisturbed network."""
    model = build()
    return stepped(model, BNP(model), batch() if x is None else x)


def values(model):
    return [p.detach().clone() for p in model.parameters()]


def assert_same(actual, expected, tolerance=1e-12):
    torch.testing.assert_close(actual, expected, rtol=tolerance, atol=tolerance)


def matrix(mean, var, repeats=1, q2=1.0, eps1=1e-2, eps2=1e-4):
    """Return P = UD/q of one group of a layer, whose channels have so many columns each."""
    std = (var + eps1 * var.max() + eps2).sqrt().repeat_interleave(repeats)
    P = torch.diag(torch.cat([torch.ones(1).to(std), 1 / std]))
    P[0, 1:] = -mean.repeat_interleave(repeats) / std
    return P / q2**0.5


def on_z(make, steps, x=None, loss=loss_of):
    """Return what ``dense()`` is after steps of optimizers on z, with θ = Pz as a matrix.

    ``make`` gives the optimizers of the bias and the weight in z; P is that of the batch.
    """
    layer, x = dense(), batch() if x is None else x
    P = matrix(x.mean(0), x.var(0, correction=0))
    z = torch.linalg.solve(P, torch.cat([layer.bias[None], layer.weight.T]).detach())
    bias, weight = nn.Parameter(z[0].clone()), nn.Parameter(z[1:].T.clone())

    def theta():
        return P @ torch.cat([bias[None], weight.T])

    def closure():
        bias.grad = weight.grad = None
        columns = theta()
        value = loss(x @ columns[1:] + columns[0])
        value.backward()
        return value

    optimizers = make(bias, weight)
    for _ in range(steps):
        if not isinstance(optimizers[0], torch.optim.LBFGS):
            closure()
        for optimizer in optimizers:
            optimizer.step(*[closure] * isinstance(optimizer, torch.optim.LBFGS))
    columns = theta().detach()
    return [columns[1:].T, columns[0]]
