"""Pooling, and resizing by pooling."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812

import thunder_lang as lang
import thunder_prims as prims
from thunder_ir import TensorProxy
from thunder_torch.convolution import spread_to
from thunder_torch.symbol import torchsymbol
from thunder_torch.traits import Trait, state

state("interpolate", traits=(Trait.TAKES_INTEGERS, Trait.SYMBOLIC_PRODUCTS))
state("grid_sample", traits=(Trait.SYMBOLIC_PRODUCTS,))
state("fractional_max_pool2d", "fractional_max_pool2d_with_indices", traits=(Trait.DRAWS,))
state("fractional_max_pool3d", "fractional_max_pool3d_with_indices", traits=(Trait.DRAWS,))


def _stride_or(window: tuple[int, ...], stride: Any, count: int) -> tuple[int, ...]:
    empty = stride is None or (isinstance(stride, (tuple, list)) and not stride)
    return window if empty else spread_to(stride, count)


def _lifted(a: TensorProxy, count: int) -> tuple[TensorProxy, bool]:
    """Return ``a`` with a batch in front, and whether it had one."""
    batched = a.ndim == count + 2
    return (a if batched else lang.unsqueeze(a, 0)), batched


def _max_pool(
    a: TensorProxy, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool, count: int
) -> tuple[Any, Any]:
    window = spread_to(kernel_size, count)
    x, batched = _lifted(a, count)
    values, places = prims.max_pool(
        x, window, _stride_or(window, stride, count), spread_to(padding, count), spread_to(dilation, count), ceil_mode
    )
    return (values, places) if batched else (lang.squeeze(values, 0), lang.squeeze(places, 0))


def _define_max_pool(count: int, plain: Any, functional: Any, with_indices: Any) -> tuple[Any, Any, Any]:
    what = f"The largest element of each window over the last {count} dimensions"

    def pool(
        a: TensorProxy,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
    ) -> Any:
        return _max_pool(a, kernel_size, stride, padding, dilation, ceil_mode, count)[0]

    def functional_pool(
        a: TensorProxy,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        values, places = _max_pool(a, kernel_size, stride, padding, dilation, ceil_mode, count)
        return (values, places) if return_indices else values

    def indexed_pool(
        a: TensorProxy,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
        return_indices: bool = True,
    ) -> Any:
        return _max_pool(a, kernel_size, stride, padding, dilation, ceil_mode, count)

    pool.__doc__ = functional_pool.__doc__ = f"{what}."
    indexed_pool.__doc__ = f"{what}, and its place."
    return (
        torchsymbol(plain, name=f"torch_max_pool{count}d")(pool),
        torchsymbol(functional, name=f"max_pool{count}d")(functional_pool),
        torchsymbol(with_indices, name=f"max_pool{count}d_with_indices")(indexed_pool),
    )


torch_max_pool1d, max_pool1d, max_pool1d_with_indices = _define_max_pool(
    1, torch.max_pool1d, F.max_pool1d, F.max_pool1d_with_indices
)
torch_max_pool2d, max_pool2d, max_pool2d_with_indices = _define_max_pool(
    2, torch.max_pool2d, F.max_pool2d, F.max_pool2d_with_indices
)
torch_max_pool3d, max_pool3d, max_pool3d_with_indices = _define_max_pool(
    3, torch.max_pool3d, F.max_pool3d, F.max_pool3d_with_indices
)


def _define_avg_pools(count: int, plain: Any, adaptive: Any) -> tuple[Any, Any]:
    """Return the symbols of the means of windows over so many dimensions, of a size and of a number given."""

    def avg_pool(
        a: TensorProxy,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: Any = None,
    ) -> Any:
        window = spread_to(kernel_size, count)
        strides, padded = _stride_or(window, stride, count), spread_to(padding, count)
        x, batched = _lifted(a, count)
        y = prims.avg_pool(x, window, strides, padded, ceil_mode, count_include_pad, divisor_override)
        return y if batched else lang.squeeze(y, 0)

    def adaptive_avg_pool(a: TensorProxy, output_size: Any) -> Any:
        sizes = spread_to(output_size, count)
        lengths = tuple([n if s is None else s for s, n in zip(sizes, a.shape[-count:], strict=True)])
        if a.numel == 0:
            return NotImplemented
        x, batched = _lifted(a, count)
        y = prims.adaptive_avg_pool(x, lengths)
        return y if batched else lang.squeeze(y, 0)

    avg_pool.__doc__ = f"The mean of each window over the last {count} dimensions."
    adaptive_avg_pool.__doc__ = f"The means of windows that share out the last {count} dimensions."
    return (
        torchsymbol(plain, name=f"avg_pool{count}d")(avg_pool),
        torchsymbol(adaptive, name=f"adaptive_avg_pool{count}d")(adaptive_avg_pool),
    )


avg_pool1d, adaptive_avg_pool1d = _define_avg_pools(1, F.avg_pool1d, F.adaptive_avg_pool1d)
avg_pool2d, adaptive_avg_pool2d = _define_avg_pools(2, F.avg_pool2d, F.adaptive_avg_pool2d)
avg_pool3d, adaptive_avg_pool3d = _define_avg_pools(3, F.avg_pool3d, F.adaptive_avg_pool3d)


@torchsymbol(F.interpolate)
def interpolate(
    a: TensorProxy,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: Any = None,
    recompute_scale_factor: Any = None,
    antialias: bool = False,
) -> Any:
    """Resize the trailing dimensions; to the nearest element by repeating, otherwise by PyTorch."""
    whole = isinstance(scale_factor, (int, float)) and float(scale_factor).is_integer() and scale_factor >= 1
    if mode != "nearest" or size is not None or not whole:
        return NotImplemented
    for dim in range(2, a.ndim):
        a = lang.repeat_interleave(a, int(scale_factor), dim)
    return a


__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "avg_pool1d", "avg_pool2d", "avg_pool3d",
    "interpolate", "max_pool1d", "max_pool1d_with_indices", "max_pool2d", "max_pool2d_with_indices", "max_pool3d",
    "max_pool3d_with_indices", "torch_max_pool1d", "torch_max_pool2d", "torch_max_pool3d",
]  # fmt: skip
