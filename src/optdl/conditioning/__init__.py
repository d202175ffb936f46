"""Ill-conditioning and the landscape: what makes gradient descent slow, and where it ends.

* ``functions``: the mathematics, in NumPy;
* ``landscape``: critical points, and a network small enough to list them;
* ``curvature``: what torch differentiates twice.
"""

from typing import TYPE_CHECKING, Any

from optdl.conditioning.functions import (
    basins,
    canonical_units,
    clip_by_norm,
    clip_by_value,
    clipped_limit,
    condition_number,
    difference_hessian_vector_product,
    distance_to_scalings,
    equivalent_minima,
    excess_loss,
    global_norm,
    gradient_cosines,
    iterations_needed,
    limit_point,
    minima_fraction,
    permute_hidden_units,
    power_iteration,
    recurrent_cliff,
    relu_descent,
    relu_hessian_at_a_fit,
    rescale_hidden_units,
    scaling_tangents,
    stationary_variance,
    step_gain,
    steps_needed,
    uphill_step,
)
from optdl.conditioning.landscape import (
    CriticalPoints,
    critical_point_kind,
    critical_points,
    escape_steps,
    fit_from,
    nearest_order,
    student_teacher,
    tanh_regression,
    two_weights,
)

if TYPE_CHECKING:
    from optdl.conditioning.curvature import (
        CurvatureHook,
        Descent,
        extreme_eigenvalues,
        hessian_vector_product,
        largest_eigenvalue,
        squared_error,
        track_descent,
    )

__all__ = [
    "CriticalPoints",
    "CurvatureHook",
    "Descent",
    "basins",
    "canonical_units",
    "clip_by_norm",
    "clip_by_value",
    "clipped_limit",
    "condition_number",
    "critical_point_kind",
    "critical_points",
    "difference_hessian_vector_product",
    "distance_to_scalings",
    "equivalent_minima",
    "escape_steps",
    "excess_loss",
    "extreme_eigenvalues",
    "fit_from",
    "global_norm",
    "gradient_cosines",
    "hessian_vector_product",
    "iterations_needed",
    "largest_eigenvalue",
    "limit_point",
    "minima_fraction",
    "nearest_order",
    "permute_hidden_units",
    "power_iteration",
    "recurrent_cliff",
    "relu_descent",
    "relu_hessian_at_a_fit",
    "rescale_hidden_units",
    "scaling_tangents",
    "squared_error",
    "stationary_variance",
    "step_gain",
    "steps_needed",
    "student_teacher",
    "tanh_regression",
    "track_descent",
    "two_weights",
    "uphill_step",
]


def __getattr__(name: str) -> Any:
    """Import what needs torch when it is asked for: the mathematics does without."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from optdl.conditioning import curvature

    return getattr(curvature, name)
