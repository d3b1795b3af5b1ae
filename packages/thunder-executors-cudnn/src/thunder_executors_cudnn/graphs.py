"""From a problem to a graph of cuDNN: the calls of its frontend, and which tensor of the graph is which."""

from __future__ import annotations

from typing import Any

from thunder_executors_cudnn.problems import (
    ACTIVATIONS,
    Attention,
    AttentionGradient,
    Layout,
    Norm,
    NormGradient,
    Problem,
    Product,
)

TYPES = {
    "float16": "HALF",
    "bfloat16": "BFLOAT16",
    "float32": "FLOAT",
    "int32": "INT32",
    "int64": "INT64",
}
"""What the frontend calls PyTorch's dtypes."""

Tensors = dict[str, Any]
SCALAR = (1, 1, 1, 1)


class Drawing:
    """Adds the nodes of a problem to a graph.

    Args:
        cudnn: the frontend.
        graph: an empty one of it.
    """

    def __init__(self, cudnn: Any, graph: Any) -> None:
        self.cudnn = cudnn
        self.graph = graph
        self.tensors: Tensors = {}

    def draw(self, problem: Problem) -> Tensors:
        """Add the nodes; return the tensors that are given when the graph runs, inputs and outputs, by name."""
        match problem:
            case Attention():
                self.attention(problem)
            case AttentionGradient():
                self.attention_gradient(problem)
            case Norm():
                self.norm(problem)
            case NormGradient():
                self.norm_gradient(problem)
            case Product():
                self.product(problem)
        return self.tensors

    def given(self, name: str, layout: Layout, starts: Any = None) -> Any:
        """Add an input; ``starts`` says where its sequences begin, if they lie one after the other."""
        more = {} if starts is None else {"ragged_offset": starts}
        made = self.graph.tensor(
            dim=list(layout.shape), stride=list(layout.strides), data_type=self.type(layout.dtype), name=name, **more
        )
        self.tensors[name] = made
        return made

    def made(self, name: str, tensor: Any, layout: Layout, starts: Any = None) -> None:
        """Let what a node computes be an output."""
        if starts is not None:
            tensor.set_ragged_offset(starts)
        tensor.set_output(True).set_dim(list(layout.shape)).set_stride(list(layout.strides))
        tensor.set_data_type(self.type(layout.dtype))
        self.tensors[name] = tensor

    def type(self, dtype: str) -> Any:
        return getattr(self.cudnn.data_type, TYPES[dtype])

    def options_of(self, a: Attention) -> dict[str, Any]:
        """Add the inputs that attention and its gradient share beside query, key and value; return the arguments."""
        options: dict[str, Any] = {"attn_scale": a.scale}
        if a.causal:
            options["diagonal_alignment"] = self.cudnn.diagonal_alignment.TOP_LEFT
            options["diagonal_band_right_bound"] = 0
        if a.bias is not None:
            options["bias"] = self.given("bias", a.bias)
        if a.dropout:
            state = Layout.dense(SCALAR, "int64")
            options["dropout"] = (a.dropout, self.given("seed", state), self.given("offset", state))
        if a.padded:
            lengths = Layout.dense((a.query.shape[0], *SCALAR[1:]), "int32")
            options["use_padding_mask"] = True
            options["seq_len_q"] = self.given("query_lengths", lengths)
            options["seq_len_kv"] = self.given("key_lengths", lengths)
        if a.pages is not None:
            table = Layout.dense((a.query.shape[0], 1, a.pages.each, 1), "int32")
            options["paged_attention_k_table"] = self.given("key_table", table)
            options["paged_attention_v_table"] = self.given("value_table", table)
            options["paged_attention_max_seq_len_kv"] = a.pages.each * a.pages.size
        return options

    def starts(self, a: Attention, name: str) -> Any:
        """Add the input that says at which element the sequences of a tensor begin, and where the last one ends."""
        layout = Layout.dense((a.query.shape[0] + 1, *SCALAR[1:]), "int64")
        return self.given(f"{name}_starts", layout) if a.packed else None

    def operands(self, a: Attention) -> tuple[Any, Any, Any]:
        """Add query, key and value."""
        key, value = (a.key, a.value) if a.pages is None else (pool_of(a, a.key), pool_of(a, a.value))
        named = (("query", a.query), ("key", key), ("value", value))
        q, k, v = (self.given(name, layout, self.starts(a, name)) for name, layout in named)
        return q, k, v

    def attention(self, a: Attention) -> None:
        q, k, v = self.operands(a)
        out, statistics = self.graph.sdpa(q=q, k=k, v=v, generate_stats=a.statistics, **self.options_of(a))
        self.made("out", out, a.out, self.starts(a, "out"))
        if a.statistics:
            self.made("statistics", statistics, statistics_of(a))

    def attention_gradient(self, g: AttentionGradient) -> None:
        a = g.forward
        q, k, v = self.operands(a)
        of_out = self.starts(a, "out")
        out, dout = self.given("out", a.out, of_out), self.given("dout", g.dout, of_out)
        statistics = self.given("statistics", statistics_of(a))
        dq, dk, dv = self.graph.sdpa_backward(
            q=q, k=k, v=v, o=out, dO=dout, stats=statistics,
            use_deterministic_algorithm=g.deterministic, **self.options_of(a),
        )  # fmt: skip
        starts = [self.tensors.get(f"{name}_starts") for name in ("query", "key", "value")]
        self.made("dquery", dq, g.dquery, starts[0])
        self.made("dkey", dk, g.dkey, starts[1])
        self.made("dvalue", dv, g.dvalue, starts[2])

    def norm(self, n: Norm) -> None:
        x, weight = self.given("input", matrix(n)), self.given("weight", row(n))
        bias = self.given("bias", row(n)) if n.bias else None
        phases = self.cudnn.norm_forward_phase
        phase = phases.TRAINING if n.statistics else phases.INFERENCE
        epsilon = self.number("epsilon")
        if n.centred:
            y, mean, deviation = self.graph.layernorm(
                norm_forward_phase=phase, input=x, scale=weight, bias=bias, epsilon=epsilon
            )
        else:
            y, deviation = self.graph.rmsnorm(
                norm_forward_phase=phase, input=x, scale=weight, bias=bias, epsilon=epsilon
            )
        self.made("out", y, matrix(n))
        if n.statistics:
            if n.centred:
                self.made("mean", mean, column(n))
            self.made("deviation", deviation, column(n))

    def norm_gradient(self, g: NormGradient) -> None:
        n = g.forward
        dy, x, weight = self.given("dout", matrix(n)), self.given("input", matrix(n)), self.given("weight", row(n))
        if n.centred:
            mean, deviation = self.given("mean", column(n)), self.given("deviation", column(n))
            dx, dweight, dbias = self.graph.layernorm_backward(
                grad=dy, input=x, scale=weight, mean=mean, inv_variance=deviation
            )
        else:
            deviation = self.given("deviation", column(n))
            dx, dweight, dbias = self.graph.rmsnorm_backward(
                grad=dy, input=x, scale=weight, inv_variance=deviation, has_dbias=n.bias
            )
        self.made("dinput", dx, matrix(n))
        self.made("dweight", dweight, row(n))
        if n.centred or n.bias:
            self.made("dbias", dbias, row(n))

    def product(self, p: Product) -> None:
        left = self.given("input", Layout.dense((1, p.rows, p.inner), p.dtype))
        transposed = Layout((1, p.inner, p.columns), (p.inner * p.columns, 1, p.inner), p.dtype)
        found = self.graph.matmul(A=left, B=self.given("weight", transposed))
        if p.bias:
            found = self.graph.bias(input=found, bias=self.given("bias", Layout.dense((1, 1, p.columns), p.dtype)))
        if p.activation != "none":
            found = getattr(self.graph, ACTIVATIONS[p.activation])(input=found)
        result = Layout.dense((1, p.rows, p.columns), p.dtype)
        if p.gated:
            found = self.graph.mul(a=found, b=self.given("gate", result))
        self.made("out", found, result)

    def number(self, name: str) -> Any:
        """Add an input that is a number of the host, float32."""
        made = self.graph.tensor(
            dim=list(SCALAR), stride=list(SCALAR), is_pass_by_value=True, data_type=self.type("float32"), name=name
        )
        self.tensors[name] = made
        return made


def statistics_of(a: Attention) -> Layout:
    """Return how the logarithms of the sums of exponentials are laid out: one number for each row of each head."""
    return Layout.dense((*a.query.shape[:3], 1), "float32")


def pool_of(a: Attention, tensor: Layout) -> Layout:
    """Return how the pool lies that has the blocks of keys or of values; its strides are those of the tensor."""
    assert a.pages is not None
    return Layout((a.pages.pool, tensor.shape[1], a.pages.size, tensor.shape[3]), tensor.strides, tensor.dtype)


def matrix(n: Norm) -> Layout:
    """Return how cuDNN sees the input of a norm: the dimension that the norm is over is the second."""
    return Layout.dense((n.rows, n.columns, 1, 1), n.dtype)


def row(n: Norm) -> Layout:
    """Return how it sees weight and bias."""
    return Layout.dense((1, n.columns, 1, 1), n.dtype)


def column(n: Norm) -> Layout:
    """Return how it sees what is kept of each row."""
    return Layout.dense((n.rows, 1, 1, 1), "float32")


__all__ = ["SCALAR", "TYPES", "Drawing", "column", "matrix", "pool_of", "row", "statistics_of"]
