"""The main job runs, and trains as eager does."""

import subprocess
import sys

import torch

from thunder_benchmarks import GPT, GPTConfig, python_documentation


def test_the_demonstration_trains_as_eager_does(tmp_path):
    command = [
        sys.executable,
        "-m",
        "thunder_benchmarks.demo",
        "--steps",
        "6",
        "--batch",
        "2",
        "--traces",
        str(tmp_path),
    ]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert {p.name for p in tmp_path.iterdir()} >= {"prologue_0.py", "forward_0.py", "backward_0.py", "epilogue_0.py"}


def test_the_demonstration_trains_sharded_as_one_process_does():
    command = [sys.executable, "-m", "thunder_benchmarks.demo", "--distributed", "2", "--steps", "3", "--batch", "2"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "A GPT sharded over 2 processes" in done.stdout and "is waiting for others" in done.stdout


def test_batches_are_shifted_by_one():
    text = python_documentation(limit=5000)
    tokens, targets = text.batch(3, 8, torch.Generator().manual_seed(0))
    assert torch.equal(tokens[:, 1:], targets[:, :-1])


def test_the_model_predicts_each_character_of_the_alphabet():
    logits, loss = GPT(GPTConfig(10, block=4, layers=1, heads=1, width=8))(torch.zeros(2, 4, dtype=torch.int64))
    assert logits.shape == (2, 4, 10)
    assert loss is None
