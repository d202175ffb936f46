"""The bridge to nbgrader: the only room that knows nbgrader's private parts."""
