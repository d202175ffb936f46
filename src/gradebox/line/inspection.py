"""What ``inspect``, ``typing`` and ``vars`` ask of stand-ins, in the checker.

What the student's process tells is text, names and plain values, each checked here. Nothing of it
is run, evaluated or imported: a signature is made of names, annotations of classes known here
(:mod:`gradebox.line.annotations`), and ``__code__`` is compiled from a function without a body. A
student may lie in all of it, as in one process: then a test reads another signature, or another
source, than is run. It never reads a number that the checker itself would have got.
"""

import inspect
import linecache
import types
from collections.abc import Callable, Mapping
from functools import partial, wraps
from typing import Any, TypeVar

from gradebox.codec.encoding import BadValue
from gradebox.line import annotations
from gradebox.line.doctests import Docstring

_Answer = TypeVar("_Answer")

_KINDS = inspect._ParameterKind
_FLAGS = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


def _ask(proxy: Any, question: str, *values: Any) -> Any:
    return proxy._gradebox.peer.ask(question, (proxy, *values))


def _noted(function: Callable[[Any], _Answer]) -> Callable[[Any], _Answer]:
    """Have the student's end take note of what is no answer, even if a test catches the error."""

    @wraps(function)
    def noted(proxy: Any) -> _Answer:
        try:
            return function(proxy)
        except BadValue as error:
            proxy._gradebox.peer.troubles.append(f"what it tells makes no sense: {error}")
            raise

    return noted


def _checked(value: Any, kind: Any, expected: str) -> Any:
    """Return a value of exactly one of some types."""
    if type(value) not in (kind if isinstance(kind, tuple) else (kind,)):
        raise BadValue(f"expected {expected}")
    return value


def _texts(value: Any, expected: str) -> list[str]:
    if type(value) is not list or not all(type(text) is str for text in value):
        raise BadValue(f"expected {expected}")
    return value


@_noted
def described(proxy: Any) -> dict[str, Any]:
    """Return name, module, documentation and parameters of a student's function or class."""
    description = _checked(_ask(proxy, "describe"), dict, "the description of a function")
    for field, kinds in _DESCRIPTION.items():
        _checked(description.get(field), kinds, f"the {field} of a function")
    _texts(description["abstract"], "the names of abstract methods")
    return description


_DESCRIPTION = {
    **dict.fromkeys(("qualname", "module"), str),
    "doc": (str, type(None)),
    "parameters": (list, type(None)),
    "abstract": list,
    "returns": (list, type(None)),
}


def documentation_of(proxy: Any) -> str | None:
    """Return the documentation of a student's function or class."""
    return Docstring.of(proxy, described(proxy)["doc"])


@_noted
def signature_of(proxy: Any) -> inspect.Signature:
    """Return the signature of a student's function or class."""
    description = described(proxy)
    if description["parameters"] is None:
        raise AttributeError("__signature__")
    try:
        return inspect.Signature(
            [_parameter(proxy, parameter) for parameter in description["parameters"]],
            return_annotation=_annotation(proxy, description["returns"], inspect.Signature.empty),
        )
    except ValueError as error:  # in a wrong order, or not distinct
        raise BadValue(f"expected the parameters of a function: {error}") from None


def _parameter(proxy: Any, fields: Any) -> inspect.Parameter:
    if type(fields) is not list or [type(field) for field in fields[:3]] != [str, int, bool]:
        raise BadValue("expected the parameters of a function")
    if len(fields) != 5 or not fields[0].isidentifier() or not 0 <= fields[1] <= 4:
        raise BadValue("expected the name and the kind of a parameter")
    name, kind, has_default, default, annotation = fields
    return inspect.Parameter(
        name,
        _KINDS(kind),
        default=default if has_default else inspect.Parameter.empty,
        annotation=_annotation(proxy, annotation, inspect.Parameter.empty),
    )


def _annotation(proxy: Any, annotation: Any, empty: Any) -> Any:
    """Return an annotation that came in a list, which is empty where there is none."""
    if type(annotation) is not list or len(annotation) > 1:
        raise BadValue("expected an annotation")
    if not annotation or annotation[0] is None:
        return None if annotation else empty
    if type(annotation[0]) is str:
        return annotations.rebuilt(annotation[0], lambda name: _class(proxy, name))
    if not isinstance(annotation[0], type):
        raise BadValue("expected a class or a text as annotation")
    return annotation[0]


def _class(proxy: Any, name: str) -> type | None:
    """Return what stands for the class of this name in the student's notebook."""
    try:
        kind = proxy._gradebox.peer.ask("get", (name,)) if name.isidentifier() else None
    except (KeyError, TypeError):  # no such name, or what cannot travel
        return None
    return kind if isinstance(kind, type) and hasattr(kind, "_gradebox") else None


@_noted
def annotations_of(proxy: Any) -> dict[str, Any]:
    """Return the annotations of a student's function or class."""
    nodes = _checked(_ask(proxy, "annotations"), dict, "annotations")
    _texts([*nodes], "the names of annotations")
    return {name: _annotation(proxy, node, None) for name, node in nodes.items()}


@_noted
def names_of(proxy: Any) -> list[str]:
    """Return the names of the attributes of anything of the student's."""
    return _texts(_ask(proxy, "dir"), "the names of attributes")


@_noted
def attributes_of(proxy: Any) -> dict[str, Any]:
    """Return the attributes that an object or class of the student's has itself."""
    attributes = _checked(_ask(proxy, "vars"), dict, "attributes")
    _texts([*attributes], "the names of attributes")
    return attributes


def attributes_of_class(proxy: Any) -> Mapping[str, Any]:
    """Return the attributes that a class of the student's has itself."""
    attributes, marks = attributes_of(proxy), annotations_of(proxy)
    return types.MappingProxyType({**attributes, "__annotations__": marks} if marks else attributes)


def abstract_of(proxy: Any) -> frozenset[str]:
    """Return the names of the abstract methods of a class of the student's."""
    return frozenset(described(proxy)["abstract"])


def flags_of(proxy: Any) -> int:
    """Return the flags of a class of the student's, of which one says that it is abstract."""
    own: int = type.__dict__["__flags__"].__get__(proxy)
    return own | inspect.TPFLAGS_IS_ABSTRACT * bool(abstract_of(proxy))


def _defaults(proxy: Any, keyword_only: bool) -> list[inspect.Parameter]:
    parameters = signature_of(proxy).parameters.values()
    return [
        parameter
        for parameter in parameters
        if parameter.default is not parameter.empty
        and (parameter.kind is parameter.KEYWORD_ONLY) == keyword_only
    ]


def _positional_defaults(proxy: Any) -> tuple[Any, ...] | None:
    return tuple(parameter.default for parameter in _defaults(proxy, False)) or None


def _keyword_defaults(proxy: Any) -> dict[str, Any] | None:
    return {parameter.name: parameter.default for parameter in _defaults(proxy, True)} or None


@_noted
def code_of(proxy: Any) -> types.CodeType:
    """Return code that looks like that of a student's function, and does nothing.

    Its name, its arguments, its flags and the names that it uses are those of the student's
    function. ``inspect.getsource`` finds the source that the student's process tells.
    """
    description = _checked(_ask(proxy, "code"), dict, "the code of a function")
    fields = [description.get(name) for name in ("name", "counts", "stars", "flags", "source")]
    if [type(field) for field in fields[:4]] != [str, list, list, int]:
        raise BadValue("expected the name and the arguments of a function")
    name, counts, stars, flags, source = fields
    _checked(source, (str, type(None)), "the source of a function")
    variables, names = (_identifiers(description.get(field)) for field in ("variables", "names"))
    if [type(count) for count in counts] != [int] * 3 or [type(star) for star in stars] != [
        bool
    ] * 2:
        raise BadValue("expected the numbers of arguments")
    first, both, last = counts
    used = both + last + sum(stars)
    if not 0 <= first <= both or last < 0 or used > len(variables):
        raise BadValue("expected names for all arguments")
    if len(set(variables)) < len(variables):
        raise BadValue("expected distinct names of arguments")
    code = _compiled(flags & _FLAGS)
    handle = proxy._gradebox
    file = f"<the student's {name[:80]} {id(handle.peer):x}.{handle.number}>"
    if source is not None:
        linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    return code.replace(
        co_name=name[:200],
        co_qualname=name[:200],
        co_filename=file,
        co_firstlineno=1,
        co_posonlyargcount=first,
        co_argcount=both,
        co_kwonlyargcount=last,
        co_varnames=tuple(variables),
        co_nlocals=len(variables),
        co_names=tuple(names),
        co_flags=code.co_flags
        | (inspect.CO_VARARGS * stars[0])
        | (inspect.CO_VARKEYWORDS * stars[1]),
    )


def _identifiers(value: Any) -> list[str]:
    """Return names, without those that a compiler makes up, such as ``.0``."""
    names = _texts(value, "the names that a function uses")
    if len(names) > 20_000 or not all(len(name) <= 200 for name in names):
        raise BadValue("expected names")
    return [name if name.isidentifier() else f"_{number}" for number, name in enumerate(names)]


def _compiled(flags: int) -> types.CodeType:
    """Return the code of a function of some kind that does nothing."""
    kind = "async " if flags & (inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR) else ""
    yields = flags & (inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR)
    body = "yield" if yields else "pass"
    module = compile(f"{kind}def nothing(): {body}", "<nothing>", "exec")
    return next(constant for constant in module.co_consts if isinstance(constant, types.CodeType))


def _attribute(name: str, proxy: Any) -> Any:
    return _ask(proxy, "getattr", name)


ATTRIBUTES: Mapping[str, Callable[[Any], Any]] = {
    "__module__": lambda proxy: described(proxy)["module"],
    "__annotations__": annotations_of,
    "__defaults__": _positional_defaults,
    "__kwdefaults__": _keyword_defaults,
    "__code__": code_of,
    "__dict__": attributes_of,
    **{
        name: partial(_attribute, name)
        for name in ("__wrapped__", "__self__", "__func__", "__isabstractmethod__")
    },
}
"""Attributes with two underscores of functions and objects that a test may see."""
