"""The one training loop, its hooks, and the checkpoints from which it goes on."""

from optdl.training.hooks import Hook, Schedule, State
from optdl.training.loop import graphed, order_seed, train, zero_one

__all__ = ["Hook", "Schedule", "State", "graphed", "order_seed", "train", "zero_one"]
