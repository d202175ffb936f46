"""Modelled on MLSysBook/TinyTorch: students write the parts of a framework, class after class.

Typical is a test cell that defines a function of tests and calls it if its module is the main one,
prints with symbols, builds objects of several of the student's classes inside one another, derives
a class of its own from one of the student's, and expects exceptions with ``assert False``. Random
numbers are seeded by the test.
"""

from courses import Course, answer, plain, test

COURSE = Course(
    cells=[
        plain(
            """
            import random
            from abc import ABC, abstractmethod
            from typing import Iterator, List

            import numpy as np
            """
        ),
        answer(
            "signal",
            '''
            class Signal:
                """Samples in an array of real numbers."""

                def __init__(self, samples, rate=1):
                    ### BEGIN SOLUTION
                    self.data = np.array(samples, dtype=float)
                    self.rate = rate
                    ### END SOLUTION

                ### BEGIN SOLUTION
                @property
                def seconds(self):
                    return len(self.data) / self.rate

                def __len__(self):
                    return len(self.data)

                def __add__(self, other):
                    if isinstance(other, Signal):
                        if self.rate != other.rate:
                            raise ValueError("the rates differ")
                        return Signal(self.data + other.data, self.rate)
                    return Signal(self.data + other, self.rate)

                def __mul__(self, factor):
                    return Signal(self.data * factor, self.rate)

                __rmul__ = __mul__

                def __getitem__(self, index):
                    return self.data[index]

                def __repr__(self):
                    return f"Signal({self.data.tolist()}, rate={self.rate})"
                ### END SOLUTION
            ''',
        ),
        test(
            "signal-unit",
            10,
            """
            def test_unit_signal():
                print("🔬 Unit test: Signal")
                signal = Signal([1, 2, 3, 4], rate=2)
                assert isinstance(signal.data, np.ndarray), "samples belong into an array"
                assert signal.data.dtype == float
                assert len(signal) == 4
                assert signal.seconds == 2.0, f"expected 2 s, got {signal.seconds}"
                assert signal[1] == 2 and np.array_equal(signal[-2:], [3, 4])
                print("✅ Signal")

            if __name__ == "__main__":
                test_unit_signal()
            """,
        ),
        test(
            "signal-arithmetic",
            10,
            """
            def test_unit_signal_arithmetic():
                one, other = Signal([1, 2]), Signal([10, 20])
                assert np.array_equal((one + other).data, [11, 22])
                assert np.array_equal((one + 5).data, [6, 7])
                assert np.array_equal((3 * one * 2).data, [6, 12])
                assert np.array_equal(one.data, [1, 2]), "arithmetic changes nothing"
                assert isinstance(one + other, Signal)
                try:
                    one + Signal([1, 2], rate=8)
                    assert False, "expected an error, for the rates differ"
                except ValueError as error:
                    assert "rate" in str(error)
                assert repr(one) == "Signal([1.0, 2.0], rate=1)"

            if __name__ == "__main__":
                test_unit_signal_arithmetic()
            """,
        ),
        answer(
            "filter",
            '''
            class Filter(ABC):
                """What has a method apply, from a signal to a signal, and can be called."""
                ### BEGIN SOLUTION
                @abstractmethod
                def apply(self, signal: Signal) -> Signal: ...

                def __call__(self, signal):
                    return self.apply(signal)
                ### END SOLUTION
            ''',
        ),
        test(
            "filter-is-abstract",
            5,
            """
            def test_unit_filter():
                try:
                    Filter()
                    assert False, "nobody can make a Filter"
                except TypeError:
                    print("✅ Filter is abstract")

                class Twice(Filter):
                    def apply(self, signal):
                        return signal * 2

                twice = Twice()
                assert isinstance(twice, Filter)
                assert np.array_equal(twice(Signal([1, 5])).data, [2, 10])

            if __name__ == "__main__":
                test_unit_filter()
            """,
        ),
        answer(
            "mean",
            '''
            class RunningMean(Filter):
                """The mean of a sample and those before it, as many as width says in all."""

                def __init__(self, width):
                    ### BEGIN SOLUTION
                    self.width = width
                    ### END SOLUTION

                ### BEGIN SOLUTION
                def apply(self, signal):
                    means = [
                        np.mean(signal.data[max(0, end - self.width) : end])
                        for end in range(1, len(signal) + 1)
                    ]
                    return Signal(means, signal.rate)
                ### END SOLUTION
            ''',
        ),
        test(
            "mean-unit",
            5,
            """
            def test_unit_running_mean():
                mean = RunningMean(width=2)
                assert hasattr(mean, "width") and issubclass(RunningMean, Filter)
                smooth = mean.apply(Signal([2, 4, 8], rate=5))
                assert np.allclose(smooth.data, [2, 3, 6])
                assert smooth.rate == 5
                x = np.sin(np.arange(20))
                assert np.allclose(mean(Signal(x)).data[1:], (x[1:] + x[:-1]) / 2, atol=1e-9)

            if __name__ == "__main__":
                test_unit_running_mean()
            """,
        ),
        answer(
            "chain",
            '''
            class Chain(Filter):
                """Filters one after another."""

                def __init__(self, *filters):
                    ### BEGIN SOLUTION
                    self.filters = list(filters)
                    ### END SOLUTION

                ### BEGIN SOLUTION
                def append(self, one):
                    self.filters.append(one)
                    return self

                def apply(self, signal):
                    for one in self.filters:
                        signal = one(signal)
                    return signal

                def __iter__(self) -> Iterator[Filter]:
                    return iter(self.filters)
                ### END SOLUTION
            ''',
        ),
        test(
            "chain-unit",
            5,
            """
            def test_unit_chain():
                first, second = RunningMean(2), RunningMean(3)
                chain = Chain(first).append(second)
                assert list(chain) == [first, second]
                assert [one.width for one in chain.filters] == [2, 3]
                signal = Signal([1, 0, 0, 6])
                assert np.allclose(chain(signal).data, second(first(signal)).data)
                nested = Chain(chain, Chain())
                assert np.allclose(nested(signal).data, chain(signal).data)

                class Shift(Filter):
                    def apply(self, signal):
                        return signal + 1

                assert np.allclose(Chain(Shift(), Shift())(signal).data, [3, 2, 2, 8])

            if __name__ == "__main__":
                test_unit_chain()
            """,
        ),
        answer(
            "loader",
            '''
            class Loader:
                """Gives the signals of a list in batches, in the order of the list or shuffled."""

                def __init__(self, signals: List[Signal], batch_size: int, shuffle: bool = False):
                    ### BEGIN SOLUTION
                    self.signals, self.batch_size, self.shuffle = signals, batch_size, shuffle
                    ### END SOLUTION

                ### BEGIN SOLUTION
                def __len__(self):
                    return -(-len(self.signals) // self.batch_size)

                def __iter__(self):
                    order = list(range(len(self.signals)))
                    if self.shuffle:
                        random.shuffle(order)
                    for start in range(0, len(order), self.batch_size):
                        chosen = order[start : start + self.batch_size]
                        yield np.stack([self.signals[i].data for i in chosen])
                ### END SOLUTION
            ''',
        ),
        test(
            "loader-unit",
            10,
            """
            def test_unit_loader():
                signals = [Signal([i, i * i]) for i in range(5)]
                loader = Loader(signals, batch_size=2)
                assert len(loader) == 3, f"expected 3 batches, got {len(loader)}"
                batches = list(loader)
                assert [batch.shape for batch in batches] == [(2, 2), (2, 2), (1, 2)]
                assert np.array_equal(batches[1], [[2, 4], [3, 9]])
                [mixed] = Loader(signals, batch_size=5, shuffle=True)
                assert set(map(tuple, mixed)) == {(i, i * i) for i in range(5)}

            if __name__ == "__main__":
                test_unit_loader()
            """,
        ),
        test(
            "loader-with-a-seed",
            5,
            """
            def test_unit_loader_deterministic():
                signals = [Signal([i]) for i in range(12)]
                orders = []
                for seed in (42, 42, 7):
                    random.seed(seed)
                    orders.append(np.concatenate(list(Loader(signals, 5, shuffle=True))).tolist())
                assert orders[0] == orders[1], "the same seed gives the same order"
                assert orders[0] != orders[2]
                random.seed(42)
                expected = list(range(12))
                random.shuffle(expected)
                assert [number for [number] in orders[0]] == expected

            if __name__ == "__main__":
                test_unit_loader_deterministic()
            """,
        ),
        test(
            "module",
            20,
            """
            def test_module():
                print("🧪 All parts together")
                test_unit_signal()
                test_unit_filter()
                smooth = Chain(RunningMean(2), RunningMean(2))
                total = Signal([0.0, 0.0, 0.0])
                for batch in Loader([Signal([3, 0, 3]), Signal([1, 1, 1])], batch_size=1):
                    total = total + smooth(Signal(batch[0]))
                assert np.allclose(total.data, [4, 3.25, 2.5]), total
                print("🎉 done")

            if __name__ == "__main__":
                test_module()
            """,
        ),
    ],
    changes={
        "another": {
            "signal": """
            from dataclasses import dataclass

            @dataclass(repr=False)
            class Signal:
                data: np.ndarray
                rate: float = 1

                def __post_init__(self):
                    self.data = np.asarray(self.data, float)

                seconds = property(lambda self: self.data.size / self.rate)

                def __len__(self):
                    return self.data.size

                def __add__(self, other):
                    values = other
                    if hasattr(other, "rate"):
                        values = other.data
                        if other.rate != self.rate:
                            raise ValueError(f"rate {other.rate} is not {self.rate}")
                    return self.__class__(self.data + values, self.rate)

                def __mul__(self, factor):
                    return self.__class__(self.data * factor, self.rate)

                def __rmul__(self, factor):
                    return self * factor

                def __getitem__(self, index):
                    return self.data[index]

                def __repr__(self):
                    return "Signal({}, rate={})".format(list(map(float, self.data)), self.rate)
            """,
            "mean": """
            class RunningMean(Filter):
                def __init__(self, width):
                    self.width = width

                def apply(self, signal):
                    sums = np.cumsum(signal.data)
                    sums[self.width:] -= sums[:-self.width].copy()
                    counts = np.minimum(np.arange(1, len(signal) + 1), self.width)
                    return Signal(sums / counts, signal.rate)
            """,
            "chain": """
            from functools import reduce

            class Chain(Filter):
                def __init__(self, *filters):
                    self.filters = []
                    for one in filters:
                        self.append(one)

                def append(self, one):
                    self.filters += [one]
                    return self

                def apply(self, signal):
                    return reduce(lambda so_far, one: one.apply(so_far), self.filters, signal)

                def __iter__(self):
                    yield from self.filters
            """,
            "loader": """
            class Loader:
                def __init__(self, signals, batch_size, shuffle=False):
                    self.signals = list(signals)
                    self.batch_size = batch_size
                    self.shuffle = shuffle

                def __len__(self):
                    return (len(self.signals) + self.batch_size - 1) // self.batch_size

                def __iter__(self):
                    rows = [signal.data for signal in self.signals]
                    if self.shuffle:
                        random.shuffle(rows)
                    while rows:
                        batch, rows = rows[:self.batch_size], rows[self.batch_size:]
                        yield np.array(batch)
            """,
        },
        "wrong": {
            "signal": """
            class Signal:
                def __init__(self, samples, rate=1):
                    self.data = list(samples)
                    self.rate = rate

                @property
                def seconds(self):
                    return len(self.data) / self.rate

                def __len__(self):
                    return len(self.data)

                def __add__(self, other):
                    return Signal(self.data + other.data, self.rate)

                def __mul__(self, factor):
                    return Signal(self.data * factor, self.rate)

                __rmul__ = __mul__

                def __getitem__(self, index):
                    return self.data[index]
            """,
            "filter": """
            class Filter:
                def apply(self, signal):
                    raise NotImplementedError

                def __call__(self, signal):
                    return self.apply(signal)
            """,
            "loader": """
            class Loader:
                def __init__(self, signals, batch_size, shuffle=False):
                    self.signals, self.batch_size = signals, batch_size

                def __len__(self):
                    return len(self.signals) // self.batch_size

                def __iter__(self):
                    for i in range(len(self)):
                        batch = self.signals[i * self.batch_size : (i + 1) * self.batch_size]
                        yield np.stack([signal.data for signal in batch])
            """,
        },
        "careless": {
            "signal": """
            class Signal:
                def __init__(self, samples, rate=1):
                    self.data = np.array(samples, dtype=float)
                    self.rate = rate

                def seconds(self):
                    return len(self.data) / self.rate

                def __len__(self):
                    return len(self.data)

                def __add__(self, other):
                    self.data += getattr(other, "data", other)
                    return self

                def __mul__(self, factor):
                    return Signal(self.data * factor, self.rate)

                def __getitem__(self, index):
                    return self.data[index]
            """,
            "mean": """
            class RunningMean(Filter):
                def __init__(self, width):
                    self.width = width

                def apply(self, signal):
                    kernel = np.ones(self.width) / self.width
                    return Signal(np.convolve(signal.data, kernel)[: len(signal)])
            """,
            "chain": """
            class Chain(Filter):
                def __init__(self, *filters):
                    self.filters = filters

                def append(self, one):
                    self.filters.append(one)

                def apply(self, signal):
                    for one in self.filters:
                        one(signal)
                    return signal
            """,
            "loader": """
            class Loader:
                def __init__(self, signals, batch_size, shuffle=False):
                    if shuffle:
                        np.random.shuffle(signals)
                    self.signals, self.batch_size = signals, batch_size

                def __len__(self):
                    return -(-len(self.signals) // self.batch_size)

                def __iter__(self):
                    for start in range(0, len(self.signals), self.batch_size):
                        batch = self.signals[start : start + self.batch_size]
                        yield np.stack([signal.data for signal in batch])
            """,
        },
        "raises": {
            "signal": """
            class Signal:
                def __init__(self, samples):
                    self.data = np.array(samples, dtype=float)
            """,
            "mean": """
            class RunningMean(Filter):
                def __init__(self, width):
                    self.width = width

            RunningMean(3)
            """,
            "loader": """
            class Loader:
                def __init__(self, signals, batch_size, shuffle=False):
                    raise NotImplementedError("this comes later")
            """,
        },
    },
)
