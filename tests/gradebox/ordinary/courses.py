"""What is typical of public courses: modules, databases and figures, and cells of the teacher's.

They are LDSSA's preparation courses, jhamrick/nbgrader-demo, MLSysBook/TinyTorch, CSE 6040 of
Georgia Tech, and ccha23/cs1302i21a.
"""

CASES = r"""
=== a module beside the notebook calls the answer with values drawn at random
def sum_by_key(rows):
    sums = {}
    for key, n in rows:
        sums[key] = sums.get(key, 0) + n  # wrong: sums[key] = n
    return sums
--- another
from collections import defaultdict

def sum_by_key(rows):
    sums = defaultdict(int)
    for key, n in rows:
        sums[key] += n
    return sums
--- test
from testing_market import check_totals
check_totals(sum_by_key)
=== a class inherits from one in a module beside the notebook
--- locked
from harbour import Cargo
--- answer
class Grain(Cargo):
    kind = "grain"  # wrong:

    def weight(self):
        return 40
--- another
import harbour

class Grain(harbour.Cargo):
    def __init__(self):
        self.kind = "grain"

    def weight(self):
        return 40
--- test
assert isinstance(Grain(), Cargo), "Grain is to inherit"
assert Grain().describe() == "grain: 40 t"
assert "describe" not in vars(Grain), "there is no need to write describe again"
=== locked cells define a hash, and make an object of the student's
--- locked
import hashlib

def _hash(s):
    return hashlib.blake2b(bytes(str(s), encoding="utf8"), digest_size=5).hexdigest()
--- answer
class Ship:
    def __init__(self, name):
        self.name = name  # wrong: self.name = name.lower()
--- locked
ship = Ship(name="Aurora")
--- test
assert _hash(ship.name) == "fd68cb1b1f", "look at the name"
=== an open file and a list go on in the next cell, which changes them
months = open("rainfall.txt")
text = months.read()  # wrong: text = months.readline()
--- test
assert len(text) == 15
--- answer
months.seek(0)
lines = months.readlines()
months.close()
--- test
assert lines == ["48.0\n", "91.5\n", "12.0\n"]
--- answer
lines = [line.strip() for line in lines]  # wrong:
--- test
assert lines == ["48.0", "91.5", "12.0"]
=== a cell draws a figure, and keeps its axes
import matplotlib.pyplot as plt
axis = plt.subplots()[1]
axis.bar(range(3), [1, 0, 1], color="red")  # wrong: axis.plot([1, 0, 1])
--- another
import matplotlib.pyplot as plt
figure, axis = plt.subplots()
plt.bar([0, 1, 2], [1, 0, 1], color=(1, 0, 0))
--- test
assert [patch.get_height() for patch in axis.patches] == [1, 0, 1]
assert axis.patches[0].get_facecolor() == (1.0, 0.0, 0.0, 1.0), "red bars, please"
=== a function draws on the axes that the test passes in
import numpy as np

def plot_running_mean(axes, values):
    number = np.arange(1, len(values) + 1)
    axes.plot(number, np.cumsum(values) / number, "k-", label="mean so far")
    axes.legend()  # wrong:
--- test
import matplotlib.pyplot as plt
figure, axes = plt.subplots()
plot_running_mean(axes, np.array([4.0, 2.0, 0.0]))
np.testing.assert_allclose(axes.get_lines()[0].get_xydata(), [[1, 4], [2, 3], [3, 2]])
assert axes.get_legend() is not None
plt.close(figure)
=== a database is passed in
def cheapest(db):
    rows = db.execute("SELECT name FROM sales WHERE price = (SELECT MIN(price) FROM sales)")
    # wrong: rows = db.execute("SELECT name, MIN(price) FROM sales")
    return sorted(row[0] for row in rows)
--- test
import sqlite3
db = sqlite3.connect(":memory:")
db.execute("CREATE TABLE sales (name TEXT, price REAL)")
db.executemany("INSERT INTO sales VALUES (?, ?)", [("fig", 1), ("pear", 2), ("apple", 1)])
assert cheapest(db) == ["apple", "fig"]
db.close()
=== a function of a cell of the teacher's calls the answer
--- plain
known = {"tea", "milk"}

def pieces(text):
    return text.split()

def share_of_known(text):
    return sum(piece in known for piece in pieces(text)) / len(pieces(text))
--- answer
import string

def pieces(text):
    return [word.strip(string.punctuation).lower() for word in text.split()]
    # wrong: return text.lower().split()
--- test
assert share_of_known("Tea, please!") == 0.5
=== a test is a function, which a later test calls again
class Samples:
    def __init__(self, data, rate=1):
        self.data = list(data)
        self.rate = rate

    def seconds(self):
        return len(self.data) / self.rate

    def __add__(self, other):
        return Samples(self.data + other.data, self.rate)  # wrong: return Samples(self.data)
--- another
from dataclasses import dataclass

@dataclass(repr=False)
class Samples:
    data: list
    rate: float = 1
    seconds = lambda self: len(self.data) / self.rate

    def __add__(self, other):
        return self.__class__([*self.data, *other.data], self.rate)
--- test
def test_unit_samples():
    print("🔬 Unit test: Samples")
    assert Samples([1, 2, 3, 4], rate=2).seconds() == 2
    print("✅ Samples")

if __name__ == "__main__":
    test_unit_samples()
--- test
def test_module():
    test_unit_samples()
    assert (Samples([1, 2]) + Samples([3])).data == [1, 2, 3]

if __name__ == "__main__":
    test_module()
=== a test runs a command and keeps what a magic returns
def merge(one, other):
    return {key: one.get(key, 0) + other.get(key, 0) for key in one | other}
    # wrong: return {**one, **other}
--- test
!echo begins
numbers = {number: 1 for number in range(2_000)}
timing = %timeit -q -o -n1 -r1 merge(numbers, numbers)
assert timing.best < 5, "too slow"
assert sum(merge(numbers, numbers).values()) == 4_000
=== an answer uses at once what an earlier test has made
def sums_of_two(values):
    return [a + b for a, b in zip(values, values[1:])]
--- test
gauge = [1, 5, 2, 4]
assert sums_of_two(gauge) == [6, 7, 6]
--- answer
wettest = max(sums_of_two(gauge))  # wrong: wettest = max(gauge)
--- test
assert wettest == 7
=== an answer changes an object, of which an earlier test has kept a part
class Ledger:
    def __init__(self):
        self.entries = []

    def add(self, amount):
        self.entries.append(amount)

ledger = Ledger()
ledger.add(5)
--- test
booked = list(ledger.entries)
assert 5 in booked
--- answer
ledger.add(7)  # wrong: ledger.entries = [7]
--- test
assert ledger.entries == booked + [7]
"""
