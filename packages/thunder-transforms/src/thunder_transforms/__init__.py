"""What is done to compiled modules and programs: quantised weights, LoRA, autocast, profiling; recipes and plugins."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from thunder_transforms import plugins, recipes
from thunder_transforms._version import __version__
from thunder_transforms.autocast import AutocastTransform, autocast
from thunder_transforms.constant_folding import ConstantFolding
from thunder_transforms.guards import PrunePrologueChecks
from thunder_transforms.lora import LORATransform
from thunder_transforms.materialization import MaterializationTransform
from thunder_transforms.quantization import Quantise
from thunder_transforms.recipe import Plugin, PluginPolicy, Recipe
from thunder_transforms.recipes import compile
from thunder_transforms.state import load_original_state_dict, original_state_dict, transformed_state_dict
from thunder_transforms.watching import (
    AroundEach,
    DebugTransform,
    ITTProfileTransform,
    NvtxProfileTransform,
    ProfileTransform,
    debug_execution_trace,
)

if TYPE_CHECKING:
    from thunder_transforms.cudagraphs import CUDAGraphTransform


def __getattr__(name: str) -> Any:
    """Bring what is imported when it is first asked for: only machines with a GPU need it."""
    if name != "CUDAGraphTransform":
        raise AttributeError(f"module 'thunder_transforms' has no attribute {name!r}")
    return import_module("thunder_transforms.cudagraphs").CUDAGraphTransform


__all__ = [
    "AroundEach", "AutocastTransform", "CUDAGraphTransform", "ConstantFolding", "DebugTransform",
    "ITTProfileTransform", "LORATransform", "MaterializationTransform", "NvtxProfileTransform", "Plugin",
    "PluginPolicy", "ProfileTransform", "PrunePrologueChecks", "Quantise", "Recipe", "__version__", "autocast",
    "compile", "debug_execution_trace", "load_original_state_dict", "original_state_dict", "plugins", "recipes",
    "transformed_state_dict",
]  # fmt: skip
