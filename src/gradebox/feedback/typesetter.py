"""Convert formulas in a process of its own: ``python -m gradebox.feedback.typesetter``.

The converter is compiled code. A formula that a student made for the purpose can exhaust its stack,
or keep it busy for years; then this process ends, and nothing but that formula is lost.
"""

import json
import signal
import sys

from math_core import LatexError, LatexToMathML

SECONDS = 1.0
"""So long the processor may work on one formula; the formulas of a course take a millisecond."""


def main() -> None:
    """Answer each line, a formula and whether it is a block, with its MathML or nothing."""
    # macros could nest what the text does not
    converter = LatexToMathML(fancy_error=False, max_expansions=0)
    timed = hasattr(signal, "setitimer")
    for line in sys.stdin:
        formula, block = json.loads(line)
        if timed:  # nobody handles the alarm: it ends this process, even in compiled code
            signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
        try:
            typeset = converter.convert_with_local_state(formula, displaystyle=block)
        except LatexError:
            typeset = ""
        if timed:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        print(json.dumps(typeset), flush=True)


if __name__ == "__main__":
    main()
