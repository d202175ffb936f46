"""The processes of a notebook: a warm parent forks one for its cells and one for its tests."""
