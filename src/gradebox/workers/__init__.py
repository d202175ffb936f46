"""The processes that run notebooks: a server forks them, and grader and tests talk to them."""
