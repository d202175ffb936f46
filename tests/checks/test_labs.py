"""Labs: their records are bounded, belong to one student, and are what a run would give."""

import contextlib
import math
import zlib
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from torch import nn

from optdl.checks import CheckFailed, summary
from optdl.checks.labs import check_reading, check_record, records
from optdl.labs import LabRecord, Run, judging, perform, seed_of
from optdl.labs.lab import Lab, Stopped
from optdl.labs.records import FILE, MAX_BYTES, RecordError

pytestmark = pytest.mark.row("LAB-1")

# --- A toy lab, of one weight -----------------------------------------------------------------


def experiment(parts, setting, seed, steps):
    losses = [math.prod([parts["step"](setting["lr"])] * k) for k in range(steps or 5)]
    model = nn.Linear(1, 1)
    nn.init.constant_(model.weight, min(setting["lr"], 2.0))
    return {"loss": losses, "score": [-losses[-1]]}, model


RATES = (0.5, 0.1, 1e200)
TOY = Lab(
    *("LAB-0", [{"lr": lr} for lr in RATES], experiment, lambda found: found["score"][-1]),
    predictions={"best": ("one of the rates", RATES.__contains__)},
)
USUAL = {
    "evaluate": lambda weights: -0.0001,
    "level": -1,
    "readings": {
        "last": ("the last loss at 0.5", lambda record: record.runs[0].curves["loss"][4]),
        "epoch": ("the best epoch", lambda record: 27),
    },
}
READ = {"last": 0.0625, "epoch": 27}


def step(lr):
    return lr


def run(path=FILE, user="ada", step=step, best=0.1):
    parts, predictions = {"step": step}, {"best": best}
    return perform(TOY, parts, user=user, predictions=predictions, path=path, progress=False)


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """Return the record of the toy lab, in the working folder, where its check is known."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GRADEBOX_STUDENT", raising=False)
    monkeypatch.setattr(records, "_record", lambda key: judging.RecordCheck(TOY, **USUAL))
    judging.TRAINED.clear()
    return run()


def refusal(judge, *given, **parts):
    """Return why a check refuses something; nothing if it does not."""
    try:
        judge(*given, **parts)
    except CheckFailed as failed:
        return str(failed)
    return ""


def judged(user=lambda: "ada", best=0.1, step=step):
    return refusal(check_record, "LAB-0:record", user, lambda: {"best": best}, step=step)


def misread(answer=READ):
    return refusal(check_reading, "LAB-0:reading", lambda: answer)


def test_run_records_its_curves(toy):
    assert [one.setting["lr"] for one in toy.runs] == [0.5, 0.1, 1e200]
    assert toy.runs[0].curves["loss"] == [1, 0.5, 0.25, 0.125, 0.0625]
    assert (toy.runs[2].stop, toy.runs[2].curves["loss"]) == ("diverged", [1, 1e200])
    assert LabRecord.load() == toy


def test_interrupted_run_resumes(tmp_path):
    path, calls = tmp_path / "record.json", []

    def interrupted(lr):
        calls.append(lr)
        if len(calls) == 8:
            raise KeyboardInterrupt
        return lr

    with pytest.raises(Stopped, match="1 of 3 runs are finished and kept; run the cell again"):
        run(path, step=interrupted)
    assert len(LabRecord.load(path).runs) == 1
    whole, other = run(path), run(tmp_path / "other.json")
    assert [one.curves for one in whole.runs] == [one.curves for one in other.runs]


def test_second_run_keeps_prediction_and_student(toy, capsys):
    assert run(best=0.5).predictions == {"best": 0.1}
    assert "stay those from before the first run" in capsys.readouterr().out
    with pytest.raises(RecordError, match=r"by 'ada', and this is LAB-0 by 'ben': move that file"):
        run(user="ben")
    for best in ("0.1", torch.tensor([0.1])):
        with pytest.raises(RecordError, match="'best': one of the rates; it gives"):
            run(best=best)


def test_seed_is_checksum_of_user_name():
    # the check value of CRC-32, in the tables of such checksums
    assert (seed_of("123456789"), seed_of("")) == (0xCBF43926, 0)
    assert seed_of("Zoë") == zlib.crc32(b"Zo\xc3\xab")


def test_oversized_record_is_refused(tmp_path):
    record = LabRecord("LAB-0", "ada", {}, [Run({}, {"loss": [1 / 3] * (MAX_BYTES // 15)})])
    with pytest.raises(RecordError, match="at most 2097152 bytes") as refused:
        record.save(tmp_path / "record.json")
    assert list(tmp_path.iterdir()) == []
    assert refused.value._render_traceback_() == [f"✗ {refused.value}."]


@pytest.mark.parametrize("graded", [False, True])
def test_own_record_and_reading_are_accepted(toy, graded, monkeypatch, capsys):
    if graded:
        monkeypatch.setenv("GRADEBOX_STUDENT", "ada")
    rates = []
    assert "run the cell with `check_record` above" in misread()
    summary()
    assert "✗ reading: not right yet" in capsys.readouterr().out
    assert judged(step=lambda lr: rates.append(lr) or lr) == misread() == ""
    assert rates == [0.5] * 5 + [0.1] * 5 + [1e200] * 5, "all runs are trained again, once"
    told = capsys.readouterr().out
    assert "✓ record: it agrees with your functions" in told
    assert ("✓ reading: it agrees with the curves" in told) == graded
    # before it is graded, no number is found by trying
    assert ("it is complete; grading tells whether" in told) != graded
    assert (misread(READ | {"epoch": 26}) == "") != graded


FILES = [  # made of the text of a record
    (lambda _: " " * (MAX_BYTES + 1), "has 2,097,153 bytes; a run writes at most 2,097,152"),
    (lambda _: "{", "record.json is damaged"),
    (lambda _: "[" * 100_000, "record.json is damaged"),
    (lambda _: "[]", "is not the record of a lab"),
    (lambda _: '{"format": "optdl lab record 1", "runs": [NaN]}', "the record holds nan"),
    (lambda _: '{"format": "optdl lab record 1"}', "was changed after it was written"),
    (lambda text: text.replace("0.25", "0.2"), "was changed after it was written"),
]


@pytest.mark.parametrize(("change", "reason"), FILES)
def test_invalid_record_is_refused(toy, change, reason):
    Path(FILE).write_text(change(Path(FILE).read_text()))
    assert reason in judged()


@pytest.mark.parametrize(
    ("forged", "graded", "given", "reason"),
    [
        # a record with a checksum that is right
        (
            lambda r: r.runs[0].curves.update(loss=[1.0] * 5),
            *("", {}, "are 1, 1, 1 in the record, and 1, 0.5"),
        ),
        (lambda r: r.runs[1].curves.pop("loss"), "", {}, "with lr 0.1 are none in the record"),
        (lambda r: r.runs.pop(1), "", {}, "the run with lr 0.1 is missing"),
        (lambda r: setattr(r, "lab", "LAB-2"), "", {}, "is one of LAB-2; this is LAB-0"),
        (lambda r: r.predictions.update(best=0.5), "", {}, "a prediction stays, right or wrong"),
        (lambda r: r.predictions.clear(), "", {}, "not one of the rates, so delete record.json"),
        # what the cells beside it give
        (id, "", {"user": lambda: "ben"}, "is that of 'ada', and `user()` returns 'ben'"),
        (id, "ben", {}, "`user()` returns 'ada', and the work is that of 'ben'"),
        (id, "ben", {"user": lambda: None}, "must return your user name as text; it returns None"),
        (id, "", {"best": 7}, "`predictions()` must give 'best': one of the rates"),
        (id, "", {"step": lambda lr: 2 * lr}, "delete record.json and train again"),
        (id, "", {"step": Mock(side_effect=NotImplementedError)}, "here is not written yet"),
        (id, "", {"step": Mock(side_effect=RecordError(""))}, "Why: ."),
        (id, "", {"step": Mock(side_effect=RecordError("it refuses"))}, "Why: it refuses."),
        (id, "", {"level": 1.0}, "the best run must reach 1; yours reaches"),
        (id, "", {"evaluate": lambda w: -3.0}, "reaches -0.0001; its weights reach -3"),
    ],
)
def test_record_that_no_run_gives_is_refused(toy, monkeypatch, forged, graded, given, reason):
    forged(toy)
    toy.save()
    for field in USUAL.keys() & given.keys():
        monkeypatch.setitem(USUAL, field, given[field])
    if graded:
        monkeypatch.setenv("GRADEBOX_STUDENT", graded)
    assert reason in judged(**{name: given[name] for name in given.keys() - USUAL.keys()})


@pytest.mark.parametrize(("factor", "accepted"), [(1.06, True), (20.0, False)])
def test_reading_tolerates_small_deviations_but_not_edited_curves(
    toy, monkeypatch, factor, accepted
):
    toy.runs[0].curves["loss"][4] *= factor
    toy.save()
    monkeypatch.setenv("GRADEBOX_STUDENT", "ada")
    assert judged() == misread() == ""
    assert (misread(READ | {"last": 0.0625 * factor}) == "") == accepted
    assert "the curves say otherwise" in misread(READ | {"last": 0.0625 * 1.2})


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (READ | {"last": 0.03}, "'last' is 0.03, and the curves say otherwise"),
        (READ | {"epoch": 26}, "'epoch' is 26, and the curves say otherwise"),
        ({"last": 0.0625}, "must give 'epoch' as a number"),
        (None, "must give 'last' as a number"),
        (READ | {"last": "0.0625"}, "must give 'last' as a number"),
        (READ | {"last": math.nan}, "must give 'last' as a number"),
        *((READ | {"epoch": kind(27)}, "") for kind in (float, np.int64, np.array, torch.tensor)),
    ],
)
def test_reading_is_compared_number_by_number(toy, monkeypatch, answer, reason):
    monkeypatch.setenv("GRADEBOX_STUDENT", "ada")
    assert judged() == ""
    told = misread(answer)
    assert reason in told
    assert bool(reason) == bool(told)


def test_prediction_of_any_numeric_type_is_kept(toy):
    for kind in (np.float64, np.array, torch.tensor):
        Path(FILE).unlink()
        assert LabRecord.load(run(best=kind(0.5)).save()) == run(best=0.5)
        assert judged(best=kind(0.5)) == ""


def test_losses_compare_up_to_rounding_noise():
    steady = [1 / (1 + k / 40) for k in range(400)]
    scattered = [loss * (1.3 if k % 2 else 0.7) for k, loss in enumerate(steady)]
    assert judging._near(steady, scattered)
    assert not judging._near(steady, [1.2 * loss for loss in steady])
    assert not judging._near(steady, sorted(steady))


def test_record_is_read_in_the_answers_folder(toy, tmp_path, tmp_path_factory):
    def elsewhere(answer):  # as in another process, which works in another folder
        def observe(driver, *values):
            with contextlib.chdir(tmp_path):
                return driver(answer, *values)

        answer.__observe__ = observe
        return answer

    with contextlib.chdir(tmp_path_factory.mktemp("tests")):
        assert judged(elsewhere(lambda: "ada")) == ""
        assert refusal(check_reading, "LAB-0:reading", elsewhere(lambda: READ)) == ""
        assert "there is no record.json" in judged()


def test_unknown_lab_is_refused():
    with pytest.raises(KeyError, match="there is no lab for 'LAB-99:record'"):
        check_record("LAB-99:record", None, None)
