"""Large arguments and results."""

from ordinary import Case

CASES = (
    Case(
        "an array of 80 MB is passed, and another returned",
        answer="""
        def doubled_values(x):
            return 2 * x
        """,
        test="""
        import numpy as np
        x = np.arange(10_000_000, dtype=np.float64)
        y = doubled_values(x)
        assert y.nbytes == 80_000_000 and y is not x
        assert y[-1] == 19_999_998 and x[-1] == 9_999_999
        assert y.sum() == 2 * x.sum()
        """,
        wrong="""
        def doubled_values(x):
            x *= 2
            return x
        """,
    ),
    Case(
        "an array of 80 MB is changed in place",
        answer="""
        def scale_to_one(x):
            x -= x.min()
            x /= x.max()
        """,
        test="""
        import numpy as np
        x = np.linspace(-3, 5, 10_000_000)
        assert scale_to_one(x) is None
        assert x.min() == 0 and x.max() == 1
        assert abs(x.mean() - 0.5) < 1e-9
        """,
        wrong="""
        def scale_to_one(x):
            x = x - x.min()
            x = x / x.max()
        """,
    ),
    Case(
        "a list of a million numbers is passed, and a long one returned",
        answer="""
        def differences_of(numbers):
            return [b - a for a, b in zip(numbers, numbers[1:])]
        """,
        test="""
        numbers = list(range(0, 3_000_000, 3))
        found = differences_of(numbers)
        assert len(found) == 999_999
        assert set(found) == {3}
        """,
        wrong="""
        def differences_of(numbers):
            return [a - b for a, b in zip(numbers, numbers[1:])]
        """,
    ),
)
