"""The student writes early stopping, which keeps the weights of the best epoch."""

import numpy as np

from optdl.checks.exercise import Exercise
from optdl.labs.drivers import dropout as drivers


class EarlyStopping:
    """Stop after ``patience`` epochs without a new best loss; keep the weights of the best one.

    A loss is a new best one when it is below the best so far by more than ``min_delta``.
    Source: LAB-4.
    """

    def __init__(self, patience, min_delta=0.0):
        self.patience, self.min_delta = patience, min_delta
        self.best, self.waited = float("inf"), 0
        self.state = None

    def update(self, model, loss):
        """Return whether training should stop."""
        if loss < self.best - self.min_delta:
            self.best, self.waited = loss, 0
            self.state = {name: value.clone() for name, value in model.state_dict().items()}
        else:
            self.waited += 1
        return self.waited >= self.patience

    def restore(self, model):
        """Give the network the weights that it had at the best loss."""
        model.load_state_dict(self.state)


exercise = Exercise("LAB-4:stopping", EarlyStopping, use=drivers.stopping)


@exercise.cases
def _(rng):
    nan, inf = float("nan"), float("inf")
    histories = [
        ([3, 2, 2.5, 2.4, 2.3, 2.6, 1], 3, 0.0),
        ([3, 2, 2.5, 1.5, 1.8, 1.9, 1], 2, 0.0),
        ([4, 2, 2, 2, 2, 1], 3, 0.0),
        ([3, 2.9, 2.8, 2.7, 2.65, 2.6, 1], 2, 0.15),
        ([3, 2.5, nan, 2.6, nan, 1.5], 2, 0.0),
        ([3, 2, nan, nan, nan], 4, 0.0),
        ([nan, 3, 2, 2.5, 2.6, 1], 2, 0.0),
        ([inf, 20, inf, 30, 4], 2, 0.0),
        ([inf, inf, inf, inf], 2, 0.0),
        ([30, 18, 19.8, 17, 16.5, 16.8, 16.7, 1], 2, 0.4),
        ([3, 2, 1, 0.9999], 1, 0.0),
        ([3e40, 2e40, 2.5e40, 2.6e40, 1e40], 2, 0.0),
    ]
    for losses, patience, min_delta in histories:
        scale = float(rng.choice([0.5, 1.0, 2.0]))  # a power of two: nothing is rounded
        falling = [40.0 - k for k in range(int(rng.integers(1, 4)))]  # new best losses before
        history = (falling if losses[0] == 3 else []) + losses
        yield [scale * loss for loss in history], patience, scale * min_delta
    yield (rng.integers(0, 40, size=12) / 4).tolist(), int(rng.integers(2, 5)), 0.5


@exercise.fact("what `update` returns and `restore` brings back is that of the definition")
def _(kind, rng):
    patience, losses = int(rng.integers(1, 4)), rng.permutation(8).astype(float)
    best = [int(np.argmin(losses[: k + 1])) for k in range(8)]
    last = next((k for k in range(8) if k - best[k] >= patience), 7)
    returned, weights, averages = exercise.observe(kind, losses.tolist(), patience, 0.0)
    restored = [1 + best[last]]
    stops = bool(last - best[last] >= patience)
    said = [False] * last + [stops] * (1 + stops)
    return returned == said and [*weights] == restored == [*averages]


exercise.help(r"""
1. What must the object remember to tell a new best loss, and whether it is time to stop?
2. It needs the best loss, infinite at first, the number of epochs since then, and a copy of the
   state from that epoch. A new best loss changes all three; any other loss changes only the number.
3. If the loss is less than the best loss minus `min_delta`, store it and a copy of the state, and
   set the counter to 0; otherwise increase the counter. Return whether it has reached `patience`.
you keep the network's own tensors, which training goes on to change: `state_dict()` gives no
copies; clone each value, or use `copy.deepcopy`
    value.clone() → value
you never start counting again: the epochs without a new best loss must follow each other
    self.best, self.waited = loss, 0 → self.best = loss
you stop at the first epoch without a new best loss; wait for `patience` of them
    self.waited >= self.patience → self.waited > 0
you compare with the loss of the epoch before; compare with the best so far
    self.waited += 1 → self.waited, self.best = self.waited + 1, loss
you take an equal loss for a new best one; it must be below the best by more than `min_delta`
    loss < → loss <=
you keep the weights of each epoch, and so those of the last one; keep them only at a new best loss
    self.waited += 1
    → self.waited += 1; self.state = {k: v.clone() for k, v in model.state_dict().items()}
you keep the parameters alone; running averages are buffers, which `state_dict()` has, too
    (self.state) → ({**model.state_dict(), **{k: self.state[k] for k in ("weight", "bias")}})
your `restore` leaves the network as it is; give it the weights with `model.load_state_dict(…)`
    model.load_state_dict(self.state) → model = self.state
you take `min_delta` as a fraction of the best loss; it is a difference
    self.best - self.min_delta → self.best * (1 - self.min_delta)
you lower the best loss by gains of less than `min_delta`; leave it until it is beaten by more
    self.waited += 1 → self.waited, self.best = self.waited + 1, min(self.best, loss)
you take NaN for a new best loss; ask whether the loss is smaller, not whether it is not larger
    if loss < → if not loss >=
you take the first loss for the best whatever it is; one that is NaN or +∞ never is a new best loss
    if loss < → if not self.state or loss <
you do not count an epoch whose loss is NaN; it is one without a new best loss
    else: → elif loss == loss:
you keep the weights once, at the first loss; keep them at each new best loss
    self.state = {name → self.state = self.state or {name
you return True once; it is True as long as there is no new best loss
    >= self.patience → == self.patience
your best loss begins with a number, and a first loss may be larger; begin with `float("inf")`
    float("inf") → 1e9
your `update` returns nothing; `return` whether training should stop
    return self.waited >= self.patience → pass
your `restore` gives away the tensors that you keep; load copies of them, without `assign=True`
    (self.state) → (self.state, assign=True)
you do not count an epoch whose loss is NaN or ∞; it is one without a new best loss
    if loss < self.best → if not abs(loss) < np.inf:\n            return False\n
            if loss < self.best
""")
