"""Types of results that must arrive as what they are, with their methods and their equality."""

from ordinary import Case

CASES = (
    Case(
        "a Counter is asked for what is most common, and for what is missing",
        answer="""
        from collections import Counter

        def letter_counts(text):
            return Counter(text)
        """,
        test="""
        counts = letter_counts("banana")
        assert counts.most_common(1) == [("a", 3)]
        assert counts["z"] == 0
        assert sum(counts.values()) == 6
        """,
        wrong="""
        def letter_counts(text):
            return {letter: text.count(letter) for letter in text}
        """,
    ),
    Case(
        "a namedtuple is read by name, by position and as a dict",
        answer="""
        from collections import namedtuple

        Vertex = namedtuple("Vertex", "x y")

        def midpoint(p, q):
            return Vertex((p.x + q.x) / 2, (p.y + q.y) / 2)
        """,
        test="""
        middle = midpoint(Vertex(0, 0), Vertex(2, 4))
        assert middle.x == 1 and middle[1] == 2
        assert middle == (1, 2)
        assert middle._asdict() == {"x": 1, "y": 2}
        """,
        wrong="""
        from collections import namedtuple

        Vertex = namedtuple("Vertex", "x y")

        def midpoint(p, q):
            return (p.x + q.x) / 2, (p.y + q.y) / 2
        """,
    ),
    Case(
        "a Fraction is compared with ==",
        answer="""
        from fractions import Fraction

        def harmonic_number(n):
            return sum(Fraction(1, k) for k in range(1, n + 1))
        """,
        test="""
        from fractions import Fraction
        assert harmonic_number(4) == Fraction(25, 12)
        assert harmonic_number(10).numerator == 7381
        """,
        wrong="""
        def harmonic_number(n):
            return sum(1 / k for k in range(1, n + 1))
        """,
    ),
    Case(
        "dates, times and differences of them are compared and subtracted",
        answer="""
        from datetime import date, datetime, timedelta

        def next_day(day):
            return day + timedelta(days=1)

        def parse_stamp(text):
            return datetime.strptime(text, "%d.%m.%Y %H:%M")

        def flight_time(start, end):
            return end - start
        """,
        test="""
        from datetime import date, datetime, timedelta
        assert next_day(date(2024, 2, 28)) == date(2024, 2, 29)
        start, end = parse_stamp("03.05.2024 22:30"), datetime(2024, 5, 4, 6)
        assert start == datetime(2024, 5, 3, 22, 30)
        assert flight_time(start, end) == timedelta(hours=7, minutes=30)
        assert (end - start).total_seconds() == 27000
        """,
        wrong="""
        from datetime import date, datetime, timedelta

        def next_day(day):
            return day + timedelta(days=1)

        def parse_stamp(text):
            return datetime.strptime(text, "%m.%d.%Y %H:%M")

        def flight_time(start, end):
            return end - start
        """,
    ),
    Case(
        "members of an Enum are compared with is, and listed",
        answer="""
        from enum import Enum

        class Signal(Enum):
            RED = 1
            YELLOW = 2
            GREEN = 3

        def after(signal):
            return {1: Signal.GREEN, 2: Signal.RED, 3: Signal.YELLOW}[signal.value]
        """,
        test="""
        assert after(Signal.RED) is Signal.GREEN
        assert [signal.name for signal in Signal] == ["RED", "YELLOW", "GREEN"]
        assert Signal(2) is Signal["YELLOW"]
        """,
        wrong="""
        from enum import Enum

        class Signal(Enum):
            RED = 1
            YELLOW = 2
            GREEN = 3

        def after(signal):
            return {1: 3, 2: 1, 3: 2}[signal.value]
        """,
    ),
    Case(
        "a range is compared with ==",
        answer="""
        def even_numbers(n):
            return range(0, n, 2)
        """,
        test="""
        assert even_numbers(10) == range(0, 10, 2)
        assert even_numbers(10**12)[-1] == 10**12 - 2
        """,
        wrong="""
        def even_numbers(n):
            return range(1, n, 2)
        """,
    ),
    Case(
        "objects of a dataclass are compared, shown, copied and sorted",
        answer="""
        from dataclasses import dataclass, field

        @dataclass(order=True)
        class Parcel:
            weight: float
            labels: list = field(default_factory=list, compare=False)
        """,
        test="""
        import dataclasses
        small, large = Parcel(1.5), Parcel(4.0, ["fragile"])
        assert small == Parcel(1.5, ["late"])
        assert min(large, small) is small
        assert repr(small) == "Parcel(weight=1.5, labels=[])"
        assert dataclasses.asdict(large) == {"weight": 4.0, "labels": ["fragile"]}
        assert dataclasses.replace(large, weight=2.0).labels == ["fragile"]
        """,
        wrong="""
        from dataclasses import dataclass, field

        @dataclass(order=True)
        class Parcel:
            weight: float
            labels: list = field(default_factory=list)
        """,
    ),
    Case(
        "a subclass of list is a list with methods more",
        answer="""
        class Stack(list):
            def push(self, item):
                self.append(item)

            def peek(self):
                return self[-1]
        """,
        test="""
        stack = Stack([1, 2])
        stack.push(3)
        assert stack.peek() == 3
        assert stack == [1, 2, 3] and len(stack) == 3
        assert stack.pop() == 3
        assert isinstance(stack, list) and stack[:1] == [1]
        """,
        wrong="""
        class Stack(list):
            def push(self, item):
                self.insert(0, item)

            def peek(self):
                return self[-1]
        """,
    ),
    Case(
        "an array of objects holds lists of different lengths",
        answer="""
        import numpy as np

        def ragged_array(rows):
            result = np.empty(len(rows), dtype=object)
            for i, row in enumerate(rows):
                result[i] = list(row)
            return result
        """,
        test="""
        import numpy as np
        ragged = ragged_array([[1], [2, 3], []])
        assert ragged.dtype == object and ragged.shape == (3,)
        assert ragged[1] == [2, 3]
        assert [len(row) for row in ragged] == [1, 2, 0]
        """,
        wrong="""
        def ragged_array(rows):
            return [list(row) for row in rows]
        """,
    ),
    Case(
        "a sparse matrix is multiplied, and its nonzero values are counted",
        answer="""
        from scipy import sparse

        def second_difference(n):
            return sparse.diags_array([1.0, -2.0, 1.0], offsets=[-1, 0, 1], shape=(n, n)).tocsr()
        """,
        test="""
        import numpy as np
        from scipy import sparse
        matrix = second_difference(5)
        assert sparse.issparse(matrix) and matrix.nnz == 13
        np.testing.assert_array_equal(matrix @ np.ones(5), [-1, 0, 0, 0, -1])
        assert matrix.toarray()[0, 0] == -2
        """,
        wrong="""
        import numpy as np

        def second_difference(n):
            return np.diag(np.full(n, -2)) + np.eye(n, k=1) + np.eye(n, k=-1)
        """,
    ),
    Case(
        "an OptimizeResult is read by attribute",
        answer="""
        from scipy.optimize import minimize

        def lowest_point(f, start):
            return minimize(f, start)
        """,
        test="""
        result = lowest_point(lambda x: (x[0] - 2) ** 2 + 1, [0.0])
        assert result.success
        assert abs(result.x[0] - 2) < 1e-4
        assert abs(result.fun - 1) < 1e-6 and result["nit"] > 0
        """,
        wrong="""
        from scipy.optimize import minimize

        def lowest_point(f, start):
            return minimize(f, start).x
        """,
    ),
    Case(
        "the axes of a plot are asked for their labels and lines",
        answer="""
        from matplotlib.figure import Figure

        def plot_squares(n):
            axes = Figure().add_subplot()
            axes.plot(range(n), [k**2 for k in range(n)], label="squares")
            axes.set_xlabel("k")
            return axes
        """,
        test="""
        axes = plot_squares(4)
        assert axes.get_xlabel() == "k"
        (line,) = axes.lines
        assert list(line.get_ydata()) == [0, 1, 4, 9]
        assert line.get_label() == "squares"
        """,
        wrong="""
        from matplotlib.figure import Figure

        def plot_squares(n):
            axes = Figure().add_subplot()
            axes.plot(range(n), [k**2 for k in range(n)], label="squares")
            return axes
        """,
    ),
    Case(
        "very large integers are exact",
        answer="""
        def large_factorial(n):
            result = 1
            for k in range(2, n + 1):
                result *= k
            return result
        """,
        test="""
        import math
        assert large_factorial(300) == math.factorial(300)
        assert large_factorial(30) % 31 == 30
        assert len(str(large_factorial(1000))) == 2568
        """,
        wrong="""
        def large_factorial(n):
            result = 1.0
            for k in range(2, n + 1):
                result *= k
            return result
        """,
    ),
    Case(
        "nested tuples with None in them are compared with ==",
        answer="""
        def insert_into_tree(tree, key):
            if tree is None:
                return (None, key, None)
            left, root, right = tree
            if key < root:
                return (insert_into_tree(left, key), root, right)
            return (left, root, insert_into_tree(right, key))
        """,
        test="""
        tree = None
        for key in (5, 2, 8):
            tree = insert_into_tree(tree, key)
        assert tree == ((None, 2, None), 5, (None, 8, None))
        assert isinstance(tree[0], tuple)
        """,
        wrong="""
        def insert_into_tree(tree, key):
            if tree is None:
                return [None, key, None]
            left, root, right = tree
            if key < root:
                return [insert_into_tree(left, key), root, right]
            return [left, root, insert_into_tree(right, key)]
        """,
    ),
    Case(
        "nan is recognized, alone and in an array",
        answer="""
        import numpy as np

        def safe_ratio(a, b):
            a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
            return np.divide(a, b, out=np.full(a.shape, np.nan), where=b != 0)
        """,
        test="""
        import math
        import numpy as np
        np.testing.assert_array_equal(safe_ratio([1, 2, 0], [2, 0, 0]), [0.5, np.nan, np.nan])
        assert math.isnan(safe_ratio(1, 0))
        """,
        wrong="""
        import numpy as np

        def safe_ratio(a, b):
            a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
            return np.divide(a, b, out=np.full(a.shape, np.inf), where=b != 0)
        """,
    ),
    Case(
        "all and any of comparisons of arrays, with shape and dtype",
        answer="""
        import numpy as np

        def standardized(x):
            return ((x - x.mean(axis=0)) / x.std(axis=0)).astype(np.float32)
        """,
        test="""
        import numpy as np
        x = np.arange(12.0).reshape(4, 3) ** 2
        z = standardized(x)
        assert z.shape == x.shape and z.dtype == np.float32
        assert (np.abs(z.mean(axis=0)) < 1e-6).all()
        assert np.all(np.isclose(z.std(axis=0), 1))
        assert any(z[0] < 0) and not (z > 4).any()
        """,
        wrong="""
        import numpy as np

        def standardized(x):
            return ((x - x.mean()) / x.std()).astype(np.float32)
        """,
    ),
    Case(
        "a frame of pandas is filtered, and compared by assert_frame_equal",
        answer="""
            import pandas as pd

            def adults_of(people):
                return people[people["age"] >= 18].reset_index(drop=True)
        """,
        test="""
            import pandas as pd
            people = pd.DataFrame({"name": ["Ann", "Bo", "Cy"], "age": [40.0, 17.5, None]})
            expected = pd.DataFrame({"name": ["Ann"], "age": [40.0]})
            pd.testing.assert_frame_equal(adults_of(people), expected)
            assert isinstance(adults_of(people), pd.DataFrame) and len(people) == 3
        """,
        wrong="""
            import pandas as pd

            def adults_of(people):
                return people[people["age"] > 40].reset_index(drop=True)
        """,
    ),
    Case(
        "a column is added to a frame in place, and groups give a series",
        answer="""
            def add_price(orders):
                orders["price"] = orders["units"] * 2.5

            def units_by_shop(orders):
                return orders.groupby("shop")["units"].sum()
        """,
        test="""
            import pandas as pd
            orders = pd.DataFrame({"shop": pd.Categorical(["a", "b", "a"]), "units": [1, 2, 3]})
            add_price(orders)
            assert orders["price"].tolist() == [2.5, 5.0, 7.5]
            units = units_by_shop(orders)
            assert units["a"] == 4 and units.index.tolist() == ["a", "b"]
            assert units.name == "units" and units.idxmax() == "a"
        """,
        wrong="""
            def add_price(orders):
                orders = orders.assign(price=orders["units"] * 2.5)

            def units_by_shop(orders):
                return orders.groupby("shop")["units"].sum()
        """,
    ),
)
