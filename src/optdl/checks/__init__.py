"""Checks of the exercises: the reference, random cases, and the usual mistakes by name.

A notebook calls :func:`check`, and :func:`summary` at its end. Each topic has a module here that
lists its ``EXERCISES``.
"""

from optdl.checks.exercise import Exercise, Misconception, Property
from optdl.checks.report import CheckFailed
from optdl.checks.runner import check, exercises, lab_exercises, prepare
from optdl.checks.summary import summary

__all__ = [
    "CheckFailed",
    "Exercise",
    "Misconception",
    "Property",
    "check",
    "exercises",
    "lab_exercises",
    "prepare",
    "summary",
]
