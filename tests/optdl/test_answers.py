"""What students rewrite: the library agrees with the right answers, which are written out.

That the library's functions obey the facts of their exercises is a test of ``tests/checks``.
"""

import pytest

from optdl.checks import check, exercises

WRITTEN_OUT = {key: e for key, e in exercises().items() if e._answer is not e.reference}


@pytest.mark.row("L1-03", "L1-05", "L1-06", "L1-07", "L1-09", "L1-10", "L1-12", "L1-14", "L1-15")
@pytest.mark.row("L1-16", "L1-17", "L1-18", "L1-19", "L1-20", "L1-21", "L1-22", "L1-23", "L1-33")
@pytest.mark.row("L1-34", "L1-35", "L1-36", "L2-01", "L2-10", "L2-11", "L2-13", "L2-14", "L2-16")
@pytest.mark.row("L2-17", "L2-18", "P-01", "P-03", "P-04", "P-05", "P-07", "P-08", "P-09", "P-11")
@pytest.mark.row("P-12", "P-14", "P-15", "P-17", "P-21", "P-23", "P-24", "P-25", "F-01", "F-03")
@pytest.mark.row("F-04", "F-11", "F-22", "F-26", "L1-01", "L1-11")
@pytest.mark.parametrize("key", WRITTEN_OUT)
def test_library_agrees_with_written_out_answer(key):
    for seed in (0, 7, 123):
        check(key, WRITTEN_OUT[key]._answer, seed=seed)
