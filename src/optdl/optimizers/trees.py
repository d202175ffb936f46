"""Nested lists, tuples and dicts of arrays, and what NumPy and torch do differently."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["Array", "Tree", "require_gradient", "sign", "tree_map", "zeros"]

Tree = Any
"""A NumPy array, a torch tensor, or a list, tuple or dict of trees."""

Array = Any
"""One leaf of a tree: a NumPy array or a torch tensor."""


def tree_map(function: Callable[..., Any], *trees: Tree, results: int | None = None) -> Any:
    """Apply a function to the arrays that stand at the same place of each tree.

    Tensors are handed over without their history, or each step would keep the graphs of all steps
    before it. The structure is that of the first tree. With ``results`` the function returns so
    many arrays, and so many trees come back.
    """
    first = trees[0]
    if not isinstance(first, dict | list | tuple):
        return function(*[x.detach() if hasattr(x, "detach") else x for x in trees])
    keys = list(first) if isinstance(first, dict) else range(len(first))
    parts = [tree_map(function, *[tree[k] for tree in trees], results=results) for k in keys]
    columns = [parts] if results is None else [[part[i] for part in parts] for i in range(results)]
    if isinstance(first, dict):
        made: list[Tree] = [dict(zip(keys, column, strict=True)) for column in columns]
    elif hasattr(first, "_fields"):  # a named tuple takes its parts one by one
        made = [type(first)(*column) for column in columns]
    else:
        made = list(map(type(first), columns))
    return made[0] if results is None else made


def require_gradient(
    theta: Tree, g: Tree, t: int, check_finite: bool, name: str = "gradient"
) -> None:
    """Refuse a gradient that is not shaped as θ is, which NumPy might broadcast, or not finite.

    Complex numbers are refused: g² is not |g|², so that most methods would divide by nonsense.
    """
    if isinstance(theta, dict | list | tuple):
        _require_structure(theta, g, name)
        for key in theta if isinstance(theta, dict) else range(len(theta)):
            require_gradient(theta[key], g[key], t, check_finite, f"{name}[{key!r}]")
    elif not hasattr(theta, "shape") or not hasattr(g, "shape"):
        kind = type(g if hasattr(theta, "shape") else theta).__name__
        raise TypeError(
            f"theta and {name} must hold NumPy arrays or torch tensors, got {kind}; "
            "write np.array(1.0) for a number"
        )
    elif g.shape != theta.shape:
        raise ValueError(
            f"{name} must have shape {tuple(theta.shape)} like theta, got {tuple(g.shape)}"
        )
    elif "complex" in f"{theta.dtype} {g.dtype}":
        raise TypeError(
            f"theta and {name} must be real, got {theta.dtype} and {g.dtype}: step the real and "
            "the imaginary part, such as torch.view_as_real gives them"
        )
    elif getattr(g, "is_sparse", False):
        raise TypeError(f"{name} must be dense, got a sparse tensor: hand over its to_dense()")
    elif check_finite and not (abs(g) < math.inf).all():  # NaN is not less than anything
        raise ValueError(
            f"the {name} of step {t} must be finite, got NaN or infinity in it: "
            "the steps may be too large; try a smaller lr, or clip the gradient"
        )


def _require_structure(theta: Tree, g: Tree, name: str) -> None:
    if isinstance(theta, dict):
        if not isinstance(g, dict) or set(g) != set(theta):
            got = f"the keys {list(g)}" if isinstance(g, dict) else type(g).__name__
            raise ValueError(f"{name} must be a dict with the keys {list(theta)}, got {got}")
    elif not isinstance(g, list | tuple) or len(g) != len(theta):
        got = f"{len(g)}" if isinstance(g, list | tuple) else type(g).__name__
        raise ValueError(f"{name} must be a list of {len(theta)}, got {got}")


def zeros(array: Array) -> Array:
    """Return an array of zeros like this one."""
    return array.new_zeros(array.shape) if hasattr(array, "new_zeros") else np.zeros_like(array)


def sign(array: Array) -> Array:
    """Return −1, 0 or 1 for each entry."""
    return array.sign() if hasattr(array, "sign") else np.sign(array)
