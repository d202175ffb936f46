"""Checks of the record of a lab's runs; ``lab_record.py`` of the topic says what it has to hold."""

from optdl.checks.labs.records import check_reading, check_record

__all__ = ["check_reading", "check_record"]
