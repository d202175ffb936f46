"""Exercises on convolutions as matrix products, their statistics, and their preconditioner."""
