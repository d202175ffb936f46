"""Keep the process of the tests from unpickling what a student's process has written.

A pickle calls what it names, and a file may be one whatever it is called. So as soon as files have
come from a student's process, a pickle may name only a few classes of data, whoever reads it.
"""

import sys
from collections.abc import Callable
from typing import Any

from gradebox.codec.encoding import Unsendable

_DATA = {
    "builtins": "bytearray complex frozenset object range set slice",
    "collections": "Counter OrderedDict defaultdict deque",
    "copyreg": "_reconstructor",
    "datetime": "date datetime time timedelta timezone",
    "decimal": "Decimal",
    "fractions": "Fraction",
    "gradebox.line.proxy": "unpickled",
    "numpy": "dtype ndarray",
    "numpy._core.multiarray": "_reconstruct scalar",
    "numpy._core.numeric": "_frombuffer",
    "numpy.core.multiarray": "_reconstruct scalar",
    "numpy.core.numeric": "_frombuffer",
}
"""What a pickle may name, by module: what makes data, and calls nothing that it is given."""


def bar_pickles(when: Callable[[], bool]) -> None:
    """Let pickles in this process name nothing but classes of data, for good.

    Parameters
    ----------
    when : callable
        Returns whether that is in force.
    """
    allowed = {(module, name) for module, names in _DATA.items() for name in names.split()}

    def audit(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "pickle.find_class" and tuple(arguments) not in allowed and when():
            raise Unsendable(
                "expected a pickle of plain data, got one that names "
                f"{arguments[0]}.{arguments[1]}; a test of files that a student's code may have "
                "written cannot read it"
            )

    sys.addaudithook(audit)
