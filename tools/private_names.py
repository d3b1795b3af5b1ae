"""List what the packages use of PyTorch that is not public, from their sources.

python tools/private_names.py                                 each name, and the modules that use it
python tools/private_names.py --missing                       only those that the installed PyTorch lacks
python tools/private_names.py --write                         docs/pytorch-internals.md and the packages' lists

The test ``integration-tests/test_private_names.py`` watches every name of the list.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "pytorch-internals.md"
LIST = "_internals_needed.py"
LINE = 120  # characters; what fits into one is written so, as the formatter does
INTRODUCTION = """# Private PyTorch APIs in use

Names with a leading underscore that the packages use, listed from the sources by
`python tools/private_names.py --write`. `integration-tests/test_private_names.py` watches each of them: a version of
PyTorch that lacks one fails that test by name. Importing Thunder never fails for one that is missing: what needs it
raises an error when it runs, which names it, or runs in Python.

| name | used in |
|---|---|
"""


def used() -> dict[str, list[str]]:
    """Return the private names that the packages use, each with the modules that do."""
    found: dict[str, set[str]] = {}
    for file in sorted(ROOT.glob("packages/*/src/**/*.py")):
        place = ".".join(file.relative_to(ROOT).with_suffix("").parts[3:])
        for name in names_in(ast.parse(file.read_text(encoding="utf-8"))):
            found.setdefault(name, set()).add(place)
    return {name: sorted(places) for name, places in sorted(found.items())}


def needed() -> dict[Path, list[str]]:
    """Return the private names that get a stand-in where PyTorch lacks them, by the file that lists them.

    They are those of the modules that are imported with Thunder, as far as PyTorch's module is imported by then, too.
    """
    found: dict[Path, set[str]] = {}
    ours, there = loaded("thunder, thunder_executors_llvm"), loaded("torch")
    files = [file for file in sorted(ROOT.glob("packages/*/src/*/**/*.py")) if module_of(file) in ours]
    trees = {file: Untried().visit(ast.parse(file.read_text(encoding="utf-8"))) for file in files}
    brought = {name for tree in trees.values() for name in imported(tree).values() if "." in name}
    there |= brought | {owner(name) for name in brought}
    asked = tuple([name for tree in trees.values() for name in asked_for(tree)])
    for file, tree in trees.items():
        names = {name.removesuffix(".__dict__") for name in names_in(tree)} - {"torch._C"}
        names = {name for name in names if not name.startswith("torch.ops.")}  # PyTorch names the operator itself
        kept = {n for n in names if owner(n) in there and (n in there or not importable(n))}
        kept = {name for name in kept if not f"{name}.".startswith(asked)}
        found.setdefault(ROOT.joinpath(*file.relative_to(ROOT).parts[:4], LIST), set()).update(kept)
    return {file: sorted(names) for file, names in found.items() if names}


def loaded(modules: str) -> set[str]:
    """Return the modules that are there once some have been imported."""
    program = f"import sys, {modules}; print(*sys.modules)"
    return set(subprocess.check_output([sys.executable, "-c", program], text=True).split())


def module_of(file: Path) -> str:
    """Return the name of the module that a file of a package is."""
    return ".".join(file.relative_to(ROOT).with_suffix("").parts[3:]).removesuffix(".__init__")


def owner(name: str) -> str:
    """Return which module of PyTorch a name is of."""
    parts = name.split(".")
    return next(m for m in [".".join(parts[:i]) for i in range(len(parts) - 1, 0, -1)] if importable(m))


def importable(name: str) -> bool:
    """Whether there is a module of a name."""
    try:
        return isinstance(importlib.import_module(name), ModuleType)
    except ImportError:
        return False


def asked_for(tree: ast.AST) -> Iterator[str]:
    """Yield, with a dot, what a program does without where PyTorch lacks it: ``hasattr(torch._C, "_x")``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and dotted(node.func) == "hasattr" and isinstance(node.args[1], ast.Constant):
            yield f"{dotted(node.args[0])}.{node.args[1].value}."


class Untried(ast.NodeTransformer):
    """Leaves of a module what has no way out where PyTorch lacks it."""

    def visit_Try(self, node: ast.Try) -> Any:
        """Leave nothing: the module says itself what it does without."""
        return None

    def visit_If(self, node: ast.If) -> Any:
        """Leave out what is for type checkers alone."""
        return None if dotted(node.test) == "TYPE_CHECKING" else self.generic_visit(node)


def names_in(tree: ast.AST) -> Iterator[str]:
    """Yield dotted names of PyTorch with a part that begins with one underscore, under whatever name it is imported."""
    inner: set[int] = set()
    known = imported(tree)
    yield from filter(is_private, [name for name in known.values() if "." in name])
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and id(node) not in inner:
            if isinstance(node.value, ast.Attribute):
                inner.add(id(node.value))
            first, _, rest = dotted(node).partition(".")
            name = f"{known.get(first, first)}.{rest}"
            if name.startswith("torch.") and is_private(name):
                yield shortest(name)


def imported(tree: ast.AST) -> dict[str, str]:
    """Return what a program imports from PyTorch, by the name that it has there."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.update({a.asname: a.name for a in node.names if a.asname and a.name.split(".")[0] == "torch"})
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "torch":
            found.update({a.asname or a.name: f"{node.module}.{a.name}" for a in node.names})
    return found


def dotted(node: ast.expr) -> str:
    """Return ``a.b.c`` of an attribute of a plain name, else ``""``."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def list_text(names: list[str]) -> str:
    """Return a module that lists what is needed."""
    quoted = [f'"{name}"' for name in names]
    line = f"MISSING = fill(({quoted[0]},))" if len(quoted) == 1 else f"MISSING = fill(({', '.join(quoted)}))"
    if len(line) <= LINE:
        lines = [line]
    else:
        lines = ["MISSING = fill(", "    (", *[f"        {name}," for name in quoted], "    )", ")"]
    return "\n".join([
        '"""Private names of PyTorch that this package imports, written by `python tools/private_names.py --write`."""',
        "", "from thunder_torch.internals import fill", "", *lines, "",
    ])  # fmt: skip


def page_text() -> str:
    """Return the page of all that is used."""
    lines = [f"| `{name}` | {', '.join([f'`{p}`' for p in places])} |" for name, places in used().items()]
    return INTRODUCTION + "\n".join(lines) + "\n"


def is_private(name: str) -> bool:
    """Whether a part of a dotted name begins with an underscore and is no special method."""
    return any([part.startswith("_") and not part.startswith("__") for part in name.split(".")])


def shortest(name: str) -> str:
    """Return a name up to what is an operator or a class, whose attributes are not names of PyTorch's modules."""
    parts = name.split(".")
    if parts[1] == "ops":  # of an operator, the overload
        return ".".join(parts[:5])
    return ".".join([p for p in parts if not (p.startswith("__") and p != "__dict__")])


def exists(name: str) -> bool:
    """Whether the installed PyTorch has a name."""
    parts = name.split(".")
    for count in range(len(parts), 0, -1):  # of the module; a package may have a function of a module's name
        try:
            found: object = importlib.import_module(".".join(parts[:count]))
            for part in parts[count:]:
                found = getattr(found, part)
        except (ImportError, AttributeError):
            continue
        return True
    return False


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--missing", action="store_true")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    names = used()
    if options.write:
        PAGE.write_text(page_text(), encoding="utf-8")
        for file, listed in needed().items():
            file.write_text(list_text(listed), encoding="utf-8")
        return 0
    missing = [name for name in names if not exists(name)]
    for name in missing if options.missing else names:
        print(f"{name:70} {', '.join(names[name])}")
    print(f"{len(names)} names, {len(missing)} missing from PyTorch {torch.__version__}")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
