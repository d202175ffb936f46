"""Keep the process of the tests from unpickling what a student's code may have written.

A pickle calls what it names. In a test it may come from a student, as bytes or text that an answer
returned, so a pickle may name only a few classes of data there. A test that needs others runs in
the student's process.
"""

import sys
from typing import Any

_DATA = {
    "builtins": "bytearray complex frozenset object range set slice",
    "collections": "Counter OrderedDict defaultdict deque",
    "copyreg": "_reconstructor",
    "datetime": "date datetime time timedelta timezone",
    "decimal": "Decimal",
    "fractions": "Fraction",
    "numpy": "dtype ndarray",
    "numpy._core.multiarray": "_reconstruct scalar",
    "numpy._core.numeric": "_frombuffer",
    "numpy.core.multiarray": "_reconstruct scalar",
    "numpy.core.numeric": "_frombuffer",
}
"""What a pickle may name, by module: what makes data, and calls nothing that it is given."""


def bar_pickles() -> None:
    """Let pickles in this process name nothing but classes of data, for good."""
    allowed = {(module, name) for module, names in _DATA.items() for name in names.split()}

    def audit(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "pickle.find_class" and tuple(arguments) not in allowed:
            raise RuntimeError(
                f"expected a pickle of plain data, got one that names {'.'.join(arguments)}; a "
                "test that reads it cannot run isolated"
            )

    sys.addaudithook(audit)
