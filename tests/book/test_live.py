"""Pages that compute: what a run in the browser shows is what the build has printed."""

import json
import re

import pytest

pytestmark = pytest.mark.xdist_group("live")

NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")
PREPARE = """document.head.insertAdjacentHTML("afterbegin",
  "<base href='../../'><style>article { display: none !important }</style>")"""
"""Pages are compared, not looked at: none is laid out."""
VISIT = """async ([address, name]) => {
  const { Live } = await import(document.baseURI + "_static/python/live.js");
  const other = new DOMParser().parseFromString(await (await fetch(address)).text(), "text/html");
  document.querySelector("article").replaceWith(other.querySelector("article"));
  const seen = () => [...document.querySelectorAll(".cell_output pre, [data-number]")].map(
    part => part.textContent.trim());
  const labels = async image => image.src && [...(await (await fetch(image.src)).text()
    ).matchAll(/<!-- (.*?) -->/g)].map(found => found[1]);
  const drawn = () => Promise.all([...document.querySelectorAll(".cell_output img")].map(labels));
  const base = new URL(address, document.baseURI);
  for (const image of document.querySelectorAll(".cell_output img"))
    image.src = new URL(image.getAttribute("src"), base).href;
  const before = [seen(), await drawn()];
  const live = new Live(document.querySelector(".run-page button"), name);
  await live.run(0);
  return [before, [seen(), await drawn()], live.said.textContent];
}"""


RAISED = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹−", "-0123456789-")


def same(printed: str, shown: str) -> bool:
    """Tell whether two texts agree, their numbers to six digits; the smallest are rounding."""
    plain = [text.translate(RAISED).replace("·10", "e") for text in (printed, shown)]
    if len({NUMBER.sub("#", text) for text in plain}) > 1:
        return False
    values = [[float(number.replace(",", "")) for number in NUMBER.findall(text)] for text in plain]
    return values[0] == pytest.approx(values[1], rel=1e-6, abs=1e-11)


@pytest.mark.parametrize("every", [8, pytest.param(1, marks=pytest.mark.slow)])
def test_pages_compute_what_was_printed(site, tabs, python_server, every):
    """Of texts, numbers and figures 98 % are equal; a page with others says why."""
    page = tabs()
    page.goto(python_server.at("book/optimizers/momentum"))
    page.evaluate(PREPARE)
    parts, differing, failed = 0, 0, {}
    files = sorted((site / "_static" / "python" / "pages").glob("*.json"))
    assert len(files) > 50
    ways = [path.relative_to(site).with_suffix("") for path in site.glob("book/**/*.html")]
    named = {
        "-".join(way.parts[1:]).removesuffix("-index"): f"{way.as_posix()}.html" for way in ways
    }
    for file in files[::every]:
        before, now, said = page.evaluate(VISIT, [named[file.stem], file.stem])
        assert [*map(len, before)] == [*map(len, now)], file.stem
        shown = [[str(part) for kind in each for part in kind] for each in (before, now)]
        wrong = [(old, new) for old, new in zip(*shown, strict=True) if not same(old, new)]
        parts, differing = parts + len(shown[0]), differing + len(wrong)
        excused = bool(json.loads(file.read_text("utf-8"))["notes"])
        if (wrong and not excused) or not said.startswith("Computed") or "no longer" in said:
            failed[file.stem] = said, wrong
    assert not failed, json.dumps(failed, ensure_ascii=False, indent=1)
    assert differing < 0.02 * parts


def test_a_reader_turns_a_knob(tabs, python_server):
    """Figure, numbers and statements follow; an error is named; as printed, all is back."""
    page = tabs(reduced_motion="reduce")
    outputs, field = page.locator(".cell_output"), page.locator(".cell .cm-content:visible").first

    def said(text: str) -> None:
        script = "text => document.querySelector('.live-bar span')?.textContent.includes(text)"
        page.wait_for_function(script, arg=text, timeout=120_000)

    def press(name: str) -> None:
        page.get_by_role("button", name=name).first.press("Enter")

    def computed(name: str) -> None:
        said(f"with {page.get_by_role('group', name=name).locator('output').text_content()}")

    def add(line: str) -> None:
        field.press("Control+End")
        page.keyboard.insert_text(f"\n{line}")
        field.press("Control+Enter")

    page.goto(python_server.at("book/optimizers/noise"))
    page.evaluate("localStorage['optdl:page:optimizers-noise'] = '[1, \"damaged\"]'")
    press("Run this page")
    said("as it is printed")
    before = outputs.all_inner_texts()
    # the generator of these draws is made in another cell
    press("next value of noise")
    computed("noise")
    assert page.locator("[data-number].live-changed").count()
    assert outputs.all_inner_texts() != before
    press("previous value of noise")
    said("as it is printed")
    assert outputs.all_inner_texts() == before

    page.goto(python_server.at("book/quadratic/eigendirections"))
    numbers, before = page.locator("[data-number]"), outputs.all_inner_texts()
    press("Run this page")
    said("as it is printed")
    add("del pixels")  # a name of the verdict
    said("2 of 2 statements no longer hold")
    assert page.locator(".live-fallen").count()
    add("del quadratic.eigenbasis; 1 / 0")  # a part of a module
    said("ZeroDivisionError in line")
    press("As printed")
    said("As printed.")
    assert outputs.all_inner_texts() == before
    assert not page.locator(".live-changed").count()
    assert page.evaluate("document.activeElement.matches('.live-bar')")
    page.evaluate("localStorage['optdl:page:quadratic-eigendirections'] = '{\"other\": \"tab\"}'")
    press("next value of pair")
    said("Cell 4")
    press("next value of pair")  # while the page runs with the first one
    computed("pair")
    assert "other" in page.evaluate("localStorage['optdl:page:quadratic-eigendirections']")
    shown = numbers.all_text_contents()  # those of captions, too
    page.reload()
    press("Run this page")
    computed("pair")  # what was changed is kept
    assert numbers.all_text_contents() == shown
