"""Nested lists, tuples and dicts of arrays, and what NumPy and torch do differently."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

__all__ = [
    "Array",
    "Tree",
    "is_numpy",
    "load_torch",
    "map_arrays",
    "match",
    "ravel",
    "rebuild",
    "require_finite",
    "split",
    "zeros",
]

Tree = Any
"""A NumPy array, a torch tensor, or a list, tuple or dict of trees."""

Array = Any
"""One leaf of a tree: a NumPy array or a torch tensor."""


def match(theta: Tree, tree: Tree, name: str, path: str = "") -> Iterator[Array]:
    """Yield the arrays of a tree in the order of θ; it must have the structure of θ."""
    if isinstance(theta, dict):
        if not isinstance(tree, dict) or set(tree) != set(theta):
            raise ValueError(_mismatch(name, path, f"a dict with keys {list(theta)}", tree))
        for key, item in theta.items():
            yield from match(item, tree[key], name, f"{path}[{key!r}]")
    elif isinstance(theta, list | tuple):
        if not isinstance(tree, list | tuple) or len(tree) != len(theta):
            raise ValueError(_mismatch(name, path, f"a list of {len(theta)}", tree))
        for number, item in enumerate(theta):
            yield from match(item, tree[number], name, f"{path}[{number}]")
    else:
        yield _leaf(theta, tree, name, path)


def _leaf(theta: Array, array: Array, name: str, path: str) -> Array:
    """Return one array without its history, when it is as θ is."""
    require_floating(array, name, path)
    if is_numpy(array) != is_numpy(theta):
        raise TypeError(_mismatch(name, path, f"a {type(theta).__name__} like theta", array))
    if array.shape != theta.shape:
        raise ValueError(_mismatch(name, path, f"shape {tuple(theta.shape)} like theta", array))
    return array if is_numpy(array) else array.detach()


def _mismatch(name: str, path: str, expected: str, got: Any) -> str:
    shape = f" of shape {tuple(got.shape)}" if hasattr(got, "shape") else ""
    shape = f" with keys {list(got)}" if isinstance(got, dict) else shape
    shape = f" of {len(got)}" if isinstance(got, list | tuple) else shape
    return f"{name}{path} must be {expected}, got {type(got).__name__}{shape}"


def rebuild(theta: Tree, arrays: Iterator[Array]) -> Tree:
    """Return a tree with the structure of θ, filled with these arrays in order."""
    if isinstance(theta, dict):
        return {key: rebuild(item, arrays) for key, item in theta.items()}
    if isinstance(theta, list | tuple):
        return type(theta)(rebuild(item, arrays) for item in theta)
    return next(arrays)


def map_arrays(function: Callable[..., Array], theta: Tree, *trees: Tree) -> Tree:
    """Return the tree of what a function makes of the arrays that stand at the same place."""
    rows = [match(theta, tree, "state") for tree in (theta, *trees)]
    return rebuild(theta, map(function, *rows))


def ravel(arrays: Sequence[Array]) -> Array:
    """Return the entries of all arrays in one."""
    rows = [array.reshape(-1) for array in arrays]
    if isinstance(rows[0], np.ndarray):
        return np.concatenate(rows)
    return load_torch().cat(rows)


def split(row: Array, arrays: Sequence[Array]) -> Iterator[Array]:
    """Yield the entries of one array in the shapes of many."""
    start = 0
    for array in arrays:
        size = math.prod(array.shape)
        yield row[start : start + size].reshape(array.shape)
        start += size


def zeros(array: Array) -> Array:
    """Return an array of zeros like this one."""
    return np.zeros_like(array) if is_numpy(array) else load_torch().zeros_like(array)


def is_numpy(array: Any) -> bool:
    """Return whether this is an array of NumPy, or one of its numbers."""
    return isinstance(array, np.ndarray | np.floating)


def load_torch() -> Any:
    """Return torch, which is loaded for tensors only: it takes a second."""
    import torch

    return torch


def require_floating(array: Any, name: str, path: str) -> None:
    """Refuse all but arrays of floating-point numbers."""
    dtype = getattr(array, "dtype", None)
    if dtype is None:
        raise TypeError(
            f"{name}{path} must be a NumPy array or a torch tensor, got {type(array).__name__}; "
            "write np.array(1.0) for a number"
        )
    if not (dtype.kind == "f" if isinstance(dtype, np.dtype) else dtype.is_floating_point):
        raise TypeError(
            f"{name}{path} must hold floating-point numbers, got {dtype}: "
            "a step would be cut to whole numbers"
        )


def require_finite(g: Sequence[Array], t: int) -> None:
    """Refuse a gradient that holds NaN or infinity."""
    for array in g:
        # a sum is the cheapest reading of an array; only a sum that overflows needs a second look
        if not math.isfinite(array.sum()) and not _all_finite(array):
            raise ValueError(
                f"the gradient of step {t} must be finite, got NaN or infinity in it: "
                "the steps may be too large; try a smaller lr, or clip the gradient"
            )


def _all_finite(array: Array) -> bool:
    return bool((abs(array) < math.inf).all())  # NaN is not less than anything
