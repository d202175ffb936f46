"""What an answer prints, asks, warns of, logs, reads from files and writes to them."""

from ordinary import Case

CASES = (
    Case(
        "what is printed is captured by redirect_stdout",
        answer="""
        def print_squares(n):
            for k in range(1, n + 1):
                print(f"{k} squared is {k * k}")
        """,
        test="""
        import io
        from contextlib import redirect_stdout
        output = io.StringIO()
        with redirect_stdout(output):
            print_squares(2)
        assert output.getvalue().splitlines() == ["1 squared is 1", "2 squared is 4"]
        """,
        wrong="""
        def print_squares(n):
            for k in range(n):
                print(f"{k} squared is {k * k}")
        """,
    ),
    Case(
        "builtins.print is patched, and its calls are counted",
        answer="""
        def cheer(name, times):
            for _ in range(times):
                print("Go,", name, end="!")
        """,
        test="""
        from unittest.mock import patch
        with patch("builtins.print") as printed:
            cheer("Ada", 3)
        assert printed.call_count == 3
        printed.assert_called_with("Go,", "Ada", end="!")
        """,
        wrong="""
        def cheer(name, times):
            print(f"Go, {name}!" * times)
        """,
    ),
    Case(
        "builtins.input is patched, and answers",
        answer="""
        def ask_age():
            while True:
                text = input("How old are you? ")
                if text.isdigit():
                    return int(text)
                print("Please type a number.")
        """,
        test="""
        from unittest.mock import patch
        with patch("builtins.input", side_effect=["old", "", "42"]) as asked:
            assert ask_age() == 42
        assert asked.call_count == 3
        """,
        wrong="""
        def ask_age():
            return int(input("How old are you? "))
        """,
    ),
    Case(
        "warnings are recorded by warnings.catch_warnings",
        answer="""
        import warnings

        def checked_ratio(a, b):
            if b == 0:
                warnings.warn("division by zero", RuntimeWarning)
                return float("inf")
            return a / b
        """,
        test="""
        import warnings
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            assert checked_ratio(1, 2) == 0.5
            assert len(caught) == 0
            assert checked_ratio(1, 0) == float("inf")
        assert len(caught) == 1
        assert caught[0].category is RuntimeWarning
        assert "zero" in str(caught[0].message)
        """,
        wrong="""
        def checked_ratio(a, b):
            if b == 0:
                print("Warning: division by zero")
                return float("inf")
            return a / b
        """,
    ),
    Case(
        "what is logged is captured by assertLogs",
        answer="""
        import logging

        bank_log = logging.getLogger("bank")

        def transfer(amount):
            if amount > 10_000:
                bank_log.warning("large transfer: %d", amount)
            bank_log.info("transferred")
        """,
        test="""
        import unittest
        with unittest.TestCase().assertLogs("bank", level="INFO") as logs:
            transfer(5)
            transfer(20_000)
        assert logs.output[1] == "WARNING:bank:large transfer: 20000"
        assert [record.levelname for record in logs.records] == ["INFO", "WARNING", "INFO"]
        """,
        wrong="""
        import logging

        bank_log = logging.getLogger("bank")

        def transfer(amount):
            if amount > 10_000:
                bank_log.info("large transfer: %d", amount)
            bank_log.info("transferred")
        """,
    ),
    Case(
        "a file that the student's cell has written is read by the test",
        answer=r"""
        with open("primes.txt", "w") as primes_file:
            for candidate in range(2, 20):
                if all(candidate % divisor for divisor in range(2, candidate)):
                    primes_file.write(f"{candidate}\n")
        """,
        test="""
        from pathlib import Path
        assert Path("primes.txt").exists(), "write the file primes.txt"
        numbers = [int(line) for line in Path("primes.txt").read_text().splitlines()]
        assert numbers == [2, 3, 5, 7, 11, 13, 17, 19]
        """,
        wrong=r"""
        with open("primes.txt", "w") as primes_file:
            for candidate in range(1, 20, 2):
                primes_file.write(f"{candidate}\n")
        """,
    ),
    Case(
        "a file that a function writes is read by the test",
        answer="""
        import csv

        def save_scores(scores, path):
            with open(path, "w", newline="") as file:
                writer = csv.writer(file)
                writer.writerow(["name", "score"])
                writer.writerows(sorted(scores.items()))
        """,
        test="""
        import csv
        save_scores({"bob": 7, "ada": 9}, "scores.csv")
        with open("scores.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        assert rows == [{"name": "ada", "score": "9"}, {"name": "bob", "score": "7"}]
        """,
        wrong="""
        import csv

        def save_scores(scores, path):
            with open(path, "w", newline="") as file:
                csv.writer(file).writerows(sorted(scores.items()))
        """,
    ),
    Case(
        "a file that the test writes is read by the answer",
        answer="""
        import json

        def load_settings(path):
            settings = {"color": "blue", "size": 10}
            try:
                with open(path) as file:
                    settings.update(json.load(file))
            except FileNotFoundError:
                pass
            return settings
        """,
        test="""
        import json
        from pathlib import Path
        Path("folder_of_settings").mkdir(exist_ok=True)
        path = Path("folder_of_settings") / "mine.json"
        path.write_text(json.dumps({"size": 12}))
        assert load_settings(path) == {"color": "blue", "size": 12}
        path.unlink()
        assert load_settings(str(path))["size"] == 10
        """,
        wrong="""
        def load_settings(path):
            return {"color": "blue", "size": 10}
        """,
    ),
    Case(
        "a function of a module that the answer calls is patched",
        answer="""
        import time

        def wait_until(ready, pause):
            waited = 0
            while not ready():
                time.sleep(pause)
                waited += pause
            return waited
        """,
        test="""
        from unittest.mock import call, patch
        states = iter([False, False, True])
        with patch("time.sleep") as sleep:
            assert wait_until(lambda: next(states), 0.25) == 0.5
        assert sleep.mock_calls == [call(0.25), call(0.25)]
        """,
        wrong="""
        import time

        def wait_until(ready, pause):
            waited = 0
            while not ready():
                waited += pause
            return waited
        """,
    ),
    Case(
        "standard input is replaced by text",
        answer="""
        import sys

        def total_of_lines():
            first = float(input())
            return first + sum(float(line) for line in sys.stdin)
        """,
        test=r"""
        import io
        import sys
        own_stdin, sys.stdin = sys.stdin, io.StringIO("1\n2\n3.5\n")
        try:
            assert total_of_lines() == 6.5
        finally:
            sys.stdin = own_stdin
        """,
        wrong="""
        def total_of_lines():
            return float(input())
        """,
    ),
    Case(
        "a warning of NumPy is an error for the test",
        answer="""
        import numpy as np

        def safe_log(x):
            x = np.asarray(x, float)
            return np.log(x, out=np.full_like(x, -np.inf), where=x > 0)
        """,
        test="""
        import numpy as np
        import warnings
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert list(safe_log([0, 1])) == [-np.inf, 0]
        """,
        wrong="""
        import numpy as np

        def safe_log(x):
            return np.log(np.asarray(x, float))
        """,
    ),
    Case(
        "a function of a library is forbidden by a patch",
        answer="""
        def my_median(values):
            values = sorted(values)
            middle = len(values) // 2
            return values[middle] if len(values) % 2 else sum(values[middle - 1:middle + 1]) / 2
        """,
        test="""
        import statistics
        from unittest.mock import patch
        with patch.object(statistics, "median", side_effect=AssertionError("do it yourself")):
            assert my_median([3, 1, 2]) == 2
            assert my_median([4, 1]) == 2.5
        """,
        wrong="""
        import statistics

        def my_median(values):
            return statistics.median(values)
        """,
    ),
    Case(
        "patch replaces a helper of the student's, and gives it back",
        answer="""
            def download_page(address):
                raise OSError("there is no network")

            def title_of(address):
                page = download_page(address)
                return page.partition("<title>")[2].partition("</title>")[0]
        """,
        test="""
            import pytest
            from unittest.mock import patch
            with patch("__main__.download_page", return_value="<title>Hi</title>") as asked:
                assert title_of("a.org") == "Hi"
            asked.assert_called_once_with("a.org")
            with pytest.raises(OSError):
                title_of("a.org")
        """,
        wrong="""
            def download_page(address):
                raise OSError("there is no network")

            def title_of(address):
                return "Hi"
        """,
    ),
)
