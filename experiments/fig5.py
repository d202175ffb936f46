"""Fig. 5: a network of five layers on CIFAR-10, minibatches of 128 and of 2.

Table 3 gives vanilla at 128 the rate 0.1, and the text says that it has Adam: both are run. ::

    python experiments/fig5.py --only=-128- --seeds 3
    python experiments/fig5.py --only=cnn5-2- --seeds 3
"""

from optdl.experiments import Tuning, convolutional_panel, main

LARGE = {"vanilla": 0.1, "Adam": 0.1, "BN": 0.1, "4 Things": 5e-3, "BNP": 0.1}
SMALL = {"vanilla": 1e-3, "BN": 1e-3, "Renorm": 1e-2, "4 Things": 1e-4, "BNP": 1e-2}
LONG = Tuning((0.001, 0.003, 0.01, 0.03, 0.1, 0.3), epochs=2, examples=15_000, paper=1)
SHORT = Tuning((0.0003, 0.001, 0.003, 0.01, 0.03), epochs=1, examples=9000, paper=1)
PANELS = [
    convolutional_panel(
        "five layers, minibatches of 128", 128, 10, LARGE, LONG, {"ghost_size": 32}
    ),
    convolutional_panel("five layers, minibatches of 2", 2, 4, SMALL, SHORT, {"groups": 8}),
]

if __name__ == "__main__":
    main(__file__, PANELS, __doc__)
