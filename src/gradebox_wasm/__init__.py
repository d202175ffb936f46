"""Python and NumPy as WebAssembly: an interpreter that runs sealed, on any system.

The wheel has both; in the repository ``python -m tools.site.wasm_wheel`` puts them here.
"""

from pathlib import Path

__all__ = ["INTERPRETER", "LIBRARY"]

INTERPRETER: Path = Path(__file__).resolve().parent / "python.wasm"
"""CPython with the compiled parts of NumPy, matplotlib and Pillow: one WebAssembly module."""
LIBRARY: Path = INTERPRETER.with_name("lib")
"""The folder of its modules, which it looks for in ``/usr/local/lib/python315.zip``."""
