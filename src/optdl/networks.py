"""The networks of the experiments, each with its normalization passed in.

A normalization is a factory: from the number of features or channels to a layer. The layers that
torch has go by a name: "none", "bn", "ln", "gn"; any other raises ValueError. The weights depend on
``seed`` alone, and torch's global generator is not touched. BNP changes no network: it is applied
to one from outside, ``BNP(model)``.

Axis letters, fixed for the module: ``N`` examples, ``n`` features, ``c`` channels, ``r`` and
``s`` height and width.
"""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

__all__ = [
    "CHANNEL_NORMALIZATIONS",
    "FEATURE_NORMALIZATIONS",
    "Factory",
    "Normalization",
    "PaddedShortcut",
    "Residual",
    "cnn5",
    "fully_connected",
    "group_norm",
    "resnet18",
    "resnet_cifar",
]

Factory = Callable[[int], nn.Module]
"""Number of features or channels to a layer that normalizes them."""

Normalization = str | Factory | None
"""The name of a normalization, a factory of one, or None for none."""

Images = Float[Tensor, "N c r s"]
Smaller = Float[Tensor, "N _ _ _"]
Values = Float[Tensor, "..."]


# --- Normalizations ---------------------------------------------------------------------------


def group_norm(group_size: int = 4) -> Factory:
    """Return the factory of group normalization with this many channels in a group.

    Torch asks for the number of groups instead. Raises ValueError where the group size is less than
    1; the factory raises it where the channels do not come in whole groups. Source: P-27, P-28.

    >>> group_norm(4)(32).num_groups
    8
    """
    if group_size < 1:
        raise ValueError(f"group_size must be at least 1; got {group_size}")

    def layer(channels: int) -> nn.Module:
        if channels % group_size:
            raise ValueError(
                f"the channels must come in whole groups of {group_size}; got {channels} channels"
            )
        return nn.GroupNorm(channels // group_size, channels)

    return layer


FEATURE_NORMALIZATIONS: Mapping[str, Factory | None] = {
    "none": None,
    "bn": nn.BatchNorm1d,
    "ln": nn.LayerNorm,
    "gn": group_norm(4),
}
"""What a name means after a dense layer."""

CHANNEL_NORMALIZATIONS: Mapping[str, Factory | None] = {
    "none": None,
    "bn": nn.BatchNorm2d,
    "ln": partial(nn.GroupNorm, 1),
    "gn": group_norm(4),
}
"""What a name means after a convolution. One group of all channels is layer normalization."""


def _factory(normalization: Normalization, known: Mapping[str, Factory | None]) -> Factory | None:
    if not isinstance(normalization, str):
        return normalization
    if normalization not in known:
        raise ValueError(
            f"normalization must be one of {', '.join(known)}, or a factory from the number of "
            f"channels to a layer; got {normalization!r}"
        )
    return known[normalization]


def _normalize(factory: Factory | None, width: int) -> list[nn.Module]:
    """Return the normalization as a list of one layer, or of none."""
    return [] if factory is None else [factory(width)]


# --- Initial values ---------------------------------------------------------------------------


def _initialize(
    model: nn.Module, draw: Callable[..., Tensor], seed: int, scale: float = 1.0
) -> None:
    """Draw the weights of all layers anew, and set their biases to zero."""
    generator = torch.Generator().manual_seed(seed)
    for module in model.modules():
        if isinstance(module, nn.Linear | nn.Conv2d):
            draw(module.weight, generator=generator)
            with torch.no_grad():
                module.weight.mul_(scale)
            if module.bias is not None:
                nn.init.zeros_(module.bias)


_HE = partial(nn.init.kaiming_normal_, nonlinearity="relu")


def _new(kind: Callable[..., nn.Module], *sizes: int, **how: Any) -> nn.Module:
    """Return a new layer, and leave torch's global generator as it is."""
    # the network draws the weights again by its own; (skip_init imports for half a second)
    with torch.random.fork_rng(devices=[]):
        return kind(*sizes, **how)


# --- Plain networks ---------------------------------------------------------------------------


def fully_connected(
    widths: Sequence[int],
    normalization: Normalization = None,
    activation: Callable[[], nn.Module] = nn.ReLU,
    placement: Literal["post", "pre"] = "post",
    seed: int = 0,
) -> nn.Sequential:
    r"""Return a network of dense layers (Source: P-02, P-19).

    With :math:`\mathcal B` the normalization and g the activation, a hidden layer and what
    follows it are

    .. math:: \text{post:}\quad h \mapsto \mathcal B\bigl(g(W h + b)\bigr), \qquad
        \text{pre:}\quad h \mapsto g\bigl(\mathcal B(W h + b)\bigr)

    The inputs are flattened first. The input itself is not normalized, nor is the output. The
    weights are Glorot uniform, the biases zero. Before batch normalization ("bn", pre) there is no
    bias: it would cancel. A normalization is a name of ``FEATURE_NORMALIZATIONS`` or a factory, and
    ``activation`` makes the module g. Raises ValueError where there are fewer than two widths, one
    is not positive, or the placement is unknown.

    Parameters
    ----------
    widths : sequence of int
        Inputs, hidden layers, outputs: ``(784, 100, 100, 100, 10)`` has three hidden layers.

    Examples
    --------
    >>> [type(layer).__name__ for layer in fully_connected((3, 2, 1), "bn")]
    ['Flatten', 'Linear', 'ReLU', 'BatchNorm1d', 'Linear']
    """
    if len(widths) < 2 or min(widths) < 1:
        raise ValueError(
            f"widths must be at least two positive numbers, inputs and outputs; got {widths}"
        )
    if placement not in ("post", "pre"):
        raise ValueError(f"placement must be 'post' or 'pre'; got {placement!r}")
    factory = _factory(normalization, FEATURE_NORMALIZATIONS)
    bias = placement == "post" or factory is not nn.BatchNorm1d
    layers: list[nn.Module] = [nn.Flatten()]
    for inputs, outputs in itertools.pairwise(widths[:-1]):
        norm = _normalize(factory, outputs)
        after = [activation(), *norm] if placement == "post" else [*norm, activation()]
        layers += [_new(nn.Linear, inputs, outputs, bias=bias), *after]
    model = nn.Sequential(*layers, _new(nn.Linear, widths[-2], widths[-1]))
    _initialize(model, nn.init.xavier_uniform_, seed)
    return model


def cnn5(
    channels: int = 3,
    size: int = 32,
    classes: int = 10,
    normalization: Normalization = None,
    seed: int = 0,
) -> nn.Sequential:
    """Return the network of five layers: three convolutions and two dense layers (Source: P-26).

    ====================  =======================================
    convolution, 3×3      32 filters, ReLU, 2×2 maximum pooling
    convolution, 3×3      64 filters, ReLU, 2×2 maximum pooling
    convolution, 3×3      32 filters, ReLU
    dense                 64 units, ReLU
    dense                 scores
    ====================  =======================================

    The convolutions have stride 1 and no padding, so a ``size`` below 18, the height and width of
    the images in pixels, raises ValueError. The normalization comes last in each of the first four
    rows, after activation and pooling: it normalizes the input of the next layer. A factory's layer
    must take (N, c) and (N, c, r, s) inputs: one of its kind follows a dense layer. The weights are
    Glorot uniform, the biases zero.

    The paper gives the kernels, the filters and the number of layers. Pooling, padding and the 64
    units are those of the tutorial of TensorFlow that it names.

    >>> sum(parameter.numel() for parameter in cnn5().parameters())
    71338
    """
    side = ((size - 2) // 2 - 2) // 2 - 2
    if side < 1:
        raise ValueError(f"size must be at least 18: the convolutions have no padding; got {size}")
    factory = _factory(normalization, CHANNEL_NORMALIZATIONS)
    model = nn.Sequential(
        *(_new(nn.Conv2d, channels, 32, 3), nn.ReLU(), nn.MaxPool2d(2), *_normalize(factory, 32)),
        *(_new(nn.Conv2d, 32, 64, 3), nn.ReLU(), nn.MaxPool2d(2), *_normalize(factory, 64)),
        *(_new(nn.Conv2d, 64, 32, 3), nn.ReLU(), *_normalize(factory, 32), nn.Flatten()),
        *(_new(nn.Linear, 32 * side**2, 64), nn.ReLU()),
        *_normalize(_factory(normalization, FEATURE_NORMALIZATIONS), 64),
        _new(nn.Linear, 64, classes),
    )
    _initialize(model, nn.init.xavier_uniform_, seed)
    return model


# --- Residual networks ------------------------------------------------------------------------


class Residual(nn.Module):
    r"""A residual block: :math:`x \mapsto g(\text{shortcut}(x) + \text{branch}(x))` (Source: P-27).

    The branch is what is learned. The shortcut is the identity, or makes x as large as the branch's
    output; g is the ReLU, or the identity where the activations come first.

    >>> Residual(nn.ReLU(), nn.Identity(), nn.Identity())(torch.tensor([-1.0, 2.0]))
    tensor([-1.,  4.])
    """

    def __init__(self, branch: nn.Module, shortcut: nn.Module, activation: nn.Module) -> None:
        super().__init__()
        self.branch, self.shortcut, self.activation = branch, shortcut, activation

    def forward(self, x: Values) -> Values:
        """Return the sum of both ways, activated."""
        result: Tensor = self.activation(self.shortcut(x) + self.branch(x))
        return result


class PaddedShortcut(nn.Module):
    """The shortcut without parameters: every stride-th pixel, and ``extra`` channels of zeros.

    Source: P-27

    >>> PaddedShortcut(1, 2)(torch.tensor([[[[1.0, 2.0], [3.0, 4.0]]]])).flatten()
    tensor([1., 0.])
    """

    def __init__(self, extra: int, stride: int) -> None:
        super().__init__()
        self.extra, self.stride = extra, stride

    def forward(self, x: Images) -> Smaller:
        """Return the smaller image with more channels."""
        return functional.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, 0, self.extra))

    def extra_repr(self) -> str:
        """Return what stands between the parentheses when the module is printed."""
        return f"extra={self.extra}, stride={self.stride}"


class _Kit:
    """The pieces of a residual network, which has one kind of normalization."""

    def __init__(self, normalization: Normalization, bias: bool | None) -> None:
        self.factory = _factory(normalization, CHANNEL_NORMALIZATIONS)
        # batch normalization subtracts the mean of a channel, and with it a bias; BNP needs one
        self.bias = self.factory is not nn.BatchNorm2d if bias is None else bias

    def convolution(self, inputs: int, outputs: int, kernel: int, stride: int = 1) -> nn.Module:
        """Return a convolution that with stride 1 keeps the size of the image."""
        how = {"stride": stride, "padding": kernel // 2, "bias": self.bias}
        return _new(nn.Conv2d, inputs, outputs, kernel, **how)

    def normalized(self, inputs: int, outputs: int, kernel: int, stride: int) -> list[nn.Module]:
        """Return a convolution and its normalization."""
        convolution = self.convolution(inputs, outputs, kernel, stride)
        return [convolution, *_normalize(self.factory, outputs)]

    def block(self, inputs: int, outputs: int, stride: int, shortcut: nn.Module) -> Residual:
        """Return a block whose last activation comes after the sum."""
        first = self.normalized(inputs, outputs, 3, stride)
        second = self.normalized(outputs, outputs, 3, 1)
        return Residual(nn.Sequential(*first, nn.ReLU(), *second), shortcut, nn.ReLU())

    def preactivated_block(
        self, inputs: int, outputs: int, stride: int, shortcut: nn.Module, first: bool
    ) -> Residual:
        """Return a block with normalization and activation before each convolution.

        The stem has just done so for the first block.
        """
        before = [] if first else [*_normalize(self.factory, inputs), nn.ReLU()]
        middle = self.normalized(inputs, outputs, 3, stride)
        last = self.convolution(outputs, outputs, 3)
        branch = nn.Sequential(*before, *middle, nn.ReLU(), last)
        return Residual(branch, shortcut, nn.Identity())

    def network(
        self,
        stem: Sequence[nn.Module],
        widths: Sequence[int],
        blocks: int,
        block: Callable[[int, int, int, bool], Residual],
        tail: Sequence[nn.Module],
        classes: int,
    ) -> nn.Sequential:
        """Return stem, a stage for each width, the mean of each channel, and a dense layer.

        ``block`` makes a block from its inputs, outputs, stride, and whether it is the first.
        """
        parts = OrderedDict[str, nn.Module](stem=nn.Sequential(*stem))
        before = widths[0]
        for stage, width in enumerate(widths):
            first = block(before, width, 2 if stage else 1, stage == 0)
            others = [block(width, width, 1, False) for _ in range(blocks - 1)]
            parts[f"stage{stage + 1}"] = nn.Sequential(first, *others)
            before = width
        dense = _new(nn.Linear, before, classes)
        parts["head"] = nn.Sequential(*tail, nn.AdaptiveAvgPool2d(1), nn.Flatten(), dense)
        return nn.Sequential(parts)


def resnet_cifar(
    depth: int = 110,
    classes: int = 10,
    normalization: Normalization = "bn",
    preactivation: bool = False,
    init_scale: float = 1.0,
    bias: bool | None = None,
    seed: int = 0,
) -> nn.Sequential:
    r"""Return the residual network for images of 32 × 32 pixels (Source: P-27).

    A convolution, three stages of n blocks with 16, 32 and 64 channels, and a dense layer; a
    block has two 3×3 convolutions. Where the channels double, the image is halved, and the
    shortcut takes every second pixel and adds channels of zeros: it has no parameters.

    .. math:: \text{original:}\quad \operatorname{relu}(x + F(x)), \qquad
        \text{preactivation:}\quad x + F(x)

    In the preactivation version normalization and ReLU stand before each convolution of F, and once
    more after the last block. In the first block they come before x goes both ways. It maps
    (N, 3, r, s) images to (N, classes) scores, and its parts are ``stem``, ``stage1`` to ``stage3``
    and ``head``. A normalization is a name of ``CHANNEL_NORMALIZATIONS`` or a factory. Raises
    ValueError where the depth is not 6n + 2.

    Parameters
    ----------
    depth : int
        6n + 2: the layers with weights. 110 gives 54 blocks.
    init_scale : float
        The weights are He normal, :math:`N(0, 2/\text{fan-in})`, times this: 0.1 or 0.4 in the
        experiments with BNP and group normalization.
    bias : bool, optional
        Whether the convolutions have biases. By default they have, unless the normalization is
        "bn", which would cancel them. For a factory of such a kind say False.

    Examples
    --------
    >>> model = resnet_cifar(20)
    >>> sum(parameter.numel() for parameter in model.parameters())
    269722
    """
    blocks, rest = divmod(depth - 2, 6)
    if rest or blocks < 1:
        raise ValueError(
            "depth must be 6n + 2 (8, 14, 20, ..., 110): three stages of n blocks with two "
            f"convolutions, a first convolution and a dense layer; got {depth}"
        )
    kit = _Kit(normalization, bias)

    def block(inputs: int, outputs: int, stride: int, first: bool) -> Residual:
        same = inputs == outputs
        shortcut = nn.Identity() if same else PaddedShortcut(outputs - inputs, stride)
        if preactivation:
            return kit.preactivated_block(inputs, outputs, stride, shortcut, first)
        return kit.block(inputs, outputs, stride, shortcut)

    stem = [*kit.normalized(3, 16, 3, 1), nn.ReLU()]
    tail = [*_normalize(kit.factory, 64), nn.ReLU()] if preactivation else []
    model = kit.network(stem, (16, 32, 64), blocks, block, tail, classes)
    _initialize(model, _HE, seed, init_scale)
    return model


def resnet18(
    classes: int = 1000,
    normalization: Normalization = "bn",
    init_scale: float = 1.0,
    bias: bool | None = None,
    seed: int = 0,
) -> nn.Sequential:
    """Return the residual network of 18 layers for images of 224 × 224 pixels (Source: P-28).

    A 7×7 convolution of stride 2, 3×3 maximum pooling of stride 2, four stages of two blocks with
    64, 128, 256 and 512 channels, and a dense layer. Where the channels double, the image is
    halved, and the shortcut is a 1×1 convolution with its normalization. The arguments are those of
    :func:`resnet_cifar`; the experiments on ImageNet have ``group_norm(32)``. Its parts are
    ``stem``, ``stage1`` to ``stage4`` and ``head``.

    >>> sum(parameter.numel() for parameter in resnet18().parameters())
    11689512
    """
    kit = _Kit(normalization, bias)

    def block(inputs: int, outputs: int, stride: int, first: bool) -> Residual:
        same = inputs == outputs
        shortcut = (
            nn.Identity() if same else nn.Sequential(*kit.normalized(inputs, outputs, 1, stride))
        )
        return kit.block(inputs, outputs, stride, shortcut)

    stem = [*kit.normalized(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, stride=2, padding=1)]
    model = kit.network(stem, (64, 128, 256, 512), 2, block, [], classes)
    _initialize(model, _HE, seed, init_scale)
    return model
