"""Images as files: a folder in ImageNet's layout, one folder for each class.

Axis letters, fixed for the module: ``s`` is the side of the square crop; ``N`` examples, ``c``
channels, ``r`` and ``w`` height and width.
"""

from __future__ import annotations

import hashlib
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, Int
from PIL import Image, UnidentifiedImageError
from torch.nn import functional

__all__ = ["ImageFolder", "PadCropFlip", "StreamedImages"]

ENDINGS = {".jpeg", ".jpg", ".png", ".bmp", ".webp"}
MEAN = np.array([0.485, 0.456, 0.406])
STD = np.array([0.229, 0.224, 0.225])
"""Mean and deviation of the red, green and blue of ImageNet's training images, in [0, 1]."""


class ImageFolder:
    """The images of ``root/CLASS/FILE``, cut to squares and normalized (Source: P-28).

    Each image is scaled until its shorter side is 8/7 of the crop (256 for 224). In training a
    random square is cut out, and half of them are mirrored; else the square of side ``size`` is the
    middle one. The draws depend on the seed, the epoch and the image alone, not on who asks or
    when.

    A loader of torch takes it as it is::

        images = ImageFolder("imagenet/train", train=True)
        loader = torch.utils.data.DataLoader(images, batch_size=256, shuffle=True)

    Raises FileNotFoundError where the folder is missing or has no images in its class folders, and
    ValueError where ``size``, in pixels, is less than 1 or an image cannot be read.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        size: int = 224,
        *,
        train: bool = False,
        seed: int = 0,
    ) -> None:
        self.root, self.size, self.train, self.seed, self.epoch = Path(root), size, train, seed, 0
        if size < 1:
            raise ValueError(f"size must be 1 pixel or more; got {size}")
        if not self.root.is_dir():
            raise FileNotFoundError(f"there is no folder {self.root}")
        folders = sorted(path for path in self.root.iterdir() if path.is_dir())
        self.classes = tuple(folder.name for folder in folders)
        found = [(file, label) for label, one in enumerate(folders) for file in _images(one)]
        if not found:
            raise FileNotFoundError(
                f"{self.root} has no images; expected {self.root}/CLASS/NAME.JPEG, one folder for "
                f"each class, and found the folders {list(self.classes)[:5]}"
            )
        self.files = tuple(file for file, _ in found)
        self.labels = tuple(label for _, label in found)

    def __len__(self) -> int:
        """Return the number of images."""
        return len(self.files)

    def keep(self, most: int) -> None:
        """Keep every k-th image, so that no more than this many are left."""
        step = -(-len(self) // most)
        self.files, self.labels = self.files[::step], self.labels[::step]

    def __getitem__(self, index: int) -> tuple[Float[torch.Tensor, "3 s s"], int]:
        """Return an image and its class."""
        pixels = self._crop(self._scaled(self.files[index]), index)
        normalized = (np.asarray(pixels, dtype=np.float32) / 255 - MEAN) / STD
        # the axes of an image file are rows, columns, colors; those of torch begin with the colors
        axes = np.ascontiguousarray(normalized.transpose(2, 0, 1), dtype=np.float32)
        return torch.from_numpy(axes), self.labels[index]

    def _scaled(self, file: Path) -> Image.Image:
        """Read an image, its shorter side made 8/7 of the crop."""
        try:
            with Image.open(file) as image:
                colored = image.convert("RGB")
        except (UnidentifiedImageError, OSError) as error:
            raise ValueError(
                f"{file} is not an image that can be read: {error}. Delete it, or fetch it again"
            ) from error
        factor = round(self.size * 8 / 7) / min(colored.size)
        width, height = (max(round(side * factor), self.size) for side in colored.size)
        return colored.resize((width, height), Image.Resampling.BILINEAR)

    def _crop(self, image: Image.Image, index: int) -> Image.Image:
        """Cut out a square: at random and perhaps mirrored, or the middle one."""
        room = (image.width - self.size, image.height - self.size)
        if not self.train:
            left, top, mirrored = room[0] // 2, room[1] // 2, False
        else:
            rng = np.random.default_rng((self.seed, self.epoch, index))
            left, top = (int(rng.integers(0, free + 1)) for free in room)
            mirrored = bool(rng.integers(0, 2))
        square = image.crop((left, top, left + self.size, top + self.size))
        return square.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if mirrored else square


def _images(folder: Path) -> list[Path]:
    return sorted(file for file in folder.iterdir() if file.suffix.lower() in ENDINGS)


class PadCropFlip:
    """Pad images with zeros, cut parts of the old size out at random, and mirror half of them.

    For many images at once, on their device. ``padding`` is the number of rows and of columns of
    zeros on each side. Raises ValueError where it is negative. Source: P-27.

    >>> image = torch.tensor([[[[1.0, 2.0], [3.0, 4.0]]]])
    >>> PadCropFlip(1)(image, torch.tensor([[1, 1, 1]]))  # in the middle, mirrored
    tensor([[[[2., 1.],
              [4., 3.]]]])
    """

    def __init__(self, padding: int = 4) -> None:
        if padding < 0:
            raise ValueError(f"padding must be 0 pixels or more; got {padding}")
        self.padding = padding

    def draw(self, m: int, generator: torch.Generator) -> Int[torch.Tensor, "{m} 3"]:
        """Return for each of m images where its part begins, and whether it is mirrored."""
        places = torch.randint(0, 2 * self.padding + 1, (m, 2), generator=generator)
        return torch.cat([places, torch.randint(0, 2, (m, 1), generator=generator)], dim=1)

    def __call__(
        self, x: Float[torch.Tensor, "N c r w"], draws: Int[torch.Tensor, "N 3"]
    ) -> Float[torch.Tensor, "N c r w"]:
        """Return the parts."""
        height, width = x.shape[2:]
        padded = functional.pad(x, (self.padding,) * 4)
        down = torch.arange(height, device=x.device)
        across = torch.arange(width, device=x.device)
        top, left, mirrored = draws[:, :1], draws[:, 1:2], draws[:, 2:]
        rows = top + down
        columns = left + torch.where(mirrored.bool(), width - 1 - across, across)
        images = torch.arange(len(x), device=x.device)[:, None, None]
        # the channels come last, which is how convolutions like them best; their axis is the second
        return padded[images, :, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)


class StreamedImages:
    """The images of a folder as training examples that are read when a minibatch asks for them.

    :func:`optdl.training.train` takes them where it takes ``Examples``. While a GPU works on one
    minibatch, the next is read. ``threads`` is the number of images that are read at once.
    """

    def __init__(self, folder: ImageFolder, threads: int = 8) -> None:
        self.folder, self.y = folder, np.array(folder.labels)
        self._pool = ThreadPoolExecutor(threads)

    def __len__(self) -> int:
        """Return the number of images."""
        return len(self.folder)

    def __getitem__(self, rows: Int[torch.Tensor, " N"]) -> Float[torch.Tensor, "N 3 s s"]:
        """Return the images of these numbers."""
        images = self._pool.map(self.folder.__getitem__, rows.tolist())
        return torch.stack([image for image, _ in images])

    def begin(self, epoch: int) -> None:
        """Draw other crops from now on."""
        self.folder.epoch = epoch

    def identity(self) -> str:
        """Return what tells these examples from others."""
        names = "".join(f"{file.parent.name}/{file.name}\n" for file in self.folder.files)
        settings = (self.folder.size, self.folder.train, self.folder.seed)
        return hashlib.sha256((names + repr(settings)).encode()).hexdigest()[:12]
