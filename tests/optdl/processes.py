"""Processes that import what compiles, which takes seconds, once for all of them.

Where there is a forkserver, they are forked of one that has imported it. In all of them the
functions of optdl are plain.
"""

import functools
import importlib
import multiprocessing
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import distributed
from torch.multiprocessing import start_processes


def _start(function: Callable[..., None], *arguments: Any, count: int) -> None:
    """Call a function in some processes, with the number of each before its arguments."""
    method = "spawn"
    if "forkserver" in multiprocessing.get_all_start_methods():
        method = "forkserver"
        imported = ["pytest", "torch._dynamo", "torch._functorch.aot_autograd", "torch.export"]
        multiprocessing.set_forkserver_preload(imported)
    start_processes(function, arguments, nprocs=count, start_method=method)


def in_plain_process(test: Callable[..., None]) -> Callable[..., None]:
    """Run a test of a module in a process of its own, where the functions are plain."""

    @functools.wraps(test)
    def started(**arguments: Any) -> None:
        _start(_test, test.__module__, test.__name__, arguments, count=1)

    return started


def _test(rank: int, module: str, name: str, arguments: dict[str, Any]) -> None:
    warnings.filterwarnings("error", module="optdl")  # compilers warn of parts of their own
    warnings.filterwarnings("ignore", "The .grad attribute of a Tensor that is")  # as Dynamo does
    getattr(importlib.import_module(module), name).__wrapped__(**arguments)


def given_by_two(share: Callable[[int], Any], folder: Path) -> list[Any]:
    """Return what a function of a module gives in each of two processes, for ranks 0 and 1.

    The processes are a group, by gloo.
    """
    _start(_process, share, str(folder), count=2)
    return [torch.load(folder / f"{rank}.pt") for rank in range(2)]


def _process(rank: int, share: Callable[[int], Any], folder: str) -> None:
    torch.set_num_threads(1)
    meeting = f"file://{folder}/meet"
    distributed.init_process_group("gloo", init_method=meeting, rank=rank, world_size=2)
    torch.save(share(rank), f"{folder}/{rank}.pt")
    distributed.barrier()
    distributed.destroy_process_group()
