"""What the lab on bnp_cnn does with the answers to its exercises."""

import contextlib
import os
import tempfile
from pathlib import Path
from unittest import mock

import torch
from torch import nn

from optdl.labs.drivers.follow import Operations, driver, fill, type_of


@driver(
    "the first minibatch; the second minibatch; the dtype; x after the calls; whether each "
    "torch.arange has a device; whether ten times as many images take as many operations",
)
def augment(function, x, seed, options):
    """Augment two minibatches; then count the operations for these and for ten times as many."""

    def noted(*arguments, device=None, **more):
        devices.append(device)
        return arange(*arguments, **more)

    arange, counts = torch.arange, []
    devices = []
    torch.default_generator.manual_seed(seed + 1)
    generator = torch.Generator().manual_seed(seed)
    both = [function(x, generator, **options) for _ in range(2)]
    dtypes = [str(getattr(images, "dtype", None)) for images in both]
    after = x.clone()
    with mock.patch("torch.arange", noted):
        for images in (x, x.repeat(10, 1, 1, 1)):
            with Operations() as operations:
                function(images, generator, **options)
            counts.append(operations.count)
    return *both, ", ".join(set(dtypes)), after, None not in devices, counts[1] < 2 * counts[0]


@driver(
    "len(batches); the sizes of the first epoch behind one that is left early | the images of it | "
    "the labels of it; the sizes of the next epoch | the images of the next epoch | the labels of "
    "the next epoch; where the examples lie in an epoch; the device of torch.randperm in an epoch",
    closed="torch.utils.data.DataLoader",
)
def batches(kind, x, y, size, seed, device):
    """Go through two epochs and the beginning of one; on ``meta`` see what is moved and how."""

    def noted(*arguments, device=None, **more):
        drawn.add(str(device))
        return permutation(*arguments, **more)

    permutation = torch.randperm
    drawn = set()
    places = set()
    operations = Operations()
    torch.default_generator.manual_seed(seed + 1)
    generator = torch.Generator().manual_seed(seed)
    torch.rand(1, generator=generator)  # it has been used before
    batches = kind(x, y, size, generator, device)
    if device == "cpu":
        next(iter(batches), None)
        both = ([*zip(*batches, strict=True)] or ([], []) for _ in range(2))
        found = [
            ([*map(len, labels)], *(torch.cat(some) if some else None for some in (xs, labels)))
            for xs, labels in both
        ]
        return len(batches), *found, "", ""
    with mock.patch("torch.randperm", noted), operations:
        try:
            places |= {tensor.device.type for pair in batches for tensor in pair}
        except Exception as error:
            # on meta, and there alone, rows cannot be looked up by their numbers
            if "meta" not in str(error):
                raise
            places.add("meta")
    if operations.moves:
        places.add("moved in the epoch")
    return len(batches), *[(None,) * 3] * 2, ", ".join(sorted(places)), ", ".join(drawn)


ENDS = "torch.save", "its first renaming", "its second renaming", "a later one"


@driver(
    "what load returns; the losses before save, and after load; where a new file is written; the "
    "map_location of torch.load, and weights_only",
)
def checkpoint(kind, x, epochs, seed, event):
    """Train with two generators; save after some epochs, load elsewhere, and train three more."""

    def session(seed):
        torch.default_generator.manual_seed(seed)
        model = nn.Linear(x.shape[1], 1).double()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2, gamma=0.5)
        generators = [torch.Generator().manual_seed(seed + k) for k in (1, 2)]
        return generators, {"model": model, "optimizer": optimizer, "schedule": schedule}

    def train(generators, parts, epochs):
        for _ in range(epochs):
            order = torch.randperm(len(x), generator=generators[0])
            noise = torch.randn(len(x), 1, generator=generators[1])
            parts["optimizer"].zero_grad()
            errors = parts["model"](x[order] + noise) - torch.arange(len(x))[:, None]
            loss = errors.square().mean()
            loss.backward()
            parts["optimizer"].step()
            parts["schedule"].step()
            losses.append(loss.item())

    def end(src, dst, *, replace=os.replace, **_):
        beside = Path(src).resolve().parent == folder
        written.append("beside the old file" if beside else "in another folder")
        if event.endswith(ENDS[min(len(written), 3)]):
            raise OSError("the program has ended")
        replace(src, dst)

    def half(obj, f, *_, **__):
        if hasattr(f, "write"):
            f.write(b"half")
        else:
            Path(f).write_bytes(b"half")
        raise OSError("the program has ended")

    def load(f, map_location=None, *, weights_only=True, **more):
        calls.append(f"{map_location}, weights_only={weights_only}")
        return torch_load(f, map_location, weights_only=weights_only, **more)

    torch_load = torch.load
    losses, written, calls = [], [], []
    (generators, parts), (others, loaded) = session(seed), session(seed + 10)
    with tempfile.TemporaryDirectory() as temporary, mock.patch("torch.load", load):
        folder = Path(temporary).resolve()
        path = str(folder / "run.pt")
        if event == "no file":
            return str(kind(path).load(others, **loaded)), [], "", ""
        train(generators, parts, epochs)
        try:
            kind(path).save(epochs, generators, **parts)
            if "ends" in event:
                with contextlib.ExitStack() as ends, contextlib.suppress(OSError):
                    for name in ("os.replace", "os.rename"):
                        ends.enter_context(mock.patch(name, end))
                    if event.endswith(ENDS[0]):
                        ends.enter_context(mock.patch("torch.save", half))
                    kind(path).save(99, generators, **parts)
            if "damaged" in event:
                Path(path).write_bytes(b"damaged")
            # the names tell which state is whose, not their order
            found = kind(path).load(others, **dict([*loaded.items()][::-1]))
        except Exception as error:
            is_expected = "ends" in event or "damaged" in event
            if not is_expected and "ickling" not in type(error).__name__:
                raise
            return "an exception", [], " and ".join(written), ""
    train(others, loaded, 3)
    return str(found), losses, " and ".join(written), "; ".join(calls)


@driver(
    "the type of what is returned; the losses; the weights; the loss scale; whether the loss is "
    "in float16; whether the backward pass runs under autocast; the steps before a number is "
    "read; whether the images lie in memory as self.format says; whether all that comes to the "
    "device comes with non_blocking=True",
)
def trainer(kind, x, y, options, with_bn, seed):
    """Train an epoch in float64, or as the options say; on ``meta`` reading a number ends it."""

    class Steps:
        number = 0

        def step(self):
            self.number += 1

    placed, dtypes, backward, operations = [], set(), [], Operations()
    settings = {**options, "dtype": getattr(torch, options.get("dtype") or "", None)}
    batches = [*zip(x.float() if options.keys() & {"dtype", "device"} else x, y, strict=True)]
    norm = [nn.BatchNorm2d(2)] if with_bn else []
    channels, height, width = x.shape[2:]
    inputs = 2 * (height - 2) * (width - 2)
    layers = nn.Conv2d(channels, 2, 3), *norm, nn.ReLU(), nn.Flatten(), nn.Linear(inputs, 3)
    model = fill(nn.Sequential(*layers), seed).to(batches[0][0].dtype)
    trainer = kind(model.eval(), **settings)
    if options.get("device") == "meta":
        trainer.bnp = steps = Steps()
        trainer.model.register_forward_pre_hook(
            lambda _, given: placed.append(given[0].is_contiguous(memory_format=trainer.format))
        )
        # on meta, what reads a number raises; what prints a tensor does not
        printing = mock.patch("torch.Tensor.__repr__", side_effect=RuntimeError("Tensor.item()"))
        try:
            with operations, printing:
                trainer.epoch(batches)
        except Exception as error:
            looks = "Tensor.item()", "Cannot copy out", "to numpy", "Tensor.__format__"
            if not any(look in str(error) for look in looks):
                raise
        return *[None] * 6, steps.number, all(placed), all(operations.moves)
    if with_bn:
        trainer.forward = nn.Sequential(model, nn.Softsign())  # more than the model
    scale = trainer.scaler.scale

    def noting(loss):
        dtypes.add(loss.dtype)
        return scale(loss)

    trainer.scaler.scale = noting
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)  # of an earlier step
    weight = next(model.parameters())
    weight.register_hook(lambda _: backward.append(torch.is_autocast_enabled("cpu")))
    losses = trainer.epoch(batches)
    state = [*trainer.model.state_dict().values()]
    in_half = torch.float16 in dtypes, any(backward)
    scaled = float(trainer.scaler.get_scale())
    return type_of(losses), losses, state, scaled, *in_half, *[None] * 3
