"""An exported model runs where Thunder is not; tools/export_sweep.py does the same as a command."""

import shutil
import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))
export_sweep = pytest.importorskip("export_sweep")  # which needs models of the transformers library


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    folder = tmp_path_factory.mktemp("exported")
    return export_sweep.exported(folder), folder


def test_a_saved_gpt2_of_any_batch_and_length_is_run_by_pytorch_alone(exported):
    _, folder = exported
    assert export_sweep.difference("exported", folder) < 1e-5


def test_onnx_runtime_runs_it(exported):
    for needed in ("onnx", "onnxscript", "onnxruntime"):
        pytest.importorskip(needed)
    program, folder = exported
    torch.onnx.export(program, dynamo=True).save(folder / "model.onnx")
    assert export_sweep.difference("onnx", folder) < 1e-4


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="Inductor needs a C++ compiler on a CPU")
def test_a_package_of_aotinductor_is_built_and_run(exported):
    program, folder = exported
    torch._inductor.aoti_compile_and_package(program, package_path=str(folder / "model_package.pt2"))
    assert export_sweep.difference("package", folder) < 1e-4
