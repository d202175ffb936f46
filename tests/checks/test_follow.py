"""What is done with the answer of a lab, in the process where the answer lives."""

import pytest
import torch
from test_checks import Stub, edited
from torch import nn

from optdl.checks import CheckFailed, check, lab_exercises
from optdl.checks.exercise import Misconception

pytestmark = pytest.mark.row("LAB-1")


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
    with pytest.raises(CheckFailed) as failed:
        check(key, way(answer))
    assert f"{name} is what this exercise asks you to write" in str(failed.value)
    assert isinstance(nn.BatchNorm1d(2)(torch.ones(3, 2)), torch.Tensor)  # open again


@pytest.mark.parametrize(
    ("key", "answer", "reason"),
    [
        ("LAB-1:train", lambda *_: None, "`the losses`: expected a value, got None"),
        ("LAB-1:train", lambda *_: {}, "`the losses`: expected numbers, got a dict"),
        ("LAB-2:statistics", lambda *_: [1.0], "`what is returned`: expected a dict, got a list"),
        ("LAB-4:passes", lambda *_: [0.5], "expected 2 values, got 1"),
    ],
)
def test_wrong_return_type_states_what_was_expected(key, answer, reason):
    with pytest.raises(CheckFailed) as failed:
        check(key, answer)
    assert reason in str(failed.value)
    assert "your function raised" not in str(failed.value)


WRONG = r"""
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


@pytest.mark.parametrize(("key", "reason", "edits"), edited(WRONG))
def test_wrong_lab_answer_names_differing_parts_and_events(key, reason, edits):
    wrong = Misconception("", lab_exercises()[key].reference, edits)
    with pytest.raises(CheckFailed) as failed:
        check(key, wrong.function)
    assert reason in str(failed.value)


def test_no_cause_names_the_seed_of_a_driver(monkeypatch):
    exercise = lab_exercises()["LAB-2:initialize"]
    monkeypatch.setattr(exercise, "misconceptions", [])
    # the driver seeds the global generator with another number
    wrong = Misconception("", exercise.reference, [(", generator=generator)", ")")])
    with pytest.raises(CheckFailed) as failed:
        check("LAB-2:initialize", wrong.function)
    assert "`seed`" not in str(failed.value)
