"""The rules against the library itself, without a device; in processes of their own, as what they load stays."""

import json
import subprocess
import sys

import pytest

from thunder_executors_cudnn.offline.devices import CAPABILITIES


def asked(*words):
    return subprocess.run(
        [sys.executable, "-m", "thunder_executors_cudnn.offline", *words], capture_output=True, text=True, check=False
    )


@pytest.mark.slow
def test_every_answer_of_the_library_is_foreseen(tmp_path):
    out = tmp_path / "verdicts.json"
    done = asked("--count", "200", "--built", "3", "--out", str(out))
    assert done.returncode == 0, done.stderr[-4000:]
    verdicts = json.loads(out.read_text())
    assert len(verdicts) == 200 * len(CAPABILITIES)
    outcomes = {
        capability: {v["outcome"] for v in verdicts if v["capability"] == capability} for capability in CAPABILITIES
    }
    assert all({"built", "planned", "declined"} <= found for found in outcomes.values())


def test_the_librarys_own_key_of_a_graph_leaves_the_architecture_out():
    program = """
import tempfile; from pathlib import Path
from thunder_executors_cudnn.offline import devices, driver
from thunder_executors_cudnn.plans import Plans
from thunder_executors_cudnn.problems import Norm
with tempfile.TemporaryDirectory() as folder: driver.load(Path(folder))
import cudnn
plans = Plans(cudnn, build=False)
found = [plans.of(Norm(64, 128, "float16", True, True, True), devices.described(c)) for c in (80, 90)]
assert found[0] is not found[1] and plans.made == 2
assert found[0].graph.key() == found[1].graph.key()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]


def test_the_library_has_no_engine_for_rotary_embedding():
    """Hence the executor takes none; where this fails, it could."""
    program = """
import tempfile; from pathlib import Path
from thunder_executors_cudnn.offline import devices, driver
with tempfile.TemporaryDirectory() as folder: driver.load(Path(folder))
import cudnn
types = cudnn.data_type
for capability in devices.CAPABILITIES:
    target = devices.described(capability)
    for dtype in (types.HALF, types.BFLOAT16):
        graph = cudnn.pygraph(
            io_data_type=dtype, intermediate_data_type=types.FLOAT, compute_data_type=types.FLOAT,
            device_property=cudnn.create_device_properties(target.properties), sm_version=capability,
        )
        x = graph.tensor(dim=[128, 2, 8, 64], stride=[1024, 512, 64, 1], data_type=dtype)
        angles = graph.tensor(dim=[128, 1, 1, 64], stride=[64, 64, 64, 1], data_type=types.FLOAT)
        y = graph.rope(x, angles, rope_dim=64)
        y.set_output(True).set_data_type(dtype).set_dim([128, 2, 8, 64]).set_stride([1024, 512, 64, 1])
        graph.validate()
        graph.build_operation_graph()
        try:
            graph.create_execution_plans([cudnn.heur_mode.A, cudnn.heur_mode.FALLBACK])
            graph.check_support()
        except cudnn.cudnnGraphNotSupportedError as error:
            print(capability, str(error).splitlines()[0][:200])
        else:
            raise SystemExit(f"there is one for sm_{capability}")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    lines = done.stdout.splitlines()
    assert len(lines) == 2 * len(CAPABILITIES) and all("No valid engine configs" in line for line in lines)
