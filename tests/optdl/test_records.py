"""A record reads back exactly as it was written, or says why it cannot."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from optdl.records import Record, versions


@pytest.fixture
def record() -> Record:
    return Record(
        {"train_loss": [0.1 + 0.2, 5e-324, -1.7e308], "train_error": [0.5, 0.25, 0.0]},
        config={"optimizer": "SGD", "lr": 0.1, "layers": [64, 10], "nested": {"a": None}},
        seed=7,
        stop="all 3 epochs",
        device="cpu",
        seconds=1.25,
    )


def test_record_round_trips_through_a_file(record, tmp_path):
    path = record.save(tmp_path / "results" / "run.json")
    assert Record.load(path) == record
    assert record.curves["train_loss"] == [0.1 + 0.2, 5e-324, -1.7e308]  # with all digits
    Record({"old": [1.0]}).save(path)  # which is replaced
    record.save(path)
    assert Record.load(str(path)) == record
    assert Record({}).versions == versions()
    plain = Record({"loss": [np.float64(0.5)]}, config={"sizes": (1, 2), "lr": np.float32(0.5)})
    assert plain.config == {"sizes": [1, 2], "lr": 0.5}
    assert Record.load(plain.save(path)) == plain


def test_nonfinite_numbers_round_trip_as_words(tmp_path):
    record = Record({"loss": [math.nan, math.inf, -math.inf]}, config={"clip": math.inf})
    path = record.save(tmp_path / "run.json")

    def refuse(name):
        raise AssertionError(f"{name} is not JSON")

    content = json.loads(path.read_text(), parse_constant=refuse)
    assert content["curves"]["loss"] == [{"float": "nan"}, {"float": "inf"}, {"float": "-inf"}]
    back = Record.load(path)
    assert math.isnan(back.curves["loss"][0])
    assert back.curves["loss"][1:] == [math.inf, -math.inf]
    assert back.config["clip"] == math.inf


def test_save_is_atomic(record, tmp_path, monkeypatch):
    path = record.save(tmp_path / "run.json")
    before = path.read_text()

    def fail(self, target):
        raise OSError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", fail)
        with pytest.raises(OSError, match="disk full"):
            Record({"other": [1.0]}).save(path)
    assert path.read_text() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not whole JSON.*delete it"),
        (b"\xff\xfe\x00", "not whole JSON"),
        ("[1, 2]", "not a record"),
        ('{"format": "optdl record 99", "curves": {}}', "not a record"),
        ('{"format": "optdl record 1"}', "not a whole record.*curves"),
        ('{"format": "optdl record 1", "curves": {}, "color": 1}', "not a whole record.*color"),
        ('{"format": "optdl record 1", "curves": {"a": ["b"]}}', "not a whole record"),
    ],
)
def test_damaged_and_foreign_files_are_refused(text, message, tmp_path):
    path = tmp_path / "run.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ValueError, match=message) as caught:
        Record.load(path)
    assert str(path) in str(caught.value)
