"""Operators and protocols of a student's class, which Python looks up in the class."""

from ordinary import Case

CASES = (
    Case(
        "objects of the student's class are compared with == and !=",
        answer="""
        class Coin:
            def __init__(self, value):
                self.value = value

            def __eq__(self, other):
                return isinstance(other, Coin) and self.value == other.value
        """,
        test="""
        assert Coin(5) == Coin(5)
        assert Coin(5) != Coin(10)
        assert Coin(5) != 5
        """,
        wrong="""
        class Coin:
            def __init__(self, value):
                self.value = value
        """,
    ),
    Case(
        "objects are compared with < and >=, and sorted",
        answer="""
        from functools import total_ordering

        @total_ordering
        class Version:
            def __init__(self, text):
                self.parts = [int(part) for part in text.split(".")]

            def __eq__(self, other):
                return self.parts == other.parts

            def __lt__(self, other):
                return self.parts < other.parts

            def __repr__(self):
                return ".".join(map(str, self.parts))
        """,
        test="""
        assert Version("1.9") < Version("1.10")
        assert Version("2.0") >= Version("1.10")
        versions = [Version("1.10"), Version("0.3"), Version("1.9")]
        assert str(sorted(versions)) == "[0.3, 1.9, 1.10]"
        assert max(versions) == Version("1.10")
        """,
        wrong="""
        class Version(str):
            pass
        """,
    ),
    Case(
        "repr and str of an object",
        answer="""
        class Temperature:
            def __init__(self, degrees):
                self.degrees = degrees

            def __repr__(self):
                return f"Temperature({self.degrees})"

            def __str__(self):
                return f"{self.degrees:.1f} °C"
        """,
        test="""
        warm = Temperature(21.04)
        assert repr(warm) == "Temperature(21.04)"
        assert str(warm) == "21.0 °C"
        assert repr([warm]) == "[Temperature(21.04)]"
        """,
        wrong="""
        class Temperature:
            def __init__(self, degrees):
                self.degrees = degrees

            def __str__(self):
                return f"{self.degrees:.1f} °C"
        """,
    ),
    Case(
        "an object is put into an f-string, with and without a format",
        answer="""
        class Price:
            def __init__(self, cents):
                self.cents = cents

            def __str__(self):
                return f"{self.cents / 100:.2f} €"

            def __format__(self, spec):
                return f"{str(self):{spec}}"
        """,
        test="""
        price = Price(1250)
        assert f"You pay {price}." == "You pay 12.50 €."
        assert f"[{price:>10}]" == "[   12.50 €]"
        assert "{:<8}|".format(Price(5)) == "0.05 €  |"
        """,
        wrong="""
        class Price:
            def __init__(self, cents):
                self.cents = cents

            def __str__(self):
                return f"{self.cents / 100:.2f} €"
        """,
    ),
    Case(
        "an object is iterated over, by for, list and unpacking",
        answer="""
        class Countdown:
            def __init__(self, start):
                self.start = start

            def __iter__(self):
                return iter(range(self.start, 0, -1))
        """,
        test="""
        countdown = Countdown(3)
        assert list(countdown) == [3, 2, 1]
        assert [2 * k for k in countdown] == [6, 4, 2]
        first, *rest = countdown
        assert first == 3 and rest == [2, 1]
        """,
        wrong="""
        class Countdown:
            def __init__(self, start):
                self.numbers = iter(range(start, 0, -1))

            def __iter__(self):
                return self.numbers
        """,
    ),
    Case(
        "next is called on an iterator of the student's, to its end",
        answer="""
        class Collatz:
            def __init__(self, n):
                self.n = n

            def __iter__(self):
                return self

            def __next__(self):
                if self.n == 1:
                    raise StopIteration
                self.n = 3 * self.n + 1 if self.n % 2 else self.n // 2
                return self.n
        """,
        test="""
        import pytest
        numbers = Collatz(6)
        assert next(numbers) == 3
        assert next(numbers) == 10
        assert list(numbers) == [5, 16, 8, 4, 2, 1]
        with pytest.raises(StopIteration):
            next(numbers)
        assert next(numbers, "done") == "done"
        """,
        wrong="""
        def Collatz(n):
            numbers = []
            while n != 1:
                n = 3 * n + 1 if n % 2 else n // 2
                numbers.append(n)
            return numbers
        """,
    ),
    Case(
        "an object stands in a with statement, which it leaves after an error, too",
        answer="""
        class Door:
            def __init__(self):
                self.log = []

            def __enter__(self):
                self.log.append("open")
                return self

            def __exit__(self, kind, error, trace):
                self.log.append("closed")
                return kind is KeyError
        """,
        test="""
        import pytest
        with Door() as door:
            assert door.log == ["open"]
        assert door.log == ["open", "closed"]
        with door:
            raise KeyError("is forgiven")
        with pytest.raises(ValueError), door:
            raise ValueError("is not")
        assert door.log.count("closed") == 3
        """,
        wrong="""
        class Door:
            def __init__(self):
                self.log = []

            def __enter__(self):
                self.log.append("open")
                return self

            def __exit__(self, kind, error, trace):
                if kind is None:
                    self.log.append("closed")
                return kind is KeyError
        """,
    ),
    Case(
        "in, len and bool of an object",
        answer="""
        class Playlist:
            def __init__(self, *songs):
                self.songs = songs

            def __contains__(self, song):
                return song.lower() in [known.lower() for known in self.songs]

            def __len__(self):
                return len(self.songs)

            def __bool__(self):
                return any(self.songs)
        """,
        test="""
        songs = Playlist("Help", "Yesterday")
        assert "help" in songs and "Michelle" not in songs
        assert len(songs) == 2
        assert songs and not Playlist() and not Playlist("", "")
        """,
        wrong="""
        class Playlist:
            def __init__(self, *songs):
                self.songs = songs

            def __contains__(self, song):
                return song in self.songs

            def __len__(self):
                return len(self.songs)
        """,
    ),
    Case(
        "objects with a hash are elements of a set and keys of a dict",
        answer="""
        class Square:
            def __init__(self, file, rank):
                self.file, self.rank = file, rank

            def __eq__(self, other):
                return (self.file, self.rank) == (other.file, other.rank)

            def __hash__(self):
                return hash((self.file, self.rank))
        """,
        test="""
        assert len({Square("a", 1), Square("a", 1), Square("b", 1)}) == 2
        pieces = {Square("e", 1): "king"}
        assert pieces[Square("e", 1)] == "king"
        assert hash(Square("c", 3)) == hash(Square("c", 3))
        """,
        wrong="""
        class Square:
            def __init__(self, file, rank):
                self.file, self.rank = file, rank

            def __eq__(self, other):
                return (self.file, self.rank) == (other.file, other.rank)

            __hash__ = object.__hash__
        """,
    ),
    Case(
        "the test sets an attribute of an object, and deletes one",
        answer="""
        class Account:
            def __init__(self):
                self.balance = 0
                self.owner = "nobody"

            def pay(self, amount):
                self.balance -= amount
                return self.balance
        """,
        test="""
        account = Account()
        account.balance = 100
        assert account.pay(30) == 70
        account.balance += 10
        assert account.pay(0) == 80
        del account.owner
        assert not hasattr(account, "owner")
        """,
        wrong="""
        class Account:
            def __init__(self):
                self.balance = 0
                self.owner = "nobody"

            def pay(self, amount):
                return self.balance
        """,
    ),
    Case(
        "elements of an object are read, set, deleted and sliced",
        answer="""
        class Polynomial:
            def __init__(self, *coefficients):
                self.coefficients = list(coefficients)

            def __getitem__(self, power):
                return self.coefficients[power]

            def __setitem__(self, power, value):
                self.coefficients[power] = value

            def __delitem__(self, power):
                self.coefficients[power] = 0

            def __call__(self, x):
                return sum(c * x**k for k, c in enumerate(self.coefficients))
        """,
        test="""
        p = Polynomial(1, 2, 3)
        assert p(2) == 17
        p[0] = 5
        assert p(2) == 21 and p[0] == 5
        del p[2]
        assert p(2) == 9
        assert p[:2] == [5, 2]
        p[1] += 10
        assert p(1) == 17
        """,
        wrong="""
        class Polynomial:
            def __init__(self, *coefficients):
                self.coefficients = list(coefficients)

            def __getitem__(self, power):
                return self.coefficients[power]

            def __setitem__(self, power, value):
                self.coefficients.insert(power, value)

            def __delitem__(self, power):
                self.coefficients[power] = 0

            def __call__(self, x):
                return sum(c * x**k for k, c in enumerate(self.coefficients))
        """,
    ),
    Case(
        "a subclass of dict finds keys in its own way",
        answer="""
        class Synonyms(dict):
            def __missing__(self, key):
                return key

            def __setitem__(self, key, value):
                super().__setitem__(key.lower(), value)
        """,
        test="""
        words = Synonyms(car="auto")
        words["Big"] = "large"
        assert words["big"] == "large"
        assert words["house"] == "house" and "house" not in words
        assert words == {"car": "auto", "big": "large"}
        assert isinstance(words, dict) and sorted(words) == ["big", "car"]
        assert {**words, "big": "huge"} == {"car": "auto", "big": "huge"}
        """,
        wrong="""
        class Synonyms(dict):
            def __missing__(self, key):
                return key
        """,
    ),
    Case(
        "an exception of the student's is expected by pytest.raises",
        answer="""
        class Overdrawn(Exception):
            def __init__(self, missing):
                super().__init__(f"{missing} are missing")
                self.missing = missing

        def withdraw(balance, amount):
            if amount > balance:
                raise Overdrawn(amount - balance)
            return balance - amount
        """,
        test="""
        import pytest
        assert withdraw(50, 20) == 30
        with pytest.raises(Overdrawn, match="30 are missing") as caught:
            withdraw(20, 50)
        assert caught.value.missing == 30
        """,
        wrong="""
        class Overdrawn(Exception):
            pass

        def withdraw(balance, amount):
            if amount > balance:
                raise ValueError(f"{amount - balance} are missing")
            return balance - amount
        """,
    ),
    Case(
        "an exception of the student's is caught by try and except",
        answer="""
        class ParseError(ValueError):
            pass

        def parse_age(text):
            try:
                return int(text)
            except ValueError as error:
                raise ParseError(text) from error
        """,
        test="""
        assert parse_age("42") == 42
        try:
            parse_age("old")
        except ParseError as error:
            assert error.args == ("old",)
            assert isinstance(error, ValueError)
            assert isinstance(error.__cause__, ValueError)
        else:
            assert False, "expected a ParseError"
        """,
        wrong="""
        class ParseError(ValueError):
            pass

        def parse_age(text):
            try:
                return int(text)
            except ValueError:
                return None
        """,
    ),
    Case(
        "a property is read, set through its setter, and protected",
        answer="""
        class Circle:
            def __init__(self, radius):
                self.radius = radius

            @property
            def radius(self):
                return self._radius

            @radius.setter
            def radius(self, value):
                if value < 0:
                    raise ValueError("a radius is not negative")
                self._radius = value

            @property
            def diameter(self):
                return 2 * self._radius
        """,
        test="""
        import pytest
        circle = Circle(2)
        circle.radius = 5
        assert circle.diameter == 10
        with pytest.raises(ValueError):
            circle.radius = -1
        with pytest.raises(AttributeError):
            circle.diameter = 3
        assert isinstance(Circle.diameter, property)
        """,
        wrong="""
        class Circle:
            def __init__(self, radius):
                self.radius = radius
                self.diameter = 2 * radius
        """,
    ),
    Case(
        "class methods, static methods and class attributes",
        answer="""
        class Robot:
            count = 0

            def __init__(self, name):
                self.name = name
                Robot.count += 1

            @classmethod
            def from_record(cls, record):
                return cls(record["name"])

            @staticmethod
            def is_name(text):
                return text.isalnum()
        """,
        test="""
        before = Robot.count
        robot = Robot.from_record({"name": "R2D2"})
        Robot("C3PO")
        assert robot.name == "R2D2"
        assert Robot.count == before + 2 and robot.count == Robot.count
        assert Robot.is_name("R2D2") and not robot.is_name("R 2")
        """,
        wrong="""
        class Robot:
            count = 0

            def __init__(self, name):
                self.name = name
                self.count += 1

            @classmethod
            def from_record(cls, record):
                return cls(record["name"])

            @staticmethod
            def is_name(text):
                return text.isalnum()
        """,
    ),
    Case(
        "a class of the test's inherits from one of the student's",
        answer="""
        from abc import ABC, abstractmethod

        class Shape(ABC):
            @abstractmethod
            def area(self):
                ...

            def describe(self):
                return f"{type(self).__name__} of area {self.area()}"
        """,
        test="""
        import pytest

        class Tile(Shape):
            def __init__(self, side):
                self.side = side

            def area(self):
                return self.side**2

        assert Tile(3).describe() == "Tile of area 9"
        assert isinstance(Tile(1), Shape)
        with pytest.raises(TypeError):
            Shape()
        """,
        wrong="""
        class Shape:
            def area(self):
                return 0

            def describe(self):
                return f"Shape of area {self.area()}"
        """,
    ),
    Case(
        "arithmetic of objects, with numbers on both sides and by sum",
        answer="""
        class Money:
            def __init__(self, amount):
                self.amount = amount

            def __add__(self, other):
                return Money(self.amount + (other.amount if isinstance(other, Money) else other))

            __radd__ = __add__

            def __mul__(self, factor):
                return Money(self.amount * factor)

            __rmul__ = __mul__

            def __neg__(self):
                return Money(-self.amount)
        """,
        test="""
        assert (Money(3) + Money(4)).amount == 7
        assert (2 * Money(3)).amount == (Money(3) * 2).amount == 6
        assert sum([Money(1), Money(2), Money(3)]).amount == 6
        assert (-Money(3) + 1).amount == -2
        total = Money(1)
        total += Money(5)
        assert total.amount == 6
        """,
        wrong="""
        class Money:
            def __init__(self, amount):
                self.amount = amount

            def __add__(self, other):
                return Money(self.amount + other.amount)

            def __mul__(self, factor):
                return Money(self.amount * factor)

            __rmul__ = __mul__

            def __neg__(self):
                return Money(-self.amount)
        """,
    ),
    Case(
        "a matrix class multiplies by @, and is equal to its transpose's transpose",
        answer="""
        class Matrix:
            def __init__(self, rows):
                self.rows = [list(row) for row in rows]

            def __matmul__(self, other):
                columns = list(zip(*other.rows))
                return Matrix(
                    [[sum(a * b for a, b in zip(row, column)) for column in columns]
                     for row in self.rows]
                )

            def __eq__(self, other):
                return self.rows == other.rows

            @property
            def T(self):
                return Matrix(zip(*self.rows))
        """,
        test="""
        A = Matrix([[1, 2], [3, 4], [5, 6]])
        B = Matrix([[1, 0], [2, 1]])
        assert (A @ B).rows == [[5, 2], [11, 4], [17, 6]]
        assert (A @ B).T == B.T @ A.T
        assert A.T.T == A and A.T != A
        """,
        wrong="""
        class Matrix:
            def __init__(self, rows):
                self.rows = [list(row) for row in rows]

            def __matmul__(self, other):
                return Matrix(
                    [[a * b for a, b in zip(row, column)]
                     for row, column in zip(self.rows, other.rows)]
                )

            def __eq__(self, other):
                return self.rows == other.rows

            @property
            def T(self):
                return Matrix(zip(*self.rows))
        """,
    ),
    Case(
        "a context manager made from a generator function",
        answer="""
        from contextlib import contextmanager

        @contextmanager
        def appended(items, item):
            items.append(item)
            try:
                yield len(items)
            finally:
                items.remove(item)
        """,
        test="""
        import pytest
        shelf = ["a"]
        with appended(shelf, "b") as length:
            assert shelf == ["a", "b"] and length == 2
        assert shelf == ["a"]
        with pytest.raises(RuntimeError), appended(shelf, "c"):
            raise RuntimeError
        assert shelf == ["a"]
        """,
        wrong="""
        from contextlib import contextmanager

        @contextmanager
        def appended(items, item):
            items.append(item)
            yield len(items)
            items.remove(item)
        """,
    ),
    Case(
        "an object is copied by copy and deepcopy",
        answer="""
        class Maze:
            def __init__(self, walls):
                self.walls = walls

            def remove(self, x, y):
                self.walls[y][x] = 0
        """,
        test="""
        import copy
        maze = Maze([[1, 1], [1, 1]])
        deep, flat = copy.deepcopy(maze), copy.copy(maze)
        maze.remove(0, 1)
        assert maze.walls == [[1, 1], [0, 1]]
        assert deep.walls == [[1, 1], [1, 1]]
        assert flat.walls is maze.walls
        assert type(deep) is Maze
        """,
        wrong="""
        class Maze:
            def __init__(self, walls):
                self.walls = walls

            def remove(self, x, y):
                self.walls[x][y] = 0
        """,
    ),
    Case(
        "an object is pickled and comes back",
        answer="""
        class Recipe:
            def __init__(self, name, **parts):
                self.name, self.parts = name, parts

            def __getstate__(self):
                return {"name": self.name, "parts": sorted(self.parts.items())}

            def __setstate__(self, state):
                self.name, self.parts = state["name"], dict(state["parts"])
        """,
        test="""
        import pickle
        pancake = Recipe("pancake", milk=2, egg=3)
        back = pickle.loads(pickle.dumps(pancake))
        assert isinstance(back, Recipe) and back is not pancake
        assert back.name == "pancake" and list(back.parts) == ["egg", "milk"]
        """,
        wrong="""
        class Recipe:
            def __init__(self, name, **parts):
                self.name, self.parts = name, parts
                self.sum_of_parts = lambda: sum(self.parts.values())
        """,
    ),
)
