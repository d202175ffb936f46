"""Activations, initial values, and the normalization of inputs: how a network starts.

* ``functions``: the mathematics, in NumPy.
* ``diagnostics``: what to count in a network of torch before and during its training.
"""

from optdl.initialization import diagnostics, functions
from optdl.initialization.diagnostics import *
from optdl.initialization.functions import *

__all__: list[str] = []
__all__ += diagnostics.__all__
__all__ += functions.__all__
