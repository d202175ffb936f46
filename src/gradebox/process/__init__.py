"""The processes of a notebook: a warm server forks one for its cells and one for its tests."""
