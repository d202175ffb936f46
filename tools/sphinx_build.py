"""Run Jupyter Book's build of the site as strictly as Sphinx can, with several processes.

``python -m tools.sphinx_build SOURCE OUT JOBS [PAGE ...]``: Jupyter Book's own command has no
option for the number of processes, nor for pages that are to be read again because their outputs
have changed. All pages are written. The exit status is not 0 if anything warned.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from jupyter_book.sphinx import build_sphinx


def build(source: Path, out: Path, jobs: int, executed: Sequence[str]) -> int:
    """Build the site of ``source`` in ``out/_build/html``; return Sphinx's exit status."""
    settings = {
        "external_toc_path": (source / "_toc.yml").as_posix(),
        "latex_individualpages": False,
        "nitpicky": True,
        "executed_pages": list(executed),
    }
    status = build_sphinx(
        source,
        out / "_build" / "html",
        noconfig=True,
        path_config=source / "_config.yml",
        confoverrides=settings,
        warningiserror=True,
        keep_going=True,
        force_all=True,
        jobs=jobs,
    )
    return status if isinstance(status, int) else 1


if __name__ == "__main__":
    root, target, number, *pages = sys.argv[1:]
    sys.exit(build(Path(root), Path(target), int(number), pages))
