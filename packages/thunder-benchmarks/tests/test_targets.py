"""Targets: each makes what it says and runs compiled; the command measures them side by side."""

import importlib.util
import json
import xml.etree.ElementTree as ElementTree

import pytest
import torch

import thunder
from thunder_benchmarks.targets import TARGETS, Job, Measured, compiler, drawn, measure, operations, peak_bytes, target
from thunder_benchmarks.targets.__main__ import main

SMALL = {
    "rows": 4, "columns": 8, "classes": 6, "hidden": 8, "batch": 2, "heads": 2, "length": 8, "width": 16, "inner": 4,
    "layers": 1, "vocabulary": 32,
}  # fmt: skip


def small(name):
    one = TARGETS[name]
    return one.job(**{size: value for size, value in SMALL.items() if size in one.sizes})


@pytest.mark.parametrize("name", TARGETS)
def test_each_target_trains_compiled_as_eager_does(name):
    library = {"litgpt": "litgpt", "peft-lora": "peft"}.get(name, "transformers" if name[:3] == "hf-" else "torch")
    if importlib.util.find_spec(library) is None:
        with pytest.raises(RuntimeError, match=f"pip install {library}"):
            small(name)
        return
    job = small(name)
    leaves = [a for a in job.args if isinstance(a, torch.Tensor) and a.requires_grad]
    leaves += [p for p in getattr(job.target, "parameters", list)() if p.requires_grad]
    losses = [job.loss(f(*job.args, **job.kwargs)) for f in (job.target, thunder.jit(job.target, fallback="error"))]
    torch.testing.assert_close(losses[1], losses[0])
    gradients = [torch.autograd.grad(loss, leaves, allow_unused=True) for loss in losses]
    assert any(g is not None for g in gradients[0])
    torch.testing.assert_close(gradients[1], gradients[0])


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
    assert ElementTree.parse(picture).getroot().tag.endswith("svg")
    assert "of eager" in capsys.readouterr().out
    main(["--list"])
    assert "nanogpt batch=4" in capsys.readouterr().out


def test_the_picture_has_a_bar_for_each_and_says_what_was_not_measured():
    rows = [Measured("a<b", "forward", "eager", 10.0), Measured("a<b", "forward", "thunder", why_not="none")]
    text = drawn(rows)
    assert text.count("<rect") == 1 + 2 + 2 and "a&lt;b" in text and "not measured" in text
