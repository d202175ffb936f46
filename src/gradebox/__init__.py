"""Grade the notebooks of any nbgrader course in a fraction of nbgrader's time."""
