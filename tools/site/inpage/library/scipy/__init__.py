"""The few functions of SciPy that the exercises use, in NumPy: the page does not load SciPy."""

__version__ = "0"


class Missing:
    """A function of SciPy that is not here; to import it is no error, to call it is."""

    def __init__(self, name):
        self.__name__ = name

    def __call__(self, *args, **kwargs):
        """Say where the function is to be had."""
        raise NotImplementedError(
            f"{self.__name__} is not part of this page's Python, which has only a few functions "
            "of SciPy. Use it in JupyterLab."
        )


def missing(module, name):
    """Return a function that says that it is missing; for a module's ``__getattr__``."""
    if name.startswith("_"):
        raise AttributeError(name)
    return Missing(f"{module}.{name}")
