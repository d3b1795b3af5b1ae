"""Print how long a sharded training step waits for other processes: ``python -m thunder_distributed.timelines``.

The programs are those of Llama-2-7B and Llama-3-70B in bfloat16, sharded, gathered again for the backward pass, in as
many processes of an H100 each as are asked for: once with every gather where it is needed, and once by the passes.
Norms, rotations and activations are taken for one pass over memory each; there is no embedding, and the optimizer is
left out.
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
from thunder_distributed.passes import bucket_collectives, place_collectives
from thunder_ir import Tensor, TensorProxy, Trace, trace_of
from thunder_prims import add, attention, broadcast_in_dim, matmul, mul, reshape, tanh, transpose

MODELS = {
    "llama-2-7b": (Transformer(32, 4096, 32, 32, 11008, 3, 32000), 4096),
    "llama-3-70b": (Transformer(80, 8192, 64, 8, 28672, 3, 128256), 8192),
}
"""Sizes, and the tokens that each process has."""

PROCESSES = (8, 64, 1024, 8192)


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


def main(words: Sequence[str] | None = None) -> int:
    """Print the table, and write the timelines to files if asked for; return 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--processes", default=",".join(map(str, PROCESSES)))
    parser.add_argument("--folder", type=Path, help="where timelines are written, for ui.perfetto.dev")
    options = parser.parse_args(words)
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
