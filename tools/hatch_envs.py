"""One hatch environment per package, holding only what that package declares; and the members of `default`.

Hatch loads this file (see ``[tool.hatch.env.collectors.custom]``). ``hatch run thunder-ir:test`` then runs a package's
own tests beside nothing but its declared dependencies and its test group, and no list of packages is written twice.
"""

import os
import re
import tomllib
from pathlib import Path

from hatch.env.collectors.plugin.interface import EnvironmentCollectorInterface

NAME = re.compile(r"^[A-Za-z0-9._-]+")
BACKEND = ["hatchling>=1.27,<2", "editables>=0.5"]
ENV_VARS = {"PIP_COMPILE": "0", "PYTHONDONTWRITEBYTECODE": ""}


def normal(requirement: str) -> str:
    """Name the distribution that ``requirement`` asks for, normalised."""
    return re.sub(r"[-_.]+", "-", NAME.match(requirement).group()).lower()


class Workspace:
    """What the packages declare: folders, dependencies, test groups, by distribution name."""

    def __init__(self, root: Path) -> None:
        self.folders: dict[str, str] = {}
        self.dependencies: dict[str, list[str]] = {}
        self.tests: dict[str, list[str]] = {}
        for file in sorted(root.glob("packages/*/pyproject.toml")):
            data = tomllib.loads(file.read_text(encoding="utf-8"))
            name = normal(data["project"]["name"])
            self.folders[name] = f"packages/{file.parent.name}"
            self.dependencies[name] = data["project"].get("dependencies", [])
            self.tests[name] = data.get("dependency-groups", {}).get("test", [])

    def closure(self, requirements: list[str]) -> list[str]:
        """Name everything that ``requirements`` need, through the packages of the workspace."""
        seen: list[str] = []
        todo = [normal(requirement) for requirement in requirements]
        while todo:
            name = todo.pop()
            if name not in seen:
                seen.append(name)
                todo += map(normal, self.dependencies.get(name, []))
        return seen


class PackageEnvironments(EnvironmentCollectorInterface):
    """The environments that follow from the packages' own ``pyproject.toml``."""

    @property
    def torch(self) -> str:
        """The PyTorch of all environments: ``THUNDER_TORCH`` if set (``torch==2.10.*``), else the pin."""
        return os.environ.get("THUNDER_TORCH") or self.config["torch"]

    def get_initial_config(self) -> dict[str, dict]:
        """Make one environment per package."""
        workspace = Workspace(Path(self.root))
        environments = {}
        for name, folder in workspace.folders.items():
            needed = workspace.closure([name, *workspace.tests[name]])
            outside = [r for r in workspace.tests[name] if normal(r) not in workspace.folders]
            environments[name] = {
                "installer": "pip",
                "path": f".hatch/envs/{name}",
                "detached": True,
                "skip-install": True,
                "workspace": {"members": [workspace.folders[n] for n in needed if n in workspace.folders]},
                "dependencies": [*self.config["test-dependencies"], *outside, *self.torch_if_in(needed)],
                "env-vars": ENV_VARS,
                "scripts": {"test": f"python tools/run_tests.py --package {folder} {{args}}"},
            }
        return environments

    def finalize_config(self, config: dict[str, dict]) -> None:
        """Put every package, and what the tests of any need, into ``default``, ``libraries`` and ``gpu-libraries``.

        With ``THUNDER_BACKEND_ONLY`` set there is just what builds packages: tools/dev.py makes that first, so that pip
        can build all members with it, and not each in an environment of its own.
        """
        workspace = Workspace(Path(self.root))
        tests = [r for group in workspace.tests.values() for r in group]
        needed = workspace.closure([*workspace.folders, *tests])
        default = config["default"]
        if os.environ.get("THUNDER_BACKEND_ONLY"):
            default["dependencies"] = BACKEND
            return
        default["workspace"] = {"members": list(workspace.folders.values())}
        default["dependencies"] = [
            *default["dependencies"],
            *BACKEND,
            *self.config["test-dependencies"],
            *sorted({r for r in tests if normal(r) not in workspace.folders}),
            *self.torch_if_in(needed),
        ]
        for name in ("libraries", "gpu-libraries"):
            more = config[name]
            more["workspace"] = default["workspace"]
            more["dependencies"] = [*more["dependencies"], *default["dependencies"]]

    def torch_if_in(self, names: list[str]) -> list[str]:
        """Pin PyTorch where it is among ``names``, and ask for it nowhere else."""
        return [self.torch] if "torch" in names else []
