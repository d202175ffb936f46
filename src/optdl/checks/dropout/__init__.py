"""Exercises on dropout: masks, gradients, the ensemble, and a network trained with it."""
