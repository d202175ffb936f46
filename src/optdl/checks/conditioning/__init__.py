"""Exercises on ill-conditioning, equivalent weights and clipping."""
