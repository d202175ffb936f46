"""Calls: many of them, deep ones, those of functions with a state, and frameworks that call."""

from ordinary import Case

CASES = (
    Case(
        "a function is called thousands of times in a loop",
        answer="""
        import random

        def lands_in_circle():
            x, y = random.random(), random.random()
            return x * x + y * y < 1
        """,
        test="""
        import math
        import random
        random.seed(0)
        hits = 0
        for _ in range(4_000):
            hits += lands_in_circle()
        assert abs(4 * hits / 4_000 - math.pi) < 0.1
        """,
        wrong="""
        import random

        def lands_in_circle():
            x, y = random.random(), random.random()
            return x + y < 1
        """,
    ),
    Case(
        "a recursion fills the memo that the test passes in",
        answer="""
        def count_paths(rows, columns, memo):
            if rows == 1 or columns == 1:
                return 1
            if (rows, columns) not in memo:
                memo[rows, columns] = (
                    count_paths(rows - 1, columns, memo) + count_paths(rows, columns - 1, memo)
                )
            return memo[rows, columns]
        """,
        test="""
        import math
        memo = {}
        assert count_paths(20, 20, memo) == math.comb(38, 19)
        assert len(memo) == 19**2 and memo[2, 2] == 2
        memo[3, 3] = 100
        assert count_paths(3, 3, memo) == 100
        """,
        wrong="""
        import math

        def count_paths(rows, columns, memo):
            return math.comb(rows + columns - 2, rows - 1)
        """,
    ),
    Case(
        "a function with lru_cache is asked for its cache_info",
        answer="""
        from functools import lru_cache

        @lru_cache(maxsize=None)
        def count_stairs(n):
            return 1 if n < 2 else count_stairs(n - 1) + count_stairs(n - 2)
        """,
        test="""
        count_stairs.cache_clear()
        assert count_stairs(60) == 2504730781961
        assert count_stairs.cache_info().misses == 61
        count_stairs(60)
        info = count_stairs.cache_info()
        assert info.currsize == 61 and info.hits == 59
        """,
        wrong="""
        def count_stairs(n):
            a, b = 1, 1
            for _ in range(n):
                a, b = b, a + b
            return a
        """,
    ),
    Case(
        "two closures count, each for itself",
        answer="""
        def make_counter(step=1):
            count = 0

            def counter():
                nonlocal count
                count += step
                return count

            return counter
        """,
        test="""
        ones, tens = make_counter(), make_counter(10)
        assert [ones() for _ in range(3)] == [1, 2, 3]
        assert tens() == 10 and tens() == 20
        assert ones() == 4
        """,
        wrong="""
        def make_counter(step=1, counts=[0]):
            def counter():
                counts[0] += step
                return counts[0]

            return counter
        """,
    ),
    Case(
        "values are sent to a generator, which is closed at last",
        answer="""
        def running_mean():
            total, count, mean = 0, 0, None
            while True:
                value = yield mean
                total += value
                count += 1
                mean = total / count
        """,
        test="""
        import pytest
        means = running_mean()
        assert next(means) is None
        assert means.send(10) == 10
        assert means.send(20) == 15
        assert [means.send(x) for x in (30, 40)] == [20, 25]
        means.close()
        with pytest.raises(StopIteration):
            means.send(1)
        """,
        wrong="""
        def running_mean():
            total, count, mean = 0, 0, None
            while True:
                value = yield mean
                total += value
                mean = total / 2
        """,
    ),
    Case(
        "a decorator of the student's is applied to a recursive function of the test's",
        answer="""
        from functools import wraps

        def memoized(function):
            known = {}

            @wraps(function)
            def wrapper(*args):
                if args not in known:
                    known[args] = function(*args)
                return known[args]

            return wrapper
        """,
        test="""
        computed = []

        @memoized
        def rabbits(month):
            computed.append(month)
            return 1 if month < 2 else rabbits(month - 1) + rabbits(month - 2)

        assert rabbits(50) == 20365011074
        assert sorted(computed) == list(range(51))
        assert rabbits.__name__ == "rabbits"
        """,
        wrong="""
        def memoized(function):
            known = {}

            def wrapper(*args):
                if args not in known:
                    known[args] = function(*args)
                return known[args]

            return wrapper
        """,
    ),
    Case(
        "itertools, zip, enumerate and sum take from an endless generator",
        answer="""
        def fibonacci_numbers():
            a, b = 1, 1
            while True:
                yield a
                a, b = b, a + b
        """,
        test="""
        from itertools import islice, takewhile
        assert list(islice(fibonacci_numbers(), 6)) == [1, 1, 2, 3, 5, 8]
        assert list(zip("abc", fibonacci_numbers())) == [("a", 1), ("b", 1), ("c", 2)]
        assert sum(takewhile(lambda n: n < 100, fibonacci_numbers())) == 232
        for position, number in enumerate(fibonacci_numbers(), 1):
            if number > 1000:
                break
        assert position == 17
        """,
        wrong="""
        def fibonacci_numbers():
            a, b = 0, 1
            while True:
                yield a
                a, b = b, a + b
        """,
    ),
    Case(
        "sorted, max, map, filter and reduce call functions of the student's",
        answer="""
        def by_length(word):
            return len(word), word

        def is_short(word):
            return len(word) < 4

        def joined(a, b):
            return a + b[0]
        """,
        test="""
        from functools import reduce
        words = ["pear", "fig", "apple", "kiwi", "date"]
        assert sorted(words, key=by_length) == ["fig", "date", "kiwi", "pear", "apple"]
        assert max(words, key=by_length) == "apple"
        assert list(filter(is_short, words)) == ["fig"]
        assert dict(map(by_length, words)) == {4: "date", 3: "fig", 5: "apple"}
        assert reduce(joined, words, "") == "pfakd"
        """,
        wrong="""
        def by_length(word):
            return len(word), word[::-1]

        def is_short(word):
            return len(word) < 4

        def joined(a, b):
            return a + b[0]
        """,
    ),
    Case(
        "a unittest.TestCase is run in the test cell",
        answer="""
        def is_leap_year(year):
            if year < 1583:
                raise ValueError("the calendar begins in 1583")
            return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
        """,
        test="""
        import sys
        import unittest

        class TestLeapYears(unittest.TestCase):
            def test_years(self):
                for year, expected in [(2024, True), (2023, False), (1900, False), (2000, True)]:
                    with self.subTest(year=year):
                        self.assertEqual(is_leap_year(year), expected)

            def test_early(self):
                self.assertRaises(ValueError, is_leap_year, 1500)

        suite = unittest.defaultTestLoader.loadTestsFromTestCase(TestLeapYears)
        result = unittest.TextTestRunner(stream=sys.stdout).run(suite)
        assert result.testsRun == 2 and result.wasSuccessful()
        """,
        wrong="""
        def is_leap_year(year):
            if year < 1583:
                raise ValueError("the calendar begins in 1583")
            return year % 4 == 0
        """,
    ),
    Case(
        "numbers are compared by pytest.approx, math.isclose and numpy.testing",
        answer="""
        import numpy as np

        def describe_sample(x):
            return {"mean": np.mean(x), "std": np.std(x, ddof=1), "median": np.median(x)}
        """,
        test="""
        import math
        import numpy as np
        import pytest
        found = describe_sample([1, 2, 3, 10])
        assert found == pytest.approx({"mean": 4, "std": 4.0824829, "median": 2.5})
        assert math.isclose(found["std"], math.sqrt(50 / 3))
        np.testing.assert_allclose(list(found.values()), [4, np.sqrt(50 / 3), 2.5], rtol=1e-12)
        """,
        wrong="""
        import numpy as np

        def describe_sample(x):
            return {"mean": np.mean(x), "std": np.std(x), "median": np.median(x)}
        """,
    ),
    Case(
        "the examples in the student's docstring are run by doctest",
        answer='''
        def roman_number(n):
            """Return a number in Roman digits.

            >>> roman_number(14)
            'XIV'
            >>> [roman_number(n) for n in (1, 9)]
            ['I', 'IX']
            """
            result = ""
            for value, digits in [(10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I")]:
                while n >= value:
                    result += digits
                    n -= value
            return result
        ''',
        test="""
        import doctest
        (examples,) = doctest.DocTestFinder().find(roman_number, globs=globals())
        results = doctest.DocTestRunner().run(examples)
        assert results.attempted >= 2, "write at least two examples"
        assert results.failed == 0
        """,
        wrong='''
        def roman_number(n):
            """Return a number in Roman digits.

            >>> roman_number(14)
            'XIV'
            >>> [roman_number(n) for n in (1, 9)]
            ['I', 'IX']
            """
            result = ""
            for value, digits in [(10, "X"), (5, "V"), (1, "I")]:
                while n >= value:
                    result += digits
                    n -= value
            return result
        ''',
    ),
    Case(
        "an array of 20 MB is passed, and another returned",
        answer="""
        def doubled_values(x):
            return 2 * x
        """,
        test="""
        import numpy as np
        x = np.arange(2_500_000, dtype=np.float64)
        y = doubled_values(x)
        assert y.nbytes == 20_000_000 and y[-1] == 4_999_998
        """,
        wrong="""
        def doubled_values(x):
            return x + 1
        """,
    ),
    Case(
        "a list of a million numbers is passed, and a long one returned",
        answer="""
        def differences_of(numbers):
            return [b - a for a, b in zip(numbers, numbers[1:])]
        """,
        test="""
        numbers = list(range(0, 3_000_000, 3))
        found = differences_of(numbers)
        assert len(found) == 999_999
        assert set(found) == {3}
        """,
        wrong="""
        def differences_of(numbers):
            return [a - b for a, b in zip(numbers, numbers[1:])]
        """,
    ),
    Case(
        "a function of the test's that calls the student's is passed in",
        answer="""
        def slope(f, x, h=1e-6):
            return (f(x + h) - f(x - h)) / (2 * h)

        def bump(x):
            return 1 / (1 + x * x)
        """,
        test="""
        assert abs(slope(lambda x: bump(2 * x), 1) + 0.32) < 1e-6
        assert abs(slope(bump, 1) + 0.5) < 1e-6
        """,
        wrong="""
        def slope(f, x, h=1e-6):
            return (f(x + h) - f(x)) / (2 * h)

        def bump(x):
            return 1 / (1 + x * x)
        """,
    ),
    Case(
        "a decorator of the student's is applied to a function of the test's",
        answer="""
        from functools import wraps

        def logged(function):
            @wraps(function)
            def wrapper(*args):
                print("called with", *args)
                return function(*args)

            return wrapper
        """,
        test="""
        @logged
        def thrice(x):
            return 3 * x

        assert thrice(3) == 9
        """,
        wrong="""
        from functools import wraps

        def logged(function):
            @wraps(function)
            def wrapper(*args):
                print("called with", *args)
                function(*args)

            return wrapper
        """,
    ),
    Case(
        "an answer keeps its results with lru_cache",
        answer="""
        from functools import lru_cache

        @lru_cache
        def count_tilings(n):
            return 1 if n < 2 else count_tilings(n - 1) + count_tilings(n - 2)
        """,
        test="""
        assert [count_tilings(n) for n in (1, 4, 80)] == [1, 5, 37889062373143906]
        """,
        wrong="""
        from functools import lru_cache

        @lru_cache
        def count_tilings(n):
            return 1 if n < 3 else count_tilings(n - 1) + count_tilings(n - 2)
        """,
    ),
)
