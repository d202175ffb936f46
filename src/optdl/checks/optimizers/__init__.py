"""Exercises on the optimizers: a method returns every iterate, and checks compare each."""
