"""The last test accuracies of a figure's runs as a table in Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from optdl.experiments.experiment import Experiment
from optdl.experiments.runs import Panel, Run
from optdl.records import Record

__all__ = ["table"]

HEAD = (
    "| Method | Rate | Test accuracy | Statistics anew | The paper's rate | Test accuracy |\n"
    "|---|---:|---|---|---:|---|"
)


def table(experiment: Experiment, panel: Panel) -> str:
    """Return the runs of a panel, a row each, with the chosen rate and with that of the paper.

    Accuracies are those after the last epoch in percent: mean, and range of the seeds. Seeds that
    diverged are counted and have no part in the mean. "Statistics anew" is the accuracy of a
    network with BN or Renorm whose averages are replaced by statistics of training images.
    """
    records = experiment.records()
    rows = [_row(experiment, panel, run, records) for run in panel.runs]
    return "\n".join([f"**{panel.title}**", "", HEAD, *(row for row in rows if row)])


def _row(experiment: Experiment, panel: Panel, run: Run, records: dict[str, list[Record]]) -> str:
    chosen = experiment.chosen(panel, run)
    found = records.get(chosen.name, []) if chosen else []
    paper = records.get(run.name, [])
    if not found and not paper:
        return ""
    cells = [
        run.label,
        f"{chosen.rate:g}" if chosen and panel.tuning else "",
        accuracy(found, "test_error") if panel.tuning else "",
        accuracy(found, "recomputed_error"),
        f"{run.rate:g}" if paper else "",
        accuracy(paper, "test_error"),
    ]
    return f"| {' | '.join(cells)} |"


def accuracy(records: Sequence[Record], curve: str) -> str:
    """Return mean and range of the last accuracies in percent, and how many diverged.

    Examples
    --------
    >>> one, two = Record({"error": [0.5, 0.4]}), Record({"error": [0.5, 0.5]})
    >>> accuracy([one, two, Record({"error": [0.9]}, stop="diverged at step 3")], "error")
    '55.0 (50.0–60.0), 1 of 3 diverged'
    """
    whole = [record for record in records if not record.stop.startswith("diverged")]
    last = [100 * (1 - record.curves[curve][-1]) for record in whole if curve in record.curves]
    lost = len(records) - len(whole)
    if lost == len(records):
        return f"all {lost} diverged" if lost else ""
    if not last:
        return ""
    mean = sum(last) / len(last)
    text = f"{mean:.1f} ({min(last):.1f}–{max(last):.1f})"
    return f"{text}, {lost} of {len(records)} diverged" if lost else text
