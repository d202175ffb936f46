"""The student measures images per second on a device that works through a queue."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

from optdl.checks.exercise import Case, Exercise
from optdl.labs.drivers import bnp_cnn as drivers
from optdl.observation import observe


def images_per_second(
    step: Callable[[], object], images: int, warmup: int = 3, repeats: int = 10
) -> float:
    """Return how many images a step works on in each second, on whatever device.

    Source: LAB-6.
    """

    def now() -> float:
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        return time.perf_counter()

    for _ in range(warmup):
        step()
    start = now()
    for _ in range(repeats):
        step()
    return repeats * images / (now() - start)


exercise = Exercise(
    "LAB-6:speed",
    images_per_second,
    use=drivers.measure_speed,
    rtol=1e-6,
    parts=("images per second", "the number of steps"),
)


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    for has_gpu, warmup, repeats in [(False, 2, 1), (True, 2, 3), (True, 3, 5), (False, 4, 2)]:
        work = round(float(rng.uniform(0.1, 0.9)), 2)
        yield {
            "has_gpu": has_gpu,
            "seconds": (work, round(work / 4, 3)),
            "images": int(rng.integers(2, 100)),
            "warmup": warmup,
            "repeats": repeats,
        }


@exercise.fact("a GPU with twice the work for each image has half the speed")
def _(function: Any, rng: np.random.Generator) -> bool:
    work, images = float(rng.uniform(0.1, 0.9)), int(rng.integers(2, 100))
    speeds = [
        observe(drivers.measure_speed, function, True, (seconds, work / 10), images, 2, 5)[0]
        for seconds in (work, 2 * work)
    ]
    return bool(np.isclose(speeds[0], 2 * speeds[1], rtol=0.05))


exercise.hints(
    "At which two moments do you read the clock, and what must the device have finished by then?",
    "Define a helper function that waits for the GPU, if there is one, and then returns the time. "
    "Call it for both readings.",
    "Run the warm-up, read the clock, make the `repeats` calls, and read the clock again. Divide "
    "the number of images in all measured calls by the difference between the two readings.",
)

exercise.mistakes(r"""
you read the clock while the GPU is still at work; wait for it with `torch.cuda.synchronize()`
before each reading, the last one too
    torch.cuda.synchronize() → pass
you begin to measure while the GPU still works on the warm-up; wait for it before the first reading
too
    start = now() → start = time.perf_counter()
you wait for the GPU after each step, which a training does not; wait before the two readings of the
clock only
    (repeats):\n        step() → (repeats):\n        step(), now()
you wait for a GPU where there is none; ask `torch.cuda.is_available()` first
    if torch.cuda.is_available(): → if True:
you measure without a warm-up; the first steps compile, allocate and fill caches
    range(warmup) → []
your time includes the warm-up; read the clock behind it
    start = now() →
    for _ in range(warmup) → start = now()\n    for _ in range(warmup)
you count steps; each of them works on `images` images
    repeats * images / → repeats /
you count the images of one step, and the time of all of them
    repeats * images / → images /
you return seconds for each image; divide the other way round
    repeats * images / (now() - start) → (now() - start) / (repeats * images)
you count the images of the warm-up, and its time is not measured; count those of the `repeats`
calls
    repeats * images / → (warmup + repeats) * images /
""")
