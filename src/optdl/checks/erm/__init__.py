"""Exercises on empirical risk, surrogate losses, early stopping, and the noise of minibatches."""
