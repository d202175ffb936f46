"""The networks against their published depth and size, and against what they should compute."""

import inspect
import itertools
import math

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from optdl import networks
from optdl.bnp import BNP
from optdl.data import Examples
from optdl.training import train

torch.set_num_threads(1)

NORMALIZATIONS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.LayerNorm, nn.GroupNorm)

# Each network small, with a size of image that it takes.
SMALL = {
    "fully_connected": (lambda how: networks.fully_connected((48, 8, 8, 3), how), 4),
    "cnn5": (lambda how: networks.cnn5(3, 18, 3, how), 18),
    "resnet_cifar": (lambda how: networks.resnet_cifar(8, 3, how), 8),
    "preactivation": (lambda how: networks.resnet_cifar(8, 3, how, preactivation=True), 8),
    "resnet18": (lambda how: networks.resnet18(3, how), 32),
}


def images(count=4, size=8, channels=3, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(count, channels, size, size, generator=generator)


def size_of(model):
    return sum(parameter.numel() for parameter in model.parameters())


def layers_of(model, kinds):
    return [module for module in model.modules() if isinstance(module, kinds)]


def kinds_of(modules):
    return [type(module).__name__ for module in modules]


def depth_of(model):
    """Return the number of layers with weights, without those on a shortcut."""
    return sum(
        isinstance(module, nn.Conv2d | nn.Linear)
        for name, module in model.named_modules()
        if "shortcut" not in name
    )


def shaken(model):
    """Give each parameter a value of its own, so that none can stand in for another."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=generator))
    return model


# --- Published depth and size ------------------------------------------------------------------


def resnet_cifar_count(n, classes, bias, affine, preactivation=False):
    """Count by hand: kernels, one bias for each filter, two numbers for each normalized channel."""
    kernels, filters, normalized = 9 * 3 * 16, 16, 16
    for before, width in ((16, 16), (16, 32), (32, 64)):
        kernels += 9 * before * width + (2 * n - 1) * 9 * width**2
        filters += 2 * n * width
        normalized += 2 * n * width
    if preactivation:
        # Each block normalizes its input, not its output. The stem does it for the first block,
        # and one more normalization stands at the end.
        normalized += sum(before - width for before, width in ((16, 16), (16, 32), (32, 64)))
        normalized += 64 - 16
    return kernels + bias * filters + 2 * affine * normalized + 65 * classes


@pytest.mark.row("P-27")
@pytest.mark.parametrize(
    ("depth", "millions"), [(20, 0.27), (32, 0.46), (44, 0.66), (56, 0.85), (110, 1.7)]
)
def test_residual_networks_have_the_published_depth_and_size(depth, millions):
    model = networks.resnet_cifar(depth)
    digits = 1 if depth == 110 else 2
    assert depth_of(model) == depth
    assert round(size_of(model) / 1e6, digits) == millions
    assert size_of(model) == resnet_cifar_count((depth - 2) // 6, 10, bias=False, affine=True)


@pytest.mark.row("P-27")
def test_resnet_110_has_54_blocks_and_takes_images():
    model = networks.resnet_cifar().eval()
    assert len(layers_of(model, networks.Residual)) == 54
    assert size_of(model) == 1_727_962
    with torch.no_grad():
        assert model(images(2, 32)).shape == (2, 10)


@pytest.mark.row("P-27")
@pytest.mark.parametrize("preactivation", [False, True])
@pytest.mark.parametrize(
    ("how", "bias", "affine"), [("none", True, False), ("gn", True, True), ("bn", False, True)]
)
def test_size_of_every_version_is_counted_by_hand(preactivation, how, bias, affine):
    model = networks.resnet_cifar(20, 100, how, preactivation)
    assert size_of(model) == resnet_cifar_count(3, 100, bias, affine, preactivation)
    assert depth_of(model) == 20


@pytest.mark.row("P-27")
def test_preactivation_resnet_110_has_the_published_size():
    model = networks.resnet_cifar(110, 100, preactivation=True)
    assert depth_of(model) == 110
    assert round(size_of(model) / 1e6, 1) == 1.7


@pytest.mark.row("P-28")
def test_resnet_18_has_the_published_depth_and_size():
    model = networks.resnet18()
    assert depth_of(model) == 18
    assert len(layers_of(model, networks.Residual)) == 8
    assert size_of(model) == 11_689_512


@pytest.mark.row("P-26")
def test_small_convolutional_network_has_the_stated_layers():
    model = networks.cnn5()
    convolutions, dense = layers_of(model, nn.Conv2d), layers_of(model, nn.Linear)
    assert [layer.out_channels for layer in convolutions] == [32, 64, 32]
    assert {layer.kernel_size for layer in convolutions} == {(3, 3)}
    # images of 32, 30, 15, 13, 6, 4 pixels
    assert [(layer.in_features, layer.out_features) for layer in dense] == [(512, 64), (64, 10)]
    assert size_of(model) == (27 + 1) * 32 + (288 + 1) * 64 + (576 + 1) * 32 + 513 * 64 + 65 * 10
    assert networks.cnn5(1, 28)(images(2, 28, 1)).shape == (2, 10)


@pytest.mark.row("P-19")
def test_dense_network_has_the_requested_widths():
    model = networks.fully_connected((784, 100, 100, 100, 10))
    sizes = [(layer.in_features, layer.out_features) for layer in layers_of(model, nn.Linear)]
    assert sizes == [(784, 100), (100, 100), (100, 100), (100, 10)]
    assert size_of(model) == 785 * 100 + 2 * 101 * 100 + 101 * 10
    assert model(images(2, 28, 1)).shape == (2, 10)


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("how", ["none", "bn", "ln", "gn"])
def test_scores_have_one_row_for_each_image(name, how):
    build, size = SMALL[name]
    scores = build(how)(images(2, size))
    assert scores.shape == (2, 3)
    assert torch.isfinite(scores).all()


# --- What they compute -------------------------------------------------------------------------


@pytest.mark.row("P-02")
@pytest.mark.parametrize("placement", ["post", "pre"])
def test_normalization_comes_after_or_before_the_activation(placement):
    model = networks.fully_connected((3, 4, 4, 2), "bn", nn.Tanh, placement).double()
    x = shaken(model)[1].weight.new_tensor(np.random.default_rng(3).normal(size=(6, 3)))

    def normalize(h, norm):
        centered = (h - h.mean(0)) / torch.sqrt(h.var(0, correction=0) + 1e-5)
        return norm.weight * centered + norm.bias

    h = x
    dense, norms = layers_of(model, nn.Linear), layers_of(model, nn.BatchNorm1d)
    for layer, norm in zip(dense[:-1], norms, strict=True):
        a = h @ layer.weight.T
        if placement == "post":
            h = normalize(torch.tanh(a + layer.bias), norm)
        else:
            assert layer.bias is None
            h = torch.tanh(normalize(a, norm))
    expected = h @ dense[-1].weight.T + dense[-1].bias
    torch.testing.assert_close(model(x), expected)


def test_bias_stays_before_normalization_that_keeps_it():
    for how in ("none", "ln", "gn", nn.BatchNorm1d):
        hidden = networks.fully_connected((3, 4, 2), how, placement="pre")[1]
        assert (hidden.bias is None) == (how is nn.BatchNorm1d)


@pytest.mark.row("P-26")
def test_small_convolutional_network_computes_layer_by_layer():
    model = shaken(networks.cnn5(3, 18, 3, "gn"))
    values = iter(model.parameters())
    h = images(3, 18)
    for channels, pool in ((32, 2), (64, 2), (32, 1)):
        h = functional.conv2d(h, next(values), next(values)).relu()
        h = functional.max_pool2d(h, pool)
        h = functional.group_norm(h, channels // 4, next(values), next(values))
    h = (h.flatten(1) @ next(values).T + next(values)).relu()
    h = functional.group_norm(h, 16, next(values), next(values))
    torch.testing.assert_close(model(images(3, 18)), h @ next(values).T + next(values))


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

    def block(self, x, stride, project):
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
        return x.mean((2, 3)) @ next(self.values).T + next(self.values)


@pytest.mark.row("P-27")
def test_residual_network_matches_functional_reference():
    model, x = shaken(networks.resnet_cifar(14, 3, "gn")), images(2, 8)
    reference = Reference(model)
    h = reference.normalize(reference.convolution(x)).relu()
    for stride in (1, 1, 2, 1, 2, 1):
        h = reference.block(h, stride, project=False)
    assert h.shape == (2, 64, 2, 2)
    torch.testing.assert_close(model(x), reference.head(h))


@pytest.mark.row("P-27")
def test_preactivation_network_matches_functional_reference():
    model, x = shaken(networks.resnet_cifar(14, 3, "gn", preactivation=True)), images(2, 8)
    reference = Reference(model)
    h = reference.normalize(reference.convolution(x)).relu()
    for number, stride in enumerate((1, 1, 2, 1, 2, 1)):
        h = reference.preactivated_block(h, stride, first=number == 0)
    h = reference.normalize(h).relu()
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


@pytest.mark.row("P-27")
@pytest.mark.parametrize("preactivation", [False, True])
def test_shortcut_carries_the_identity(preactivation):
    """With a branch of zeros a block is the identity; the original one then takes the ReLU."""
    model = networks.resnet_cifar(14, 3, "gn", preactivation)
    same, smaller = model.stage2[1], model.stage2[0]
    for parameter in itertools.chain(same.parameters(), smaller.parameters()):
        nn.init.zeros_(parameter)
    x = images(2, 4, 32)
    torch.testing.assert_close(same(x), x if preactivation else x.relu(), rtol=0, atol=0)
    assert (x < 0).any()
    x = images(2, 4, 16)
    result = smaller(x)
    kept = x[:, :, ::2, ::2] if preactivation else x[:, :, ::2, ::2].relu()
    torch.testing.assert_close(result[:, :16], kept, rtol=0, atol=0)
    assert result.shape == (2, 32, 2, 2)
    assert not result[:, 16:].any()


@pytest.mark.row("P-27")
def test_order_in_a_block_of_both_versions():
    original = networks.resnet_cifar(14).stage1[1]
    assert kinds_of(original.branch) == ["Conv2d", "BatchNorm2d", "ReLU", "Conv2d", "BatchNorm2d"]
    assert isinstance(original.activation, nn.ReLU)
    model = networks.resnet_cifar(14, preactivation=True)
    block = model.stage1[1]
    once = ["BatchNorm2d", "ReLU", "Conv2d"]
    assert kinds_of(block.branch) == [*once, *once]
    assert isinstance(block.activation, nn.Identity)
    assert kinds_of(model.stage1[0].branch) == ["Conv2d", *once]
    assert kinds_of(model.head)[:2] == once[:2]


# --- Normalizations ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("how", [None, "none"])
def test_vanilla_network_has_biases_and_no_normalization(name, how):
    model = SMALL[name][0](how)
    assert not layers_of(model, NORMALIZATIONS)
    assert all(layer.bias is not None for layer in layers_of(model, (nn.Conv2d, nn.Linear)))


@pytest.mark.parametrize(
    ("name", "widths"),
    [
        ("fully_connected", [8, 8]),
        ("cnn5", [32, 32, 64, 64]),
        ("resnet_cifar", [16] * 3 + [32] * 2 + [64] * 2),
        ("preactivation", [16] * 3 + [32] * 2 + [64] * 2),
        ("resnet18", [64] * 5 + [128] * 5 + [256] * 5 + [512] * 5),
    ],
)
def test_factory_receives_the_normalized_width(name, widths):
    calls = []

    def factory(width):
        calls.append(width)
        return nn.GroupNorm(1, width)  # refuses an input of another width

    build, size = SMALL[name]
    model = build(factory)
    assert sorted(calls) == widths
    assert len(layers_of(model, nn.GroupNorm)) == len(widths)
    model(images(2, size))


@pytest.mark.row("P-27")
def test_group_size_defaults_to_four_channels():
    for how, size in (("gn", 4), (networks.group_norm(8), 8)):
        norms = layers_of(networks.resnet_cifar(8, 3, how), nn.GroupNorm)
        assert {norm.num_channels // norm.num_groups for norm in norms} == {size}
        assert {norm.num_channels for norm in norms} == {16, 32, 64}


def test_layer_normalization_of_channels_is_one_group():
    model = networks.cnn5(3, 18, 3, "ln")
    assert {norm.num_groups for norm in layers_of(model, nn.GroupNorm)} == {1}
    assert [norm.normalized_shape for norm in layers_of(model, nn.LayerNorm)] == [(64,)]


@pytest.mark.parametrize("build", [networks.resnet_cifar, networks.resnet18])
def test_convolutions_have_biases_unless_the_normalization_cancels_them(build):
    smaller = {"depth": 8} if build is networks.resnet_cifar else {}
    for how, bias, expected in (
        ("bn", None, False),
        ("gn", None, True),
        (networks.group_norm(16), None, True),
        ("none", False, False),
        ("bn", True, True),
    ):
        convolutions = layers_of(build(normalization=how, bias=bias, **smaller), nn.Conv2d)
        assert {layer.bias is not None for layer in convolutions} == {expected}


# --- Initial values ----------------------------------------------------------------------------


@pytest.mark.row("P-19", "P-26")
@pytest.mark.parametrize(
    "model", [networks.fully_connected((300, 200, 100)), networks.cnn5()], ids=["dense", "cnn5"]
)
def test_plain_networks_start_glorot_uniform(model):
    for layer in layers_of(model, (nn.Conv2d, nn.Linear)):
        outputs, inputs, *kernel = layer.weight.shape
        bound = math.sqrt(6 / ((inputs + outputs) * math.prod(kernel)))
        largest = layer.weight.abs().max().item()
        count = layer.weight.numel()
        # the largest of many uniform numbers is near the bound
        assert bound * (1 - 15 / count) < largest <= bound
        # a² has mean 1/3 and standard deviation √(4/45)
        variance = layer.weight.square().mean().item() / bound**2
        assert abs(variance - 1 / 3) < 4 * math.sqrt(4 / 45 / count)
        assert not layer.bias.any()


@pytest.mark.row("P-27")
@pytest.mark.parametrize("scale", [1.0, 0.4, 0.1])
def test_residual_networks_start_he_normal_times_the_scale(scale):
    for model in (
        networks.resnet_cifar(14, 10, "gn", init_scale=scale),
        networks.resnet18(10, "gn", init_scale=scale),
    ):
        for layer in layers_of(model, (nn.Conv2d, nn.Linear)):
            z = layer.weight.double() / (scale * math.sqrt(2 / layer.weight[0].numel()))
            count = z.numel()
            assert abs(z.mean()) < 4.5 / math.sqrt(count)
            assert abs(z.square().mean() - 1) < 4.5 * math.sqrt(2 / count)
            assert abs(z.pow(4).mean() - 3) < 4.5 * math.sqrt(96 / count)  # of a normal variable
            assert not layer.bias.any()


BUILDERS = {
    "fully_connected": lambda seed: networks.fully_connected((6, 5, 4), "bn", seed=seed),
    "cnn5": lambda seed: networks.cnn5(3, 18, 3, "bn", seed=seed),
    "resnet_cifar": lambda seed: networks.resnet_cifar(8, 3, seed=seed),
    "resnet18": lambda seed: networks.resnet18(3, seed=seed),
}


@pytest.mark.parametrize("name", BUILDERS)
def test_seed_alone_determines_the_weights(name):
    torch.manual_seed(7)
    before = torch.get_rng_state()
    first = BUILDERS[name](3)
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(8)
    again, other = BUILDERS[name](3), BUILDERS[name](4)
    same = [torch.equal(a, b) for a, b in zip(first.parameters(), again.parameters(), strict=True)]
    assert all(same)
    for layer, different in zip(
        layers_of(first, (nn.Conv2d, nn.Linear)),
        layers_of(other, (nn.Conv2d, nn.Linear)),
        strict=True,
    ):
        assert not torch.equal(layer.weight, different.weight)


# --- In training -------------------------------------------------------------------------------


@pytest.mark.row("P-19", "P-26", "P-27", "P-28")
@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("how", ["none", "gn"])
def test_bnp_preconditions_every_layer(name, how):
    build, size = SMALL[name]
    model, x, y = build(how), images(3, size), torch.tensor([0, 1, 2])
    bnp = BNP(model)
    layers = layers_of(model, (nn.Conv2d, nn.Linear))
    functional.cross_entropy(model(x), y).backward()
    plain = [layer.weight.grad.clone() for layer in layers]
    bnp.step()
    for layer, gradient in zip(layers, plain, strict=True):
        assert torch.isfinite(layer.weight.grad).all()
        assert torch.isfinite(layer.bias.grad).all()
        assert not torch.equal(layer.weight.grad, gradient)


@pytest.mark.row("P-19", "P-26", "P-27", "P-28")
@pytest.mark.parametrize("name", SMALL)
def test_training_moves_every_parameter(name):
    build, size = SMALL[name]
    model = build("bn")
    start = [parameter.detach().clone() for parameter in model.parameters()]
    sgd = torch.optim.SGD(model.parameters(), lr=0.01)
    examples = Examples(images(6, size).numpy(), np.arange(6) % 3)
    record = train(model, examples, sgd, epochs=1, batch_size=6)
    assert math.isfinite(record.curves["train_loss"][-1])
    for (label, parameter), before in zip(model.named_parameters(), start, strict=True):
        assert not torch.equal(parameter, before), label


# --- What is refused ---------------------------------------------------------------------------


@pytest.mark.parametrize("depth", [2, 0, 18, 109, 111])
def test_depth_other_than_6n_plus_2_is_refused(depth):
    with pytest.raises(ValueError, match=rf"6n \+ 2 .* got {depth}"):
        networks.resnet_cifar(depth)


@pytest.mark.parametrize("name", SMALL)
def test_unknown_normalization_is_refused(name):
    with pytest.raises(ValueError, match=r"none, bn, ln, gn.*got 'batch'"):
        SMALL[name][0]("batch")


def test_uneven_groups_are_refused():
    with pytest.raises(ValueError, match="whole groups of 4; got 10 channels"):
        networks.fully_connected((3, 10, 2), "gn")
    with pytest.raises(ValueError, match="at least 1; got 0"):
        networks.group_norm(0)


@pytest.mark.parametrize("widths", [(), (3,), (3, 0, 2)])
def test_widths_that_make_no_network_are_refused(widths):
    with pytest.raises(ValueError, match="at least two positive numbers"):
        networks.fully_connected(widths)


def test_unknown_placement_is_refused():
    with pytest.raises(ValueError, match="'post' or 'pre'; got 'before'"):
        inspect.unwrap(networks.fully_connected)((3, 2), placement="before")


def test_images_that_vanish_are_refused():
    assert networks.cnn5(3, 18)(images(1, 18)).shape == (1, 10)
    with pytest.raises(ValueError, match=r"at least 18.*got 17"):
        networks.cnn5(3, 17)
