"""Array annotations without their checks: ``Float[np.ndarray, "m n"]`` is ``np.ndarray``."""


class Annotation:
    """A kind of array, such as ``Float``."""

    def __class_getitem__(cls, item):
        """Return the type of the array, without its shape."""
        return item[0] if isinstance(item, tuple) else item


def __getattr__(name):
    if name.startswith("_"):
        raise AttributeError(name)
    return Annotation
