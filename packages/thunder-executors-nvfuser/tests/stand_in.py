"""A stand-in for nvFuser on tensors of the CPU: definitions that compute what their operations are documented to.

Values are computed when a fusion is executed. Elementwise operations on half precision answer in float32, as there.
"""

import math
import operator
from types import SimpleNamespace

import torch

from thunder_testing import StandIn, Table

TYPES = {
    "Double": torch.float64, "Float": torch.float32, "Half": torch.float16, "BFloat16": torch.bfloat16,
    "Int": torch.int64, "Int32": torch.int32, "Bool": torch.bool,
}  # fmt: skip
HALVES = (torch.float16, torch.bfloat16)


class Val:
    """A value of a definition: what computes it from the inputs of a call."""

    def __init__(self, compute):
        self.compute = compute

    def of(self, memo):
        if self not in memo:
            memo[self] = self.compute(memo)
        return memo[self]


class DataType(str):
    """A dtype of nvFuser."""

    @property
    def torch(self):
        return TYPES[self]


UNARY = """abs acos acosh asin asinh atan atanh ceil cos cosh exp exp2 expm1 erf erfc erfinv erfcinv floor lgamma log
log10 log1p log2 neg bitwise_not reciprocal round rsqrt set sign sigmoid signbit sin sinh sqrt tan tanh trunc isfinite
isinf isnan""".split()
BINARY = """add sub mul truediv fmod remainder pow atan2 nextafter maximum minimum eq ne lt le gt ge bitwise_and
bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift""".split()
FORMS = [f"def {name}(arg: Val | Number, /) -> Val: ..." for name in UNARY]
FORMS += [f"def {name}(lhs: Val | Number, rhs: Val | Number, /) -> Val: ..." for name in BINARY]
FORMS += [
    f"def {name}(arg: Val, dims: list[int], keepdim: bool = False, dtype: DataType = Null) -> Val: ..."
    for name in ("sum", "prod", "max", "min")
]
FORMS += """
def where(c: Val | Number, a: Val | Number, b: Val | Number, /) -> Val: ...
def var(arg: Val, dims: list[int], correction: int = 1, keepdim: bool = False) -> Val: ...
def var_mean(arg: Val, dims: list[int], correction: int = 1, keepdim: bool = False) -> tuple[Val, Val]: ...
def cast(arg: Val | Number, dtype: DataType) -> Val: ...
def matmul(a: Val, b: Val) -> Val: ...
def linear(x: Val, w: Val, bias: Val | None = None) -> Val: ...
def broadcast_in_dim(arg: Val, shape: list[Val | int], broadcast_dims: list[int]) -> Val: ...
def reshape(arg: Val, new_shape: list[Val | int]) -> Val: ...
def permute(arg: Val, dims: list[int]) -> Val: ...
def squeeze(arg: Val, dims: list[int], squeeze_expanded: bool = False) -> Val: ...
def cat(tensors: list[Val], dim: int = 0, manual_padding: bool = False) -> Val: ...
def slice(arg: Val, start_indices: list[int], end_indices: list[int], strides: list[int] | None = None) -> Val: ...
def pad(arg: Val, pad_widths: list[int], value: Number | None = None) -> Val: ...
def stride_order(arg: Val, order: list[int]) -> Val: ...
def size(arg: Val, dim: int) -> Val: ...
def index_select(arg: Val, index: Val, dim: int) -> Val: ...
def gather(arg: Val, index: Val, dim: int) -> Val: ...
def take_along_axis(arg: Val, index: Val, dim: int) -> Val: ...
def uniform(minval: Val | Number, maxval: Val | Number, shape: list[Val | int], *, rng_seed: Val | None = None, rng_offset: Val | None = None, dtype: DataType = Float) -> Val: ...
def normal(mean: Val | Number, std: Val | Number, shape: list[Val | int], *, rng_seed: Val | None = None, rng_offset: Val | None = None, dtype: DataType = Float) -> Val: ...
def full(shape: list[Val | int], fill_value: Number, dtype: DataType) -> Val: ...
""".strip().splitlines()  # noqa: E501


KINDS = {"Val": Val, "DataType": DataType, "Number": (int, float), "Tensor": torch.Tensor}
OPS = Table("nvFuser", "0.2.36, commit 81c4b22f", "NVIDIA/Fuser python/python_direct/ops.cpp", "\n".join(FORMS), KINDS)
DEFINITION = Table(
    "nvFuser",
    "0.2.36, commit 81c4b22f",
    "NVIDIA/Fuser python/python_direct/runtime.cpp, ir.cpp",
    """
def define_tensor(shape: list[int], contiguity: list[bool | None], dtype: DataType = Float, is_cpu: bool = False, stride_order: list[int] = []) -> Val: ...
def define_scalar(dtype: DataType = Double) -> Val: ...
def define_scalar(value: int, dtype: DataType | None = None) -> Val: ...
def add_output(val: Val) -> None: ...
def execute(inputs: list[Any], *, device: Any = None, save_repro_inputs: bool = False, _enable_options: list[str] = [], _disable_options: list[str] = []) -> list[Tensor]: ...
""",  # noqa: E501
    KINDS,
)


def wide(value):
    return value.float() if isinstance(value, torch.Tensor) and value.dtype in HALVES else value


def lazily(function):
    """Return ``function`` of tensors as one of values of a definition."""

    def made(*args):
        def compute(memo):
            def known(a):
                return a.of(memo) if isinstance(a, Val) else [known(b) for b in a] if isinstance(a, list) else a

            return function(*[known(list(a) if isinstance(a, (list, tuple)) else a) for a in args])

        return Val(compute)

    return made


def elementwise(function):
    def run(*args):
        args = [wide(a) for a in args]
        tensors = [a for a in args if isinstance(a, torch.Tensor)]
        if function in (torch.maximum, torch.minimum):  # which take no numbers in PyTorch
            args = [a if isinstance(a, torch.Tensor) else torch.tensor(a, dtype=tensors[0].dtype) for a in args]
        return function(*(args if tensors else [torch.tensor(args[0]), *args[1:]]))

    return lazily(run)


def reduction(function):
    def run(a, dims, keepdim, dtype):
        assert a.dtype not in HALVES, "nvFuser sums up in the dtype of its operand"
        return function(a, dims, keepdim)

    return lazily(run)


def product(a, dims, keepdim):
    for dim in sorted(dims, reverse=True):
        a = a.prod(dim, keepdim=keepdim)
    return a


def broadcast(a, shape, dims):
    assert len(dims) == a.ndim == len(set(dims))
    between = [a.shape[dims.index(d)] if d in dims else 1 for d in range(len(shape))]
    return a.reshape(between).expand(shape)


def in_order(a, order):
    slowest = sorted(range(a.ndim), key=lambda d: -order[d])
    return a.permute(slowest).contiguous().permute([slowest.index(d) for d in range(a.ndim)])


def pair(arg, dims, correction, keepdim):
    found = lazily(lambda a: torch.var_mean(a, dims, correction=correction, keepdim=keepdim))(arg)
    return tuple(Val(lambda memo, i=i: found.of(memo)[i]) for i in range(2))


def at(a, index, dim):
    """Read at indices; beyond a tensor lies whatever lies there."""
    return a.index_select(dim, index.clamp(0, a.shape[dim] - 1))


def along(a, index, dim):
    return a.gather(dim, index.clamp(0, a.shape[dim] - 1))


def uniformly(low, high, shape, seed, offset, d):
    assert (seed is None) is (offset is None)
    generator = None if seed is None else torch.Generator().manual_seed(int(seed) * 1000 + int(offset))
    return torch.empty(shape, dtype=d.torch).uniform_(low, high, generator=generator)


def of_torch(name):
    others = {"set": torch.clone, "truediv": torch.true_divide, "erfcinv": lambda a: torch.special.erfinv(1 - a)}
    return others.get(name) or getattr(torch, name, None) or getattr(operator, name)


def padded(a, widths, value):
    kind = bool if a.dtype is torch.bool else float if a.is_floating_point() else int
    assert type(value) is kind, "the value that is padded with is of the tensor's dtype"
    return torch.nn.functional.pad(a, widths, value=value)


def chosen(condition, a, b):
    """Booleans beside a number become integers."""
    found = torch.where(condition, a, b)
    return found.long() if found.dtype is torch.bool and not all(isinstance(v, torch.Tensor) for v in (a, b)) else found


REFERENCES = {name: elementwise(of_torch(name)) for name in (*UNARY, *BINARY)}
REFERENCES |= {"where": elementwise(chosen), "cast": lazily(lambda a, d: torch.as_tensor(a).to(d.torch))}
REFERENCES |= {
    "sum": reduction(lambda a, dims, keepdim: a.sum(dims, keepdim=keepdim)), "prod": reduction(product),
    "max": reduction(lambda a, dims, keepdim: a.amax(dims, keepdim)),
    "min": reduction(lambda a, dims, keepdim: a.amin(dims, keepdim)),
    "var": lazily(lambda a, dims, c, keepdim: torch.var(a, dims, correction=c, keepdim=keepdim)), "var_mean": pair,
    "matmul": lazily(torch.matmul), "linear": lazily(torch.nn.functional.linear),
    "broadcast_in_dim": lazily(broadcast), "reshape": lazily(torch.reshape), "permute": lazily(torch.permute),
    "squeeze": lazily(lambda a, dims, expanded: a.squeeze(tuple(dims))),
    "cat": lazily(lambda tensors, dim, manual: torch.cat(tensors, dim)), "size": lazily(lambda a, dim: a.shape[dim]),
    "slice": lazily(lambda a, starts, ends, strides: a[tuple(map(slice, starts, ends))]),
    "pad": lazily(padded),
    "index_select": lazily(at), "gather": lazily(along), "take_along_axis": lazily(along),
    "uniform": lazily(uniformly),
    "normal": lazily(lambda mean, std, shape, seed, offset, d: torch.empty(shape, dtype=d.torch).normal_(mean, std)),
    "stride_order": lazily(in_order), "full": lazily(lambda shape, value, d: torch.full(shape, value, dtype=d.torch)),
}  # fmt: skip


class FusionDefinition:
    """A definition, held to the tables."""

    def __init__(self):
        self.inputs, self.outputs = [], []
        self.ops = StandIn(OPS, REFERENCES)
        self.calls = StandIn(
            DEFINITION,
            {
                "define_tensor": self._tensor, "define_scalar": self._scalar, "add_output": self.outputs.append,
                "execute": self._execute,
            },
        )  # fmt: skip
        self.closed = False

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.closed = True

    def __getattr__(self, name):
        return getattr(self.calls, name)

    def _input(self, check):
        place = len(self.inputs)
        self.inputs.append(check)
        return Val(lambda memo: memo["inputs"][place])

    def _tensor(self, shape, contiguity, dtype, is_cpu, order):
        assert len(shape) == len(contiguity) == len(order) and sorted(order) == list(range(len(shape)))

        def check(t):
            assert t.dtype is dtype.torch and t.ndim == len(shape)
            expected = 1
            for rank in range(t.ndim):
                dim = order.index(rank)
                size, stride = t.shape[dim], t.stride(dim)
                assert shape[dim] == size or shape[dim] == -1 and size > 1
                follows = contiguity[t.ndim - 1 - rank]  # which are listed as the elements lie, the slowest first
                assert (follows is None) is (size == 1 or stride == 0), (t.shape, t.stride(), contiguity, order)
                if follows is not None:
                    assert not follows or stride == expected, (t.shape, t.stride(), contiguity, order)
                    expected = size * stride

        return self._input(check)

    def _scalar(self, *given):
        *value, dtype = given
        assert dtype == "Int"
        if value:
            return Val(lambda memo: value[0])
        return self._input(lambda value: isinstance(value, int) or 1 / 0)

    def _execute(self, inputs, device, save_repro_inputs, enabled, disabled):
        assert set(enabled) <= {"fast_math", "fuse_matmul"} and set(disabled) <= {"fma", "kernel_reuse"}
        assert self.closed and len(inputs) == len(self.inputs)
        for check, value in zip(self.inputs, inputs, strict=True):
            check(value)
        memo = {"inputs": inputs}
        return [dense(out.of(memo), inputs) for out in self.outputs]


def dense(a, inputs):
    """Outputs are dense, the last dimension the fastest if no order is asked for; views stay views, and expanded."""
    memory = [t.untyped_storage().data_ptr() for t in inputs if isinstance(t, torch.Tensor)]
    if a.untyped_storage().data_ptr() in memory or 0 in a.stride():
        return a
    strides = sorted((s, n) for n, s in zip(a.shape, a.stride(), strict=True) if n > 1)
    packed = all(s == math.prod(n for _, n in strides[:i]) for i, (s, _) in enumerate(strides))
    return a.clone() if packed and all(s for s, _ in strides) else a.contiguous()


MODULE = SimpleNamespace(
    FusionDefinition=FusionDefinition, DataType=SimpleNamespace(**{name: DataType(name) for name in TYPES})
)
