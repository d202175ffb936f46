"""An answer that takes the course's own agrees with no check, and earns nothing in the grader."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from optdl.checks import CheckFailed, catalog, check, runner
from tools.classroom import grade, release, results
from tools.layout import ROOT, Course

TAKEN = {
    "P-24:scale": "from optdl.bnp import scale_conv",
    "P-24": "import optdl.bnp\nprecondition_conv = optdl.bnp.convolution.precondition_conv",
    "P-21:forward": "import optdl.bnp_cnn as course\nfrom functools import partial\n"
    "conv_forward = partial(course.conv_forward)",
    "P-21": "def convolution_matrix(*arguments):\n"
    "    from optdl import bnp_cnn\n    return bnp_cnn.convolution_matrix(*arguments)",
    "P-23:channels": "from optdl.checks.catalog import find\n"
    "channel_statistics = find('P-23:channels').reference",
    "P-23:bound": "import optdl.bnp_cnn\ndef helper(*arguments):\n"
    "    return optdl.bnp_cnn.statistics_bound(*arguments)\n"
    "def statistics_bound(*arguments):\n    return helper(*arguments)",
    "P-25": "def normalize_channels(*arguments):\n    import optdl.bnp_cnn as course\n"
    "    return [course.normalize_channels(*arguments) for _ in '1'][0]",
    "F-18": "from optdl.optimizers import Lion, run\n"
    "def lion(gradient, start, lr, beta1, beta2, decay, steps):\n"
    "    return run(Lion(lr, beta1, beta2, decay), gradient, start, steps)",
}
"""Answers that take the course's, each in another way, by the keys of their exercises."""


@pytest.fixture
def in_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "is_notebook", lambda: True)


@pytest.mark.usefixtures("in_a_notebook")
@pytest.mark.parametrize("key", TAKEN)
def test_check_refuses_answers_using_course_solutions(key: str) -> None:
    name = catalog.find(key).name
    notebook: dict[str, Any] = {"__name__": "__main__", "np": np, "check": check}
    exec(TAKEN[key], notebook)
    with pytest.raises(CheckFailed, match=r"uses `optdl\.\w+[\w.]*`, which holds answers"):
        exec(f"check({key!r}, {name})", notebook)


@pytest.mark.usefixtures("in_a_notebook")
def test_check_accepts_own_code_with_course_names() -> None:
    # the notebook's own cells import these names, and an attribute may be called like one
    notebook: dict[str, Any] = {"__name__": "__main__", "check": check}
    exec(
        "import numpy as np\nfrom optdl.optimizers import Lion, run\nfrom optdl import problems\n"
        "class Own:\n    run = staticmethod(lambda k, w: (k + 1) / w)\n"
        "def warmup_cosine(k, first, warmup, tau):\n"
        "    if k < warmup:\n        return first * Own.run(k, warmup)\n"
        "    s = min((k - warmup) / tau, 1)\n    return first * (1 + np.cos(np.pi * s)) / 2\n"
        "check('F-05:schedule', warmup_cosine)",
        notebook,
    )


@pytest.mark.xdist_group("nbgrader")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_answers_using_course_solutions_score_zero(tmp_path: Path) -> None:
    course, topic = Course(tmp_path), "bnp_cnn"
    shutil.copy(ROOT / "nbgrader_config.py", tmp_path)
    for folder in ("solutions", "exercises"):
        labs = shutil.ignore_patterns("lab.ipynb", "record.json")
        shutil.copytree(ROOT / folder / topic, tmp_path / folder / topic, ignore=labs)
    release.record(course, topic)
    notebook = json.loads(course.released(topic).read_text("utf-8"))
    cells = {cell["id"]: cell for cell in notebook["cells"]}
    for name, cell in cells.items():
        source = "".join(cells[f"{name}-visible"]["source"]) if f"{name}-visible" in cells else ""
        if (found := re.match('check."(.+?)"', source)) and found[1] in TAKEN:
            cell["source"] = TAKEN[found[1]]
    hand_in = course.submitted / "ada" / topic / f"{topic}.ipynb"
    hand_in.parent.mkdir(parents=True)
    hand_in.write_text(json.dumps(notebook), "utf-8")
    assert [each.state for each in grade._graded(course, topic, 120)] == ["graded"]
    (row,) = results.rows(course, [topic])
    assert row.auto == 0


def test_each_reference_is_closed_where_work_is_graded() -> None:
    config = (ROOT / "nbgrader_config.py").read_text("utf-8")
    banned = re.search(r"banned = \[(.*)\]", config)[1]
    for exercise in catalog.exercises().values():
        topic, module = exercise._draw.__module__.split(".")[2], exercise.reference.__module__
        closed = ["optdl.checks", *re.findall(r'"(.+?)"', banned.replace("{assignment}", topic))]
        assert any(f"{module}.".startswith(f"{name}.") for name in closed), exercise.key
