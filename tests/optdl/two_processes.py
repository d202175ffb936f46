"""Two processes of one machine that train together."""

import multiprocessing
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import distributed
from torch.multiprocessing import start_processes


def given_by_two(share: Callable[[int], Any], folder: Path) -> list[Any]:
    """Return what a function of a module gives in each of two processes, for ranks 0 and 1.

    The processes are a group, by gloo. Where there is a forkserver, the function's module is
    imported once for both.
    """
    method = "spawn"
    if "forkserver" in multiprocessing.get_all_start_methods():
        method = "forkserver"
        multiprocessing.set_forkserver_preload([share.__module__])
    start_processes(_process, (share, str(folder)), nprocs=2, start_method=method)
    return [torch.load(folder / f"{rank}.pt") for rank in range(2)]


def _process(rank: int, share: Callable[[int], Any], folder: str) -> None:
    torch.set_num_threads(1)
    distributed.init_process_group(
        "gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2
    )
    torch.save(share(rank), f"{folder}/{rank}.pt")
    distributed.barrier()
    distributed.destroy_process_group()
