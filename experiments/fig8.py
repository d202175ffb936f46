"""Fig. 8: the condition number of an output unit's Hessian while BNP trains, with and without P.

Two hidden layers of 100 units on CIFAR-10, minibatches of 60. The Hessian is that of the first
output unit's bias and weights, 101 × 101, over the minibatch of the step. ::

    python experiments/fig8.py --epochs 3
"""

import argparse
import json
from pathlib import Path

import numpy as np
import torch

from optdl import bnp
from optdl.data import Examples, load
from optdl.networks import fully_connected
from optdl.training import State, train

RESULTS = Path(__file__).resolve().parent / "results" / "fig8"


class Watch:
    """Keeps the inputs of the last layer, and the condition numbers every so many steps."""

    def __init__(self, model: torch.nn.Sequential, every: int) -> None:
        self.every, self.rows = every, []
        model[-1].register_forward_hook(self._keep)

    def _keep(self, layer: torch.nn.Module, inputs: tuple, scores: torch.Tensor) -> None:
        self.H, self.scores = inputs[0].detach(), scores.detach()

    def after_backward(self, state: State) -> None:
        """Compute them for the minibatch of this step."""
        if state.step % self.every == 1:
            p = self.scores.double().softmax(1)[:, 0].numpy()
            kappas = bnp.hessian_condition_numbers(self.H.double().numpy(), p * (1 - p))
            self.rows.append([state.step, *kappas])


def main() -> None:
    """Train, print the condition numbers, and keep them in a file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="cifar10", choices=("digits", "mnist", "cifar10"))
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--every", type=int, default=100, help="steps between two measurements")
    parser.add_argument("--lr", type=float, default=0.1)
    options = parser.parse_args()
    torch.set_num_threads(1)
    data = load(options.data)
    model = fully_connected((data.x_train[0].size, 100, 100, len(data.classes)))
    watch = Watch(model, options.every)
    train(
        model,
        Examples(data.x_train, data.y_train),
        torch.optim.SGD(model.parameters(), lr=options.lr),
        epochs=options.epochs,
        batch_size=60,
        hooks=[watch, bnp.BNP(model)],
        progress=True,
    )
    print(f"{'step':>6} {'as it is':>10} {'after P':>10} {'of D':>8}")
    for step, before, after, kappa_d in watch.rows:
        print(f"{step:6} {before:10.3g} {after:10.3g} {kappa_d:8.3g}")
    ratios = [before / after for _, before, after, _ in watch.rows]
    print(f"κ falls by a factor of {np.median(ratios):.3g} (median)")
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / f"{data.name}.json").write_text(json.dumps(watch.rows) + "\n")


if __name__ == "__main__":
    main()
