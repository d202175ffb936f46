r"""Empirical risk minimization: losses, overfitting, early stopping, minibatches and their noise.

Axis letters, fixed for the module: ``m`` examples, ``n`` the size of a minibatch, ``d`` features,
``c`` classes, ``p`` parameters, ``t`` steps or epochs, ``s`` sizes, ``r`` repetitions.
Labels of two classes are −1 and +1; labels of c classes are 0 … c−1.

* ``risk``: a fixed model on many samples, and least squares in closed form;
* ``overfitting``: polynomials of growing degree, fitted to a noisy curve;
* ``surrogates``: losses of the margin that stand for the 0–1 loss;
* ``stopping``: early stopping, and what a network does after its last training error;
* ``noise``: gradients of single examples, their noise, and how many of them a method needs;
* ``batches``: batch, minibatch and online training, and a stream of fresh data.
"""

from optdl.erm import batches, noise, overfitting, risk, stopping, surrogates
from optdl.erm.batches import *
from optdl.erm.noise import *
from optdl.erm.overfitting import *
from optdl.erm.risk import *
from optdl.erm.stopping import *
from optdl.erm.surrogates import *

__all__: list[str] = []
__all__ += batches.__all__
__all__ += noise.__all__
__all__ += overfitting.__all__
__all__ += risk.__all__
__all__ += stopping.__all__
__all__ += surrogates.__all__
