"""Judge a network with batch normalization a second time, by statistics computed anew."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from optdl.batchnorm import use_population_statistics
from optdl.data import Examples
from optdl.hooks import Hook, State

__all__ = ["JudgedAnew"]


class JudgedAnew(Hook):
    """Measure, after each epoch, the loss and the error with statistics computed anew.

    It adds the curves ``recomputed_loss`` and ``recomputed_error`` and leaves training as it is.

    Parameters
    ----------
    source : Examples
        The training examples that give the statistics.
    judging : Examples
        The examples that are classified.
    like : Module
        The network, whose first parameter says on which device and in which precision.

    Notes
    -----
    Source: F-12
    """

    def __init__(self, source: Examples, judging: Examples, like: nn.Module) -> None:
        parameter = next(like.parameters())
        self.source, self.x = (
            torch.from_numpy(np.ascontiguousarray(each.x)).to(parameter)
            for each in (source, judging)
        )
        self.y = torch.from_numpy(np.ascontiguousarray(judging.y)).to(parameter.device, torch.int64)

    def after_epoch(self, state: State) -> None:
        """Add to the curves."""
        with torch.no_grad(), use_population_statistics(state.model, self.source):
            scores = torch.cat([self._scores(state.model, x) for x in torch.split(self.x, 1000)])
        loss = nn.functional.cross_entropy(scores, self.y).item()
        error = (scores.argmax(1) != self.y).double().mean().item()
        for name, value in {"recomputed_loss": loss, "recomputed_error": error}.items():
            state.curves.setdefault(name, []).append(value)

    def _scores(self, model: nn.Module, x: Tensor) -> Tensor:
        scores: Tensor = model(x)
        return scores.double()
