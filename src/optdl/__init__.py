"""Learning as Optimization: the reference implementation behind the course."""

__version__ = "0.1.0"
