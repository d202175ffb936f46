"""The student replaces the running averages of a network by means over minibatches."""

import torch

from optdl.checks.exercise import Exercise
from optdl.labs.drivers import batchnorm as drivers


@torch.no_grad()
def recalibrate(model, batches):
    """Replace the running averages by means over minibatches; weights stay (Source: LAB-3)."""
    layers = [one for one in model.modules() if hasattr(one, "running_mean")]
    momenta = [layer.momentum for layer in layers]
    training = model.training
    for layer in layers:
        layer.num_batches_tracked.zero_()
        layer.momentum = None
    model.train()
    for x in batches:
        model(x)
    model.train(training)
    for layer, momentum in zip(layers, momenta, strict=True):
        layer.momentum = momentum


exercise = Exercise("LAB-3:recalibrate", recalibrate, use=drivers.recalibrate)


@exercise.cases
def _(rng):
    for count, training in [(2, True), (3, False), (4, True)]:
        n, *sizes = rng.integers(2, 6, size=count + 1)
        batches = [rng.normal(1, 2, size=(m, n)).round(2) for m in sizes]
        momenta = (rng.permutation(range(2, 9))[:2] / 10).tolist()
        yield batches, count == 4, momenta, training, int(rng.integers(1000))


@exercise.fact("PyTorch's normalizations are left as torch's `update_bn` leaves them")
def _(function, rng):
    def of_torch(model, batches):
        torch.optim.swa_utils.update_bn(batches, model)

    batches = [rng.normal(4, 2, size=(m, 3)) for m in (8, 5, 6)]
    case = batches, False, [0.2, 0.3], bool(rng.integers(2)), int(rng.integers(1000))
    return exercise.agrees(function, of_torch, case)


exercise.help(r"""
1. For which `momentum` do all minibatches count equally, and which share must the first one have?
2. With `momentum=None` the $t$-th minibatch has the share $1/t$. If the count starts again at 0,
   the first minibatch has the share 1, and it replaces the old averages.
3. Remember the mode and each momentum. Set each count to 0 and each momentum to `None`, pass all
   minibatches through the network in training mode without gradients, and restore both.
you pass the minibatches in the mode in which the network comes; call `model.train()` first
    model.train() → pass
your layers go on from their old averages and counts; set num_batches_tracked to 0 first
    layer.num_batches_tracked.zero_() → pass
you call a method that a class of your own may lack; set num_batches_tracked to 0
    layer.num_batches_tracked.zero_() → layer.reset_running_stats()
your averages stay as they are; pass the minibatches through the network itself, in training mode
    layers = → return\n    layers =
your layers keep their momentum, so that old averages still count; set it to None for the pass
    layer.momentum = None → pass
you miss a normalization; take each module that has the attribute `running_mean`, of any class
    hasattr(one, "running_mean") → isinstance(one, torch.nn.BatchNorm1d)
you miss normalizations that lie deeper than the first level; take `model.modules()`
    model.modules() → model.children()
your statistics are those of the first minibatch; go through all of them
    model(x) → model(x)\n        break
you go through the minibatches twice; a generator gives them once, and a loader may draw other ones
    model.train()\n    for → sum(1 for x in batches)\n    model.train()\n    for
your minibatches count by their numbers of examples; here each of them counts the same
    layer.momentum = None → seen = 0
    model(x)
    → seen += len(x)\n        for layer in layers: layer.momentum = len(x) / seen\n        model(x)
you join all examples into one minibatch; here the statistics of the minibatches are averaged
    in batches: → in [torch.cat(list(batches))]:
you set the averages back and not the count of the minibatches; set num_batches_tracked to 0
    layer.num_batches_tracked.zero_() → _ = layer.running_mean.zero_(), layer.running_var.fill_(1)
you miss a normalization; take each module that has the attribute `running_mean`, of any class
    hasattr(one, "running_mean") → "BatchNorm" in type(one).__name__
the momentum 1/T leaves some of the start and weighs minibatches unequally; the t-th needs 1/t
    training = model.training → training, batches = model.training, list(batches)
    layer.momentum = None → layer.momentum = 1 / len(batches)
""")
