"""Batch normalization and its relatives: forward and backward in NumPy, layers in torch.

* ``functions``: forward and backward, in NumPy;
* ``layers``: the layers, for torch;
* ``population``: statistics of many examples in place of the moving averages;
* ``smoothness``: what a step changes: the loss, its gradient, weight vectors, outputs.
"""

from typing import TYPE_CHECKING, Any

from optdl.batchnorm import functions
from optdl.batchnorm.functions import *

if TYPE_CHECKING:
    from optdl.batchnorm.layers import *
    from optdl.batchnorm.population import *
    from optdl.batchnorm.smoothness import *

__all__ = [
    "NORMALIZATIONS",
    "AlongStep",
    "AlongStepHook",
    "BatchNorm",
    "BatchRenorm",
    "FourThingsNorm",
    "GhostBatchNorm",
    "MeanShiftHook",
    "PopulationStatisticsHook",
    "RandomShift",
    "WeightVectorHook",
    "loss_along_step",
    "use_population_statistics",
]
__all__ += functions.__all__


def __getattr__(name: str) -> Any:
    """Import what needs torch when it is asked for: the mathematics does without."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from optdl.batchnorm import layers, population, smoothness

    home = next(module for module in (layers, population, smoothness) if name in module.__all__)
    return getattr(home, name)
