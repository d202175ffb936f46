"""``experiments/README.md``: its tables are written from the results, its sentences are true."""

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from optdl.records import Record
from tools.site import result_tables
from tools.site.result_tables import RESULTS, by_epoch, chosen, records, search

FACTS = Path(__file__).with_name("experiments.txt").read_text("utf-8")
FASTER = ("bnp-rate-0.1", 0.1), ("bn", 0.3)
# the pairs with the second-best validation accuracy: the rate of the later layers, of the first
SECOND = {"bnp-not-the-first-layer": (0.1, 0.001), "vanilla": (0.001, 0.003), "ln": (0.01, 0.003)}


def values(curve: str, pattern: str, name: str) -> np.ndarray:
    """Return the last values of a run, or those of an epoch; of errors the accuracy.

    A name with a rate of its own replaces the whole pattern.
    """
    run = pattern.replace("*", name)
    if re.search(r"-[\d.]+$", name) and "-standardized" in name:
        run = pattern.partition("*")[0] + name
    curve, *epochs = re.split("[@-]", curve)
    table = by_epoch(chosen(run), curve)
    first, *before = (table[:, int(epoch) - 1] for epoch in epochs or ["0"])
    return first - before[0] if before else first


def holds(low: np.ndarray, relation: str, high: np.ndarray) -> bool:
    if relation == "~":
        return bool(min(low) <= max(high) and min(high) <= max(low))
    if relation in (">>", ">="):
        return bool(min(high) > max(low) if relation == ">>" else (high > low).all())
    if relation.endswith("%"):
        return bool(high.mean() > (1 + float(relation[1:-1]) / 100) * low.mean())
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


def other_facts() -> Iterator[tuple[str, object]]:
    """Yield what is said of other epochs, of steps and of searches, and whether it is true."""
    for kind in ("raw", "standardized"):
        test = by_epoch(chosen(f"fig3/cifar10-fc3-60-bnp-{kind}"), "test_loss")
        yield f"BNP overfits, {kind}", test.argmin(axis=1).max() < 10
    small = (f"fig6/cifar10-resnet14-128-{name}-standardized-{rate}" for name, rate in FASTER)
    bnp, bn = (by_epoch(run)[:, :8].mean(axis=0) for run in small)
    yield "BNP is faster in all but one of eight epochs", (bnp > bn).sum() == 7
    rates = search("fig6/cifar10-resnet14-128-gn-standardized")
    yield "GN's rates lie close", np.ptp([*rates.values()]) < 0.03
    four = "split/cifar10-resnet14-8-{}-adam-four-epochs-standardized-{}"
    both, gn = four.format("bnp-and-gn", 0.003), four.format("gn", 0.001)
    yield "two epochs beat four", by_epoch(both)[0, 1] > by_epoch(gn)[0, 3]
    yield "less than twice as long", records(both)[0].seconds < 2 * records(gn)[0].seconds
    for record in map(Record.load, sorted((RESULTS / "fig8").glob("*.json"))):
        curves = {name: np.array(curve) for name, curve in record.curves.items()}
        gain = curves["hessian"] / curves["running P 0.01"]
        yield "P lowers every condition number", min(gain) > 1
        yield "the Hessian has rank 60", set(curves["rank"]) == {60}
        for where, power in (("", 1), ("examples ", 2)):
            gain = curves[f"{where}hessian"] / curves[f"{where}running P 0.01"]
            factor = np.median(gain / curves["running D 0.01"] ** power)
            yield f"the gain is about a power of D, {where}", 0.4 < factor < 4
    for name, pair in SECOND.items():
        grid, line, other = (
            search(f"first_layer/cifar10-fc3-1-{name}-{kind}")
            for kind in ("grid-raw", "raw", "standardized")
        )
        yield f"{name}: second best", sorted(other, key=lambda rates: -other[rates])[1] == pair
        yield f"{name}: a pair far away", max(grid.values()) > max(line.values())
    files = [file for file in RESULTS.glob("*/*.json") if file.parent.name != "recorded"]
    lost = {r.config["method"] for r in map(Record.load, files) if r.stop.startswith("diverged")}
    yield "only Renorm diverged", lost == {"Renorm"}


@pytest.mark.row("P-18", "P-19", "P-27", "F-10")
def test_other_readme_statements_match_results() -> None:
    assert [text for text, true in other_facts() if not true] == []
