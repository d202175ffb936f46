"""Submissions that attack the grader, or are simply broken, with what becomes of each."""
