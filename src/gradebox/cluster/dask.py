"""Have submissions executed by the workers of a Dask cluster; the scores are written here."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from distributed import Client

from gradebox.cluster import remote
from gradebox.nbgrader.dry_run import Plan, TestRun, of_plain
from gradebox.run import batch
from gradebox.run.executor import Result
from gradebox.run.intake import Submission

START = 300
"""Seconds of wall time to wait for the scheduler, and for the first worker.

Other machines tell nothing of their own time. Nothing has begun that could be lost, and a wrong
address is reported after these minutes.
"""


@dataclass(frozen=True)
class Cluster:
    """A scheduler and the workers that it has.

    Parameters
    ----------
    client : Client
        The connection.
    slots : int
        How many submissions the workers execute at once.
    """

    client: Client
    slots: int

    def take_over(self, run: batch.Batch, order: dict[str, Any]) -> None:
        """Let workers execute the submissions of a run, and find out how its tests run.

        Parameters
        ----------
        run : Batch
            The run; it waits for the results.
        order : dict
            What :func:`gradebox.cluster.remote.packed` returned; each worker gets it once.
        """
        scattered_order = self.client.scatter(order, broadcast=True, hash=False)
        executor = self.client.get_executor(pure=False)

        def execute(submission: Submission, plan: Plan) -> Result:
            fields = {name: vars(notebook_plan) for name, notebook_plan in plan.items()}
            result = executor.submit(
                remote.execute, scattered_order, vars(submission), fields
            ).result()
            return Result(**result)

        def dry_run() -> list[TestRun]:
            return of_plain(executor.submit(remote.dry_run, scattered_order).result())

        run.execute, run.dry_run = execute, dry_run


@contextlib.contextmanager
def connected(address: str) -> Iterator[Cluster]:
    """Connect to a scheduler.

    Raises
    ------
    gradebox.run.batch.Unready
        If it does not answer, or has no workers.
    """
    with contextlib.ExitStack() as stack:
        try:
            client = stack.enter_context(Client(address, timeout=START, set_as_default=False))
            client.wait_for_workers(1, timeout=START)
        except (OSError, TimeoutError, ValueError) as error:
            raise batch.Unready(
                f"no cluster answers at {address}, or it has no workers ({error}); start "
                "`dask scheduler` and on each machine `dask worker ADDRESS`"
            ) from error
        yield Cluster(client, sum(client.nthreads().values()))
