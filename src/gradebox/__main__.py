"""``python -m gradebox``: see :mod:`gradebox.cli`."""

import sys

from gradebox.cli import main

if __name__ == "__main__":
    sys.exit(main())
