"""Vector instructions, which Inductor tries in each empty cache unless it is told that they work."""

import os
import stat
import subprocess
import sys

import pytest
import torch

from thunder_executors_inductor import vectors
from thunder_ir import Tensor, trace_of
from thunder_torch import torch_language

PROGRAM = """
import torch
from thunder_executors import to_callable
from thunder_ir import Tensor, trace_of
from thunder_torch import torch_language

trace = trace_of(lambda x: (x * 3).exp() + x, Tensor((64, 64)), language=torch_language)
run = to_callable(trace, ["inductor", "torch"])
x = torch.randn(64, 64)
torch.testing.assert_close(run(x), (x * 3).exp() + x)
"""


@pytest.fixture
def afresh():
    """Ask anew whether they work, and forget the answer."""
    vectors.known.cache_clear()
    yield
    vectors.known.cache_clear()


def test_in_an_empty_cache_kernels_have_vectors_and_no_trial_of_them_is_compiled(tmp_path):
    if not vectors.known():
        pytest.skip("PyTorch's library or the compiler is without the vector instructions of this processor")
    own = {name: text for name, text in os.environ.items() if name != "TORCHINDUCTOR_VEC_ISA_OK"}
    own["TORCHINDUCTOR_CACHE_DIR"] = str(tmp_path)
    subprocess.run([sys.executable, "-c", PROGRAM], env=own, check=True)
    sources = [path.read_text(encoding="utf-8") for path in tmp_path.rglob("*.cpp")]
    assert any(["at::vec::Vectorized<float>" in text for text in sources])
    assert not any(["__avx_chk_kernel" in text for text in sources])


def doubled(device):
    return trace_of(lambda x: x * 2, Tensor((4,), device=device), language=torch_language)


def test_inductor_is_told_for_programs_on_a_cpu_and_not_against_what_the_user_says(monkeypatch):
    monkeypatch.setattr(vectors, "known", lambda: True)
    monkeypatch.delenv("TORCHINDUCTOR_VEC_ISA_OK", raising=False)
    assert vectors.settings_for(doubled("cpu")) == {"cpp.vec_isa_ok": True}
    assert vectors.settings_for(doubled("cuda:0")) == {}
    monkeypatch.setenv("TORCHINDUCTOR_VEC_ISA_OK", "0")
    assert vectors.settings_for(doubled("cpu")) == {}


def test_inductor_tries_where_the_library_uses_others_than_the_processor_has(monkeypatch, afresh):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx2": True, "avx512_f": True}, raising=False)
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "AVX2")
    assert not vectors.known()


@pytest.mark.parametrize("status", [0, 1])
def test_inductor_tries_where_the_compiler_does_not_know_them(monkeypatch, afresh, tmp_path, status):
    compiler = tmp_path / "compiler"
    compiler.write_text(f"#!/bin/sh\nexit {status}\n", encoding="utf-8")
    compiler.chmod(compiler.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx2": True}, raising=False)
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "AVX2")
    monkeypatch.setattr(vectors, "get_cpp_compiler", lambda: str(compiler))
    assert vectors.known() is (status == 0)


def test_inductor_tries_where_pytorch_does_not_tell_what_the_processor_has(monkeypatch, afresh):
    monkeypatch.delattr(torch.cpu, "get_capabilities", raising=False)
    assert not vectors.known()
