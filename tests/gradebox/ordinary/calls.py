"""What a test passes in, and calls: many of them, and those of functions with a state."""

CASES = r'''
=== an open file is passed in and read line by line
def count_comments(file):
    return sum(line.lstrip().startswith("#") for line in file)
    # wrong: return sum(line.startswith("#") for line in file)
--- test
with open("comments.txt", "w") as file:
    file.write("# a\nb = 1  # c\n  # d\n")
with open("comments.txt") as file:
    assert count_comments(file) == 2
    assert file.read() == ""
=== an endless generator is passed in, of which the answer takes a part
def first_above(numbers, bound):
    return next(number for number in numbers if number > bound)
    # wrong: return next(number for number in numbers if number >= bound)
--- test
def powers_of_two():
    power = 1
    while True:
        taken.append(power)
        yield power
        power *= 2

taken = []
assert first_above(powers_of_two(), 8) == 16
assert taken == [1, 2, 4, 8, 16]
=== a callback of the test's raises an error, which the answer handles
def call_twice(action):
    try:
        return action(1)
    except ConnectionError:  # wrong: except ValueError:
        return action(2)
--- test
import pytest
attempts = []

def unreliable(attempt):
    attempts.append(attempt)
    if len(attempts) != 2:
        raise ConnectionError("try again")
    return "done"

assert call_twice(unreliable) == "done"
with pytest.raises(ConnectionError, match="try again"):
    call_twice(unreliable)
assert attempts == [1, 2, 1, 2]
=== lists and dicts are changed in place
def count_into(counts, words):
    for word in words[:]:
        counts[word] = counts.get(word, 0) + 1
        words.remove(word)  # wrong:
--- test
counts, words = {"a": 1}, ["a", "b"]
same = words
assert count_into(counts, words) is None
assert counts == {"a": 2, "b": 1} and same == []
=== an array is changed in place, also through a view
def clip_negative(x):
    x[x < 0] = 0  # wrong: x = x * (x > 0)
--- test
import numpy as np
x = np.array([[1.0, -2.0], [-3.0, 4.0]])
clip_negative(x[0])
np.testing.assert_array_equal(x, [[1, 0], [-3, 4]])
=== the result is the argument itself
def sorted_in_place(items):
    items.sort()  # wrong: return sorted(items)
    return items  # wrong:
--- test
items = [3, 1, 2]
assert sorted_in_place(items) is items
assert items == [1, 2, 3]
=== a Mock is passed in, and asked how it was called
def notify_all(mailer, addresses):
    for address in addresses:
        mailer.send(address, body="hello")  # wrong: mailer.send(address, "hello")
    return mailer.close()
--- test
from unittest.mock import Mock, call
mailer = Mock()
mailer.close.return_value = "closed"
assert notify_all(mailer, ["a@b.c", "d@e.f"]) == "closed"
assert mailer.send.call_args_list[1] == call("d@e.f", body="hello")
=== a function is called thousands of times in a loop
import random

def lands_in_circle():
    x, y = random.random(), random.random()
    return x * x + y * y < 1  # wrong: return x + y < 1
--- test
import math
import random
random.seed(0)
hits = 0
for _ in range(4_000):
    hits += lands_in_circle()
assert abs(4 * hits / 4_000 - math.pi) < 0.1
=== two closures count, each for itself
def make_counter(step=1, counts=[0]):
    counts = [0]  # wrong:

    def counter():
        counts[0] += step
        return counts[0]

    return counter
--- test
ones, tens = make_counter(), make_counter(10)
assert [ones() for _ in range(3)] == [1, 2, 3]
assert tens() == 10 and tens() == 20
assert ones() == 4
=== values are sent to a generator, which is closed at last
def running_total():
    total = 0
    while True:
        total += yield total  # wrong: total = yield total
--- test
import pytest
totals = running_total()
assert next(totals) == 0
assert [totals.send(x) for x in (30, 40)] == [30, 70]
totals.close()
with pytest.raises(StopIteration):
    totals.send(1)
=== a decorator of the student's is applied to a recursive function of the test's
from functools import wraps  # wrong:

def memoized(function):
    known = {}

    @wraps(function)  # wrong:
    def wrapper(n):
        if n not in known:
            known[n] = function(n)
        return known[n]

    return wrapper
--- test
@memoized
def rabbits(month):
    return 1 if month < 2 else rabbits(month - 1) + rabbits(month - 2)

assert rabbits(50) == 20365011074
assert rabbits.__name__ == "rabbits"
=== itertools, zip, enumerate and sum take from an endless generator
def fibonacci_numbers():
    a, b = 1, 1  # wrong: a, b = 0, 1
    while True:
        yield a
        a, b = b, a + b
--- test
from itertools import islice
assert list(islice(fibonacci_numbers(), 6)) == [1, 1, 2, 3, 5, 8]
assert list(zip("abc", fibonacci_numbers())) == [("a", 1), ("b", 1), ("c", 2)]
=== a unittest.TestCase is run in the test cell
def is_leap_year(year):
    if year < 1583:
        raise ValueError("the calendar begins in 1583")
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)  # wrong: return year % 4 == 0
--- test
import sys
import unittest

class TestLeapYears(unittest.TestCase):
    def test_years(self):
        self.assertFalse(is_leap_year(1900))
        self.assertRaises(ValueError, is_leap_year, 1500)

suite = unittest.defaultTestLoader.loadTestsFromTestCase(TestLeapYears)
result = unittest.TextTestRunner(stream=sys.stdout).run(suite)
assert result.testsRun == 1 and result.wasSuccessful()
=== the examples in the student's docstring are run by doctest
def cube(n):
    """Return the cube of a number.

    >>> cube(2)
    8
    >>> [cube(n) for n in (1, 3)]
    [1, 27]
    """
    return n**3  # wrong: return 3 * n
--- test
import doctest
(examples,) = doctest.DocTestFinder().find(cube, globs=globals())
results = doctest.DocTestRunner().run(examples)
assert results.attempted >= 2, "write at least two examples"
assert results.failed == 0
=== an array of 20 MB is passed, and another returned
def doubled_values(x):
    return 2 * x  # wrong: return x + 1
--- test
import numpy as np
x = np.arange(2_500_000, dtype=np.float64)
y = doubled_values(x)
assert y.nbytes == 20_000_000 and y[-1] == 4_999_998
=== a list of a million numbers is passed, and a long one returned
def differences_of(numbers):
    return [b - a for a, b in zip(numbers, numbers[1:])]
    # wrong: return [a - b for a, b in zip(numbers, numbers[1:])]
--- test
numbers = list(range(0, 3_000_000, 3))
found = differences_of(numbers)
assert len(found) == 999_999
assert set(found) == {3}
=== a function of the test's that calls the student's is passed in
def slope(f, x, h=1e-6):
    return (f(x + h) - f(x - h)) / (2 * h)  # wrong: return (f(x + h) - f(x)) / (2 * h)

def bump(x):
    return 1 / (1 + x * x)
--- test
assert abs(slope(lambda x: bump(2 * x), 1) + 0.32) < 1e-6
assert abs(slope(bump, 1) + 0.5) < 1e-6
'''
