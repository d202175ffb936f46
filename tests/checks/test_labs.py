"""Labs: their records are bounded, belong to one student, and are what a run would give."""

import contextlib
import importlib
import json
import math
import re
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from optdl.checks import CheckFailed, check, summary
from optdl.checks.exercise import Misconception
from optdl.checks.labs import check_reading, check_record, records
from optdl.checks.labs.records import RecordCheck, judge, judge_reading
from optdl.labs import LabRecord, Run, perform, seed_of
from optdl.labs.lab import Lab
from optdl.labs.optimizers import LAB, batches, examples, final_losses, network
from optdl.labs.records import FILE, LARGEST, RecordError
from tools.classroom import lab_records
from tools.layout import ROOT

pytestmark = pytest.mark.row("LAB-1")

ADA = "ada-all-correct"
COURSE = ROOT / "solutions"
SOURCE = COURSE / "optimizers"


# --- A toy lab, of one weight -----------------------------------------------------------------


def experiment(
    parts: Any, setting: dict[str, Any], seed: int, steps: int | None
) -> tuple[dict[str, list[float]], nn.Module]:
    losses = [math.prod([parts["step"](setting["lr"])] * k) for k in range(steps or 5)]
    model = nn.Linear(1, 1)
    nn.init.constant_(model.weight, min(setting["lr"], 2.0))
    return {"loss": losses, "score": [-losses[-1]]}, model


TOY = Lab(
    "LAB-0", [{"lr": lr} for lr in (0.5, 0.1, 1e200)], experiment, lambda found: found["score"][-1]
)


STEP = {"step": lambda lr: lr}


def run(path: Path, user: str = "ada", parts: Any = STEP, best: Any = 0.1) -> LabRecord:
    return perform(TOY, parts, user=user, predictions={"best": best}, path=path, progress=False)


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LabRecord:
    """Return the record of the toy lab, in the working folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GRADEBOX_STUDENT", raising=False)
    return run(tmp_path / "record.json")


def test_run_records_its_curves(toy: LabRecord) -> None:
    assert [one.setting["lr"] for one in toy.runs] == [0.5, 0.1, 1e200]
    assert toy.runs[0].curves["loss"] == [1, 0.5, 0.25, 0.125, 0.0625]
    assert (toy.runs[2].stop, toy.runs[2].curves["loss"]) == ("diverged", [1, 1e200])
    assert LabRecord.load() == toy


def test_interrupted_run_resumes(tmp_path: Path) -> None:
    path, calls = tmp_path / "record.json", []

    def step(lr: float) -> float:
        calls.append(lr)
        if len(calls) == 8:
            raise KeyboardInterrupt
        return lr

    with pytest.raises(KeyboardInterrupt):
        run(path, parts={"step": step})
    assert len(LabRecord.load(path).runs) == 1
    whole, other = run(path), run(tmp_path / "other.json")
    assert [one.curves for one in whole.runs] == [one.curves for one in other.runs]


def test_prediction_is_kept_on_rerun(toy: LabRecord, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(Path("record.json"), best=0.5).predictions == {"best": 0.1}
    assert "stay those from before the first run" in capsys.readouterr().out


def test_record_of_another_student_is_refused(toy: LabRecord) -> None:
    with pytest.raises(RecordError, match=r"by 'ada', and this is LAB-0 by 'ben': move that file"):
        run(Path("record.json"), user="ben")


def test_seed_is_checksum_of_user_name() -> None:
    # the check value of CRC-32, in the tables of such checksums
    assert (seed_of("123456789"), seed_of("")) == (0xCBF43926, 0)
    assert seed_of("Zoë") == zlib.crc32(b"Zo\xc3\xab")


def test_oversized_record_is_refused(tmp_path: Path) -> None:
    record = LabRecord("LAB-0", "ada", {}, [Run({}, {"loss": [1 / 3] * (LARGEST // 15)})])
    with pytest.raises(RecordError, match="at most 2097152 bytes"):
        record.save(tmp_path / "record.json")
    assert list(tmp_path.iterdir()) == []


# --- The first lab: its record, and records that are none -------------------------------------


@pytest.fixture(scope="module")
def parts() -> dict[str, Any]:
    """Return what the source notebook of the lab defines."""
    return lab_records.answers_of(SOURCE / "lab.ipynb")


@pytest.fixture(scope="module")
def train_once(parts: dict[str, Any]) -> Callable[..., Any]:
    """Return what trains a lab's runs again, once for the same functions and the same seed.

    Two runs tell other functions and another seed from those of the source notebook.
    """
    plain, done = records.train_again, {}

    def trained(
        user: Any, experiment: Any, score: Any, used: Any, settings: Any, *rest: Any
    ) -> Any:
        is_source = rest[0] == seed_of(ADA) and all(used[name] is parts[name] for name in used)
        key = repr((*map(id, used.values()), *rest))
        if key not in done:
            some = settings if is_source else settings[:2]
            done[key] = plain(user, experiment, score, used, some, *rest)
        return done[key]

    return trained


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, train_once: Callable[..., Any]) -> Path:
    """Return a folder with the record of the source notebook, which is the working folder."""
    monkeypatch.setattr(records, "train_again", train_once)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GRADEBOX_STUDENT", raising=False)
    (tmp_path / "record.json").write_bytes((SOURCE / "record.json").read_bytes())
    return tmp_path


@pytest.fixture
def graded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder in which the work of the source notebook is graded."""
    monkeypatch.setenv("GRADEBOX_STUDENT", ADA)
    return folder


def judged(parts: dict[str, Any], **changed: Any) -> str:
    """Return why the record in the working folder is refused; nothing if it is not."""
    used = parts | changed
    try:
        check_record(
            "LAB-1:record",
            used["user"],
            used["predictions"],
            **{name: used[name] for name in ("SGD", "AdamW", "train")},
        )
    except CheckFailed as failed:
        return str(failed)
    return ""


def test_source_record_is_accepted(
    graded: Path, parts: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    assert judged(parts) == ""
    check_reading("LAB-1:reading", parts["reading"])
    told = capsys.readouterr().out
    assert "✓ record: it agrees with your functions" in told
    assert "✓ reading: it agrees with the curves" in told


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (
            lambda content: content["runs"][0]["curves"].update(loss=[1.0] * 300),
            "the first losses with optimizer SGD, lr 0.001 are",
        ),
        (lambda content: content["runs"].pop(3), "the run with optimizer SGD, lr 0.03 is missing"),
        (
            lambda content: content["runs"][3].update(curves={"accuracy": [0.9]}),
            "the first losses with optimizer SGD, lr 0.03 are none in the record",
        ),
        (lambda content: content.update(lab="LAB-2"), "the record is one of LAB-2; this is LAB-1"),
        (
            lambda content: content["predictions"].update(SGD=0.3),
            "your prediction of 'SGD' is not the one from before the run, 0.3",
        ),
    ],
)
def test_forged_record_with_valid_checksum_is_refused(
    folder: Path, parts: dict[str, Any], change: Callable[[Any], Any], reason: str
) -> None:
    content = json.loads((folder / "record.json").read_text())
    change(content)
    del content["format"], content["checksum"]
    runs = [Run(**one) for one in content.pop("runs")]
    LabRecord(**content, runs=runs).save(folder / "record.json")
    assert reason in judged(parts)


def test_edited_record_is_refused(folder: Path, parts: dict[str, Any]) -> None:
    content = json.loads((folder / "record.json").read_text())
    content["runs"][0]["curves"]["loss"][250] *= 0.9
    (folder / "record.json").write_text(json.dumps(content))
    assert "the record was changed after it was written" in judged(parts)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (None, "there is no record.json beside the notebook"),
        (" " * (LARGEST + 1), "the record has 2,097,153 bytes; a run writes at most 2,097,152"),
        ("{", "record.json is damaged"),
        ("[" * 100_000, "record.json is damaged"),
        ("[]", "is not the record of a lab"),
        ('{"format": "optdl lab record 1", "runs": [NaN]}', "the record holds nan"),
        ('{"format": "optdl lab record 1"}', "was changed after it was written"),
    ],
    ids=["none", "large", "cut", "nested", "list", "nan", "empty"],
)
def test_invalid_record_is_refused(
    folder: Path, parts: dict[str, Any], text: str | None, reason: str
) -> None:
    if text is None:
        (folder / "record.json").unlink()
    else:
        (folder / "record.json").write_text(text)
    assert reason in judged(parts)


def test_record_must_belong_to_graded_student(
    folder: Path, parts: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert f"the record is that of '{ADA}', and `user()` returns 'ben'" in judged(
        parts, user=lambda: "ben"
    )
    monkeypatch.setenv("GRADEBOX_STUDENT", ADA)
    assert judged(parts) == ""
    monkeypatch.setenv("GRADEBOX_STUDENT", "ben")
    assert f"`user()` returns '{ADA}', and the work is that of 'ben'" in judged(parts)
    monkeypatch.setenv("GRADEBOX_STUDENT", "")
    assert "must return your user name as text; it returns None" in judged(parts, user=lambda: None)


def test_changed_functions_since_the_run_are_detected(folder: Path, parts: dict[str, Any]) -> None:
    class Slower(torch.optim.SGD):
        def __init__(self, params: Any, lr: float) -> None:
            super().__init__(params, lr=lr)

    told = judged(parts, SGD=Slower)
    assert "the first losses with optimizer SGD" in told
    assert "delete record.json and train again" in told

    def missing(*arguments: Any) -> Any:
        raise NotImplementedError

    assert "a function that is needed here is not written yet" in judged(parts, train=missing)


def toy_check(**fields: Any) -> RecordCheck:
    """Return what the record of the toy lab has to hold, if nothing else is said."""
    usual = {"predictions": {}, "evaluate": lambda weights: -0.0001, "level": -1}
    return RecordCheck("LAB-0:record", TOY, **usual | {"readings": {}} | fields)


def test_all_runs_are_trained_again_once(toy: LabRecord) -> None:
    rates: list[float] = []
    judge(toy_check(), lambda: "ada", dict, {"step": lambda lr: rates.append(lr) or lr})
    assert rates == [0.5] * 5 + [0.1] * 5 + [1e200] * 5


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"level": 1.0}, "the best run must reach 1; yours reaches"),
        ({"evaluate": lambda w: -3.0}, "says that it reaches -0.0001; its weights reach -3"),
    ],
)
def test_best_run_is_judged_by_its_weights(
    toy: LabRecord, fields: dict[str, Any], reason: str
) -> None:
    with pytest.raises(CheckFailed, match=re.escape(reason)):
        judge(toy_check(**fields), lambda: "ada", dict, STEP)


def test_reading_ignores_typed_in_curves(graded: Path, parts: dict[str, Any]) -> None:
    """What is read is compared with the runs that were trained again."""
    record = LabRecord.load()
    for one in record.runs:
        best = one.setting == {"optimizer": "SGD", "lr": 0.001}
        one.curves["loss"][3:] = [0.0 if best else 2.0] * (len(one.curves["loss"]) - 3)
    record.save()
    assert judged(parts) == ""
    check_reading("LAB-1:reading", parts["reading"])
    typed = {**parts["reading"](), "SGD": 0.001}
    with pytest.raises(CheckFailed, match="the curves say otherwise"):
        check_reading("LAB-1:reading", lambda: typed)


def test_reading_tolerates_curves_of_another_machine(
    toy: LabRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    toy.runs[0].curves["loss"][4] *= 1.06
    toy.save("record.json")
    monkeypatch.setenv("GRADEBOX_STUDENT", "ada")
    check = toy_check(readings={"last": ("it", lambda record: record.runs[0].curves["loss"][4])})
    judge(check, lambda: "ada", dict, STEP)
    for value in (0.0625, 0.0625 * 1.06):
        judge_reading(check, lambda value=value: {"last": value})
    with pytest.raises(CheckFailed, match="the curves say otherwise"):
        judge_reading(check, lambda: {"last": 0.0625 * 1.2})


def test_losses_compare_up_to_rounding_noise() -> None:
    steady = [1 / (1 + k / 40) for k in range(400)]
    scattered = [loss * (1.3 if k % 2 else 0.7) for k, loss in enumerate(steady)]
    assert records._near(steady, scattered)
    assert not records._near(steady, [1.2 * loss for loss in steady])
    assert not records._near(steady, sorted(steady))


def test_reading_requires_the_runs_first(folder: Path, parts: dict[str, Any]) -> None:
    records._TRAINED.clear()
    with pytest.raises(CheckFailed, match="run the cell with `check_record` above"):
        check_reading("LAB-1:reading", parts["reading"])


class Elsewhere:
    """Stands for an answer that lives in another process, which works in another folder."""

    def __init__(self, answer: Any, folder: Path) -> None:
        self._answer, self._folder = answer, folder

    def __call__(self) -> Any:
        return self._answer()

    def __observe__(self, driver: Callable[..., Any], *values: Any) -> Any:
        with contextlib.chdir(self._folder):
            return driver(self._answer, *values)


def test_record_is_read_in_the_answers_folder(
    folder: Path, parts: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = {name: Elsewhere(parts[name], folder) for name in ("user", "reading")}
    with contextlib.chdir(tmp_path_factory.mktemp("tests")):
        assert judged(parts | {"user": elsewhere["user"]}) == ""
        check_reading("LAB-1:reading", elsewhere["reading"])
        assert "there is no record.json" in judged(parts)


@pytest.mark.parametrize("text", ["", "the lab refuses it"])
def test_record_error_fails_with_any_message(toy: LabRecord, text: str) -> None:
    def refused(*arguments: Any) -> Any:
        raise RecordError(text)

    with pytest.raises(CheckFailed, match=f"Why: {text}"):
        judge(toy_check(), lambda: "ada", dict, {"step": refused})


def test_reading_off_the_curves_is_refused(graded: Path, parts: dict[str, Any]) -> None:
    assert judged(parts) == ""
    right = parts["reading"]()
    for answer, reason in (
        (right | {"SGD": 0.03}, "'SGD' is 0.03, and the curves say otherwise"),
        (right | {"AdamW factor": 1.2}, "'AdamW factor' is 1.2, and the curves say otherwise"),
        ({"SGD": 0.1}, "must give 'AdamW' as a number"),
        (None, "must give 'SGD' as a number"),
        (right | {"SGD": "0.1"}, "must give 'SGD' as a number"),
        (right | {"SGD": math.nan}, "must give 'SGD' as a number"),
    ):
        with pytest.raises(CheckFailed, match=re.escape(reason)):
            check_reading("LAB-1:reading", lambda answer=answer: answer)


def test_no_number_is_found_by_trying(
    folder: Path, parts: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    assert judged(parts) == ""
    said = set()
    for rate in (0.03, 0.1):  # the second is right
        capsys.readouterr()
        check_reading("LAB-1:reading", lambda rate=rate: parts["reading"]() | {"SGD": rate})
        said.add(capsys.readouterr().out)
    [once] = said
    assert "it is complete; grading tells whether" in once
    with pytest.raises(CheckFailed, match="must give 'AdamW' as a number"):
        check_reading("LAB-1:reading", lambda: {"SGD": 0.1})


@pytest.mark.parametrize("kind", [int, float, np.int64, np.float32, np.array, torch.tensor])
def test_readings_of_any_numeric_type_are_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: Callable[[int], Any]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GRADEBOX_STUDENT", "ada")
    record = run(Path("record.json"), best=kind(27))
    assert LabRecord.load() == record
    asked = {"best": ("the best", lambda value: type(value) in (int, float))}
    check = toy_check(predictions=asked, readings={"epoch": ("the best epoch", lambda record: 27)})
    judge(check, lambda: "ada", lambda: {"best": kind(27)}, STEP)
    judge_reading(check, lambda: {"epoch": kind(27)})
    with pytest.raises(CheckFailed, match="'epoch' is 26, and the curves say otherwise"):
        judge_reading(check, lambda: {"epoch": kind(26)})


def test_record_error_shows_no_traceback(tmp_path: Path) -> None:
    with pytest.raises(RecordError) as refused:
        LabRecord.load(tmp_path / "record.json")
    [line] = refused.value._render_traceback_()
    assert line == f"✗ {refused.value}."


def test_unknown_lab_is_refused() -> None:
    with pytest.raises(KeyError, match="there is no lab for 'LAB-99:record'"):
        check_record("LAB-99:record", None, None)


def test_summary_includes_the_record(
    folder: Path, parts: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    judged(parts, user=lambda: "ben")
    check("LAB-1:train", parts["train"])
    capsys.readouterr()
    summary()
    told = capsys.readouterr().out
    assert "✗ record: not right yet" in told
    assert "✓ train" in told


# --- What the first lab trains ----------------------------------------------------------------


def test_network_is_determined_by_its_seed() -> None:
    first, again, other = network(1), network(1), network(2)
    assert torch.equal(first[0].weight, again[0].weight)
    assert not torch.equal(first[0].weight, other[0].weight)
    stds = [
        float(first[k].weight.detach().std() * math.sqrt(first[k].in_features / 2)) for k in (0, 2)
    ]
    np.testing.assert_allclose(stds, 1, rtol=0.05)


def test_batches_are_drawn_from_the_training_examples() -> None:
    x, y, x_validation, _ = examples()
    assert (len(x), len(x_validation)) == (1150, 288)
    (first, labels), _ = batches(3, 2)
    place = [int((x == row).all(dim=1).nonzero()[0, 0]) for row in first]
    assert torch.equal(y[place], labels) or len(set(place)) < 64
    assert abs(float(x.mean())) < 1e-5
    assert float(x.std()) == pytest.approx(1, abs=1e-5)


def test_best_rates_lie_inside_the_grid(folder: Path) -> None:
    losses = final_losses(LabRecord.load())
    for found in losses.values():
        best = min(found, key=lambda rate: found[rate])
        assert min(found) < best < max(found)


def test_record_agrees_with_torch_optimizers(
    parts: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first two runs again, with PyTorch's own optimizers in place of the answers."""

    class Momentum(torch.optim.SGD):
        def __init__(self, params: Any, lr: float) -> None:
            super().__init__(params, lr=lr, momentum=0.9)

    kept = LabRecord.load(SOURCE / "record.json")
    theirs = {"SGD": Momentum, "AdamW": torch.optim.AdamW, "train": parts["train"]}
    for setting in (LAB.settings[4], LAB.settings[9]):
        curves, _ = LAB.experiment(theirs, setting, seed_of(ADA), 100)
        run = kept.find(setting)
        assert run is not None
        np.testing.assert_allclose(curves["loss"], run.curves["loss"][:100], rtol=0.02, atol=1e-3)


# --- All labs ---------------------------------------------------------------------------------


@pytest.mark.parametrize("topic", [path.parent.name for path in COURSE.glob("*/lab.ipynb")])
def test_record_is_that_of_the_source_notebook(topic: str) -> None:
    folder, lab = COURSE / topic, importlib.import_module(f"optdl.labs.{topic}").LAB
    asked = importlib.import_module(f"optdl.checks.{topic}.lab_record").RECORD
    parts, record = lab_records.answers_of(folder / "lab.ipynb"), LabRecord.load(folder / FILE)
    threads = torch.get_num_threads()
    steps = 20 if topic == "bnp" else 6  # 20: its first mean over the training examples
    for setting in lab.settings[:: max(1, len(lab.settings) // 6)]:
        curves, _ = lab.experiment(parts, setting, seed_of(record.user), steps)
        run = record.find(setting)
        for name in curves.keys() - {"accuracy", "spread"}:  # those are of whole runs
            expected = run.curves[name][: len(curves[name])]
            np.testing.assert_allclose(curves[name], expected, rtol=1e-3, atol=1e-6)
    assert torch.get_num_threads() == threads
    read = {name: find(record) for name, (_, find) in asked.readings.items()}
    assert parts["reading"]() == pytest.approx(read, rel=0.01)
    assert (parts["predictions"](), parts["user"]()) == (record.predictions, record.user)
    assert (folder / FILE).stat().st_size < 300_000


# --- The checks' own machinery ----------------------------------------------------------------


class Shift:
    """Adds one."""

    moved: float

    def by(self, x: float) -> float:
        """Return one more."""
        self.moved: float = x + 1
        return self.moved


def test_mistake_is_reference_with_replaced_text() -> None:
    wrong = Misconception("you subtract", Shift, [("x + 1", "x - 1")])
    assert wrong.function().by(3) == 2
    body = "        self.moved = x - 1\n        return self.moved"
    assert wrong.text("Shift") == f"class Shift:\n\n    def by(self, x):\n{body}"
    with pytest.raises(ValueError, match="'z' stands 0 times in:"):
        _ = Misconception("you rename", Shift, [("z", "y")]).function


def test_error_message_names_the_line(tmp_path: Path) -> None:
    file = tmp_path / "cell.py"
    file.write_text("class SGD:\n    def __init__(self, groups, lr):\n        self.lr = 1 / 0\n")
    names: dict[str, Any] = {}
    exec(compile(file.read_text(), str(file), "exec"), names)
    with pytest.raises(CheckFailed) as failed:
        check("LAB-1:sgd", names["SGD"])
    assert "in line 3: `self.lr = 1 / 0`" in str(failed.value)
