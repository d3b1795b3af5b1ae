"""A stand-in for cuDNN's frontend on tensors of the CPU: graphs that compute what their nodes are documented to."""

import math
from types import SimpleNamespace

import torch

from thunder_executors_cudnn.graphs import TYPES
from thunder_executors_cudnn.plans import Plans, Target
from thunder_executors_cudnn.running import Machine
from thunder_testing import StandIn, Table

DTYPES = {name: getattr(torch, dtype) for dtype, name in TYPES.items()}


class Node:
    """A tensor of a graph."""

    def __init__(self, dim=None, stride=None, dtype=None, by_value=False, ragged=None):
        self.dim, self.stride, self.dtype, self.by_value, self.ragged = dim, stride, dtype, by_value, ragged
        self.output = False
        self.value = None

    def set_output(self, yes):
        self.output = yes
        return self

    def set_dim(self, dim):
        self.dim = dim
        return self

    def set_stride(self, stride):
        self.stride = stride
        return self

    def set_ragged_offset(self, ragged):
        self.ragged = ragged
        return self

    def set_data_type(self, dtype):
        self.dtype = dtype
        return self


TABLE = Table(
    "cuDNN frontend",
    "1.32.0",
    "the wheel nvidia-cudnn-frontend: the signatures of the bindings",
    """
def tensor(dim: list[int], stride: list[int] | None = None, data_type: Any = None, is_virtual: bool = False, is_pass_by_value: bool = False, ragged_offset: Node | None = None, reordering_type: Any = None, name: str = "") -> Node: ...
def sdpa(q: Node, k: Node, v: Node, is_inference: bool | None = None, attn_scale: float | None = None, bias: Node | None = None, block_mask: Node | None = None, use_alibi_mask: bool = False, use_padding_mask: bool = False, seq_len_q: Node | None = None, seq_len_kv: Node | None = None, use_causal_mask: bool = False, use_causal_mask_bottom_right: bool = False, sliding_window_length: int | None = None, diagonal_alignment: Any = TOP_LEFT, diagonal_band_left_bound: int | None = None, diagonal_band_right_bound: int | None = None, dropout: tuple[float, Node, Node] | None = None, rng_dump: Node | None = None, paged_attention_k_table: Node | None = None, paged_attention_v_table: Node | None = None, paged_attention_max_seq_len_kv: int | None = None, generate_stats: bool | None = None) -> tuple[Node, Node | None]: ...
def sdpa_backward(q: Node, k: Node, v: Node, o: Node, dO: Node, stats: Node, attn_scale: float | None = None, bias: Node | None = None, dBias: Node | None = None, use_padding_mask: bool = False, seq_len_q: Node | None = None, seq_len_kv: Node | None = None, diagonal_alignment: Any = TOP_LEFT, diagonal_band_left_bound: int | None = None, diagonal_band_right_bound: int | None = None, dropout: tuple[float, Node, Node] | None = None, use_deterministic_algorithm: bool = False) -> tuple[Node, Node, Node]: ...
def layernorm(norm_forward_phase: Any, input: Node, scale: Node | None = None, bias: Node | None = None, epsilon: Node | None = None) -> tuple[Node, Node | None, Node | None]: ...
def layernorm_backward(grad: Node, input: Node, scale: Node | None, mean: Node, inv_variance: Node) -> tuple[Node, Node, Node]: ...
def rmsnorm(norm_forward_phase: Any, input: Node, scale: Node | None = None, bias: Node | None = None, epsilon: Node | None = None) -> tuple[Node, Node | None]: ...
def rmsnorm_backward(grad: Node, input: Node, scale: Node | None, inv_variance: Node, has_dbias: bool) -> tuple[Node, Node, Node | None]: ...
def matmul(A: Node, B: Node, compute_data_type: Any = None, padding: float = 0.0) -> Node: ...
def bias(input: Node, bias: Node) -> Node: ...
def mul(a: Node, b: Node) -> Node: ...
def relu(input: Node) -> Node: ...
def gelu(input: Node) -> Node: ...
def gelu_approx_tanh(input: Node) -> Node: ...
def swish(input: Node, swish_beta: float | None = None) -> Node: ...
""",  # noqa: E501
    {"Node": Node},
)


class NotSupported(RuntimeError):
    """What the frontend raises where there is no plan."""


def scores(q, k, scale, bias, right):
    q, k = q.double(), k.double().repeat_interleave(q.shape[1] // k.shape[1], 1)
    found = q @ k.mT * scale + (0 if bias is None else bias.double())
    if right is not None:
        seen = torch.ones(found.shape[-2:], dtype=torch.bool).tril(right)
        found = found.masked_fill(~seen, -math.inf)
    return found


def without_padding(scores, lengths):
    """Let no row see columns beyond the length of its sequence."""
    if lengths is None:
        return scores
    beyond = torch.arange(scores.shape[-1]) >= lengths.value.reshape(-1, 1, 1, 1)
    return scores.masked_fill(beyond, -math.inf)


def from_pages(pool, table):
    if table is None:
        return pool.value
    blocks = pool.value[table.value[:, 0, :, 0].long()]
    return blocks.permute(0, 2, 1, 3, 4).flatten(2, 3)


def pieces(node, given):
    """Yield, for each sequence of a tensor that has them one after the other, itself and where it is in the graph's."""
    starts, (_, heads, longest, width) = node.ragged.value.flatten().tolist(), node.dim
    for i, (start, end) in enumerate(zip(starts, starts[1:], strict=False)):
        rows = (end - start) // (heads * width)
        assert 0 <= rows <= longest
        yield given.flatten()[start:end].view(rows, heads, width).transpose(0, 1), node.value[i, :, :rows]


def kept(shape, dropout):
    if dropout is None:
        return torch.ones(shape, dtype=torch.float64)
    p, seed, offset = dropout
    generator = torch.Generator().manual_seed(int(seed.value) + int(offset.value))
    return (torch.rand(shape, generator=generator) >= p).double() / (1 - p)


class Graph:
    """A graph whose nodes compute with PyTorch, in double precision."""

    def __init__(self, handle=None, **types):
        self.steps = []
        self.nodes = StandIn(
            TABLE,
            {name: getattr(self, f"_{name}") for name in TABLE.forms},
        )

    def __getattr__(self, name):
        return getattr(self.nodes, name)

    def _tensor(self, dim, stride, dtype, virtual, by_value, *rest):
        return Node(dim, stride, dtype, by_value, rest[0])

    def _step(self, count, compute):
        made = [Node() for _ in range(count)]
        self.steps.append((made, compute))
        return made

    def _sdpa(self, q, k, v, *options):
        scale, bias, padded, columns, right, dropout = (options[i] for i in (1, 2, 5, 7, 13, 14))
        tables, most, with_statistics = options[16:18], options[18], options[19]
        assert padded is (columns is not None) and (tables[0] is None or padded)

        def compute():
            keys, values = (from_pages(t, table) for t, table in zip((k, v), tables, strict=True))
            assert most is None or keys.shape[2] == most
            s = scores(q.value, keys, scale, None if bias is None else bias.value, right)
            s = without_padding(s, columns)
            weights = torch.softmax(s, -1).nan_to_num() * kept(s.shape, dropout)
            many = values.double().repeat_interleave(s.shape[1] // values.shape[1], 1)
            return weights @ many, torch.logsumexp(s, -1, keepdim=True)

        return [*self._step(2, compute)][: 1 + with_statistics] + [None] * (not with_statistics)

    def _sdpa_backward(self, q, k, v, o, dout, stats, scale, bias, dbias, padded, rows, columns, *options):
        _, _, right, dropout, _ = options
        assert bias is None or bias.dim[2] == q.dim[2], "cuDNN's gradients are wrong then"

        def compute():
            s = scores(q.value, k.value, scale, None if bias is None else bias.value, right)
            s = without_padding(s, columns)
            mask, heads = kept(s.shape, dropout), s.shape[1]
            weights = torch.exp(s - stats.value.double()).nan_to_num()
            dy = dout.value.double()
            many_k, many_v = (t.value.double().repeat_interleave(heads // t.value.shape[1], 1) for t in (k, v))
            dweights = (dy @ many_v.mT) * mask
            ds = weights * (dweights - (dy * o.value.double()).sum(-1, keepdim=True))
            dk, dv = ds.mT @ q.value.double() * scale, (weights * mask).mT @ dy
            groups = k.value.shape[1]
            return ds @ many_k * scale, *(t.unflatten(1, (groups, -1)).sum(2) for t in (dk, dv))

        return self._step(3, compute)

    def _one(self, compute):
        return self._step(1, lambda: (compute(),))[0]

    def _matmul(self, a, b, *options):
        return self._one(lambda: a.value.double() @ b.value.double())

    def _bias(self, a, b):
        return self._one(lambda: a.value + b.value.double())

    def _mul(self, a, b):
        return self._one(lambda: a.value * b.value.double())

    def _relu(self, a):
        return self._one(lambda: a.value.relu())

    def _gelu(self, a):
        return self._one(lambda: torch.nn.functional.gelu(a.value))

    def _gelu_approx_tanh(self, a):
        return self._one(lambda: torch.nn.functional.gelu(a.value, approximate="tanh"))

    def _swish(self, a, beta):
        return self._one(lambda: torch.nn.functional.silu(a.value))

    def _layernorm(self, phase, x, weight, bias, epsilon):
        def compute():
            a = x.value.double()
            mean, variance = a.mean(1, keepdim=True), a.var(1, keepdim=True, correction=0)
            deviation = torch.rsqrt(variance + epsilon.value.double())
            y = (a - mean) * deviation * weight.value.double()
            return y if bias is None else y + bias.value.double(), mean, deviation

        made = self._step(3, compute)
        return made if phase == "TRAINING" else [made[0], None, None]

    def _layernorm_backward(self, dy, x, weight, mean, deviation):
        def compute():
            g = dy.value.double() * weight.value.double()
            normal = (x.value.double() - mean.value) * deviation.value
            inner = g - g.mean(1, keepdim=True) - normal * (g * normal).mean(1, keepdim=True)
            return (
                deviation.value * inner,
                (dy.value.double() * normal).sum(0, keepdim=True),
                dy.value.double().sum(0, keepdim=True),
            )

        return self._step(3, compute)

    def _rmsnorm(self, phase, x, weight, bias, epsilon):
        def compute():
            a = x.value.double()
            deviation = torch.rsqrt((a * a).mean(1, keepdim=True) + epsilon.value.double())
            return a * deviation * weight.value.double(), deviation

        made = self._step(2, compute)
        return made if phase == "TRAINING" else [made[0], None]

    def _rmsnorm_backward(self, dy, x, weight, deviation, has_dbias):
        def compute():
            g = dy.value.double() * weight.value.double()
            normal = x.value.double() * deviation.value
            dx = deviation.value * (g - normal * (g * normal).mean(1, keepdim=True))
            return dx, (dy.value.double() * normal).sum(0, keepdim=True)

        return [*self._step(2, compute), None]

    def validate(self):
        if any(node.value is not None for made, _ in self.steps for node in made):
            raise NotSupported("this graph has run")

    build_operation_graph = check_support = lambda self: None

    def create_execution_plans(self, modes):
        assert modes == ["A", "FALLBACK"]

    def build_plans(self, policy):
        assert policy == "HEURISTICS_CHOICE"

    def get_workspace_size(self):
        return 16

    def execute(self, tensors, workspace, handle):
        assert workspace.numel() == 16 and workspace.dtype == torch.uint8
        outputs = {node: given for node, given in tensors.items() if node.output}
        for node, given in sorted(tensors.items(), key=lambda pair: pair[0].ragged is not None):
            assert given.dtype == DTYPES[node.dtype]
            assert given.data_ptr() % 16 == 0, "BAD_PARAM_MISALIGNED_POINTER"
            if node.ragged is not None:
                node.value = torch.zeros(node.dim, dtype=given.dtype)
                for piece, place in pieces(node, given):
                    place.copy_(piece)
                continue
            assert given.numel() == math.prod(node.dim)
            strides = given.stride() if given.ndim == len(node.dim) else None
            moving = [d for d, size in enumerate(node.dim) if size > 1]
            assert (
                given.is_contiguous() if strides is None else all(strides[d] == node.stride[d] for d in moving)
            ) or given.is_contiguous()
            node.value = torch.as_strided(given, node.dim, node.stride)
        for made, compute in self.steps:
            for node, value in zip(made, compute(), strict=False):
                if node in outputs:
                    node.value.copy_(value)
                else:
                    node.value = value
        for node, given in outputs.items():
            for piece, place in pieces(node, given) if node.ragged is not None else ():
                piece.copy_(place)


def names(*values):
    return SimpleNamespace(**{value: value for value in values})


FRONTEND = SimpleNamespace(
    pygraph=lambda io_data_type, intermediate_data_type, compute_data_type, handle: Graph(),
    data_type=names(*DTYPES),
    heur_mode=names("A", "FALLBACK"),
    build_plan_policy=names("HEURISTICS_CHOICE"),
    norm_forward_phase=names("TRAINING", "INFERENCE"),
    diagonal_alignment=names("TOP_LEFT", "BOTTOM_RIGHT"),
    cudnnGraphNotSupportedError=NotSupported,
    create_handle=lambda: "handle",
)


class CpuMachine(Machine):
    """A machine whose CPU is the device, and whose library is the stand-in."""

    types = ("cpu",)
    plans = None

    def __init__(self):
        self.plans = Plans(FRONTEND)

    def target(self, device):
        return Target(90, 132, 0)

    def handle(self, device):
        from contextlib import nullcontext

        return nullcontext("handle")
