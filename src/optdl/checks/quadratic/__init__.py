"""Exercises on the local quadratic approximation and on gradient descent in its eigenbasis."""
