"""Train the paper's fully connected network with small minibatches: vanilla, BN and BNP.

Three hidden layers of 100 units, SGD, Glorot uniform weights and zero biases. For CIFAR-10 the
learning rates are those of Table 2; for the digits they come from ``--tune``. Each run becomes a
file of ``experiments/results``; a run that is there is not repeated. ::

    python experiments/fully_connected.py --data cifar10 --batch 60 --epochs 5
    python experiments/fully_connected.py --data digits --batch 60 6 1 --epochs 15
"""

import argparse
from pathlib import Path

import torch

from optdl.batchnorm import NORMALIZATIONS
from optdl.bnp import BNP
from optdl.data import Dataset, Examples, load
from optdl.networks import fully_connected
from optdl.records import Record
from optdl.training import train

RESULTS = Path(__file__).resolve().parent / "results" / "fully_connected"
METHODS = ("vanilla", "BN", "BNP")
RATES = {
    "cifar10": {
        60: {"vanilla": 1e-2, "BN": 5e-1, "BNP": 1e-1},
        6: {"vanilla": 5e-3, "BN": 5e-2, "BNP": 5e-2},
        1: {"vanilla": 5e-4, "BNP": 1e-1},
    },
    "digits": {
        60: {"vanilla": 3e-1, "BN": 1.0, "BNP": 3e-1},
        6: {"vanilla": 1e-1, "BN": 3e-2, "BNP": 3e-1},
        1: {"vanilla": 3e-2, "BNP": 3e-1},
    },
}
"""Data and batch size to the rate of each method; BN has none for one example."""
GRID = (1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1, 1.0)


def run(data: Dataset, method: str, batch: int, lr: float, epochs: int, seed: int) -> Record:
    """Train once and return the record; ``validation`` in its curves is the test set."""
    widths = (data.x_train[0].size, 100, 100, 100, len(data.classes))
    model = fully_connected(widths, NORMALIZATIONS["bn" if method == "BN" else "none"], seed=seed)
    return train(
        model,
        whole_batches(Examples(data.x_train, data.y_train), batch),
        torch.optim.SGD(model.parameters(), lr=lr),
        validation=Examples(data.x_test, data.y_test),
        epochs=epochs,
        batch_size=batch,
        hooks=[BNP(model)] if method == "BNP" else [],
        seed=seed,
        config={"data": data.name, "method": method, "batch": batch, "lr": lr},
        progress=True,
    )


def whole_batches(examples: Examples, batch: int) -> Examples:
    """Leave out the last examples where they would be a minibatch of one, which BN refuses."""
    keep = len(examples.y) - (len(examples.y) % batch == 1)
    return Examples(examples.x[:keep], examples.y[:keep])


def tuned(data: Dataset, method: str, batch: int, epochs: int) -> float:
    """Return the rate of the grid with the least error on a part of the training set."""
    held = len(data.y_train) // 5
    part = Dataset(
        data.name,
        data.x_train[held:],
        data.y_train[held:],
        data.x_train[:held],
        data.y_train[:held],
        data.image_shape,
        data.classes,
    )
    errors = {}
    for lr in GRID:
        try:
            errors[lr] = run(part, method, batch, lr, epochs, seed=99).curves["validation_error"][
                -1
            ]
        except FloatingPointError:
            errors[lr] = 1.0
    return min(errors, key=lambda lr: errors[lr])


def outcome(data: Dataset, method: str, batch: int, lr: float, epochs: int, seed: int) -> str:
    """Return the test accuracy by epoch in words; the record is kept in a file."""
    file = RESULTS / f"{data.name}-{batch}-{method}-{lr:g}-{seed}-{epochs}.json"
    if not file.exists():
        try:
            record = run(data, method, batch, lr, epochs, seed)
        except FloatingPointError as error:
            return f"diverged: {error}"
        file.parent.mkdir(parents=True, exist_ok=True)
        record.save(file)
    errors = Record.load(file).curves["validation_error"]
    return " ".join(f"{100 * (1 - error):5.1f}" for error in errors)


def main() -> None:
    """Run what the command line asks for, and print a line for each run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", choices=RATES, default="digits")
    parser.add_argument("--batch", type=int, nargs="+", default=[60, 6, 1])
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--tune", action="store_true", help="print the best rates, train no more")
    options = parser.parse_args()
    torch.set_num_threads(1)
    data = load(options.data)
    print("test accuracy in %, by epoch")
    for batch in options.batch:
        for method in options.methods:
            if method == "BN" and batch == 1:
                print(f"{batch:3} BN       refuses: one example has no variance")
                continue
            if options.tune:
                print(f"{batch:3} {method:8} {tuned(data, method, batch, options.epochs):g}")
                continue
            lr = RATES[options.data][batch][method]
            for seed in range(options.seeds):
                print(
                    f"{batch:3} {method:8} {lr:<6g} seed {seed}: "
                    f"{outcome(data, method, batch, lr, options.epochs, seed)}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
