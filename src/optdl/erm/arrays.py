"""The shapes of the arrays of this chapter."""

import numpy as np
from jaxtyping import Float, Int, Shaped

Values = Float[np.ndarray, "..."]
Features = Float[np.ndarray, "m d"]
Weights = Float[np.ndarray, " d"]
Labels = Float[np.ndarray, " m"] | Int[np.ndarray, " m"]
Classes = Int[np.ndarray, " m"]
Batch = tuple[Float[np.ndarray, "n d"], Shaped[np.ndarray, " n"]]
