"""Train and grade the labs of a class: ``python -m benchmarks.bench_labs optimizers``.

Each student of the class has trained with the right answers and with a seed of their own; what
that took is told as well. The records are kept in ``build/bench_labs``, as training a class takes
long. Then ``gradebox grade`` grades the class with nothing kept from before, from the start of
the command to its end. Every student must have full marks for the code.
"""

import argparse
import re
import shutil
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from statistics import median

from benchmarks.bench_gradebox import run
from benchmarks.gradebooks import rows, url
from optdl.labs import LabRecord, perform
from tools import lab_records, notebooks, sample_class
from tools.layout import ROOT, Course
from tools.stamps import digest, files

CONFIG = """c = get_config()
c.CourseDirectory.course_id = "class"
c.Execute.extra_arguments = ["--log-level=ERROR"]
c.Execute.skip_cells_with_tag = "train"
c.WarmExecute.imports = [
    "numpy", "optdl.checks.{{assignment}}", "optdl.checks.labs.{{assignment}}", "matplotlib.pyplot"
]
c.WarmExecute.banned = ["optdl.{{assignment}}"]
c.WarmExecute.hollow = ["optdl.checks"]
"""


def train(topic: str, student: str, path: Path) -> float:
    """Train as one student does, unless it was done before; return the seconds of all runs."""
    import torch

    torch.set_num_threads(1)
    source = Course(ROOT).solutions / topic / "lab.ipynb"
    answers = lab_records.answers_of(source)
    lab = lab_records.lab_of(topic)
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
    shutil.copy(course.solutions / topic / "lab.ipynb", source)
    shutil.copy(course.solutions / topic / lab_records.NAME, source)
    (folder / "nbgrader_config.py").write_text(CONFIG.format())
    right = sample_class.sheet(course, topic, "lab")
    for student, record in records.items():
        place = folder / "submitted" / student / topic
        place.mkdir(parents=True)
        shutil.copy(record, place / lab_records.NAME)
        work = notebooks.node(right.released)
        for cell in work.cells:
            cell.source = (right.right | right.written).get(cell.id, cell.source)
            if cell.id.endswith("-user"):
                cell.source = re.sub(r'return ".*"', f'return "{student}"', cell.source)
        (place / "lab.ipynb").write_bytes(notebooks.to_bytes(work))
    run(folder, "-m", "nbgrader", "generate_assignment", topic)
    (folder / "release" / topic / lab_records.NAME).unlink(missing_ok=True)


def measure(topic: str, students: int, jobs: int) -> None:
    """Print a line with the seconds of training and of grading."""
    kept = ROOT / "build" / "bench_labs" / f"{topic}-{_version(topic)}"
    records = {f"s{number:03d}": kept / f"s{number:03d}.json" for number in range(students)}
    with ProcessPoolExecutor(jobs) as pool:
        trained = list(pool.map(train, [topic] * students, records, records.values()))
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder, "class")
        make(made, topic, records)
        start = time.perf_counter()
        run(made, "-m", "gradebox", "grade", topic, "-j", str(jobs))
        seconds = time.perf_counter() - start
        found = rows(url(made))
    _require_full_marks(found, students)
    print(f"| {topic} | {students} | {median(trained):.1f} | {seconds:.1f} |", flush=True)


def _version(topic: str) -> str:
    own = [ROOT / "src" / "optdl" / "labs", ROOT / "solutions" / topic / "lab.ipynb"]
    return digest(files(*own))[:12]


def _require_full_marks(found: dict[str, list[tuple[object, ...]]], students: int) -> None:
    """Raise unless each student of the class has all points for code."""
    raise NotImplementedError(found["grades"][:3], students)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("topics", nargs="+", metavar="TOPIC")
    parser.add_argument("--students", type=int, default=100, metavar="N")
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    print("| lab | students | training, s (median) | grading the class, s |")
    print("|---|--:|--:|--:|")
    for topic in given.topics:
        measure(topic, given.students, given.jobs)


if __name__ == "__main__":
    main()
