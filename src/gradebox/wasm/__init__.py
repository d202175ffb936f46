"""A sandbox that needs no operating system's help: Python itself, compiled to WebAssembly."""
