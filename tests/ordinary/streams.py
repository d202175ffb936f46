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
        "a warning is expected by pytest.warns, and turned into an error",
        answer="""
        import warnings

        def old_average(x):
            warnings.warn("use statistics.mean", DeprecationWarning, stacklevel=2)
            return sum(x) / len(x)
        """,
        test="""
        import pytest
        import warnings
        with pytest.warns(DeprecationWarning, match="statistics.mean"):
            assert old_average([1, 2]) == 1.5
        with warnings.catch_warnings(), pytest.raises(DeprecationWarning):
            warnings.simplefilter("error")
            old_average([1, 2])
        """,
        wrong="""
        import warnings

        def old_average(x):
            warnings.warn("use statistics.mean")
            return sum(x) / len(x)
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
            assert wait_until(lambda: next(states), 30) == 60
        assert sleep.mock_calls == [call(30), call(30)]
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
        "a file in a temporary folder of the test is written by the answer",
        answer=r"""
        from pathlib import Path

        def split_lines(source, folder):
            for number, line in enumerate(Path(source).read_text().splitlines()):
                (Path(folder) / f"line{number}.txt").write_text(line + "\n")
        """,
        test=r"""
        import os
        import tempfile
        with tempfile.TemporaryDirectory() as folder_of_lines:
            source_of_lines = os.path.join(folder_of_lines, "all.txt")
            with open(source_of_lines, "w") as file_of_lines:
                file_of_lines.write("one\ntwo\n")
            split_lines(source_of_lines, folder_of_lines)
            assert sorted(os.listdir(folder_of_lines)) == ["all.txt", "line0.txt", "line1.txt"]
            assert open(os.path.join(folder_of_lines, "line1.txt")).read() == "two\n"
        """,
        wrong=r"""
        from pathlib import Path

        def split_lines(source, folder):
            for number, line in enumerate(Path(source).read_text().splitlines()):
                (Path(folder) / f"line{number}.txt").write_text(line)
        """,
    ),
    Case(
        "an array is saved by a function and loaded by the test",
        answer="""
        import numpy as np

        def save_normalized(x, path):
            np.savez(path, x=(x - x.mean()) / x.std())
        """,
        test="""
        import numpy as np
        save_normalized(np.arange(5.0), "normalized.npz")
        loaded = np.load("normalized.npz")["x"]
        np.testing.assert_allclose([loaded.mean(), loaded.std()], [0, 1], atol=1e-12)
        """,
        wrong="""
        import numpy as np

        def save_normalized(x, path):
            np.savez(path, x=x - x.mean())
        """,
    ),
    Case(
        "a file is changed call by call, and removed in the end",
        answer=r"""
        from pathlib import Path

        def count_visit(path):
            count = int(Path(path).read_text()) + 1 if Path(path).exists() else 1
            Path(path).write_text(str(count))

        def forget_visits(path):
            Path(path).unlink(missing_ok=True)
        """,
        test="""
        from pathlib import Path
        visit_file = Path("visits.txt")
        for number in range(1, 30):
            count_visit("visits.txt")
            assert visit_file.read_text() == str(number)
        visit_file.write_text("55")
        count_visit(visit_file)
        assert visit_file.read_text() == "56"
        forget_visits(visit_file)
        assert not visit_file.exists()
        """,
        wrong=r"""
        from pathlib import Path

        visit_count = 0

        def count_visit(path):
            global visit_count
            visit_count += 1
            Path(path).write_text(str(visit_count))

        def forget_visits(path):
            Path(path).unlink(missing_ok=True)
        """,
    ),
    Case(
        "input is replaced by a function of the test's own",
        answer="""
        def read_numbers():
            numbers = []
            while (text := input("Number, or q: ")) != "q":
                numbers.append(float(text))
            return numbers
        """,
        test="""
        import builtins
        own_input = builtins.input
        typed = iter(["1", "2.5", "q"])
        builtins.input = lambda prompt="": next(typed)
        try:
            assert read_numbers() == [1, 2.5]
        finally:
            builtins.input = own_input
        """,
        wrong="""
        def read_numbers():
            return [float(input("Number, or q: ")) for _ in range(3)]
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
        "a warning has a class of the student's own",
        answer="""
        import warnings

        class PrecisionWarning(UserWarning):
            pass

        def rounded_half(n):
            if n % 2:
                warnings.warn(f"{n} is odd", PrecisionWarning, stacklevel=2)
            return n // 2
        """,
        test="""
        import pytest
        import warnings
        with pytest.warns(PrecisionWarning, match="3 is odd"):
            assert rounded_half(3) == 1
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert rounded_half(4) == 2
        """,
        wrong="""
        import warnings

        class PrecisionWarning(UserWarning):
            pass

        def rounded_half(n):
            warnings.warn(f"{n} is odd", PrecisionWarning, stacklevel=2)
            return n // 2
        """,
    ),
    Case(
        "a warning that the answer catches itself is none for the test",
        answer="""
        import numpy as np
        import warnings

        def quiet_ratio(a, b):
            with warnings.catch_warnings(record=True) as seen_warnings:
                warnings.simplefilter("always")
                ratio = np.float64(a) / np.float64(b)
            return ratio, len(seen_warnings)
        """,
        test="""
        import warnings
        with warnings.catch_warnings(record=True) as seen_by_test:
            warnings.simplefilter("always")
            assert quiet_ratio(1, 0) == (float("inf"), 1)
            assert quiet_ratio(1, 2) == (0.5, 0)
        assert not seen_by_test
        """,
        wrong="""
        import numpy as np

        def quiet_ratio(a, b):
            return np.float64(a) / np.float64(b), int(b == 0)
        """,
    ),
    Case(
        "random numbers are chosen by the test",
        answer="""
        import random

        def roll_until_six():
            rolls = 1
            while random.randint(1, 6) != 6:
                rolls += 1
            return rolls
        """,
        test="""
        from unittest.mock import patch
        with patch("random.randint", side_effect=[1, 5, 6, 6]) as dice:
            assert roll_until_six() == 3
            assert roll_until_six() == 1
        dice.assert_called_with(1, 6)
        """,
        wrong="""
        import random

        def roll_until_six():
            rolls = 0
            while random.randint(1, 6) != 6:
                rolls += 1
            return rolls
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
        "a handler of the test's own gets what is logged",
        answer="""
        import logging

        def divide_logged(a, b):
            log = logging.getLogger("calculator")
            log.debug("%s / %s", a, b)
            if not b:
                log.error("division by zero")
                return None
            return a / b
        """,
        test="""
        import logging
        class Memory(logging.Handler):
            def __init__(self):
                super().__init__()
                self.lines = []
            def emit(self, record):
                self.lines.append((record.levelname, record.getMessage()))
        memory, calculator_log = Memory(), logging.getLogger("calculator")
        calculator_log.addHandler(memory)
        calculator_log.setLevel(logging.DEBUG)
        try:
            assert divide_logged(1, 0) is None
        finally:
            calculator_log.removeHandler(memory)
            calculator_log.setLevel(logging.NOTSET)
        assert memory.lines == [("DEBUG", "1 / 0"), ("ERROR", "division by zero")]
        """,
        wrong="""
        import logging

        def divide_logged(a, b):
            if not b:
                logging.error("division by zero")
                return None
            return a / b
        """,
    ),
    Case(
        "patch replaces a function of Python's in the student's notebook",
        answer="""
            def largest_of(values):
                found = values[0]
                for value in values:
                    found = value if value > found else found
                return found
        """,
        test="""
            from unittest.mock import patch
            with patch("__main__.max") as cheat:
                assert largest_of([3, 9, 4]) == 9
            cheat.assert_not_called()
            assert largest_of([3]) == 3
        """,
        wrong="""
            def largest_of(values):
                return 9 if max(values) else 0
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
