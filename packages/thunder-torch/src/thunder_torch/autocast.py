"""Autocast, applied to each call while a program is traced, by PyTorch's lists.

The lists are those of PyTorch's documentation ("CUDA Ops that can autocast", "CPU Ops that can autocast"), by the bare
name of the operation. What is on no list runs in the dtypes of its arguments, with the ones inside it cast if it is
made of operations that are listed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from thunder_ir import DType, Symbol, TensorProxy, dtypes
from thunder_lang import einsum_contracts
from thunder_torch.convert import from_torch_dtype
from thunder_torch.names import last_name
from thunder_torch.specs import map_tensors, tensors_of
from thunder_torch.uncast import casting

LOWER = {
    "cuda": frozenset({
        "__matmul__", "__rmatmul__", "addbmm", "addmm", "addmv", "addr", "baddbmm", "bmm", "chain_matmul", "conv1d",
        "conv2d", "conv3d", "conv_tbc", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "convolution",
        "einsum", "gru_cell", "linalg_multi_dot", "linalg_vecdot", "linear", "lstm_cell", "matmul", "mm", "multi_dot",
        "mv", "prelu", "rnn_relu_cell", "rnn_tanh_cell", "scaled_dot_product_attention", "vecdot",
    }),
    "cpu": frozenset({
        "__matmul__", "__rmatmul__", "addbmm", "addmm", "baddbmm", "bmm", "conv1d", "conv2d", "conv3d", "conv_tbc",
        "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "convolution", "einsum",
        "linalg_multi_dot", "linalg_vecdot", "linear", "matmul", "mkldnn_rnn_layer", "mm", "multi_dot",
        "prelu", "rnn_relu_cell", "rnn_tanh_cell", "scaled_dot_product_attention", "vecdot",
        "_native_multi_head_attention",
    }),
}  # fmt: skip
"""Cast to the lower precision that autocast is set to."""

FLOAT32 = {
    "cuda": frozenset({
        "__pow__", "__rdiv__", "__rpow__", "__rtruediv__", "acos", "asin", "binary_cross_entropy_with_logits", "cdist",
        "cosh", "cosine_embedding_loss", "cosine_similarity", "cumprod", "cumsum", "dist", "erfinv", "exp", "expm1",
        "group_norm", "hinge_embedding_loss", "kl_div", "l1_loss", "layer_norm", "log", "log10", "log1p", "log2",
        "log_softmax", "logsumexp", "margin_ranking_loss", "mse_loss", "multi_margin_loss", "multilabel_margin_loss",
        "nll_loss", "norm", "normalize", "pdist", "poisson_nll_loss", "pow", "prod", "reciprocal", "renorm", "rsqrt",
        "sinh", "smooth_l1_loss", "soft_margin_loss", "softmax", "softmin", "softplus", "sum", "tan",
        "triplet_margin_loss", "cross_entropy", "native_layer_norm", "frobenius_norm", "nuclear_norm", "huber_loss",
    }),
    "cpu": frozenset({
        "avg_pool3d", "binary_cross_entropy", "grid_sampler", "grid_sample", "grid_sampler_2d", "grid_sampler_3d",
        "polar", "prod", "quantile", "nanquantile", "stft", "cdist", "trace", "view_as_complex", "cholesky",
        "cholesky_inverse", "cholesky_solve", "inverse", "lu_solve", "orgqr", "ormqr", "pinverse", "max_pool3d",
        "max_unpool2d", "max_unpool3d", "adaptive_avg_pool3d", "reflection_pad1d", "reflection_pad2d",
        "replication_pad1d", "replication_pad2d", "replication_pad3d", "mse_loss", "cosine_embedding_loss", "nll_loss",
        "nll_loss2d", "hinge_embedding_loss", "poisson_nll_loss", "smooth_l1_loss", "cross_entropy_loss",
        "cross_entropy", "l1_loss", "huber_loss", "margin_ranking_loss", "soft_margin_loss", "triplet_margin_loss",
        "multi_margin_loss", "ctc_loss", "kl_div", "multilabel_margin_loss", "binary_cross_entropy_with_logits", "fft",
        "ifft", "fft2", "ifft2", "fftn", "ifftn", "rfft", "irfft", "rfft2", "irfft2", "rfftn", "irfftn", "hfft",
        "ihfft", "linalg_cond", "cond", "linalg_matrix_rank", "matrix_rank", "solve", "linalg_solve",
        "linalg_cholesky", "linalg_svdvals", "svdvals", "linalg_eigvals", "eigvals", "linalg_eigvalsh", "eigvalsh",
        "linalg_inv", "inv", "householder_product", "linalg_householder_product", "tensorinv", "linalg_tensorinv",
        "tensorsolve", "linalg_tensorsolve", "fake_quantize_per_tensor_affine", "geqrf", "_lu_with_info", "qr",
        "linalg_qr", "svd", "linalg_svd", "triangular_solve", "fractional_max_pool2d", "fractional_max_pool3d",
        "adaptive_max_pool3d", "multilabel_margin_loss_forward", "linalg_cholesky_ex", "linalg_inv_ex", "linalg_eig",
        "eig", "eigh", "linalg_eigh", "lstsq", "linalg_lstsq", "cholesky_ex", "inv_ex",
    }),
}  # fmt: skip
"""Cast to float32."""

OUTPUT_FLOAT32 = frozenset({"cumprod", "cumsum", "log_softmax", "prod", "softmax", "sum"})
"""Of CUDA's: those that take ``dtype=`` instead of casting their argument."""

WIDEST = {
    "cuda": frozenset({
        "addcdiv", "addcmul", "atan2", "bilinear", "cat", "concat", "concatenate", "cross", "dot", "grid_sample",
        "grid_sampler", "index_put", "scatter_add", "stack", "tensordot", "vdot",
    }),
    "cpu": frozenset({"cat", "concat", "concatenate", "index_copy", "stack"}),
}  # fmt: skip
"""Cast to the widest dtype among the arguments."""

BANNED = {"cuda": frozenset({"binary_cross_entropy"}), "cpu": frozenset[str]()}


@dataclass(frozen=True)
class AutocastState:
    """What autocast is set to for one kind of device.

    Args:
        device_type: ``"cpu"`` or ``"cuda"``.
        dtype: the lower precision.
    """

    device_type: str
    dtype: DType

    @classmethod
    def current(cls) -> tuple[AutocastState, ...]:
        """Return the states of the device types for which PyTorch's autocast is on now."""
        return tuple([cls(kind, from_torch_dtype(torch.get_autocast_dtype(kind))) for kind in casting()])

    def casts(self, tensor: Any) -> bool:
        """Whether autocast may cast this argument: a floating-point tensor of its device, no float64."""
        if not isinstance(tensor, TensorProxy):
            return False
        return (
            tensor.dtype.is_floating and tensor.dtype is not dtypes.float64 and tensor.device.type == self.device_type
        )


def cast_arguments(
    what: Symbol | Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    state: AutocastState,
    convert: Callable[[TensorProxy, DType], TensorProxy],
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of a call as autocast would pass them on.

    Args:
        what: a symbol or PyTorch's callable.
        args, kwargs: of the call.
        state: for the device of the call.
        convert: records the conversion of a tensor.

    Raises:
        RuntimeError: the operation refuses to run under autocast.
    """
    function = what.origin if isinstance(what, Symbol) and what.origin is not None else what
    name = last_name(function)
    kind = state.device_type
    if name in BANNED[kind]:
        raise RuntimeError(
            f"torch.nn.functional.{name} is unsafe to autocast; use binary_cross_entropy_with_logits, which is not"
        )
    if name == "einsum" and not _contracts(*args, **kwargs):
        return args, kwargs
    if name in LOWER[kind]:
        return _cast_all(state.dtype, args, kwargs, state, convert)
    if name in FLOAT32[kind]:
        if kind == "cuda" and name in OUTPUT_FLOAT32:
            return _with_dtype(args, kwargs, state)
        return _cast_all(dtypes.float32, args, kwargs, state, convert)
    if name in WIDEST[kind]:
        found = [t.dtype for t in tensors_of(args, kwargs) if state.casts(t)]
        if len(set(found)) > 1:
            widest = found[0]
            for dtype in found[1:]:
                widest = dtypes.join(widest, dtype)
            return _cast_all(widest, args, kwargs, state, convert)
    return args, kwargs


def _contracts(equation: Any, *operands: Any) -> bool:
    """Whether ``torch.einsum`` calls ``bmm``, which is what autocast casts the arguments of."""
    return not isinstance(equation, str) or einsum_contracts(equation, *operands)


def is_listed(what: Symbol | Callable[..., Any], state: AutocastState) -> bool:
    """Whether autocast treats the operation as one, rather than what it is made of."""
    function = what.origin if isinstance(what, Symbol) and what.origin is not None else what
    name, kind = last_name(function), state.device_type
    return name in LOWER[kind] or name in FLOAT32[kind] or name in WIDEST[kind]


def _cast_all(
    dtype: DType,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    state: AutocastState,
    convert: Callable[[TensorProxy, DType], TensorProxy],
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    def cast(tensor: Any) -> Any:
        return convert(tensor, dtype) if state.casts(tensor) and tensor.dtype is not dtype else tensor

    return map_tensors(cast, args), map_tensors(cast, kwargs)


def _with_dtype(
    args: tuple[Any, ...], kwargs: dict[str, Any], state: AutocastState
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    low = bool(args) and state.casts(args[0]) and args[0].dtype.bits < 32
    if not low or kwargs.get("dtype") is not None or any(isinstance(a, torch.dtype) for a in args):
        return args, kwargs
    return args, {**kwargs, "dtype": torch.float32}
