"""The networks of the experiments, each with its normalization passed in.

A normalization is a factory: from the number of features or channels to a layer. The layers that
torch has go by a name: "none", "bn", "ln", "gn". BNP changes no network: it is applied to one
from outside, ``BNP(model)``.

Axis letters, fixed for the module: ``N`` examples, ``n`` features, ``c`` channels, ``r`` and
``s`` height and width.
"""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
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

    Source: P-27, P-28

    Parameters
    ----------
    group_size : int
        Channels that share a mean and a variance; torch asks for the number of groups instead.

    Returns
    -------
    callable
        c to ``nn.GroupNorm(c / group_size, c)``. It raises ValueError if the groups do not
        come out even.

    Examples
    --------
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


def _weighted(model: nn.Module) -> Iterator[nn.Linear | nn.Conv2d]:
    """Yield the dense and convolutional layers, their biases set to zero."""
    for module in model.modules():
        if isinstance(module, nn.Linear | nn.Conv2d):
            if module.bias is not None:
                nn.init.zeros_(module.bias)
            yield module


def _glorot_uniform(model: nn.Module, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    for layer in _weighted(model):
        nn.init.xavier_uniform_(layer.weight, generator=generator)


def _he_normal(model: nn.Module, scale: float, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    for layer in _weighted(model):
        nn.init.kaiming_normal_(layer.weight, nonlinearity="relu", generator=generator)
        with torch.no_grad():
            layer.weight.mul_(scale)


# torch draws the weights of a new layer from its global generator, which is put back here; the
# weights are drawn again by a generator of the network. (skip_init imports for half a second.)


def _dense(inputs: int, outputs: int, bias: bool = True) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        return nn.Linear(inputs, outputs, bias=bias)


def _convolution(inputs: int, outputs: int, kernel: int, **how: Any) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        return nn.Conv2d(inputs, outputs, kernel, **how)


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

    The input itself is not normalized, nor is the output. The weights are Glorot uniform, the
    biases zero. Before batch normalization ("bn", pre) there is no bias: it would cancel.

    Parameters
    ----------
    widths : sequence of int
        Inputs, hidden layers, outputs: ``(784, 100, 100, 100, 10)`` has three hidden layers.
    normalization : str, callable or None
        A name of ``FEATURE_NORMALIZATIONS``, or the number of features to a layer.
    activation : callable
        Makes the module g.
    placement : {"post", "pre"}
        Whether the normalization comes after or before the activation.
    seed : int
        Seed of the weights. Torch's global generator is not touched.

    Returns
    -------
    Sequential
        (N, ...) inputs, which it flattens, to (N, outputs) scores.

    Raises
    ------
    ValueError
        If there are fewer than two widths, one is not positive, or the placement or the name of
        the normalization is unknown.

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
        layers += [_dense(inputs, outputs, bias), *after]
    model = nn.Sequential(*layers, _dense(widths[-2], widths[-1]))
    _glorot_uniform(model, seed)
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

    The convolutions have stride 1 and no padding. The normalization comes last in each of the
    first four rows, after activation and pooling: it normalizes the input of the next layer. The
    weights are Glorot uniform, the biases zero.

    The paper gives the kernels, the filters and the number of layers. Pooling, padding and the 64
    units are those of the tutorial of TensorFlow that it names.

    Parameters
    ----------
    channels, size : int
        The images are size × size with so many channels.
    normalization : str, callable or None
        A name, or the number of channels or features to a layer. Such a layer must take (N, c)
        and (N, c, r, s) inputs: one of its kind follows a dense layer.
    seed : int
        Seed of the weights. Torch's global generator is not touched.

    Returns
    -------
    Sequential
        (N, channels, size, size) images to (N, classes) scores.

    Raises
    ------
    ValueError
        If the images are smaller than 18 × 18, so that nothing is left of them, or the name of
        the normalization is unknown.

    Examples
    --------
    >>> sum(parameter.numel() for parameter in cnn5().parameters())
    71338
    """
    side = ((size - 2) // 2 - 2) // 2 - 2
    if side < 1:
        raise ValueError(f"size must be at least 18: the convolutions have no padding; got {size}")
    factory = _factory(normalization, CHANNEL_NORMALIZATIONS)
    model = nn.Sequential(
        *(_convolution(channels, 32, 3), nn.ReLU(), nn.MaxPool2d(2), *_normalize(factory, 32)),
        *(_convolution(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2), *_normalize(factory, 64)),
        *(_convolution(64, 32, 3), nn.ReLU(), *_normalize(factory, 32), nn.Flatten()),
        *(_dense(32 * side**2, 64), nn.ReLU()),
        *_normalize(_factory(normalization, FEATURE_NORMALIZATIONS), 64),
        _dense(64, classes),
    )
    _glorot_uniform(model, seed)
    return model


# --- Residual networks ------------------------------------------------------------------------


class Residual(nn.Module):
    r"""A residual block: :math:`x \mapsto g(\text{shortcut}(x) + \text{branch}(x))` (Source: P-27).

    Parameters
    ----------
    branch : Module
        What is learned: the two convolutions, with their normalizations.
    shortcut : Module
        The identity, or what makes x as large as the output of the branch.
    activation : Module
        g: the ReLU, or the identity where the activations come first.

    Examples
    --------
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
    """The shortcut without parameters: every stride-th pixel, and channels of zeros at the end.

    Source: P-27

    Parameters
    ----------
    extra : int
        Number of channels of zeros.
    stride : int
        Step between the pixels that it takes.

    Examples
    --------
    >>> PaddedShortcut(1, 2)(torch.tensor([[[[1.0, 2.0], [3.0, 4.0]]]])).flatten()
    tensor([1., 0.])
    >>> PaddedShortcut(16, 2)
    PaddedShortcut(extra=16, stride=2)
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


@dataclass(frozen=True)
class _Kit:
    """The pieces of a residual network, which has one kind of normalization."""

    factory: Factory | None
    bias: bool

    def convolution(self, inputs: int, outputs: int, kernel: int, stride: int = 1) -> nn.Module:
        """Return a convolution that with stride 1 keeps the size of the image."""
        how = {"stride": stride, "padding": kernel // 2, "bias": self.bias}
        return _convolution(inputs, outputs, kernel, **how)

    def normalization(self, channels: int) -> list[nn.Module]:
        return _normalize(self.factory, channels)

    def normalized(self, inputs: int, outputs: int, kernel: int, stride: int) -> list[nn.Module]:
        """Return a convolution and its normalization."""
        convolution = self.convolution(inputs, outputs, kernel, stride)
        return [convolution, *self.normalization(outputs)]

    def stem(self, channels: int, kernel: int, stride: int) -> list[nn.Module]:
        return [*self.normalized(3, channels, kernel, stride), nn.ReLU()]

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
        before = [] if first else [*self.normalization(inputs), nn.ReLU()]
        middle = self.normalized(inputs, outputs, 3, stride)
        last = self.convolution(outputs, outputs, 3)
        branch = nn.Sequential(*before, *middle, nn.ReLU(), last)
        return Residual(branch, shortcut, nn.Identity())

    def projection(self, inputs: int, outputs: int, stride: int) -> nn.Module:
        """Return a 1×1 convolution for a shortcut between different sizes, or the identity."""
        if stride == 1 and inputs == outputs:
            return nn.Identity()
        return nn.Sequential(*self.normalized(inputs, outputs, 1, stride))


def _kit(normalization: Normalization, bias: bool | None) -> _Kit:
    factory = _factory(normalization, CHANNEL_NORMALIZATIONS)
    # batch normalization subtracts the mean of a channel, and with it a bias; BNP needs one
    return _Kit(factory, factory is not nn.BatchNorm2d if bias is None else bias)


def _network(
    stem: Sequence[nn.Module],
    stages: Sequence[Sequence[nn.Module]],
    tail: Sequence[nn.Module],
    channels: int,
    classes: int,
) -> nn.Sequential:
    """Return the parts in their order, ended by the mean of each channel and a dense layer."""
    parts = OrderedDict[str, nn.Module](stem=nn.Sequential(*stem))
    for number, blocks in enumerate(stages, 1):
        parts[f"stage{number}"] = nn.Sequential(*blocks)
    dense = _dense(channels, classes)
    parts["head"] = nn.Sequential(*tail, nn.AdaptiveAvgPool2d(1), nn.Flatten(), dense)
    return nn.Sequential(parts)


def _sizes(widths: Sequence[int], blocks: int) -> list[list[tuple[int, int, int]]]:
    """Return the inputs, outputs and stride of each block, stage by stage."""
    starts = [(widths[0], 1), *((before, 2) for before in widths[:-1])]
    return [
        [(before, width, stride), *[(width, width, 1)] * (blocks - 1)]
        for (before, stride), width in zip(starts, widths, strict=True)
    ]


def _cifar_block(
    kit: _Kit, size: tuple[int, int, int], preactivation: bool, first: bool
) -> Residual:
    inputs, outputs, stride = size
    same = inputs == outputs
    shortcut = nn.Identity() if same else PaddedShortcut(outputs - inputs, stride)
    if preactivation:
        return kit.preactivated_block(*size, shortcut, first)
    return kit.block(*size, shortcut)


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

    In the preactivation version normalization and ReLU stand before each convolution of F, and
    once more after the last block. In the first block they come before x goes both ways.

    Parameters
    ----------
    depth : int
        6n + 2: the layers with weights. 110 gives 54 blocks.
    normalization : str, callable or None
        A name of ``CHANNEL_NORMALIZATIONS``, or the number of channels to a layer.
    preactivation : bool
        Whether to build the preactivation version.
    init_scale : float
        The weights are He normal, :math:`N(0, 2/\text{fan-in})`, times this: 0.1 or 0.4 in the
        experiments with BNP and group normalization.
    bias : bool, optional
        Whether the convolutions have biases. By default they have, unless the normalization is
        "bn", which would cancel them. For a factory of such a kind say False.
    seed : int
        Seed of the weights. Torch's global generator is not touched.

    Returns
    -------
    Sequential
        (N, 3, r, s) images to (N, classes) scores; its parts are called ``stem``, ``stage1`` to
        ``stage3`` and ``head``.

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
    kit = _kit(normalization, bias)
    stages = [
        [
            _cifar_block(kit, size, preactivation, first=stage == number == 0)
            for number, size in enumerate(sizes)
        ]
        for stage, sizes in enumerate(_sizes((16, 32, 64), blocks))
    ]
    tail = [*kit.normalization(64), nn.ReLU()] if preactivation else []
    model = _network(kit.stem(16, 3, 1), stages, tail, 64, classes)
    _he_normal(model, init_scale, seed)
    return model


def resnet18(
    classes: int = 1000,
    normalization: Normalization = "bn",
    init_scale: float = 1.0,
    bias: bool | None = None,
    seed: int = 0,
) -> nn.Sequential:
    r"""Return the residual network of 18 layers for images of 224 × 224 pixels (Source: P-28).

    A 7×7 convolution of stride 2, 3×3 maximum pooling of stride 2, four stages of two blocks with
    64, 128, 256 and 512 channels, and a dense layer. Where the channels double, the image is
    halved, and the shortcut is a 1×1 convolution with its normalization.

    Parameters
    ----------
    normalization : str, callable or None
        A name of ``CHANNEL_NORMALIZATIONS``, or the number of channels to a layer. The experiments
        on ImageNet have ``group_norm(32)``.
    init_scale : float
        The weights are He normal, :math:`N(0, 2/\text{fan-in})`, times this.
    bias : bool, optional
        Whether the convolutions have biases. By default they have, unless the normalization is
        "bn", which would cancel them. For a factory of such a kind say False.
    seed : int
        Seed of the weights. Torch's global generator is not touched.

    Returns
    -------
    Sequential
        (N, 3, r, s) images to (N, classes) scores; its parts are called ``stem``, ``stage1`` to
        ``stage4`` and ``head``.

    Examples
    --------
    >>> sum(parameter.numel() for parameter in resnet18().parameters())
    11689512
    """
    kit = _kit(normalization, bias)
    stages = [
        [kit.block(*size, kit.projection(*size)) for size in sizes]
        for sizes in _sizes((64, 128, 256, 512), 2)
    ]
    stem = [*kit.stem(64, 7, 2), nn.MaxPool2d(3, stride=2, padding=1)]
    model = _network(stem, stages, [], 512, classes)
    _he_normal(model, init_scale, seed)
    return model
