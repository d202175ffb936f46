"""Batch normalization and its relatives: forward and backward in NumPy, layers in torch.

* ``functions``: forward and backward, in NumPy;
* ``layers``: the layers, for torch;
* ``population``: statistics of many examples in place of the moving averages;
* ``smoothness``: how much the loss and its gradient change along a step.
"""

from typing import TYPE_CHECKING, Any

from optdl.batchnorm.functions import (
    Cache,
    affine_at_inference,
    batchnorm_backward,
    batchnorm_forward,
    batchnorm_inference,
    fold,
    groupnorm_forward,
    moving_average,
    population_statistics,
    renorm_forward,
    scale_invariant_gradient,
)

if TYPE_CHECKING:
    from optdl.batchnorm.layers import (
        NORMALIZATIONS,
        BatchNorm,
        BatchRenorm,
        FourThingsNorm,
        GhostBatchNorm,
    )
    from optdl.batchnorm.population import use_population_statistics
    from optdl.batchnorm.smoothness import AlongStep, AlongStepHook, loss_along_step

__all__ = [
    "NORMALIZATIONS",
    "AlongStep",
    "AlongStepHook",
    "BatchNorm",
    "BatchRenorm",
    "Cache",
    "FourThingsNorm",
    "GhostBatchNorm",
    "affine_at_inference",
    "batchnorm_backward",
    "batchnorm_forward",
    "batchnorm_inference",
    "fold",
    "groupnorm_forward",
    "loss_along_step",
    "moving_average",
    "population_statistics",
    "renorm_forward",
    "scale_invariant_gradient",
    "use_population_statistics",
]


def __getattr__(name: str) -> Any:
    """Import what needs torch when it is asked for: the mathematics does without."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from optdl.batchnorm import layers, population, smoothness

    home = next(module for module in (layers, population, smoothness) if name in module.__all__)
    return getattr(home, name)
