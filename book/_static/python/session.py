"""Run the cells of a page, and say in plain data what came of each."""

import ast
import base64
import builtins
import io
import json
import linecache
import sys
import traceback
from pathlib import Path

NAMES = {"__name__": "__main__", "__builtins__": builtins}
"""The names of the page's cells, which share them as the cells of a notebook do."""


def main():
    """Do what the request asks, and write the answer."""
    request = json.loads(Path("/request.json").read_text(encoding="utf-8"))
    action = request.pop("action")
    answer = {"begin": begin, "run": run}[action](**request)
    sys.stdout.flush()
    Path("/answer.json").write_text(json.dumps(answer), encoding="utf-8")


def begin(modules=()):
    """Import what the first check needs."""
    sys.modules["__main__"].__dict__.update(NAMES)
    builtins.input = refuse_input
    for module in modules:
        __import__(module)
    return {"status": "ok", "version": sys.version.split()[0]}


def refuse_input(prompt=""):
    """Say that nobody can answer."""
    raise RuntimeError(
        "input() does not work on this page: nobody is asked. Write the value into the code."
    )


def run(cells):
    """Run cells one after the other, up to the first error; a cell is a name and its source."""
    for name, source in cells:
        error = execute(name, source)
        if error:
            return {"status": "error", "cell": name, **error, "figures": figures()}
    return {"status": "ok", "figures": figures()}


def execute(name, source):
    """Run one cell, print the value of a last expression, and return what its error was."""
    filename = f"<{name}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    try:
        tree = ast.parse(source, filename)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, filename, "exec"), NAMES)
        if last is not None:
            show(eval(compile(ast.Expression(last.value), filename, "eval"), NAMES))
    except BaseException as error:
        return describe(error, filename)
    return None


def show(value):
    """Print a value as a notebook does."""
    if value is not None:
        NAMES["_"] = value
        print(repr(value))


def describe(error, filename):
    """Return the kind of an error, its text, and the line of the cell."""
    kind = type(error).__name__
    if kind in ("CheckFailed", "Stopped"):
        return {"kind": kind, "text": str(error), "line": None}
    if isinstance(error, SystemExit):
        return {
            "kind": kind,
            "text": "SystemExit: the cell asked Python to end; its names are still here.",
            "line": None,
        }
    line = error.lineno if isinstance(error, SyntaxError) and error.filename == filename else None
    frames = (
        traceback.extract_tb(error.__traceback__, limit=-60)
        if not isinstance(error, RecursionError)
        else ()
    )
    own = [frame for frame in frames if frame.filename == filename]
    if own:
        line = own[-1].lineno
    frames = [frame for frame in frames if not frame.filename.startswith("/course/session")]
    text = "".join(traceback.format_list(frames[-8:]) + traceback.format_exception_only(error))
    return {"kind": kind, "text": text[-6000:], "line": line}


def figures():
    """Return the figures that are open as PNG images, and close them."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is None:
        return []
    images = []
    for number in pyplot.get_fignums():
        file = io.BytesIO()
        pyplot.figure(number).savefig(file, format="png", bbox_inches="tight")
        images.append(base64.b64encode(file.getvalue()).decode("ascii"))
    pyplot.close("all")
    return images
