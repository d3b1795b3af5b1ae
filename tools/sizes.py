"""Print the size of every package: modules, lines, parameters typed ``Any``, and the largest knot of modules.

    python tools/sizes.py               a table, a row per package
    python tools/sizes.py NAME ...      the packages with NAME in their names

Lines are those of the sources, with comments and docstrings; tests are counted beside them. A knot is a set of modules
each of which imports, directly or not, each other one, with the imports for types counted.

It fails where a knot has more than eight modules, or where one of the packages that are typed throughout types a tenth
of its parameters ``Any``.
"""

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import grimp
from workspace import Package, packages

LARGEST_KNOT = 8
TYPED = frozenset({
    "thunder-autograd", "thunder-benchmarks", "thunder-distributed", "thunder-executors", "thunder-executors-inductor",
    "thunder-executors-llvm", "thunder-frontend", "thunder-guards", "thunder-interpreter", "thunder-loops",
    "thunder-native", "thunder-tracing",
})  # fmt: skip
"""Packages that know what they are handed, but for fewer than one parameter in ten."""


@dataclass(frozen=True)
class Size:
    """What there is of one package."""

    modules: int
    lines: int
    median: int
    tests: int
    parameters: int
    untyped: int
    knot: int


def size_of(package: Package) -> Size:
    """Measure a package."""
    texts = [file.read_text(encoding="utf-8") for file in sorted(package.source.rglob("*.py"))]
    lines = sorted([text.count("\n") for text in texts])
    annotations = [a for text in texts for a in annotations_in(ast.parse(text))]
    return Size(
        len(texts),
        sum(lines),
        lines[len(lines) // 2],
        lines_below(package.tests),
        len(annotations),
        sum([a is None or isinstance(a, ast.Name) and a.id == "Any" for a in annotations]),
        largest_knot(package.module),
    )


def lines_below(folder: Path) -> int:
    return sum([file.read_text(encoding="utf-8").count("\n") for file in folder.rglob("*.py")])


def annotations_in(tree: ast.AST) -> Iterator[ast.expr | None]:
    """Yield what the parameters of all functions are annotated with, but for ``self``, ``cls``, ``*args`` and the
    parameters of lambdas."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            yield from [a.annotation for a in given if a.arg not in ("self", "cls")]


def largest_knot(module: str) -> int:
    """Return how many modules are in the largest set of modules that lead to one another; 1 if none do."""
    graph = grimp.build_graph(module, cache_dir=None)
    edges = {m: graph.find_modules_directly_imported_by(m) - {module} for m in graph.modules - {module}}
    return max(map(len, knots(edges)), default=1)


def knots(edges: dict[str, set[str]]) -> Iterator[list[str]]:
    """Yield the strongly connected components of a graph (Kosaraju's algorithm, without recursion)."""
    back: dict[str, set[str]] = {m: set() for m in edges}
    for module, imported in edges.items():
        for other in imported & edges.keys():
            back[other].add(module)
    order: list[str] = []
    seen: set[str] = set()
    for module in edges:
        order += reached(module, edges, seen)
    seen = set()
    for module in reversed(order):
        found = reached(module, back, seen)
        if found:
            yield found


def reached(start: str, edges: dict[str, set[str]], seen: set[str]) -> list[str]:
    """Return what can be reached and was not seen, each after all that it leads to."""
    found: list[str] = []
    todo = [(start, False)]
    while todo:
        module, done = todo.pop()
        if done:
            found.append(module)
        elif module not in seen:
            seen.add(module)
            todo.append((module, True))
            todo += [(other, False) for other in sorted(edges[module] & edges.keys())]
    return found


def beyond(name: str, size: Size) -> list[str]:
    """Return what of a package is more than it may be."""
    found = []
    if size.knot > LARGEST_KNOT:
        found.append(f"{name}: a knot of {size.knot} modules; at most {LARGEST_KNOT} may lead to one another")
    if name in TYPED and 10 * size.untyped >= size.parameters:
        found.append(f"{name}: {size.untyped} of {size.parameters} parameters are typed Any; one in ten is too many")
    return found


def main() -> int:
    chosen = [p for p in packages().values() if not sys.argv[1:] or any(word in p.name for word in sys.argv[1:])]
    sizes = {package.name: size_of(package) for package in chosen}
    row = "{:36} {:>8} {:>8} {:>7} {:>8} {:>11} {:>6}"
    print(row.format("package", "modules", "lines", "median", "tests", "Any", "knot"))
    for name, s in sizes.items():
        share = f"{s.untyped}/{s.parameters}"
        print(row.format(name, s.modules, s.lines, s.median, s.tests, share, s.knot))
    total = [sum([getattr(s, f) for s in sizes.values()]) for f in ("modules", "lines", "tests")]
    print(row.format("all", total[0], total[1], "", total[2], "", ""))
    problems = [problem for name, size in sizes.items() for problem in beyond(name, size)]
    print(*problems, sep="\n", end="\n" * bool(problems), file=sys.stderr)
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
