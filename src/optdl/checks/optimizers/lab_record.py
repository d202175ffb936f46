"""What the record of the fourteen runs, and what is read from it, have to hold."""

from functools import partial

from optdl.labs.digits import accuracy, dense, loaded, standardized
from optdl.labs.judging import RecordCheck
from optdl.labs.optimizers import LAB, RATES, WIDTHS, final_losses


def _best(name, record):
    losses = final_losses(record)[name]
    return min(losses, key=losses.__getitem__)


def _factor(name, record):
    losses = final_losses(record)[name]
    return losses[min(RATES)] / min(losses.values())


_READ = "the rate at which the mean of the last 20 losses of {} is smallest"
_OVER = "the last loss of {} at 0.001, divided by that at the best rate"

RECORD = RecordCheck(
    lab=LAB,
    evaluate=lambda weights: accuracy(loaded(dense(WIDTHS, 0), weights), *standardized()[2:]),
    level=0.88,
    readings={name: (_READ.format(name), partial(_best, name)) for name in ("SGD", "AdamW")}
    | {f"{one} factor": (_OVER.format(one), partial(_factor, one)) for one in ("SGD", "AdamW")},
)
