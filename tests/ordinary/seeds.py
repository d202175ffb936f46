"""Random numbers: seeds that the test sets, and generators that it passes in."""

from ordinary import Case

CASES = (
    Case(
        "a seed set by random.seed reaches the answer",
        answer="""
        import random

        def roll_dice(n):
            return [random.randint(1, 6) for _ in range(n)]
        """,
        test="""
        import random
        random.seed(3)
        expected = [random.randint(1, 6) for _ in range(30)]
        random.seed(3)
        assert roll_dice(30) == expected
        """,
        wrong="""
        import random

        def roll_dice(n):
            return [random.randint(0, 5) for _ in range(n)]
        """,
    ),
    Case(
        "a seed set by np.random.seed reaches the answer",
        answer="""
        import numpy as np

        def noisy_line(n):
            return np.arange(n) + np.random.randn(n)
        """,
        test="""
        import numpy as np
        np.random.seed(0)
        expected = np.arange(5) + np.random.randn(5)
        np.random.seed(0)
        np.testing.assert_allclose(noisy_line(5), expected)
        """,
        wrong="""
        import numpy as np

        def noisy_line(n):
            return np.arange(n) + np.random.rand(n)
        """,
    ),
    Case(
        "a seed set by torch.manual_seed reaches the answer",
        answer="""
        import torch

        def initial_weights(rows, columns):
            return torch.randn(rows, columns) / columns**0.5
        """,
        test="""
        import torch
        torch.manual_seed(1)
        weights = initial_weights(3, 4)
        torch.manual_seed(1)
        assert torch.allclose(weights, torch.randn(3, 4) / 2)
        """,
        wrong="""
        import torch

        def initial_weights(rows, columns):
            return torch.randn(rows, columns)
        """,
    ),
    Case(
        "a default_rng is passed in, and goes on where the answer left it",
        answer="""
        import numpy as np

        def random_walk(rng, steps):
            return np.cumsum(rng.choice([-1, 1], size=steps))
        """,
        test="""
        import numpy as np
        rng = np.random.default_rng(7)
        first, second = random_walk(rng, 30), random_walk(rng, 30)
        assert not np.array_equal(first, second)
        np.testing.assert_array_equal(random_walk(np.random.default_rng(7), 30), first)
        assert rng.integers(1000) != np.random.default_rng(7).integers(1000)
        """,
        wrong="""
        import numpy as np

        def random_walk(rng, steps):
            rng = np.random.default_rng(0)
            return np.cumsum(rng.choice([-1, 1], size=steps))
        """,
    ),
    Case(
        "a torch.Generator is passed in",
        answer="""
        import torch

        def dropout_mask(shape, p, generator):
            return torch.rand(shape, generator=generator) >= p
        """,
        test="""
        import torch
        mask = dropout_mask((10, 10), 0.3, torch.Generator().manual_seed(4))
        again = dropout_mask((10, 10), 0.3, torch.Generator().manual_seed(4))
        assert torch.equal(mask, again)
        assert 50 < mask.sum() < 90
        """,
        wrong="""
        import torch

        def dropout_mask(shape, p, generator):
            return torch.rand(shape) >= p
        """,
    ),
    Case(
        "the answer must leave the global generator as it is",
        answer="""
        import numpy as np

        def jitter(x, seed):
            return x + np.random.default_rng(seed).normal(size=x.shape)
        """,
        test="""
        import numpy as np
        np.random.seed(4)
        before = np.random.get_state()[1].copy()
        noisy = jitter(np.zeros(3), seed=1)
        np.testing.assert_array_equal(noisy, jitter(np.zeros(3), seed=1))
        np.testing.assert_array_equal(np.random.get_state()[1], before)
        """,
        wrong="""
        import numpy as np

        def jitter(x, seed):
            np.random.seed(seed)
            return x + np.random.normal(size=x.shape)
        """,
    ),
)
