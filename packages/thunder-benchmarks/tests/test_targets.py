"""Targets: each makes what it says and runs compiled; the command measures them side by side."""

import importlib.util
import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import pytest
import torch

import thunder
from thunder_benchmarks.targets import TARGETS, Job, Measured, compiler, drawn, measure, operations, peak_bytes, target
from thunder_benchmarks.targets.__main__ import main

SMALL = {
    "rows": 4, "columns": 8, "classes": 6, "hidden": 8, "batch": 2, "heads": 2, "length": 8, "width": 16, "inner": 4,
    "layers": 1, "vocabulary": 32, "channels": 3, "pixels": 32,
}  # fmt: skip
LARGER = ("hf-gpt2", "hf-llama", "resnet50")
LARGER_BATCH = {"resnet50": 32, "retinanet": 64}
LIBRARIES = {"litgpt": "litgpt", "peft-lora": "peft", "detr": "torchvision", "retinanet": "torchvision"}


def small(name):
    one = TARGETS[name]
    return one.job(**{size: value for size, value in SMALL.items() if size in one.sizes})


def in_double(job):
    def double(value):
        return value.double() if isinstance(value, torch.Tensor) and value.is_floating_point() else value

    args, kwargs = torch.utils._pytree.tree_map(double, (job.args, job.kwargs))
    return replace(job, target=job.target.double(), args=args, kwargs=kwargs)


@pytest.mark.parametrize("name", TARGETS)
def test_each_target_trains_compiled_as_eager_does(name):
    library = LIBRARIES.get(name, "transformers" if name in LARGER else "torch")
    if importlib.util.find_spec(library) is None:
        with pytest.raises(RuntimeError, match=f"pip install {library}"):
            small(name)
        return
    job = small(name)
    if name in LARGER_BATCH:  # norms of two elements make its gradients of rounding, eager's too
        job = in_double(TARGETS[name].job(batch=8, pixels=LARGER_BATCH[name]))
    leaves = [a for a in job.args if isinstance(a, torch.Tensor) and a.requires_grad]
    leaves += [p for p in getattr(job.target, "parameters", list)() if p.requires_grad]
    losses, gradients = [], []
    fallback = "split" if name in ("detr", "retinanet") else "error"  # SciPy matches boxes; how many there are varies
    for function in (job.target, thunder.jit(job.target, fallback=fallback)):
        losses.append(job.loss(function(*job.args, **job.kwargs)))
        gradients.append(torch.autograd.grad(losses[-1], leaves, allow_unused=True))
    tolerance = {"rtol": 1e-3, "atol": 1e-3} if name == "detr" else {}  # it computes in float32
    torch.testing.assert_close(losses[1], losses[0], **tolerance)
    assert any(g is not None for g in gradients[0])
    torch.testing.assert_close(gradients[1], gradients[0], **tolerance)


def test_operations_are_those_of_matrix_products():
    job = TARGETS["einsum"].job(batch=2, rows=3, inner=4, columns=5)
    assert operations(job, "forward") == 2 * 2 * 3 * 4 * 5
    assert operations(job, "training") == 3 * operations(job, "forward")


def test_peak_memory_is_what_tensors_hold_at_once():
    def run():
        a = torch.ones(256, 256)
        b = (a * 2).sum()
        del a
        return torch.ones(128, 128) + b

    size = 256 * 256 * 4
    run()
    assert 2 * size <= peak_bytes(run) <= 2 * size + 1024
    assert peak_bytes(lambda: None) == 0


def test_compilers_stand_side_by_side_and_what_cannot_run_says_why():
    name = "a target of this test"
    target(name, rows=2)(lambda rows: Job(torch.sin, (torch.ones(rows),)))
    compilers = ["eager", "thunder:torch", "thunder:nobody"]
    try:
        found = measure([TARGETS["gelu"], TARGETS[name]], compilers, "forward", 1e9, 1, 0.001, rows=3)
        with pytest.raises(ValueError, match="already"):
            target(name)(lambda: None)
    finally:
        del TARGETS[name]
    assert [(m.target, m.compiler) for m in found] == [(t, c) for t in ("gelu", name) for c in compilers]
    assert [m.microseconds > 0 for m in found] == [True, True, False] * 2
    assert "nobody" in found[2].why_not and not found[1].why_not


def test_what_does_not_exist_is_refused():
    with pytest.raises(ValueError, match="'fast' is no compiler"):
        compiler("fast")
    with pytest.raises(ValueError, match="softmax has no layers; it has rows, columns"):
        TARGETS["softmax"].job(layers=3)
    with pytest.raises(ValueError, match="mode='both'"):
        measure([], [], "both", 1.0)
    with pytest.raises(SystemExit):
        main(["no-such-target"])
    with pytest.raises(SystemExit):
        main(["softmax", "--set", "layers=2"])


def test_the_command_writes_json_and_a_picture(tmp_path, capsys):
    data, picture = tmp_path / "found.json", tmp_path / "found.svg"
    words = "softmax --compilers eager thunder:torch --set rows=4 columns=8 --rounds 1 --block 0.001 --mode training"
    found = main([*words.split(), "--json", str(data), "--picture", str(picture)])
    read = json.loads(data.read_text())
    assert [m["compiler"] for m in read["measured"]] == ["eager", "thunder:torch"] and read["peak_gigaflops"] > 0
    assert found[1].microseconds == read["measured"][1]["microseconds"]
    assert f"PyTorch {torch.__version__}" in read["circumstances"][1] and " cores, " in picture.read_text()
    assert ElementTree.parse(picture).getroot().tag.endswith("svg")
    assert "of eager" in capsys.readouterr().out
    main(["--list"])
    assert "nanogpt batch=4" in capsys.readouterr().out


TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]


def test_on_several_processes_each_measures_and_the_first_tells(tmp_path):
    data = tmp_path / "found.json"
    compilers = ["eager", "torch-ddp", "ddp", "torch-fully-shard", "fsdp"]
    sizes = {"layers": 1, "width": 16, "length": 8, "batch": 1, "vocabulary": 16}
    words = ["nanogpt", "--mode", "training", "--rounds", "1", "--block", "0.001", "--set"]
    words += [f"{name}={size}" for name, size in sizes.items()]
    command = [*TORCHRUN, "-m", "thunder_benchmarks.targets", *words, "--json", str(data)]
    found = subprocess.run([*command, "--compilers", *compilers], capture_output=True, text=True, timeout=600)
    assert found.returncode == 0, found.stderr
    assert [(m["compiler"], m["why_not"]) for m in json.loads(data.read_text())["measured"]] == [
        (name, "") for name in compilers
    ]
    assert found.stdout.count("2 processes") == 1
    eager, replicated, *_ = [m["peak_bytes"] for m in json.loads(data.read_text())["measured"]]
    buckets = sum([p.nbytes for p in TARGETS["nanogpt"].job(**sizes).target.parameters()])
    assert replicated >= eager + buckets
    with pytest.raises(ValueError, match="torchrun"):
        compiler("ddp")


def test_the_memory_of_sharded_steps_is_compared_with_that_of_fully_shard():
    sizes = "nanogpt:layers=4,heads=8,width=256,vocabulary=512,length=64,batch=4"
    command = [*TORCHRUN, "--standalone", "-m", "thunder_benchmarks.parallel_memory", sizes]
    found = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert found.returncode == 0, found.stderr
    (row,) = [line.strip("|").split("|") for line in found.stdout.splitlines() if sizes in line]
    kept, theirs, ours, ratio = map(float, row[1:])
    assert 0 < kept < ours < theirs
    assert ratio == pytest.approx(ours / theirs, abs=0.02)


def test_steps_of_processes_are_measured_beside_those_of_the_simulator(tmp_path):
    data = tmp_path / "found.json"
    words = "--ways ddp fsdp-zero3 --rounds 2 --set layers=2 heads=2 width=16 length=8 batch=1 vocabulary=16"
    command = [*TORCHRUN, "-m", "thunder_benchmarks.simulated", *words.split(), "--json", str(data)]
    found = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert found.returncode == 0, found.stderr
    rows = json.loads(data.read_text())
    assert [row["way"] for row in rows] == ["ddp", "fsdp-zero3"] and "| 2 | ddp |" in found.stdout
    assert all([min(row["simulated"], row["computing"], row["seconds"]) > 0 for row in rows])


def test_pytest_runs_them_under_the_peers_names(tmp_path):
    wanted = "(test_litgpt_gelu and bs1 or test_nanogpt_gpt2 or test_interpreter) and not compile and not gpt2xl"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--pyargs"]
    found = subprocess.run(
        [*command, "thunder_benchmarks.targets.pytest_targets", "-k", wanted],
        env={**os.environ, "THUNDER_BENCHMARK_SET": "layers=1 rows=4 columns=8 width=24 length=8 vocabulary=16"},
        cwd=tmp_path, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert found.returncode == 0, found.stdout
    assert "14 passed" in found.stdout
    for name in ("test_litgpt_gelu[bs1-backward-thunder]", "test_interpreter_nanogpt_gpt2_fwd[interpreter]"):
        assert name in found.stdout


def test_the_picture_has_a_bar_for_each_and_says_what_was_not_measured():
    rows = [Measured("a<b", "forward", "eager", 10.0), Measured("a<b", "forward", "thunder", why_not="none")]
    text = drawn(rows)
    assert text.count("<rect") == 2 + 2 and "a&lt;b" in text and "not measured" in text
