"""Learning as Optimization: the reference implementation behind the course."""

__version__ = "1.0.0"
