"""An answer that takes the course's own agrees with no check, and the grader has none to take."""

from typing import Any

import numpy as np
import pytest

from optdl.checks import CheckFailed, catalog, check, runner
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


def test_each_reference_is_closed_where_work_is_graded() -> None:
    settings = Course(ROOT).config.WarmExecute
    for exercise in catalog.exercises().values():
        topic, module = exercise._draw.__module__.split(".")[2], exercise.reference.__module__
        closed = [*settings.stubbed, *(name.format(assignment=topic) for name in settings.banned)]
        assert any(f"{module}.".startswith(f"{name}.") for name in closed), exercise.key
