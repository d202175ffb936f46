"""What a test asks about names, types and sources, and names that it sets itself."""

from ordinary import Case

CASES = (
    Case(
        "issubclass of classes of the student's, and of an exception",
        answer="""
        class Animal:
            def speak(self):
                raise NotImplementedError

        class Dog(Animal):
            def speak(self):
                return "Woof"

        class NotFed(RuntimeError):
            pass
        """,
        test="""
        assert issubclass(Dog, Animal) and not issubclass(Animal, Dog)
        assert issubclass(NotFed, RuntimeError)
        assert Dog.__bases__ == (Animal,)
        assert Dog().speak() == "Woof" and "speak" in vars(Dog)
        """,
        wrong="""
        class Animal:
            def speak(self):
                raise NotImplementedError

        class Dog:
            def speak(self):
                return "Woof"

        class NotFed(RuntimeError):
            pass
        """,
    ),
    Case(
        "inspect.signature gives parameters and defaults",
        answer="""
        def compound(capital, rate=0.05, *, years=1):
            return capital * (1 + rate) ** years
        """,
        test="""
        import inspect
        signature = inspect.signature(compound)
        assert list(signature.parameters) == ["capital", "rate", "years"]
        assert signature.parameters["rate"].default == 0.05
        assert signature.parameters["years"].kind is inspect.Parameter.KEYWORD_ONLY
        assert compound(100, 0.5, years=2) == 225
        """,
        wrong="""
        def compound(capital, rate=0.05, years=1):
            return capital * (1 + rate) ** years
        """,
    ),
    Case(
        "inspect.getsource shows whether there is a loop",
        answer="""
        import numpy as np

        def sum_of_cubes(x):
            return (np.asarray(x) ** 3).sum()
        """,
        test="""
        import ast
        import inspect
        source = inspect.getsource(sum_of_cubes)
        loops = (ast.For, ast.While, ast.ListComp, ast.GeneratorExp)
        assert not any(isinstance(node, loops) for node in ast.walk(ast.parse(source)))
        assert "**" in source
        assert sum_of_cubes([1, 2, 3]) == 36
        """,
        wrong="""
        def sum_of_cubes(x):
            return sum(value**3 for value in x)
        """,
    ),
    Case(
        "inspect tells functions, generator functions and classes apart",
        answer="""
        def lazy_squares(n):
            for k in range(n):
                yield k * k

        def eager_squares(n):
            return list(lazy_squares(n))
        """,
        test="""
        import inspect
        assert inspect.isgeneratorfunction(lazy_squares)
        assert inspect.isfunction(eager_squares)
        assert not inspect.isgeneratorfunction(eager_squares)
        assert inspect.isgenerator(lazy_squares(3))
        assert eager_squares(3) == [0, 1, 4] and not inspect.isclass(eager_squares)
        """,
        wrong="""
        def lazy_squares(n):
            return (k * k for k in range(n))

        def eager_squares(n):
            return list(lazy_squares(n))
        """,
    ),
    Case(
        "typing.get_type_hints gives the annotations",
        answer="""
        from typing import Optional

        def find_word(words: list[str], start: str) -> Optional[str]:
            return next((word for word in words if word.startswith(start)), None)
        """,
        test="""
        from typing import Optional, get_type_hints
        hints = get_type_hints(find_word)
        assert hints == {"words": list[str], "start": str, "return": Optional[str]}
        assert find_word.__annotations__["start"] is str
        assert find_word(["ant", "bee"], "b") == "bee"
        """,
        wrong="""
        def find_word(words: list, start: str) -> str:
            return next((word for word in words if word.startswith(start)), None)
        """,
    ),
    Case(
        "the docstring is read by inspect.getdoc",
        answer='''
        def celsius(fahrenheit):
            """Return the temperature in °C.

            The argument is in °F.
            """
            return (fahrenheit - 32) * 5 / 9
        ''',
        test="""
        import inspect
        assert celsius.__doc__ is not None, "please write a docstring"
        assert inspect.getdoc(celsius).splitlines()[0] == "Return the temperature in °C."
        assert celsius(212) == 100
        """,
        wrong="""
        def celsius(fahrenheit):
            # Return the temperature in °C.
            return (fahrenheit - 32) * 5 / 9
        """,
    ),
    Case(
        "a name is looked up in globals()",
        answer="""
        planet_count = 8
        """,
        test="""
        assert "planet_count" in globals(), "define planet_count"
        assert globals()["planet_count"] == 8
        assert "moon_count" not in globals()
        """,
        wrong="""
        planets_count = 8
        """,
    ),
    Case(
        "a global of the student's is read after a function has changed it",
        answer="""
        visits = 0

        def visit():
            global visits
            visits += 1
        """,
        test="""
        before = visits
        for _ in range(3):
            visit()
        assert visits == before + 3
        """,
        wrong="""
        visits = 0

        def visit():
            visits = 1
        """,
    ),
    Case(
        "a global of the student's is set by the test, and used by the answer",
        answer="""
        gravity = 9.81

        def fall_time(height):
            return (2 * height / gravity) ** 0.5
        """,
        test="""
        import math
        assert math.isclose(fall_time(9.81), 2**0.5)
        gravity = 2
        assert fall_time(16) == 4
        """,
        wrong="""
        gravity = 9.81

        def fall_time(height):
            return (2 * height / 9.81) ** 0.5
        """,
    ),
    Case(
        "a helper that the answer calls is defined anew by the test",
        answer="""
        def fetch_rate(currency):
            raise OSError("there is no network")

        def to_euro(amount, currency):
            return amount / fetch_rate(currency)
        """,
        test="""
        def fetch_rate(currency):
            asked.append(currency)
            return {"USD": 1.25, "JPY": 160}[currency]

        asked = []
        assert to_euro(5, "USD") == 4
        assert to_euro(320, "JPY") == 2
        assert asked == ["USD", "JPY"]
        """,
        wrong="""
        def fetch_rate(currency):
            raise OSError("there is no network")

        def to_euro(amount, currency):
            return amount * fetch_rate(currency)
        """,
    ),
)
