"""The commands of the course; each is one module, run as ``python -m tools.NAME``."""
