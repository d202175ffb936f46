"""The curvature of a loss that torch can differentiate: Hessian-vector products and eigenvalues."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from scipy.sparse.linalg import LinearOperator, eigsh
from torch import Tensor, nn

__all__ = [
    "CurvatureHook",
    "Descent",
    "hessian_vector_product",
    "largest_eigenvalue",
    "squared_error",
    "track_descent",
]

Vector = Float[np.ndarray, " n"]


def hessian_vector_product(
    loss: Tensor, parameters: Iterable[Tensor], vectors: Sequence[Tensor]
) -> tuple[Tensor, ...]:
    r"""Multiply the Hessian of a loss with a vector, by differentiating twice (Source: L1-19).

    .. math:: Hv = \nabla\bigl(g^T v\bigr)

    The gradient is differentiated once more, after it became one number. The Hessian itself, n²
    numbers, never exists. The vector v comes in parts with the shapes of the parameters. Hv is
    returned in the same parts. Raises ValueError where the shapes of vectors and parameters differ,
    or the loss is not one number.

    >>> w = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> hessian_vector_product((w**3).sum(), [w], [torch.tensor([1.0, 0.0])])
    (tensor([6., 0.]),)
    """
    parameters = list(parameters)  # model.parameters() can be read once only
    shapes = [tuple(part.shape) for part in parameters]
    given = [tuple(part.shape) for part in vectors]
    if shapes != given:
        raise ValueError(f"expected vectors of the parameters' shapes {shapes}, got {given}")
    if loss.numel() != 1:
        raise ValueError(f"expected a loss that is one number, got shape {tuple(loss.shape)}")
    gradients = torch.autograd.grad(loss, parameters, create_graph=True, materialize_grads=True)
    return _differentiate_along(gradients, parameters, vectors)


def _differentiate_along(
    gradients: Sequence[Tensor], parameters: Sequence[Tensor], vectors: Sequence[Tensor]
) -> tuple[Tensor, ...]:
    r"""Return :math:`\nabla(g^Tv)` for a gradient that torch can differentiate again."""
    along = torch.stack([(g * v).sum() for g, v in zip(gradients, vectors, strict=True)]).sum()
    if not along.requires_grad:  # the loss is linear
        return tuple(torch.zeros_like(part) for part in parameters)
    products = torch.autograd.grad(along, parameters, retain_graph=True, materialize_grads=True)
    return tuple(part.detach() for part in products)


def largest_eigenvalue(
    loss: Tensor,
    parameters: Sequence[Tensor],
    start: Vector | None = None,
    tolerance: float = 1e-8,
) -> tuple[float, Vector]:
    """Return the largest eigenvalue of the Hessian and its eigenvector by Lanczos' method.

    Along a training the eigenvector turns slowly, so the last one is a good ``start``. Without one
    the method takes a random vector, always the same. Eigenvector and start have the entries of all
    parameters in their order, and ``tolerance`` is the relative accuracy of the eigenvalue. Raises
    ValueError where there are fewer than 3 entries: take the dense Hessian then.
    Source: L1-19, F-02.

    >>> w = torch.ones(3, dtype=torch.float64, requires_grad=True)
    >>> loss = (torch.tensor([1.0, -7.0, 5.0]) * w**2).sum() / 2
    >>> value, vector = largest_eigenvalue(loss, [w])
    >>> round(value, 6), np.abs(vector).round(6)
    (5.0, array([0., 0., 1.]))
    """
    operator = _operator(loss, parameters)
    if start is None:
        start = np.random.default_rng(0).normal(size=operator.shape[0])
    values, vectors = eigsh(operator, k=1, which="LA", v0=start, tol=tolerance)
    return float(values[0]), vectors[:, 0]


def _operator(loss: Tensor, parameters: Sequence[Tensor]) -> LinearOperator:
    """Return the Hessian as SciPy's solvers see it: through its products with vectors."""
    sizes = [part.numel() for part in parameters]
    if sum(sizes) < 3:
        raise ValueError(f"expected at least 3 parameters for Lanczos' method, got {sum(sizes)}")
    gradients = torch.autograd.grad(loss, parameters, create_graph=True)

    def multiply(v: Float[np.ndarray, ...]) -> Vector:
        parts = torch.split(torch.from_numpy(v.ravel()), sizes)
        vectors = [
            part.reshape(parameter.shape).to(parameter)
            for part, parameter in zip(parts, parameters, strict=True)
        ]
        return _flat(_differentiate_along(gradients, parameters, vectors))

    return LinearOperator((sum(sizes), sum(sizes)), matvec=multiply, dtype=np.float64)


def _flat(parts: Sequence[Tensor]) -> Vector:
    return torch.cat([part.detach().flatten() for part in parts]).double().cpu().numpy()


@dataclass
class CurvatureHook:
    r"""Predict what each step against a minibatch's gradient does to the loss of all examples.

    A hook for :func:`optdl.training.train`. Before each step it computes :math:`g = \nabla J` on
    the examples given, and one Hessian-vector product with the minibatch's gradient
    :math:`g_B`. The change of J that the quadratic model predicts for the step,

    .. math:: -\eta\,g^Tg_B + \tfrac12\eta^2\,g_B^THg_B,

    then needs no further measurement. Source: L1-19.

    ``loss`` maps scores and labels to one number. The hook appends two curves to the record, each a
    mean over the steps of an epoch: ``slope``, :math:`g^Tg_B`, and ``curvature``,
    :math:`g_B^THg_B`.
    """

    x: Tensor
    y: Tensor
    loss: Callable[[Tensor, Tensor], Tensor]
    rows: list[tuple[float, float]] = field(default_factory=list, init=False)

    def after_backward(self, state: Any) -> None:
        """Measure, with the minibatch's gradient that the backward pass left."""
        parameters = [part for part in state.model.parameters() if part.grad is not None]
        batch = [part.grad for part in parameters]
        value = self.loss(state.model(self.x), self.y)
        g = torch.autograd.grad(value, parameters, create_graph=True)
        products = _differentiate_along(g, parameters, batch)
        slope, curvature = _flat(batch) @ _flat(g), _flat(batch) @ _flat(products)
        self.rows.append((float(slope), float(curvature)))

    def after_epoch(self, state: Any) -> None:
        """Append the means of the epoch."""
        means = np.mean(self.rows, axis=0)
        for name, mean in zip(("slope", "curvature"), means, strict=True):
            state.curves.setdefault(name, []).append(float(mean))
        self.rows.clear()


# --- Full-batch training, watched -------------------------------------------------------------


def squared_error(scores: Tensor, labels: Tensor) -> Tensor:
    r"""Return half the squared distance of scores and one-hot labels, a mean over examples.

    Source: F-02

    .. math:: \frac1{2m}\sum_i \lVert f(x^{(i)}) - e_{y^{(i)}}\rVert^2

    The scores are (m, k), the labels the classes 0 … k−1.

    >>> float(squared_error(torch.tensor([[1.0, 2.0]]), torch.tensor([0])))
    2.0
    """
    targets = nn.functional.one_hot(labels.reshape(len(scores)), scores.shape[1]).to(scores)
    return ((scores - targets) ** 2).sum(1).mean() / 2


@dataclass(frozen=True, eq=False)
class Descent:
    r"""A training by full-batch gradient descent, with its curvature (Source: L1-19).

    ``losses`` has the loss before each step and after the last, steps + 1 numbers; ``sharpness``
    has :math:`\lambda_{max}` at each measurement.

    Parameters
    ----------
    steps : (k,) array
        The steps, counted from 0, before which the curvature was measured.
    gradient_norms, curvatures : (k,) arrays
        :math:`\lVert g\rVert` and :math:`g^THg`.
    predictions, changes : (k,) arrays
        :math:`-\eta\lVert g\rVert^2 + \frac12\eta^2g^THg`, and the measured change of the loss.
    cosines : (steps − 1,) array
        Of the angle between the gradients of two consecutive steps.
    """

    losses: Float[np.ndarray, " t"]
    steps: Float[np.ndarray, " k"]
    gradient_norms: Float[np.ndarray, " k"]
    curvatures: Float[np.ndarray, " k"]
    sharpness: Float[np.ndarray, " k"]
    predictions: Float[np.ndarray, " k"]
    changes: Float[np.ndarray, " k"]
    cosines: Float[np.ndarray, " s"]


def track_descent(
    model: nn.Module,
    x: Tensor,
    y: Tensor,
    loss: Callable[[Tensor, Tensor], Tensor],
    lr: float,
    steps: int,
    every: int,
) -> Descent:
    """Train by full-batch gradient descent; measure the curvature every few steps.

    The parameters of the model are changed. ``loss`` maps scores and labels to one number, ``lr``
    is η, and ``every`` is the number of steps from one measurement to the next. Raises ValueError
    where the model has fewer than 3 parameters. Source: L1-19, F-02.

    >>> model, x = nn.Linear(2, 1, dtype=torch.float64), torch.eye(2, dtype=torch.float64)
    >>> bowl = track_descent(model, x, x[:, :1], nn.functional.mse_loss, lr=0.1, steps=4, every=2)
    >>> len(bowl.losses), bowl.steps, bowl.sharpness.round(3), bowl.curvatures.shape
    (5, array([0., 2.]), array([3., 3.]), (2,))
    """
    parameters, losses, rows, cosines = list(model.parameters()), [], [], []
    vector: Vector | None = None
    last: Vector | None = None
    for step in range(steps):
        value = loss(model(x), y)
        losses.append(float(value.detach()))
        if step % every == 0:
            sharpness, vector = largest_eigenvalue(value, parameters, vector, tolerance=1e-4)
            rows.append((float(step), *_along_gradient(value, parameters), sharpness))
        gradients = torch.autograd.grad(value, parameters)
        g = _flat(gradients)
        if last is not None:
            cosines.append(float(g @ last / (np.linalg.norm(g) * np.linalg.norm(last))))
        last = g
        with torch.no_grad():
            for parameter, gradient in zip(parameters, gradients, strict=True):
                parameter.sub_(gradient, alpha=lr)
    losses.append(float(loss(model(x), y).detach()))
    at, norms, curvatures, sharp = np.array(rows).T
    predictions = -lr * norms**2 + 0.5 * lr**2 * curvatures
    changes = np.diff(losses)[at.astype(int)]
    return Descent(
        np.array(losses), at, norms, curvatures, sharp, predictions, changes, np.array(cosines)
    )


def _along_gradient(value: Tensor, parameters: Sequence[Tensor]) -> tuple[float, float]:
    r"""Return :math:`\lVert g\rVert` and :math:`g^THg`."""
    g = torch.autograd.grad(value, parameters, retain_graph=True)
    Hg = hessian_vector_product(value, parameters, g)
    return float(np.linalg.norm(_flat(g))), float(_flat(g) @ _flat(Hg))
