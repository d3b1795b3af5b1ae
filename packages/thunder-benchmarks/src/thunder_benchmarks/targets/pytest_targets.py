"""Targets under the names that Lightning Thunder's ``targets.py`` gives its own, for pytest.

pytest --pyargs thunder_benchmarks.targets.pytest_targets -k "test_litgpt_gelu and forward"
THUNDER_BENCHMARK_SET="layers=2 batch=1" pytest --pyargs thunder_benchmarks.targets.pytest_targets -k test_nanogpt_gpt2

Where pytest-benchmark is installed, its fixture ``benchmark`` measures and its options hold; else the one below does,
and prints a table in the end. ``THUNDER_BENCHMARK_DEVICE`` says where tensors are, the CPU if not given.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from importlib.util import find_spec
from typing import Any

import torch
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from thunder_benchmarks.targets import TARGETS, Job, compiler
from thunder_benchmarks.targets.cases import NotInstalledError
from thunder_executors import get_executor
from thunder_interpreter import interpret

try:
    import pytest
except ImportError as error:
    raise ImportError("these targets need pytest: pip install 'thunder-benchmarks[pytest]'") from error

DEVICE = os.environ.get("THUNDER_BENCHMARK_DEVICE", "cpu")
GPT2 = {"layers": 12, "heads": 12, "width": 768, "vocabulary": 50304, "length": 1024}
GPT2_XL = {**GPT2, "layers": 48, "heads": 25, "width": 1600}
SECONDS = 0.2
"""How long a measurement of the fixture below goes on, at least."""

if find_spec("pytest_benchmark") is None:

    @pytest.fixture(scope="session")
    def measured(request: pytest.FixtureRequest) -> Iterator[dict[str, list[float]]]:
        """Seconds of the calls of each test; printed when the last one is over."""
        found: dict[str, list[float]] = {}
        yield found
        table = Table("test", "least ms", "median ms", "calls")
        for name, seconds in found.items():
            middle = sorted(seconds)[len(seconds) // 2]
            table.add_row(escape(name), f"{1e3 * min(seconds):.3f}", f"{1e3 * middle:.3f}", str(len(seconds)))
        with request.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
            Console(width=120).print("\n", table)

    @pytest.fixture
    def benchmark(request: pytest.FixtureRequest, measured: dict[str, list[float]]) -> Callable[..., None]:
        """Call a function again and again, and note the seconds of each call; the first ones do not count."""

        def measure(function: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
            for _ in range(2):
                function(*args, **kwargs)
            seconds = measured.setdefault(request.node.name, [])
            end = time.perf_counter() + SECONDS
            while len(seconds) < 3 or time.perf_counter() < end:
                start = time.perf_counter()
                function(*args, **kwargs)
                seconds.append(time.perf_counter() - start)

        return measure


def job_of(target: str, **sizes: Any) -> Job:
    """Return what a target measures, of these sizes or those that ``THUNDER_BENCHMARK_SET`` says."""
    given = dict([pair.split("=") for pair in os.environ.get("THUNDER_BENCHMARK_SET", "").split()])
    sizes |= {name: int(value) for name, value in given.items() if name in TARGETS[target].sizes}
    try:
        with torch.device(DEVICE):
            job = TARGETS[target].job(**sizes)
    except NotInstalledError as error:
        pytest.skip(str(error))
    if isinstance(job.target, torch.nn.Module):
        job.target.to(DEVICE)
    return job


def finished(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that is over when its kernels are."""

    def run(*args: Any, **kwargs: Any) -> None:
        function(*args, **kwargs)
        if DEVICE != "cpu":
            torch.accelerator.synchronize()

    return run


def run(benchmark: Callable[..., None], executor: str, compute_type: str, job: Job) -> None:
    """Measure a job: without gradients, the forward part of training, or the backward part alone."""
    function = compiler(executor)(job.target)
    if compute_type == "backward":
        loss = job.loss(function(*job.args, **job.kwargs))
        benchmark(finished(lambda: torch.autograd.backward(loss, retain_graph=True)))
        return
    with torch.no_grad() if compute_type == "inference" else nullcontext():
        benchmark(finished(function), *job.args, **job.kwargs)


executors = pytest.mark.parametrize("executor", ["eager", "torch.compile", "thunder"])
compute_types = pytest.mark.parametrize("compute_type", ["inference", "forward", "backward"])
batches = pytest.mark.parametrize("bs", [1, 2], ids=["bs1", "bs2"])


@executors
@compute_types
@batches
def test_litgpt_gelu(benchmark: Any, executor: str, compute_type: str, bs: int) -> None:
    run(benchmark, executor, compute_type, job_of("gelu", rows=512 * bs, columns=4096))


@executors
@compute_types
@batches
def test_litgpt_swiglu(benchmark: Any, executor: str, compute_type: str, bs: int) -> None:
    run(benchmark, executor, compute_type, job_of("swiglu", rows=128 * bs, columns=512, hidden=1376))


@executors
@compute_types
def test_batch_norm(benchmark: Any, executor: str, compute_type: str) -> None:
    run(benchmark, executor, compute_type, job_of("batch-norm"))


@executors
@compute_types
def test_nanogpt_cross_entropy(benchmark: Any, executor: str, compute_type: str) -> None:
    run(benchmark, executor, compute_type, job_of("cross-entropy", rows=256, classes=50304))


@executors
@compute_types
def test_nanogpt_layer_norm(benchmark: Any, executor: str, compute_type: str) -> None:
    run(benchmark, executor, compute_type, job_of("layer-norm", rows=1024, columns=1600))


@executors
@compute_types
@batches
def test_litgpt_sdpa(benchmark: Any, executor: str, compute_type: str, bs: int) -> None:
    run(benchmark, executor, compute_type, job_of("attention", batch=bs, heads=8, length=512))


@executors
@compute_types
def test_nanogpt_gpt2(benchmark: Any, executor: str, compute_type: str) -> None:
    run(benchmark, executor, compute_type, job_of("nanogpt", **{"batch": 1, **GPT2}))


@executors
@compute_types
def test_nanogpt_gpt2xl(benchmark: Any, executor: str, compute_type: str) -> None:
    run(benchmark, executor, compute_type, job_of("nanogpt", **{"batch": 1, **GPT2_XL}))


@executors
@compute_types
def test_llama_2_7b_hf(benchmark: Any, executor: str, compute_type: str) -> None:
    run(benchmark, executor, compute_type, job_of("litgpt", config="Llama-2-7b-hf", batch=1))


@pytest.mark.parametrize("executor", ["thunder:transformer_engine+torch"], ids=["thunder+transformerengine"])
@compute_types
@pytest.mark.parametrize("config", ["Llama-2-7b-hf", "Llama-3-8B", "Mistral-7B-v0.1", "phi-2"])
def test_transformer_engine_executor_regression(benchmark: Any, executor: str, compute_type: str, config: str) -> None:
    """Five layers of each, which is enough to see that time or memory grew."""
    found = get_executor("transformer_engine")
    missing = "its package is not installed" if found is None else found.missing()
    if missing is not None:
        pytest.skip(missing)
    run(benchmark, executor, compute_type, job_of("litgpt", config=config, layers=5, batch=1))


@executors
@compute_types
def test_llama2_mlp_7b(benchmark: Any, executor: str, compute_type: str) -> None:
    run(benchmark, executor, compute_type, job_of("swiglu", rows=128, columns=4096, hidden=11008))


@executors
@compute_types
def test_llama2_causal_self_attention_7b(benchmark: Any, executor: str, compute_type: str) -> None:
    run(benchmark, executor, compute_type, job_of("self-attention", width=4096, heads=32, length=128))


@executors
@compute_types
def test_llama2_7b_rmsnorm_grad(benchmark: Any, executor: str, compute_type: str) -> None:
    run(benchmark, executor, compute_type, job_of("rms-norm", columns=4096))


@executors
@compute_types
@batches
def test_litgpt_qkv_split_rope(benchmark: Any, executor: str, compute_type: str, bs: int) -> None:
    run(benchmark, executor, compute_type, job_of("rope", batch=bs, heads=8, length=512))


@executors
@compute_types
def test_resnet50(benchmark: Any, executor: str, compute_type: str) -> None:
    run(benchmark, executor, compute_type, job_of("resnet50"))


@pytest.mark.parametrize("executor", ["python", "interpreter"])
def test_interpreter_nanogpt_gpt2_fwd(benchmark: Any, executor: str) -> None:
    job = job_of("nanogpt", **{"batch": 1, **GPT2, "length": 64})
    function = interpret(job.target) if executor == "interpreter" else job.target
    with torch.no_grad():
        benchmark(finished(function), *job.args, **job.kwargs)
