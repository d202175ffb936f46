"""One run over the submissions of an assignment: read, execute, keep, write, report."""
