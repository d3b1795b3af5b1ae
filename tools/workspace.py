"""The packages of the workspace, as their ``pyproject.toml`` declare them."""

import re
import tomllib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parent.parent
CONFIG = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
BOUNDARIES = CONFIG["boundaries"]


@dataclass(frozen=True)
class Package:
    """One folder of ``packages/``."""

    folder: Path

    @cached_property
    def data(self) -> dict:
        """The whole ``pyproject.toml``."""
        return tomllib.loads((self.folder / "pyproject.toml").read_text(encoding="utf-8"))

    @cached_property
    def name(self) -> str:
        """Name of the distribution, normalised."""
        return canonicalize_name(self.data["project"]["name"])

    @property
    def module(self) -> str:
        """Name that the package is imported by."""
        return self.folder.name.replace("-", "_")

    @property
    def source(self) -> Path:
        """Folder of the importable package."""
        return self.folder / "src" / self.module

    @property
    def tests(self) -> Path:
        """Folder of the tests."""
        return self.folder / "tests"

    @property
    def version_file(self) -> Path:
        """File that holds the version."""
        return self.source / "_version.py"

    @cached_property
    def version(self) -> Version:
        """Version in the tree."""
        text = self.version_file.read_text(encoding="utf-8")
        match = re.search(r'^__version__ = "(.+)"$', text, re.M)
        if match is None:
            raise SystemExit(f'{self.version_file.relative_to(ROOT)} has no line __version__ = "..."')
        return Version(match[1])

    @cached_property
    def requirements(self) -> list[Requirement]:
        """What is always needed."""
        return [Requirement(text) for text in self.data["project"].get("dependencies", [])]

    @cached_property
    def extras(self) -> list[Requirement]:
        """What is needed for one extra or another."""
        groups = self.data["project"].get("optional-dependencies", {})
        return [Requirement(text) for group in groups.values() for text in group]

    @cached_property
    def test_requirements(self) -> list[Requirement]:
        """What the tests need beside pytest and the package's own requirements."""
        return [Requirement(text) for text in self.data.get("dependency-groups", {}).get("test", [])]

    @property
    def entry_points(self) -> dict[str, dict[str, str]]:
        """Entry points by group."""
        return self.data["project"].get("entry-points", {})

    @property
    def torch_free(self) -> bool:
        """Whether the package must do without PyTorch."""
        return self.module in BOUNDARIES["torch-free"]


def packages() -> dict[str, Package]:
    """Find all packages there are, by distribution name."""
    found = [Package(file.parent) for file in sorted(ROOT.glob("packages/*/pyproject.toml"))]
    return {package.name: package for package in found}
