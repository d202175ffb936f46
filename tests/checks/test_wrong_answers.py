"""Wrong answers: each is noticed and told what is wrong, and no answer of PyTorch's passes.

Of each exercise in NumPy a few mutants of the right answer are drawn by a fixed seed.
"""

import contextlib
import re
import signal
import sys
import zlib
from itertools import islice

import numpy as np
import pytest
import torch
from test_checks import Stub, outcome
from torch import nn

from optdl.checks import Misconception, diagnoses, exercises, lab_exercises, runner
from optdl.checks.exercise import _edit
from optdl.checks.report import LIKELY_CAUSE, WHY

ALL = {key.split(",")[0]: one for key, one in (exercises() | lab_exercises()).items()}


# --- edits of the right answer, and what they are told


WRONG = r"""
# right in most cases
L1-09 ✗
    [order[start : start + n] for → [1.0 * order[start : start + n] for
L1-09 ✗
    [order[ → np.array_split(order, -(-m // n)) or [order[
L1-07:size ✗
    int(np.ceil(n)) → max(2, int(np.ceil(n)))
F-04 ✗
    return max(0, int(np.ceil(steps - 1e-12))) → steps = 0\n    while distance < radius:\n
            distance, steps = distance * (1 + lr * curvature), steps + 1\n    return steps
L1-03:hinge ✗
    < 1 → < 2
L1-21 ✗
    smallest < -tolerance and largest > tolerance → smallest * largest < -tolerance
F-16 ✗
    np.mean(search → np.median(search
L1-05 ✗
    best, bad = 0, 0 → best = 1
    range(1,  → range(
    bad ==  → epoch - best ==
    epoch, 0 → epoch
    best, bad = epoch → best = epoch
    bad += 1 → pass
L1-18:uphill ✗
    curvature > 0 → curvature >= 0
L1-18:gain ✗
    direction @ hessian @ direction → abs(direction @ hessian @ direction)
L1-21 ✗
    if smallest > tolerance → if np.diag(hessian).min() > tolerance
F-16 ✗
    < len(rates) - 1 → < np.flatnonzero(np.isfinite(np.mean(search, axis=1)))[-1]
L2-06 ✗
    theta = theta - lr → r = largest * (1 - beta2**t)\n        theta = theta - lr
# for one example a rounding error may stand under the root
L1-06 ✓
    - norm**2) → - norm**2 - 1e-18)
L2-06:step ✓
    + delta), m, r → + delta), [*m], [*r]
L1-17 ✗
    > 1e-12 * values[-1] → > 1e-4 * values[-1]
L1-17 ✗
    int(np.ceil( → int((1 +
# a rounding error is far below any threshold
L1-17 ✓
    eigvalsh(hessian) → svd(hessian)[1][::-1]
    1e-12 → 1e-10
P-12 ✓
    1e-12 → 1e-10
# a mistake in one part
L1-34 cause: in `factor`, your ε is outside
    / root) → / (centered.std(axis=0) + eps))
# a loop is asked about only where one goes through the argument
L1-03:hinge `x[:-1]` and `y[:-1]` in place of `x` and `y`.
    active = → x, y = x[:-1], y[:-1]\n    active =
L1-03:hinge `x[:-1]` and `y[:-1]` in place of `x` and `y`.
    active = → for _ in range(3):\n        last = -1\n    x, y = x[:last], y[:last]\n    active =
L1-03:hinge does a loop end too early?
    active = → for k in range(1, len(x)):\n        pass\n    x, y = x[:k], y[:k]\n    active =
# in a lab, in the process where the answer lives
LAB-1:train `the losses`: expected a value, got None
    return losses → return None
LAB-1:train `the losses`: expected numbers, got a dict
    return losses → return {}
LAB-2:statistics `what is returned`: expected a dict, got a list
    return found → return [1.0]
LAB-4:passes expected 2 values, got 1
    found.mean(dim=0), found.std(dim=0) → [0.5]
LAB-3:evaluate `the loss` and `the accuracy` are exchanged.
    loss / len(y), correct / len(y) → correct / len(y), loss / len(y)
LAB-6:batches `len(batches)`: expected 5, got 6
    // self.size) → // self.size) + 1
LAB-5:input_statistics expected 'RuntimeError', got None
    finally: → except RuntimeError:\n        pass\n    finally:
    seen[layer] for → seen.get(layer) for
LAB-1:sgd a new optimizer finds no velocity in your `state_dict()`
    self.state[p] → self.state[id(p)]
LAB-2:mend all linear outputs on `x` have the standard deviation 1
    model(x) → nn.Sequential(*(one for layer in layers for one in (layer, nn.ReLU())))(x)
LAB-2:statistics expected '1', got 'no error is raised'
    finally: → except RuntimeError:\n        pass\n    finally:
LAB-3:recalibrate and still learn`: expected True, got False
    model.train() → model.train().requires_grad_(False)
LAB-4:passes expected 'Tensor', got 'Tensor and ndarray'
    found.std(dim=0) → found.std(dim=0).numpy()
LAB-5:bnp expected 'RuntimeError', got 'ValueError'
    RuntimeError → ValueError
LAB-2:initialize wrong exactly when `kind` is 'nested, with a subclass'
    nn.Linear | nn.Conv2d → nn.Linear | nn.Conv1d | nn.Conv2d
LAB-2:ratios wrong exactly when `last` is 'frozen first layer'
    value.ndim > 1 → value.ndim > 1 and value.requires_grad
LAB-3:evaluate autograd stays off; use `with torch.no_grad():`
    @torch.no_grad() →
    model.eval() → model.eval(), torch.set_grad_enabled(False)
LAB-3:network `scores in evaluation mode`:
    nn.ReLU() → nn.ReLU6()
LAB-3:recalibrate `the running averages`:
    layer.num_batches_tracked.zero_() → getattr(layer, "reset_running_stats", list)()
LAB-4:network `the layers of your network`:
    isinstance(layer, nn.ReLU) → "ReLU" in type(layer).__name__
LAB-5:input_statistics `forward passes`: expected 1, got 2
    model(x) → [model(x) for _ in range(2)]
    seen[layer] = (h → seen[layer] = seen.get(layer) or (h
LAB-6:checkpoint `what load returns`: expected '3', got '0'
    content = { → os.path.exists(p := self.path) and os.replace(p, p + "~")\n        content = {
LAB-4:fit the methods of a stopper take the network
    stopper.update(model → stopper.update(stopper
LAB-5:train leave the hooks of `bnp`
    return losses → bnp and bnp.remove()\n    return losses
LAB-1:sgd in line 18: `p.add_(1 / 0)`
    p.add_(state["v"]) → p.add_(1 / 0)
LAB-6:trainer your function raised ZeroDivisionError: division by zero
    self.model.train() → self.model.train(self.device.type != "meta" or 1 / 0)
LAB-1:adamw wrong exactly when `event` is 'group 2 has the default settings, and half
    group["lr"] * m → self.param_groups[0]["lr"] * m
LAB-1:adamw right exactly when `weight_decay` is 0
    1 - group → 1 + group
LAB-3:evaluate loss and accuracy are those of all examples in one pass
    model.train(training) → \n        break\n    model.train(training)
LAB-3:network `scores in evaluation mode after them`: 24 of
    momentum=0.1 → momentum=0.01
LAB-4:stopping `what update returns, epoch by
    min_delta=0.0 → min_delta=1e-3
LAB-6:trainer you read a number in the loop
    in batches: → in list(batches):
    losses.append(loss.detach()) → losses.append(loss.item())
    torch.stack(losses).tolist() → losses
"""
"""A key, what is told of an answer, and below it edits of the right one, as in blocks."""


def edited(text):
    rows = []
    for line in re.sub(r"\\n\n\s+", r"\\n        ", text).splitlines():
        if line.startswith("    "):
            rows[-1][2].append(_edit(line))
        elif line and not line.startswith("#"):
            rows.append((*line.split(" ", 1), []))
    return rows


@pytest.mark.parametrize(("key", "reason", "edits"), edited(WRONG))
def test_edited_answer_is_told_what_is_wrong(key, reason, edits):
    exercise = ALL[key]
    answer = Misconception("", exercise._answer, edits)
    assert reason in outcome(exercise.key, answer.function, properties=True)


def test_no_cause_names_the_seed_of_a_driver(monkeypatch):
    exercise = ALL["LAB-2:initialize"]
    monkeypatch.setattr(exercise, "misconceptions", [])
    # the driver seeds the global generator with another number
    wrong = Misconception("", exercise.reference, [(", generator=generator)", ")")])
    told = outcome("LAB-2:initialize", wrong.function)
    assert "✗" in told
    assert "`seed`" not in told


# --- answers of PyTorch


def borrowed(kind):
    """Return a class that only passes its arguments on to one of PyTorch's own."""

    class Borrowed(kind):
        def __init__(self, first, *others, **options):
            super().__init__(first, *others, **options)

    return Borrowed


def update_bn(model, batches):
    torch.optim.swa_utils.update_bn(batches, model)


class BatchNorm(nn.Module):
    def __init__(self, features, momentum=0.1, eps=1e-5):
        super().__init__()
        self.layer = nn.BatchNorm1d(features, eps, momentum)


@pytest.mark.parametrize("way", [lambda answer: answer, Stub], ids=["here", "elsewhere"])
@pytest.mark.parametrize(
    ("key", "answer", "name"),
    [
        ("LAB-1:sgd", borrowed(torch.optim.SGD), "torch.optim.SGD"),
        ("LAB-1:adamw", torch.optim.AdamW, "torch.optim.AdamW"),
        ("LAB-1:adamw", borrowed(torch.optim.Adam), "torch.optim.Adam"),
        ("LAB-3:module", nn.BatchNorm1d, "torch.nn.BatchNorm1d"),
        ("LAB-3:module", BatchNorm, "torch.nn.BatchNorm1d"),
        ("LAB-3:recalibrate", update_bn, "torch.optim.swa_utils.update_bn"),
    ],
)
def test_answers_of_torch_are_refused_with_their_name(key, answer, name, way):
    assert f"{name} is what this exercise asks you to write" in outcome(key, way(answer))
    assert isinstance(nn.BatchNorm1d(2)(torch.ones(3, 2)), torch.Tensor)  # open again


# --- mutants

MAX_MUTANTS = 6
SECONDS = 2.0
"""Processor time that a mutant may take for a few cases."""

EXCHANGED = (
    " + | - ; * | / ; < | <= ; > | >= ; == | != ; is | is not ; and | or ;sum(|mean(;min(|max("
)
SWAPS = {" // ": " / ", " ** ": " * ", ".T": "", "not ": "", "minimum(": "maximum("}
for left, right in (pair.split("|") for pair in EXCHANGED.split(";")):
    SWAPS |= {left: right, right: left}
SWAPS = {re.escape(old): new for old, new in SWAPS.items()} | {
    r"(?<=[(\[, ])-(?=\w)": "",
    # a number is one larger, or an index; an axis or another argument by name is left out
    r"(?<![\w.])(\d+)(?![\w.])": r"\1 + 1",
    r"\[(\w+)\]": r"[\1 - 1]",
    r", \w+=[^(),=]+(?=[,)])": "",
    # two neighbors are exchanged, and a statement is left out
    r"\((\w+), (\w+)": r"(\2, \1",
    r"(?m)^( +)\w[\w, \[\]]* (?:.\S?)?= .*$": r"\1pass",
}
"""What an expression or a statement is mistaken for, by a pattern of its text."""

VALUES_DIFFER = re.compile(rf"^{WHY}.*values? differ\b", re.M)
PART = r"(the [^:]* parts( in [^:]*)?: |at key '\w+': |`[^`]+`: )*"
ONLY_VALUES_DIFFER = re.compile(rf"^{WHY}{PART}(\d+ of \d+|the) values differ\.$", re.M)


class TooLong(BaseException):
    """A mutant has used more processor time than it may; nothing else catches it."""


@contextlib.contextmanager
def limited(seconds):
    def stop(*_):
        raise TooLong

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def is_wrong(exercise, function):
    tried = (runner._tried(exercise, function, seed) for seed in range(20))
    with contextlib.suppress(TooLong), limited(SECONDS):
        return any(runner._reason(exercise, *case[:3]) for cases in tried for case in cases)
    return False


def mutants(exercise):
    """Yield mutants that are wrong in some case, with what was changed, in a random order."""
    text = Misconception("", exercise._answer).text(exercise.name)
    places = [(old, new) for pattern, new in SWAPS.items() for old in re.finditer(pattern, text)]
    for number in np.random.default_rng(zlib.crc32(text.encode())).permutation(len(places)):
        old, new = places[number]
        mutant = text[: old.start()] + old.expand(new) + text[old.end() :]
        names = {**vars(sys.modules[exercise._answer.__module__])}
        with contextlib.suppress(SyntaxError):
            exec(mutant, names)
            if is_wrong(exercise, names[exercise.name]):
                yield f"{exercise.key}: {old[0]} → {old.expand(new)}", names[exercise.name]


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there is no such timer on Windows")
def test_checks_explain_most_mutants(monkeypatch):
    """More than half are given a cause, and nearly all at least a place."""
    monkeypatch.setattr(diagnoses, "RAISING", True)
    messages, late = [], []
    for exercise in exercises().values():
        for label, function in islice(mutants(exercise), MAX_MUTANTS):
            with limited(20 * SECONDS):
                messages.append(outcome(exercise.key, function))
                if messages[-1] == "✓":
                    late.append(label)
                    more = {"seed": 7, "properties": True}, {"seed": 123}
                    assert {outcome(exercise.key, function, **one) for one in more} != {"✓"}, label
    assert len(late) <= 2, late
    told = [message for message in messages if message != "✓"]
    assert all(message.splitlines()[1].startswith(WHY) for message in told)
    caused = [LIKELY_CAUSE in text or not VALUES_DIFFER.search(text) for text in told]
    placed = [LIKELY_CAUSE in text or not ONLY_VALUES_DIFFER.search(text) for text in told]
    assert sum(caused) >= 0.55 * len(messages)
    assert sum(placed) >= 0.97 * len(messages)
