"""``backward`` in a test, through what a student's code has computed.

The student's process keeps the graph of a result. In the checker the result is the output of an
operation whose inputs are the tensors that were sent for it; its ``backward`` asks the student's
process for their gradients, and so fills those of the student's own parameters there.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

# --- the student's process --------------------------------------------------------------------


def keep_inputs(result: Any, received: Sequence[Any]) -> None:
    """Note with a result from which of the tensors that came in it may have been computed."""
    result._gradebox_inputs = list(received)


def _go_back(namespace: Mapping[str, Any], result: Any, grad: Any) -> list[Any]:
    """Return the gradients of the inputs of a result; those of other tensors are filled."""
    inputs = result._gradebox_inputs
    before = [tensor.grad for tensor in inputs]
    for tensor in inputs:
        tensor.grad = None
    try:
        result.backward(grad, retain_graph=True)
        return [tensor.grad for tensor in inputs]
    finally:
        for tensor, old in zip(inputs, before, strict=True):
            tensor.grad = old


QUESTIONS: dict[str, Callable[..., Any]] = {"go back": _go_back}
"""The question that :class:`gradebox.line.lender.Lender` answers by this function."""

# --- the checker ------------------------------------------------------------------------------


def attached(value: Any, graph: Any, sent: Sequence[Any]) -> Any:
    """Return a tensor that comes from an operation on what was sent.

    Parameters
    ----------
    value : Tensor
        The numbers.
    graph : Proxy
        What stands for the result in the student's process.
    sent : sequence of Tensor
        What was sent for it, of tensors with gradients.
    """
    if not hasattr(graph, "_gradebox"):
        raise ValueError("expected a result in the other process")
    torch = sys.modules["torch"]
    mark = torch.zeros((), requires_grad=True)  # its own parameters may be all that it depends on
    return _operation().apply(graph, value, mark, *sent)


@lru_cache(maxsize=1)
def _operation() -> Any:
    torch = sys.modules["torch"]

    class StudentBackward(torch.autograd.Function):  # type: ignore[misc]
        """An operation of which the student's process knows the gradients."""

        @staticmethod
        def forward(ctx: Any, graph: Any, value: Any, mark: Any, *inputs: Any) -> Any:
            ctx.graph, ctx.shapes = graph, [(tensor.shape, tensor.dtype) for tensor in inputs]
            return value.clone()

        @staticmethod
        @torch.autograd.function.once_differentiable  # type: ignore[untyped-decorator]
        def backward(ctx: Any, grad: Any) -> Any:
            gradients = ctx.graph._gradebox.peer.ask("go back", (ctx.graph, grad))
            if type(gradients) is not list or len(gradients) != len(ctx.shapes):
                raise ValueError("expected a gradient for each tensor that was sent")
            for gradient, expected in zip(gradients, ctx.shapes, strict=True):
                if gradient is None:
                    continue
                is_tensor = isinstance(gradient, torch.Tensor)
                if not is_tensor or (gradient.shape, gradient.dtype) != expected:
                    raise ValueError("expected a gradient of the shape of its tensor")
            return None, None, None, *gradients

    return StudentBackward
