"""What the two optimizers of the lab have in common."""

EVENTS = (
    "",
    "a parameter has a gradient in step 1 only",
    "group 2 has the default settings, and half the learning rate",
    "the state is saved halfway, and loaded by a new optimizer",
    "gradients are cleared to zeros, not to None, and are zero in the last step",
    "a parameter has a gradient in step 3 only",
)


def paths(rng, settings):
    """Yield the path of an optimizer for each of six settings."""
    for options, event in zip(settings, EVENTS, strict=True):
        sizes = rng.integers(1, 4, size=5)
        shapes = [tuple(sizes[:2]), *((size,) for size in sizes[2:])]
        falling = [0.1, 0.1, *([0.05] * rng.integers(1, 3)), 0.02, 0.02]
        start = [rng.normal(size=shape).round(2) for shape in shapes]
        yield start, options, falling if event else [0.1] * int(rng.integers(3, 6)), event


def agrees_with_torch(exercise, theirs, **options):
    """Return whether an optimizer takes the same ten steps as one of PyTorch's own."""

    def holds(kind, rng):
        case = [rng.normal(size=3) for _ in range(4)], options, [0.05] * 10, ""
        return exercise.agrees(kind, theirs, case, slice(3))

    return holds
