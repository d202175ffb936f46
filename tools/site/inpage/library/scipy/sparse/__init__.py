"""Sparse matrices."""
