"""Ill-conditioning and the landscape: what makes gradient descent slow, and where it ends.

* ``functions``: the mathematics, in NumPy;
* ``curvature``: what torch differentiates twice.
"""

from typing import TYPE_CHECKING, Any

from optdl.conditioning.functions import (
    basins,
    clip_by_norm,
    clip_by_value,
    condition_number,
    difference_hessian_vector_product,
    equivalent_minima,
    global_norm,
    iterations_needed,
    limit_point,
    minima_share,
    permute_hidden_units,
    recurrent_cliff,
    relu_hessian_at_a_fit,
    rescale_hidden_units,
    scaling_tangents,
    stationary_variance,
    step_gain,
    uphill_step,
)

if TYPE_CHECKING:
    from optdl.conditioning.curvature import (
        CurvatureHook,
        extreme_eigenvalues,
        hessian_vector_product,
    )

__all__ = [
    "CurvatureHook",
    "basins",
    "clip_by_norm",
    "clip_by_value",
    "condition_number",
    "difference_hessian_vector_product",
    "equivalent_minima",
    "extreme_eigenvalues",
    "global_norm",
    "hessian_vector_product",
    "iterations_needed",
    "limit_point",
    "minima_share",
    "permute_hidden_units",
    "recurrent_cliff",
    "relu_hessian_at_a_fit",
    "rescale_hidden_units",
    "scaling_tangents",
    "stationary_variance",
    "step_gain",
    "uphill_step",
]


def __getattr__(name: str) -> Any:
    """Import what needs torch when it is asked for: the mathematics does without."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from optdl.conditioning import curvature

    return getattr(curvature, name)
