"""Empirical risk minimization: losses, overfitting, early stopping, minibatches and their noise.

Axis letters, fixed for the module: ``m`` examples, ``n`` the size of a minibatch, ``d`` features,
``c`` classes, ``p`` parameters, ``t`` steps or epochs, ``s`` sizes, ``r`` repetitions.
Labels of two classes are −1 and +1; labels of c classes are 0 … c−1.
"""

from optdl.erm import (
    batch_sizes,
    epochs,
    likelihood,
    noise,
    overfitting,
    risk,
    stopping,
    streams,
    surrogates,
)
from optdl.erm.batch_sizes import *
from optdl.erm.epochs import *
from optdl.erm.likelihood import *
from optdl.erm.noise import *
from optdl.erm.overfitting import *
from optdl.erm.risk import *
from optdl.erm.stopping import *
from optdl.erm.streams import *
from optdl.erm.surrogates import *

__all__: list[str] = []
__all__ += risk.__all__
__all__ += overfitting.__all__
__all__ += surrogates.__all__
__all__ += stopping.__all__
__all__ += likelihood.__all__
__all__ += noise.__all__
__all__ += epochs.__all__
__all__ += batch_sizes.__all__
__all__ += streams.__all__
