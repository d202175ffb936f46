"""What the labs give to students: data, networks, the run that leaves a record.

A lab is the second notebook of an assignment. Its student writes optimizers, modules and loops in
PyTorch; :func:`perform` trains with them and keeps what came of it in a :class:`LabRecord`. Each
lab has a module here, which describes its runs as a :class:`Lab`.
"""

import torch._dynamo

from optdl.labs.lab import Lab, perform
from optdl.labs.records import LabRecord, Run, seed_of

__all__ = ["Lab", "LabRecord", "Run", "perform", "seed_of"]
