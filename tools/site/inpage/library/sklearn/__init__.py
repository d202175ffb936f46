"""Stands for scikit-learn, of which pages read one file, the digits."""
