"""Fusions: defined by their text, one for all regions of a structure."""

from __future__ import annotations

import threading
import warnings
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import torch

from thunder_executors_nvfuser.definition import Layout, write_definition
from thunder_executors_nvfuser.settings import Settings
from thunder_ir import NumberProxy, TensorProxy, Trace
from thunder_torch.fake_modes import fake_outputs

PLAIN = Settings()
OF_NVFUSER = "Fuser/csrc/"
"""Where nvFuser's own errors say that they were raised: not those of what it calls, such as the allocator."""
BROKEN = ("LAUNCH_FAILED", "ILLEGAL_ADDRESS", "MISALIGNED_ADDRESS", "ILLEGAL_INSTRUCTION", "CUDA_ERROR_ASSERT")
"""What CUDA says of a device that has failed, in whatever kernel: PyTorch could run nothing there, either."""
REFUSED = (
    "nvFuser cannot run {name}, so PyTorch runs it: {why} (a program that shows it: "
    "thunder_executors_nvfuser.get_nvfuser_repro)"
)
MOST = 2048
"""Fusions that are kept; the one that was used longest ago goes first."""


@dataclass(frozen=True, slots=True)
class Example:
    """An input of a call, without its data: a tensor's shape, strides, dtype; or a number."""

    shape: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()
    dtype: str = ""
    number: int | None = None

    def text(self) -> str:
        """Return the expression that makes one like it."""
        if self.number is not None:
            return str(self.number)
        makes = f"torch.empty_strided({self.shape}, {self.strides}, dtype={self.dtype}, device='cuda')"
        return f"{makes}.random_(0, 2)" if "float" not in self.dtype else f"{makes}.normal_()"


@dataclass(frozen=True, slots=True, eq=False)
class Defined:
    """A fusion of nvFuser, which only one thread may be in at a time.

    Args:
        fusion: the definition.
        lock: held while it is executed.
    """

    fusion: Any
    lock: threading.Lock = field(default_factory=threading.Lock)

    def execute(self, inputs: list[Any], options: Mapping[str, list[str]]) -> Sequence[torch.Tensor]:
        """Return the outputs."""
        with self.lock:
            found: Sequence[torch.Tensor] = self.fusion.execute(inputs, **options)
        return found


@dataclass(frozen=True, slots=True)
class Wanted:
    """Shape, strides and dtype of an output, as PyTorch has them."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: torch.dtype


@dataclass(slots=True, eq=False)
class InLayout:
    """What is known of calls whose inputs lie in memory in one way.

    Args:
        text: the definition.
        examples: the inputs of the first one, without their data.
        outputs: what PyTorch returns.
        copied: the outputs that nvFuser returns otherwise, or in memory of an input; ``None`` before the first call.
    """

    text: str
    examples: list[Example]
    outputs: list[Wanted]
    copied: list[int] | None = None


class Library:
    """nvFuser, and the fusions that were defined.

    Args:
        load: returns the module.
        most: fusions to keep.
    """

    def __init__(self, load: Callable[[], Any], most: int = MOST) -> None:
        self._load = load
        self._most = most
        self._defined: OrderedDict[tuple[str, Settings], Defined] = OrderedDict()
        self._lock = threading.Lock()
        self.made = 0

    def defined(self, text: str, settings: Settings) -> Defined:
        """Return the fusion of a definition; one of its own for other settings, as it keeps the code made with them."""
        key = (text, settings)
        with self._lock:
            found = self._defined.get(key)
            if found is None:
                found = self._defined[key] = Defined(self._define(text))
                if len(self._defined) > self._most:
                    self._defined.popitem(last=False)
            else:
                self._defined.move_to_end(key)
        return found

    def texts(self) -> list[str]:
        """Return the definitions that are kept, the one that was used last at the end."""
        with self._lock:
            return [text for text, _ in self._defined]

    def _define(self, text: str) -> Any:
        module = self._load()
        self.made += 1
        with module.FusionDefinition() as fd:
            exec(compile(text, "<thunder nvfuser>", "exec"), {"fd": fd, "DataType": module.DataType})
        return fd


LIBRARY = Library(lambda: import_module("nvfuser_direct"))


class Fusion:
    """Runs a region by nvFuser, by one definition for each layout of its inputs.

    Args:
        region: in prims; its outputs are computed in it.
        eager: computes the outputs by PyTorch: what has no elements, and how outputs lie in memory.
        library: where it is defined.
        settings: how it is executed.

    ``latest`` is nvFuser's definition by which it was run last.
    """

    def __init__(
        self, region: Trace, eager: Callable[..., Any], library: Library | None = None, settings: Settings = PLAIN
    ) -> None:
        self.region = region
        self.eager = eager
        self.library = LIBRARY if library is None else library
        self.settings = settings
        given = {"_enable_options": list(settings.enable), "_disable_options": list(settings.disable)}
        self.options = {name: values for name, values in given.items() if values}
        self.latest: Any = None
        self.__name__ = region.name
        self._layouts: dict[Any, InLayout] = {}
        self._refused: set[str] = set()

    def __call__(self, *inputs: Any) -> tuple[Any, ...]:
        """Return the outputs."""
        if not self.fits(inputs):
            return tuple(self.eager(*inputs))
        key = tuple([(t.shape, t.stride()) if isinstance(t, torch.Tensor) else None for t in inputs])
        layout = self._layouts.get(key)
        if layout is None:
            layout = self._layouts[key] = self._layout(inputs)
        text = layout.text
        if text in self._refused:
            return tuple(self.eager(*inputs))
        try:
            defined = self.library.defined(text, self.settings)
            self.latest = defined.fusion
            found = defined.execute(list(inputs), self.options)
        except RuntimeError as error:
            if OF_NVFUSER not in str(error) or any([word in str(error) for word in BROKEN]):
                raise
            return self._refuse(text, _first_sentence(error), inputs)
        count = len(self.region.outputs)
        for flag in found[count:]:
            if flag.device.type == "cpu" and flag:
                return tuple(self.eager(*inputs))  # which raises
            # an assertion of the device, as in PyTorch's own kernels that read at indices: nobody waits for it
            torch._assert_async(flag == 0)
        results = list(found[:count])
        if layout.copied is None:
            if [(tuple(t.shape), t.dtype) for t in results] != [(w.shape, w.dtype) for w in layout.outputs]:
                return self._refuse(text, "its results are of another shape or dtype than PyTorch's", inputs)
            layout.copied = _not_its_own(results, layout.outputs, inputs)
        for i in layout.copied:
            wanted, result = layout.outputs[i], results[i]
            made = torch.empty_strided(wanted.shape, wanted.strides, dtype=wanted.dtype, device=result.device)
            results[i] = made.copy_(result)
        return tuple(results)

    def _refuse(self, text: str, why: str, inputs: Sequence[Any]) -> tuple[Any, ...]:
        """Note that a definition does not do; return the outputs by PyTorch."""
        self._refused.add(text)
        warnings.warn(REFUSED.format(name=self.__name__, why=why), RuntimeWarning, stacklevel=3)
        return tuple(self.eager(*inputs))

    def fits(self, inputs: Sequence[Any]) -> bool:
        """Whether nvFuser runs a call: symbolic sizes of 1 would be broadcast there, and nothing is launched for 0."""
        for proxy, value in zip(self.region.inputs, inputs, strict=True):
            if isinstance(value, torch.Tensor) and isinstance(proxy, TensorProxy):
                sizes = zip(proxy.shape, value.shape, strict=True)
                if any([n == 0 or n == 1 and isinstance(d, NumberProxy) for d, n in sizes]):
                    return False
        return True

    def _layout(self, inputs: Sequence[Any]) -> InLayout:
        """Return what is known of calls with inputs that lie in memory like these."""
        outputs = fake_outputs(self.eager, inputs)
        layouts = [Layout.of(t.shape, t.stride()) if isinstance(t, torch.Tensor) else None for t in inputs]
        text = write_definition(self.region, layouts, [Layout.of(t.shape, t.stride()) for t in outputs])
        wanted = [Wanted(tuple(t.shape), tuple(t.stride()), t.dtype) for t in outputs]
        return InLayout(text, [_example(value) for value in inputs], wanted)

    def sources(self) -> list[str]:
        """Return the definitions that calls made, in order."""
        return list(dict.fromkeys([layout.text for layout in self._layouts.values()]))

    def reproducers(self) -> list[str]:
        """Return, for each definition, a Python program that runs it with inputs like those of its first call."""
        found: dict[str, str] = {}
        for layout in self._layouts.values():
            found.setdefault(layout.text, _reproducer(self.region, layout.text, layout.examples, self.options))
        return list(found.values())

    def save_reproducer(self, folder: Path) -> list[Path]:
        """Write these programs to a folder; return where."""
        folder.mkdir(parents=True, exist_ok=True)
        made = []
        for number, program in enumerate(self.reproducers()):
            made.append(folder / f"{self.__name__}_{number}.py")
            made[-1].write_text(program, encoding="utf-8")
        return made


def _not_its_own(results: Sequence[torch.Tensor], outputs: Sequence[Wanted], inputs: Sequence[Any]) -> list[int]:
    """Return which results are to be copied: nvFuser leaves elements that are the same as one, and views as views."""
    memory = {t.untyped_storage().data_ptr() for t in inputs if isinstance(t, torch.Tensor)}
    copied = []
    for i, (result, wanted) in enumerate(zip(results, outputs, strict=True)):
        if tuple(result.stride()) != wanted.strides or result.untyped_storage().data_ptr() in memory:
            copied.append(i)
        memory.add(result.untyped_storage().data_ptr())
    return copied


def _first_sentence(error: Exception) -> str:
    """Return what an error says, without the frames of C++ that it lists."""
    return str(error).split("Exception raised from")[0].strip()


def _example(value: Any) -> Example:
    if isinstance(value, torch.Tensor):
        return Example(tuple(value.shape), value.stride(), str(value.dtype))
    return Example(number=int(value))


def _reproducer(region: Trace, text: str, examples: Sequence[Example], options: Mapping[str, list[str]]) -> str:
    given = "".join([f", {name}={values}" for name, values in options.items()])
    body = "\n".join([f"    {line}" for line in text.splitlines()])
    comment = "\n".join([f"# {line}" for line in str(region).splitlines()])
    inputs = "\n".join([f"    {example.text()}," for example in examples])
    return (
        f"{comment}\nimport torch\nfrom nvfuser_direct import DataType, FusionDefinition\n\n"
        f"with FusionDefinition() as fd:\n{body}\n\n"
        f"inputs = [\n{inputs}\n]\nprint(fd)\nfor output in fd.execute(inputs{given}):\n    print(output)\n"
    )


__all__ = ["LIBRARY", "MOST", "Example", "Fusion", "Library"]
