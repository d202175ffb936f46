"""Exercises on BNP: the Hessian of a layer, its preconditioner, and one step of the algorithm."""
