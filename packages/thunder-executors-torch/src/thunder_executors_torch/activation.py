"""Derivatives of activations by PyTorch's kernels: one call each way, and one tensor saved."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

import thunder_prims as prims
from thunder_executors_torch.executor import executor
from thunder_executors_torch.normalization import floating
from thunder_ir import DType, OpTags, Symbol, TensorProxy
from thunder_torch import from_torch_dtype, to_torch_dtype

functional = torch.nn.functional
Rule = tuple[Any, Any]


def _like_first(a: TensorProxy, *rest: Any, **kwargs: Any) -> TensorProxy:
    return a.like()


def _forward(path: str, *tags: OpTags) -> Symbol:
    """Return the operator of an activation; the ``ELEMENTWISE`` ones are as cheap to compute again as to read."""
    return executor.call(path, _like_first, *tags)


def _backward(name: str, differentiable: Callable[..., Any] | None = None) -> Symbol:
    path = f"torch.ops.aten.{name}.default"
    return executor.call(path, _like_first, OpTags.ELEMENTWISE, differentiable=differentiable)


def silu_gradient(dy: torch.Tensor, a: torch.Tensor) -> torch.Tensor:
    """``dy * s * (1 + a * (1 - s))`` with ``s = sigmoid(a)``."""
    s = torch.sigmoid(a)
    return dy * s * (1 + a * (1 - s))


def mish_gradient(dy: torch.Tensor, a: torch.Tensor) -> torch.Tensor:
    """``dy * (t + a * s * (1 - t * t))`` with ``t = tanh(softplus(a))`` and ``s = sigmoid(a)``."""
    t = torch.tanh(functional.softplus(a))
    return dy * (t + a * torch.sigmoid(a) * (1 - t * t))


def of_input(forward: Symbol, backward: Symbol) -> Callable[..., Rule]:
    """Return the rule of a function without parameters whose kernel reads the input."""

    def rule(input: TensorProxy, inplace: bool = False) -> Rule:
        return forward(input), lambda dy: backward(dy, input)

    return rule


executor.differentiates_torch(functional.silu, when=floating)(
    of_input(_forward("torch._C._nn.silu"), _backward("silu_backward", silu_gradient))
)
executor.differentiates_torch(functional.mish, when=floating)(
    of_input(_forward("torch._C._nn.mish"), _backward("mish_backward", mish_gradient))
)
executor.differentiates_torch(functional.hardswish, when=floating)(
    of_input(_forward("torch._C._nn.hardswish", OpTags.ELEMENTWISE), _backward("hardswish_backward"))
)
executor.differentiates_torch(functional.hardsigmoid, when=floating)(
    of_input(_forward("torch._C._nn.hardsigmoid", OpTags.ELEMENTWISE), _backward("hardsigmoid_backward"))
)

_relu = _forward("torch.relu", OpTags.ELEMENTWISE)
_threshold_backward = _backward("threshold_backward")


@executor.differentiates_torch(functional.relu, torch.relu, when=floating)
def relu(input: TensorProxy, inplace: bool = False) -> Rule:
    """Save the output."""
    y = _relu(input)
    return y, lambda dy: _threshold_backward(dy, y, 0)


_gelu = _forward("torch._C._nn.gelu")
_gelu_backward = _backward("gelu_backward")


@executor.differentiates_torch(functional.gelu, when=floating)
def gelu(input: TensorProxy, approximate: str = "none") -> Rule:
    """Save the input."""
    return _gelu(input, approximate=approximate), lambda dy: _gelu_backward(dy, input, approximate=approximate)


_leaky_relu = _forward("torch._C._nn.leaky_relu", OpTags.ELEMENTWISE)
_leaky_relu_backward = _backward("leaky_relu_backward")


@executor.differentiates_torch(functional.leaky_relu, when=floating)
def leaky_relu(input: TensorProxy, negative_slope: float = 0.01, inplace: bool = False) -> Rule:
    """Save the input."""
    return _leaky_relu(input, negative_slope), lambda dy: _leaky_relu_backward(dy, input, negative_slope, False)


_elu = _forward("torch._C._nn.elu")


def _elu_backward_meta(dy: TensorProxy, *rest: Any) -> TensorProxy:
    return dy.like()


_elu_backward = executor.call("torch.ops.aten.elu_backward.default", _elu_backward_meta)


def _of_elu(input: TensorProxy, alpha: float, scale: float, input_scale: float) -> Rule:
    y = _elu(input, alpha, scale, input_scale)
    return y, lambda dy: _elu_backward(dy, alpha, scale, input_scale, False, input)


@executor.differentiates_torch(functional.elu, when=floating)
def elu(input: TensorProxy, alpha: float = 1.0, inplace: bool = False) -> Rule:
    """Save the input."""
    return _of_elu(input, alpha, 1.0, 1.0)


SELU = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946, 1.0


@executor.differentiates_torch(functional.selu, torch.selu, when=floating)
def selu(input: TensorProxy, inplace: bool = False) -> Rule:
    """Save the input."""
    return _of_elu(input, *SELU)


@executor.differentiates_torch(functional.celu, torch.celu, when=floating)
def celu(input: TensorProxy, alpha: float = 1.0, inplace: bool = False) -> Rule:
    """Save the input."""
    return _of_elu(input, alpha, 1.0, 1.0 / alpha)


_softplus = _forward("torch._C._nn.softplus")
_softplus_backward = _backward("softplus_backward")


@executor.differentiates_torch(functional.softplus, when=floating)
def softplus(input: TensorProxy, beta: float = 1.0, threshold: float = 20.0) -> Rule:
    """Save the input."""
    return _softplus(input, beta, threshold), lambda dy: _softplus_backward(dy, input, beta, threshold)


_hardtanh = _forward("torch._C._nn.hardtanh", OpTags.ELEMENTWISE)
_hardtanh_backward = _backward("hardtanh_backward")


@executor.differentiates_torch(functional.hardtanh, when=floating)
def hardtanh(input: TensorProxy, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Rule:
    """Save the input."""
    return _hardtanh(input, min_val, max_val), lambda dy: _hardtanh_backward(dy, input, min_val, max_val)


@executor.differentiates_torch(functional.relu6, when=floating)
def relu6(input: TensorProxy, inplace: bool = False) -> Rule:
    """Save the input."""
    return hardtanh(input, 0.0, 6.0)


def _glu_meta(a: TensorProxy, dim: int = -1) -> TensorProxy:
    shape = list(a.shape)
    shape[dim] = shape[dim] // 2
    return a.like(shape=tuple(shape))


def _glu_backward_meta(dy: TensorProxy, a: TensorProxy, dim: int) -> TensorProxy:
    return a.like()


_glu = executor.call("torch._C._nn.glu", _glu_meta)
_glu_backward = executor.call("torch.ops.aten.glu_backward.default", _glu_backward_meta)


def even(a: Any, dim: int = -1) -> bool:
    """Whether ``glu`` can halve the dimension."""
    return floating(a) and -a.ndim <= dim < a.ndim and isinstance(a.shape[dim], int) and a.shape[dim] % 2 == 0


@executor.differentiates_torch(functional.glu, when=even)
def glu(input: TensorProxy, dim: int = -1) -> Rule:
    """Save the input."""
    return _glu(input, dim), lambda dy: _glu_backward(dy, input, dim)


def _softmax_meta(a: TensorProxy, dim: int, dtype: Any = None) -> TensorProxy:
    return a.like(dtype=a.dtype if dtype is None else from_torch_dtype(dtype))


_softmax = executor.call("torch.softmax", _softmax_meta)
_log_softmax = executor.call("torch.log_softmax", _softmax_meta)
_softmax_backward = executor.call("torch._softmax_backward_data", _like_first)
_log_softmax_backward = executor.call("torch._log_softmax_backward_data", _like_first)


def _dtype_of(a: TensorProxy, dtype: Any) -> DType:
    return a.dtype if dtype is None else from_torch_dtype(dtype)


def _normalised(forward: Symbol, backward: Symbol, a: TensorProxy, dim: int, dtype: Any) -> Rule:
    """Return the rule of both softmaxes: save the output; the gradient is converted back to the input's dtype."""
    wanted = _dtype_of(a, dtype)
    y = forward(a, dim) if wanted is a.dtype else forward(a, dim, to_torch_dtype(wanted))

    def pullback(dy: TensorProxy) -> TensorProxy:
        da = backward(dy, y, dim, to_torch_dtype(wanted))
        return da if wanted is a.dtype else prims.convert_element_type(da, a.dtype)

    return y, pullback


def softmax_of_floats(input: Any, dim: Any = None, *rest: Any, **kwargs: Any) -> bool:
    """Whether the input is floating-point and stays so, and the dimension is given."""
    dtype = kwargs.get("dtype", rest[-1] if rest else None)
    return isinstance(dim, int) and floating(input) and _dtype_of(input, dtype).is_floating


@executor.differentiates_torch(torch.softmax, torch.Tensor.softmax, torch.special.softmax, when=softmax_of_floats)
def softmax(input: TensorProxy, dim: int, dtype: Any = None) -> Rule:
    """Save the output."""
    return _normalised(_softmax, _softmax_backward, input, dim, dtype)


@executor.differentiates_torch(functional.softmax, when=softmax_of_floats)
def functional_softmax(input: TensorProxy, dim: int, _stacklevel: int = 3, dtype: Any = None) -> Rule:
    """As :func:`softmax`."""
    return softmax(input, dim, dtype)


@executor.differentiates_torch(
    torch.log_softmax, torch.Tensor.log_softmax, torch.special.log_softmax, when=softmax_of_floats
)
def log_softmax(input: TensorProxy, dim: int, dtype: Any = None) -> Rule:
    """Save the output."""
    return _normalised(_log_softmax, _log_softmax_backward, input, dim, dtype)


@executor.differentiates_torch(functional.log_softmax, when=softmax_of_floats)
def functional_log_softmax(input: TensorProxy, dim: int, _stacklevel: int = 3, dtype: Any = None) -> Rule:
    """As :func:`log_softmax`."""
    return log_softmax(input, dim, dtype)
