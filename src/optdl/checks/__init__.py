"""Checks of the exercises: the reference, random cases, and the usual mistakes by name.

A notebook calls :func:`check`, and :func:`summary` at its end; :func:`hint` helps whoever is stuck.
Each topic has a folder here, and in it each exercise a file.
"""

from optdl.checks.catalog import exercises, lab_exercises
from optdl.checks.diagnoses.notebook import tell_unwritten_plainly
from optdl.checks.exercise import Exercise, Misconception, Property
from optdl.checks.hints import hint
from optdl.checks.report import CheckFailed
from optdl.checks.runner import check, prepare
from optdl.checks.summary import summary

tell_unwritten_plainly()

__all__ = ["CheckFailed", "Exercise", "Misconception", "Property", "check", "exercises", "hint"]
__all__ += ["lab_exercises", "prepare", "summary"]
