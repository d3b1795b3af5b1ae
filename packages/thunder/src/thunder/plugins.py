"""Plugins of :func:`thunder.compile` by name: those of :mod:`thunder_transforms.plugins`, and parallelism."""

from importlib import import_module
from typing import Any

from thunder_transforms.plugins import (
    FP8,
    Profile,
    QuantizeInt4,
    QuantizeInt8,
    ReduceOverhead,
    get_plugin,
    get_plugin_names,
    names_to_plugins,
    register_plugin,
)
from thunder_transforms.recipe import Plugin


class DDP(Plugin):
    """Each process has the whole model, and gradients are averaged: ``thunder.distributed.ddp``."""

    def setup_model(self, model: Any) -> Any:
        return import_module("thunder.distributed").ddp(model)


class FSDP(Plugin):
    """Each process has a part of each parameter: ``thunder.distributed.fsdp``."""

    def setup_model(self, model: Any) -> Any:
        return import_module("thunder.distributed").fsdp(model)


register_plugin("ddp", DDP)
register_plugin("distributed", DDP)
register_plugin("fsdp", FSDP)

__all__ = [
    "DDP", "FP8", "FSDP", "Plugin", "Profile", "QuantizeInt4", "QuantizeInt8", "ReduceOverhead", "get_plugin",
    "get_plugin_names", "names_to_plugins", "register_plugin",
]  # fmt: skip
