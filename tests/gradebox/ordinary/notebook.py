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
def to_celsius(fahrenheit):
    ### BEGIN SOLUTION
    return (fahrenheit - 32) * 5 / 9
    ### END SOLUTION

def to_fahrenheit(celsius):
    ### BEGIN SOLUTION
    return celsius * 9 / 5 + 32  # wrong: return (celsius + 32) * 9 / 5
    ### END SOLUTION
--- test 3
earned = 0
if to_celsius(212) == 100:
    earned += 1
if to_fahrenheit(100) == 212:
    earned += 1
### BEGIN HIDDEN TESTS
if all(abs(to_fahrenheit(to_celsius(x)) - x) < 1e-9 for x in (0.5, 1, 8)):
    earned += 1
### END HIDDEN TESTS
earned
--- words 2
The two are inverse to each other.
--- program 2
boils = to_celsius(212)
--- task 3
Plot the line.

Add cells as you like.
=== a coroutine of the student's is awaited in the test cell
import asyncio

async def load_page(name, log):
    log.append(f"start {name}")
    await asyncio.sleep(0)
    log.append(f"end {name}")

async def load_pages(names, log):
    await asyncio.gather(*(load_page(name, log) for name in names))
    # wrong: [await load_page(name, log) for name in names]
--- test
log = []
await load_pages("xy", log)
assert log == ["start x", "start y", "end x", "end y"]
=== a test uses values, imports and functions of an earlier test cell
def product_of(numbers):
    result = 1
    for number in numbers:
        result *= number  # wrong: result += number
    return result
--- test
import math as mathematics
numbers_to_try = [[2, 3], [4, 5, 6]]

def is_product(found, numbers):
    return found == mathematics.prod(numbers)

assert is_product(product_of([1]), [1])
--- test
assert all(is_product(product_of(numbers), numbers) for numbers in numbers_to_try)
assert product_of([]) == mathematics.prod([])
=== the last line shows an array, which is no score
import numpy as np

def unit_matrix(n):
    return np.eye(n)  # wrong: return np.ones((n, n))
--- test
import numpy as np
np.testing.assert_array_equal(unit_matrix(2), [[1, 0], [0, 1]])
unit_matrix(2)
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
