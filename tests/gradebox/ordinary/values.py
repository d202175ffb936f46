"""Random numbers and their seeds, and types of results that must arrive as what they are."""

CASES = r"""
=== a seed set by random.seed reaches the answer
import random

def roll_dice(n):
    return [random.randint(1, 6) for _ in range(n)]
    # wrong: return [random.randint(0, 5) for _ in range(n)]
--- test
import random
random.seed(3)
expected = [random.randint(1, 6) for _ in range(30)]
random.seed(3)
assert roll_dice(30) == expected
=== a seed set by np.random.seed reaches the answer
import numpy as np

def noisy_line(n):
    return np.arange(n) + np.random.randn(n)  # wrong: return np.arange(n) + np.random.rand(n)
--- test
import numpy as np
np.random.seed(0)
expected = np.arange(5) + np.random.randn(5)
np.random.seed(0)
np.testing.assert_allclose(noisy_line(5), expected)
=== a seed set by torch.manual_seed reaches the answer
import torch

def initial_weights(rows, columns):
    return torch.randn(rows, columns) / columns**0.5  # wrong: return torch.randn(rows, columns)
--- test
import torch
torch.manual_seed(1)
weights = initial_weights(3, 4)
torch.manual_seed(1)
assert torch.allclose(weights, torch.randn(3, 4) / 2)
=== a default_rng is passed in, and goes on where the answer left it
import numpy as np

def random_walk(rng, steps):
    return np.cumsum(rng.choice([-1, 1], size=steps))
--- wrong
import numpy as np

def random_walk(rng, steps):
    rng = np.random.default_rng(0)
    return np.cumsum(rng.choice([-1, 1], size=steps))
--- test
import numpy as np
rng = np.random.default_rng(7)
first, second = random_walk(rng, 30), random_walk(rng, 30)
assert not np.array_equal(first, second)
np.testing.assert_array_equal(random_walk(np.random.default_rng(7), 30), first)
assert rng.integers(1000) != np.random.default_rng(7).integers(1000)
=== a torch.Generator is passed in
import torch

def dropout_mask(shape, p, generator):
    return torch.rand(shape, generator=generator) >= p  # wrong: return torch.rand(shape) >= p
--- test
import torch
mask = dropout_mask((10, 10), 0.3, torch.Generator().manual_seed(4))
again = dropout_mask((10, 10), 0.3, torch.Generator().manual_seed(4))
assert torch.equal(mask, again)
assert 50 < mask.sum() < 90
=== the answer must leave the global generator as it is
import numpy as np

def jitter(x, seed):
    return x + np.random.default_rng(seed).normal(size=x.shape)
--- wrong
import numpy as np

def jitter(x, seed):
    np.random.seed(seed)
    return x + np.random.normal(size=x.shape)
--- test
import numpy as np
np.random.seed(4)
before = np.random.get_state()[1].copy()
noisy = jitter(np.zeros(3), seed=1)
np.testing.assert_array_equal(noisy, jitter(np.zeros(3), seed=1))
np.testing.assert_array_equal(np.random.get_state()[1], before)
=== a Counter is asked for what is most common, and for what is missing
from collections import Counter  # wrong:

def letter_counts(text):
    return Counter(text)  # wrong: return {letter: text.count(letter) for letter in text}
--- test
counts = letter_counts("banana")
assert counts.most_common(1) == [("a", 3)]
assert counts["z"] == 0
assert sum(counts.values()) == 6
=== a Fraction is compared with ==
from fractions import Fraction  # wrong:

def harmonic_number(n):
    return sum(Fraction(1, k) for k in range(1, n + 1))
    # wrong: return sum(1 / k for k in range(1, n + 1))
--- test
from fractions import Fraction
assert harmonic_number(4) == Fraction(25, 12)
assert harmonic_number(10).numerator == 7381
=== members of an Enum are compared with is, and listed
from enum import Enum

class Signal(Enum):
    RED = 1
    GREEN = 2

def after(signal):
    return Signal(3 - signal.value)  # wrong: return 3 - signal.value
--- test
assert after(Signal.RED) is Signal.GREEN
assert [signal.name for signal in Signal] == ["RED", "GREEN"]
=== an array of objects holds lists of different lengths
import numpy as np

def ragged_array(rows):
    result = np.empty(len(rows), dtype=object)
    result[:] = rows
    return result  # wrong: return rows
--- test
import numpy as np
ragged = ragged_array([[1], [2, 3], []])
assert ragged.dtype == object and ragged.shape == (3,)
assert ragged[1] == [2, 3]
=== all and any of comparisons of arrays, with shape and dtype
import numpy as np

def centered(x):
    return (x - x.mean(axis=0)).astype(np.float32)  # wrong: return x - x.mean(axis=0)
--- test
import numpy as np
x = np.arange(12.0).reshape(4, 3) ** 2
z = centered(x)
assert z.shape == x.shape and z.dtype == np.float32
assert np.all(np.isclose(z.mean(axis=0), 0, atol=1e-5)) and any(z[0] < 0)
=== a frame of pandas is filtered, and compared by assert_frame_equal
import pandas as pd

def adults_of(people):
    return people[people["age"] >= 18].reset_index(drop=True)
    # wrong: return people[people["age"] > 40].reset_index(drop=True)
--- test
import pandas as pd
people = pd.DataFrame({"name": ["Ann", "Bo", "Cy"], "age": [40.0, 17.5, None]})
expected = pd.DataFrame({"name": ["Ann"], "age": [40.0]})
pd.testing.assert_frame_equal(adults_of(people), expected)
assert isinstance(adults_of(people), pd.DataFrame) and len(people) == 3
"""
