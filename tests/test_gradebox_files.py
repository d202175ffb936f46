"""The working folders of the two processes of a notebook are kept in step, within limits."""

import base64
import os
import pickle
from pathlib import Path
from typing import Any

import pytest

from gradebox.codec.encoding import BadValue
from gradebox.effects import folders
from gradebox.effects.folders import LARGEST, MOST_BYTES, MOST_FILES, Files, is_data, is_sendable

pytestmark = pytest.mark.xdist_group("gradebox")

Ends = tuple[Files, Files]


@pytest.fixture
def tests(tmp_path: Path) -> Path:
    """Return the folder of the tests."""
    (tmp_path / "tests").mkdir()
    return tmp_path / "tests"


@pytest.fixture
def student(tmp_path: Path) -> Path:
    """Return the folder of the student's code."""
    (tmp_path / "student").mkdir()
    return tmp_path / "student"


@pytest.fixture
def ends(tests: Path, student: Path) -> Ends:
    return Files([tests], guarded=True), Files([student])


def go(sender: Files, receiver: Files) -> list[Any]:
    """Let what has changed go along, and return the names."""
    told = sender.changes()
    if told is None:
        return []
    receiver.take(told)
    return [name for _, name, _, _ in told["changes"]]


def message(*changes: Any, missing: Any = ()) -> dict[str, Any]:
    return {"changes": [*changes], "missing": [*missing]}


def file(name: str, content: bytes = b"", root: int = 0) -> list[Any]:
    return [root, name, "file", base64.b64encode(content).decode()]


def test_what_is_written_goes_to_the_other_side(ends: Ends, tests: Path, student: Path) -> None:
    ours, theirs = ends
    (student / "a" / "b").mkdir(parents=True)
    (student / "a" / "b" / "x.csv").write_bytes(b"1,2\r\n\xff")
    assert go(theirs, ours) == ["a", "a/b", "a/b/x.csv"]
    assert (tests / "a" / "b" / "x.csv").read_bytes() == b"1,2\r\n\xff"
    assert go(ours, theirs) == []
    (tests / "y").write_text("y")
    (tests / "a" / "b" / "x.csv").unlink()
    assert go(ours, theirs) == ["a/b/x.csv", "y"]
    assert not (student / "a" / "b" / "x.csv").exists()
    assert (student / "y").read_text() == "y"
    assert go(theirs, ours) == []


def test_folders_go_with_what_is_in_them(ends: Ends, tests: Path, student: Path) -> None:
    ours, theirs = ends
    (tests / "a" / "b").mkdir(parents=True)
    (tests / "a" / "b" / "x").touch()
    go(ours, theirs)
    (student / "a" / "b" / "x").unlink()
    (student / "a" / "b").rmdir()
    (student / "a" / "b").write_text("a file now")
    go(theirs, ours)
    assert (tests / "a" / "b").read_text() == "a file now"
    (student / "a" / "b").unlink()
    (student / "a").rmdir()
    go(theirs, ours)
    assert [*tests.iterdir()] == []


def test_a_change_of_the_same_length_at_the_same_time_is_seen(
    ends: Ends, tests: Path, student: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark, tick = folders._mark, 10_000_000  # nanoseconds: a clock may be as coarse as that

    def coarse(info: os.stat_result) -> tuple[int, ...]:
        changed, modified, *rest = mark(info)
        return changed // tick * tick, modified // tick * tick, *rest

    monkeypatch.setattr(folders, "_mark", coarse)
    for number in range(100, 300):
        (student / "x").write_text(str(number))
        go(ends[1], ends[0])
        assert (tests / "x").read_text() == str(number)


def test_what_has_been_handed_in_is_there_from_the_beginning(tests: Path, student: Path) -> None:
    (student / "data.csv").write_text("1,2")
    assert go(Files([student]), Files([tests], guarded=True)) == ["data.csv"]


def test_what_tests_found_at_their_beginning_stays_there(tests: Path, student: Path) -> None:
    (tests / "secret.csv").write_text("1,2")
    assert go(Files([tests], guarded=True), Files([student])) == []


def test_what_both_have_written_is_not_sent(ends: Ends, tests: Path, student: Path) -> None:
    (tests / "x").write_text("x")
    ends[0].forget()
    assert go(*ends) == []


def test_an_open_file_is_written_to(ends: Ends, tests: Path, student: Path) -> None:
    with (tests / "x").open("w+") as opened:
        go(*ends)
        (student / "x").write_text("new")
        go(*reversed(ends))
        assert opened.read() == "new"


def test_nothing_is_read_as_long_as_nothing_changes(
    ends: Ends, student: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (student / "x").touch()
    os.utime(student, ns=(0, 0))
    monkeypatch.setattr(folders, "RECENT", -(10**12))
    assert go(ends[1], ends[0]) == ["x"]
    monkeypatch.setattr(Files, "_scan", None)
    for _ in range(10):
        assert ends[1].changes() is None


def test_an_end_that_looks_for_long_looks_less_often(
    ends: Ends, student: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folders, "perf_counter", iter(range(100)).__next__)
    monkeypatch.setattr(folders, "ALLOWANCE", 2.5)
    (student / "x").touch()
    assert [ends[1].changes() is not None for _ in range(3)] == [False] * 3  # it began elsewhere
    ends[1].begin()
    assert ends[1].changes() is not None
    for name in "abcd":
        (student / name).touch()
        if not ends[1].changes():
            break
    assert name in "cd"
    ends[1].begin()
    assert ends[1].changes() is not None


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        "..",
        "../x",
        "a/../x",
        "/etc/passwd",
        "a//b",
        "a/",
        ".x",
        "a/.x",
        "a\0b",
        "a\\b",
        "C:x",
        "x\n",
        "\ud800",
        "x" * 201,
        "a/__pycache__/b",
    ],
)
def test_names_that_lead_elsewhere_are_refused(ends: Ends, tests: Path, name: str) -> None:
    assert not is_sendable(name)
    with pytest.raises(BadValue):
        ends[0].take(message(file(name)))
    assert [*tests.iterdir()] == []


@pytest.mark.parametrize(
    "name",
    [
        "random.py",
        "a/random.PY",
        "x.pyc",
        "libx.so.1",
        "x.pth",
        "x.ipynb",
        "conftest.py",
        "a.egg/x",
        "conftest.txt",
        "sitecustomize",
        "matplotlibrc",
        "pytest.ini",
        "pyproject.toml",
        "__init__",
        "m.pkl",
        "m.pickle",
        "m.joblib",
        "m.pt",
        "m.pth",
        "m.pkl.gz",
        "run.sh",
        "Makefile",
        "x.yaml",
        "setup.cfg",
        "a/tox.ini",
        "p-1.0.dist-info/METADATA",
        "x.exe",
    ],
)
def test_what_could_be_run_is_refused(ends: Ends, tests: Path, student: Path, name: str) -> None:
    with pytest.raises(BadValue):
        ends[0].take(message(file(name)))
    assert [*tests.iterdir()] == []
    (student / name).parent.mkdir(exist_ok=True)
    (student / name).touch()
    go(*reversed(ends))
    assert not (tests / name).exists()
    assert "could not be sent" in ends[0].doubt(f"open({name!r})", "")


def test_tests_may_send_what_can_be_run(ends: Ends, tests: Path, student: Path) -> None:
    (tests / "m.pkl").write_bytes(pickle.dumps([1]))
    (tests / "config.py").write_text("n = 1")
    assert go(*ends) == ["config.py", "m.pkl"]
    assert go(*reversed(ends)) == []


@pytest.mark.parametrize(
    "name", ["out.txt", "primes", "a b.csv", "größe.json", "x.npz", "x.tar.gz"]
)
def test_data_is_sent(name: str) -> None:
    assert is_sendable(name)
    assert is_data(name)


def test_links_and_pipes_are_not_followed(ends: Ends, tests: Path, student: Path) -> None:
    secret = tests.parent / "secret"
    secret.write_text("secret")
    for folder in tests, student:
        (folder / "link").symlink_to(secret)
        (folder / "parent").symlink_to(tests.parent)
        os.mkfifo(folder / "pipe")
    assert go(*ends) == go(*reversed(ends)) == []
    for name in "link", "parent/secret", "pipe":
        ends[0].take(message(file(name, b"forged")))
    assert secret.read_text() == "secret"
    assert (tests / "pipe").is_fifo()


@pytest.mark.parametrize(
    "told",
    [
        None,
        [],
        {},
        {"changes": []},
        {"changes": {}, "missing": []},
        message(1),
        message([]),
        message([0, "x", "file"]),
        message([True, "x", "file", ""]),
        message([0, 1, "file", ""]),
        message([0, "x", "link", ""]),
        message([0, "x", "file", "?"]),
        message(["0", "x", "file", ""]),
        message(file("x", root=1)),
        message(file("x", root=-1)),
        message(missing=[1]),
        message(missing=["x" * 1000]),
        message(missing=["x"] * (MOST_FILES + 1)),
        message([0, "x", "file", None]),
        message(file("x", b"x" * (LARGEST + 1))),
    ],
    ids=repr,
)
def test_what_makes_no_sense_is_refused(ends: Ends, tests: Path, told: Any) -> None:
    with pytest.raises(BadValue):
        ends[0].take(told)
    assert [*tests.iterdir()] == []


def test_too_much_is_refused(ends: Ends) -> None:
    with pytest.raises(BadValue, match="fewer files"):
        ends[0].take(message(*(file(str(number)) for number in range(2 * MOST_FILES + 1))))
    other, content = Files(ends[0]._roots, guarded=True), b"x" * LARGEST
    for number in range(2 * MOST_BYTES // LARGEST):
        other.take(message(file(str(number), content)))
    with pytest.raises(BadValue, match="fewer files"):
        other.take(message(file("one more", content)))


def test_files_that_come_and_go_are_not_too_many(ends: Ends, tests: Path, student: Path) -> None:
    for number in range(2 * MOST_FILES + 10):
        for end in ends:
            end.begin()
        (student / f"{number}.txt").touch()
        go(*reversed(ends))
        (tests / f"{number}.txt").unlink()
        go(*ends)


def test_no_more_is_sent_than_is_accepted(ends: Ends, student: Path) -> None:
    for number in range(MOST_FILES + 10):
        (student / f"{number:03}").touch()
    assert len(go(*reversed(ends))) == MOST_FILES
    assert "'309'" in ends[0].doubt("open('309')", "")
    assert not ends[0].doubt("assert False", "")


def test_a_large_file_that_is_missed_is_a_doubt(ends: Ends, tests: Path, student: Path) -> None:
    ends[0].take(message())
    assert not ends[0].doubt("open('x.npy')", "")
    (student / "x.npy").write_bytes(bytes(10))
    go(*reversed(ends))
    assert (tests / "x.npy").exists()
    (student / "x.npy").write_bytes(bytes(LARGEST + 1))
    assert go(*reversed(ends)) == ["x.npy"]
    assert not (tests / "x.npy").exists()  # rather than an old one
    assert ends[0].doubt("assert 1 == 2", "") == "the file 'x.npy' could not be sent to the test"


def test_data_handed_in_that_a_test_does_not_mention_is_no_doubt(
    tests: Path, student: Path
) -> None:
    (student / "helper.py").touch()
    ours = Files([tests], guarded=True)
    go(Files([student]), ours)
    assert not ours.doubt("assert f(1) == 2", "AssertionError")
    assert ours.doubt("open('helper.py')", "")


def test_only_a_word_of_the_test_or_its_error_names_a_file(tests: Path, student: Path) -> None:
    (student / "other.py").touch()
    ours = Files([tests], guarded=True)
    go(Files([student]), ours)
    assert not ours.doubt("assert f(1) == 2", "it says otherwise")
    assert ours.doubt("assert f(1) == 2", "no such file: other.py")


def test_a_folder_that_the_tests_remove_goes_with_what_only_the_student_has_there(
    ends: Ends, tests: Path, student: Path
) -> None:
    (tests / "run").mkdir()
    go(*ends)
    (student / "run" / "a.pt").write_bytes(b"not for the tests")
    (student / "run" / "link").symlink_to(tests)
    go(*reversed(ends))
    assert [*(tests / "run").iterdir()] == []
    (tests / "run").rmdir()
    assert go(*ends) == ["run"]
    assert not (student / "run").exists()
    assert tests.exists()
    assert go(*reversed(ends)) == []
    assert not ends[0].doubt("Checkpoint('run/a.pt')", "")


def test_new_files_go_before_those_that_were_handed_in(tests: Path, student: Path) -> None:
    for number in range(MOST_BYTES // LARGEST + 3):
        (student / f"a{number}").write_bytes(bytes(LARGEST))
    ours, theirs = Files([tests], guarded=True), Files([student])
    (student / "z").write_text("new")
    sent = go(theirs, ours)
    assert "z" in sent
    assert len(sent) == 1 + MOST_BYTES // LARGEST


def test_what_could_not_be_sent_is_sent_again(ends: Ends, tests: Path) -> None:
    (tests / "x").touch()
    told = ends[0].changes()
    assert told is not None
    ends[0].resend(told)
    assert go(*ends) == ["x"]


def test_of_a_folder_for_temporary_files_only_what_tests_look_for(
    tests: Path, student: Path, tmp_path: Path
) -> None:
    temporary = [tmp_path / "temporary of tests", tmp_path / "temporary of the student's"]
    for folder in temporary:
        folder.mkdir()
    ours = Files([tests, temporary[0]], guarded=True)
    theirs = Files([student, temporary[1]])
    for name in "cache", "tmp1":
        (temporary[1] / name).mkdir()
        (temporary[1] / name / "x").touch()
    (temporary[0] / "asked").mkdir()
    assert go(ours, theirs) == ["asked"]
    (temporary[1] / "asked" / "y").touch()
    assert go(theirs, ours) == ["tmp1", "asked/y", "tmp1/x"]
    with pytest.raises(BadValue):
        ours.take(message(file("cache", root=1)))
    ours.take(message(file("asked/z", root=1)))
