"""Arguments that make no sense are refused in words: refused.txt has an expression a line."""

import importlib
import inspect
import math
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure

from optdl.data import Examples

TABLE = Path(__file__).with_name("refused.txt").read_text(encoding="utf-8")
ROWS = [line.split("  →  ") for line in TABLE.splitlines() if "  →  " in line]
NAMES = {name: importlib.import_module(f"optdl.{name}") for name in re.findall(r"# (\w+)", TABLE)}
MODEL = torch.nn.Linear(64, 10)
NAMES |= {"inspect": inspect, "math": math, "nn": torch.nn, "np": np, "torch": torch}
NAMES |= {
    "MODEL": MODEL, "SGD": torch.optim.SGD(MODEL.parameters()), "Namespace": SimpleNamespace,
    "HUNDRED": Examples(np.zeros((100, 64), np.float32), np.arange(100) % 10), "Figure": Figure,
}  # fmt: skip


@pytest.mark.parametrize(("expression", "message"), ROWS)
def test_errors_say_what_was_expected(expression, message):
    with pytest.raises((TypeError, ValueError), match=message):
        eval(expression, NAMES)
