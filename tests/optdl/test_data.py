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
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pooch
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits

from optdl import data
from optdl.data import Dataset, load


def official_address(monkeypatch, address):
    """Take this address for the official one; the first mirror of MNIST has nothing."""
    monkeypatch.setattr(data, "_MNIST_MIRRORS", (address + "gone/", address))
    for name, files in data._CIFAR.items():
        monkeypatch.setitem(data._CIFAR, name, replace(files, url=address + files.archive.name))


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    """Point every official address at a closed port of this machine."""
    official_address(monkeypatch, "http://127.0.0.1:9/")


@pytest.fixture
def served(tmp_path, monkeypatch):
    """Serve a folder at the official address; give the folder, the address and what is asked."""
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
        address = f"http://127.0.0.1:{server.server_port}/"
        official_address(monkeypatch, address)
        yield folder, address, asked
        server.shutdown()
        thread.join()


def described(name: str, content: bytes) -> data._File:
    return data._File(name, len(content), hashlib.md5(content).hexdigest())


def idx(array: np.ndarray) -> bytes:
    head = struct.pack(">BBBB", 0, 0, 8, array.ndim) + struct.pack(f">{array.ndim}I", *array.shape)
    return gzip.compress(head + array.tobytes(), mtime=0)


def packed(members: dict[str, bytes | str]) -> bytes:
    """Return an archive of files with this content, or of links that point there."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            if isinstance(content, str):
                info.type, info.linkname = tarfile.SYMTYPE, content
                tar.addfile(info)
            else:
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


class Official(NamedTuple):
    """A tiny data set in the official format, which optdl takes for the official one."""

    name: str
    folder: str  # below the root
    files: dict[str, bytes]
    downloads: dict[str, bytes]  # the files themselves, or their archive
    expected: Dataset


def tiny_mnist(patch, rng) -> Official:
    arrays = []
    for m in (5, 2):
        arrays += [rng.integers(256, size=(m, 4, 3), dtype=np.uint8)]
        arrays += [rng.integers(10, size=m, dtype=np.uint8)]
    arrays[0][0, 0, :2] = 0, 255
    files = {file.name: idx(array) for file, array in zip(data._MNIST, arrays, strict=True)}
    patch.setattr(data, "_MNIST", tuple(described(*item) for item in files.items()))
    parts = (part if part.ndim == 1 else part.reshape(-1, 12) / 255 for part in arrays)
    expected = dataset("mnist", *parts, (1, 4, 3), tuple("0123456789"))
    return Official("mnist", "mnist", files, files, expected)


def tiny_cifar(patch, rng, name: str) -> Official:
    official = data._CIFAR[name]
    content, images, labels = {}, [], []
    for m, file in enumerate((*official.train, official.test), 2):
        images.append(rng.integers(256, size=(m, 3072), dtype=np.uint8))
        labels.append(rng.integers(10, size=(m, official.label_bytes), dtype=np.uint8))
        content[file.name] = np.column_stack([labels[-1], images[-1]]).tobytes()
    members = {f"{official.folder}/{file}": rows for file, rows in content.items()}
    archive = packed(members | {f"{official.folder}/batches.meta.txt": b"not needed"})
    *train, test = (described(*item) for item in content.items())
    archived = described(official.archive.name, archive)
    files = replace(official, archive=archived, train=tuple(train), test=test)
    patch.setitem(data._CIFAR, name, files)
    parts = (np.concatenate(images[:-1]) / 255, np.concatenate(labels[:-1])[:, -1],
             images[-1] / 255, labels[-1][:, -1])  # fmt: skip
    expected = dataset(name, *parts, (3, 32, 32), official.classes)
    return Official(name, official.folder, content, {archived.name: archive}, expected)


def dataset(name, x_train, y_train, x_test, y_test, *rest) -> Dataset:
    x_train, x_test = (x.astype(np.float32) for x in (x_train, x_test))
    return Dataset(name, x_train, y_train.astype(int), x_test, y_test.astype(int), *rest)


@pytest.fixture(params=["mnist", "cifar10", "cifar100"])
def official(request, monkeypatch, rng) -> Official:
    make = tiny_mnist if request.param == "mnist" else partial(tiny_cifar, name=request.param)
    return make(monkeypatch, rng)


def write(folder: Path, files: dict[str, bytes]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


def read(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}


def assert_loaded(official: Official, root: Path | None) -> None:
    got = vars(load(official.name, root))
    for name, expected in vars(official.expected).items():
        if isinstance(expected, np.ndarray):
            assert got[name].dtype == expected.dtype
            assert_allclose(got[name], expected, rtol=1e-7)
        else:
            assert got[name] == expected


def refusal(error, name, root, *parts):
    """Load a data set, which fails with a message that has all these parts."""
    with pytest.raises(error) as caught:
        load(name, root)
    assert [part for part in map(str, parts) if part not in str(caught.value)] == []


@pytest.mark.row("L1-04")
def test_digits_match_scikit_learn():
    load("digits").x_train[:] = 7  # who changes them changes those of nobody else
    digits = load("digits")
    pixels, labels = load_digits(return_X_y=True)
    test = range(4, 1797, 5)
    train = sorted(set(range(1797)) - set(test))
    assert_array_equal(digits.x_test * 16, pixels[test])
    assert_array_equal(digits.x_train * 16, pixels[train])
    assert_array_equal(digits.y_test, labels[test])
    assert_array_equal(digits.y_train, labels[train])
    assert digits.classes == tuple(str(k) for k in range(10))
    assert (np.bincount(digits.y_test) >= 20).all()


@pytest.fixture
def numbered() -> Dataset:
    """Return the digits with the number of each training example as its pixels and its label."""
    x = np.repeat(np.arange(1438, dtype=np.float32)[:, None], 64, axis=1)
    return replace(load("digits"), x_train=x, y_train=np.arange(1438))


@pytest.mark.row("L1-05")
@pytest.mark.parametrize(("validation", "held"), [(100, 100), (0.25, 360)])
def test_split_partitions_training_and_keeps_test(numbered, validation, held):
    split, same, other = (numbered.split(validation, seed) for seed in (1, 1, 2))
    assert (len(split.train), len(split.validation)) == (1438 - held, held)
    assert sorted([*split.train.y, *split.validation.y]) == [*range(1438)]
    for part in (split.train, split.validation):
        assert_array_equal(part.x[:, 0], part.y)
    assert_array_equal(split.test.x, numbered.x_test)
    assert_array_equal(split.validation.y, same.validation.y)
    assert not np.array_equal(split.validation.y, other.validation.y)


def test_subset_draws_without_replacement_and_grows(numbered):
    small, large, other = (numbered.subset(m, seed=s) for m, s in ((100, 0), (400, 0), (100, 1)))
    assert len(set(small.y_train)) == 100
    assert set(small.y_train) <= set(large.y_train)
    assert_array_equal(small.x_train[:, 0], small.y_train)
    assert_array_equal(small.y_test, numbered.y_test)
    assert not np.array_equal(small.y_train, other.y_train)
    assert len(numbered.subset(10, test=20).y_test) == 20


def test_root_prefers_argument_then_variable_then_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("OPTDL_DATA", str(tmp_path / "variable"))
    assert data._root(tmp_path) == tmp_path
    assert data._root("~/data") == Path.home() / "data"
    assert data._root(None) == tmp_path / "variable"
    monkeypatch.delenv("OPTDL_DATA")
    assert data._root(None) == Path(pooch.os_cache("optdl"))


def test_files_are_read_from_the_folder_or_torchvisions(official, tmp_path, monkeypatch):
    folders = [official.folder, "MNIST/raw"][: 1 + (official.name == "mnist")]
    for root, folder in zip("ab", folders, strict=False):
        write(tmp_path / root / folder, official.files)
        monkeypatch.setenv("OPTDL_DATA", str(tmp_path / root))
        assert_loaded(official, None)


def test_missing_files_are_downloaded_once(served, official, tmp_path, capfd):
    folder, _, asked = served
    write(folder, official.downloads)
    mine, first = tmp_path / official.folder, next(iter(official.files))
    write(mine, {first: official.files[first]})
    os.utime(mine / first, (1, 1))
    assert_loaded(official, tmp_path)
    assert "100%" in capfd.readouterr().err
    asked.clear()
    assert_loaded(official, tmp_path)
    assert asked == []
    # only what is needed, nothing left over; what was there is not touched, and an archive stays
    assert read(mine) == official.files
    assert (mine / first).stat().st_mtime == 1
    assert official.name == "mnist" or read(tmp_path) == official.downloads


def test_wrong_or_missing_download_is_reported(served, official, tmp_path):
    folder, address, _ = served
    is_mnist = official.name == "mnist"
    name, content = next(iter(official.downloads.items()))
    file, put = described(name, content), tmp_path / ("mnist" if is_mnist else "")
    places = [tmp_path / official.folder / next(iter(official.files))]
    places += [tmp_path / ("MNIST/raw" if is_mnist else "") / name]
    refusal(
        FileNotFoundError, official.name, tmp_path, name, file.md5, f"{file.size} bytes", *places,
        address, f"put it into {put}", "OPTDL_DATA",
    )  # fmt: skip
    write(folder, {name: content[:-5]})
    refusal(FileNotFoundError, official.name, tmp_path, "could not be downloaded", file.md5)
    assert not (put / name).exists()  # what was wrong is deleted


@pytest.mark.parametrize("damage", [lambda c: c[:-7], lambda c: c[:-1] + b"\x01", lambda c: b""])
def test_damaged_file_is_reported_and_kept(official, tmp_path, damage):
    def describe(content):
        return f"{len(content)} bytes, md5 {hashlib.md5(content).hexdigest()}"

    *_, (name, right) = official.files.items()
    wrong = damage(right)
    file = write(tmp_path / official.folder, {**official.files, name: wrong}) / name
    told = f"expected {describe(right)}", f"got      {describe(wrong)}", "Delete it"
    refusal(ValueError, official.name, tmp_path, "not the official file", file, *told)
    assert file.read_bytes() == wrong


@pytest.mark.parametrize("name", ["cifar10", "cifar100"])
def test_archive_is_extracted_whole_or_refused(name, tmp_path, monkeypatch, rng):
    official = tiny_cifar(monkeypatch, rng, name)
    [(archive, content)] = official.downloads.items()
    write(tmp_path, {archive: content[:100]})
    refusal(ValueError, name, tmp_path, "not the official file")
    assert read(tmp_path) == {archive: content[:100]}
    write(tmp_path, official.downloads)
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
    assert [*read(tmp_path / official.folder).values()] == [next(iter(official.files.values()))]
    assert_loaded(official, tmp_path)


def test_archive_pointing_outside_is_refused(monkeypatch, tmp_path):
    files = data._CIFAR["cifar100"]
    evil = packed({f"{files.folder}/train.bin": "../../../secret"})
    changed = replace(files, archive=described(files.archive.name, evil))
    monkeypatch.setitem(data._CIFAR, "cifar100", changed)
    write(tmp_path, {files.archive.name: evil})
    with pytest.raises(tarfile.FilterError):
        load("cifar100", tmp_path)
    assert list((tmp_path / files.folder).iterdir()) == []


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
@pytest.mark.parametrize(
    ("name", "folder", "m", "zeros"),
    [("mnist", "mnist", 60_000, 5923), ("cifar10", "cifar-10-batches-bin", 50_000, 5000)],
)
def test_official_files_have_published_sizes_and_counts(name, folder, m, zeros):
    if not (Path(os.environ["OPTDL_DATA"]) / folder).exists():
        pytest.skip(f"{name} is not under OPTDL_DATA")
    y = load(name).y_train
    assert (len(y), np.sum(y == 0)) == (m, zeros)
