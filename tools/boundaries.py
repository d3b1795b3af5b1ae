"""Hold every package to the layers table and to what it declares. Prints each breach; exits 1 if there is one.

Checked, for the packages that exist:

- a package imports only from layers below its own, never a sibling (import-linter, imports inside functions included);
- ``thunder_testing`` is imported by tests only;
- no package, and no test, imports a private module or name of another package;
- the modules of a package import each other without a cycle (what is imported for types only does not count), and
  so do its subpackages and the modules beside them;
- the packages without PyTorch contain no import of it;
- what a package declares is exactly what it imports. A requirement of an extra may be imported only where its absence
  is handled: in a function, or in a ``try`` that catches ``ImportError``. A package that brings an entry point, as
  executors do, may be declared without being imported;
- what the tests import is declared, too: as a requirement, an extra, or in ``[dependency-groups] test``, which may hold
  more, as what a test imports may itself need something.
"""

import ast
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from importlib.metadata import packages_distributions
from pathlib import Path

import grimp
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from workspace import BOUNDARIES, ROOT, Package, packages

TEST_TOOLS = {"pytest"}  # in every test environment


@dataclass(frozen=True)
class Import:
    """One import of one name, and where it stands."""

    file: Path
    line: int
    module: str
    name: str | None
    guarded: bool

    @property
    def top(self) -> str:
        """The top-level module."""
        return self.module.split(".")[0]

    @property
    def where(self) -> str:
        """File and line."""
        return f"{self.file.relative_to(ROOT)}:{self.line}"


class Imports(ast.NodeVisitor):
    """Collects the absolute imports of a file, and the uses of private attributes of what it imported."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.found: list[Import] = []
        self.private: list[Import] = []
        self.bound: dict[str, str] = {}
        self.depth = 0
        self.visit(ast.parse(file.read_text(encoding="utf-8"), str(file)))

    def add(self, node: ast.AST, module: str, name: str | None = None) -> None:
        self.found.append(Import(self.file, node.lineno, module, name, self.depth > 0))

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self.add(node, alias.name)
            self.bound[alias.asname or alias.name.split(".")[0]] = (
                alias.name if alias.asname else alias.name.split(".")[0]
            )

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        if node.level:
            return
        for alias in node.names:
            self.add(node, node.module, alias.name)
            self.bound[alias.asname or alias.name] = f"{node.module}.{alias.name}"

    def visit_Call(self, node: ast.Call) -> None:
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", None)
        first = node.args[0] if node.args else None
        if called in ("import_module", "find_spec", "__import__", "importorskip"):
            if isinstance(first, ast.Constant) and isinstance(first.value, str) and not first.value.startswith("."):
                self.found.append(Import(self.file, node.lineno, first.value, None, True))
        self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if isinstance(node.value, ast.Name) and node.value.id in self.bound and is_private(node.attr):
            self.private.append(Import(self.file, node.lineno, self.bound[node.value.id], node.attr, False))
        self.generic_visit(node)

    def visit_Try(self, node: ast.Try) -> None:
        caught = {n.id for h in node.handlers if h.type for n in ast.walk(h.type) if isinstance(n, ast.Name)}
        handled = bool(caught & {"ImportError", "ModuleNotFoundError"})
        self.depth += handled
        for statement in node.body:
            self.visit(statement)
        self.depth -= handled
        for statement in [*node.handlers, *node.orelse, *node.finalbody]:
            self.visit(statement)

    def inside(self, node: ast.AST) -> None:
        self.depth += 1
        self.generic_visit(node)
        self.depth -= 1

    visit_FunctionDef = visit_AsyncFunctionDef = inside


@cache
def imports(folder: Path) -> list[Imports]:
    """Read every Python file below ``folder``."""
    return [Imports(file) for file in sorted(folder.rglob("*.py"))]


def is_private(name: str) -> bool:
    return name.startswith("_") and not (name.startswith("__") and name.endswith("__"))


def layers_contracts(modules: set[str]) -> str:
    """Write the import-linter configuration for the packages that exist."""
    layers = [[m for m in layer if m in modules] for layer in BOUNDARIES["layers"]]
    rows = [" | ".join(layer) for layer in layers if layer]
    text = f"[tool.importlinter]\nroot_packages = {sorted(modules)}\n"
    text += contract("Packages import only from layers below their own", "layers", layers=rows)
    testing = [m for m in BOUNDARIES["testing"] if m in modules]
    others = sorted(modules - set(testing))
    tops = [m for layer in BOUNDARIES["layers"][:2] for m in layer if m in modules]
    if testing and others:
        title = "Only tests import thunder_testing"
        text += contract(title, "forbidden", source_modules=others, forbidden_modules=testing)
    if testing and tops:
        title = "thunder_testing is below the umbrella"
        text += contract(title, "forbidden", source_modules=testing, forbidden_modules=tops)
    return text


def contract(name: str, kind: str, **lists: list[str]) -> str:
    fields = "\n".join(f"{key} = {value}" for key, value in lists.items())
    return f'\n[[tool.importlinter.contracts]]\nname = "{name}"\ntype = "{kind}"\n{fields}\n'


def check_layers(every: dict[str, Package]) -> Iterator[str]:
    """Run import-linter; its own report says who imports whom."""
    known = {m for layer in BOUNDARIES["layers"] for m in layer} | set(BOUNDARIES["testing"])
    for package in every.values():
        if package.module not in known:
            yield f"{package.module} is in no layer: add it to [tool.boundaries] of the root pyproject.toml"
    modules = {package.module for package in every.values()} & known
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder, "pyproject.toml")
        config.write_text(layers_contracts(modules), encoding="utf-8")
        command = [Path(sys.executable).with_name("lint-imports"), "--no-cache", "--config", config]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        yield f"import-linter:\n{done.stdout}{done.stderr}"


def check_cycles(every: dict[str, Package]) -> Iterator[str]:
    """Find one cycle per package among its modules, and one among its subpackages."""
    for package in every.values():
        graph = grimp.build_graph(package.module, cache_dir=None, exclude_type_checking_imports=True)
        edges = {m: graph.find_modules_directly_imported_by(m) for m in graph.modules}
        for kind, among in (("modules", edges), ("subpackages", between_subpackages(edges))):
            try:
                TopologicalSorter(among).prepare()
            except CycleError as error:
                yield f"{package.name}: {kind} import each other in a ring: {' <- '.join(error.args[1])}"


def between_subpackages(edges: dict[str, set[str]]) -> dict[str, set[str]]:
    """Take the modules of each subpackage of a package together. Its face, which imports them all, is left out."""
    taken: dict[str, set[str]] = {}
    for module, imported in edges.items():
        if "." in module:
            taken.setdefault(subpackage(module), set()).update(map(subpackage, imported))
    return {part: found - {part} for part, found in taken.items()}


def subpackage(module: str) -> str:
    return ".".join(module.split(".")[:2])


def check_private(every: dict[str, Package]) -> Iterator[str]:
    """Find imports of another package's private modules or names."""
    modules = {package.module for package in every.values()}
    for package in every.values():
        for file in [*imports(package.source), *imports(package.tests)]:
            for use in [*file.found, *file.private]:
                if use.top in modules and use.top != package.module:
                    words = [*use.module.split("."), *([use.name] if use.name else [])]
                    if any(map(is_private, words)):
                        yield f"{use.where}: {'.'.join(words)} is private to {use.top}"


def check_torch_free(every: dict[str, Package]) -> Iterator[str]:
    """Find PyTorch in the packages that do without it."""
    for package in every.values():
        if package.torch_free:
            for file in [*imports(package.source), *imports(package.tests)]:
                yield from (f"{i.where}: {package.name} does without torch" for i in file.found if i.top == "torch")
            for requirement in [*package.requirements, *package.extras, *package.test_requirements]:
                if requirement.name == "torch":
                    yield f"{package.name} declares torch, and does without it"


def loaded_late(package: Package, use: Import) -> bool:
    """Whether an import stands in a module that its package loads only where the extra is there."""
    late = BOUNDARIES.get("behind-extras", {}).get(package.module, [])
    return any(f"{package.source.name}/{part}" in use.where for part in late)


def check_declared(every: dict[str, Package]) -> Iterator[str]:
    """Compare what each package declares with what it imports."""
    for package in every.values():
        needs, extras = names(package.requirements), names(package.extras)
        tests = needs | extras | names(package.test_requirements) | TEST_TOOLS | {package.name}
        used: set[str] = set()
        for use in (use for file in imports(package.source) for use in file.found):
            if use.top in sys.stdlib_module_names or use.top == package.module:
                continue
            asked = distributions(use.top, every)
            used |= asked
            if not asked & needs and not (asked & extras):
                yield f"{use.where}: imports {use.top}, but {package.name} declares no {shown(asked)}"
            elif not asked & needs and not use.guarded and not loaded_late(package, use):
                yield f"{use.where}: {use.top} is an extra of {package.name}, imported where its absence is not handled"
        for use in (use for file in imports(package.tests) for use in file.found):
            if use.top in sys.stdlib_module_names or is_local(use.top, package.tests):
                continue
            asked = distributions(use.top, every)
            if not asked & tests:
                yield f"{use.where}: imports {use.top}, but the test group of {package.name} declares no {shown(asked)}"
        plugins = {p.name for p in every.values() if p.entry_points}
        for name in sorted(needs - used - plugins):
            yield f"{package.name} declares {name}, and imports nothing of it"
        for name in sorted(extras - used - plugins - {package.name}):
            if name not in every:
                yield f"{package.name} declares {name} for an extra, and imports nothing of it"


def is_local(top: str, tests: Path) -> bool:
    """Tell whether a test imports a module that lies beside it."""
    return any(tests.rglob(f"{top}.py")) or top == "tests" or any(p.is_dir() for p in tests.rglob(top))


def names(requirements: list[Requirement]) -> set[str]:
    return {canonicalize_name(requirement.name) for requirement in requirements}


@cache
def installed() -> dict[str, set[str]]:
    return {top: set(map(canonicalize_name, found)) for top, found in packages_distributions().items()}


def distributions(top: str, every: dict[str, Package]) -> set[str]:
    """Name the distributions that a top-level module may come from."""
    own = {package.name for package in every.values() if package.module == top}
    told = BOUNDARIES["distributions"].get(top)
    return own or ({told} if told else installed().get(top) or {canonicalize_name(top)})


def shown(asked: set[str]) -> str:
    return " or ".join(sorted(asked))


def main() -> int:
    every = packages()
    checks = (check_layers, check_cycles, check_private, check_torch_free, check_declared)
    wrong = [breach for check in checks for breach in check(every)]
    print("\n".join(wrong) if wrong else f"boundaries: {len(every)} packages keep them")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
