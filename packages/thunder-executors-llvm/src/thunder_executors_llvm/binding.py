"""The one module that speaks to llvmlite: from the text of a module to the addresses of its functions.

LLVM is a hundred megabytes of code, so llvmlite is imported when something is about to be compiled, and not before.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import itertools
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

LEVEL = 2
"""How much LLVM optimises when it chooses instructions."""

PASSES = ("sroa", "simplify_cfg", "instruction_combine")
"""What is done before, of LLVM's own list, which takes ten times as long."""

LEAST = ("sroa",)
"""What is done for kernels, which are written without repetition: they are as fast as after the others."""

CODE_MODEL = "small"
"""Code reaches its constants relative to where it is; in LLVM's default for code in memory it loads each address."""


@cache
def missing() -> str | None:
    """Return why there is no llvmlite to import, or ``None``; nothing is imported."""
    return "llvmlite is not installed" if importlib.util.find_spec("llvmlite") is None else None


@cache
def load_error() -> str | None:
    """Import llvmlite, and return why that fails, or ``None``."""
    try:
        _llvm()
    except (ImportError, OSError) as error:  # absent, or its library does not load here
        return f"llvmlite cannot be imported: {error}"
    return None


@cache
def _llvm() -> Any:
    return importlib.import_module("llvmlite.binding")


@dataclass(frozen=True, slots=True)
class Machine:
    """What code is generated for.

    Args:
        triple: as LLVM names the platform.
        cpu: as LLVM names it.
        features: what instructions there are, ``"+avx2,-avx512f"``.
    """

    triple: str
    cpu: str
    features: str

    @property
    def has(self) -> frozenset[str]:
        """The features that are there."""
        return frozenset([f[1:] for f in self.features.split(",") if f.startswith("+")])


@cache
def host() -> Machine:
    """Return the machine that this process runs on."""
    _start()
    llvm = _llvm()
    features = llvm.get_host_cpu_features()
    return Machine(llvm.get_process_triple(), llvm.get_host_cpu_name(), features.flatten())


@cache
def versions() -> str:
    """Return what compiled code depends on besides its text and the machine: llvmlite, LLVM, and how it is called."""
    version = ".".join(map(str, _llvm().llvm_version_info))
    wrapper = importlib.metadata.version("llvmlite")
    return f"llvmlite {wrapper}, LLVM {version}, level {LEVEL}, code model {CODE_MODEL}"


@cache
def _start() -> None:
    _llvm().initialize_native_target()
    _llvm().initialize_native_asmprinter()


@cache
def _target_machine(machine: Machine) -> Any:
    _start()
    target = _llvm().Target.from_triple(machine.triple)
    return target.create_target_machine(
        cpu=machine.cpu, features=machine.features, opt=LEVEL, reloc="pic", codemodel=CODE_MODEL
    )


_LOCK = threading.Lock()
"""LLVM's objects here are shared by all threads; compiling takes turns."""


def compile_object(text: str, machine: Machine, names: Sequence[str] = PASSES) -> bytes:
    """Compile the text of a module to an object file.

    Args:
        text: LLVM's textual form.
        machine: what it shall run on.
        names: of the passes that are done before instructions are chosen.

    Raises:
        RuntimeError: LLVM does not accept the text; the message says where.
    """
    with _LOCK:
        llvm, target = _llvm(), _target_machine(machine)
        module = llvm.parse_assembly(text)
        module.verify()
        passes = llvm.create_new_module_pass_manager()
        for name in names:
            getattr(passes, f"add_{name}_pass")()
        passes.run(module, llvm.create_pass_builder(target, llvm.create_pipeline_tuning_options(speed_level=LEVEL)))
        made: bytes = target.emit_object(module)
        return made


_numbers = itertools.count()


@cache
def _jit() -> Any:
    return _llvm().create_lljit_compiler(_target_machine(host()), use_jit_link=True)  # code beside its constants


def load_object(image: bytes, exports: Sequence[str], imports: Mapping[str, int]) -> Mapping[str, int]:
    """Bring an object file into memory, for good: a thread may run its code whoever has forgotten it.

    Returns the addresses of the exports, by name.

    Args:
        image: what :func:`compile_object` returned.
        exports: the functions that are wanted.
        imports: addresses of those that it calls.
    """
    with _LOCK:
        builder = _llvm().JITLibraryBuilder().add_object_img(image)
        for name in exports:
            builder.export_symbol(name)
        for name, address in imports.items():
            builder.import_symbol(name, address)
        tracker = builder.link(_jit(), f"library{next(_numbers)}")
        tracker.detach()
    return {name: tracker[name] for name in exports}
