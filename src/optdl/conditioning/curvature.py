"""The curvature of a loss that torch can differentiate: Hessian-vector products and eigenvalues."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from scipy.sparse.linalg import LinearOperator, eigsh
from torch import Tensor, nn

__all__ = ["CurvatureHook", "extreme_eigenvalues", "hessian_vector_product"]

Vector = Float[np.ndarray, " n"]


def hessian_vector_product(
    loss: Tensor, parameters: Sequence[Tensor], vectors: Sequence[Tensor]
) -> tuple[Tensor, ...]:
    r"""Multiply the Hessian of a loss with a vector, by differentiating twice.

    .. math:: Hv = \nabla\bigl(g^T v\bigr)

    The gradient is differentiated once more, after it became one number. The Hessian itself, n²
    numbers, never exists.

    Parameters
    ----------
    loss : tensor
        One number, computed from the parameters.
    parameters : sequence of tensors
        What to differentiate by.
    vectors : sequence of tensors
        v, in parts with the shapes of the parameters.

    Returns
    -------
    tuple of tensors
        Hv in the same parts.

    Raises
    ------
    ValueError
        If the shapes of parameters and vectors differ, or the loss is not one number.

    Notes
    -----
    Source: L1-19

    Examples
    --------
    >>> w = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> hessian_vector_product((w**3).sum(), [w], [torch.tensor([1.0, 0.0])])
    (tensor([6., 0.]),)
    """
    shapes = [tuple(part.shape) for part in parameters]
    given = [tuple(part.shape) for part in vectors]
    if shapes != given:
        raise ValueError(f"expected vectors of the parameters' shapes {shapes}, got {given}")
    if loss.numel() != 1:
        raise ValueError(f"expected a loss that is one number, got shape {tuple(loss.shape)}")
    gradients = torch.autograd.grad(loss, parameters, create_graph=True)
    along = torch.stack([(g * v).sum() for g, v in zip(gradients, vectors, strict=True)]).sum()
    if not along.requires_grad:  # the loss is linear
        return tuple(torch.zeros_like(part) for part in parameters)
    products = torch.autograd.grad(along, parameters, retain_graph=True, materialize_grads=True)
    return tuple(part.detach() for part in products)


def extreme_eigenvalues(loss: Tensor, parameters: Sequence[Tensor]) -> tuple[float, float]:
    """Return the smallest and the largest eigenvalue of the Hessian, by Lanczos' method.

    SciPy's ``eigsh`` sees the Hessian only through its products with vectors.

    Parameters
    ----------
    loss : tensor
        One number, computed from the parameters.
    parameters : sequence of tensors
        With n numbers in all, at least 3.

    Raises
    ------
    ValueError
        If there are fewer than 3 numbers: take the dense Hessian then.

    Notes
    -----
    Source: L1-19

    Examples
    --------
    >>> w = torch.ones(3, dtype=torch.float64, requires_grad=True)
    >>> loss = (torch.tensor([1.0, -2.0, 5.0]) * w**2).sum() / 2
    >>> [round(value, 6) for value in extreme_eigenvalues(loss, [w])]
    [-2.0, 5.0]
    """
    sizes = [part.numel() for part in parameters]
    if sum(sizes) < 3:
        raise ValueError(f"expected at least 3 parameters for Lanczos' method, got {sum(sizes)}")

    def multiply(v: Float[np.ndarray, ...]) -> Vector:
        parts = torch.split(torch.from_numpy(v.ravel()), sizes)
        vectors = [
            part.reshape(parameter.shape).to(parameter)
            for part, parameter in zip(parts, parameters, strict=True)
        ]
        products = hessian_vector_product(loss, parameters, vectors)
        return torch.cat([part.flatten() for part in products]).double().cpu().numpy()

    operator = LinearOperator((sum(sizes), sum(sizes)), matvec=multiply, dtype=np.float64)
    start = np.random.default_rng(0).normal(size=sum(sizes))
    values = eigsh(operator, k=2, which="BE", return_eigenvectors=False, v0=start, tol=1e-8)
    return float(values.min()), float(values.max())


@dataclass
class CurvatureHook:
    r"""Track :math:`\lVert g\rVert` and :math:`g^THg` through training, on fixed examples.

    A hook for :func:`optdl.training.train`: after every ``every`` steps it measures both on the
    examples given, with one Hessian-vector product.

    Parameters
    ----------
    x, y : tensors
        Examples and labels on which to measure.
    loss : callable
        Scores and labels to one number.
    every : int
        Steps from one measurement to the next.

    Attributes
    ----------
    steps, gradient_norms, curvatures : lists
        What was measured: the step, :math:`\lVert g\rVert` and :math:`g^THg`.

    Notes
    -----
    Source: L1-19
    """

    x: Tensor
    y: Tensor
    loss: Callable[[Tensor, Tensor], Tensor]
    every: int = 10
    steps: list[int] = field(default_factory=list)
    gradient_norms: list[float] = field(default_factory=list)
    curvatures: list[float] = field(default_factory=list)

    def after_step(self, state: Any) -> None:
        """Measure, when it is time."""
        if state.step % self.every:
            return
        norm, curvature = self.measure(state.model)
        self.steps.append(state.step)
        self.gradient_norms.append(norm)
        self.curvatures.append(curvature)

    def measure(self, model: nn.Module) -> tuple[float, float]:
        r"""Return :math:`\lVert g\rVert` and :math:`g^THg` of a model on the examples."""
        parameters = [part for part in model.parameters() if part.requires_grad]
        value = self.loss(model(self.x), self.y)
        g = torch.autograd.grad(value, parameters, retain_graph=True)
        Hg = hessian_vector_product(value, parameters, g)
        square = sum(float((part * part).sum()) for part in g)
        curvature = sum(float((a * b).sum()) for a, b in zip(g, Hg, strict=True))
        return math.sqrt(square), curvature
