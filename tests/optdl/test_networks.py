"""The networks against their published depth and size, and against what they should compute."""

import math
from functools import partial

import numpy as np
import pytest
import torch
from scipy import stats
from torch import nn
from torch.nn import functional

from optdl import networks

RESIDUAL = [16] * 3 + [32] * 2 + [64] * 2
# Each network small, with a size of image that it takes, and the widths that are normalized.
SMALL = {
    "fully_connected": (partial(networks.fully_connected, (48, 8, 8, 3)), 4, [8, 8]),
    "cnn5": (partial(networks.cnn5, 3, 18, 3), 18, [32, 32, 64, 64]),
    "resnet_cifar": (partial(networks.resnet_cifar, 8, 3), 8, RESIDUAL),
    "preactivation": (partial(networks.resnet_cifar, 8, 3, preactivation=True), 8, RESIDUAL),
    "resnet18": (partial(networks.resnet18, 3), 32, [64] * 5 + [128] * 5 + [256] * 5 + [512] * 5),
}
each = pytest.mark.parametrize("name", SMALL)


def images(count=4, size=8, channels=3):
    return torch.randn(count, channels, size, size, generator=torch.Generator().manual_seed(0))


def layers_of(model, *kinds):
    return [module for module in model.modules() if isinstance(module, kinds)]


def shaken(model):
    """Give each parameter a value of its own, so that none can stand in for another."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=generator))
    return model


CNN5 = (27 + 1) * 32 + (288 + 1) * 64 + (576 + 1) * 32 + 513 * 64 + 65 * 10
# The network, its depth, its blocks, and its size, which is published in full or rounded.
PUBLISHED = [
    *[(partial(networks.resnet_cifar, n), n, (n - 2) // 2, pytest.approx(size * 1e6, abs=half))
      for n, size, half in ((20, 0.27, 5e3), (32, 0.46, 5e3), (44, 0.66, 5e3), (56, 0.85, 5e3),
                            (110, 1.7, 5e4))],
    (partial(networks.resnet_cifar, 110, preactivation=True), 110, 54,
     pytest.approx(1.7e6, abs=5e4)),
    (networks.resnet18, 18, 8, 11_689_512),
    (networks.cnn5, 5, 0, CNN5),
    (partial(networks.fully_connected, (784, 100, 100, 100, 10)), 4, 0,
     785 * 100 + 2 * 101 * 100 + 101 * 10),
]  # fmt: skip


@pytest.mark.row("P-19", "P-26", "P-27", "P-28")
@pytest.mark.parametrize(("build", "depth", "blocks", "size"), PUBLISHED)
def test_networks_have_the_published_depth_and_size(build, depth, blocks, size):
    model = build()
    weighted = [name for name, m in model.named_modules() if isinstance(m, nn.Conv2d | nn.Linear)]
    assert sum("shortcut" not in name for name in weighted) == depth
    assert len(layers_of(model, networks.Residual)) == blocks
    assert sum(parameter.numel() for parameter in model.parameters()) == size


@pytest.mark.row("P-02")
@pytest.mark.parametrize("placement", ["post", "pre"])
def test_normalization_comes_after_or_before_the_activation(placement):
    model = shaken(networks.fully_connected((3, 4, 4, 2), "bn", nn.Tanh, placement).double())
    x = torch.from_numpy(np.random.default_rng(3).normal(size=(6, 3)))

    def normalize(h, norm):
        centered = (h - h.mean(0)) / torch.sqrt(h.var(0, correction=0) + 1e-5)
        return norm.weight * centered + norm.bias

    h = x
    *dense, last = layers_of(model, nn.Linear)
    for layer, norm in zip(dense, layers_of(model, nn.BatchNorm1d), strict=True):
        a = h @ layer.weight.T
        if placement == "post":
            h = normalize(torch.tanh(a + layer.bias), norm)
        else:
            assert layer.bias is None
            h = torch.tanh(normalize(a, norm))
    torch.testing.assert_close(model(x), h @ last.weight.T + last.bias)


@pytest.mark.row("P-26")
@pytest.mark.parametrize(("how", "size"), [("gn", 4), ("ln", 64)])
def test_small_convolutional_network_computes_layer_by_layer(how, size):
    model = shaken(networks.cnn5(3, 18, 3, how))
    values, h = iter(model.parameters()), images(3, 18)
    for channels, pool in ((32, 2), (64, 2), (32, 1)):
        h = functional.conv2d(h, next(values), next(values)).relu()
        h = functional.max_pool2d(h, pool)
        h = functional.group_norm(h, -(-channels // size), next(values), next(values))
    h = (h.flatten(1) @ next(values).T + next(values)).relu()
    h = functional.group_norm(h, 64 // size, next(values), next(values))
    torch.testing.assert_close(model(images(3, 18)), h @ next(values).T + next(values))
    assert networks.cnn5(1, 28)(images(2, 28, 1)).shape == (2, 10)


class Reference:
    """A residual network with group normalization, as functions of a list of parameters."""

    def __init__(self, model, group_size=4):
        self.values, self.group_size = iter(model.parameters()), group_size

    def convolution(self, x, stride=1):
        kernel = next(self.values)
        return functional.conv2d(x, kernel, next(self.values), stride, kernel.shape[-1] // 2)

    def normalize(self, x):
        groups = x.shape[1] // self.group_size
        return functional.group_norm(x, groups, next(self.values), next(self.values))

    def block(self, x, stride, project=False):
        h = self.normalize(self.convolution(x, stride)).relu()
        h = self.normalize(self.convolution(h))
        return (h + self.shortcut(x, h, stride, project)).relu()

    def preactivated_block(self, x, stride, first):
        h = x if first else self.normalize(x).relu()
        h = self.normalize(self.convolution(h, stride)).relu()
        h = self.convolution(h)
        return h + self.shortcut(x, h, stride, project=False)

    def shortcut(self, x, h, stride, project):
        if h.shape == x.shape:
            return x
        if project:
            return self.normalize(self.convolution(x, stride))
        padded = torch.zeros_like(h)
        padded[:, : x.shape[1]] = x[:, :, ::stride, ::stride]
        return padded

    def head(self, x):
        scores = x.mean((2, 3)) @ next(self.values).T + next(self.values)
        assert next(self.values, None) is None  # the network has no other parameters
        return scores


@pytest.mark.row("P-27")
@pytest.mark.parametrize("preactivation", [False, True])
def test_residual_networks_match_functional_reference(preactivation):
    model = shaken(networks.resnet_cifar(14, 3, "gn", preactivation=preactivation))
    x, reference = images(2, 8), Reference(model)
    h = reference.normalize(reference.convolution(x)).relu()
    for number, stride in enumerate((1, 1, 2, 1, 2, 1)):
        if preactivation:
            h = reference.preactivated_block(h, stride, first=number == 0)
        else:
            h = reference.block(h, stride)
    h = reference.normalize(h).relu() if preactivation else h
    torch.testing.assert_close(model(x), reference.head(h))


@pytest.mark.row("P-28")
def test_resnet_18_matches_functional_reference():
    model, x = shaken(networks.resnet18(3, networks.group_norm(32))), images(1, 40)
    reference = Reference(model, group_size=32)
    h = reference.normalize(reference.convolution(x, 2)).relu()
    h = functional.max_pool2d(h, 3, 2, 1)
    for stride in (1, 1, 2, 1, 2, 1, 2, 1):
        h = reference.block(h, stride, project=True)
    torch.testing.assert_close(model(x), reference.head(h), rtol=1e-4, atol=1e-3)


@each
def test_factory_receives_the_normalized_width(name):
    build, size, widths = SMALL[name]
    calls = []

    def factory(width):
        calls.append(width)
        return nn.GroupNorm(1, width)  # refuses an input of another width

    model = build(normalization=factory)
    assert sorted(calls) == widths
    assert len(layers_of(model, nn.GroupNorm)) == len(widths)
    assert model(images(2, size)).shape == (2, 3)
    for how in (None, "none"):
        plain = build(normalization=how)
        assert not layers_of(plain, nn.BatchNorm1d, nn.BatchNorm2d, nn.LayerNorm, nn.GroupNorm)
        assert all(layer.bias is not None for layer in layers_of(plain, nn.Conv2d, nn.Linear))
    for how in ("bn", "ln"):
        assert torch.isfinite(build(normalization=how)(images(2, size))).all()


@pytest.mark.parametrize("name", ["resnet_cifar", "resnet18"])
def test_layers_have_biases_unless_the_normalization_cancels_them(name):
    for how, bias, expected in (
        (networks.group_norm(16), None, True),
        ("none", False, False),
        ("bn", True, True),
    ):
        convolutions = layers_of(SMALL[name][0](normalization=how, bias=bias), nn.Conv2d)
        assert {layer.bias is not None for layer in convolutions} == {expected}
    for how in ("none", "ln", "gn", nn.BatchNorm1d):
        hidden = networks.fully_connected((3, 4, 2), how, placement="pre")[1]
        assert (hidden.bias is None) == (how is nn.BatchNorm1d)


def glorot_uniform(layer):
    outputs, inputs, *kernel = layer.weight.shape
    bound = math.sqrt(6 / ((inputs + outputs) * math.prod(kernel)))
    return stats.uniform(-bound, 2 * bound)


def he_normal(layer):
    return stats.norm(scale=math.sqrt(2 / layer.weight[0].numel()))


@pytest.mark.row("P-19", "P-26", "P-27")
@pytest.mark.parametrize(
    ("build", "law"),
    [
        (partial(networks.fully_connected, (300, 200, 100)), glorot_uniform),
        (networks.cnn5, glorot_uniform),
        (partial(networks.resnet_cifar, 14, 10, "gn"), he_normal),
        (partial(networks.resnet18, 10, "gn"), he_normal),
    ],
)
def test_networks_start_glorot_uniform_or_he_normal(build, law):
    for scale in (1.0, 0.1) if law is he_normal else (None,):
        model = build(init_scale=scale) if scale else build()
        for layer in layers_of(model, nn.Conv2d, nn.Linear):
            weights = layer.weight.detach().numpy().ravel()[:100_000] / (scale or 1)
            assert stats.kstest(weights, law(layer).cdf).pvalue > 1e-4
            assert not layer.bias.any()


@each
def test_seed_alone_determines_the_weights(name):
    build = partial(SMALL[name][0], normalization="bn")
    before = torch.get_rng_state()
    first = build(seed=3)
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(8)
    again, other = build(seed=3), build(seed=4)
    for a, b in zip(first.parameters(), again.parameters(), strict=True):
        assert torch.equal(a, b)
    pairs = zip(*(layers_of(m, nn.Conv2d, nn.Linear) for m in (first, other)), strict=True)
    assert not any(torch.equal(a.weight, b.weight) for a, b in pairs)
