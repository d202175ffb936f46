r"""Dropout: switch units off at random while training, and use all of them afterwards.

p is the probability that a unit is **dropped**, as in torch; 1 − p is the probability that it
is kept. A kept value is divided by 1 − p while training, so that nothing remains to be done at
inference. The mask is new for every minibatch, and in it every example has its own.

Axis letters, fixed for the module: ``m`` examples, ``n`` inputs, ``h`` hidden units, ``c``
classes, ``s`` subnetworks, ``t`` steps. A weight has shape (outputs, inputs), as in torch.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float, Int

from optdl.data import Examples
from optdl.special import log_softmax, softmax

__all__ = [
    "DropoutCurves",
    "dropout_backward",
    "dropout_forward",
    "dropout_mask",
    "dropout_moments",
    "dropout_sgd",
    "geometric_ensemble",
    "subnetwork_masks",
    "train_with_dropout",
    "weight_scaling",
]

Array = Float[np.ndarray, "*shape"]
Weight = Float[np.ndarray, "c n"]
Scores = Float[np.ndarray, " c"]


# --- The layer --------------------------------------------------------------------------------


def dropout_mask(u: Array, p: float) -> Array:
    r"""Turn uniform random numbers into a mask that also holds the scale (Source: L2-16).

    .. math:: M_i = \begin{cases} 0 & u_i < p \\ \frac1{1-p} & u_i \ge p \end{cases}

    Each uᵢ is uniform on [0, 1). The scale belongs to *inverted* dropout. The first papers left the
    kept values alone while training, and multiplied by 1 − p at inference; see
    :func:`weight_scaling`. ``torch.nn.Dropout`` also takes p = 1, and returns zeros: then nothing
    can learn, and no scale keeps the mean. Raises ValueError where p, the probability that an entry
    is dropped, lies outside [0, 1).

    >>> dropout_mask(np.array([0.1, 0.5, 0.9]), 0.5)
    array([0., 2., 2.])
    """
    check_dropped(p)
    return (u >= p) / (1 - p)


def dropout_forward(
    x: Array, p: float, rng: np.random.Generator, training: bool = True
) -> tuple[Array, Array]:
    r"""Drop entries of x at random while training; change nothing at inference (Source: L2-16).

    .. math:: y = M \odot x, \qquad \mathbb E\,y = x

    While training it draws one ``rng.random(x.shape)``, so that every example has its own mask; at
    inference it draws nothing, and the mask holds ones. The results are y and the mask, which the
    backward pass needs. p is that of :func:`dropout_mask`; outside [0, 1) it raises ValueError.

    >>> y, mask = dropout_forward(np.arange(1.0, 5.0), 0.5, np.random.default_rng(0))
    >>> y
    array([2., 0., 0., 0.])
    >>> dropout_forward(np.arange(1.0, 5.0), 0.5, np.random.default_rng(0), training=False)[0]
    array([1., 2., 3., 4.])
    """
    check_dropped(p)
    mask = dropout_mask(rng.random(x.shape), p) if training else np.ones_like(x)
    return x * mask, mask


def dropout_backward(grad: Array, mask: Array) -> Array:
    r"""Return the gradient at the input from that at the output and the mask (Source: L2-17).

    .. math:: \frac{\partial L}{\partial x} = M \odot \frac{\partial L}{\partial y}

    M is the mask of :func:`dropout_forward`, scale included. A dropped entry had no part in y, so
    it gets no gradient.

    >>> dropout_backward(np.array([1.0, 1.0, 3.0]), np.array([0.0, 2.0, 2.0]))
    array([0., 2., 6.])
    """
    return grad * mask


def dropout_moments(x: Array, p: float) -> tuple[Array, Array]:
    r"""Return the mean and the variance of what dropout makes of x (Source: L2-16).

    .. math:: \mathbb E\,y = (1-p)\,\frac{x}{1-p} = x, \qquad
        \operatorname{Var} y = \frac{x^2}{1-p} - x^2 = \frac{p}{1-p}\,x^2

    The mean stays; the noise grows with p, and with the size of x. Raises ValueError where p lies
    outside [0, 1).

    >>> dropout_moments(np.array([1.0, 2.0]), 0.75)
    (array([1., 2.]), array([ 3., 12.]))
    """
    check_dropped(p)
    return x.copy(), p / (1 - p) * x**2


# --- Dropout as an ensemble -------------------------------------------------------------------


def subnetwork_masks(n: int) -> Float[np.ndarray, "s n"]:
    """Return all :math:`2^n` masks over n units: each subnetwork once (Source: L2-17).

    Row k holds the binary digits of k, the most significant first. The first row drops every unit,
    the last keeps them all. Raises ValueError where n lies outside 1 … 20.

    >>> subnetwork_masks(2)
    array([[0., 0.],
           [0., 1.],
           [1., 0.],
           [1., 1.]])
    """
    if not 1 <= n <= 20:
        raise ValueError(
            f"expected 1 to 20 units; got {n}: there are 2ⁿ masks, and they are written out"
        )
    digits = np.arange(2**n)[:, None] >> np.arange(n)[::-1]
    return (digits & 1).astype(float)


def geometric_ensemble(W: Weight, b: Scores, x: Float[np.ndarray, " n"], keep: float) -> Scores:
    r"""Return the normalized geometric mean of all subnetworks of a linear-softmax net.

    The subnetwork with mask M predicts :math:`\pi_M = \operatorname{softmax}(W(M\odot x)+b)`,
    and dropout draws it with probability :math:`q_M`. The means do not add up to one, so

    .. math:: \tilde\pi_k = \prod_M \pi_{M,k}^{\,q_M}, \qquad
        \pi_k = \frac{\tilde\pi_k}{\sum_j \tilde\pi_j}, \qquad
        q_M = \prod_i (1-p)^{M_i} p^{\,1-M_i}

    Here 1 − p is ``keep``, in (0, 1]. It costs :math:`2^n` forward passes, so n is at most 20. At ½
    all subnetworks have equal weight. Raises ValueError where ``keep`` lies outside (0, 1] or n is
    above 20. :func:`weight_scaling` gives the same with one. Source: L2-17.

    >>> W, b, x = np.array([[2.0, 0.0], [0.0, 4.0]]), np.zeros(2), np.ones(2)
    >>> geometric_ensemble(W, b, x, 0.5).round(4), weight_scaling(W, b, x, 0.5).round(4)
    (array([0.2689, 0.7311]), array([0.2689, 0.7311]))
    """
    _check_kept(keep)
    masks = subnetwork_masks(len(x))
    chances = np.prod(np.where(masks == 1, keep, 1 - keep), axis=1)
    logarithms = log_softmax((masks * x) @ W.T + b)
    return softmax(chances @ logarithms)


def weight_scaling(W: Weight, b: Scores, x: Float[np.ndarray, " n"], keep: float) -> Scores:
    r"""Predict once, with every input scaled by the probability that it is kept (Source: L2-17).

    .. math:: \pi = \operatorname{softmax}\bigl((1-p)\,W x + b\bigr)

    For a linear-softmax net trained with masks of zeros and ones this *is* the geometric mean of
    all subnetworks: the logarithm of a softmax is linear in M up to a constant that normalizing
    takes away, and :math:`\mathbb E\,M_i = 1 - p`. With hidden layers it is an approximation.

    Inverted dropout divides by 1 − p while training instead, and nothing is left to scale. W, b, x
    and ``keep`` are those of :func:`geometric_ensemble`; a ``keep`` outside (0, 1] raises
    ValueError.

    >>> weight_scaling(np.array([[2.0], [0.0]]), np.log([1.0, 3.0]), np.zeros(1), 0.5)
    array([0.25, 0.75])
    """
    _check_kept(keep)
    return softmax(W @ (keep * x) + b)


# --- The typical experiment -------------------------------------------------------------------


def dropout_sgd(
    W: Float[np.ndarray, "h n"],
    V: Float[np.ndarray, "c h"],
    x: Float[np.ndarray, "t m n"],
    y: Int[np.ndarray, "t m"],
    masks: Float[np.ndarray, "t m h"],
    lr: float,
) -> tuple[Float[np.ndarray, "h n"], Float[np.ndarray, "c h"]]:
    r"""Take one step of stochastic gradient descent for each minibatch, with dropout.

    The network has one hidden layer and no biases; the loss is the mean cross-entropy of

    .. math:: \operatorname{softmax}(V\tilde h), \qquad \tilde h = M \odot \max(Wx, 0)

    The masks hold the scale of :func:`dropout_mask`; ones mean no dropout. There are t minibatches,
    with labels 0 … c−1. The results are the last W and V. Source: L2-18.

    >>> W, V = np.ones((2, 1)), np.zeros((2, 2))
    >>> x, y = np.ones((1, 1, 1)), np.zeros((1, 1), dtype=int)
    >>> dropout_sgd(W, V, x, y, np.array([[[0.0, 2.0]]]), 1.0)[1]  # the first unit is dropped
    array([[ 0.,  1.],
           [ 0., -1.]])
    """
    for inputs, labels, mask in zip(x, y, masks, strict=True):
        hidden = mask * np.maximum(inputs @ W.T, 0.0)
        error = softmax(hidden @ V.T)
        error[np.arange(len(labels)), labels] -= 1.0
        error /= len(labels)
        # Where the hidden value is zero, the ReLU or the mask lets no gradient pass.
        back = dropout_backward(error @ V, mask) * (hidden > 0)
        W, V = W - lr * back.T @ inputs, V - lr * error.T @ hidden
    return W, V


@dataclass(frozen=True, eq=False)
class DropoutCurves:
    """Mean cross-entropies and error rate without dropout, at the start and after each epoch.

    Each has epochs + 1 numbers. An error is a validation example whose largest score is not its
    label's. Source: L2-18.
    """

    train_loss: Float[np.ndarray, " e"] = field(repr=False)
    validation_loss: Float[np.ndarray, " e"] = field(repr=False)
    validation_error: Float[np.ndarray, " e"] = field(repr=False)


def train_with_dropout(
    train: Examples,
    validation: Examples,
    p: float,
    seed: int = 0,
    *,
    hidden: int = 200,
    lr: float = 0.1,
    batch_size: int = 20,
    epochs: int = 60,
    masks: int = 1,
) -> DropoutCurves:
    """Train a network with one hidden layer and dropout; record its losses and errors.

    The initial weights are those of He. A seed fixes them and the order of the examples, whatever p
    is: two runs with one seed differ only in their dropout. Examples that fill no whole minibatch
    are left out of the epoch. Labels are 0 … c−1, p is the probability that a hidden unit is
    dropped, and ``hidden`` the number of these units. In each step every example of the minibatch
    gets so many ``masks``, and the gradient is their mean. Raises ValueError where p lies outside
    [0, 1), or the training examples do not fill one minibatch. Source: L2-18.

    >>> from optdl.data import load
    >>> split = load("digits").subset(200).split(100)
    >>> curves = train_with_dropout(split.train, split.validation, 0.5, epochs=3)
    >>> curves.validation_loss.shape, bool(curves.validation_error[-1] < 0.5)
    ((4,), True)
    """
    check_dropped(p)
    steps = len(train) // batch_size
    if not steps:
        raise ValueError(
            f"expected at least {batch_size} training examples, one minibatch; got {len(train)}"
        )
    # three streams, so that p has no influence on the start and the order
    start, order, draws = (np.random.default_rng([seed, stream]) for stream in range(3))
    x, y = train.x.astype(float), train.y.astype(int)
    classes = int(max(train.y.max(), validation.y.max())) + 1
    W = start.normal(0.0, np.sqrt(2 / x.shape[1]), size=(hidden, x.shape[1]))
    V = start.normal(0.0, np.sqrt(2 / hidden), size=(classes, hidden))
    rows = [_losses(W, V, train, validation)]
    for _ in range(epochs):
        chosen = order.permutation(len(y))[: steps * batch_size].reshape(steps, batch_size)
        chosen = chosen.repeat(masks, axis=1)
        drawn = dropout_mask(draws.random((*chosen.shape, hidden)), p)
        W, V = dropout_sgd(W, V, x[chosen], y[chosen], drawn, lr)
        rows.append(_losses(W, V, train, validation))
    return DropoutCurves(*np.array(rows).T)


def _losses(
    W: Float[np.ndarray, "h n"],
    V: Float[np.ndarray, "c h"],
    train: Examples,
    validation: Examples,
) -> tuple[float, float, float]:
    """Return the two losses and the validation error, with all units."""
    losses = []
    for part in (train, validation):
        scores = np.maximum(part.x @ W.T, 0.0) @ V.T
        labels = part.y.astype(int)
        losses.append(-float(np.mean(log_softmax(scores)[np.arange(len(labels)), labels])))
    return losses[0], losses[1], float(np.mean(scores.argmax(axis=1) != labels))


# --- What may be asked for --------------------------------------------------------------------


def check_dropped(p: float) -> None:
    if not 0 <= p < 1:
        raise ValueError(
            f"expected 0 ≤ p < 1, the probability that a unit is dropped; got {p}: "
            "a kept value is divided by 1 − p"
        )


def _check_kept(keep: float) -> None:
    if not 0 < keep <= 1:
        raise ValueError(f"expected 0 < keep ≤ 1, the probability that a unit is kept; got {keep}")
