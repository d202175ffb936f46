"""Let the site be read without a network: the worker at its root, and what it may keep.

The worker (`sw.js`) keeps the pages that a reader visits and, on demand, the whole course. It
knows from a list the size and the content of each file, so that it never mixes two versions.
"""

import hashlib
import json
import posixpath
import re
from collections import Counter
from pathlib import Path
from urllib.parse import quote

LIST = "_static/offline.json"
VERSION = "_static/version.txt"
WORKER = Path(__file__).with_name("sw.js")
ADDRESS = re.compile(r'\b(?:src|href)="([^"#?:]+)')
URL = re.compile(r"""url\(["']?([^"')#?:]+)""")
ASKED_FOR = ("_static/python/", "_static/explore/", "_static/slides.")
"""How the names of files begin that scripts ask for, whatever the pages name."""


def write(site: Path) -> None:
    """Write the worker of a site, its list of files, and its version."""
    there = {path.relative_to(site).as_posix() for path in site.rglob("*.*") if path.is_file()}
    pages = {name for name in there if name.endswith(".html") and not name.startswith("_static/")}
    named = Counter(name for page in pages for name in _named(site, page, ADDRESS) & there)
    styles = [name for name in named if name.endswith(".css")]
    of_styles = {name for style in styles for name in _named(site, style, URL) & there}
    asked_for = {name for name in there if name.startswith(ASKED_FOR)}
    files = {
        quote(name): [len(content), hashlib.sha256(content).hexdigest()[:16]]
        for name in sorted({*pages, *named, *of_styles, *asked_for})
        for content in [(site / name).read_bytes()]
    }
    # what most pages have in common is kept from the beginning
    core = [name for name in files if named[name] > len(pages) / 2 and not name.endswith(".html")]
    listed = {"core": core, "files": files}
    version = hashlib.sha256(json.dumps(listed).encode()).hexdigest()[:16]
    (site / LIST).write_text(json.dumps({"version": version} | listed), "utf-8")
    (site / VERSION).write_text(version, "utf-8")
    worker = WORKER.read_text("utf-8").replace('VERSION = ""', f'VERSION = "{version}"')
    (site / "sw.js").write_text(worker, "utf-8")


def _named(site: Path, file: str, pattern: re.Pattern[str]) -> set[str]:
    """Return what a page or a style sheet names, as paths from the root of the site."""
    addresses = set(pattern.findall((site / file).read_text("utf-8")))
    return {
        posixpath.normpath(posixpath.join(posixpath.dirname(file), address))
        for address in addresses
    }
