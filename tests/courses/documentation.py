"""Modelled on nbgrader's documentation, above all on its page "Autograding resources".

Typical are hidden tests, partial credit as the value of the last line, an error that is expected
with ``try``, ``except`` and ``else``, a function that is deleted to see whether another one needs
it, functions replaced with ``unittest.mock.patch`` in ``__main__``, and cells graded by hand.
"""

from courses import Course, answer, plain, program, task, test, unnamed, words

COURSE = Course(
    cells=[
        plain("import math"),
        answer(
            "mean-square",
            '''
            def mean_square(values):
                """Return the mean of the squares of one or more numbers."""
                ### BEGIN SOLUTION
                if len(values) == 0:
                    raise ValueError("expected at least one number")
                return sum(value**2 for value in values) / len(values)
                ### END SOLUTION
            ''',
        ),
        unnamed("mean_square([1, 2, 3])"),
        test(
            "mean-square-values",
            2,
            """
            assert mean_square([2]) == 4
            assert mean_square([3, 4]) == 12.5
            ### BEGIN HIDDEN TESTS
            assert mean_square((-1, 1, -2, 2)) == 2.5
            ### END HIDDEN TESTS
            """,
        ),
        test(
            "mean-square-of-nothing",
            1,
            """
            try:
                mean_square([])
            except ValueError:
                pass
            else:
                raise AssertionError("mean_square([]) raises nothing")
            """,
        ),
        answer(
            "root",
            '''
            def root_mean_square(values):
                """Return the root of the mean of the squares; use your mean_square."""
                ### BEGIN SOLUTION
                return math.sqrt(mean_square(values))
                ### END SOLUTION
            ''',
        ),
        test("root-values", 1, "assert math.isclose(root_mean_square([1, 7]), 5)"),
        test(
            "root-needs-mean-square",
            1,
            """
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
            """,
        ),
        test("root-afterwards", 0.5, "assert root_mean_square([5, -5]) == 5"),
        answer(
            "report",
            '''
            def report(title, values):
                """Print a title, a colon and the root of the mean square with two decimals."""
                ### BEGIN SOLUTION
                print(f"{title}: {root_mean_square(values):.2f}")
                ### END SOLUTION
            ''',
        ),
        test(
            "report-calls-print-once",
            1,
            """
            from unittest.mock import patch

            with patch("__main__.print") as printed:
                report("noise", [3, 4])
            printed.assert_called_once_with("noise: 3.54")
            """,
        ),
        test(
            "report-shows-a-line",
            1,
            """
            import io
            from contextlib import redirect_stdout

            shown = io.StringIO()
            with redirect_stdout(shown):
                report("signal", [1, 7])
            assert shown.getvalue() == "signal: 5.00\\n"
            """,
        ),
        answer(
            "farthest",
            '''
            def farthest(values):
                """Return the value that is farthest from 0, without Python's max."""
                ### BEGIN SOLUTION
                found = values[0]
                for value in values:
                    if abs(value) > abs(found):
                        found = value
                return found
                ### END SOLUTION
            ''',
        ),
        test(
            "farthest-values",
            1,
            """
            assert farthest([1, 3, 2]) == 3
            assert farthest([1, -3, 2]) == -3
            """,
        ),
        test(
            "farthest-without-max",
            1,
            """
            from unittest.mock import patch

            with patch("__main__.max") as largest:
                farthest([1, 2])
            largest.assert_not_called()
            """,
        ),
        answer(
            "decibels",
            """
            def to_decibels(ratio):
                ### BEGIN SOLUTION
                return 10 * math.log10(ratio)
                ### END SOLUTION

            def from_decibels(level):
                ### BEGIN SOLUTION
                return 10 ** (level / 10)
                ### END SOLUTION
            """,
        ),
        test(
            "decibels-in-parts",
            3,
            """
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
            """,
        ),
        test("decibels-for-nothing", 0, "assert to_decibels(1) == 0"),
        words("why", 2, "The logarithm makes a product of gains a sum of levels."),
        program("use", 2, "gain = from_decibels(3) * from_decibels(7)"),
        task("sketch", 3, "Plot the level of a sine for ten amplitudes.\n\nAdd cells as you like."),
    ],
    changes={
        "another": {
            "mean-square": """
            def mean_square(values):
                try:
                    return math.fsum(x * x for x in values) / len(values)
                except ZeroDivisionError as error:
                    raise ValueError from error
            """,
            "root": "root_mean_square = lambda values: mean_square(values) ** 0.5",
            "report": """
            def report(title, values):
                line = "{}: {:.2f}".format(title, root_mean_square(values))
                print(line)
            """,
            "farthest": """
            def farthest(values):
                return sorted(values, key=abs)[-1]
            """,
            "decibels": """
            def to_decibels(ratio):
                return 10 * math.log(ratio) / math.log(10)

            def from_decibels(level):
                return math.pow(10, level / 10)
            """,
            "why": "It turns products into sums.",
            "use": "gain = 10",
        },
        "wrong": {
            "mean-square": """
            def mean_square(values):
                return (sum(values) / len(values)) ** 2
            """,
            "root": """
            def root_mean_square(values):
                return math.sqrt(sum(value**2 for value in values) / len(values))
            """,
            "report": """
            def report(title, values):
                return f"{title}: {root_mean_square(values):.2f}"
            """,
            "farthest": """
            def farthest(values):
                return max(values, key=abs)
            """,
            "decibels": """
            def to_decibels(ratio):
                return 20 * math.log10(ratio)

            def from_decibels(level):
                return 10 ** (level / 20)
            """,
        },
        "careless": {
            "mean-square": """
            def mean_square(values):
                if not values:
                    return 0
                return sum(value**2 for value in values) / len(values)
            """,
            "report": """
            def report(title, values):
                print(title + ":", end=" ")
                print(f"{root_mean_square(values):.2f}")
            """,
            "farthest": """
            def farthest(values):
                found = 0
                for value in values:
                    if value > found:
                        found = value
                return found
            """,
            "decibels": """
            def to_decibels(ratio):
                return 10 * math.log10(ratio)

            def from_decibels(level):
                return 10 ** level / 10
            """,
        },
        "raises": {
            "mean-square": """
            def mean_square(values):
                return sum(value**2 for value in values) / len(values)

            mean_square([])
            """,
            "report": "report('noise', [1, 2])",
            "farthest": """
            def farthest(values)
                return values[0]
            """,
        },
    },
)
