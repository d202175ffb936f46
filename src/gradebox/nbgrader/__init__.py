"""Adapt nbgrader to gradebox: only this package knows nbgrader's private parts."""
