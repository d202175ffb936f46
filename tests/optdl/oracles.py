"""Oracles and inputs that the tests of several topics share."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch.autograd.functional import hessian


def with_spectrum(rng, eigenvalues):
    """Return a full symmetric matrix with these eigenvalues."""
    rotation, _ = np.linalg.qr(rng.normal(size=(len(eigenvalues), len(eigenvalues))))
    H = (rotation * eigenvalues) @ rotation.T
    return (H + H.T) / 2


def assert_close(actual, expected, tolerance=1e-12):
    assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)


def assert_derivatives(problem, loss, p):
    """Compare the value, the gradient and the Hessian with those that autograd finds."""
    point = torch.tensor(p, requires_grad=True)
    value = loss(point)
    assert problem.value(p) == pytest.approx(value.item(), rel=1e-12)
    (gradient,) = torch.autograd.grad(value, point)
    assert_allclose(problem.gradient(p), gradient, rtol=1e-9, atol=1e-12)
    assert_allclose(problem.hessian(p), hessian(loss, point.detach()), rtol=1e-8, atol=1e-12)


def slopes(function, x, h=1e-6):
    """Return central differences of a function of x, one column per coordinate."""
    steps = h * np.eye(len(x))
    return np.stack([(function(x + e) - function(x - e)) / (2 * h) for e in steps], axis=-1)


def torch_path(optimizer, theta, loss, steps):
    """Return all values of one tensor while a torch optimizer lowers a loss of it."""
    path = [theta.detach().numpy().copy()]
    for _ in range(steps):
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()
        path.append(theta.detach().numpy().copy())
    return np.array(path)
