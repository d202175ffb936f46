"""Tensors and networks of torch as plain data, with gradients.

A tensor that a student's code has computed from tensors with gradients goes with a handle of its
graph: ``backward`` in a test asks the student's process to go back through it, see
:mod:`gradebox.codec.gradients`. A network made of torch's own modules goes as what they hold. A
hook of a module goes as the function that it is: each process asks the other one to call it.
"""

import math
import sys
from collections import OrderedDict
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from gradebox.codec import optimizers

if TYPE_CHECKING:
    from gradebox.codec.encoding import Decoder, Encoder, Node

_INTEGERS = ("uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64")
_FLOATS = ("float16", "bfloat16", "float32", "float64", "complex64", "complex128")
DTYPES = frozenset(("bool", *_INTEGERS, *_FLOATS))

_PARTS = ("_parameters", "_buffers", "_modules")
_KEPT_APART = frozenset((*_PARTS, "_non_persistent_buffers_set"))
_PLAIN = (type(None), bool, int, float, str)

_FLAGS = frozenset(
    (
        *("_forward_hooks_with_kwargs", "_forward_hooks_always_called"),
        "_forward_pre_hooks_with_kwargs",
    )
)
"""The dicts of a module that tell how some of its hooks are called."""

_HOOKS = frozenset(
    ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks", *_FLAGS)
)
"""The dicts of a module with its hooks, which may be functions of either process."""


def write(encoder: "Encoder", value: Any, depth: int) -> "Node":
    """Return the node of anything of torch's."""
    torch = sys.modules["torch"]
    if isinstance(value, torch.Tensor):
        return _write_tensor(encoder, value, depth)
    if isinstance(value, torch.dtype):
        return ["torch.dtype", str(value).removeprefix("torch.")]
    if isinstance(value, torch.nn.Module) and _is_of_torch(value):
        return _write_module(encoder, value, depth)
    node = optimizers.write(encoder, value, depth)
    if node is not None:
        return node
    kinds = torch.nn.Module, torch.optim.Optimizer, torch.optim.lr_scheduler.LRScheduler
    if isinstance(value, kinds) and encoder.has(value):
        raise encoder.unsendable(
            f"an answer may change the numbers, settings and hooks of a test's "
            f"{type(value).__name__}, and put torch's own modules into it; it has put something "
            "else there, which cannot go back to the test: return a new one instead"
        )
    return encoder.export(value)


# --- tensors ----------------------------------------------------------------------------------


def _write_tensor(encoder: "Encoder", value: Any, depth: int) -> "Node":
    torch = sys.modules["torch"]
    dtype = str(value.dtype).removeprefix("torch.")
    if value.layout is not torch.strided or dtype not in DTYPES:
        return encoder.export(value)
    plain = value.detach().cpu().resolve_conj().resolve_neg().contiguous()
    encoder.check_shape(plain.shape)
    encoder.note(value)
    encoder.passed.add(value)
    data = plain.reshape(-1).view(torch.uint8).numpy().tobytes() if plain.numel() else b""
    encoder.attach(data)
    parameter = type(value) is torch.nn.Parameter
    grad = value.grad if value.is_leaf and value.requires_grad else None
    node = ["tensor", dtype, list(plain.shape), bool(value.requires_grad), parameter]
    node.append(None if grad is None else _write_tensor_plainly(encoder, grad, depth + 1))
    if encoder.lends and value.requires_grad and not value.is_leaf:
        return ["graph", encoder.graph(value), node]
    return node


def _write_tensor_plainly(encoder: "Encoder", value: Any, depth: int) -> "Node":
    """Return the node of a gradient, which has no number of its own."""
    torch = sys.modules["torch"]
    plain = value.detach().cpu().contiguous()
    encoder.attach(plain.reshape(-1).view(torch.uint8).numpy().tobytes() if plain.numel() else b"")
    return [str(plain.dtype).removeprefix("torch."), list(plain.shape)]


def _torch() -> Any:
    try:
        import torch
    except ImportError:
        raise ValueError("torch is not installed here") from None
    return torch


def _dtype(name: Any) -> Any:
    if type(name) is not str or name not in DTYPES:
        raise ValueError("expected the dtype of a tensor")
    return getattr(_torch(), name)


def _numbers(decoder: "Decoder", name: Any, lengths: Any) -> Any:
    dtype, shape, torch = _dtype(name), decoder.shape(lengths), _torch()
    data = decoder.part(math.prod(shape) * dtype.itemsize)
    if name == "bool" and data and max(data) > 1:
        raise ValueError("expected truth values of 0 and 1")
    value = torch.frombuffer(bytearray(data), dtype=dtype) if data else torch.empty(0, dtype=dtype)
    return value.reshape(shape).clone()


def _read_tensor(decoder: "Decoder", node: list[Any], depth: int) -> Any:
    _, name, lengths, graded, parameter, grad = node
    if type(graded) is not bool or type(parameter) is not bool:
        raise ValueError("expected whether a tensor has a gradient, and is a parameter")
    dtype, torch = _dtype(name), _torch()
    if graded and not (dtype.is_floating_point or dtype.is_complex):
        raise ValueError(f"expected no gradient of a tensor of {name}")
    value = _numbers(decoder, name, lengths).requires_grad_(graded)
    if parameter:
        value = torch.nn.Parameter(value.detach(), requires_grad=graded)
    if grad is not None:
        if not graded or type(grad) is not list or len(grad) != 2 or grad != [name, lengths]:
            raise ValueError("expected a gradient of the shape of its tensor")
        value.grad = _numbers(decoder, *grad)
    decoder.passed.add(value)
    return decoder.note(value)


def _read_dtype(decoder: "Decoder", node: list[Any], depth: int) -> Any:
    _, name = node
    return _dtype(name)


def _read_graph(decoder: "Decoder", node: list[Any], depth: int) -> Any:
    _, handle, inner = node
    if type(inner) is not list or inner[:1] != ["tensor"]:
        raise ValueError("expected a tensor that was computed")
    index = len(decoder.numbered)
    value = _read_tensor(decoder, inner, depth)
    if not value.requires_grad:
        raise ValueError("expected a tensor with a gradient")
    decoder.numbered[index] = tensor = decoder.computed(value.detach(), handle)
    return tensor


def tensor_state(value: Any) -> list[Any] | None:
    """Return what a tensor is, and the bytes that it and its gradient hold; None for what is none.

    Nor for a tensor that NumPy cannot read. The count of changes that torch keeps would be shorter
    still, but ``p.data.add_(1)`` does not count.
    """
    torch = sys.modules.get("torch")
    if torch is None or type(value) not in (torch.Tensor, torch.nn.Parameter):
        return None
    grad = value.grad if value.is_leaf and value.requires_grad else None
    try:
        parts = [each.detach().numpy().tobytes() for each in (value, grad) if each is not None]
    except (RuntimeError, TypeError):
        return None
    return [type(value), value.dtype, value.shape, value.requires_grad, parts]


def shares_memory(value: Any) -> bool:
    """Return whether a tensor has its numbers in common with another, such as ``p.detach()``."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(value, torch.Tensor):
        return False
    users = getattr(torch._C, "_storage_Use_Count", None)
    if users is None:  # nobody tells: then it may
        return True
    lonely = torch.empty(1)
    alone, storage = lonely.untyped_storage(), value.untyped_storage()
    return bool(users(storage._cdata) > users(alone._cdata))


def restored(target: Any, fresh: Any) -> Callable[[], None]:
    """Return an action that gives a tensor the numbers and the gradient of another one."""
    fits = target.dtype == fresh.dtype
    if target.is_leaf:  # ``module.double()`` gives its parameters another dtype in place
        fits |= target.is_floating_point() and fresh.is_floating_point()
    if target.shape != fresh.shape or not fits:
        raise ValueError("expected a tensor of the same shape and dtype")

    def act() -> None:
        if target.dtype != fresh.dtype:
            target.grad, target.data = None, fresh.detach().clone()
        # not as an operation: a graph that has kept the tensor would find it changed
        target.data.copy_(fresh.detach())
        if target.is_leaf:
            target.requires_grad_(fresh.requires_grad)
            target.grad = None if fresh.grad is None else fresh.grad.clone()

    return act


# --- networks of torch's own modules -----------------------------------------------------------


def _is_of_torch(module: Any) -> bool:
    """Return whether a network is made of torch's own modules."""
    return all(_is_plain(submodule) for submodule in module.modules())


def _is_plain(module: Any) -> bool:
    kind = type(module)
    if _module_class(kind.__name__) is not kind:
        return False
    return all(
        isinstance(value, _PLAIN)
        or (type(value) in (tuple, list) and all(isinstance(item, _PLAIN) for item in value))
        or name in _HOOKS
        or ("_hooks" in name and not value)
        for name, value in vars(module).items()
        if name not in _KEPT_APART
    )


@lru_cache(maxsize=1000)
def _module_class(name: str) -> Any:
    """Return one of torch's own kinds of modules."""
    torch = sys.modules["torch"]
    kind: Any = getattr(torch.nn, name, None)
    of_torch = isinstance(kind, type) and kind.__module__.startswith("torch.nn.modules.")
    return kind if of_torch and issubclass(kind, torch.nn.Module) else None


def module_items(value: Any) -> tuple[Any, ...] | None:
    """Return all that a module holds directly; None for what is none."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(value, torch.nn.Module):
        return None
    items: list[Any] = []
    for name, held in vars(value).items():
        items.append(name)
        if name == "_non_persistent_buffers_set":  # it does not travel
            continue
        if type(held) in (dict, OrderedDict):  # the same, whatever is put into it
            items += held
            items += held.values()
        else:
            items.append(held)
    return tuple(items)


def _write_module(encoder: "Encoder", value: Any, depth: int) -> "Node":
    encoder.note(value)
    held = vars(value)
    parts = [held[name] for name in _PARTS]
    node = ["module", type(value).__name__, *encoder.each((_settings(value), *parts), depth)]
    hooks = [
        [name, key, _write_hook(encoder, value, name, key, depth)] for name, key in _keys(held)
    ]
    return [*node, hooks] if hooks else node


def _keys(held: dict[str, Any]) -> list[tuple[str, int]]:
    """Return where a module has hooks."""
    return [(name, key) for name in sorted(_HOOKS) for key in held[name]]


def _write_hook(encoder: "Encoder", module: Any, name: str, key: int, depth: int) -> "Node":
    hooks = vars(module)[name]
    if encoder.lends and name not in _FLAGS and not hasattr(hooks[key], "_gradebox"):
        hooks[key] = _hook_with_module(module, hooks[key])
    return encoder.encode(hooks[key], depth + 1)


def _hook_with_module(module: Any, function: Any) -> Any:
    """Return a hook that keeps its module, as long as the other process has the hook.

    In one process the module would stay with the tests, and a handle of the hook only refers to it.
    """

    def hook(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    hook._gradebox = None  # type: ignore[attr-defined]
    hook.module = module  # type: ignore[attr-defined]
    return hook


def _settings(module: Any) -> dict[str, Any]:
    kinds = (*_PLAIN, tuple, list)
    return {
        name: value
        for name, value in vars(module).items()
        if name not in _KEPT_APART and isinstance(value, kinds)
    }


def _read_module(decoder: "Decoder", node: list[Any], depth: int) -> Any:
    torch = _torch()
    _, name, *nodes = node
    kind = _module_class(name) if type(name) is str else None
    hooks = nodes.pop() if len(nodes) == 2 + len(_PARTS) else []
    if kind is None or len(nodes) != 1 + len(_PARTS):
        raise ValueError("expected one of torch's own kinds of modules, and its parts")
    module = kind.__new__(kind)
    torch.nn.Module.__init__(module)
    decoder.note(module)
    settings, parameters, buffers, modules = decoder.each(nodes, depth)
    empty = vars(torch.nn.Module())
    for part, expected in (
        (parameters, torch.nn.Parameter),
        (buffers, torch.Tensor),
        (modules, torch.nn.Module),
        (settings, (*_PLAIN, tuple, list)),
    ):
        if not isinstance(part, dict) or not all(
            type(key) is str and (value is None or isinstance(value, expected))
            for key, value in part.items()
        ):
            raise ValueError("expected the parts of a module")
    for key, value in settings.items():
        fits = type(value) in (type(empty[key]), *_MORE.get(key, ())) if key in empty else True
        fits = fits and key.isidentifier()
        items = value if isinstance(value, tuple | list) else ()
        if not fits or key.startswith("__") or not all(isinstance(item, _PLAIN) for item in items):
            raise ValueError("expected the settings of a module")
    vars(module).update(settings, **dict(zip(_PARTS, (parameters, buffers, modules), strict=True)))
    _read_hooks(decoder, module, hooks, depth)
    return module


_MORE = {"_is_full_backward_hook": (bool,)}
"""Settings that are of another type than in a new module, where there are hooks."""

_LAST_KEY = 2**62


def _read_hooks(decoder: "Decoder", module: Any, nodes: Any, depth: int) -> None:
    handles = _torch().utils.hooks.RemovableHandle
    if type(nodes) is not list:
        raise ValueError("expected the hooks of a module")
    for name, key, node in nodes:
        if type(name) is not str or name not in _HOOKS:
            raise ValueError("expected a known kind of hook")
        if type(key) is not int or not 0 <= key < _LAST_KEY:
            raise ValueError("expected the number of a hook")
        hook = decoder.decode(node, depth + 1)
        if not (hook is True if name in _FLAGS else callable(hook) and not isinstance(hook, type)):
            raise ValueError("expected a function that is a hook")
        vars(module)[name][key] = hook
        # both processes count; a hook that is registered here must not take the place of this one
        handles.next_id = max(handles.next_id, key + 1)


def module_restored(target: Any, fresh: Any) -> Callable[[], None]:
    """Return an action that gives a module the settings and the parts of another one."""
    if type(target) is not type(fresh):
        raise ValueError("expected a module of the same kind")

    def act() -> None:
        vars(target).update(_settings(fresh), **{name: vars(fresh)[name] for name in _PARTS})
        for name in _HOOKS:  # in place: the handles refer to the dicts
            vars(target)[name].clear()
            vars(target)[name].update(vars(fresh)[name])

    return act


READERS: dict[str, Callable[["Decoder", list[Any], int], Any]] = {
    "tensor": _read_tensor,
    "torch.dtype": _read_dtype,
    "graph": _read_graph,
    "module": _read_module,
}
