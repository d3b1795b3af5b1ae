"""The reference of `thunder` by intent, in ``docs/reference.md``: what each public name is, and where its text stands.

    python tools/reference.py           # writes it

A name that stands under no intent is an error, so that the page is complete.
"""

from __future__ import annotations

import importlib
import inspect
import re
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import thunder

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference.md"
HEAD = """# Reference

What `import thunder` brings, by what you want to do. A name leads to its arguments, what it returns and raises, and an
example. Written by `python tools/reference.py`.
"""
INTENTS: dict[str, tuple[str, ...]] = {
    "Compile": (
        "jit", "compile", "trace", "export", "grad", "value_and_grad", "ThunderModule", "mark_dynamic", "mark_static",
        "CACHE_OPTIONS", "FALLBACK_OPTIONS", "SHARP_EDGES_OPTIONS", "DebugOptions", "FallbackWarning", "dynamo",
    ),
    "See what came of it": (
        "last_traces", "last_backward_traces", "last_prologue_traces", "last_epilogue_traces", "explain",
        "explain_misses", "cache_hits", "cache_misses", "cache_option", "compile_stats", "compile_data",
        "last_compile_options", "last_interpreter_log", "print_last_interpreter_log", "last_interpreted_instructions",
        "set_execution_callback_file", "list_transforms", "examine", "report", "dev_utils",
    ),
    "Choose who runs it": (
        "get_executor", "get_all_executors", "get_default_executors", "get_always_executors", "resolve_executors",
        "set_default_executors", "set_always_executors", "add_default_executor", "remove_default_executor",
        "add_executor_lists", "register_executor", "deregister_executor", "pytorch_executor", "executors",
    ),
    "Change and extend": (
        "Transform", "Recipe", "Plugin", "transforms", "recipes", "plugins", "extend", "distributed",
        "get_auto_registered_torch_op_names",
    ),
    "Write programs of operations": ("torch", "numpy", "clang", "prims", "core"),
    "Name what is in a program": (
        "Proxy", "TensorProxy", "NumberProxy", "IntegerProxy", "FloatProxy", "ComplexProxy", "StringProxy", "AnyProxy",
        "dtypes", "devices",
    ),
}  # fmt: skip


def main_names() -> list[str]:
    """Return the public names that stand under intents: all but the version, and dtypes, which have their own line."""
    return [n for n in (*thunder.__all__, *thunder.LATE) if n != "__version__" and n not in dtypes()]


def dtypes() -> list[str]:
    """Return the names of dtypes."""
    return [n for n in thunder.__all__ if type(getattr(thunder, n)).__name__ == "DType"]


def page_of(value: Any) -> str:
    """Return the link to the text of a function or class: its package's page, at the name that the package exports.

    That of a name which a module of the package has, too, has no place of its own on the page.
    """
    module = value.__module__.split(".")[0]
    exported = getattr(importlib.import_module(module), "__all__", ())
    alone = value.__name__ in exported and find_spec(f"{module}.{value.__name__}") is None
    place = f"#{module}.{value.__name__}" if alone else ""
    return f"packages/{module.replace('_', '-')}/index.md{place}"


def row(name: str) -> str:
    """Return the line of the table for a name."""
    value = getattr(thunder, name)
    own = value if inspect.isclass(value) or inspect.isfunction(value) else type(value)
    said = (inspect.getdoc(value) or "").split("\n\n")[0].replace("\n", " ").replace("|", "\\|").replace("``", "`")
    said = re.sub(r":\w+:`", "`", said)
    named = f"`thunder.{name}`" if isinstance(value, ModuleType) else f"[`{name}`]({page_of(own)})"
    return f"| {named} | {said} |"


def reference() -> str:
    """Return the page.

    Raises:
        ValueError: names stand under no intent, or under several.
    """
    told = [name for names in INTENTS.values() for name in names]
    if sorted(told) != sorted(main_names()):
        raise ValueError(f"not once under an intent: {sorted(set(told) ^ set(main_names())) or 'some twice'}")
    parts = [HEAD]
    for intent, names in INTENTS.items():
        parts.append("\n".join([f"## {intent}\n", "| name | what it is |", "|---|---|", *map(row, names), ""]))
    parts.append("Dtypes: " + ", ".join([f"`{name}`" for name in dtypes()]) + ".\n")
    parts.append("What each package exports beside these stands on its page, under *Packages*.\n")
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(reference(), encoding="utf-8")
