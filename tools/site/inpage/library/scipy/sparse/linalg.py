"""Linear algebra of sparse matrices."""

from scipy import missing


def __getattr__(name):
    return missing(__name__, name)
