"""Measurements of targets: compilers side by side, in turns."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import dataclass
from statistics import median
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import ProfilerActivity, profile
from torch.utils.flop_counter import FlopCounterMode

import thunder
from thunder_benchmarks.parallel import MODES as PARALLEL
from thunder_benchmarks.targets.cases import Job, NotInstalledError, Target
from thunder_benchmarks.timing import in_turns, microseconds
from thunder_distributed import axis_of

MODES = ("forward", "training")


@dataclass(frozen=True)
class Measured:
    """What a call of a target took.

    Args:
        target: its name.
        mode: ``"forward"``, without gradients, or ``"training"``: forward and backward.
        compiler: what ran it.
        microseconds: of CPU time a call; of the wall clock where several processes run it.
        gigaflops: a second, of those that eager's operations count; 0 where these count none.
        of_peak: these, as a share of what a large matrix product reaches here.
        peak_bytes: the most memory that a call's tensors held at once, beyond what was there before it; with that of
            the buckets which ``DistributedDataParallel`` keeps.
        why_not: why it could not be measured; empty if it was.
    """

    target: str
    mode: str
    compiler: str
    microseconds: float = 0.0
    gigaflops: float = 0.0
    of_peak: float = 0.0
    peak_bytes: int = 0
    why_not: str = ""


def compiler(name: str) -> Callable[[Any], Any]:
    """Return what a compiler's name stands for: it makes, of a function or module, one that is called in its place.

    Args:
        name: ``"eager"``, ``"torch.compile"``, ``"thunder"``, or ``"thunder:llvm+torch"`` with a list of executors;
            where ``torchrun`` launched this process, one of :data:`thunder_benchmarks.parallel.MODES`, too.

    Raises:
        ValueError: it is none of these.
    """
    first, _, executors = name.partition(":")
    if name == "eager":
        return lambda function: function
    if name == "torch.compile":
        return torch.compile
    if first == "thunder":
        chosen = executors.split("+") if executors else None
        return lambda function: thunder.jit(function, executors=chosen)
    if name in PARALLEL:
        if not dist.is_initialized():
            raise ValueError(
                f"{name} runs on several processes: torchrun --nproc-per-node 2 -m thunder_benchmarks.targets"
            )
        return lambda module: PARALLEL[name](copy.deepcopy(module), axis_of(None, "processes"))
    raise ValueError(f"{name!r} is no compiler: there are eager, torch.compile, thunder and thunder:EXECUTOR+EXECUTOR")


def call(job: Job, function: Callable[..., Any], mode: str) -> Callable[[], Any]:
    """Return one call of what a compiler made of a job's target; one in training drops its gradients at the end."""
    if mode == "forward":

        def forward() -> None:
            with torch.no_grad():
                function(*job.args, **job.kwargs)

        return forward

    parameters = function.parameters() if isinstance(function, torch.nn.Module) else ()
    leaves = [x for x in (*parameters, *job.args) if isinstance(x, torch.Tensor) and x.requires_grad]

    def training() -> None:
        torch.autograd.backward(job.loss(function(*job.args, **job.kwargs)))
        for leaf in leaves:
            leaf.grad = None

    return training


def operations(job: Job, mode: str) -> int:
    """Return how many floating-point operations a call has, as PyTorch counts those of eager."""
    counter = FlopCounterMode(display=False)
    with counter:
        call(job, job.target, mode)()
    return int(counter.get_total_flops())


def peak_bytes(once: Callable[[], Any]) -> int:
    """Return the most memory of tensors that a call holds at once, beyond what is there before it.

    Args:
        once: the call. What it returns and what it leaves behind, such as gradients, count while it runs.
    """
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as told:
        once()
    held = most = 0
    told_by_allocator = [e for e in told.profiler.kineto_results.events() if e.name() == "[memory]"]
    for event in sorted(told_by_allocator, key=lambda e: e.start_ns()):
        held += event.nbytes()
        most = max(most, held)
    return most


def bucket_bytes(callee: Any) -> int:
    """Return the memory of the buckets that ``DistributedDataParallel`` allocates for a module; 0 for others."""
    if not isinstance(callee, DistributedDataParallel):
        return 0
    sizes = callee._get_ddp_logging_data()["bucket_sizes"]  # type: ignore[no-untyped-call]
    return sum([int(size) for size in sizes.split(",")])


def peak(size: int = 1024, rounds: int = 5) -> float:
    """Return how many floating-point operations a second a large matrix product reaches here."""
    a, b = torch.randn(size, size), torch.randn(size, size)
    with torch.no_grad():
        took = microseconds({"matmul": lambda: a @ b}, rounds, 0.1)
    return 2e6 * size**3 / took["matmul"]


def together(calls: dict[str, Callable[[], Any]], rounds: int, block: float) -> dict[str, float]:
    """Return the time of each call in µs by the wall clock, of all processes at once: the median of several blocks.

    The least would be chance where processes share cores: how their threads wait for each other differs at each step.

    Args:
        calls: by name, in the same order in all processes.
        rounds: how many blocks of each, in turns.
        block: seconds that a block takes, about.
    """

    def clock() -> float:
        dist.barrier()
        return time.perf_counter()

    def agreed(count: int) -> int:  # calls wait for each other: each process makes as many
        counts = torch.tensor(count)
        dist.broadcast(counts, 0)
        return int(counts)

    return {n: median(t) for n, t in in_turns(calls, rounds, block, clock=clock, agreed=agreed).items()}


def measure(
    targets: Iterable[Target], compilers: Iterable[str], mode: str, best: float, rounds: int = 5, block: float = 0.1,
    **sizes: Any,
) -> list[Measured]:  # fmt: skip
    """Measure targets, each with several compilers in turns: the least CPU time of several blocks of calls.

    Where ``torchrun`` launched several processes, all measure at once: the median by the wall clock.

    Args:
        targets: what is measured.
        compilers: by name; see :func:`compiler`.
        mode: one of :data:`MODES`.
        best: operations a second that a large matrix product reaches; see :func:`peak`.
        rounds: how many blocks of each.
        block: seconds that a block takes.
        sizes: set for those targets that have them.

    Returns:
        one for each target and compiler; what could not be made or run says why.

    Raises:
        ValueError: there is no such compiler or mode.
    """
    if mode not in MODES:
        raise ValueError(f"mode={mode!r} is none of {', '.join(MODES)}")
    makers = {name: compiler(name) for name in compilers}
    found: list[Measured] = []
    for one in targets:
        found += _measured(one, makers, mode, best, rounds, block, sizes)
    return found


def _measured(
    one: Target, makers: dict[str, Callable[[Any], Any]], mode: str, best: float, rounds: int, block: float, sizes: Any
) -> list[Measured]:
    try:
        job = one.job(**{name: size for name, size in sizes.items() if name in one.sizes})
    except NotInstalledError as error:
        return [Measured(one.name, mode, name, why_not=str(error)) for name in makers]
    count, calls, kept, refused = operations(job, mode), {}, {}, {}
    for name, make in makers.items():
        try:
            callee = make(job.target)
            calls[name] = call(job, callee, mode)
            calls[name]()
            kept[name] = bucket_bytes(callee)
        except Exception as error:  # a compiler that cannot do one is told of, beside those that can
            refused[name] = Measured(one.name, mode, name, why_not=f"{type(error).__name__}: {error}".splitlines()[0])
            calls.pop(name, None)
    with nullcontext() if mode == "training" else torch.no_grad():
        clock = together if dist.is_initialized() else microseconds
        took = clock(calls, rounds, block) if calls else {}
    made = {}
    for name, each in took.items():
        speed = 1e6 * count / each
        with nullcontext() if mode == "training" else torch.no_grad():
            held = kept[name] + peak_bytes(calls[name])
        made[name] = Measured(one.name, mode, name, each, speed / 1e9, speed / best, held)
    return [refused.get(name) or made[name] for name in makers]
