"""Arguments that make no sense are refused in words: refused.txt has an expression a line."""

import inspect
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from optdl import batchnorm, conditioning, erm, optimizers, problems, quadratic

TABLE = Path(__file__).with_name("refused.txt").read_text(encoding="utf-8")
ROWS = [line.split("  →  ") for line in TABLE.splitlines() if "  →  " in line]
NAMES = {
    module.__name__.rpartition(".")[2]: module
    for module in (batchnorm, conditioning, erm, optimizers, problems, quadratic)
}
NAMES |= {"inspect": inspect, "math": math, "nn": nn, "np": np, "torch": torch}


@pytest.mark.parametrize(("expression", "message"), ROWS)
def test_errors_say_what_was_expected(expression, message):
    with pytest.raises((TypeError, ValueError), match=message):
        eval(expression, NAMES)
