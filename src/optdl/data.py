"""Data sets as arrays: digits, MNIST, CIFAR-10 and CIFAR-100.

Digits come with scikit-learn. The others are read from their official archives: from ``root``,
which is ``$OPTDL_DATA`` or else a per-user cache, and downloaded there once if they are missing.
Each file is checked against its official checksum. A file of yours is never changed or removed.

Axis letters, fixed for the module: ``m`` examples, ``q`` test examples, ``d`` features.
"""

from __future__ import annotations

import gzip
import hashlib
import importlib.util
import io
import os
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Float32, Int, Int64, UInt8

__all__ = ["Dataset", "Examples", "Split", "load", "pack"]

Features = Float32[np.ndarray, "m d"]
Labels = Int64[np.ndarray, " m"]


# --- What a data set is -----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Examples:
    """Examples with features in rows and their labels.

    Raises ValueError where there is not one label for each row.

    Parameters
    ----------
    y : (m,) array
        Labels 0 … c−1; or ±1 or real numbers, where a loss asks for them.
    """

    x: Float[np.ndarray, "m ..."] = field(repr=False)
    y: Int[np.ndarray, " m"] | Float[np.ndarray, " m"] = field(repr=False)

    def __post_init__(self) -> None:
        if len(self.x) != len(self.y):
            raise ValueError(
                f"there must be one label for each row of x; "
                f"got {len(self.x)} rows and {len(self.y)} labels"
            )

    def __len__(self) -> int:
        """Return m."""
        return len(self.y)

    def first(self, m: int) -> Examples:
        """Return the first m examples, or all where there are fewer."""
        return Examples(self.x[:m], self.y[:m])


@dataclass(frozen=True)
class Split:
    """Three disjoint parts of a data set: to fit, to choose, to judge."""

    train: Examples
    validation: Examples
    test: Examples


@dataclass(frozen=True, eq=False)
class Dataset:
    """A data set for classification, with its official test part.

    ``name`` is that under which it was loaded, the labels are 0 … c−1, and ``classes`` has the
    names of the c classes.

    Parameters
    ----------
    x_train, x_test : (m, d) and (q, d) float32 arrays
        Pixels between 0 and 1, one flattened image per row.
    image_shape : (channels, height, width)
        ``x_train.reshape(-1, *image_shape)`` gives the images, channels first.
    """

    name: str
    x_train: Features = field(repr=False)
    y_train: Labels = field(repr=False)
    x_test: Float32[np.ndarray, "q d"] = field(repr=False)
    y_test: Int64[np.ndarray, " q"] = field(repr=False)
    image_shape: tuple[int, int, int]
    classes: tuple[str, ...] = field(repr=False)

    def split(self, validation: int | float, seed: int = 0) -> Split:
        """Hold out part of the training examples for validation, at random (Source: L1-05).

        ``validation`` is their number, or a fraction between 0 and 1. The same seed gives the same
        split; training and validation examples are disjoint. Raises ValueError where nothing would
        be held out, or nothing left to train on.

        >>> split = load("digits").split(validation=0.25)
        >>> len(split.train), len(split.validation), len(split.test)
        (1078, 360, 359)
        """
        m = len(self.y_train)
        held = round(validation * m) if isinstance(validation, float) else validation
        if not 0 < held < m:
            raise ValueError(
                f"validation must be a count from 1 to {m - 1} or a share between 0 and 1; "
                f"got {validation}, which holds out {held} of {m} training examples"
            )
        order = np.random.default_rng(seed).permutation(m)
        fit, choose = np.sort(order[held:]), np.sort(order[:held])
        return Split(
            train=Examples(self.x_train[fit], self.y_train[fit]),
            validation=Examples(self.x_train[choose], self.y_train[choose]),
            test=Examples(self.x_test, self.y_test),
        )

    def subset(self, train: int, test: int | None = None, seed: int = 0) -> Dataset:
        """Keep some examples at random, to make an experiment small.

        The same seed keeps the same examples; a larger subset contains a smaller one. All test
        examples are kept where ``test`` is not given. Raises ValueError where a number is less than
        1, or larger than that of the examples.

        >>> small = load("digits").subset(train=100, test=50)
        >>> small.x_train.shape, small.x_test.shape
        ((100, 64), (50, 64))
        """
        rng = np.random.default_rng(seed)
        fit = _chosen(len(self.y_train), train, "train", rng)
        judge = _chosen(len(self.y_test), len(self.y_test) if test is None else test, "test", rng)
        return replace(
            self,
            x_train=self.x_train[fit],
            y_train=self.y_train[fit],
            x_test=self.x_test[judge],
            y_test=self.y_test[judge],
        )


def _chosen(m: int, count: int, part: str, rng: np.random.Generator) -> Int64[np.ndarray, " k"]:
    if not 1 <= count <= m:
        raise ValueError(f"{part} must be from 1 to {m}, the examples there are; got {count}")
    return np.sort(rng.permutation(m)[:count])


# --- The one entrance -------------------------------------------------------------------------


def load(name: str, root: str | os.PathLike[str] | None = None) -> Dataset:
    """Load a data set by name.

    Raises ValueError where the name is unknown or a file is not the official one, FileNotFoundError
    where a file is missing and cannot be downloaded (the message says what to put where), and
    ModuleNotFoundError where digits are asked for without scikit-learn.

    Parameters
    ----------
    name : {"digits", "mnist", "cifar10", "cifar100"}
        Digits are 8 × 8 images that come with scikit-learn; every fifth of the 1797 is a test
        example. MNIST has 28 × 28 images, the CIFAR sets 3 × 32 × 32; CIFAR-100 has its 100 fine
        labels.
    root : path, optional
        Folder that holds ``mnist/*.gz``, ``cifar-10-batches-bin/*.bin`` or
        ``cifar-10-binary.tar.gz``, and likewise for CIFAR-100; or ``cifar10-part.npz``, see
        :func:`pack`. When not given: the environment variable ``OPTDL_DATA``, else a per-user
        cache. What is missing is downloaded there.

    Examples
    --------
    >>> digits = load("digits")
    >>> digits.x_train.shape, digits.x_test.shape, digits.image_shape
    ((1438, 64), (359, 64), (1, 8, 8))
    """
    names = ("digits", *_LOADERS)
    if name not in names:
        raise ValueError(f"there is no data set {name!r}; the names are {', '.join(names)}")
    return _digits() if name == "digits" else _LOADERS[name](_root(root))


def _root(root: str | os.PathLike[str] | None) -> Path:
    chosen = root or os.environ.get("OPTDL_DATA")
    if not chosen:
        import pooch  # here and below: the checks of an exercise need no download

        chosen = pooch.os_cache("optdl")
    return Path(chosen).expanduser()


@cache
def _table(file: Path) -> np.ndarray:
    # read once in a process; what is made of it is copied
    return np.loadtxt(file, delimiter=",", dtype=np.float32)


def _digits() -> Dataset:
    # importing scikit-learn to read its file takes longer than all else here
    found = importlib.util.find_spec("sklearn")
    if found is None or found.origin is None:
        raise ModuleNotFoundError("digits are a file of scikit-learn: pip install scikit-learn")
    file = Path(found.origin).parent / "datasets" / "data" / "digits.csv.gz"
    table = _table(file)
    x, y = table[:, :-1] / 16, table[:, -1].astype(np.int64)
    test = np.arange(len(y)) % 5 == 4
    names = tuple("0123456789")
    return Dataset("digits", x[~test], y[~test], x[test], y[test], (1, 8, 8), names)


# --- Official files ---------------------------------------------------------------------------


@dataclass(frozen=True)
class _File:
    name: str
    size: int
    md5: str


def _verify(path: Path, expected: _File) -> None:
    size = path.stat().st_size
    with path.open("rb") as file:
        md5 = hashlib.file_digest(file, "md5").hexdigest()
    if (size, md5) != (expected.size, expected.md5):
        raise ValueError(
            f"{path} is not the official file: it is truncated, damaged or another version.\n"
            f"  expected {expected.size} bytes, md5 {expected.md5}\n"
            f"  got      {size} bytes, md5 {md5}\n"
            "Delete it, then load again; it is downloaded anew."
        )


def _download(expected: _File, urls: tuple[str, ...], folder: Path, places: str) -> Path:
    import pooch

    failures = []
    for url in urls:
        try:
            # writes to a temporary file and moves it only when the checksum agrees
            pooch.retrieve(url, f"md5:{expected.md5}", expected.name, folder, progressbar=True)
        except (OSError, ValueError) as error:
            failures.append(f"  {url}: {error}")
        else:
            return folder / expected.name
    raise FileNotFoundError(
        f"{expected.name} is missing and could not be downloaded.\n"
        f"Looked for {places}\n"
        "Tried to download\n" + "\n".join(failures) + "\n"
        f"Get the file ({expected.size} bytes, md5 {expected.md5}) on a machine that can, and put "
        f"it into {folder}; or set OPTDL_DATA to the folder in which you keep data sets."
    )


# --- MNIST ------------------------------------------------------------------------------------

_MNIST = (
    _File("train-images-idx3-ubyte.gz", 9_912_422, "f68b3c2dcbeaaa9fbdd348bbdeb94873"),
    _File("train-labels-idx1-ubyte.gz", 28_881, "d53e105ee54ea40749a09fcbcd1e9432"),
    _File("t10k-images-idx3-ubyte.gz", 1_648_877, "9fb629c4189551a2d022fa330f9573f3"),
    _File("t10k-labels-idx1-ubyte.gz", 4_542, "ec29112dd5afa0611ce80d1b7f02629c"),
)
_MNIST_MIRRORS = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
    "http://yann.lecun.com/exdb/mnist/",
)


def _mnist(root: Path) -> Dataset:
    x_train, y_train, x_test, y_test = (_read_idx(_mnist_file(file, root)) for file in _MNIST)
    return Dataset(
        "mnist",
        _pixels(x_train),
        y_train.astype(np.int64),
        _pixels(x_test),
        y_test.astype(np.int64),
        (1, x_train.shape[1], x_train.shape[2]),
        tuple("0123456789"),
    )


def _mnist_file(expected: _File, root: Path) -> Path:
    # the second is where torchvision keeps the same files
    places = [root / "mnist" / expected.name, root / "MNIST" / "raw" / expected.name]
    for path in places:
        if path.exists():
            _verify(path, expected)
            return path
    urls = tuple(mirror + expected.name for mirror in _MNIST_MIRRORS)
    return _download(expected, urls, root / "mnist", " and ".join(map(str, places)))


def _read_idx(path: Path) -> UInt8[np.ndarray, "*shape"]:
    # IDX: two zero bytes, the type (8 for uint8), the number of axes, big-endian sizes, the data
    raw = gzip.decompress(path.read_bytes())
    axes = raw[3]
    shape = np.frombuffer(raw, ">u4", count=axes, offset=4)
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * axes).reshape(shape)


def _pixels(images: UInt8[np.ndarray, "m ..."]) -> Features:
    pixels = images.reshape(len(images), -1).astype(np.float32)
    pixels /= 255
    return pixels


# --- CIFAR ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Cifar:
    archive: _File
    url: str
    folder: str
    train: tuple[_File, ...]
    test: _File
    label_bytes: int
    classes: tuple[str, ...]


_CIFAR10_CLASSES = "airplane automobile bird cat deer dog frog horse ship truck"
_CIFAR100_CLASSES = """
    apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle bowl boy bridge bus
    butterfly camel can castle caterpillar cattle chair chimpanzee clock cloud cockroach couch
    crab crocodile cup dinosaur dolphin elephant flatfish forest fox girl hamster house kangaroo
    keyboard lamp lawn_mower leopard lion lizard lobster man maple_tree motorcycle mountain mouse
    mushroom oak_tree orange orchid otter palm_tree pear pickup_truck pine_tree plain plate poppy
    porcupine possum rabbit raccoon ray road rocket rose sea seal shark shrew skunk skyscraper
    snail snake spider squirrel streetcar sunflower sweet_pepper table tank telephone television
    tiger tractor train trout tulip turtle wardrobe whale willow_tree wolf woman worm
"""
_CIFAR = {
    "cifar10": _Cifar(
        _File("cifar-10-binary.tar.gz", 170_052_171, "c32a1d4ab5d03f1284b67883e8d87530"),
        "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
        "cifar-10-batches-bin",
        (
            _File("data_batch_1.bin", 30_730_000, "5dd7e06a14cb22eb9f671a540d1b7c25"),
            _File("data_batch_2.bin", 30_730_000, "5ea93a67294ea407fff1d09f752e9692"),
            _File("data_batch_3.bin", 30_730_000, "942cd6a4bcdd0dd3c604fbe906cb4421"),
            _File("data_batch_4.bin", 30_730_000, "ae636b3ba5c66a11e91e8cb52e771fcb"),
            _File("data_batch_5.bin", 30_730_000, "53f37980c15c3d472c316c40844f3f0d"),
        ),
        _File("test_batch.bin", 30_730_000, "803d5f7f4d78ea53de84dbe85f74fb6d"),
        label_bytes=1,
        classes=tuple(_CIFAR10_CLASSES.split()),
    ),
    "cifar100": _Cifar(
        _File("cifar-100-binary.tar.gz", 168_513_733, "03b5dce01913d631647c71ecec9e9cb8"),
        "https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz",
        "cifar-100-binary",
        (_File("train.bin", 153_700_000, "6172c7755cfe09b2fe270c85cebc1b15"),),
        _File("test.bin", 30_740_000, "4499cfba6c016c1be1438163640a0898"),
        label_bytes=2,
        classes=tuple(_CIFAR100_CLASSES.split()),
    ),
}


def _cifar(name: str) -> Callable[[Path], Dataset]:
    def loader(root: Path) -> Dataset:
        files, part = _CIFAR[name], root / f"{name}-part.npz"
        if part.exists():
            try:
                return _part(part)
            except Exception as error:  # of any kind: it depends on what is damaged
                raise ValueError(
                    f"{part} is not what pack wrote; pack it again: {error}"
                ) from error
        for file in _members(files, root):
            _verify(root / files.folder / file.name, file)
        x_train, y_train = _read_records(files, files.train, root)
        x_test, y_test = _read_records(files, (files.test,), root)
        return Dataset(name, x_train, y_train, x_test, y_test, (3, 32, 32), files.classes)

    return loader


def pack(data: Dataset, path: str | os.PathLike[str], train: int, test: int) -> Path:
    """Write so many training and test images in color, drawn at random; ``load`` reads them.

    An image of CIFAR-10 takes 1.65 kB, 54 % of its bytes.

    Examples
    --------
    >>> x = np.arange(5 * 3072, dtype=np.float32).reshape(5, 3072) % 256 / 255
    >>> data = Dataset("stripes", x, np.arange(5), x, np.arange(5), (3, 32, 32), tuple("abcde"))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pack(data, Path(folder) / "cifar10-part.npz", 5, 2)
    ...     part = load("cifar10", folder)
    >>> part.name, np.array_equal(part.x_train, data.subset(5, 2).x_train)
    ('stripes, 5 + 2 images', True)
    """
    from PIL import Image  # a page of the site that loads digits has none

    few, name = data.subset(train, test), f"{data.name}, {train} + {test} images"
    content: dict[str, Any] = {"name": name, "classes": data.classes, "shape": data.image_shape}
    content |= {"y_train": few.y_train, "y_test": few.y_test}
    for part, x in {"train": few.x_train, "test": few.x_test}.items():
        images = np.rint(255 * x).astype(np.uint8).reshape(-1, *data.image_shape)
        rows = images.transpose(0, 2, 3, 1)
        # WebP packs a hundred images, one below the other, as one, without loss
        for first in range(0, len(images), 100):
            file, strip = io.BytesIO(), rows[first : first + 100].reshape(-1, *rows.shape[2:])
            Image.fromarray(strip).save(file, "webp", lossless=True, method=4, quality=100)
            content[f"{part} {first:06}"] = np.frombuffer(file.getvalue(), np.uint8)
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, allow_pickle=False, **content)
    return Path(path)


def _part(path: Path) -> Dataset:
    """Return what :func:`pack` wrote; its name says how many images it has."""
    from PIL import Image  # a page of the site that loads digits has none

    with np.load(path) as found:
        channels, height, width = tuple(map(int, found["shape"]))

        def features(part: str) -> Features:
            names = sorted(name for name in found if name.startswith(f"{part} "))
            strips = [np.asarray(Image.open(io.BytesIO(found[name].tobytes()))) for name in names]
            rows = np.concatenate(strips).reshape(-1, height, width, channels)
            return _pixels(rows.transpose(0, 3, 1, 2))

        train, test = ((features(part), found[f"y_{part}"]) for part in ("train", "test"))
        name, classes = str(found["name"]), tuple(map(str, found["classes"]))
        return Dataset(name, *train, *test, (channels, height, width), classes)


def _members(files: _Cifar, root: Path) -> Iterator[_File]:
    wanted = (*files.train, files.test)
    folder, archive = root / files.folder, root / files.archive.name
    missing = [file for file in wanted if not (folder / file.name).exists()]
    if missing:
        if archive.exists():
            _verify(archive, files.archive)
        else:
            _download(
                files.archive, (files.url,), root, f"{folder / missing[0].name} and {archive}"
            )
        _extract(archive, missing, folder)
    yield from wanted


def _extract(archive: Path, files: list[_File], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    # Each file appears whole or not at all; one that is there already is left alone.
    with tempfile.TemporaryDirectory(dir=folder) as scratch, tarfile.open(archive) as tar:
        for file in files:
            member = f"{folder.name}/{file.name}"
            tar.extract(member, scratch, filter="data")
            (Path(scratch) / member).replace(folder / file.name)


def _read_records(files: _Cifar, parts: tuple[_File, ...], root: Path) -> tuple[Features, Labels]:
    # a record: the label bytes, of which the last is the finest, then red, green and blue planes
    raw = b"".join((root / files.folder / part.name).read_bytes() for part in parts)
    records = np.frombuffer(raw, np.uint8).reshape(-1, files.label_bytes + 3 * 32 * 32)
    labels = records[:, files.label_bytes - 1].astype(np.int64)
    return _pixels(records[:, files.label_bytes :]), labels


_LOADERS: dict[str, Callable[[Path], Dataset]] = {
    "mnist": _mnist,
    "cifar10": _cifar("cifar10"),
    "cifar100": _cifar("cifar100"),
}
