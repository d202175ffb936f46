"""Folders of images against arrays whose every pixel is known."""

from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from PIL import Image
from scipy import stats

from optdl.data import Examples
from optdl.images import MEAN, STD, ImageFolder, PadCropFlip, StreamedImages
from optdl.networks import cnn5, resnet18
from optdl.training import train


def pattern(width: int, height: int) -> np.ndarray:
    """Return an image in which every pixel tells where it is."""
    x, y = np.meshgrid(np.arange(width), np.arange(height))
    return np.stack([x, y, (x + y) % 256], axis=2).astype(np.uint8)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a folder with two classes and three images."""
    for name, size in {"cat/a.png": (64, 64), "cat/b.PNG": (96, 64), "dog/c.png": (64, 80)}.items():
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        Image.fromarray(pattern(*size)).save(file, format="png")
    (tmp_path / "dog" / "notes.txt").write_text("no image")
    return tmp_path


def pixels(image: torch.Tensor) -> np.ndarray:
    """Undo the normalization."""
    values = image.numpy().transpose(1, 2, 0) * STD + MEAN
    return np.rint(255 * values).astype(int)


@pytest.mark.row("P-28")
@pytest.mark.parametrize(("index", "left", "top"), [(0, 4, 4), (1, 20, 4), (2, 4, 12)])
def test_center_crop_has_the_right_scale(root: Path, index: int, left: int, top: int) -> None:
    # 56 · 8/7 = 64: these images are not scaled, so every pixel is where the pattern has it
    images = ImageFolder(root, 56)
    assert images.classes == ("cat", "dog")
    assert [file.name for file in images.files] == ["a.png", "b.PNG", "c.png"]
    image, label = images[index]
    assert (image.shape, image.dtype) == ((3, 56, 56), torch.float32)
    width, height = [(64, 64), (96, 64), (64, 80)][index]
    expected = pattern(width, height)[top : top + 56, left : left + 56]
    assert_array_equal(pixels(image), expected)
    assert label == [0, 0, 1][index]


@pytest.mark.row("P-28")
def test_training_crops_everywhere_and_mirrors_half(root: Path) -> None:
    images = ImageFolder(root, 56, train=True)
    seen, mirrored = set(), 0
    for images.epoch in range(200):
        window = pixels(images[1][0])
        flipped = window[0, 0, 0] > window[0, -1, 0]
        window = window[:, ::-1] if flipped else window
        left, top = window[0, 0, :2]
        assert_array_equal(window, pattern(96, 64)[top : top + 56, left : left + 56])
        seen.add((left, top))
        mirrored += flipped
    assert {left for left, _ in seen} >= {0, 40}
    assert {top for _, top in seen} == set(range(9))
    assert 70 < mirrored < 130  # a fair coin leaves this range once in 50 000 times


@pytest.mark.row("P-28")
def test_draws_depend_on_seed_epoch_and_image(root: Path) -> None:
    one, other = ImageFolder(root, 56, train=True), ImageFolder(root, 56, train=True)
    _ = other[0], other[2]
    assert torch.equal(one[1][0], other[1][0])
    different = ImageFolder(root, 56, train=True, seed=1)
    assert not torch.equal(one[1][0], different[1][0])
    other.epoch = 1
    assert not torch.equal(one[1][0], other[1][0])


@pytest.mark.row("P-28")
def test_large_gray_image_becomes_scaled_rgb(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    Image.fromarray(np.full((512, 1024), 128, np.uint8)).save(tmp_path / "one" / "x.png")
    images = ImageFolder(tmp_path, 224)
    assert images._scaled(images.files[0]).size == (512, 256)
    assert_array_equal(pixels(images[0][0]), np.full((224, 224, 3), 128))


def test_missing_or_broken_images_are_reported(tmp_path: Path, root: Path) -> None:
    (tmp_path / "empty" / "cat").mkdir(parents=True)
    (root / "cat" / "a.png").write_bytes(b"half an image")
    for error, message, folder, size in (
        (FileNotFoundError, r"there is no folder .*nowhere", tmp_path / "nowhere", 56),
        (FileNotFoundError, "one folder for each class, and found .*'cat'", tmp_path / "empty", 56),
        (ValueError, "size must be 1 pixel or more; got 0", root, 0),
        (ValueError, r"a\.png is not an image that can be read", root, 56),
    ):
        with pytest.raises(error, match=message):
            _ = ImageFolder(folder, size)[0]


@pytest.mark.row("P-27")
def test_padded_crops_match_numpy(rng: np.random.Generator) -> None:
    images = rng.normal(size=(50, 3, 8, 6)).astype(np.float32)
    augmentation = PadCropFlip(2)
    draws = augmentation.draw(50, torch.Generator().manual_seed(0))
    found = augmentation(torch.from_numpy(images), draws).numpy()
    for image, part, (top, left, mirrored) in zip(images, found, draws.tolist(), strict=True):
        cut = np.pad(image, ((0, 0), (2, 2), (2, 2)))[:, top : top + 8, left : left + 6]
        assert_array_equal(part, cut[:, :, ::-1] if mirrored else cut)


@pytest.mark.row("P-27")
def test_crops_and_mirrors_are_drawn_uniformly() -> None:
    draws = PadCropFlip(4).draw(90_000, torch.Generator().manual_seed(1))
    for column, count in ((0, 9), (1, 9), (2, 2)):
        found = torch.bincount(draws[:, column])
        assert len(found) == count
        assert stats.chisquare(found).pvalue > 1e-4


@pytest.mark.row("P-28")
def test_streamed_images_match_the_folder(root: Path) -> None:
    folder = ImageFolder(root, 56, train=True)
    stream = StreamedImages(folder, threads=2)
    assert (len(stream), stream.y.tolist()) == (3, [0, 0, 1])
    stream.begin(2)
    for place, row in enumerate((2, 0)):
        assert torch.equal(stream[torch.tensor([2, 0])][place], folder[row][0])
    other = StreamedImages(ImageFolder(root, 48, train=True))
    assert stream.identity() == StreamedImages(ImageFolder(root, 56, train=True)).identity()
    assert stream.identity() != other.identity()


@pytest.mark.row("P-28")
def test_training_on_streamed_images_matches_pixels(root: Path, tmp_path: Path) -> None:
    folder = ImageFolder(root, 32)  # the middle ones: the same in every epoch
    pixels = torch.stack([folder[row][0] for row in range(3)]).numpy()
    records = []
    for examples in (StreamedImages(folder), Examples(pixels, np.array(folder.labels))):
        model = cnn5(3, 32, 2, seed=1)
        sgd = torch.optim.SGD(model.parameters(), lr=0.01)
        file = tmp_path / f"{type(examples).__name__}.pt"
        options = {"epochs": 2, "batch_size": 3, "validation": examples, "checkpoint": file}
        records.append(train(model, examples, sgd, **options))
    assert records[0].curves.keys() == records[1].curves.keys()
    for name, values in records[0].curves.items():
        assert_allclose(values, records[1].curves[name], rtol=1e-4, err_msg=name)
    with pytest.raises(ValueError, match="training examples"):
        train(model, StreamedImages(ImageFolder(root, 40)), sgd, **options)
    cropped = ImageFolder(root, 32, train=True)  # anew in each epoch
    train(model, StreamedImages(cropped), sgd, epochs=3, batch_size=3)
    assert cropped.epoch == 3
    assert resnet18(2).eval()(cropped[0][0][None]).shape == (1, 2)
    files = folder.files
    folder.keep(2)
    assert folder.files == (files[0], files[2])
    assert folder.labels == (0, 1)
