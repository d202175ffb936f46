"""``experiments/README.md``: its tables are written from the results, its sentences are true."""

import re
from pathlib import Path

import numpy as np
import pytest

from optdl.records import Record
from tools.site import result_tables
from tools.site.result_tables import RESULTS, chosen, ended, search

FACTS = Path(__file__).with_name("experiments.txt").read_text("utf-8")


def values(curve: str, pattern: str, name: str) -> np.ndarray:
    """Return the last values of a run, of errors the accuracy.

    A name with a rate of its own replaces the whole pattern.
    """
    run = pattern.replace("*", name)
    if re.search(r"-[\d.]+$", name) and "-standardized" in name:
        run = pattern.partition("*")[0] + name
    ends = np.array([record.curves[curve][-1] for record in ended(chosen(run))])
    return 100 - 100 * ends if curve.endswith("error") else ends


def holds(low: np.ndarray, relation: str, high: np.ndarray) -> bool:
    if relation == "~":
        return bool(min(low) <= max(high) and min(high) <= max(low))
    if relation in (">>", ">="):
        return bool(min(high) > max(low) if relation == ">>" else (high > low).all())
    return bool(high.mean() - low.mean() > float(relation[1:] or 0))


@pytest.mark.row("P-13", "P-18", "P-19", "P-20", "P-26", "P-27", "F-10", "F-11")
def test_tables_match_the_results() -> None:
    page = result_tables.README.read_text("utf-8")
    assert result_tables.written(page) == page, "run python -m tools.site.result_tables"
    results = page.partition("## Our results")[2]
    assert len(result_tables.TABLE.findall(results)) == len(re.findall(r"^\|---", results, re.M))


@pytest.mark.row("P-19", "P-26", "P-27", "F-10", "F-11")
def test_comparisons_in_the_readme_match_results() -> None:
    false = []
    for line in FACTS.partition("\n\n")[2].partition("\n\n")[2].splitlines():
        curve, pattern, chains = re.fullmatch(r"(\S+) (\S+): (.*)", line).groups()
        for high, relation, low in re.findall(r"(?=(?:^|\s)(\S+?);? (>\S*|~) ([^\s;]+))", chains):
            pair = values(curve, pattern, low), relation, values(curve, pattern, high)
            false += [] if holds(*pair) else [(line, high, relation, low)]
    assert false == []


@pytest.mark.row("P-18")
def test_preconditioner_lowers_every_condition_number() -> None:
    for record in map(Record.load, (RESULTS / "fig8").glob("*.json")):
        assert set(record.curves["rank"]) == {60}
        assert np.all(np.divide(record.curves["hessian"], record.curves["running P 0.01"]) > 1)


@pytest.mark.row("P-19", "P-27", "F-10")
def test_best_rates_are_inside_their_searches() -> None:
    edges = []
    for file in RESULTS.glob("*/tuning/*.json"):
        tried = search(f"{file.parts[-3]}/{file.stem}")
        best = max(tried, key=lambda rate: tried[rate])
        if not isinstance(best, tuple) and best in (min(tried), max(tried)):
            edges.append(file.stem)
    assert edges == []
