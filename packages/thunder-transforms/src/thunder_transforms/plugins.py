"""The plugins by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from importlib.util import find_spec

import torch

from thunder_executors import Executor, get_executor
from thunder_frontend import Transform
from thunder_transforms.quantization import Quantise
from thunder_transforms.recipe import Plugin, PluginPolicy, Registered
from thunder_transforms.watching import ProfileTransform
from thunder_transforms.weights import format_called

REGISTERED: Registered[Callable[[], Plugin]] = Registered("plugin")


def register_plugin(name: str, plugin: Callable[[], Plugin]) -> None:
    """Let users name a plugin.

    Args:
        name: what they write.
        plugin: a class, or what else makes an instance without arguments.

    Raises:
        ValueError: the name is taken.
    """
    REGISTERED.add(name, plugin)


def get_plugin_names() -> list[str]:
    """Return the names of all plugins."""
    return REGISTERED.names()


def get_plugin(name: str) -> Callable[[], Plugin]:
    """Return what makes the plugin of this name; hyphens may be underscores.

    Raises:
        ValueError: there is none.
    """
    return REGISTERED[name.replace("_", "-")]


def names_to_plugins(plugins: str | Plugin | Iterable[str | Plugin] | None) -> list[Plugin]:
    """Return plugins for what users may write: names, instances, and lists of either.

    Raises:
        ValueError: there is no plugin of a name.
        RuntimeError: it needs what is not there.
    """
    if plugins is None:
        return []
    if isinstance(plugins, str | Plugin):
        plugins = [plugins]
    return [get_plugin(plugin)() if isinstance(plugin, str) else plugin for plugin in plugins]


class QuantizeInt8(Plugin):
    """Weights of linear layers in eight bits."""

    def setup_transforms(self) -> Sequence[Transform]:
        return [Quantise("int8")]


class QuantizeInt4(Plugin):
    """Weights of linear layers in four bits; the last layer, which makes logits, stays as it is.

    As NF4, restored by the kernel of bitsandbytes where that is installed. Where it is not and torchao is, layers in
    evaluation mode whose weights the int4 kernel for CPUs takes are quantised by torchao for it.
    """

    def setup_transforms(self) -> Sequence[Transform]:
        normal = Quantise("nf4", where=lambda name, layer: not name.endswith("lm_head"))
        if find_spec("bitsandbytes") is not None or find_spec("torchao") is None:
            return [normal]
        form = format_called("torchao-int4")

        def fits(name: str, layer: torch.nn.Module) -> bool:
            weight = layer.get_parameter("weight")
            return not (name.endswith("lm_head") or layer.training) and form.takes(weight)

        return [Quantise("torchao-int4", where=fits), normal]


class Profile(Plugin):
    """Show each operation to ``torch.profiler``."""

    policy = PluginPolicy.POST

    def setup_transforms(self) -> Sequence[Transform]:
        return [ProfileTransform()]


class NeedsExecutor(Plugin):
    """What an executor does that comes in a package of its own: it goes before the others, once it is installed.

    Raises:
        RuntimeError: it is not there, or cannot run here; the error says why.
    """

    executor: str
    without: str

    def __init__(self) -> None:
        found = get_executor(self.executor)
        if found is None:
            raise RuntimeError(f"{self.without}; none called {self.executor!r} is installed")
        missing = found.missing()
        if missing is not None:
            raise RuntimeError(f"{self.without}; {self.executor} cannot run here: {missing}")
        self.found = found

    def setup_executors(self) -> Sequence[Executor | str]:
        return [self.found]


class ReduceOverhead(Plugin):
    """Programs as CUDA graphs.

    Raises:
        RuntimeError: there is no CUDA device.
    """

    policy = PluginPolicy.POST

    def __init__(self) -> None:
        if not torch.cuda.is_available():
            raise RuntimeError("reduce-overhead records CUDA graphs, and PyTorch sees no CUDA device")

    def setup_transforms(self) -> Sequence[Transform]:
        return [import_module("thunder_transforms.cudagraphs").CUDAGraphTransform()]


class FP8(NeedsExecutor):
    """Matrix products of eight-bit floats, by NVIDIA's Transformer Engine."""

    executor = "transformer_engine"
    without = "fp8 needs an executor that computes in eight-bit floats"


register_plugin("quantize-int8", QuantizeInt8)
register_plugin("quantize-int4", QuantizeInt4)
register_plugin("profile", Profile)
register_plugin("reduce-overhead", ReduceOverhead)
register_plugin("fp8", FP8)
