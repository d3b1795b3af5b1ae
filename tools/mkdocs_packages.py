"""Hooks of mkdocs: a page per package, from its README and its face; and the order of the pages.

There is no list of packages to keep: those of ``packages/`` are found, and sorted by the layers table, lowest first.
"""

import ast
import re
import tomllib
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.plugins import event_priority
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
FENCE = re.compile(r"(^```.*?^```)", re.M | re.S)
LINK = re.compile(r"\[([^\]]+)\]\((?!https?:|#)([^)\s]+)\)")
LED_BY = ("explanations.md", "architecture.md")
FACE = """

## Reference

{names}

::: {module}
    options:
      show_root_heading: false
      show_root_toc_entry: false
"""


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
    guides = [page for page in config.extra["guides"] if page in written]
    named = {*first, *guides}
    start = [page for page in first if page in written]
    pages = sorted((page for page in written if page not in named), key=lambda page: (page not in LED_BY, page))
    generated: list[object] = []
    for module in modules():
        home = f"packages/{folder(module).name}"
        if not (folder(module) / "README.md").is_file():
            raise PluginError(f"{home}/README.md is missing")
        text = text_of(folder(module) / "README.md") + FACE.format(module=module, names=exported(module))
        files.append(File.generated(config, f"{home}/index.md", content=text))
        others = sorted(file for file in folder(module).glob("*.md") if file.name != "README.md")
        for file in others:
            files.append(File.generated(config, f"{home}/{file.name}", content=text_of(file)))
        generated.append({folder(module).name: [f"{home}/index.md", *(f"{home}/{file.name}" for file in others)]})
    config.nav = [*start, {"Guides": guides}, {"Explanations and figures": pages}, {"Packages": generated}]
    return files


def exported(module: str) -> str:
    """Return a line with all names that a package exports: some are data, and have no text of their own below it."""
    face = ast.parse((folder(module) / "src" / module / "__init__.py").read_text(encoding="utf-8"))
    lists = [n.value for n in face.body if isinstance(n, ast.Assign) and ast.unparse(n.targets[0]) == "__all__"]
    names = sorted(e.value for names in lists for e in ast.walk(names) if isinstance(e, ast.Constant))
    return "Exports " + ", ".join(f"`{name}`" for name in names) + "." if names else ""


def text_of(file: Path) -> str:
    """Make a page of a Markdown file of a package: links to what is no page become plain text."""

    def link(match: re.Match[str]) -> str:
        text, target = match.groups()
        other = re.fullmatch(r"(?:\.\./)+(?:packages/)?(thunder[a-z-]*)(?:/README\.md)?/?", target)
        if other:
            return f"[{text}](../{other[1]}/index.md)"
        kept = target.endswith(".md") and (file.parent / target).is_file() and "/" not in target
        return match[0] if kept else text

    parts = FENCE.split(file.read_text(encoding="utf-8"))
    prose = [LINK.sub(link, part) if i % 2 == 0 else part for i, part in enumerate(parts)]
    return "".join(prose)


def drawing(match: re.Match[str]) -> str:
    """Return a drawing as part of the page, whose colours it then has."""
    svg = (ROOT / "docs" / "pictures" / match[1]).read_text(encoding="utf-8")
    return f'<div class="picture">{re.sub(chr(10) + "+", " ", svg).strip()}</div>'


def on_page_markdown(markdown: str, page: Page, **kwargs: object) -> str:
    """Leave out of the fences of code what is meant for the tests; put in drawings, and what releases bring."""
    shown = re.sub(r"^( *)```python (notest|needs=\S+)", r"\1```python", markdown, flags=re.M)
    shown = re.sub(r"^!\[[^\]]*\]\([./]*pictures/([\w-]+\.svg)\)$", drawing, shown, flags=re.M)
    return shown + releases() if page.file.src_uri == "releases.md" else shown


def releases() -> str:
    """Return what each package's versions bring, from its changelog."""
    parts = [""]
    for module in modules():
        _, _, log = text_of(folder(module) / "CHANGELOG.md").partition("\n## ")
        parts.append(f"## {folder(module).name}\n\n### " + log.replace("\n## ", "\n### ").strip())
    return "\n\n".join(parts) + "\n"
