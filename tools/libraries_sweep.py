"""Run models and optimizers of other libraries eagerly and through thunder.jit, and compare results and gradients.

    pip install torchdiffeq torch_geometric torchao lightning-fabric diffusers torchvision
    python tools/libraries_sweep.py                 all of those that are installed
    python tools/libraries_sweep.py torchdiffeq     some

Says of each case whether it is as in eager, how many programs it took, and what ran in Python between them. What
differs is tried with PyTorch's kernels alone, too: scores that tie but for rounding come in another order. Exits with 1
if any differs with those.
"""

from __future__ import annotations

import argparse
import copy
import importlib
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn

import thunder
from thunder_frontend import compiled_function

Case = tuple[str, Callable[..., Any], tuple[Any, ...]]


class Field(nn.Module):
    """The right side of a differential equation."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, time: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """Return how fast ``y`` changes."""
        return self.linear(y).tanh()


class Solved(nn.Module):
    """Solves a differential equation.

    Args:
        solve: the solver.
        method: its method.
    """

    def __init__(self, solve: Any, method: str) -> None:
        super().__init__()
        self.field, self.solve, self.method = Field(), solve, method

    def forward(self, y: torch.Tensor) -> Any:
        """Return what becomes of ``y``."""
        return self.solve(self.field, y, torch.tensor([0.0, 0.5, 1.0]), method=self.method)[-1]


class Graphs(nn.Module):
    """Two convolutions on a graph.

    Args:
        convolution: their class.
    """

    def __init__(self, convolution: Any) -> None:
        super().__init__()
        self.first, self.second = convolution(4, 8), convolution(8, 4)

    def forward(self, x: torch.Tensor, edges: torch.Tensor) -> Any:
        """Return what comes of the nodes."""
        return self.second(self.first(x, edges).relu(), edges)


def torchdiffeq() -> Iterator[Case]:
    """Yield solvers with steps that are fixed and that depend on data, and the adjoint method."""
    library: Any = importlib.import_module("torchdiffeq")
    for name, solve, method in [
        ("rk4", library.odeint, "rk4"),
        ("dopri5", library.odeint, "dopri5"),
        ("adjoint", library.odeint_adjoint, "rk4"),
    ]:
        yield name, Solved(solve, method), (torch.randn(4, 3),)


def torch_geometric() -> Iterator[Case]:
    """Yield convolutions with edges as pairs, and as a sparse matrix."""
    library: Any = importlib.import_module("torch_geometric.nn")
    x, edges = torch.randn(5, 4), torch.tensor([[0, 1, 2, 3, 4, 0], [1, 2, 3, 4, 0, 2]])
    for name in ("GCNConv", "GATConv", "SAGEConv"):
        yield name, Graphs(getattr(library, name)), (x, edges)
    matrix = torch.sparse_coo_tensor(edges, torch.ones(6), (5, 5)).coalesce().t()
    yield "GCNConv, sparse", Graphs(library.GCNConv), (x, matrix.to_sparse_csr())


def torchao() -> Iterator[Case]:
    """Yield linear layers with weights in eight bits."""
    library: Any = importlib.import_module("torchao.quantization")
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 8)).requires_grad_(False)
    library.quantize_(model, library.Int8WeightOnlyConfig())
    yield "int8 weights", model, (torch.randn(2, 64),)


def lightning_fabric() -> Iterator[Case]:
    """Yield a module that Fabric wraps."""
    library: Any = importlib.import_module("lightning_fabric")
    fabric = library.Fabric(accelerator="cpu", devices=1)
    fabric.launch()
    yield "setup", fabric.setup(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 4))), (torch.randn(3, 4),)


def diffusers() -> Iterator[Case]:
    """Yield a small U-Net."""
    library: Any = importlib.import_module("diffusers")
    model = library.UNet2DModel(
        sample_size=8, layers_per_block=1, block_out_channels=(8, 16), norm_num_groups=4,
        down_block_types=("DownBlock2D", "AttnDownBlock2D"), up_block_types=("AttnUpBlock2D", "UpBlock2D"),
    )  # fmt: skip
    yield "UNet2DModel", model, (torch.randn(1, 3, 8, 8), 3)


def torchvision() -> Iterator[Case]:
    """Yield models that find things in images: a step of training, and what they find; in float64, for rounding."""
    library: Any = importlib.import_module("torchvision.models.detection")
    sizes, images = {"min_size": 64, "max_size": 96}, [torch.rand(3, 64, 80), torch.rand(3, 72, 64)]
    boxes = torch.tensor([[4.0, 4.0, 40.0, 50.0], [20.0, 8.0, 60.0, 60.0]])
    images = [image.double() for image in images]
    truth = [{"boxes": boxes[: i + 1].double(), "labels": torch.tensor([1, 2])[: i + 1]} for i in range(2)]
    for each in truth:
        each["masks"] = torch.ones(len(each["boxes"]), 72, 80, dtype=torch.uint8)
    truth = [{**t, "masks": t["masks"][:, : i.shape[1], : i.shape[2]]} for t, i in zip(truth, images, strict=True)]
    for name, more in [
        ("retinanet_resnet50_fpn", sizes), ("fcos_resnet50_fpn", sizes), ("ssdlite320_mobilenet_v3_large", {}),
        ("fasterrcnn_mobilenet_v3_large_320_fpn", sizes), ("maskrcnn_resnet50_fpn", sizes),
    ]:  # fmt: skip
        model = getattr(library, name)(weights=None, weights_backbone=None, num_classes=3, **more).double()
        if hasattr(model, "head"):  # else scores are so alike that rounding tells their order
            for parameter in model.head.classification_head.parameters():
                nn.init.normal_(parameter, std=0.5)
        yield f"{name}, training", model, (images, truth)
        yield f"{name}, evaluation", model.eval(), (images,)


def optimizers() -> Iterator[Case]:
    """Yield steps of training, optimizer included."""
    for name, options in [
        ("AdamW", {"fused": True}), ("SGD", {"fused": True, "lr": 0.01}), ("RAdam", {}), ("ASGD", {}), ("NAdam", {}),
        ("Adafactor", {}), ("LBFGS", {"max_iter": 4}), ("LBFGS", {"max_iter": 3, "line_search_fn": "strong_wolfe"}),
    ]:  # fmt: skip
        yield f"{name} {options}", Step(name, options), (torch.randn(8, 4),)


class Step:
    """One step of training.

    Args:
        name: of the optimizer.
        options: of it.
    """

    def __init__(self, name: str, options: dict[str, Any]) -> None:
        self.name, self.options = name, options
        self.model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
        self.optimizer: Any = getattr(torch.optim, name)(self.model.parameters(), **options)

    def __deepcopy__(self, memo: Any) -> Step:
        made = Step(self.name, self.options)  # as a copy of an optimizer need not work
        made.model.load_state_dict(self.model.state_dict())
        return made

    def __call__(self, x: torch.Tensor) -> Any:
        """Return the loss, and the parameters after the step."""

        def closure() -> torch.Tensor:
            self.optimizer.zero_grad()
            loss = self.model(x).square().mean()
            loss.backward()
            return loss

        return self.optimizer.step(closure), [p.detach().clone() for p in self.model.parameters()]


LIBRARIES: dict[str, Callable[[], Iterator[Case]]] = {
    f.__name__: f for f in (torchdiffeq, torch_geometric, torchao, lightning_fabric, diffusers, torchvision, optimizers)
}


def outcome(function: Callable[..., Any], module: Any, args: tuple[Any, ...]) -> Any:
    """Return what two calls return, and the gradients that they leave."""
    results = []
    for seed in range(2):
        torch.manual_seed(seed)
        found = function(*args)
        results.append(found.sample if hasattr(found, "sample") else found)
        flowing = [t for t in torch.utils._pytree.tree_leaves(results[-1]) if isinstance(t, torch.Tensor)]
        if isinstance(module, nn.Module) and any([t.requires_grad for t in flowing]):
            sum([t.sum() for t in flowing if t.requires_grad]).backward()  # type: ignore[union-attr]
    return results, [p.grad for p in module.parameters()] if isinstance(module, nn.Module) else []


def compared(function: Any, args: tuple[Any, ...]) -> str:
    """Return how a case does, as a text that begins with ``"right"`` if it is as in eager."""
    if isinstance(function, nn.Module):
        function.zero_grad()
    eager, other = copy.deepcopy(function), copy.deepcopy(function)
    expected = outcome(eager, eager, args)
    try:
        return "right, " + told(thunder.jit(function), function, args, expected)
    except AssertionError as error:
        reason = f"{type(error).__name__}: {error}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    try:
        compiled = thunder.jit(other, executors=["torch"])
        return "right with PyTorch's kernels, " + told(compiled, other, args, expected)
    except Exception:  # the first difference is what matters
        return reason


def told(compiled: Any, module: Any, args: tuple[Any, ...], expected: Any) -> str:
    """Return how many programs a case took and what ran in Python; raise where it is not as expected."""
    torch.testing.assert_close(outcome(compiled, module, args), expected, rtol=1e-4, atol=1e-5)
    found = compiled_function(compiled)
    programs = sum([len(part.compiled) for part in found.parts()])
    split = sorted({part.what for part in found.split_off()})
    return f"{programs} programs" + (f"; in Python: {', '.join(split)}" if split else "")


def main() -> int:
    """Run the cases."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("libraries", nargs="*", choices=[*LIBRARIES, []], help="which; all by default")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    wrong = 0
    for library in arguments.libraries or LIBRARIES:
        torch.manual_seed(0)
        try:
            for name, function, args in LIBRARIES[library]():
                text = compared(function, args)
                wrong += not text.startswith("right")
                print(f"{library}, {name}: {text}", flush=True)
        except ImportError as error:
            print(f"{library}: not installed ({error})", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
