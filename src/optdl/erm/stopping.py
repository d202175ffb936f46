"""Hooks that measure margins and gradients in training, and early stopping."""

import copy
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from optdl.erm.arrays import Classes, require_labels

__all__ = [
    "EarlyStopping",
    "GradientNormHook",
    "MarginHook",
    "classification_margins",
    "early_stopping",
]


def classification_margins(
    scores: Float[np.ndarray, "m c"], labels: Classes
) -> Float[np.ndarray, " m"]:
    """Return the score of the right class minus the largest other score (Source: L1-04).

    The 0–1 loss is 1 where this margin is at most 0.

    >>> classification_margins(np.array([[3.0, 1.0, 2.0], [0.0, 1.0, 5.0]]), np.array([0, 1]))
    array([ 1., -4.])
    """
    require_labels(labels, scores, "a class 0 … c−1", labels >= 0)
    rows = np.arange(len(labels))
    others = scores.astype(float)
    others[rows, labels] = -np.inf
    return scores[rows, labels] - others.max(axis=1)


class MarginHook:
    """Record the training margins of a network after each epoch (Source: L1-04).

    A hook for ``optdl.training.train``. It adds three curves to the record:

    - ``median_margin`` and ``smallest_margin``, of :func:`classification_margins`;
    - ``normalized_margin``, the smallest one over the product of the Frobenius norms
      ‖W₁‖ ⋯ ‖W_L‖ of the weight matrices.

    In a ReLU network without biases, multiplying the weights of a layer by a > 0 multiplies every
    margin by a. The normalized margin does not change. ``inputs`` is a tensor with the m training
    images in rows, ``labels`` an array of their classes.

    >>> import torch
    >>> hook = MarginHook(torch.ones(1, 2), np.array([0]))
    """

    def __init__(self, inputs: Any, labels: Classes) -> None:
        self.inputs = inputs
        self.labels = labels

    def after_epoch(self, state: Any) -> None:
        """Record the margins of ``state.model``."""
        scores = state.model(self.inputs).detach().double().cpu().numpy()
        values = classification_margins(scores, self.labels)
        smallest = float(values.min())
        norms = (float(p.detach().norm()) for p in state.model.parameters() if p.ndim == 2)
        state.curves.setdefault("median_margin", []).append(float(np.median(values)))
        state.curves.setdefault("smallest_margin", []).append(smallest)
        state.curves.setdefault("normalized_margin", []).append(smallest / math.prod(norms))


class GradientNormHook:
    """Record the norm of the gradient over all training examples after each epoch (Source: L1-05).

    A hook for ``optdl.training.train``. It adds the curve ``batch_gradient_norm``, which has none
    of the noise of minibatch gradients. ``loss`` maps scores and labels to their mean loss.
    ``inputs`` and ``labels`` are tensors with all training examples.

    >>> import torch
    >>> squared = torch.nn.functional.mse_loss
    >>> hook = GradientNormHook(torch.ones(1, 1), torch.ones(1, 1), squared)
    """

    def __init__(self, inputs: Any, labels: Any, loss: Callable[[Any, Any], Any]) -> None:
        self.inputs = inputs
        self.labels = labels
        self.loss = loss

    def after_epoch(self, state: Any) -> None:
        """Record ‖∇J‖ at the current parameters, then reset the gradients."""
        state.optimizer.zero_grad()
        self.loss(state.model(self.inputs), self.labels).backward()
        squares = sum(float(p.grad.square().sum()) for p in state.model.parameters())
        state.curves.setdefault("batch_gradient_norm", []).append(math.sqrt(squares))
        state.optimizer.zero_grad()


def early_stopping(validation_errors: Sequence[float], patience: int) -> tuple[int, int]:
    """Return the epoch to keep and the epoch at which training halts, counted from 0.

    The best epoch so far is the first one with the lowest error; a tie is no improvement, and NaN
    counts as infinite. Training halts once ``patience`` epochs in a row have not improved on it.
    The halt is the last epoch if patience never runs out. Errors after the halt are not read.
    Raises ValueError where there is no epoch, or ``patience`` is less than 1. Source: L1-05.

    >>> early_stopping([0.5, 0.3, 0.4, 0.3, 0.1], patience=2)
    (1, 3)
    """
    if patience < 1 or len(validation_errors) == 0:
        raise ValueError(
            f"expected at least one epoch and patience of at least 1; "
            f"got {len(validation_errors)} epochs and patience {patience}"
        )
    best, errors = 0, np.nan_to_num(validation_errors, nan=np.inf, posinf=np.inf)
    for epoch, error in enumerate(errors):
        if error < errors[best]:
            best = epoch
        if epoch - best == patience:
            return best, epoch
    return best, len(validation_errors) - 1


class EarlyStopping:
    """Halt training by the rule of :func:`early_stopping`, and keep the best weights.

    A hook for ``optdl.training.train``. It reads the curve ``validation_error`` after each epoch,
    and sets ``state.stop`` when patience runs out. ``best`` is the epoch to keep, ``best_weights``
    the model's ``state_dict`` after it. Epochs are counted from 0, and the weights are copies, None
    before the first epoch. Raises ValueError where ``patience`` is less than 1. Source: L1-05.

    >>> EarlyStopping(patience=3).best_weights is None
    True
    """

    def __init__(self, patience: int) -> None:
        if patience < 1:
            raise ValueError(f"expected patience of at least 1 epoch; got {patience}")
        self.patience = patience
        self.best = -1
        self.best_weights: dict[str, Any] | None = None

    def after_epoch(self, state: Any) -> None:
        """Keep the weights if the epoch is the best so far; halt if patience has run out."""
        errors = state.curves["validation_error"]
        best, halt = early_stopping(errors, self.patience)
        if best == len(errors) - 1:
            self.best = best
            self.best_weights = copy.deepcopy(state.model.state_dict())
        if halt - best == self.patience:
            state.stop = f"no better validation error for {self.patience} epochs"
