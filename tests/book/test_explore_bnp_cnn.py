"""The figure of a kernel's entry computes the columns and the statistics that optdl computes."""

import itertools
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_explore import OpenFigure, ask, set_state

from optdl import bnp_cnn

pytestmark = pytest.mark.xdist_group("site")

KERNEL = "kernel-entry"
PAGE = Path(__file__).resolve().parents[2] / "book" / "bnp_cnn" / "statistics.md"


def unrolled(image: np.ndarray, stride: int, padding: int) -> np.ndarray:
    """Return the matrix of windows of torch, one window in each row."""
    torch = pytest.importorskip("torch")
    maps = torch.tensor(image, dtype=torch.float64)[None, None]
    unfolded = torch.nn.functional.unfold(maps, 3, padding=padding, stride=stride)
    return np.asarray(unfolded[0].T)


def maps(page: Any) -> np.ndarray:
    """Return the image as a minibatch of one feature map."""
    return np.array(ask(page, KERNEL, "fig.state.image"), float)[None, None]


def entry(page: Any) -> list[int]:
    """Return the entry that is chosen."""
    return ask(page, KERNEL, "[fig.state.i, fig.state.j]")


@pytest.mark.parametrize("button", ["Back to the beginning", "All pixels 1", "A bright spot"])
def test_the_columns_and_their_statistics_are_those_of_optdl(
    open_figure: OpenFigure, button: str
) -> None:
    page = open_figure(KERNEL)
    page.get_by_role("button", name=button).press("Enter")
    h = maps(page)
    columns = np.array(ask(page, KERNEL, "fig.columns()")).T
    np.testing.assert_allclose(columns, bnp_cnn.convolution_matrix(h, 3), atol=1e-12)
    moments = np.array(ask(page, KERNEL, "fig.moments()"))
    mean, var = bnp_cnn.exact_column_statistics(h, 3)
    np.testing.assert_allclose(moments, np.column_stack([mean, np.sqrt(var)]), atol=1e-6)
    channel_mean, channel_var = bnp_cnn.channel_statistics(h)
    channel = ask(page, KERNEL, "fig.channel()")
    np.testing.assert_allclose(channel, [channel_mean[0], np.sqrt(channel_var[0])], atol=1e-6)
    bound = ask(page, KERNEL, "fig.bound()")
    assert bound == pytest.approx(bnp_cnn.statistics_bound(h, 3)[0])
    assert np.abs(mean - channel_mean).max() <= bound + 1e-12


@pytest.mark.parametrize(("stride", "padding"), [*itertools.product([1, 2], [0, 1, 2])])
def test_every_stride_and_padding_gives_the_windows_of_torch(
    open_figure: OpenFigure, stride: int, padding: int
) -> None:
    page = open_figure(KERNEL)
    page.get_by_role("group", name="Stride").get_by_label(str(stride)).check(force=True)
    words = ["none", "1, keeps the size", "2"][padding]
    page.get_by_role("group", name="zeros").get_by_label(words).check(force=True)
    expected = unrolled(maps(page)[0, 0], stride, padding)
    columns = np.array(ask(page, KERNEL, "fig.columns()"))
    np.testing.assert_allclose(columns.T, expected, atol=1e-12)
    for i, j in itertools.product(range(3), range(3)):
        set_state(page, KERNEL, i=i, j=j)
        column = expected[:, 3 * i + j]
        pixels = len(column) - sum(one["border"] for one in ask(page, KERNEL, "fig.seen()"))
        said = ask(page, KERNEL, "fig.sentence()")
        assert f"Entry ({i}, {j}) meets {len(column)} numbers" in said
        assert f": {pixels} pixel" in said
        assert f"column {1 + 3 * i + j} of" in said
        told = re.search(r"with mean ([\d.]+) and standard deviation ([\d.]+);", said).groups()
        np.testing.assert_allclose(
            np.array(told, float), [column.mean(), column.std()], atol=0.0051
        )
        assert ("bound allows" in said) == (stride == padding == 1)
        assert ("skips every other" in said) == (stride == 2)
        inside = unrolled(np.ones((5, 5)), stride, padding)[:, 3 * i + j].sum()
        assert pixels == inside


def test_the_numbers_that_an_entry_meets_are_lit(open_figure: OpenFigure) -> None:
    page = open_figure(KERNEL)
    set_state(page, KERNEL, i=0, j=1)
    lit = page.locator("svg.ex-plot").nth(0).locator("text.ex-bold").all_text_contents()
    column = bnp_cnn.convolution_matrix(maps(page), 3)[:, 1]
    assert [int(text) for text in lit] == column.astype(int).tolist()
    head, *cells = page.locator("svg.ex-plot").nth(2).locator("text.ex-bold").all_text_contents()
    assert head == "0,1"
    assert [int(text) for text in cells] == column.astype(int).tolist()


def test_entry_column_and_pixel_are_chosen_by_keyboard_and_mouse(open_figure: OpenFigure) -> None:
    page = open_figure(KERNEL)
    kernel = page.get_by_role("slider", name="Entry of the kernel")
    kernel.press("ArrowUp")
    assert entry(page) == [1, 2]
    assert "row 1, column 2" in kernel.get_attribute("aria-valuetext")
    matrix = page.get_by_role("slider", name="Column of the unrolled matrix")
    matrix.press("ArrowRight")
    assert entry(page) == [2, 0]
    matrix.press("Shift+ArrowLeft")
    assert entry(page) == [0, 1]
    matrix.press("Shift+ArrowLeft")
    assert entry(page) == [0, 0]
    box = page.locator("svg.ex-plot").nth(1).bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + 0.8 * box["height"])
    assert entry(page) == [2, 1]
    pixel = page.get_by_role("slider", name="Pixel to change")
    pixel.press("ArrowDown")
    pixel.press("ArrowLeft")
    pixel.press("7")
    assert maps(page)[0, 0, 2, 1] == 7
    assert "row 2, column 1, value 7" in pixel.get_attribute("aria-valuetext")
    page.get_by_role("slider", name="Value of the framed pixel").press("ArrowLeft")
    assert maps(page)[0, 0, 2, 1] == 6
    box = page.locator("svg.ex-plot").nth(0).bounding_box()
    page.mouse.click(box["x"] + 2, box["y"] + 2)  # on the border: the nearest pixel
    assert ask(page, KERNEL, "[fig.state.u, fig.state.v]") == [0, 0]
    page.get_by_role("button", name="Back to the beginning").press("Enter")
    assert maps(page)[0, 0, 2, 1] == 9
    assert entry(page) == [2, 2]


def test_the_tasks_have_the_answers_of_the_page(open_figure: OpenFigure) -> None:
    page, text = open_figure(KERNEL), re.sub(r"\s+", " ", PAGE.read_text("utf-8"))
    image = re.search(r"image = np\.array\((\[\[.*?\]\])\)", text)[1]
    np.testing.assert_array_equal(maps(page)[0, 0], json.loads(image))
    page.get_by_role("button", name="All pixels 1").press("Enter")
    assert "The means differ by 0.36; the bound allows 0.36." in ask(page, KERNEL, "fig.sentence()")
    set_state(page, KERNEL, u=1, v=1)
    page.get_by_role("slider", name="Value of the framed pixel").press("End")
    assert "The means differ by 0.36; the bound allows 3.24." in ask(page, KERNEL, "fig.sentence()")
    assert "The difference comes from the pixels that the corner misses and stays 0.36" in text
    page.get_by_role("group", name="zeros").get_by_label("2").check(force=True)
    moments = np.array(ask(page, KERNEL, "fig.moments()"))
    assert np.ptp(moments, axis=0).max() < 1e-12
    assert "Each entry now meets the whole image and 24 zeros" in text
    assert abs(moments[0] - ask(page, KERNEL, "fig.channel()")).min() > 0.1
