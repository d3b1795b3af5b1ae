"""Hooks of mkdocs: a page per package, from its README and its face; and the order of the pages.

There is no list of packages to keep: those of ``packages/`` are found, and sorted by the layers table, lowest first.
"""

import re
import tomllib
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.plugins import event_priority
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parent.parent
FACE = (
    "\n\n## Reference\n\n::: {module}\n    options:\n      show_root_heading: false\n      show_root_toc_entry: false\n"
)


def modules() -> list[str]:
    """Name the packages that exist, lowest layer first."""
    boundaries = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["boundaries"]
    table = [m for layer in reversed(boundaries["layers"]) for m in layer] + boundaries["testing"]
    return [module for module in table if (folder(module) / "pyproject.toml").is_file()]


def folder(module: str) -> Path:
    return ROOT / "packages" / module.replace("_", "-")


@event_priority(100)  # before mkdocstrings reads its paths
def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Let mkdocstrings find the sources."""
    python = config.plugins["mkdocstrings"].config["handlers"]["python"]
    python["paths"] = [str(folder(module) / "src") for module in modules()]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the page of each package, and set the order of all pages."""
    written = [file.src_uri for file in files.documentation_pages()]
    first = config.extra["first"]
    pages = [page for page in first if page in written] + sorted(page for page in written if page not in first)
    generated = []
    for module in modules():
        page = f"packages/{module.replace('_', '-')}.md"
        file = folder(module) / "README.md"
        if not file.is_file():
            raise PluginError(f"{file.relative_to(ROOT)} is missing")
        readme = file.read_text(encoding="utf-8")
        text = re.sub(r"^```python notest", "```python", readme, flags=re.M) + FACE.format(module=module)
        files.append(File.generated(config, page, content=text))
        generated.append(page)
    config.nav = [*pages, {"Packages": generated}]
    return files
