"""Runs every module of torch.nn, as PyTorch's own tests construct and call it, eagerly and compiled, side by side.

python tools/modules_sweep.py                       all of them (minutes)
python tools/modules_sweep.py nn.LSTM nn.CTCLoss    those whose names contain one of these
python tools/modules_sweep.py --first 1             the first input of each only
python tools/modules_sweep.py --table docs/modules.md

Each input is run twice, in evaluation and in training, with and without gradients. Right is: outputs within 1e-5 of the
largest value, with eager's dtypes and strides; the module's state likewise; gradients within 1e-4 of the largest; one
program for both calls.
"""

from __future__ import annotations

import argparse
import copy
import itertools
import sys
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from compare_models import FORWARD, GRADIENT, Difference, EagerError, compare, difference
from torch.testing._internal.common_modules import ModuleInfo, module_db
from torch.utils import _pytree as pytree

import thunder
from thunder_testing import sweeps


@dataclass
class Row:
    """What became of one module.

    Args:
        name: of the module.
        right: how many cases came out as eager's.
        wrong: what was wrong with the others.
        eager_fails: how many cases eager cannot run.
    """

    name: str
    right: int = 0
    wrong: list[str] = field(default_factory=list)
    eager_fails: int = 0

    @property
    def cases(self) -> int:
        return self.right + len(self.wrong)


def row_of(info: ModuleInfo, first: int | None = None) -> Row:
    """Return what becomes of a module's inputs, or of the first ones."""
    row = Row(info.name)
    for training, grad in itertools.product((False, True) if info.train_and_eval_differ else (True,), (False, True)):
        for case in _inputs(info, training, grad)[:first]:
            try:
                run(info, case, training, grad)
                row.right += 1
            except EagerError:
                row.eager_fails += 1
            except Exception as error:
                row.wrong.append(f"{type(error).__name__}: {error}")
    return row


def _inputs(info: ModuleInfo, training: bool, grad: bool) -> list[Any]:
    torch.manual_seed(0)
    made = info.module_inputs_func(info, device="cpu", dtype=torch.float32, requires_grad=grad, training=training)
    return [case for case in made if case.forward_input is not None]


def run(info: ModuleInfo, case: Any, training: bool, grad: bool) -> None:
    """Run one case both ways.

    Raises:
        EagerError: eager raised.
        Difference: naming what differs.
    """
    given = case.constructor_input
    try:
        eager = info.module_cls(*given.args, **given.kwargs).train(training)
        ours, arguments = copy.deepcopy((eager, (case.forward_input.args, case.forward_input.kwargs)))
        expected = calls(eager, case.forward_input.args, case.forward_input.kwargs, grad)
    except Exception as error:
        raise EagerError(str(error)) from error
    compiled = thunder.jit(ours)
    results = calls(compiled, *arguments, grad)
    compare(results, expected, FORWARD[torch.float32])
    compare(ours.state_dict(), eager.state_dict(), FORWARD[torch.float32])
    if grad:
        inputs = (case.forward_input.args, case.forward_input.kwargs)
        _compare_gradients(_gradients(ours, arguments, results), _gradients(eager, inputs, expected))
    if thunder.cache_misses(compiled) != 1:
        raise Difference(f"compiled again: {thunder.explain_misses(compiled)}")


def calls(module: torch.nn.Module, args: Sequence[Any], kwargs: dict[str, Any], grad: bool) -> list[Any]:
    """Return what two calls return, of which the second sees what the first one left behind."""
    torch.manual_seed(1)
    with torch.set_grad_enabled(grad):
        return [module(*args, **kwargs) for _ in range(2)]


def tensors(tree: Any) -> Iterator[torch.Tensor]:
    """Yield the tensors of a tree that require grad."""
    for leaf in pytree.tree_leaves(tree):
        if isinstance(leaf, torch.Tensor) and leaf.requires_grad:
            yield leaf


def _gradients(module: torch.nn.Module, arguments: Any, results: Any) -> list[torch.Tensor | None]:
    wanted = [p for p in (*module.parameters(), *tensors(arguments)) if p.requires_grad]
    total = [(t * torch.linspace(0.5, 1.5, t.numel()).view(t.shape)).sum() for t in tensors(results)]
    return list(torch.autograd.grad(total, wanted, allow_unused=True)) if total and wanted else []


def _compare_gradients(ours: list[torch.Tensor | None], eagers: list[torch.Tensor | None]) -> None:
    if [g is None for g in ours] != [g is None for g in eagers]:
        raise Difference("gradients are there for other parameters and inputs")
    largest = max([float(g.abs().max()) for g in eagers if g is not None and g.numel()], default=0.0)
    for index, (our, eager) in enumerate(zip(ours, eagers, strict=True)):
        if our is None or eager is None:
            continue
        found = difference(our, eager, largest)
        if found > GRADIENT[torch.float32]:
            raise Difference(f"gradient {index} differs by {found:.1e} of the largest")


def table(rows: list[Row], command: str) -> str:
    """Return the page that says what the sweep found."""
    right, cases = sum(r.right for r in rows), sum(r.cases for r in rows)
    lines = [
        "# Modules",
        "",
        f"Results of `{command}` on PyTorch {torch.__version__.partition('+')[0]}: the modules of `torch.nn`,",
        "constructed and called as in PyTorch's own tests, in evaluation and training mode, with and without",
        f"gradients, twice each. {right} of {cases} cases are right: outputs, strides, state and gradients match eager",
        f"and both calls use one program (float32: within {FORWARD[torch.float32]:g} of the largest value, gradients "
        f"within {GRADIENT[torch.float32]:g}).",
        "",
        *sweeps.table(
            ["module", "right", "otherwise"],
            [(r.name, f"{r.right} of {r.cases}", sweeps.cell("".join(r.wrong[:1]))) for r in rows if r.cases],
        ),
    ]
    return "\n".join(lines) + "\n"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="parts of names of modules; all without any")
    parser.add_argument("--first", type=int, help="how many inputs of each")
    parser.add_argument("--table", type=Path, help="write a page there")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    rows = []
    for info in module_db:
        if not options.names or any(name in info.name for name in options.names):
            rows.append(row_of(info, options.first))
            print(f"{info.name}: {rows[-1].right} of {rows[-1].cases} right", *rows[-1].wrong[:1], sep="\n  ")
    if options.table is not None:
        options.table.write_text(table(rows, "python tools/modules_sweep.py"))
    return 1 if any(row.wrong for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
