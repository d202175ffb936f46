"""What must not happen, such as an argument that is changed or a file that is left behind."""

from ordinary import Case

CASES = (
    Case(
        "an argument must not be changed",
        answer="""
        def ranking(times):
            return sorted(times)
        """,
        test="""
        race = [31.5, 29.8, 30.2]
        assert ranking(race) == [29.8, 30.2, 31.5]
        assert race == [31.5, 29.8, 30.2], "leave the argument as it is"
        """,
        wrong="""
        def ranking(times):
            times.sort()
            return times
        """,
    ),
    Case(
        "the result must not be the argument",
        answer="""
        def without_duplicates(items):
            return list(dict.fromkeys(items))
        """,
        test="""
        unique = ["a", "b"]
        assert without_duplicates(unique) == ["a", "b"]
        assert without_duplicates(unique) is not unique, "return a new list"
        """,
        wrong="""
        def without_duplicates(items):
            return items if len(set(items)) == len(items) else list(dict.fromkeys(items))
        """,
    ),
    Case(
        "an array that is returned must not be a view of the argument",
        answer="""
        def first_column(matrix):
            return matrix[:, 0].copy()
        """,
        test="""
        import numpy as np
        table = np.arange(6.0).reshape(3, 2)
        column = first_column(table)
        column[0] = 99
        assert table[0, 0] == 0
        """,
        wrong="""
        def first_column(matrix):
            return matrix[:, 0]
        """,
    ),
    Case(
        "the rows of a result must not be the same list",
        answer="""
        def empty_board(rows, columns):
            return [[0] * columns for _ in range(rows)]
        """,
        test="""
        squares_of_board = empty_board(2, 3)
        squares_of_board[0][0] = 1
        assert squares_of_board == [[1, 0, 0], [0, 0, 0]]
        """,
        wrong="""
        def empty_board(rows, columns):
            return [[0] * columns] * rows
        """,
    ),
    Case(
        "a variable must hold a copy of another",
        answer="""
        shopping = ["milk", "tea"]
        shopping_copy = list(shopping)
        """,
        test="""
        assert shopping_copy == shopping
        assert shopping_copy is not shopping
        """,
        wrong="""
        shopping = ["milk", "tea"]
        shopping_copy = shopping
        """,
    ),
    Case(
        "a class must not have an attribute",
        answer="""
        class Wallet:
            def __init__(self, coins):
                self._coins = coins
        """,
        test="""
        assert not hasattr(Wallet, "coins"), "keep the coins private"
        """,
        wrong="""
        class Wallet:
            coins = 0
        """,
    ),
    Case(
        "a result must be of a type itself, not of a class derived from it",
        answer="""
        def count_letters(text):
            return {letter: text.count(letter) for letter in text}
        """,
        test="""
        assert count_letters("noon") == {"n": 2, "o": 2}
        assert type(count_letters("noon")) is dict, "do not use Counter"
        """,
        wrong="""
        from collections import Counter

        def count_letters(text):
            return Counter(text)
        """,
    ),
    Case(
        "an error must be of a class itself, not of one derived from it",
        answer="""
        def positive_root(x):
            if x < 0:
                raise ValueError("expected a positive number")
            return x**0.5
        """,
        test="""
        try:
            positive_root(-1)
        except Exception as error:
            assert type(error) is ValueError
        else:
            assert False, "expected an error"
        """,
        wrong="""
        class Negative(ValueError):
            pass

        def positive_root(x):
            if x < 0:
                raise Negative("expected a positive number")
            return x**0.5
        """,
    ),
    Case(
        "no file must be left behind",
        answer="""
        import os

        def sorted_by_file(lines):
            with open("scratch.txt", "w") as file:
                file.writelines(sorted(lines))
            with open("scratch.txt") as file:
                result = file.readlines()
            os.remove("scratch.txt")
            return result
        """,
        test=r"""
        import os
        assert sorted_by_file(["b\n", "a\n"]) == ["a\n", "b\n"]
        assert not os.path.exists("scratch.txt")
        """,
        wrong="""
        def sorted_by_file(lines):
            with open("scratch.txt", "w") as file:
                file.writelines(sorted(lines))
            with open("scratch.txt") as file:
                return file.readlines()
        """,
    ),
    Case(
        "a file beside the notebook must stay as it is",
        answer="""
        def wettest_month():
            with open("rainfall.txt") as file:
                return max(float(line) for line in file)
        """,
        test=r"""
        assert wettest_month() == 91.5
        with open("rainfall.txt") as file:
            assert file.read() == "48.0\n91.5\n12.0\n"
        """,
        wrong="""
        def wettest_month():
            with open("rainfall.txt") as file:
                most = max(float(line) for line in file)
            with open("rainfall.txt", "w") as file:
                file.write(str(most))
            return most
        """,
    ),
    Case(
        "a function of Python's is forbidden by another of the same name",
        answer="""
        def grand_total(numbers):
            result = 0
            for number in numbers:
                result += number
            return result
        """,
        test="""
        def sum(*numbers):
            raise AssertionError("write a loop")

        assert grand_total([1, 2, 3]) == 6
        del sum
        """,
        wrong="""
        def grand_total(numbers):
            return sum(numbers)
        """,
    ),
    Case(
        "nothing must be printed",
        answer="""
        def silent_mean(x):
            return sum(x) / len(x)
        """,
        test="""
        import io
        from contextlib import redirect_stdout
        shown_by_answer = io.StringIO()
        with redirect_stdout(shown_by_answer):
            assert silent_mean([1, 2]) == 1.5
        assert shown_by_answer.getvalue() == "", "return the mean, do not print it"
        """,
        wrong="""
        def silent_mean(x):
            print(sum(x) / len(x))
            return sum(x) / len(x)
        """,
    ),
    Case(
        "a default argument must be new in each call",
        answer="""
        def add_guest(name, guests=None):
            return [*(guests or []), name]
        """,
        test="""
        assert add_guest("Ada") == ["Ada"]
        assert add_guest("Bob") == ["Bob"]
        """,
        wrong="""
        def add_guest(name, guests=[]):
            guests.append(name)
            return guests
        """,
    ),
    Case(
        "closures made in a loop must differ",
        answer="""
        def make_multipliers(n):
            return [lambda x, k=k: k * x for k in range(n)]
        """,
        test="""
        assert [multiply(10) for multiply in make_multipliers(3)] == [0, 10, 20]
        """,
        wrong="""
        def make_multipliers(n):
            return [lambda x: k * x for k in range(n)]
        """,
    ),
    Case(
        "an iterator that is passed in can be gone through once",
        answer="""
        def shares_of(amounts):
            amounts = list(amounts)
            return [amount / sum(amounts) for amount in amounts]
        """,
        test="""
        assert shares_of([1, 3]) == [0.25, 0.75]
        assert shares_of(amount for amount in (1, 3)) == [0.25, 0.75]
        """,
        wrong="""
        def shares_of(amounts):
            total = sum(amounts)
            return [amount / total for amount in amounts]
        """,
    ),
    Case(
        "a result must be there a second time",
        answer="""
        def cubes_up_to(n):
            return [k**3 for k in range(n)]
        """,
        test="""
        cubes = cubes_up_to(3)
        assert list(cubes) == [0, 1, 8]
        assert list(cubes) == [0, 1, 8], "return a list"
        """,
        wrong="""
        def cubes_up_to(n):
            return (k**3 for k in range(n))
        """,
    ),
    Case(
        "two random results must differ",
        answer="""
        import numpy as np

        def random_start(n):
            return np.random.rand(n)
        """,
        test="""
        import numpy as np
        assert not np.allclose(random_start(3), random_start(3))
        """,
        wrong="""
        import numpy as np

        def random_start(n):
            np.random.seed(0)
            return np.random.rand(n)
        """,
    ),
    Case(
        "a name must not be left over",
        answer="""
        total_rain = 0
        for rain_of_day in (3, 0, 5):
            total_rain += rain_of_day
        del rain_of_day
        """,
        test="""
        assert total_rain == 8
        assert "rain_of_day" not in globals(), "clean up"
        """,
        wrong="""
        total_rain = 0
        for rain_of_day in (3, 0, 5):
            total_rain += rain_of_day
        """,
    ),
)
