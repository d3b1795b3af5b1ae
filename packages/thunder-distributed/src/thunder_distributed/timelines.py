"""Print how long a sharded training step waits for other processes: ``python -m thunder_distributed.timelines``.

The programs are those of Llama-2-7B and Llama-3-70B in bfloat16, sharded, gathered again for the backward pass, in as
many processes of an H100 each as are asked for: once with every gather where it is needed, and once by the passes.
Norms, rotations and activations are taken for one pass over memory each; there is no embedding, and the optimizer is
left out.

With ``--tensor N`` the programs are those of four layers of which N processes have a part each, and of sequences
between them: once with gathers and sums that are waited for, and once with products beside the ring.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from thunder_autograd import forward_and_backward
from thunder_distributed.axes import Axis
from thunder_distributed.costs import Timeline, machine, simulate
from thunder_distributed.costs.transformers import Transformer
from thunder_distributed.parameters import Sharded, sharded_again
from thunder_distributed.passes import bucket_collectives, place_collectives, split_products
from thunder_distributed.regions import gathered, scattered
from thunder_ir import Tensor, TensorProxy, Trace, trace_of
from thunder_ir.passes import expand
from thunder_prims import add, attention, broadcast_in_dim, matmul, mul, reshape, slice, tanh, transpose

MODELS = {
    "llama-2-7b": (Transformer(32, 4096, 32, 32, 11008, 3, 32000), 4096),
    "llama-3-70b": (Transformer(80, 8192, 64, 8, 28672, 3, 128256), 8192),
}
"""Sizes, and the tokens that each process has."""

PROCESSES = (8, 64, 1024, 8192)
TENSOR_LAYERS = 4


def step(model: Transformer, tokens: int, processes: int) -> tuple[Trace, Trace]:
    """Return the forward and the backward program of a training step in one of the processes.

    Args:
        model: its sizes.
        tokens: of the one sequence that the process has.
        processes: over which parameters are sharded.
    """
    axis = Axis("shard", processes)
    head = model.width // model.heads
    inner = (model.width, model.inner)
    keys = (model.width, model.kv_heads * head)
    shapes = [(model.width, model.width), keys, keys, (model.width, model.width), inner, inner, inner[::-1]]
    hows, examples = [], []
    for i in range(model.layers * len(shapes) + 1):
        layer, place = divmod(i, len(shapes))
        shape = (model.width, model.vocabulary) if layer == model.layers else shapes[place]
        how = Sharded(axis, shape, 0, (f"layer {layer}", place), again=True)
        hows.append(how)
        examples.append(Tensor((how.rows, shape[1]), "bfloat16", requires_grad=True))

    def program(x: TensorProxy, *parts: TensorProxy) -> TensorProxy:
        whole = (sharded_again(part, how, True) for part, how in zip(parts, hows, strict=True))
        for _ in range(model.layers):
            x = _layer(x, [next(whole) for _ in shapes], model, head)
        return matmul(tanh(x), next(whole))

    split = forward_and_backward(trace_of(program, Tensor((tokens, model.width), "bfloat16"), *examples))
    return split.forward, split.backward


def _layer(x: TensorProxy, weights: Sequence[TensorProxy], model: Transformer, head: int) -> TensorProxy:
    tokens = x.shape[0]

    def heads(a: TensorProxy, count: int) -> TensorProxy:
        split: TensorProxy = transpose(reshape(a, (tokens, count, head)), (1, 0, 2))
        if count < model.heads:
            many = broadcast_in_dim(split, (count, model.heads // count, tokens, head), (0, 2, 3))
            split = reshape(many, (model.heads, tokens, head))
        return split

    query, key, value, out, gate, up, down = weights
    y = tanh(x)
    q, k, v = (
        heads(matmul(y, w), n) for w, n in ((query, model.heads), (key, model.kv_heads), (value, model.kv_heads))
    )
    attended: Any = attention(q, k, v, None, True, 1 / math.sqrt(head))[0]
    x = add(x, matmul(reshape(transpose(attended, (1, 0, 2)), (tokens, model.width)), out))
    y = tanh(x)
    return add(x, matmul(mul(matmul(y, gate), matmul(y, up)), down))


def timelines(model: Transformer, tokens: int, processes: int) -> tuple[Timeline, Timeline]:
    """Return the timelines of a training step: every gather where it is needed, and as the passes place them."""
    programs = step(model, tokens, processes)
    placed = [place_collectives(bucket_collectives(trace)) for trace in programs]
    device, network = machine("h100")
    return simulate(programs, device, network), simulate(placed, device, network)


def tensor_step(model: Transformer, tokens: int, processes: int) -> tuple[Trace, Trace]:
    """Return the forward and the backward program of layers of which each process has a part.

    Args:
        model: its sizes.
        tokens: of the sequence, of which each process has a part between layers.
        processes: on the axis.
    """
    axis = Axis("tensor", processes, splits_products=True)
    head, heads, keys = model.width // model.heads, model.heads // processes, model.kv_heads // processes
    inner = model.inner // processes
    shapes = [
        (model.width, (heads + 2 * keys) * head), (heads * head, model.width), (model.width, 2 * inner),
        (inner, model.width),
    ]  # fmt: skip

    def columns(a: TensorProxy, start: int, count: int) -> TensorProxy:
        return slice(a, (0, start), (tokens, start + count))

    def by_head(a: TensorProxy, start: int, count: int) -> TensorProxy:
        split = transpose(reshape(columns(a, start * head, count * head), (tokens, count, head)), (1, 0, 2))
        if count == heads:
            return split
        many = broadcast_in_dim(split, (count, heads // count, tokens, head), (0, 2, 3))
        return reshape(many, (heads, tokens, head))

    def program(x: TensorProxy, *weights: TensorProxy) -> TensorProxy:
        for i in range(0, len(weights), len(shapes)):
            into, out, up, down = weights[i : i + len(shapes)]
            qkv = matmul(gathered(tanh(x), axis, 0), into)
            q, k, v = by_head(qkv, 0, heads), by_head(qkv, heads, keys), by_head(qkv, heads + keys, keys)
            attended: Any = attention(q, k, v, None, True, 1 / math.sqrt(head))[0]
            rows = reshape(transpose(attended, (1, 0, 2)), (tokens, heads * head))
            x = add(x, scattered(matmul(rows, out), axis, 0))
            both = matmul(gathered(tanh(x), axis, 0), up)
            x = add(x, scattered(matmul(mul(columns(both, 0, inner), columns(both, inner, inner)), down), axis, 0))
        return x

    examples = [Tensor(shape, "bfloat16", requires_grad=True) for _ in range(TENSOR_LAYERS) for shape in shapes]
    x = Tensor((tokens // processes, model.width), "bfloat16", requires_grad=True)
    split = forward_and_backward(trace_of(program, x, *examples))
    return expand(split.forward), expand(split.backward)


def tensor_timelines(model: Transformer, tokens: int, processes: int) -> tuple[Timeline, Timeline]:
    """Return the timelines of layers of which each process has a part: as they are, and with products split."""
    programs = tensor_step(model, tokens, processes)
    device, network = machine("h100")
    whole, split = ([place_collectives(p) for p in made] for made in (programs, [split_products(p) for p in programs]))
    return simulate(whole, device, network), simulate(split, device, network)


def main(words: Sequence[str] | None = None) -> int:
    """Print the table, and write the timelines to files if asked for; return 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--processes", default=",".join(map(str, PROCESSES)))
    parser.add_argument("--tensor", type=int, help="how many processes have a part of each layer")
    parser.add_argument("--folder", type=Path, help="where timelines are written, for ui.perfetto.dev")
    options = parser.parse_args(words)
    if options.tensor:
        print("| model | processes | step, ms | exposed, ms | products split: step, ms | exposed, ms |")
        print("|---|---|---|---|---|---|")
        for name in options.models.split(","):
            found = tensor_timelines(*MODELS[name], options.tensor)
            cells = [f"{s * 1e3:.2f}" for t in found for s in (t.seconds, t.exposed)]
            print(f"| {name} | {options.tensor} | {' | '.join(cells)} |", flush=True)
        return 0
    print("| model | processes | step, ms | exposed, ms | by the passes: step, ms | exposed, ms |")
    print("|---|---|---|---|---|---|")
    for name in options.models.split(","):
        for processes in map(int, options.processes.split(",")):
            before, after = timelines(*MODELS[name], processes)
            cells = [f"{s * 1e3:.0f}" for t in (before, after) for s in (t.seconds, t.exposed)]
            print(f"| {name} | {processes:,} | {' | '.join(cells)} |", flush=True)
            if options.folder is not None:
                options.folder.mkdir(parents=True, exist_ok=True)
                after.save_chrome_trace(options.folder / f"{name}_{processes}.json")
    return 0


if __name__ == "__main__":
    sys.exit(main())
