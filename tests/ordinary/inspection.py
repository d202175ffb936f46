"""What a test asks about names, types and sources, and names that it sets itself."""

from ordinary import Case

CASES = (
    Case(
        "isinstance with the student's class, a type and an abstract type",
        answer="""
        class Queue:
            def __init__(self):
                self.items = []

            def __len__(self):
                return len(self.items)

            def __iter__(self):
                return iter(self.items)

            def __contains__(self, item):
                return item in self.items

        def new_queues(n):
            return [Queue() for _ in range(n)]
        """,
        test="""
        from collections.abc import Collection, Sequence
        queues = new_queues(2)
        assert isinstance(queues, list)
        assert all(isinstance(queue, Queue) for queue in queues)
        assert isinstance(queues[0], Collection) and not isinstance(queues[0], Sequence)
        """,
        wrong="""
        class Queue:
            def __init__(self):
                self.items = []

            def __len__(self):
                return len(self.items)

        def new_queues(n):
            return [Queue() for _ in range(n)]
        """,
    ),
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
        "the name of a type, of a function and of its module",
        answer="""
        class Rectangle:
            pass

        def double_it(x):
            return 2 * x

        def make_shape():
            return Rectangle()
        """,
        test="""
        assert type(make_shape()).__name__ == "Rectangle"
        assert make_shape().__class__ is Rectangle
        assert double_it.__name__ == "double_it"
        assert double_it.__module__ == Rectangle.__module__ == "__main__"
        """,
        wrong="""
        class Rectangle:
            pass

        double_it = lambda x: 2 * x

        def make_shape():
            return Rectangle
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
        "a name is looked up in dir(), and attributes in that of an object",
        answer="""
        class Lamp:
            def __init__(self):
                self.is_on = False

            def toggle(self):
                self.is_on = not self.is_on

        desk_lamp = Lamp()
        """,
        test="""
        assert "desk_lamp" in dir()
        public = [name for name in dir(desk_lamp) if not name.startswith("_")]
        assert public == ["is_on", "toggle"]
        desk_lamp.toggle()
        assert vars(desk_lamp) == {"is_on": True}
        """,
        wrong="""
        class Lamp:
            def __init__(self):
                self.is_on = False

            def switch(self):
                self.is_on = not self.is_on

        desk_lamp = Lamp()
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
        "an element of a global list and of a global dict is set by the test",
        answer="""
        board = [[" "] * 3 for _ in range(3)]
        wins = {"X": 0, "O": 0}

        def has_won(player):
            won = any(all(cell == player for cell in row) for row in board)
            wins[player] += won
            return won
        """,
        test="""
        assert not has_won("X")
        board[1][0] = board[1][1] = "X"
        board[1][2] = "X"
        wins["O"] = 7
        assert has_won("X") and not has_won("O")
        assert wins == {"X": 1, "O": 7}
        """,
        wrong="""
        board = [[" "] * 3 for _ in range(3)]
        wins = {"X": 0, "O": 0}

        def has_won(player):
            wins[player] += 1
            return any(all(cell == player for cell in row) for row in board)
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
    Case(
        "type(x) is the student's class, not a class derived from it",
        answer="""
        class Ticket:
            def upgraded(self):
                return FirstClass()

        class FirstClass(Ticket):
            pass
        """,
        test="""
        assert type(Ticket().upgraded()) is FirstClass
        assert type(Ticket()) is Ticket and isinstance(FirstClass(), Ticket)
        assert FirstClass.__mro__ == (FirstClass, Ticket, object)
        """,
        wrong="""
        class Ticket:
            def upgraded(self):
                return self

        class FirstClass(Ticket):
            pass
        """,
    ),
    Case(
        "an abstract class cannot be instantiated, and its methods are abstract",
        answer="""
        from abc import ABC, abstractmethod

        class Instrument(ABC):
            @abstractmethod
            def play(self):
                ...

        class Drum(Instrument):
            def play(self):
                return "boom"
        """,
        test="""
        import abc
        import inspect
        assert issubclass(Instrument, abc.ABC) and inspect.isabstract(Instrument)
        assert "play" in Instrument.__abstractmethods__ and not inspect.isabstract(Drum)
        try:
            Instrument()
        except TypeError:
            pass
        else:
            assert False, "an Instrument cannot be made"
        assert Drum().play() == "boom"
        """,
        wrong="""
        class Instrument:
            def play(self):
                raise NotImplementedError

        class Drum(Instrument):
            def play(self):
                return "boom"
        """,
    ),
    Case(
        "a callable object, and one that is none",
        answer="""
        class Quadratic:
            def __init__(self, *coefficients):
                self.coefficients = coefficients

            def __call__(self, x):
                return sum(c * x**k for k, c in enumerate(self.coefficients))

        class Parabola:
            value = 3
        """,
        test="""
        assert callable(Quadratic(1, 2)) and not callable(Parabola())
        assert not hasattr(Quadratic(), "__len__")
        assert Quadratic(1, 2, 3)(2) == 17
        """,
        wrong="""
        class Quadratic:
            def __init__(self, *coefficients):
                self.coefficients = coefficients

            def evaluate(self, x):
                return sum(c * x**k for k, c in enumerate(self.coefficients))

        class Parabola:
            value = 3
        """,
    ),
    Case(
        "a method is static, and another one is of the class",
        answer="""
        class Thermometer:
            scale = "C"

            @staticmethod
            def is_valid(degrees):
                return degrees >= -273.15

            @classmethod
            def named(cls):
                return f"{cls.__name__} in {cls.scale}"
        """,
        test="""
        assert isinstance(vars(Thermometer)["is_valid"], staticmethod)
        assert isinstance(Thermometer.__dict__["named"], classmethod)
        assert Thermometer.named() == "Thermometer in C"
        """,
        wrong="""
        class Thermometer:
            scale = "C"

            def is_valid(degrees):
                return degrees >= -273.15

            @classmethod
            def named(cls):
                return f"{cls.__name__} in {cls.scale}"
        """,
    ),
    Case(
        "the code of a function tells its arguments and what it calls",
        answer="""
        def sorted_by_length(words, reverse=False):
            result = list(words)
            result.sort(key=len, reverse=reverse)
            return result
        """,
        test="""
        code = sorted_by_length.__code__
        assert code.co_varnames[: code.co_argcount] == ("words", "reverse")
        assert "sorted" not in code.co_names, "use the method of the list"
        assert sorted_by_length.__defaults__ == (False,)
        assert sorted_by_length(["abc", "a", "ab"], True) == ["abc", "ab", "a"]
        """,
        wrong="""
        def sorted_by_length(words, reverse=False):
            return sorted(words, key=len, reverse=reverse)
        """,
    ),
    Case(
        "annotations of an array and of a class of the student's",
        answer="""
        import numpy as np

        class Particle:
            mass: float

        def total_mass(particles: list[Particle], weights: np.ndarray | None = None) -> float:
            return sum(particle.mass for particle in particles)
        """,
        test="""
        import typing
        import numpy as np
        hints = typing.get_type_hints(total_mass)
        assert hints["particles"] == list[Particle] and hints["return"] is float
        assert hints["weights"] == (np.ndarray | None)
        assert Particle.__annotations__ == {"mass": float}
        """,
        wrong="""
        import numpy as np

        class Particle:
            mass: float

        def total_mass(particles: list, weights: np.ndarray = None) -> float:
            return sum(particle.mass for particle in particles)
        """,
    ),
    Case(
        "an object is changed in place by an operator",
        answer="""
        class Basket:
            def __init__(self):
                self.fruits = []

            def __iadd__(self, fruit):
                self.fruits.append(fruit)
                return self
        """,
        test="""
        basket = full = Basket()
        basket += "apple"
        basket += "pear"
        assert full is basket and full.fruits == ["apple", "pear"]
        """,
        wrong="""
        class Basket:
            def __init__(self):
                self.fruits = []

            def __add__(self, fruit):
                bigger = Basket()
                bigger.fruits = [*self.fruits, fruit]
                return bigger
        """,
    ),
)
