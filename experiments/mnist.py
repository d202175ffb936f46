"""MNIST with minibatches of 6 and of 1, which the paper has for CIFAR-10 only.

Three hidden layers of 100 units, by the protocol of figures 3 and 4.
"""

from optdl.experiments import Tuning, dense_panels, main

# The paper has no rates for these; those of its Table 2 for minibatches of 60 name the runs.
RATES = {"vanilla": 0.1, "BN": 0.5, "LN": 0.1, "BNP": 0.5}
SIX = Tuning(rates=(0.003, 0.01, 0.03, 0.1, 0.3), epochs=1, paper=0)
ONE = Tuning(rates=(0.001, 0.003, 0.01, 0.03, 0.1), epochs=1, paper=0)
PANELS = [
    *dense_panels("MNIST, minibatches of 6", "mnist", 6, 5, RATES, SIX),
    *dense_panels("MNIST, minibatches of 1", "mnist", 1, 3, RATES, ONE),
]

if __name__ == "__main__":
    main(__file__, PANELS, __doc__)
