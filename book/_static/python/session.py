"""Run the cells of a page, and say in plain data what came of each."""

import ast
import builtins
import importlib
import json
import linecache
import re
import sys
import traceback
import zipimport
from pathlib import Path

NAMES = {"__name__": "__main__", "__builtins__": builtins}
"""The names of the page's cells, which share them as the cells of a notebook do."""

ELSEWHERE = "What needs more runs in JupyterLab."

LACKING = (
    "What needs more than NumPy, matplotlib and the course without PyTorch runs in JupyterLab: "
    "this page's Python has no module named "
)
"""Begins what Python says of a module that it does not find, in a cell and in a check alike."""


def main():
    """Do what the request asks, and write the answer."""
    request = json.loads(Path("/request.json").read_text(encoding="utf-8"))
    action = request.pop("action")
    if action == "cell":
        import page  # where a page runs, and not where an exercise alone is solved

        answer = page.cell(**request)
    else:
        answer = {"begin": begin, "extend": extend, "run": run}[action](**request)
    sys.stdout.flush()
    Path("/answer.json").write_text(json.dumps(answer), encoding="utf-8")


def begin(modules=()):
    """Import what the first check needs."""
    sys.modules["__main__"].__dict__.update(NAMES)
    builtins.input = refuse_input
    importlib._bootstrap._ERR_MSG_PREFIX = LACKING
    for module in modules:
        __import__(module)
    return {"status": "ok", "version": sys.version.split()[0]}


def extend(archive, folder):
    """Unpack the modules for figures, and draw in the style of the course."""
    packed = zipimport.zipimporter(archive)
    for name in packed.get_data(f"{archive}/FILES").decode().split("\n"):
        path = Path(folder) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(packed.get_data(f"{archive}/{name}"))
    Path(archive).unlink()
    sys.path.append(folder)
    importlib.invalidate_caches()
    import logging

    from optdl.plotting import use_style

    use_style()
    # a font for formulas that is not here has a good substitute
    logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)
    return {"status": "ok"}


def refuse_input(prompt=""):
    """Say that nobody can answer."""
    raise RuntimeError("input() does not work on this page: write the value into the code.")


def run(cells, names=NAMES):
    """Run cells one after the other, up to the first error; a cell is a name and its source."""
    error, name = None, ""
    for name, source in cells:
        if error := execute(name, source, names):
            break
    images, problem = figures(f"<{name}>")
    error = error or problem
    if error:
        missing = re.search(f"{LACKING}'(.*?)'", error["text"])
        error["missing"] = missing and missing[1]
        return {"status": "error", "cell": name, **error, "figures": images}
    return {"status": "ok", "figures": images}


def execute(name, source, names):
    """Run one cell, print the value of a last expression, and return what its error was."""
    filename = f"<{name}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    try:
        tree = ast.parse(source, filename)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, filename, "exec"), names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), filename, "eval"), names)
            show(None if source.rstrip().endswith(";") else value, names)
    except BaseException as error:
        return describe(error, filename)
    return None


def show(value, names):
    """Print a value as a notebook does; what a plot returns is in the figure."""
    parts = value if isinstance(value, list | tuple) else [value]
    plotted = any(type(part).__module__.startswith("matplotlib.") for part in parts)
    if value is not None and not plotted:
        names["_"] = value
        print(repr(value))


def describe(error, filename):
    """Return the kind of an error, its text, and the line of the cell."""
    kind = type(error).__name__
    if kind in ("CheckFailed", "Stopped"):
        return {"kind": kind, "text": str(error), "line": None}
    if isinstance(error, SystemExit):
        text = "SystemExit: the cell asked Python to end; its names are still here."
        return {"kind": kind, "text": text, "line": None}
    line = error.lineno if isinstance(error, SyntaxError) and error.filename == filename else None
    trace = None if isinstance(error, RecursionError) else error.__traceback__
    frames = traceback.extract_tb(trace, limit=-60)
    own = [frame for frame in frames if frame.filename == filename]
    if own:
        line = own[-1].lineno
        frames = frames[frames.index(own[0]) :]
    else:
        frames = []  # Python could not read the cell: all frames are those of this page
    last = traceback.format_exception_only(error)
    if isinstance(error, SyntaxError) and not own:
        last = [text for text in last if not text.startswith("  File ")]
    if sentence := lacking(error, frames):
        last[-1] = f"{kind}: {sentence}\n"
    text = "".join(traceback.format_list(frames[-8:]) + last)
    return {"kind": kind, "text": text[-6000:], "line": line}


def lacking(error, frames):
    """Say what this page's Python lacks, and where it is; Python's own advice is for a terminal."""
    command = isinstance(error, SyntaxError) and re.match(r"\s*([%!]+\w+)", error.text or "")
    if command:
        return f"{command[1]} is a command of Jupyter, and this page has Python alone. {ELSEWHERE}"
    if isinstance(error, SyntaxError) and "await" in error.msg:
        return f"await stands only inside an async function on this page. {ELSEWHERE}"
    if "start new thread" in str(error):
        return f"This page's Python has one thread: call the function itself. {ELSEWHERE}"
    if any(re.search(r"/(urllib|http|socket)\b", frame.filename) for frame in frames):
        return f"This page's Python has no network. {ELSEWHERE}"
    if isinstance(error, ModuleNotFoundError):
        return error.msg
    return ""


def figures(filename):
    """Return the figures that the cells have drawn, and what was wrong with one, if anything."""
    drawing = sys.modules.get("page_figures")
    try:
        return (drawing.take() if drawing else []), None
    except Exception as error:
        return [], describe(error, filename)
