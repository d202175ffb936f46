"""The Python of a cell: its syntax tree, and IPython's own syntax replaced by calls."""

import ast
import builtins
import re
import threading

# the names that Python has by itself; IPython adds its own, and a student may define a display
PYTHONS = frozenset(dir(builtins)) - {"display", "get_ipython"}

# how an object compares, computes and is looked at
DECIDES = (
    r"__(?:eq|[gln]e|[gl]t|bool|abs|float|int|index|contains|r?sub|r?truediv|get|del|\w*check|"
    r"array\w*|getattr\w*|globals|closure|code|\w*defaults)__"
)
# what reaches into a test that runs in the same process, or agrees with it
REACHES = re.compile(
    r"(?:_get|current|tb_)frame|\bf_(?:back|globals|locals|code)\b|get_(?:objects|refer\w+)|ctypes|"
    r"user_(?:ns|global_ns|module)|(?:unittest[\w., ]*|from |import )mock|__class__ *=(?!=)|"
    r"(?:globals|locals|vars)\(\)|(?:import |modules\W+)__main__|pytest[\w. ]*approx|"
    r"ipython\(\)\.(?:push|ex|run_cell)\b|inspect[\w. ]*(?:stack|trace)|cell_contents|"
    r"(?:np|numpy|import )\.?ma\b|\.(?:equals?|all|any) *=(?!=)|def (?:equals?|all|any)\(self|"
    + DECIDES
)

_one_at_a_time = threading.Lock()


def parse(source: str, file: str = "<unknown>") -> ast.Module:
    """Return the syntax tree of Python code, like ``ast.parse``; threads take turns."""
    # CPython before 3.11.8 and 3.12.2 counts the depth of the tree that it builds in one place for
    # all threads: "SystemError: AST constructor recursion depth mismatch"
    with _one_at_a_time:
        return ast.parse(source, file)


def python_of(source: str) -> str:
    r"""Return the source of a cell as Python, with IPython's own syntax replaced by calls.

    >>> python_of("x = 3")
    'x = 3'
    >>> python_of("%matplotlib inline")
    "get_ipython().run_line_magic('matplotlib', 'inline')\n"
    """
    try:
        parse(source)
    except (SyntaxError, ValueError):  # a line of text in it may begin with %, too
        # here, for its import takes long, and most cells need none of it
        from IPython.core.inputtransformer2 import TransformerManager

        return str(TransformerManager().transform_cell(source))  # type: ignore[no-untyped-call]
    return source


def body_of(source: str) -> str:
    """Return the Python in the source of a cell that may begin with a magic for the whole cell."""
    if source.lstrip().startswith("%%"):
        line, _, source = source.lstrip().partition("\n")
        if line.startswith("%%capture ") and line.split()[-1].isidentifier():
            source += f"\n{line.split()[-1]} = None"
    return python_of(source)
