"""What an answer prints, asks, logs, reads and writes, and what it must not do."""

CASES = r"""
=== what is printed is captured by redirect_stdout
def print_squares(n):
    for k in range(1, n + 1):  # wrong: for k in range(n):
        print(f"{k} squared is {k * k}")
--- test
import io
from contextlib import redirect_stdout
output = io.StringIO()
with redirect_stdout(output):
    print_squares(2)
assert output.getvalue().splitlines() == ["1 squared is 1", "2 squared is 4"]
=== builtins.print is patched, and its calls are counted
def cheer(name, times):
    for _ in range(times):  # wrong: print(f"Go, {name}!" * times)
        print("Go,", name, end="!")  # wrong:
--- test
from unittest.mock import patch
with patch("builtins.print") as printed:
    cheer("Ada", 3)
assert printed.call_count == 3
printed.assert_called_with("Go,", "Ada", end="!")
=== warnings are recorded by warnings.catch_warnings
import warnings

def checked_ratio(a, b):
    if b == 0:
        warnings.warn("division by zero", RuntimeWarning)  # wrong: print("division by zero")
        return float("inf")
    return a / b
--- test
import warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    assert checked_ratio(1, 2) == 0.5 and len(caught) == 0
    assert checked_ratio(1, 0) == float("inf")
assert caught[0].category is RuntimeWarning and "zero" in str(caught[0].message)
=== a file that the student's cell has written is read by the test
with open("squares.txt", "w") as squares_file:
    for k in range(1, 4):  # wrong: for k in range(3):
        squares_file.write(f"{k * k}\n")
--- test
from pathlib import Path
assert Path("squares.txt").exists(), "write the file squares.txt"
assert Path("squares.txt").read_text().splitlines() == ["1", "4", "9"]
=== a file that a function writes is read by the test
import csv

def save_scores(scores, path):
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["name", "score"])  # wrong:
        writer.writerows(sorted(scores.items()))
--- test
import csv
save_scores({"bob": 7, "ada": 9}, "scores.csv")
with open("scores.csv", newline="") as file:
    rows = list(csv.DictReader(file))
assert rows == [{"name": "ada", "score": "9"}, {"name": "bob", "score": "7"}]
=== a file that the test writes is read by the answer
import json

def load_settings(path):
    with open(path) as file:
        return {"color": "blue", "size": 10} | json.load(file)
        # wrong: return {"color": "blue", "size": 10}
--- test
import json
from pathlib import Path
Path("folder_of_settings").mkdir(exist_ok=True)
path = Path("folder_of_settings") / "mine.json"
path.write_text(json.dumps({"size": 12}))
assert load_settings(path) == {"color": "blue", "size": 12}
=== standard input is replaced by text
import sys

def total_of_lines():
    return sum(float(line) for line in sys.stdin)  # wrong: return float(sys.stdin.readline())
--- test
import io
import sys
own_stdin, sys.stdin = sys.stdin, io.StringIO("1\n2\n3.5\n")
try:
    assert total_of_lines() == 6.5
finally:
    sys.stdin = own_stdin
=== a warning of NumPy is an error for the test
import numpy as np

def safe_log(x):
    x = np.asarray(x, float)  # wrong: return np.log(np.asarray(x, float))
    return np.log(x, out=np.full_like(x, -np.inf), where=x > 0)  # wrong:
--- test
import numpy as np
import warnings
with warnings.catch_warnings():
    warnings.simplefilter("error")
    assert list(safe_log([0, 1])) == [-np.inf, 0]
=== a function of a library is forbidden by a patch
import statistics

def my_median(values):
    return sorted(values)[len(values) // 2]  # wrong: return statistics.median(values)
--- test
import statistics
from unittest.mock import patch
with patch.object(statistics, "median", side_effect=AssertionError("do it yourself")):
    assert my_median([3, 1, 2]) == 2
=== patch replaces a helper of the student's, and gives it back
def download_page(address):
    raise OSError("there is no network")

def title_of(address):
    return download_page(address).upper()  # wrong: return "HI"
--- test
import pytest
from unittest.mock import patch
with patch("__main__.download_page", return_value="Hi") as asked:
    assert title_of("a.org") == "HI"
asked.assert_called_once_with("a.org")
with pytest.raises(OSError):
    title_of("a.org")
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
import os

def sorted_by_file(lines):
    with open("scratch.txt", "w") as file:
        file.writelines(sorted(lines))
    with open("scratch.txt") as file:
        result = file.readlines()
    os.remove("scratch.txt")  # wrong:
    return result
--- test
import os
assert sorted_by_file(["b\n", "a\n"]) == ["a\n", "b\n"]
assert not os.path.exists("scratch.txt")
=== a file beside the notebook must stay as it is
def wettest_month():
    with open("rainfall.txt") as file:  # wrong: with open("rainfall.txt", "r+") as file:
        rain = [float(line) for line in file]
        # wrong: rain = [file.write("0\n") for _ in range(2)] and [91.5]
        return max(rain)
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
