"""Modelled on ccha23/cs1302i21a: the labs of an introduction to programming.

Typical are generators, sets and other globals, functions of the instructor's plain cells that call
the student's, functions and lambdas as arguments and results, recursion, input read with ``input``,
simulation compared within a tolerance, and hidden tests at the end of each cell.
"""

from courses import Course, answer, plain, test

COURSE = Course(
    cells=[
        plain("import math\nimport string\n\nimport numpy as np"),
        plain('listed = "Tea tea Milk Sugar milk Water".split()'),
        answer(
            "known",
            """
            # known is the set of the words that are listed, in lower case
            ### BEGIN SOLUTION
            known = {word.lower() for word in listed}
            ### END SOLUTION
            """,
        ),
        test(
            "known-words",
            1,
            """
            assert isinstance(known, set) and len(known) == 4
            assert all(word in known for word in ("tea", "milk"))
            ### BEGIN HIDDEN TESTS
            assert "Tea" not in known
            assert known == {"tea", "milk", "sugar", "water"}
            ### END HIDDEN TESTS
            """,
        ),
        plain(
            '''
            def pieces(text):
                return text.split()

            def share_of_known(text):
                """Return which part of the pieces of a text is known."""
                found = [piece for piece in pieces(text) if piece in known]
                return len(found) / len(pieces(text))
            '''
        ),
        answer(
            "pieces",
            '''
            def pieces(text):
                """Return a list of the words of a text in lower case, without marks around them."""
                ### BEGIN SOLUTION
                return [word.strip(string.punctuation).lower() for word in text.split()]
                ### END SOLUTION
            ''',
        ),
        test(
            "pieces-of-text",
            1,
            """
            assert pieces("Tea, please!") == ["tea", "please"]
            assert share_of_known("Tea, please!") >= 0.4999
            ### BEGIN HIDDEN TESTS
            assert pieces('"Half-fat" (milk)?') == ["half-fat", "milk"]
            assert share_of_known("Milk! Milk! Sugar.") == 1
            ### END HIDDEN TESTS
            """,
        ),
        answer(
            "shift",
            '''
            def shift(text, key=3):
                """Return a text with each small letter moved by key places."""
                ### BEGIN SOLUTION
                letters = string.ascii_lowercase
                moved = letters[key % 26 :] + letters[: key % 26]
                return text.translate(str.maketrans(letters, moved))
                ### END SOLUTION
            ''',
        ),
        test(
            "shift-texts",
            1,
            """
            assert shift("abc xyz") == "def abc"
            assert shift("hello", 0) == "hello"
            ### BEGIN HIDDEN TESTS
            text = "Any text, however long it is."
            assert shift(shift(text, 11), -11) == text
            assert shift(key=27, text="z") == "a"
            ### END HIDDEN TESTS
            """,
        ),
        answer(
            "attack",
            '''
            def attack(text, threshold=0.6):
                """Generate, in order, the keys from 0 to 25 which undo a shift.

                With such a key the share of known words is at least the threshold.
                """
                ### BEGIN SOLUTION
                for key in range(26):
                    if share_of_known(shift(text, -key)) >= threshold:
                        yield key
                ### END SOLUTION
            ''',
        ),
        test(
            "attack-generates",
            2,
            """
            import types

            secret = shift("more sugar and milk and sugar", 5)
            keys = attack(secret, threshold=0.4)
            assert isinstance(keys, types.GeneratorType), "use yield"
            assert next(keys) == 5
            ### BEGIN HIDDEN TESTS
            assert list(attack(shift("tea", 9))) == [9]
            assert next(attack("unknown words"), None) is None
            assert 25 in attack(shift("milk", 25))
            ### END HIDDEN TESTS
            """,
        ),
        answer(
            "root",
            '''
            def bisect(f, a, b, tolerance=1e-9):
                """Return a root of a function that changes its sign between a and b."""
                ### BEGIN SOLUTION
                if f(a) * f(b) > 0:
                    raise ValueError("no change of sign")
                while b - a > tolerance:
                    middle = (a + b) / 2
                    if f(a) * f(middle) <= 0:
                        b = middle
                    else:
                        a = middle
                return (a + b) / 2
                ### END SOLUTION
            ''',
        ),
        test(
            "root-of-functions",
            2,
            """
            assert math.isclose(bisect(lambda x: x**2 - 2, 0, 2), math.sqrt(2), abs_tol=1e-6)
            assert math.isclose(bisect(math.cos, 0, 3), math.pi / 2, abs_tol=1e-6)
            ### BEGIN HIDDEN TESTS
            asked = []

            def watched(x):
                asked.append(x)
                return x - 1

            assert abs(bisect(watched, 0, 4, 0.5) - 1) <= 0.5
            assert 0 < len(asked) < 40
            try:
                bisect(abs, 1, 2)
            except ValueError:
                pass
            else:
                assert False, "a function without a root has none"
            ### END HIDDEN TESTS
            """,
        ),
        answer(
            "compose",
            '''
            def compose(*functions):
                """Return a function that applies functions, the last one first."""
                ### BEGIN SOLUTION
                def composed(x):
                    for function in reversed(functions):
                        x = function(x)
                    return x

                return composed
                ### END SOLUTION
            ''',
        ),
        test(
            "compose-functions",
            1,
            """
            assert callable(compose(abs))
            assert compose(lambda x: x + 1, lambda x: 2 * x)(5) == 11
            ### BEGIN HIDDEN TESTS
            assert compose()("same") == "same"
            assert compose(str.upper, str.strip)(" a ") == "A"
            twice = compose(compose(math.sqrt), abs)
            assert [twice(x) for x in (-4, 9)] == [2, 3]
            ### END HIDDEN TESTS
            """,
        ),
        answer(
            "towers",
            '''
            def moves(disks, start="A", end="C", spare="B"):
                """Return a list of the moves, pairs of pegs, that move disks from peg to peg."""
                ### BEGIN SOLUTION
                if disks == 0:
                    return []
                before = moves(disks - 1, start, spare, end)
                return [*before, (start, end), *moves(disks - 1, spare, end, start)]
                ### END SOLUTION
            ''',
        ),
        test(
            "towers-moved",
            1.5,
            """
            assert moves(1) == [("A", "C")]
            assert moves(2) == [("A", "B"), ("A", "C"), ("B", "C")]
            ### BEGIN HIDDEN TESTS
            pegs = {"A": [4, 3, 2, 1], "B": [], "C": []}
            for start, end in moves(4):
                disk = pegs[start].pop()
                assert not pegs[end] or pegs[end][-1] > disk
                pegs[end].append(disk)
            assert pegs["C"] == [4, 3, 2, 1] and len(moves(6)) == 63
            ### END HIDDEN TESTS
            """,
        ),
        answer(
            "ask",
            '''
            def ask_number(question):
                """Ask with input until the answer is a whole number, and return the number."""
                ### BEGIN SOLUTION
                while True:
                    try:
                        return int(input(question))
                    except ValueError:
                        print("That is no whole number.")
                ### END SOLUTION
            ''',
        ),
        test(
            "ask-until-number",
            1,
            """
            from unittest import mock

            with mock.patch("builtins.input", side_effect=["three", "3.0", "3"]) as asked:
                assert ask_number("How many? ") == 3
            assert asked.call_count == 3
            asked.assert_called_with("How many? ")
            """,
        ),
        answer(
            "simulate",
            '''
            def estimate_pi(n):
                """Estimate π with n points that are drawn at random with NumPy."""
                ### BEGIN SOLUTION
                x, y = np.random.random((2, n))
                return 4 * np.mean(x**2 + y**2 <= 1)
                ### END SOLUTION
            ''',
        ),
        test(
            "simulate-pi",
            1,
            """
            assert isinstance(estimate_pi(10), float)
            assert np.isclose(estimate_pi(100_000), math.pi, atol=0.05)
            ### BEGIN HIDDEN TESTS
            assert estimate_pi(1000) != estimate_pi(1001)
            np.random.seed(1)
            first = estimate_pi(500)
            np.random.seed(1)
            assert first == estimate_pi(500)
            ### END HIDDEN TESTS
            """,
        ),
    ],
    changes={
        "another": {
            "known": "known = set(map(str.lower, listed))",
            "pieces": """
            import re

            def pieces(text):
                return re.findall(r"[a-z]+(?:-[a-z]+)*", text.lower())
            """,
            "shift": """
            def shift(text, key=3):
                shifted = ""
                for letter in text:
                    if "a" <= letter <= "z":
                        letter = chr((ord(letter) - 97 + key) % 26 + 97)
                    shifted += letter
                return shifted
            """,
            "attack": """
            def attack(text, threshold=0.6):
                return (k for k in range(26) if share_of_known(shift(text, 26 - k)) >= threshold)
            """,
            "root": """
            def bisect(f, a, b, tolerance=1e-9):
                left, right = f(a), f(b)
                if left > 0 < right or left < 0 > right:
                    raise ValueError
                middle = 0.5 * (a + b)
                if b - a < tolerance:
                    return middle
                if np.sign(f(middle)) == np.sign(left):
                    return bisect(f, middle, b, tolerance)
                return bisect(f, a, middle, tolerance)
            """,
            "compose": """
            from functools import reduce

            def compose(*functions):
                return reduce(lambda f, g: lambda x: f(g(x)), functions, lambda x: x)
            """,
            "towers": """
            def moves(disks, start="A", end="C", spare="B"):
                def generate(n, a, c, b):
                    if n:
                        yield from generate(n - 1, a, b, c)
                        yield a, c
                        yield from generate(n - 1, b, c, a)
                return list(generate(disks, start, end, spare))
            """,
            "ask": """
            def ask_number(question):
                given = input(question)
                while not given.strip().lstrip("+-").isdigit():
                    given = input(question)
                return int(given)
            """,
            "simulate": """
            def estimate_pi(n):
                points = np.random.uniform(-1, 1, size=(n, 2))
                return float(4 * (np.linalg.norm(points, axis=1) < 1).sum() / n)
            """,
        },
        "wrong": {
            "known": "known = [word.lower() for word in listed]",
            "pieces": """
            def pieces(text):
                return text.lower().split()
            """,
            "shift": """
            def shift(text, key=3):
                return "".join(chr(ord(letter) + key) for letter in text)
            """,
            "attack": """
            def attack(text, threshold=0.6):
                return [key for key in range(26) if share_of_known(shift(text, -key)) >= threshold]
            """,
            "root": """
            def bisect(f, a, b, tolerance=1e-9):
                for _ in range(50):
                    middle = (a + b) / 2
                    if f(middle) > 0:
                        b = middle
                    else:
                        a = middle
                return middle
            """,
            "compose": """
            def compose(*functions):
                def composed(x):
                    for function in functions:
                        x = function(x)
                    return x
                return composed
            """,
            "towers": """
            def moves(disks, start="A", end="C", spare="B"):
                if disks == 1:
                    return [(start, end)]
                before, after = moves(disks - 1, start, spare), moves(disks - 1, spare, end)
                return before + [(start, end)] + after
            """,
            "ask": """
            def ask_number(question):
                return int(float(input(question)))
            """,
            "simulate": """
            def estimate_pi(n):
                return 3.14159
            """,
        },
        "careless": {
            "known": "known = set(listed)",
            "pieces": """
            def pieces(text):
                for mark in string.punctuation:
                    text = text.replace(mark, "")
                return text.lower().split()
            """,
            "shift": """
            def shift(text, key=3):
                letters = string.ascii_lowercase
                moved = [letters[letters.find(c) + key - 26] if c in letters else c for c in text]
                return "".join(moved)
            """,
            "attack": """
            def attack(text, threshold=0.6):
                for key in range(1, 25):
                    if share_of_known(shift(text, key)) > threshold:
                        yield key
            """,
            "root": """
            def bisect(f, a, b, tolerance=1e-9):
                while b - a > tolerance:
                    middle = (a + b) / 2
                    if f(a) * f(middle) < 0:
                        b = middle
                    else:
                        a = middle
                return a
            """,
            "compose": """
            def compose(*functions):
                return lambda x: functions[0](functions[1](x))
            """,
            "towers": """
            def moves(disks, start="A", end="C", spare="B"):
                if disks == 0:
                    return 0
                return 2 * moves(disks - 1) + 1
            """,
            "ask": """
            def ask_number(question):
                print(question, end="")
                while True:
                    try:
                        return int(input())
                    except ValueError:
                        continue
            """,
            "simulate": """
            def estimate_pi(n):
                x, y = np.random.default_rng(0).random((2, n))
                return 4 * np.mean(x**2 + y**2 <= 1)
            """,
        },
        "raises": {
            "pieces": """
            def pieces(text):
                return [word.strip(punctuation).lower() for word in text.split()]
            """,
            "attack": """
            def attack(text, threshold=0.6):
                raise NotImplementedError
                yield 0
            """,
            "towers": """
            def moves(disks, start="A", end="C", spare="B"):
                return moves(disks - 1, start, spare) if disks else [start, end] + (end, spare)
            """,
            "simulate": "estimate_pi = 1 / 0",
        },
    },
)
