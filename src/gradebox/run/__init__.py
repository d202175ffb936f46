"""Grade the submissions of an assignment: read, execute, store, write, report."""
