"""What an answer prints, asks, warns of, logs, reads from files and writes to them."""

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
=== builtins.input is patched, and answers
def ask_age():
    while True:
        text = input("How old are you? ")
        if text.isdigit():
            return int(text)
        print("Please type a number.")
--- wrong
def ask_age():
    return int(input("How old are you? "))
--- test
from unittest.mock import patch
with patch("builtins.input", side_effect=["old", "", "42"]) as asked:
    assert ask_age() == 42
assert asked.call_count == 3
=== warnings are recorded by warnings.catch_warnings
import warnings  # wrong:

def checked_ratio(a, b):
    if b == 0:
        warnings.warn("division by zero", RuntimeWarning)
        # wrong: print("Warning: division by zero")
        return float("inf")
    return a / b
--- test
import warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    assert checked_ratio(1, 2) == 0.5
    assert len(caught) == 0
    assert checked_ratio(1, 0) == float("inf")
assert len(caught) == 1
assert caught[0].category is RuntimeWarning
assert "zero" in str(caught[0].message)
=== what is logged is captured by assertLogs
import logging

bank_log = logging.getLogger("bank")

def transfer(amount):
    if amount > 10_000:
        bank_log.warning("large transfer: %d", amount)
        # wrong: bank_log.info("large transfer: %d", amount)
    bank_log.info("transferred")
--- test
import unittest
with unittest.TestCase().assertLogs("bank", level="INFO") as logs:
    transfer(5)
    transfer(20_000)
assert logs.output[1] == "WARNING:bank:large transfer: 20000"
assert [record.levelname for record in logs.records] == ["INFO", "WARNING", "INFO"]
=== a file that the student's cell has written is read by the test
with open("primes.txt", "w") as primes_file:
    for candidate in range(2, 20):  # wrong: for candidate in range(1, 20, 2):
        if all(candidate % divisor for divisor in range(2, candidate)):
        # wrong: primes_file.write(f"{candidate}\n")
            primes_file.write(f"{candidate}\n")  # wrong:
--- test
from pathlib import Path
assert Path("primes.txt").exists(), "write the file primes.txt"
numbers = [int(line) for line in Path("primes.txt").read_text().splitlines()]
assert numbers == [2, 3, 5, 7, 11, 13, 17, 19]
=== a file that a function writes is read by the test
import csv

def save_scores(scores, path):
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)  # wrong: csv.writer(file).writerows(sorted(scores.items()))
        writer.writerow(["name", "score"])  # wrong:
        writer.writerows(sorted(scores.items()))  # wrong:
--- test
import csv
save_scores({"bob": 7, "ada": 9}, "scores.csv")
with open("scores.csv", newline="") as file:
    rows = list(csv.DictReader(file))
assert rows == [{"name": "ada", "score": "9"}, {"name": "bob", "score": "7"}]
=== a file that the test writes is read by the answer
import json

def load_settings(path):
    settings = {"color": "blue", "size": 10}
    try:
        with open(path) as file:
            settings.update(json.load(file))
    except FileNotFoundError:
        pass
    return settings
--- wrong
def load_settings(path):
    return {"color": "blue", "size": 10}
--- test
import json
from pathlib import Path
Path("folder_of_settings").mkdir(exist_ok=True)
path = Path("folder_of_settings") / "mine.json"
path.write_text(json.dumps({"size": 12}))
assert load_settings(path) == {"color": "blue", "size": 12}
path.unlink()
assert load_settings(str(path))["size"] == 10
=== a function of a module that the answer calls is patched
import time

def wait_until(ready, pause):
    waited = 0
    while not ready():
        time.sleep(pause)  # wrong:
        waited += pause
    return waited
--- test
from unittest.mock import call, patch
states = iter([False, False, True])
with patch("time.sleep") as sleep:
    assert wait_until(lambda: next(states), 0.25) == 0.5
assert sleep.mock_calls == [call(0.25), call(0.25)]
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
def my_median(values):
    values = sorted(values)
    middle = len(values) // 2
    return values[middle] if len(values) % 2 else sum(values[middle - 1:middle + 1]) / 2
--- wrong
import statistics

def my_median(values):
    return statistics.median(values)
--- test
import statistics
from unittest.mock import patch
with patch.object(statistics, "median", side_effect=AssertionError("do it yourself")):
    assert my_median([3, 1, 2]) == 2
    assert my_median([4, 1]) == 2.5
=== patch replaces a helper of the student's, and gives it back
def download_page(address):
    raise OSError("there is no network")

def title_of(address):
    page = download_page(address)  # wrong: return "Hi"
    return page.partition("<title>")[2].partition("</title>")[0]  # wrong:
--- test
import pytest
from unittest.mock import patch
with patch("__main__.download_page", return_value="<title>Hi</title>") as asked:
    assert title_of("a.org") == "Hi"
asked.assert_called_once_with("a.org")
with pytest.raises(OSError):
    title_of("a.org")
"""
