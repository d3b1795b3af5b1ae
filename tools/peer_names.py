"""Write docs/peer-names.md: each public name of Lightning Thunder 0.2.6, and what became of it here.

    python tools/peer_names.py

`tools/peer_names.json` has the names that the modules of the peer define, read from its wheel. What is found under
the same path is here; others are renamed, or not here, with the reason.
"""

import importlib
import json
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "peer-names.md"
NAMES = Path(__file__).with_suffix(".json")

HEAD = """# Names of Lightning Thunder

Each public name of Lightning Thunder 0.2.6 by module: here under the same path, renamed, or not here, and why. Made by
`python tools/peer_names.py`.
"""

RENAMED = {
    "thunder.TupleProxy": "plain tuples of proxies",
    "thunder.ListProxy": "plain lists of proxies",
    "thunder.DictProxy": "plain dictionaries of proxies",
    "thunder.get_compile_data": "`thunder.compile_data(fn)`",
    "thunder.sdpa_executor": "part of `thunder.pytorch_executor`",
    "thunder.common.trace": "`thunder.trace`",
    "thunder.common.CompileData": "`thunder.compile_data(fn)`",
    "thunder.common.CompileStats": "`thunder.compile_stats(fn)`",
    "thunder.common.transform_for_execution": "`thunder_executors.transform_for_execution`",
    "thunder.core.trace.TraceCtx": "`thunder.core.trace.Trace`",
    "thunder.core.trace.from_trace": "`trace.replace(...)`",
    "thunder.core.trace.TraceProvenance": "`thunder.core.trace.Provenance`",
    "thunder.core.transform_common.Transform": "`thunder.Transform`",
    "thunder.core.transform_common.dce": "`thunder_ir.passes.dead_code_elimination`",
    "thunder.core.transform_common.cse": "`thunder_ir.passes.common_subexpressions`",
    "thunder.dev_utils.check_trace.check_trace": "`thunder_ir.verify`",
    "thunder.examine.make_trace_dot": "`thunder.report`",
    "thunder.executors.get_torch_executor": "`thunder.pytorch_executor`",
    "thunder.executors.passes": "the passes of `thunder_executors`",
    "thunder.dev_utils.check_trace.CheckedListOfTraces": "`DebugOptions(check_traces=True)`",
    "thunder.dev_utils.benchmark.benchmark": "`thunder_benchmarks`",
    "thunder.dev_utils.benchmark.benchmark_n": "`thunder_benchmarks`",
    "thunder.transforms.ExtractionOnlyPrologueTransform": '`cache="same input"`, which checks nothing',
    "thunder.transforms.extraction_only_prologue_transform.ExtractionOnlyPrologueTransform": '`cache="same input"`',
    "thunder.transforms.quantization.BitsAndBytesLinearQuant4bit": '`thunder.transforms.Quantise("nf4")`',
    "thunder.transforms.autocast.is_autocast_enabled": "`torch.is_autocast_enabled`",
    "thunder.core.recipe.Lookaside": "`OperatorExecutor.register_operator(..., replaces=...)`",
}

REASONS = {
    "thunder.clang": "its own helpers; the operations under the names of `thunder_lang`",
    "thunder.core": "inside of the peer; a Thunder package has its own",
    "thunder.core.recipe": "there is one interpreter",
    "thunder.dev_utils": "inside of the peer; see [transforms of your own](transforms.md)",
    "thunder.distributed": "inside of the peer, or not yet; the prims are `thunder_distributed.prims`",
    "thunder.dynamo": "inside of the peer",
    "thunder.examine": "of its nvFuser or inside of the peer",
    "thunder.executors": "not yet",
    "thunder.numpy": "inside of the peer",
    "thunder.torch": "inside of the peer",
    "thunder.transforms": "inside of the peer",
    "thunder.transforms.cudagraph": "runs of calls are recorded by `thunder_transforms.cudagraphs.GraphRun`",
    "thunder.transforms.te_inference": "not yet: `fp8` asks for an executor of that name",
    "thunder": "not yet",
}


def here(module: str, name: str) -> bool:
    """Whether a name is found under the same path."""
    try:
        return hasattr(importlib.import_module(module), name)
    except ImportError:
        return False


def reason(module: str) -> str:
    """Why a name of this module is not here: what is said of the module, or of the one around it."""
    while module not in REASONS:
        module = module.rpartition(".")[0]
    return REASONS[module]


def section(module: str, names: list[str]) -> list[str]:
    """Return what the page says of one module."""
    found = [name for name in names if here(module, name)]
    renamed = [name for name in names if name not in found and f"{module}.{name}" in RENAMED]
    absent = [name for name in names if name not in found and name not in renamed]
    lines = ["", f"## `{module}`", "", f"{len(found)} of {len(names)} are here.", ""]
    if found:
        lines += [f"- **here**: {listed(found)}"]
    lines += [f"- **renamed**: `{name}`: {RENAMED[f'{module}.{name}']}" for name in renamed]
    if absent:
        lines += [f"- **not here** ({reason(module)}): {listed(absent)}"]
    return lines


def listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def main() -> None:
    names = json.loads(NAMES.read_text(encoding="utf-8"))
    lines = [line for module, found in names.items() for line in section(module, found)]
    PAGE.write_text(HEAD + "\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
