"""Statistics of many examples in place of the moving averages of batch normalization."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from optdl.batchnorm.layers import BatchNorm, FourThingsNorm
from optdl.data import Examples

__all__ = ["PopulationStatisticsHook", "use_population_statistics"]


class _Reached(Exception):
    """The layer has what it was to see: the rest of the network need not be evaluated."""


@contextlib.contextmanager
def use_population_statistics(
    model: nn.Module, x: Float[Tensor, "N ..."], chunk: int = 1000
) -> Iterator[None]:
    r"""Judge a network with the statistics of these examples, not its moving averages.

    .. math:: \mu = \frac1N \sum_i z_i, \qquad \sigma^2 = \frac1N \sum_i (z_i - \mu)^2

    The inputs z of a normalization are those that reach it once the statistics of the ones before
    it have been replaced, so that a network with L of them is evaluated L times up to there. The
    outputs are those of training with the N examples as one minibatch. Meanwhile the network is in
    evaluation mode; afterwards it is as it was before, moving averages included. It raises
    ValueError where no layer has moving averages, and TypeError for :class:`FourThingsNorm`, whose
    averages are not those of single features. The N examples of x are on the device of the model.
    Source: F-12, L1-36, L2-19.

    Parameters
    ----------
    model : Module
        A network with :class:`BatchNorm`, :class:`BatchRenorm` or torch's own layers.
    chunk : int
        How many of them are evaluated at once.

    Examples
    --------
    >>> model = nn.Sequential(nn.BatchNorm1d(1, affine=False))
    >>> x = torch.tensor([[1.0], [3.0]])
    >>> with use_population_statistics(model, x):
    ...     print(model(x).round(decimals=2).ravel().tolist())
    [-1.0, 1.0]
    >>> model[0].running_mean
    tensor([0.])
    """
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    kept: list[tuple[Any, Tensor, Tensor]] = []
    try:
        norms: list[Any] = _norms(model, x[:1])
        kept += [(norm, norm.running_mean.clone(), norm.running_var.clone()) for norm in norms]
        for norm in norms:
            mean, var = _measure(model, norm, x, chunk)
            norm.running_mean.copy_(mean)
            norm.running_var.copy_(var)
        yield
    finally:
        for norm, mean, var in kept:
            norm.running_mean.copy_(mean)
            norm.running_var.copy_(var)
        for module, mode in modes:
            module.training = mode


class PopulationStatisticsHook:
    """Measure loss and error with the statistics of some examples after each epoch (Source: F-12).

    A hook for ``optdl.training.train``, which leaves the training as it is. It adds the curves
    ``recomputed_loss`` and ``recomputed_error`` of the ``judging`` examples; the statistics are
    those of the ``source``, as in :func:`use_population_statistics`.
    """

    def __init__(self, source: Examples, judging: Examples) -> None:
        arrays = source.x, judging.x, judging.y.astype(np.int64)
        self.source, self.x, self.y = map(torch.from_numpy, map(np.ascontiguousarray, arrays))

    @torch.no_grad()
    def after_epoch(self, state: Any) -> None:
        """Add to the curves."""
        like, model = next(state.model.parameters()), state.model
        y = self.y.to(like.device)
        with use_population_statistics(model, self.source.to(like)):
            scores = torch.cat([model(x.to(like)).double() for x in torch.split(self.x, 1000)])
        error = (scores.argmax(1) != y).double().mean()
        state.append(recomputed_loss=nn.functional.cross_entropy(scores, y), recomputed_error=error)


@torch.no_grad()
def _norms(model: nn.Module, x: Tensor) -> list[nn.Module]:
    """Return the normalizations in the order in which an example meets them."""
    met: dict[nn.Module, None] = {}
    with contextlib.ExitStack() as hooks:
        for module in model.modules():
            if isinstance(module, FourThingsNorm):
                raise TypeError("the averages of FourThingsNorm are those of groups and examples")
            if isinstance(module, BatchNorm | _BatchNorm) and module.running_mean is not None:
                hook = module.register_forward_pre_hook(lambda norm, _: met.setdefault(norm))
                hooks.callback(hook.remove)
        model(x)
    if not met:
        raise ValueError("expected a network with batch normalization; none of its layers has one")
    return list(met)


@torch.no_grad()
def _measure(model: nn.Module, norm: nn.Module, x: Tensor, chunk: int) -> tuple[Tensor, Tensor]:
    """Return the mean and the variance of what reaches a normalization."""
    rows: list[int] = []
    moments: list[tuple[Tensor, Tensor]] = []

    def note(_: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        # in double precision: the statistics must not depend on the size of the chunks
        z = inputs[0].transpose(0, 1).flatten(1).double()
        rows.append(z.shape[1])
        var, mean = torch.var_mean(z, 1, correction=0)
        moments.append((mean, var))
        raise _Reached

    with contextlib.ExitStack() as hooks:
        hooks.callback(norm.register_forward_pre_hook(note).remove)
        for part in torch.split(x, chunk):
            with contextlib.suppress(_Reached):
                model(part)
    means, variances = (torch.stack(each) for each in zip(*moments, strict=True))
    counts = torch.tensor(rows, dtype=means.dtype, device=means.device)[:, None]
    weights = counts / counts.sum()
    mean = (weights * means).sum(0)
    # the mean of the chunks' variances, and the variance of their means
    return mean, (weights * (variances + (means - mean).square())).sum(0)
