"""Fig. 4: minibatches of 6 and of 1 on CIFAR-10, three dense layers, and a network of convolutions.

::

    python experiments/fig4.py --only=fc3-6-
    python experiments/fig4.py --only=fc3-1-
    python experiments/fig4.py --only=cnn5-1- --seeds 3
"""

from optdl.experiments import Tuning, convolutional_panel, dense_panels, main

# Tables 2 and 3; BN and Batch Renorm cannot be trained with one example
SIX = {"vanilla": 5e-3, "BN": 5e-2, "Renorm": 5e-2, "LN": 5e-2, "BNP": 5e-2}
ONE = {"vanilla": 5e-4, "LN": 1e-2, "BNP": 1e-1}
CONVOLUTIONS = {"vanilla": 1e-3, "4 Things": 1e-3, "BNP": 1e-1}
DENSE = Tuning(rates=(0.001, 0.003, 0.01, 0.03, 0.1, 0.3), epochs=3)
DENSE_ONE = Tuning(rates=(0.0003, 0.001, 0.003, 0.01, 0.03, 0.1), epochs=1)
SHORT = Tuning((0.0003, 0.001, 0.003, 0.01, 0.03), epochs=1, examples=9000, paper=1)
PANELS = [
    *dense_panels("minibatches of 6", "cifar10", 6, 10, SIX, DENSE),
    *dense_panels("minibatches of 1", "cifar10", 1, 3, ONE, DENSE_ONE),
    convolutional_panel("convolutions, minibatches of 1", 1, 3, CONVOLUTIONS, SHORT, {"groups": 8}),
]

if __name__ == "__main__":
    main(__file__, PANELS, __doc__)
