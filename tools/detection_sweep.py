"""Train and run detection models of torchvision under torch.compile(backend="thunder") and compare with eager.

    pip install torchvision
    python tools/detection_sweep.py              all
    python tools/detection_sweep.py fcos         some

Models are small, with random weights, in float64. One is right if its detections, its losses and all its gradients
are eager's. How many graphs dynamo found, and what of them was left to PyTorch, is told.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torchvision.models import detection

from thunder_fx import ThunderCompiler

TOLERANCE = 1e-7
SMALL: dict[str, Any] = {"weights": None, "weights_backbone": None, "num_classes": 5}
MODELS: dict[str, Callable[[], torch.nn.Module]] = {
    "ssdlite": lambda: detection.ssdlite320_mobilenet_v3_large(**SMALL),
    "fasterrcnn": lambda: detection.fasterrcnn_mobilenet_v3_large_320_fpn(**SMALL, min_size=96, max_size=128),
    "retinanet": lambda: detection.retinanet_resnet50_fpn(**SMALL, min_size=64, max_size=96),
    "fcos": lambda: detection.fcos_resnet50_fpn(**SMALL, min_size=64, max_size=96),
    "maskrcnn": lambda: detection.maskrcnn_resnet50_fpn(**SMALL, min_size=64, max_size=96),
}
STEPS = 2


def images() -> list[torch.Tensor]:
    """Return two images of different sizes."""
    return [torch.rand(3, 80, 100, dtype=torch.float64), torch.rand(3, 90, 70, dtype=torch.float64)]


def targets(given: Sequence[torch.Tensor]) -> list[dict[str, torch.Tensor]]:
    """Return what there is in the images: boxes, with labels and masks."""
    boxes = [[[5.0, 5.0, 40.0, 50.0], [20.0, 10.0, 60.0, 70.0]], [[8.0, 2.0, 50.0, 40.0]]]
    labels = [[1, 3], [2]]
    return [
        {
            "boxes": torch.tensor(b, dtype=torch.float64),
            "labels": torch.tensor(n),
            "masks": torch.ones(len(n), *image.shape[1:], dtype=torch.uint8),
        }
        for b, n, image in zip(boxes, labels, given, strict=True)
    ]


def seeded(model: Any, *args: Any) -> Any:
    """Call a model with the generator of random numbers as it is before each other call."""
    torch.manual_seed(2)
    return model(*copy.deepcopy(args))


def outcome(make: Callable[[], torch.nn.Module], backend: ThunderCompiler) -> str:
    """Return what is wrong with a model, or ``""``."""
    torch.manual_seed(0)
    eager = make().double().eval()
    model = copy.deepcopy(eager)
    compiled = torch.compile(model, backend=backend)
    given = images()
    with torch.no_grad():
        torch.testing.assert_close(seeded(compiled, given), seeded(eager, given), rtol=TOLERANCE, atol=TOLERANCE)
    eager.train()
    model.train()
    for _ in range(STEPS):
        losses = [seeded(run, given, targets(given)) for run in (compiled, eager)]
        torch.testing.assert_close(*losses, rtol=TOLERANCE, atol=TOLERANCE)
        for loss in losses:
            torch.autograd.backward(sum(loss.values()))
    largest = max([float(p.grad.abs().max()) for p in eager.parameters() if p.grad is not None])
    for (name, ours), other in zip(model.named_parameters(), eager.parameters(), strict=True):
        if (ours.grad is None) != (other.grad is None):
            return f"{name} has a gradient in one of them"
        if ours.grad is not None and not torch.allclose(ours.grad, other.grad, TOLERANCE, TOLERANCE * largest):
            return f"the gradient of {name} differs by {float((ours.grad - other.grad).abs().max()):.1e}"
    return ""


def main() -> int:
    wrong = 0
    for name in sys.argv[1:] or MODELS:
        torch._dynamo.reset()
        backend = ThunderCompiler()
        try:
            told = outcome(MODELS[name], backend)
        except Exception as error:
            told = f"{type(error).__name__}: {error}"
        wrong += bool(told)
        left = [part.reason for part in backend.parts if part.compiled is None]
        print(
            f"{name:12} {told or 'right'}; {len(backend.graphs)} graphs, {len(left)} parts left to PyTorch", flush=True
        )
        for reason in left:
            print(f"    {reason[:200]}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
