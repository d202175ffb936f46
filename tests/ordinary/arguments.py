"""What a test passes in: objects, classes, files, iterators and functions of its own."""

from ordinary import Case

CASES = (
    Case(
        "an open file is passed in and read line by line",
        answer="""
        def count_comments(file):
            return sum(line.lstrip().startswith("#") for line in file)
        """,
        test=r"""
        with open("comments.txt", "w") as file:
            file.write("# a\nb = 1  # c\n  # d\n")
        with open("comments.txt") as file:
            assert count_comments(file) == 2
            assert file.read() == ""
        """,
        wrong="""
        def count_comments(file):
            return sum(line.startswith("#") for line in file)
        """,
    ),
    Case(
        "an endless generator is passed in, of which the answer takes a part",
        answer="""
        def first_above(numbers, bound):
            return next(number for number in numbers if number > bound)
        """,
        test="""
        def powers_of_two():
            power = 1
            while True:
                taken.append(power)
                yield power
                power *= 2

        taken = []
        assert first_above(powers_of_two(), 8) == 16
        assert taken == [1, 2, 4, 8, 16]
        """,
        wrong="""
        def first_above(numbers, bound):
            return next(number for number in numbers if number >= bound)
        """,
    ),
    Case(
        "a callback is called with each value, and its calls are counted",
        answer="""
        def bisect_root(f, low, high, on_step=None):
            while high - low > 1e-6:
                middle = (low + high) / 2
                if on_step is not None:
                    on_step(middle)
                if f(low) * f(middle) <= 0:
                    high = middle
                else:
                    low = middle
            return (low + high) / 2
        """,
        test="""
        steps = []
        root = bisect_root(lambda x: x**2 - 2, 0, 2, on_step=steps.append)
        assert abs(root - 2**0.5) < 1e-5
        assert steps[:3] == [1, 1.5, 1.25]
        assert len(steps) == 21
        """,
        wrong="""
        def bisect_root(f, low, high, on_step=None):
            while high - low > 1e-6:
                middle = (low + high) / 2
                if f(low) * f(middle) <= 0:
                    high = middle
                else:
                    low = middle
            return (low + high) / 2
        """,
    ),
    Case(
        "a callback of the test's raises an error, which the answer handles",
        answer="""
        def call_with_retries(action, retries):
            for attempt in range(retries + 1):
                try:
                    return action()
                except ConnectionError:
                    if attempt == retries:
                        raise
        """,
        test="""
        import pytest
        attempts = []

        def unreliable():
            attempts.append(1)
            if len(attempts) < 3:
                raise ConnectionError("try again")
            return "done"

        assert call_with_retries(unreliable, 5) == "done"
        assert len(attempts) == 3
        attempts.clear()
        with pytest.raises(ConnectionError, match="try again"):
            call_with_retries(unreliable, 1)
        """,
        wrong="""
        def call_with_retries(action, retries):
            for attempt in range(retries):
                try:
                    return action()
                except ConnectionError:
                    pass
        """,
    ),
    Case(
        "lists and dicts are changed in place",
        answer="""
        def remove_duplicates(items):
            seen = set()
            items[:] = [item for item in items if not (item in seen or seen.add(item))]

        def count_into(counts, words):
            for word in words:
                counts[word] = counts.get(word, 0) + 1
        """,
        test="""
        items = [3, 1, 3, 2, 1]
        same = items
        assert remove_duplicates(items) is None
        assert same == [3, 1, 2]
        counts = {"a": 1}
        count_into(counts, "ab")
        assert counts == {"a": 2, "b": 1}
        """,
        wrong="""
        def remove_duplicates(items):
            items = list(dict.fromkeys(items))

        def count_into(counts, words):
            for word in words:
                counts[word] = counts.get(word, 0) + 1
        """,
    ),
    Case(
        "an array is changed in place, also through a view",
        answer="""
        def clip_negative(x):
            x[x < 0] = 0
        """,
        test="""
        import numpy as np
        x = np.array([[1.0, -2.0], [-3.0, 4.0]])
        clip_negative(x[0])
        np.testing.assert_array_equal(x, [[1, 0], [-3, 4]])
        clip_negative(x)
        assert x.min() == 0
        """,
        wrong="""
        def clip_negative(x):
            x = x * (x > 0)
        """,
    ),
    Case(
        "the result is the argument itself, or must not be",
        answer="""
        def sorted_in_place(items):
            items.sort()
            return items

        def sorted_copy(items):
            return sorted(items)
        """,
        test="""
        items = [3, 1, 2]
        assert sorted_copy(items) is not items
        assert items == [3, 1, 2]
        assert sorted_in_place(items) is items
        assert items == [1, 2, 3]
        """,
        wrong="""
        def sorted_in_place(items):
            return sorted(items)

        def sorted_copy(items):
            return sorted(items)
        """,
    ),
    Case(
        "a Mock is passed in, and asked how it was called",
        answer="""
        def notify_all(mailer, addresses, text):
            for address in addresses:
                mailer.send(address, body=text)
            return mailer.close()
        """,
        test="""
        from unittest.mock import Mock, call
        mailer = Mock()
        mailer.close.return_value = "closed"
        assert notify_all(mailer, ["a@b.c", "d@e.f"], "hello") == "closed"
        mailer.send.assert_any_call("a@b.c", body="hello")
        assert mailer.send.call_args_list[1] == call("d@e.f", body="hello")
        mailer.close.assert_called_once_with()
        """,
        wrong="""
        def notify_all(mailer, addresses, text):
            for address in addresses:
                mailer.send(address, text)
            return mailer.close()
        """,
    ),
)
