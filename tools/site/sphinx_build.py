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

if __name__ == "__main__":
    source, out = map(Path, sys.argv[1:3])
    site = out / "_build" / "html"
    is_new = not (site / "index.html").is_file()  # then all pages will be read
    # the extensions of the book, and the packages of this tree, whatever is installed
    sys.path[:0] = [str(HERE / "book" / "_ext"), str(HERE / "src")]
    for name in configuration(source)["sphinx"]["config"]["extensions"]:
        importlib.import_module(name)  # before it is needed
    if is_new:
        importlib.import_module("api").import_once(None, None, contents(source))
    gc.freeze()  # the trees of pages are large: a fifth of the time went into looking them through
    gc.set_threshold(50_000)
    if sys.stdin.read() != "build":
        sys.exit(1)
    toc = (source / "_toc.yml").as_posix()
    status = build_sphinx(
        source,
        site,
        noconfig=True,
        path_config=source / "_config.yml",
        confoverrides={"external_toc_path": toc, "latex_individualpages": False, "nitpicky": True},
        warningiserror=True,
        keep_going=True,
        force_all=not (site / "index.html").is_file(),
        jobs=int(sys.argv[3]),
    )
    sys.exit(status if isinstance(status, int) else 1)
