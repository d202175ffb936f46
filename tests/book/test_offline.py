"""What was visited opens without a network, and no page ever has files of two versions."""

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from serving import Server

from tools.layout import ROOT
from tools.site import offline

pytestmark = pytest.mark.xdist_group("toy")

PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{name}</title>
<link rel="icon" href="data:,"><link rel="stylesheet" href="_static/site.css">
<script defer src="_static/page.js"></script><script defer src="_static/offline.js"></script>
<script defer src="_static/python/start.js"></script></head>
<main><h1>{version}</h1><textarea aria-label="answer"></textarea>{more}
<div style="height: 9000px"></div>
<img loading="lazy" alt="a figure" src="_images/{name}-{version}.svg"></main></html>"""
PANEL = (
    (ROOT / "book" / "students.md").read_text("utf-8").split("```{raw} html\n")[1].split("```")[0]
)
PANEL = PANEL.replace("../_static", "_static")
PICTURE = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><!--{}--></svg>'
PAGES = ("index", "first", "second", "third", "students")


def build(site: Path, version: str) -> None:
    """Write a site of a few pages, in which each file tells its version."""
    shutil.rmtree(site, ignore_errors=True)
    files: dict[str, str | bytes] = {
        "notes.ipynb": version,
        "_static/site.css": f'h1 {{ --version: "{version}"; }}',
        "_static/page.js": f'window.script = "{version}";',
        "_static/python/start.js": "",
        "_static/python/exercise.js": f'export default "{version}";',
        f"_static/python/python-{version}.gz": os.urandom(200_000),
    }
    for name in PAGES:
        more = PANEL if name == "students" else '<a href="notes.ipynb">Notebook</a>'
        files[f"{name}.html"] = PAGE.format(name=name, version=version, more=more)
        files[f"_images/{name}-{version}.svg"] = PICTURE.format(version)
    for name in ("_static/offline.js", "_static/keep.js", "_static/python/kernel.js"):
        files[name] = (ROOT / "book" / name).read_bytes()
    for name, content in files.items():
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    offline.write(site)
    # Times are told in whole seconds, and a browser takes an old file for a fresh one without
    # asking, for as long as a tenth of its age: the first version is old, the second one is not.
    now = time.time() + {"one": -60, "two": 3600}[version]
    for path in site.rglob("*.*"):
        os.utime(path, (now, now))


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    build(tmp_path / "course", "one")
    with Server(tmp_path / "course", "/course/") as server:
        yield server


@pytest.fixture
def visit(tabs: Callable[..., Any], server: Server) -> Callable[..., Any]:
    """Return a function that opens a page in a new tab of the same browser."""
    context = tabs(service_workers="allow").context

    def opened(name: str) -> Any:
        page = context.new_page()
        page.goto(server.at(name))
        return page

    return opened


KEPT = """async () => {
  const addresses = [];
  for (const name of await caches.keys())
    for (const { url } of await (await caches.open(name)).keys()) addresses.push(url);
  return addresses;
}"""


def wait_until(page: Any, condition: str, arg: Any) -> None:
    """Wait until all that the browser keeps, as addresses, is as a function of the page says."""
    page.evaluate(
        f"""async arg => {{
          const end = performance.now() + 60_000;  // only what hangs takes so long
          for (let kept; !({condition})(kept = await ({KEPT})(), arg); ) {{
            if (performance.now() > end) throw new Error(kept);
            await new Promise(go => setTimeout(go, 20));
          }}
        }}""",
        arg,
    )


def wait_until_kept(page: Any, *names: str) -> None:
    condition = "(kept, names) => names.every(name => kept.some(one => one.includes(name)))"
    wait_until(page, condition, list(names))


def versions(page: Any) -> set[str]:
    """Return the versions of what a page has: its text, its style, its scripts, its picture."""
    return set(
        page.evaluate(
            """async () => {
              const picture = document.querySelector("img");
              picture.loading = "eager";
              await picture.decode();
              const late = await import(new URL("_static/python/exercise.js", document.baseURI));
              const title = document.querySelector("h1");
              const style = getComputedStyle(title).getPropertyValue("--version");
              return [title.textContent, style.slice(1, -1), window.script, late.default];
            }"""
        )
    )


def test_visited_page_opens_without_a_network(server, visit):
    page = visit("first")
    wait_until_kept(page, "first.html?", "first-one.svg?", "exercise.js?")
    server.stop()
    page.reload()
    assert versions(page) == {"one"}
    page.goto(f"{server.at('first')}?a=question#there")
    assert versions(page) == {"one"}
    page.goto(server.at("second"))
    assert page.inner_text("h1") == "This page is not kept on this device"
    page.click("a")  # to the beginning, which was not visited either
    page.wait_for_url("**/course/")
    server.start()
    page.reload()
    assert versions(page) == {"one"}


def test_new_version_leaves_an_open_exercise_alone(server, visit):
    exercise, other = visit("first"), visit("second")
    wait_until_kept(other, "first.html?", "first-one.svg?", "second-one.svg?", "exercise.js?")
    exercise.reload()  # the worker is there now
    exercise.locator("textarea").press_sequentially("my answer")
    build(server.site, "two")
    list_of_two = json.loads((server.site / offline.LIST).read_text("utf-8"))
    # the next page is new at once, kept or not, before the new worker is there and after that
    for name in ("second", "third"):
        other.goto(server.at(name))
        assert versions(other) == {"two"}
    wait_until_kept(other, f"{offline.LIST}?{list_of_two['version']}")
    other.goto(server.at("second"))
    assert versions(other) == {"two"}
    # without a network the old version opens, and its worker leaves alone what the new one has kept
    server.stop()
    other.goto(server.at("first"))
    assert versions(other) == {"one"}
    other.evaluate(
        """async () => {
          const { port1, port2 } = new MessageChannel();
          const done = new Promise(go => (port1.onmessage = go));
          const { active } = await navigator.serviceWorker.ready;
          active.postMessage({ visited: [location.href] }, [port2]);
          await done;
        }"""
    )
    assert any(list_of_two["version"] in address for address in other.evaluate(KEPT))
    server.start()
    # the exercise goes on with what it began with, also what it asks for only now
    assert versions(exercise) == {"one"}
    assert exercise.input_value("textarea") == "my answer"
    exercise.goto(server.at("third"))
    assert versions(exercise) == {"two"}
    # when no page is open, the new worker takes over: it keeps what was visited, and drops the old
    # (a page outside the course sees it; one that is opened at that very moment can be lost)
    outside = exercise.context.new_page()
    outside.goto(server.at("third").replace("/course/", "/"))
    exercise.close()
    other.close()
    outside.wait_for_function(
        """async () => {
          const [{ waiting, active }] = await navigator.serviceWorker.getRegistrations();
          return !waiting && active.state === "activated";
        }"""
    )
    reader = visit("third")
    reader.reload()
    wait_until_kept(reader, "first-two.svg?", "second-two.svg?", "third-two.svg?")
    known = [f"{name}?{version}" for name, (_, version) in list_of_two["files"].items()]
    wait_until(
        reader,
        """(kept, known) => kept.map(address => address.split("/course/")[1])
          .filter(one => !one.startsWith("?")).every(one => known.includes(one))""",
        [f"{offline.LIST}?{list_of_two['version']}", *known],
    )
    server.stop()
    for name in ("first", "second", "third"):
        reader.goto(server.at(name))
        assert versions(reader) == {"two"}, name


def test_whole_course_can_be_kept_and_removed(server, visit):
    page = visit("students")
    wait_until_kept(page, "students-one.svg?")
    page.reload()
    button = page.get_by_role("button", name="Keep the whole course on this device (0.2 MB)")
    button.click()
    page.get_by_text("The whole course is kept on this device (0.2 MB).").wait_for()
    # the parts of Python are kept once, where the exercises look for them
    kept = page.evaluate(KEPT)
    assert [address.rsplit("/", 1)[1] for address in kept if ".gz" in address] == ["python-one.gz"]
    ask = """import("./_static/python/kernel.js").then(kernel => kernel.isKept({
      python: { file: "python-one.gz", bytes: 1, type: "" } }))"""
    assert page.evaluate(ask)
    shown = {path for path in server.site.rglob("*.*") if path.is_file()}
    own = {server.site / name for name in ("sw.js", offline.LIST, offline.VERSION)}
    paths = {path.relative_to(server.site).as_posix() for path in shown - own}
    assert {address.split("/course/")[1].split("?")[0] for address in kept} - {""} >= paths
    server.stop()
    reader = visit("second")
    assert versions(reader) == {"one"}
    reader.goto(server.at("students"))
    reader.get_by_role("button", name="Remove what is kept (0.2 MB)").click()
    reader.get_by_text("Nothing is kept any more").wait_for()
    reader.goto(server.at("third"))
    assert reader.inner_text("h1") == "This page is not kept on this device"
    assert not any(".gz" in address for address in reader.evaluate(KEPT))
    server.start()


def test_full_storage_is_reported_and_harms_no_page(server, visit):
    page = visit("students")
    wait_until_kept(page, "students-one.svg?")
    session = page.context.new_cdp_session(page)
    origin = page.evaluate("location.origin")
    session.send("Storage.overrideQuotaForOrigin", {"origin": origin, "quotaSize": 100_000})
    page.reload()
    page.get_by_role("button", name="Keep the whole course").click()
    page.get_by_text("There is no more room on this device.").wait_for()
    page.goto(server.at("second"))
    assert versions(page) == {"one"}
    # where the browser tells how much room it has, nothing is begun that cannot be finished
    room = "navigator.storage.estimate = async () => ({ quota: 1.5e5, usage: 5e4 })"
    page.add_init_script(room)
    page.goto(server.at("students"))
    page.get_by_role("button", name="Keep the whole course").click()
    said = "There is no room: this browser has 0.1 MB for this site, and 0.2 MB are needed."
    page.get_by_text(said).wait_for()


BLOCKED = """Object.defineProperty(Navigator.prototype, "serviceWorker", { get() {
  throw new DOMException("storage is blocked", "SecurityError"); } });"""


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("blocked", "This browser keeps nothing of this site"),
        ("file", "the course is on your device already"),
        ("changed", "This browser keeps nothing of this site"),
    ],
)
def test_page_says_why_nothing_can_be_kept(server, tabs, how, message):
    page, errors = tabs(script=BLOCKED * (how == "blocked"), service_workers="allow"), []
    if how == "changed":  # by the server, on the way: no version could be told from another one
        (server.site / "_static" / "page.js").write_text('window.script="one"')
    page.on("console", lambda line: errors.append(line.text) if line.type == "error" else None)
    page.goto((server.site / "students.html").as_uri() if how == "file" else server.at("students"))
    page.get_by_text(message).wait_for()
    assert page.locator("#keep-course button:visible").count() == 0
    assert errors == []
