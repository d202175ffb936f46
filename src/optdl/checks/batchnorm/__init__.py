"""Exercises on batch normalization: forward and backward, inference, and two relatives."""
