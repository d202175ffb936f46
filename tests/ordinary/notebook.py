"""What nbgrader's documentation shows, and what only a notebook can do."""

CASES = r'''
=== tests are hidden, and an error is expected
import math

def mean_square(values):
    """Return the mean of the squares of one or more numbers."""
    ### BEGIN SOLUTION
    if len(values) == 0:
        raise ValueError("expected at least one number")
    return sum(value**2 for value in values) / len(values)
    ### END SOLUTION
--- another
import math

def mean_square(values):
    try:
        return math.fsum(x * x for x in values) / len(values)
    except ZeroDivisionError as error:
        raise ValueError from error
--- wrong
def mean_square(values):
    return (sum(values) / len(values)) ** 2
--- unnamed
mean_square([1, 2, 3])
--- test 2
assert mean_square([2]) == 4
assert mean_square([3, 4]) == 12.5
### BEGIN HIDDEN TESTS
assert mean_square((-1, 1, -2, 2)) == 2.5
### END HIDDEN TESTS
--- test
try:
    mean_square([])
except ValueError:
    pass
else:
    raise AssertionError("mean_square([]) raises nothing")
=== a function is deleted to see whether another needs it, and is there again
def root_mean_square(values):
    ### BEGIN SOLUTION
    return mean_square(values) ** 0.5
    # wrong: return (sum(value**2 for value in values) / len(values)) ** 0.5
    ### END SOLUTION
--- another
root_mean_square = lambda values: math.sqrt(mean_square(values))
--- test
kept = mean_square
del mean_square
try:
    root_mean_square([1, 7])
except NameError:
    pass
else:
    raise AssertionError("root_mean_square does without mean_square")
finally:
    mean_square = kept
    del kept
=== functions of Python's are replaced with patch in __main__
def report(title, values):
    print(f"{title}: {root_mean_square(values):.2f}")
--- another
def report(title, values):
    line = "{}: {:.2f}".format(title, root_mean_square(values))
    print(line)
--- wrong
def report(title, values):
    print(title + ":", end=" ")
    print(f"{root_mean_square(values):.2f}")
--- test 0.5
assert root_mean_square([5, -5]) == 5
--- test
from unittest.mock import patch

with patch("__main__.print") as printed:
    report("noise", [3, 4])
printed.assert_called_once_with("noise: 3.54")
=== a function of Python's must not be called, says a patch in __main__
def farthest(values):
    found = values[0]
    for value in values:
        if abs(value) > abs(found):
            found = value
    return found
--- another
def farthest(values):
    return sorted(values, key=abs)[-1]
--- wrong
def farthest(values):
    return max(values, key=abs)
--- test
from unittest.mock import patch

with patch("__main__.max") as largest:
    farthest([1, 2])
largest.assert_not_called()
=== a test gives credit for parts
import math

def to_decibels(ratio):
    ### BEGIN SOLUTION
    return 10 * math.log10(ratio)
    ### END SOLUTION

def from_decibels(level):
    ### BEGIN SOLUTION
    return 10 ** (level / 10)
    ### END SOLUTION
--- wrong
import math

def to_decibels(ratio):
    return 10 * math.log10(ratio)

def from_decibels(level):
    return 10 ** level / 10
--- test 3
earned = 0
if math.isclose(to_decibels(100), 20):
    earned += 1
if math.isclose(from_decibels(-10), 0.1):
    earned += 1
### BEGIN HIDDEN TESTS
if all(math.isclose(from_decibels(to_decibels(x)), x) for x in (0.5, 1, 8)):
    earned += 1
### END HIDDEN TESTS
earned
--- words 2
The logarithm makes a product of gains a sum of levels.
--- program 2
gain = from_decibels(3) * from_decibels(7)
--- task 3
Plot the level of a sine for ten amplitudes.

Add cells as you like.
=== a coroutine of the student's is awaited in the test cell
import asyncio

async def load_page(name, log):
    log.append(f"start {name}")
    await asyncio.sleep(0)
    log.append(f"end {name}")
    return name.upper()

async def load_pages(names, log):
    return await asyncio.gather(*(load_page(name, log) for name in names))
    # wrong: return [await load_page(name, log) for name in names]
--- test
log = []
assert await load_page("a", log) == "A"
log.clear()
pages = await load_pages(["x", "y"], log)
assert pages == ["X", "Y"]
assert log == ["start x", "start y", "end x", "end y"]
=== a test uses values, imports and functions of an earlier test cell
def newton_root(x, steps=60):  # wrong: def newton_root(x, steps=3):
    guess = max(x, 1.0)
    for _ in range(steps):
        guess = (guess + x / guess) / 2
    return guess
--- test
import math as mathematics
roots_to_find = [4, 2, 1e6]

def is_root(found, x):
    return mathematics.isclose(found, mathematics.sqrt(x))

assert is_root(newton_root(1), 1)
--- test
found_roots = [newton_root(x) for x in roots_to_find]
assert all(is_root(found, x) for found, x in zip(found_roots, roots_to_find))
assert newton_root(9) == mathematics.sqrt(9)
=== the last line shows an array, which is no score
import numpy as np

def rotation_matrix(angle):
    cosine, sine = np.cos(angle), np.sin(angle)
    return np.array([[cosine, -sine], [sine, cosine]])
    # wrong: return np.array([[cosine, sine], [-sine, cosine]])
--- test
import numpy as np
quarter = rotation_matrix(np.pi / 2)
np.testing.assert_allclose(quarter @ [1, 0], [0, 1], atol=1e-12)
quarter.round(3)
=== the test uses a module that only the student's cell imports
import statistics as stats

def spread_of(x):
    return stats.stdev(x)  # wrong: return stats.pstdev(x)
--- test
x = [2, 4, 4, 4, 5, 5, 7, 9]
assert spread_of(x) == stats.stdev(x)
assert spread_of(x) > stats.pstdev(x)
=== a cell magic measures the time of a whole test cell
def digit_sum(n):
    return sum(map(int, str(n)))  # wrong: return n % 9
--- test
%%time
assert digit_sum(10**6 - 1) == 54
assert digit_sum(0) == 0
=== the test asks get_ipython for the names, and displays a text
favorite_colour = "teal"  # wrong: favorite_color = "teal"
--- test
shell = get_ipython()
assert "favorite_colour" in shell.user_ns
assert shell.user_ns["favorite_colour"] in ("teal", "violet")
display("well done")
'''
