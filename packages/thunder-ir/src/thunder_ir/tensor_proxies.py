"""The proxy of tensors, whose operators mean what the active language says."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Self

from thunder_ir import devices, dtypes
from thunder_ir.builder import active_method, find_builder
from thunder_ir.devices import Device
from thunder_ir.dtypes import DType
from thunder_ir.number_proxies import Dimension
from thunder_ir.proxies import Proxy


def _operator(name: str) -> Callable[..., TensorProxy]:
    def apply(self: TensorProxy, *args: Any) -> TensorProxy:
        result: TensorProxy = active_method(name)(self, *args)
        return result

    return apply


def _reflected(name: str) -> Callable[..., TensorProxy]:
    def apply(self: TensorProxy, other: Any) -> TensorProxy:
        result: TensorProxy = active_method(name)(other, self)
        return result

    return apply


class TensorProxy(Proxy):
    """Stands for a tensor: its metadata and no data. Operators and methods mean what the active language says.

    Args:
        shape: dimensions, ``int`` or :class:`IntegerProxy` each.
        dtype: element type.
        device: where it lives.
        requires_grad: whether derivatives with respect to it, or through it, are wanted.
        strides: in elements, where known.
        base: the tensor of which it is a view, where known.
        steps: how it is obtained from ``base``: bound symbols, in order.
        like: another tensor, which tells shape, dtype, device and ``requires_grad`` where these are not given.

    Example:
        >>> from thunder_ir import TensorProxy, dtypes
        >>> x = TensorProxy(shape=(2, 3), dtype=dtypes.int64)
        >>> TensorProxy(like=x, shape=(4,)).type_string
        'int64[4]'
    """

    __slots__ = ("base", "device", "dtype", "requires_grad", "shape", "steps", "strides")
    prefix = "t"
    shape: tuple[Dimension, ...]
    dtype: DType
    device: Device
    requires_grad: bool

    def __init__(
        self,
        shape: tuple[Dimension, ...] | None = None,
        dtype: DType | None = None,
        device: Device | None = None,
        requires_grad: bool | None = None,
        strides: tuple[Dimension, ...] | None = None,
        base: TensorProxy | None = None,
        steps: tuple[Any, ...] = (),
        name: str = "",
        *,
        like: TensorProxy | None = None,
    ) -> None:
        if like is not None:
            other = like.like(shape=shape, dtype=dtype, device=device, requires_grad=requires_grad)
            shape, dtype, device, requires_grad = other.shape, other.dtype, other.device, other.requires_grad
        elif shape is None:
            raise TypeError("a tensor proxy needs a shape, or another tensor that it is like")
        self.name = name
        self.shape = shape
        self.dtype = dtypes.float32 if dtype is None else dtype
        self.device = devices.cpu if device is None else device
        self.requires_grad = bool(requires_grad)
        self.strides = strides
        self.base = base
        self.steps = steps

    def like(
        self,
        *,
        shape: tuple[Dimension, ...] | None = None,
        dtype: DType | None = None,
        device: Device | None = None,
        requires_grad: bool | None = None,
    ) -> TensorProxy:
        """Return a new unnamed proxy with this one's metadata, but for those given."""
        if dtype is None:
            dtype = self.dtype
        if requires_grad is None:
            requires_grad = self.requires_grad and dtype.is_inexact
        return TensorProxy(
            self.shape if shape is None else shape, dtype, self.device if device is None else device, requires_grad
        )

    def renamed(self, name: str) -> Self:
        cls = self.__class__
        if cls is not TensorProxy:
            return super().renamed(name)
        return cls(self.shape, self.dtype, self.device, self.requires_grad, self.strides, self.base, self.steps, name)

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def numel(self) -> Any:
        """Number of elements; in a language that has a method of this name instead, the method."""
        builder = find_builder()
        if builder is not None and builder.language is not None and "numel" in builder.language.instead:
            return partial(builder.language.resolve("numel"), self)
        count: Any = 1
        for dimension in self.shape:
            count = count * dimension
        return count

    @property
    def type_string(self) -> str:
        """Dtype and shape, ``"float32[2, 3]"``, with the device in front where it is not the CPU."""
        for d in self.shape:
            if d.__class__ is not int:
                dims = ", ".join([(d.name or "?") if isinstance(d, Proxy) else str(d) for d in self.shape])
                text = f"{self.dtype.name}[{dims}]"
                break
        else:
            text = f"{self.dtype.name}{list(self.shape)}"
        return text if self.device is devices.cpu or self.device == devices.cpu else f"{self.device} {text}"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        builder = find_builder()
        if builder is None or builder.language is None:
            raise AttributeError(f"{self!r} has no attribute {name!r} outside of a recorded program")
        method = builder.language.resolve(name)
        return method(self) if builder.language.is_attribute(name) else partial(method, self)

    def __len__(self) -> Any:
        return active_method("len")(self)

    def __iter__(self) -> Any:
        return iter(active_method("unbind")(self))

    def __bool__(self) -> bool:
        return bool(active_method("bool")(self))

    def __hash__(self) -> int:
        return id(self) >> 4

    __getitem__ = _operator("getitem")
    __add__ = _operator("add")
    __radd__ = _reflected("add")
    __sub__ = _operator("sub")
    __rsub__ = _reflected("sub")
    __mul__ = _operator("mul")
    __rmul__ = _reflected("mul")
    __truediv__ = _operator("true_divide")
    __rtruediv__ = _reflected("true_divide")
    __floordiv__ = _operator("floor_divide")
    __rfloordiv__ = _reflected("floor_divide")
    __mod__ = _operator("remainder")
    __rmod__ = _reflected("remainder")
    __pow__ = _operator("pow")
    __rpow__ = _reflected("pow")
    __matmul__ = _operator("matmul")
    __rmatmul__ = _reflected("matmul")
    __and__ = _operator("bitwise_and")
    __rand__ = _reflected("bitwise_and")
    __or__ = _operator("bitwise_or")
    __ror__ = _reflected("bitwise_or")
    __xor__ = _operator("bitwise_xor")
    __rxor__ = _reflected("bitwise_xor")
    __lshift__ = _operator("bitwise_left_shift")
    __rlshift__ = _reflected("bitwise_left_shift")
    __rshift__ = _operator("bitwise_right_shift")
    __rrshift__ = _reflected("bitwise_right_shift")
    __invert__ = _operator("bitwise_not")
    __neg__ = _operator("neg")
    __pos__ = _operator("positive")
    __abs__ = _operator("abs")
    __eq__ = _operator("eq")  # type: ignore[assignment]
    __ne__ = _operator("ne")  # type: ignore[assignment]
    __lt__ = _operator("lt")
    __le__ = _operator("le")
    __gt__ = _operator("gt")
    __ge__ = _operator("ge")


def Tensor(  # noqa: N802  (reads as the type of an example)
    shape: tuple[Dimension, ...],
    dtype: str | DType = "float32",
    device: str | Device = "cpu",
    requires_grad: bool = False,
) -> TensorProxy:
    """Describe a tensor to :func:`thunder_ir.trace_of`.

    Example:
        >>> from thunder_ir import Tensor
        >>> Tensor((2, 3), "float64")
        <TensorProxy ?: float64[2, 3]>
    """
    return TensorProxy(tuple(shape), dtypes.dtype(dtype), devices.device(device), requires_grad)
