"""Loaders against files written here in the official formats; downloads from this machine only."""

import gzip
import hashlib
import http.server
import io
import os
import struct
import tarfile
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pooch
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits

from optdl import data
from optdl.data import Dataset, load


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    """Point every official address at a closed port of this machine."""
    closed = "http://127.0.0.1:9/"
    monkeypatch.setattr(data, "_MNIST_MIRRORS", (closed, closed + "mirror/"))
    for name, files in data._CIFAR.items():
        monkeypatch.setitem(data._CIFAR, name, replace(files, url=closed + files.archive.name))


@pytest.fixture
def served(tmp_path):
    """Serve a folder on this machine; give the folder, its address and the paths asked for."""
    folder = tmp_path / "served"
    folder.mkdir()
    asked = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args):
            super().__init__(*args, directory=str(folder))

        def log_message(self, *args):
            asked.append(self.path)

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield folder, f"http://127.0.0.1:{server.server_port}/", asked
        server.shutdown()
        thread.join()


def described(name: str, content: bytes) -> data._File:
    return data._File(name, len(content), hashlib.md5(content).hexdigest())


def idx(array: np.ndarray) -> bytes:
    head = struct.pack(">BBBB", 0, 0, 8, array.ndim) + struct.pack(f">{array.ndim}I", *array.shape)
    return gzip.compress(head + array.tobytes(), mtime=0)


@pytest.fixture
def mnist(monkeypatch, rng):
    """Write nothing yet: name to bytes of a tiny MNIST, and the arrays that they hold."""
    arrays = [rng.integers(256, size=(m, 4, 3), dtype=np.uint8) for m in (5, 2)]
    arrays[0][0, 0, :2] = 0, 255
    arrays[1:1] = [np.array([3, 0, 9, 1, 1], np.uint8)]
    arrays.append(np.array([7, 2], np.uint8))
    files = {file.name: idx(array) for file, array in zip(data._MNIST, arrays, strict=True)}
    monkeypatch.setattr(data, "_MNIST", tuple(described(*item) for item in files.items()))
    return files, arrays


def write(folder: Path, files: dict[str, bytes]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


def refusal(error, name, root, *parts):
    """Return the message with which a load fails, which has all these parts."""
    with pytest.raises(error) as caught:
        load(name, root)
    message = str(caught.value)
    assert [part for part in map(str, parts) if part not in message] == []
    return message


def packed(folder: str, files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, content in files.items():
            info = tarfile.TarInfo(f"{folder}/{name}")
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


@pytest.fixture(params=["cifar10", "cifar100"])
def cifar(request, monkeypatch, rng):
    """Describe a tiny CIFAR set: its description, name to bytes, archive, images and labels."""
    official = data._CIFAR[request.param]
    content, images, labels = {}, [], []
    for number, file in enumerate((*official.train, official.test)):
        m = 2 + number
        image = rng.integers(256, size=(m, 3, 32, 32), dtype=np.uint8)
        label = rng.integers(10, size=(m, official.label_bytes), dtype=np.uint8)
        rows = [bytes(head) + picture.tobytes() for head, picture in zip(label, image, strict=True)]
        content[file.name] = b"".join(rows)
        images.append(image)
        labels.append(label[:, -1])
    archive = packed(official.folder, {**content, "batches.meta.txt": b"not needed"})
    members = [described(*item) for item in content.items()]
    files = replace(
        official,
        archive=described(official.archive.name, archive),
        train=tuple(members[:-1]),
        test=members[-1],
    )
    monkeypatch.setitem(data._CIFAR, request.param, files)
    return request.param, files, content, archive, images, labels


@pytest.mark.row("L1-04")
def test_digits_match_scikit_learn():
    digits = load("digits")
    pixels, labels = load_digits(return_X_y=True)
    test = range(4, 1797, 5)
    train = sorted(set(range(1797)) - set(test))
    assert_array_equal(digits.x_test * 16, pixels[test])
    assert_array_equal(digits.x_train * 16, pixels[train])
    assert_array_equal(digits.y_test, labels[test])
    assert_array_equal(digits.y_train, labels[train])
    assert (digits.x_train.min(), digits.x_train.max()) == (0, 1)
    assert digits.image_shape == (1, 8, 8)
    assert digits.classes == tuple(str(k) for k in range(10))
    assert (np.bincount(digits.y_test) >= 20).all()


@pytest.mark.row("L1-05")
@pytest.mark.parametrize(("validation", "held"), [(100, 100), (0.25, 360)])
def test_split_partitions_training_and_keeps_test(validation, held):
    digits = load("digits")
    split = digits.split(validation, seed=1)
    assert (len(split.train), len(split.validation)) == (1438 - held, held)
    together = np.concatenate([split.train.x, split.validation.x])
    labels = np.concatenate([split.train.y, split.validation.y])
    together, original = (
        sorted(row.tobytes() + bytes([y]) for row, y in zip(x, ys, strict=True))
        for x, ys in ((together, labels), (digits.x_train, digits.y_train))
    )
    assert together == original
    assert_array_equal(split.test.x, digits.x_test)
    same, other = (digits.split(validation, seed=seed).validation.x for seed in (1, 2))
    assert_array_equal(split.validation.x, same)
    assert not np.array_equal(same, other)


def test_subset_draws_without_replacement_and_grows():
    digits, numbers = load("digits"), np.arange(1438)
    x = np.tile(numbers.astype(np.float32)[:, None], 64)
    numbered = replace(digits, x_train=x, y_train=numbers)
    small, large = numbered.subset(100), numbered.subset(400)
    assert len(set(small.y_train)) == 100
    assert set(small.y_train) <= set(large.y_train)
    assert_array_equal(small.x_train[:, 0], small.y_train)
    assert_array_equal(small.y_test, digits.y_test)
    assert len(digits.subset(10, test=20, seed=1).y_test) == 20
    assert not np.array_equal(small.y_train, numbered.subset(100, seed=1).y_train)
    assert isinstance(small, Dataset)


def test_root_prefers_argument_then_variable_then_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("OPTDL_DATA", str(tmp_path / "variable"))
    assert data._root(tmp_path) == tmp_path
    assert data._root("~/data") == Path.home() / "data"
    assert data._root(None) == tmp_path / "variable"
    monkeypatch.delenv("OPTDL_DATA")
    assert data._root(None) == Path(pooch.os_cache("optdl"))


@pytest.mark.parametrize("place", ["mnist", "MNIST/raw"])
def test_mnist_is_read_from_either_place(mnist, tmp_path, monkeypatch, place):
    files, (x_train, y_train, x_test, y_test) = mnist
    write(tmp_path / place, files)
    monkeypatch.setenv("OPTDL_DATA", str(tmp_path))
    got = load("mnist")
    assert got.image_shape == (1, 4, 3)
    expected = x_train.reshape(5, 12) / 255
    assert_allclose(got.x_train, expected, rtol=1e-7)
    assert_allclose(got.x_test.reshape(-1, 4, 3) * 255, x_test, rtol=1e-6)
    assert_array_equal(got.y_train, y_train)
    assert_array_equal(got.y_test, y_test)
    assert (got.x_train[0, 0], got.x_train[0, 1]) == (0.0, 1.0)
    assert (got.x_train.dtype, got.y_train.dtype) == (np.float32, np.int64)


def check_cifar(got, files, images, labels):
    train, test = (
        np.rint(x.reshape(-1, *got.image_shape) * 255) for x in (got.x_train, got.x_test)
    )
    assert_array_equal(train, np.concatenate(images[:-1]))
    assert_array_equal(test, images[-1])
    assert_array_equal(got.y_train, np.concatenate(labels[:-1]))
    assert_array_equal(got.y_test, labels[-1])
    assert got.classes == files.classes


def test_cifar_downloads_once_and_extracts_missing_members(cifar, served, tmp_path, monkeypatch):
    name, files, content, archive, images, labels = cifar
    folder, address, asked = served
    mine, packed = tmp_path / files.folder / files.train[0].name, tmp_path / files.archive.name
    refusal(FileNotFoundError, name, tmp_path, mine, packed)
    (folder / files.archive.name).write_bytes(archive)
    url = address + files.archive.name
    monkeypatch.setitem(data._CIFAR, name, replace(files, url=url))
    write(mine.parent, {mine.name: content[mine.name]})
    os.utime(mine, (1, 1))
    for _ in range(2):
        check_cifar(load(name, tmp_path), files, images, labels)
    assert len(asked) == 1
    # only what is needed, nothing left over; what was there is not touched, and the archive stays
    assert {path.name for path in mine.parent.iterdir()} == set(content)
    assert mine.stat().st_mtime == 1
    assert packed.read_bytes() == archive


def test_interrupted_extraction_leaves_no_part(cifar, tmp_path, monkeypatch):
    name, files, content, archive, images, labels = cifar
    (tmp_path / files.archive.name).write_bytes(archive)
    extract, calls = tarfile.TarFile.extract, []

    def interrupted(self, member, *args, **kwargs):
        calls.append(member)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return extract(self, member, *args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(tarfile.TarFile, "extract", interrupted)
        with pytest.raises(KeyboardInterrupt):
            load(name, tmp_path)
    left = list((tmp_path / files.folder).iterdir())
    assert [path.read_bytes() for path in left] == [next(iter(content.values()))]
    check_cifar(load(name, tmp_path), files, images, labels)


def test_archive_pointing_outside_is_refused(monkeypatch, tmp_path):
    files = data._CIFAR["cifar100"]
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        link = tarfile.TarInfo(f"{files.folder}/train.bin")
        link.type, link.linkname = tarfile.SYMTYPE, "../../../secret"
        tar.addfile(link)
    evil = buffer.getvalue()
    changed = replace(files, archive=described(files.archive.name, evil))
    monkeypatch.setitem(data._CIFAR, "cifar100", changed)
    (tmp_path / files.archive.name).write_bytes(evil)
    with pytest.raises(tarfile.FilterError):
        load("cifar100", tmp_path)
    assert list((tmp_path / files.folder).iterdir()) == []


def test_mnist_downloads_once_from_first_working_mirror(
    mnist, served, tmp_path, monkeypatch, capfd
):
    files, (x_train, *_) = mnist
    folder, address, asked = served
    write(folder, files)
    monkeypatch.setattr(data, "_MNIST_MIRRORS", (address + "gone/", address))
    assert len(load("mnist", tmp_path / "new").x_train) == len(x_train)
    assert {f.name: f.read_bytes() for f in (tmp_path / "new" / "mnist").iterdir()} == files
    assert "100%" in capfd.readouterr().err
    asked.clear()
    load("mnist", tmp_path / "new")
    assert asked == []


def test_wrong_or_missing_download_is_reported(mnist, served, tmp_path, monkeypatch):
    files, _ = mnist
    folder, address, _ = served
    file, roots = data._MNIST[0], [tmp_path / "mnist", tmp_path / "MNIST" / "raw"]
    places = [root / file.name for root in roots]
    refusal(
        FileNotFoundError, "mnist", tmp_path, file.name, file.md5, f"{file.size} bytes", *places,
        "http://127.0.0.1:9/mirror/", f"put it into {roots[0]}", "OPTDL_DATA",
    )  # fmt: skip
    write(folder, {file.name: files[file.name][:-5]})
    monkeypatch.setattr(data, "_MNIST_MIRRORS", (address,))
    refusal(FileNotFoundError, "mnist", tmp_path, "could not be downloaded", file.md5)
    assert list((tmp_path / "mnist").iterdir()) == []  # what was wrong is deleted


@pytest.mark.parametrize("damage", [lambda c: c[:-7], lambda c: c[:-1] + b"\x01", lambda c: b""])
def test_damaged_file_is_reported_and_kept(mnist, tmp_path, damage):
    def describe(content):
        return f"{len(content)} bytes, md5 {hashlib.md5(content).hexdigest()}"

    files, name = mnist[0], "t10k-images-idx3-ubyte.gz"
    right, wrong = files[name], damage(files[name])
    file = write(tmp_path / "mnist", {**files, name: wrong}) / name
    told = f"expected {describe(right)}", f"got      {describe(wrong)}", "Delete it"
    refusal(ValueError, "mnist", tmp_path, "not the official file", file, *told)
    assert file.read_bytes() == wrong


def test_damaged_archive_or_member_is_refused(cifar, tmp_path):
    name, files, content, archive, *_ = cifar
    path = tmp_path / files.archive.name
    path.write_bytes(archive[:100])
    refusal(ValueError, name, tmp_path, "not the official file")
    assert list(tmp_path.iterdir()) == [path]
    last = files.test.name
    write(tmp_path / files.folder, {**content, last: content[last][:-1]})
    refusal(ValueError, name, tmp_path, f"{last} is not the official file")


def test_official_sizes_follow_from_the_formats():
    for name, classes, per_file in (("cifar10", 10, 10_000), ("cifar100", 100, 50_000)):
        files = data._CIFAR[name]
        record = files.label_bytes + 3072
        assert {file.size for file in files.train} == {per_file * record}
        assert files.test.size == 10_000 * record
        assert list(files.classes) == sorted(set(files.classes))
        assert len(files.classes) == classes
    for file in (*data._MNIST, *data._CIFAR["cifar10"].train, data._CIFAR["cifar100"].test):
        assert len(bytes.fromhex(file.md5)) == 16


@pytest.mark.skipif("OPTDL_DATA" not in os.environ, reason="set OPTDL_DATA to read the real files")
@pytest.mark.parametrize("name", ["mnist", "cifar10"])
def test_official_files_have_published_sizes_and_counts(name):
    root = Path(os.environ["OPTDL_DATA"])
    if not (root / {"mnist": "mnist", "cifar10": "cifar-10-batches-bin"}[name]).exists():
        pytest.skip(f"{name} is not under OPTDL_DATA")
    got = load(name)
    m, counts = {
        "mnist": (60_000, [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]),
        "cifar10": (50_000, [5000] * 10),
    }[name]
    assert got.x_train.shape == (m, np.prod(got.image_shape))
    assert len(got.x_test) == 10_000
    assert np.bincount(got.y_train).tolist() == counts
