"""Train and grade the labs of a class: ``python -m benchmarks.bench_labs optimizers``.

Each student of the class has trained with the right answers and with a seed of their own; what
that took is told as well. The records are kept in ``build/bench_labs``, as training a class takes
long. Then ``gradebox grade`` grades the class with nothing kept from before, from the start of
the command to its end. Every student must have full marks for the code but for the numbers that
are read off a figure, which differ from student to student.
"""

import argparse
import importlib
import shutil
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from statistics import median

import torch

from benchmarks.bench_gradebox import run
from benchmarks.gradebooks import rows, url
from optdl.labs import LabRecord, perform
from tools import lab_records, notebooks, sample_class
from tools.fingerprints import digest, files
from tools.layout import LAB, RECORD, ROOT, Course

CONFIG = """c = get_config()
c.CourseDirectory.course_id = "class"
c.Execute.extra_arguments = ["--log-level=ERROR"]
c.Execute.skip_cells_with_tag = "train"
c.Autograde.exclude_overwriting = {"TOPIC": ["record.json"]}
c.WarmExecute.imports = ["numpy"]
c.WarmExecute.banned = ["optdl.{assignment}"]
c.WarmExecute.stubbed = ["optdl.checks"]
c.WarmExecute.prepare = "from optdl.checks import prepare; prepare('{assignment}')"
"""


def train(topic: str, student: str, path: Path) -> float:
    """Train as one student does, unless it was done before; return the seconds of all runs."""
    torch.set_num_threads(1)
    answers = lab_records.answers_of(Course(ROOT).source(topic, LAB))
    lab = importlib.import_module(f"optdl.labs.{topic}").LAB
    path.parent.mkdir(parents=True, exist_ok=True)
    perform(
        lab, answers, user=student, predictions=answers["predictions"](), path=path, progress=False
    )
    return sum(one.seconds for one in LabRecord.load(path).runs)


def make(folder: Path, topic: str, records: dict[str, Path]) -> None:
    """Write a course with the lab of one assignment, and what a class handed in."""
    course = Course(ROOT)
    source = folder / "source" / topic
    source.mkdir(parents=True)
    shutil.copy(course.source(topic, LAB), source)
    shutil.copy(course.source(topic, LAB).with_name(RECORD), source)
    (folder / "nbgrader_config.py").write_text(CONFIG.replace("TOPIC", topic))
    sheet = sample_class.sheet(course, topic, LAB)
    for student, record in records.items():
        place = folder / "submitted" / student / topic
        place.mkdir(parents=True)
        shutil.copy(record, place / RECORD)
        one = sample_class.Student(student, "", "", sample_class.STUDENTS[0].filling)
        work = sample_class.submission(sheet, one).decode().replace(f"{student}-", student)
        (place / "lab.ipynb").write_text(work, encoding="utf-8")
    run(folder, "-m", "nbgrader", "generate_assignment", topic)
    (folder / "release" / topic / RECORD).unlink()  # nobody is given one's own solution


def measure(topic: str, students: int, jobs: int) -> None:
    """Print a line with the seconds of training and of grading."""
    own = [ROOT / "src" / "optdl" / "labs", Course(ROOT).source(topic, LAB)]
    kept = ROOT / "build" / "bench_labs" / f"{topic}-{digest(files(*own))[:12]}"
    records = {f"s{number:03d}": kept / f"s{number:03d}.json" for number in range(students)}
    with ProcessPoolExecutor(jobs) as pool:
        trained = list(pool.map(train, [topic] * students, records, records.values()))
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder, "class")
        make(made, topic, records)
        seconds, _ = run(made, "-m", "gradebox", "grade", topic, "-j", str(jobs))
        grades = rows(url(made))["grades"]
    _require_full_marks(grades, topic)
    print(
        f"| {topic} | {students} | {median(trained):.1f} | {seconds:.1f} "
        f"| {seconds / students:.2f} |",
        flush=True,
    )


def _require_full_marks(grades: list[tuple[str, ...]], topic: str) -> None:
    """Raise unless each student of the class has all points for code but for the reading."""
    cells = notebooks.read(Course(ROOT).source(topic, LAB)).cells
    about = [cell.metadata.get("nbgrader", {}) for cell in cells]
    worth = {one["grade_id"]: one["points"] for one in about if one.get("grade")}
    missing = [
        (student, cell)
        for student, _, cell, score, *_ in grades
        if score != "None" and "reading" not in cell and float(score) != worth[cell]
    ]
    if missing or not grades:
        raise SystemExit(f"these have no full marks: {missing[:10]}")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("topics", nargs="+", metavar="TOPIC")
    parser.add_argument("--students", type=int, default=100, metavar="N")
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    print("| lab | students | training, s (median) | grading the class, s | s each |")
    print("|---|--:|--:|--:|--:|")
    for topic in given.topics:
        measure(topic, given.students, given.jobs)


if __name__ == "__main__":
    main()
