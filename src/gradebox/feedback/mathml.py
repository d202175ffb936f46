"""Have a library convert formulas to MathML, in a process of its own.

The converter is compiled code. A formula that a student made for the purpose can exhaust its stack,
or keep it busy for years; then this process ends, and no formula after it is converted.
"""

import contextlib
import json
import re
import signal
import subprocess
import sys
from functools import lru_cache
from typing import Any

MAX_CHARACTERS = 5000  # so many characters a formula may have
SECONDS = 1.0  # so long the processor may work on the formulas of a text; most take a millisecond
PATIENCE = 60.0  # seconds after which nothing is waited for where no clock of the processor ends it

_TAGS = (
    "math|mi|mo|mn|mtext|mspace|mrow|mfrac|msqrt|mroot|msub|msup|msubsup|munder|mover|munderover|"
    "mmultiscripts|mprescripts|mtable|mtr|mtd|mstyle|mpadded|mphantom|menclose|code|b|i"
)
_LENGTH = r"-?(?:\d{1,2}(?:\.\d{1,9})?|\.\d{1,9})(?:em|ex|px|pt|%)?"
_STYLES = (
    r"(?:(?:width: (?:\d{1,2}|100)%|"
    r"(?:text-align|justify-items|color|border-\w+|padding-\w+|math-depth):"
    r' ?[#\w.]{1,20}(?: [#\w.]{1,20}){0,2})(?:;|(?=")))*'
)
_ATTRIBUTES = (
    rf'style="{_STYLES}"|(?:width|height|depth|voffset|lspace|rspace|minsize|maxsize|linethickness)'
    rf'="{_LENGTH}"|(?:stretchy|accent|accentunder|display|displaystyle|form|scriptlevel|fence|'
    r"mathvariant|symmetric|largeop|movablelimits|separator|columnalign|intent|arg)"
    r'="[\w:-]{0,30}"'
)
_TAG = re.compile(rf"</?(?:{_TAGS})(?: (?:{_ATTRIBUTES}))*/?>")


@lru_cache(maxsize=1024)  # the same texts come with each student
def mathml(formulas: tuple[tuple[str, bool], ...]) -> list[str]:
    r"""Return formulas of TeX as MathML, as far as the first that ends the converter.

    Each is told with whether it has a line of its own. One that cannot be read gives nothing.

    >>> mathml(((r"x < \pi", False), (r"\href{javascript:run()}{x}", False)))
    ['<math><mi>x</mi><mo>&lt;</mo><mi>π</mi></math>', '']
    """
    command = [sys.executable, "-P", "-m", "gradebox.feedback.mathml"]
    asked: Any = {"input": json.dumps(formulas), "encoding": "utf-8", "timeout": PATIENCE}
    try:
        process = subprocess.run(command, capture_output=True, check=False, **asked)
    except subprocess.TimeoutExpired:
        return []
    # what follows the last end of a line is no whole answer
    answers = map(json.loads, process.stdout.split("\n")[:-1])
    return ["" if "<" in _TAG.sub("", answer) else answer for answer in answers]


def main() -> None:
    """Answer formulas with a line for each."""
    from math_core import LatexError, LatexToMathML

    # macros could nest what the text does not
    converter = LatexToMathML(fancy_error=False, max_expansions=0)
    formulas = json.load(sys.stdin)
    if hasattr(signal, "setitimer"):  # nobody handles the alarm: it ends this process
        signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    for formula, block in formulas:
        answer = ""
        with contextlib.suppress(LatexError, UnicodeError):
            if len(formula) <= MAX_CHARACTERS:
                answer = converter.convert_with_local_state(formula, displaystyle=block)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
