"""Ill-conditioning and the landscape: what makes gradient descent slow, and where it ends.

* ``functions``: the mathematics, in NumPy;
* ``landscape``: critical points, and a network small enough to list them;
* ``curvature``: what torch differentiates twice.
"""

from typing import TYPE_CHECKING, Any

from optdl.conditioning import functions, landscape
from optdl.conditioning.functions import *
from optdl.conditioning.landscape import *

if TYPE_CHECKING:
    from optdl.conditioning.curvature import *

__all__ = [
    "CurvatureHook",
    "Descent",
    "hessian_vector_product",
    "largest_eigenvalue",
    "squared_error",
    "track_descent",
]
__all__ += functions.__all__
__all__ += landscape.__all__


def __getattr__(name: str) -> Any:
    """Import what needs torch when it is asked for: the mathematics does without."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from optdl.conditioning import curvature

    return getattr(curvature, name)
