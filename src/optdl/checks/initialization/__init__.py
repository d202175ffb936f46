"""Exercises on activations, initial values, and the normalization of inputs."""
