"""Activations, initial values, and the normalization of inputs: how a network starts.

* ``functions``: the mathematics, in NumPy.
* ``diagnostics``: what to count in a network of torch before and during its training.
"""

from __future__ import annotations

from optdl.initialization.diagnostics import (
    UpdateRatioHook,
    dead_share,
    layer_outputs,
    output_histograms,
    update_to_weight_ratio,
)
from optdl.initialization.functions import (
    ACTIVATIONS,
    Activation,
    InputNormalizer,
    backward_second_moments,
    glorot_normal,
    glorot_uniform,
    gradient_norm_bound,
    gradient_norms,
    he_normal,
    least_squares_hessian,
    lecun_normal,
    measured_backward_moments,
    measured_second_moments,
    normalize_inputs,
    relu_second_moments,
    saturated_share,
    second_moments,
    train_hidden_layer,
)

__all__ = [
    "ACTIVATIONS",
    "Activation",
    "InputNormalizer",
    "UpdateRatioHook",
    "backward_second_moments",
    "dead_share",
    "glorot_normal",
    "glorot_uniform",
    "gradient_norm_bound",
    "gradient_norms",
    "he_normal",
    "layer_outputs",
    "least_squares_hessian",
    "lecun_normal",
    "measured_backward_moments",
    "measured_second_moments",
    "normalize_inputs",
    "output_histograms",
    "relu_second_moments",
    "saturated_share",
    "second_moments",
    "train_hidden_layer",
    "update_to_weight_ratio",
]
