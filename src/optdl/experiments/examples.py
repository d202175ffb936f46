"""The examples of a run: three parts, raw or standardized, and generated ones to try things out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from optdl.data import Dataset, Examples
from optdl.images import ImageFolder, StreamedImages

__all__ = ["Parts", "generated_images", "image_files", "parts", "standardized"]


@dataclass(frozen=True)
class Parts:
    """What a run trains on, what chooses, and what judges."""

    train: Any
    validation: Any
    test: Any
    shape: tuple[int, int, int]
    classes: int


def parts(data: Dataset, inputs: str, batch: int, images: bool) -> Parts:
    """Return the three parts of a data set, as images or flat.

    A tenth of the training images only chooses, drawn at random, the same ones in every run. For
    standardized inputs mean and variance are those of the training part. It is one shorter where a
    minibatch of one example would be left, which BN refuses.
    """
    split = data.split(0.1)
    found = [split.train, split.validation, split.test]
    if inputs == "standardized":
        found = standardized(found, data.image_shape[0])
    found[0] = found[0].first(len(found[0]) - (batch > 1 and len(found[0]) % batch == 1))
    if images:
        found = [Examples(part.x.reshape(-1, *data.image_shape), part.y) for part in found]
    train, validation, test = found
    return Parts(train, validation, test, data.image_shape, len(data.classes))


def standardized(examples: Iterable[Examples], channels: int) -> list[Examples]:
    """Subtract the mean of each channel and divide by its deviation, both those of the first part.

    Rows are channel by channel, in any shape. A channel whose deviation is 0 becomes NaN.

    >>> x = np.array([[0.0, 2.0], [0.0, 2.0]], dtype=np.float32)
    >>> standardized([Examples(x, np.array([0, 1]))], channels=1)[0].x.tolist()
    [[-1.0, 1.0], [-1.0, 1.0]]
    """
    first, *rest = examples
    pixels = first.x.reshape(len(first), channels, -1)
    mean = pixels.mean((0, 2), dtype=np.float64)[:, None]
    std = pixels.std((0, 2), dtype=np.float64)[:, None]

    def moved(x: np.ndarray) -> np.ndarray:
        scaled = (x.reshape(len(x), channels, -1) - mean) / std
        return scaled.astype(np.float32).reshape(x.shape)

    return [Examples(moved(part.x), part.y) for part in (first, *rest)]


def image_files(root: Path, size: int, seed: int, most: int | None, readers: int) -> Parts:
    """Return the parts of a folder in ImageNet's layout, read while training: none chooses.

    The folder has ``train/CLASS/FILE`` and ``val/CLASS/FILE``. Images are cropped to ``size``
    pixels in height and width; so many ``readers`` are threads that read files.
    """
    train = ImageFolder(root / "train", size, train=True, seed=seed)
    test = ImageFolder(root / "val", size)
    for folder in (train, test):
        folder.keep(most or len(folder))
    found = StreamedImages(train, readers), None, StreamedImages(test, readers)
    return Parts(*found, (3, size, size), len(train.classes))


def generated_images(examples: int = 150, seed: int = 0) -> Dataset:
    """Return 32 × 32 images in three colors, each a noisy copy of the pattern of its class.

    There are ten classes; features are flat, between 0 and 1. Four fifths are for training.

    >>> generated_images(20).x_train.shape
    (16, 3072)
    """
    rng = np.random.default_rng(seed)
    y = np.arange(examples) % 10
    patterns = rng.random((10, 3, 4, 4)).repeat(8, axis=2).repeat(8, axis=3)
    x = (0.7 * patterns[y] + 0.3 * rng.random((examples, 3, 32, 32))).reshape(examples, -1)
    x, m = x.astype(np.float32), examples * 4 // 5
    names = tuple("abcdefghij")
    return Dataset("generated", x[:m], y[:m], x[m:], y[m:], (3, 32, 32), names)


def write_images(root: Path, examples: int = 60) -> None:
    """Write generated images as files, in ImageNet's layout."""
    data = generated_images(examples)
    for part, x, y in (("train", data.x_train, data.y_train), ("val", data.x_test, data.y_test)):
        images = (255 * x.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)).astype(np.uint8)
        for number, (image, label) in enumerate(zip(images, y, strict=True)):
            folder = root / part / data.classes[label]
            folder.mkdir(parents=True, exist_ok=True)
            Image.fromarray(image).save(folder / f"{number}.png")
