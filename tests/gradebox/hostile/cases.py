"""All submissions of the suite, by what they try."""

from hostile.case import Case
from hostile.edits import EDITS
from hostile.faults import FAULTS
from hostile.forging import EQUALITY, MARKS
from hostile.machine import BOMBS, DEATHS, LOOPS, OUTSIDE, STREAMS
from hostile.pages import PAGES
from hostile.prying import OBJECTS, READING

GROUPS: dict[str, list[Case]] = {
    "Forged equality": EQUALITY,
    "Forged marks": MARKS,
    "Tests and answers looked up": READING,
    "Values that harm": OBJECTS,
    "Cells changed": EDITS,
    "Beyond the notebook": OUTSIDE,
    "The process ended": DEATHS,
    "Time": LOOPS,
    "Memory, processes, disk, output": BOMBS,
    "Streams and chance": STREAMS,
    "The instructor's browser": PAGES,
    "Broken by accident": FAULTS,
}
CASES = [case for cases in GROUPS.values() for case in cases]
