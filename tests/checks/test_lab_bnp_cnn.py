"""The lab on a GPU: its references, its runs in both sizes, and its lines for CUDA without CUDA."""

import time
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from optdl.bnp import BNP
from optdl.checks.bnp_cnn.lab_6_augment import augment
from optdl.checks.bnp_cnn.lab_6_batches import Batches
from optdl.checks.bnp_cnn.lab_6_checkpoint import Checkpoint
from optdl.checks.bnp_cnn.lab_6_trainer import Trainer
from optdl.data import Dataset
from optdl.labs import bnp_cnn as lab
from optdl.networks import resnet_cifar

pytestmark = pytest.mark.row("LAB-6")

PARTS = {"Trainer": Trainer, "Batches": Batches, "augment": augment, "Checkpoint": Checkpoint}
TINY = replace(lab.SMALL, kinds=("small CNN",), epochs=3, batch=128)


# --- The references ---------------------------------------------------------------------------


@pytest.mark.parametrize("bnp", [False, True])
def test_float32_epoch_matches_plain_loop(bnp):
    setting = {"kind": "small CNN", "method": "BNP" if bnp else "BN", "seed": 3}
    x, y, _, _ = lab.digits()
    thirds = [*zip(x[:96].split(32), y[:96].split(32), strict=True)]
    losses = Trainer(setting, lr=0.1, bnp=bnp).epoch(thirds)
    model = lab.network(**setting)
    hook = BNP(model) if bnp else None
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    expected = []
    for images, labels in thirds:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        if hook is not None:
            hook.step()
        optimizer.step()
        expected.append(loss.item())
    np.testing.assert_allclose(losses, expected, rtol=1e-4)


# --- The runs ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["CNN", "ResNet-8", "ResNet-110"])
@pytest.mark.parametrize("method", lab.METHODS)
def test_networks_have_the_normalization_of_their_method(kind, method):
    model = lab.network(kind, method, 0)
    found = {type(one) for one in model.modules()} & {nn.BatchNorm2d, nn.GroupNorm}
    assert found == {"BN": {nn.BatchNorm2d}, "BNP": set()}.get(method, {nn.GroupNorm})
    norms = [one for one in model.modules() if isinstance(one, nn.GroupNorm)]
    assert {one.num_channels // one.num_groups for one in norms} <= {4}


def test_deep_networks_for_bnp_begin_at_a_tenth():
    model, plain = lab.network("ResNet-110", "BNP+GN", 1), resnet_cifar(110, 10, "gn", seed=1)
    assert torch.allclose(model.stem[0].weight, plain.stem[0].weight / 10)  # type: ignore


def test_learning_rate_warms_up_and_drops():
    rates = [lab.FULL.rate("BN", epoch) for epoch in (0, 1, 79, 80, 119, 120)]
    assert rates == pytest.approx([0.01, 0.1, 0.1, 0.01, 0.01, 0.001])
    assert lab.SMALL.rate("BN", 0) == lab.SMALL.rates["BN"]


# --- The full size, small, on a CPU -----------------------------------------------------------


@pytest.fixture
def small_full(monkeypatch):
    """Return the full size with a few images of noise, on a CPU: the same code, for seconds."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(20, 3 * 32 * 32)).astype(np.float32), np.arange(20) % 10
    data = Dataset("cifar10", x, y, x[:5], y[:5], (3, 32, 32), tuple("abcdefghij"))
    monkeypatch.setattr(lab, "load", lambda name: data)
    monkeypatch.setattr(lab, "METHODS", ("BN", "BNP+GN"))
    lab.cifar10.cache_clear()
    return replace(
        lab.FULL, kinds=("CNN",), batch=10, epochs=2, drops=(1,), device="cpu", dtype=torch.bfloat16
    )


def test_full_size_run_is_recorded_and_resumed(small_full, tmp_path, monkeypatch):
    path, options = tmp_path / "record-full.json", {"user": "ada", "predictions": {}}
    assert "you may skip the full size" in lab.full_report(path)
    whole = lab.perform_full(PARTS, path=path, folder=tmp_path / "a", size=small_full, **options)
    assert [run.setting["method"] for run in whole.runs] == list(lab.METHODS)
    assert all(len(run.curves["loss"]) == 2 for run in whole.runs)
    assert whole.device == "cpu"
    assert "CNN, BNP+GN: test accuracy" in lab.full_report(path)
    # the program ends in the second epoch of the second run
    epochs: list[int] = []

    class Ends(Trainer):
        def epoch(self, batches):
            epochs.append(1)
            if len(epochs) == 4:
                raise KeyboardInterrupt
            return super().epoch(batches)

    again = {"path": tmp_path / "again.json", "folder": tmp_path / "b", "size": small_full}
    with pytest.raises(KeyboardInterrupt):
        lab.perform_full({**PARTS, "Trainer": Ends}, **again, **options)
    resumed = lab.perform_full({**PARTS, "Trainer": Ends}, **again, **options)
    assert len(epochs) == 4 + 1, "the epochs that were finished are not trained again"
    assert [run.curves for run in resumed.runs] == [run.curves for run in whole.runs]


def test_colors_are_standardized(small_full):
    x, y, x_test, _ = lab.cifar10()
    assert (x.shape, x_test.shape, len(y)) == ((20, 3, 32, 32), (5, 3, 32, 32), 20)
    torch.testing.assert_close(x.mean((0, 2, 3)), torch.zeros(3), atol=1e-5, rtol=0)
    torch.testing.assert_close(x.std((0, 2, 3)), torch.ones(3), atol=1e-5, rtol=0)


# --- CUDA, without CUDA -----------------------------------------------------------------------


class Asked(list[str]):
    """The devices that PyTorch is asked for; whoever asks gets the CPU."""

    def __call__(self, device):
        self.append(str(device))
        return "cpu"


@pytest.fixture
def cuda(monkeypatch):
    asked = Asked()
    generator, autocast = torch.Generator, torch.autocast
    sgd, scaler, to = torch.optim.SGD, torch.amp.GradScaler, nn.Module.to
    tensor_to = torch.Tensor.to

    # classes, since modules of torch that are imported meanwhile use them as such
    class Generator(generator):
        def __new__(cls, device=""):
            return generator(asked(device) if device else "cpu")

    class Autocast(autocast):
        def __init__(self, device, dtype=None, **options):
            super().__init__(asked(device) if dtype else device, dtype, **options)

    def made(params, fused=False, **settings):
        asked.append("fused" if fused else "not fused")
        return sgd(params, **settings)

    def moved(value, *places, **options):
        there = ["cpu" if getattr(one, "type", one) == "cuda" else one for one in places]
        return tensor_to(value, *there, **options)

    for place, name, fake in (
        (torch, "Generator", Generator),
        (torch, "autocast", Autocast),
        (torch.optim, "SGD", made),
        (torch.amp, "GradScaler", lambda device, **options: scaler(asked(device), **options)),
        (nn.Module, "to", lambda model, device, **options: to(model, asked(device), **options)),
        (torch.Tensor, "to", moved),
        (torch.cuda, "is_available", lambda: True),
        (torch.cuda, "synchronize", lambda: asked.append("wait")),
        (torch.cuda, "get_device_name", lambda: "a GPU that is none"),
    ):
        monkeypatch.setattr(place, name, fake)
    return asked


def test_cuda_run_uses_cuda_and_fused_optimizer(small_full, tmp_path, cuda):
    size = replace(small_full, device="cuda", dtype=torch.float16, epochs=1, drops=())
    found = lab.perform_full(
        PARTS, user="ada", predictions={}, size=size, path=tmp_path / "f.json", folder=tmp_path
    )
    assert found.device == "a GPU that is none"
    # generators, network, scaler and autocast; a step of another optimizer would wait for the GPU
    assert set(cuda) == {"cuda", "fused"}


def test_on_cuda_every_variant_is_measured(cuda, monkeypatch):
    compiled = []
    monkeypatch.setattr(torch, "compile", lambda model: compiled.append(model) or model)
    speeds = lab.measure(PARTS, replace(TINY, device="cuda", batch=8), steps=1)
    assert [speed for speed in speeds.values() if not speed] == []
    assert (len(compiled), cuda.count("wait")) == (1, 2 * len(speeds))


@pytest.mark.parametrize("has_gpu", [False, True])
def test_measured_speed_includes_queued_device_work(monkeypatch, has_gpu):
    """A step takes 0.5 s of the device, and 0.1 s to order; the first two take 2.5 s."""
    now = ready = 100.0
    seconds = [2.5, 2.5, 0.5, 0.5, 0.5, 0.5]

    def step():
        nonlocal now, ready
        ready = max(ready, now + 0.1) + seconds.pop(0)
        now = now + 0.1 if has_gpu else ready

    def wait():
        nonlocal now
        assert has_gpu, "there is no GPU to wait for"
        now = max(now, ready)

    monkeypatch.setattr(torch.cuda, "is_available", lambda: has_gpu)
    monkeypatch.setattr(torch.cuda, "synchronize", wait)
    monkeypatch.setattr(time, "perf_counter", lambda: now)
    speed = lab.images_per_second(step, 30, warmup=2, repeats=4)
    assert seconds == []
    assert speed == pytest.approx(4 * 30 / (4 * 0.5 + 0.1 if has_gpu else 4 * 0.6))


def test_cpu_is_measured_by_one_thread_without_compiling(monkeypatch):
    def speed(step, images, **options):
        threads.add(torch.get_num_threads())
        step()
        return float(images)

    monkeypatch.setattr(lab, "images_per_second", speed)
    threads, before = set[int](), torch.get_num_threads()
    read: list[int] = []

    class Counts(Trainer):
        def epoch(self, batches):
            losses = super().epoch(batches)
            read.append(len(losses))
            return losses

    parts = {**PARTS, "Trainer": Counts}
    speeds = lab.measure(parts, TINY, steps=2)
    assert [name for name, found in speeds.items() if found is None] == [
        "channels_last, autocast, images on the CPU",
        "channels_last, autocast, compiled",
    ]
    assert (threads, torch.get_num_threads()) == ({1}, before)
    assert read == [2, 2, 2, 1, 1, 2], "one variant reads its losses in each step"
    rows = lab.table(speeds, TINY).splitlines()
    assert (rows[2], rows[6].split("|")[2]) == ("| float32 | 256 |", " not measured ")
