"""Fig. 3: three hidden layers of 100 units, minibatches of 60, on MNIST and CIFAR-10."""

from optdl.experiments import Tuning, dense_panels, main

# Table 2
PAPER = {
    "MNIST": {"vanilla": 0.1, "BN": 0.5, "LN": 0.1, "BNP": 0.5},
    "CIFAR-10": {"vanilla": 0.01, "BN": 0.5, "LN": 0.5, "BNP": 0.1},
}
TUNING = Tuning(rates=(0.003, 0.01, 0.03, 0.1, 0.3, 1.0), epochs=5)
PANELS = [
    panel
    for title, rates in PAPER.items()
    for panel in dense_panels(title, title.lower().replace("-", ""), 60, 20, rates, TUNING)
]

if __name__ == "__main__":
    main(__file__, PANELS, __doc__)
