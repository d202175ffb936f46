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
)
