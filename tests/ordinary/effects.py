"""What must not happen, such as an argument that is changed or a file that is left behind."""

CASES = r"""
=== an argument must not be changed
def ranking(times):
    return sorted(times)
--- wrong
def ranking(times):
    times.sort()
    return times
--- test
race = [31.5, 29.8, 30.2]
assert ranking(race) == [29.8, 30.2, 31.5]
assert race == [31.5, 29.8, 30.2], "leave the argument as it is"
=== the result must not be the argument
def without_duplicates(items):
    return list(dict.fromkeys(items))
    # wrong: return items if len(set(items)) == len(items) else list(dict.fromkeys(items))
--- test
unique = ["a", "b"]
assert without_duplicates(unique) == ["a", "b"]
assert without_duplicates(unique) is not unique, "return a new list"
=== an array that is returned must not be a view of the argument
def first_column(matrix):
    return matrix[:, 0].copy()  # wrong: return matrix[:, 0]
--- test
import numpy as np
table = np.arange(6.0).reshape(3, 2)
column = first_column(table)
column[0] = 99
assert table[0, 0] == 0
=== the rows of a result must not be the same list
def empty_board(rows, columns):
    return [[0] * columns for _ in range(rows)]  # wrong: return [[0] * columns] * rows
--- test
squares_of_board = empty_board(2, 3)
squares_of_board[0][0] = 1
assert squares_of_board == [[1, 0, 0], [0, 0, 0]]
=== a variable must hold a copy of another
shopping = ["milk", "tea"]
shopping_copy = list(shopping)  # wrong: shopping_copy = shopping
--- test
assert shopping_copy == shopping
assert shopping_copy is not shopping
=== a class must not have an attribute
class Wallet:
    def __init__(self, coins):  # wrong: coins = 0
        self._coins = coins  # wrong:
--- test
assert not hasattr(Wallet, "coins"), "keep the coins private"
=== a result must be of a type itself, not of a class derived from it
def count_letters(text):
    return {letter: text.count(letter) for letter in text}
--- wrong
from collections import Counter

def count_letters(text):
    return Counter(text)
--- test
assert count_letters("noon") == {"n": 2, "o": 2}
assert type(count_letters("noon")) is dict, "do not use Counter"
=== an error must be of a class itself, not of one derived from it
def positive_root(x):
    if x < 0:
        raise ValueError("expected a positive number")
    return x**0.5
--- wrong
class Negative(ValueError):
    pass

def positive_root(x):
    if x < 0:
        raise Negative("expected a positive number")
    return x**0.5
--- test
try:
    positive_root(-1)
except Exception as error:
    assert type(error) is ValueError
else:
    assert False, "expected an error"
=== no file must be left behind
import os  # wrong:

def sorted_by_file(lines):
    with open("scratch.txt", "w") as file:
        file.writelines(sorted(lines))
    with open("scratch.txt") as file:
        result = file.readlines()  # wrong: return file.readlines()
    os.remove("scratch.txt")  # wrong:
    return result  # wrong:
--- test
import os
assert sorted_by_file(["b\n", "a\n"]) == ["a\n", "b\n"]
assert not os.path.exists("scratch.txt")
=== a file beside the notebook must stay as it is
def wettest_month():
    with open("rainfall.txt") as file:
        return max(float(line) for line in file)
--- wrong
def wettest_month():
    with open("rainfall.txt") as file:
        most = max(float(line) for line in file)
    with open("rainfall.txt", "w") as file:
        file.write(str(most))
    return most
--- test
assert wettest_month() == 91.5
with open("rainfall.txt") as file:
    assert file.read() == "48.0\n91.5\n12.0\n"
=== a function of Python's is forbidden by another of the same name
def grand_total(numbers):
    result = 0  # wrong: return sum(numbers)
    for number in numbers:  # wrong:
        result += number  # wrong:
    return result  # wrong:
--- test
def sum(*numbers):
    raise AssertionError("write a loop")

assert grand_total([1, 2, 3]) == 6
del sum
=== a default argument must be new in each call
def add_guest(name, guests=None):
    return [*(guests or []), name]
--- wrong
def add_guest(name, guests=[]):
    guests.append(name)
    return guests
--- test
assert add_guest("Ada") == ["Ada"]
assert add_guest("Bob") == ["Bob"]
=== closures made in a loop must differ
def make_multipliers(n):
    return [lambda x, k=k: k * x for k in range(n)]
    # wrong: return [lambda x: k * x for k in range(n)]
--- test
assert [multiply(10) for multiply in make_multipliers(3)] == [0, 10, 20]
=== an iterator that is passed in can be gone through once
def shares_of(amounts):
    amounts = list(amounts)  # wrong: total = sum(amounts)
    return [amount / sum(amounts) for amount in amounts]
    # wrong: return [amount / total for amount in amounts]
--- test
assert shares_of([1, 3]) == [0.25, 0.75]
assert shares_of(amount for amount in (1, 3)) == [0.25, 0.75]
=== a result must be there a second time
def cubes_up_to(n):
    return [k**3 for k in range(n)]  # wrong: return (k**3 for k in range(n))
--- test
cubes = cubes_up_to(3)
assert list(cubes) == [0, 1, 8]
assert list(cubes) == [0, 1, 8], "return a list"
=== two random results must differ
import numpy as np

def random_start(n):
    return np.random.rand(n)
--- wrong
import numpy as np

def random_start(n):
    np.random.seed(0)
    return np.random.rand(n)
--- test
import numpy as np
assert not np.allclose(random_start(3), random_start(3))
=== a name must not be left over
total_rain = 0
for rain_of_day in (3, 0, 5):
    total_rain += rain_of_day
del rain_of_day  # wrong:
--- test
assert total_rain == 8
assert "rain_of_day" not in globals(), "clean up"
"""
