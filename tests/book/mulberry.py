"""The random numbers of the figures to explore, written again in NumPy."""

import numpy as np


def uniforms(seed: int, n: int) -> np.ndarray:
    """Return the first n uniform numbers of mulberry32: 32 bits each, from [0, 1)."""
    count = np.arange(1, n + 1, dtype=np.uint64)
    state = (np.uint64(seed) + count * np.uint64(0x6D2B79F5)).astype(np.uint32)
    t = (state ^ (state >> np.uint32(15))) * (state | np.uint32(1))
    t ^= t + (t ^ (t >> np.uint32(7))) * (t | np.uint32(61))
    return (t ^ (t >> np.uint32(14))) / 2.0**32


def normals(uniform: np.ndarray) -> np.ndarray:
    """Return the normal numbers of Box and Muller, one for each pair of uniform ones."""
    first, second = uniform.reshape(-1, 2).T
    return np.sqrt(-2 * np.log(1 - first)) * np.cos(2 * np.pi * second)
