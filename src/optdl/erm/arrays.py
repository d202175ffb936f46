"""The shapes of the arrays of this chapter, and what its labels must be."""

import numpy as np
from jaxtyping import Float, Int, Shaped

Values = Float[np.ndarray, "..."]
Features = Float[np.ndarray, "m d"]
Weights = Float[np.ndarray, " d"]
Labels = Float[np.ndarray, " m"] | Int[np.ndarray, " m"]
Classes = Int[np.ndarray, " m"]
Batch = tuple[Float[np.ndarray, "n d"], Shaped[np.ndarray, " n"]]


def require_labels(labels: np.ndarray, x: np.ndarray, expected: str, fit: np.ndarray) -> None:
    """Refuse labels that NumPy would broadcast or take for others, as −1 for the last class."""
    if labels.shape != x.shape[:1] or not labels.size or not fit.all():
        raise ValueError(
            f"expected {expected} for each of {len(x)} examples, 1 or more; "
            f"got {np.unique(labels)[:5]} in an array of shape {labels.shape}"
        )
