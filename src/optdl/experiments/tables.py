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
    rows = [_row(experiment, panel, run) for run in panel.runs]
    return "\n".join([f"**{panel.title}**", "", HEAD, *(row for row in rows if row)])


def _row(experiment: Experiment, panel: Panel, run: Run) -> str:
    chosen = experiment.chosen(panel, run)
    found = experiment.ended(chosen) if chosen else []
    of_paper = panel.tuning.paper if panel.tuning else panel.paper
    paper = experiment.ended(run) if of_paper else []
    if not found and not paper:
        return ""
    alone = not panel.tuning and panel.paper  # there are no other rates than the paper's
    cells = [
        run.label,
        f"{chosen.rate:g}" if chosen and not alone else "",
        "" if alone else accuracy(found, "test_error"),
        accuracy(found, "recomputed_error"),
        f"{run.rate:g}" if paper else "",
        accuracy(paper, "test_error"),
    ]
    return f"| {' | '.join(cells)} |"


def accuracy(records: Sequence[Record], curve: str) -> str:
    """Return mean and range of the last accuracies in percent, and how many diverged.

    A single seed has no range.

    Examples
    --------
    >>> one, two = Record({"error": [0.5, 0.4]}), Record({"error": [0.5, 0.5]})
    >>> accuracy([one, two, Record({"error": [0.9]}, stop="diverged at step 3")], "error")
    '55.0 (50.0–60.0), 1 of 3 diverged'
    >>> accuracy([one], "error")
    '60.0'
    """
    whole = [record for record in records if not record.stop.startswith("diverged")]
    last = [100 * (1 - record.curves[curve][-1]) for record in whole if curve in record.curves]
    lost = len(records) - len(whole)
    if lost == len(records):
        return f"all {lost} diverged" if lost else ""
    if not last:
        return ""
    mean = sum(last) / len(last)
    text = f"{mean:.1f}"
    if len(last) > 1:
        text += f" ({min(last):.1f}–{max(last):.1f})"
    return f"{text}, {lost} of {len(records)} diverged" if lost else text
