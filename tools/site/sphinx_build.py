"""Run Jupyter Book's build of the site as strictly as Sphinx can, with several processes.

``python -m tools.site.sphinx_build SOURCE OUT JOBS``: Jupyter Book's own command has no option for
the number of processes. This one waits for the word ``build`` on the standard input, so that it can
import Sphinx and its extensions while the pages are executed; nothing is built without that word.
Where no site is yet, all pages are written. The exit status is not 0 if anything warned.
"""

import functools
import gc
import importlib
import sys
from pathlib import Path

import pybtex.plugin
from jupyter_book.sphinx import build_sphinx

from tools.layout import configuration, contents

HERE = Path(__file__).resolve().parents[2]
# Each reference asks for its style, and each time all installed packages are searched for it. What
# imports the function later imports this one.
pybtex.plugin.find_plugin = functools.cache(pybtex.plugin.find_plugin)


def build(source: Path, out: Path, jobs: int) -> int:
    """Build the site of ``source`` in ``out/_build/html``; return Sphinx's exit status."""
    settings = {
        "external_toc_path": (source / "_toc.yml").as_posix(),
        "latex_individualpages": False,
        "nitpicky": True,
    }
    site = out / "_build" / "html"
    status = build_sphinx(
        source,
        site,
        noconfig=True,
        path_config=source / "_config.yml",
        confoverrides=settings,
        warningiserror=True,
        keep_going=True,
        force_all=not (site / "index.html").is_file(),
        jobs=jobs,
    )
    return status if isinstance(status, int) else 1


if __name__ == "__main__":
    root, target, number = sys.argv[1:]
    # the extensions of the book, and the packages of this tree, whatever is installed
    sys.path[:0] = [str(HERE / "book" / "_ext"), str(HERE / "src")]
    for name in configuration(Path(root))["sphinx"]["config"]["extensions"]:
        importlib.import_module(name)  # before it is needed
    if not Path(target, "_build", "html", "index.html").is_file():  # all pages will be read
        importlib.import_module("api").import_once(None, None, contents(Path(root)))
    gc.freeze()  # the trees of pages are large: a fifth of the time went into looking them through
    gc.set_threshold(50_000)
    is_wanted = sys.stdin.read() == "build"
    sys.exit(build(Path(root), Path(target), int(number)) if is_wanted else 1)
