"""List what the packages use of PyTorch that is not public, from their sources.

python tools/private_names.py                                 each name, and the modules that use it
python tools/private_names.py --missing                       only those that the installed PyTorch lacks
python tools/private_names.py --table docs/pytorch-internals.md

The test ``integration-tests/test_private_names.py`` watches every name of the list.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parent.parent
INTRODUCTION = """# What is used of PyTorch that is not public

Names with a leading underscore that the packages use, listed from the sources by
`python tools/private_names.py --table docs/pytorch-internals.md`. `integration-tests/test_private_names.py` watches
each of them: a version of PyTorch that lacks one fails that test by name.

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


def names_in(tree: ast.AST) -> Iterator[str]:
    """Yield dotted names of PyTorch with a part that begins with one underscore."""
    inner: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "torch":
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                if is_private(name):
                    yield name
        elif isinstance(node, ast.Attribute) and id(node) not in inner:
            if isinstance(node.value, ast.Attribute):
                inner.add(id(node.value))
            name = dotted(node)
            if name.startswith("torch.") and is_private(name):
                yield shortest(name)


def dotted(node: ast.expr) -> str:
    """Return ``a.b.c`` of an attribute of a plain name, else ``""``."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


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
    parser.add_argument("--table", type=Path)
    options = parser.parse_args()
    names = used()
    lines = [f"| `{name}` | {', '.join([f'`{p}`' for p in places])} |" for name, places in names.items()]
    if options.table:
        options.table.write_text(INTRODUCTION + "\n".join(lines) + "\n", encoding="utf-8")
        return 0
    missing = [name for name in names if not exists(name)]
    for name in missing if options.missing else names:
        print(f"{name:70} {', '.join(names[name])}")
    print(f"{len(names)} names, {len(missing)} missing from PyTorch {torch.__version__}")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
