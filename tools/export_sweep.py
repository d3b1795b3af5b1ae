"""Export a small GPT-2 with dynamic batch and length, and run it where Thunder is not: PyTorch, AOTInductor, ONNX.

python tools/export_sweep.py             saved, loaded and run by PyTorch alone in a process that cannot import Thunder
python tools/export_sweep.py --package   a package of AOTInductor is built and run there, too (a minute; needs g++)
python tools/export_sweep.py --onnx      ONNX runtime runs it, too (needs onnx, onnxscript and onnxruntime)
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch
from transformers import GPT2Config, GPT2LMHeadModel

from thunder_frontend import export

SIZES = ((2, 9), (3, 5), (4, 17))
PLAIN = {"aot_inductor.compile_wrapper_opt_level": "O0"}  # optimising what only calls kernels takes minutes
ALONE = """
import sys
class Refused:
    def find_spec(self, name, path=None, target=None):
        if name.partition('.')[0].startswith('thunder'):
            raise ImportError(f'{name} is not to be used here')
sys.meta_path.insert(0, Refused())
import torch
kind, folder = sys.argv[1:]
if kind == 'package':
    import torch._inductor.codecache  # PyTorch 2.10 needs it to load a package, and does not import it
    run = torch._inductor.aoti_load_package(f'{folder}/model_package.pt2')
elif kind == 'onnx':
    import onnxruntime
    session = onnxruntime.InferenceSession(f'{folder}/model.onnx')
    def run(ids):
        return torch.from_numpy(session.run(None, {session.get_inputs()[0].name: ids.numpy()})[0])
else:
    run = torch.export.load(f'{folder}/model.pt2').module()
worst = 0.0
for ids, expected in torch.load(f'{folder}/cases.pt', weights_only=True):
    with torch.no_grad():
        found = run(ids)
    worst = max(worst, float((found - expected).abs().max() / expected.abs().max()))
assert not any(name.partition('.')[0].startswith('thunder') for name in sys.modules)
print(worst)
"""


class Logits(torch.nn.Module):
    """A language model as a function of tokens.

    Args:
        model: of the transformers library.
    """

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Return the logits of tokens ``[batch, length]``."""
        logits: torch.Tensor = self.model(input_ids=ids, use_cache=False).logits
        return logits


def exported(folder: Path) -> torch.export.ExportedProgram:
    """Save an exported GPT-2, and what it computes for tokens of several sizes; return it."""
    torch.manual_seed(0)
    config = GPT2Config(
        n_layer=2, n_head=2, n_embd=32, vocab_size=101, n_positions=64, bos_token_id=0, eos_token_id=0, use_cache=False
    )
    model = Logits(GPT2LMHeadModel(config)).eval()
    open_sizes = {0: torch.export.Dim("batch", min=2, max=16), 1: torch.export.Dim("length", min=2, max=64)}
    cases = [torch.randint(0, 101, size) for size in SIZES]
    with torch.no_grad():
        program = export(model, (cases[0],), dynamic_shapes=(open_sizes,))
        torch.save([(ids, model(ids)) for ids in cases], folder / "cases.pt")
    torch.export.save(program, folder / "model.pt2")
    return program


def difference(kind: str, folder: Path) -> float:
    """Return by how much results differ, of the largest one, in a process that cannot import Thunder."""
    command = [sys.executable, "-c", ALONE, kind, str(folder)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[-1])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--package", action="store_true")
    parser.add_argument("--onnx", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        start = time.perf_counter()
        program = exported(folder)
        print(f"exported in {time.perf_counter() - start:.1f} s")
        kinds = ["exported"]
        if options.package:
            start = time.perf_counter()
            path = str(folder / "model_package.pt2")
            torch._inductor.aoti_compile_and_package(program, package_path=path, inductor_configs=PLAIN)
            print(f"package built in {time.perf_counter() - start:.1f} s")
            kinds.append("package")
        if options.onnx:
            torch.onnx.export(program, dynamo=True).save(folder / "model.onnx")  # type: ignore[union-attr]
            kinds.append("onnx")
        worst = {kind: difference(kind, folder) for kind in kinds}
    for kind, found in worst.items():
        print(f"{kind:10} runs without Thunder at {len(SIZES)} sizes, differs by {found:.1e}")
    return 1 if max(worst.values()) > 1e-4 else 0


if __name__ == "__main__":
    sys.exit(main())
