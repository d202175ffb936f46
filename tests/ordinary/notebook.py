"""What only a notebook can do: await, magics, scores in the last line, and names of other cells."""

CASES = r"""
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
=== a magic measures the time of a call
def triangle_number(n):
    return n * (n + 1) // 2  # wrong: return n * (n - 1) // 2
--- test
%timeit -n1 -r1 triangle_number(10**6)
assert triangle_number(10**6) == 500000500000
=== student and test both use a name, and the test gives it another value
speeds = [30, 50, 70]

def mean_speed():  # wrong: def mean_speed(speeds=speeds):
    return sum(speeds) / len(speeds)  # wrong: return sum(speeds) / 3
--- test
assert len(speeds) == 3 and mean_speed() == 50
speeds.append(90)
assert mean_speed() == 60
speeds = [10, 20]
assert mean_speed() == 15
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
=== a number in the last line is the score
def to_celsius(fahrenheit):
    return (fahrenheit - 32) * 5 / 9  # wrong: return fahrenheit - 32 * 5 / 9

def to_fahrenheit(celsius):
    return celsius * 9 / 5 + 32  # wrong: return (celsius + 32) * 9 / 5
--- test
score = 0
if abs(to_celsius(212) - 100) < 1e-9:
    score += 0.5
if to_fahrenheit(100) == 212:
    score += 0.5
score
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
"""
