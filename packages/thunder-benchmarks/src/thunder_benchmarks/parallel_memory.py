"""The most memory that tensors take in a training step of each of several processes: ``fsdp`` beside ``fully_shard``.

torchrun --nproc-per-node 2 -m thunder_benchmarks.parallel_memory nanogpt:layers=8,width=256,batch=16 ...

Targets are those of thunder_benchmarks.targets, with sizes; a batch is that of one process. What PyTorch's allocator
gives is counted, so neither Python, nor libraries, nor what else the machine does changes the figures.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch.distributed.tensor import DTensor

from thunder_benchmarks.parallel import MODES
from thunder_benchmarks.tables import markdown
from thunder_benchmarks.targets import TARGETS, peak_bytes
from thunder_benchmarks.targets.__main__ import setting
from thunder_distributed import Axis, axis_of

PAIR = ("torch-fully-shard", "fsdp")
DEFAULT = (
    "nanogpt:layers=8,heads=8,width=256,vocabulary=512,length=64,batch=4",
    "nanogpt:layers=8,heads=8,width=256,vocabulary=512,length=128,batch=8",
    "nanogpt:layers=8,heads=8,width=512,vocabulary=512,length=128,batch=8",
)


@dataclass(frozen=True)
class Held:
    """What the tensors of one process take.

    Args:
        kept: bytes of parameters, gradients and the optimizer's state after a step.
        most: bytes at most, while a step is made.
    """

    kept: int
    most: int


def _local(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


def _bytes(tensors: Sequence[torch.Tensor]) -> int:
    return sum([t.numel() * t.element_size() for t in map(_local, tensors)])


def held(name: str, mode: str, axis: Axis) -> Held:
    """Return what training takes in this process.

    Args:
        name: of a target, with sizes.
        mode: of :mod:`thunder_benchmarks.parallel`.
        axis: over which parameters are sharded.

    Raises:
        ValueError: the target is a function.
    """
    target, _, sizes = name.partition(":")
    torch.manual_seed(0)
    job = TARGETS[target].job(**dict([setting(text) for text in sizes.split(",") if text]))
    if not isinstance(job.target, torch.nn.Module):
        raise ValueError(f"{target} is no module, and has no parameters to shard")
    module = MODES[mode](job.target, axis)
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-3)

    def step() -> None:
        torch.autograd.backward(job.loss(module(*job.args, **job.kwargs)))
        optimizer.step()

    for _ in range(2):
        step()
        optimizer.zero_grad()
    state = [v for s in optimizer.state.values() for v in s.values() if isinstance(v, torch.Tensor)]
    before = _bytes([*module.parameters(), *module.buffers(), *state])
    most = before + peak_bytes(step)
    return Held(before + _bytes([p.grad for p in module.parameters() if p.grad is not None]), most)


def main(words: Sequence[str] | None = None) -> int:
    """Measure, and print a table in the first process; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", default=DEFAULT)
    options = parser.parse_args(words)
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    axis = axis_of(None, "processes")
    rows = [["target", "kept between steps by either, MB", "`fully_shard` of each block, at most", "`fsdp`, ZERO3", ""]]
    for name in options.targets:
        theirs, ours = (held(name, mode, axis) for mode in PAIR)
        megabytes = [f"{n / 1e6:.1f}" for n in (ours.kept, theirs.most, ours.most)]
        rows.append([name, *megabytes, f"{ours.most / theirs.most:.2f}"])
    if axis.rank == 0:
        print(markdown(rows), end="")
    dist.destroy_process_group()
    return 0


if __name__ == "__main__":
    sys.exit(main())
