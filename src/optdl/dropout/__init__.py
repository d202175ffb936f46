"""Dropout: switch units off at random while training, and use all of them afterwards.

* ``functions``: the layer, the ensemble and the experiment, in NumPy;
* ``layer``: the layer for torch.
"""

from typing import TYPE_CHECKING, Any

from optdl.dropout import functions
from optdl.dropout.functions import *

if TYPE_CHECKING:
    from optdl.dropout.layer import Dropout

__all__ = ["Dropout"]
__all__ += functions.__all__


def __getattr__(name: str) -> Any:
    """Import what needs torch when it is asked for: the mathematics does without."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from optdl.dropout import layer

    return getattr(layer, name)
