"""Pipeline parallelism: processes run parts of a model one after the other, on several batches at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import torch
from torch.distributed.pipelining import PipelineStage

from thunder_distributed._torch_versions import TRAINS_BESIDE_CONSTANTS
from thunder_distributed.axes import axis_of
from thunder_distributed.checks import check_backend, check_devices, check_plain
from thunder_distributed.compiled import original_of
from thunder_distributed.stages import Inlined, StageModule, StageProgram, arguments_in_order, cut_program
from thunder_frontend import ThunderModule, compiled_function, jit
from thunder_frontend.options import Options
from thunder_ir import TensorProxy
from thunder_torch import to_torch_dtype


class Stage(PipelineStage):
    """A stage that PyTorch's schedules run; gradients are synchronised once for all microbatches.

    ``submod`` has its parameters, under the names that they have in the model.
    """

    def forward_one_chunk(self, fwd_chunk_id: int, *args: Any, **kwargs: Any) -> Any:
        """Run one microbatch; the last one's backward, which is the last, synchronises what was added up."""
        last = self.chunks is None or fwd_chunk_id == self.chunks - 1
        synchronising = nullcontext() if last else self.submod.no_sync()  # type: ignore[operator]
        with synchronising:
            return super().forward_one_chunk(fwd_chunk_id, *args, **kwargs)

    def _get_init_p2p_neighbors_ops(self) -> list[Any]:
        """Return by what neighbours greet; PyTorch 2.9 receives 4 bytes for the 8 that it sends, which gloo refuses."""
        greetings = super()._get_init_p2p_neighbors_ops()
        for greeting in greetings:
            greeting.tensor = greeting.tensor.to(torch.float32)
        return greetings


def pipeline(
    model: torch.nn.Module,
    device_mesh: Any = None,
    *,
    split_at: Sequence[str],
    args: tuple[torch.Tensor, ...],
    wrap: Callable[[torch.nn.Module], torch.nn.Module] | None = None,
) -> list[Stage]:
    """Cut a model into stages, of which each process runs some.

    The program of the whole model is acquired once, in every process, and cut where modules begin; what a stage reads
    of earlier ones is handed on. With as many stages as processes each has one; with a multiple, process ``r`` of
    ``n`` has the stages ``r``, ``r + n``, and so on. Give them to a schedule of ``torch.distributed.pipelining``.

    Args:
        model: a module, or what ``thunder.jit`` made of one, equal in all processes. Its parameters become those of
            the stages.
        device_mesh: a mesh of one dimension, a group or an axis; all processes if not given.
        split_at: names of modules, in the order in which they run; with each a stage begins.
        args: one microbatch, for its shapes: what the model is called with.
        wrap: makes a stage one that is trained in parallel over another dimension of a mesh, such as
            ``lambda stage: fsdp(stage, device_mesh=mesh["data"])``.

    Returns:
        This process's stages.

    Raises:
        AxisError: ``torch.distributed`` is not initialised, or the mesh has several dimensions.
        DisagreementError: the processes' models differ.
        KeyError: a name is that of no module.
        NotImplementedError: a parameter is read by two stages; the program writes to a tensor outside of it; it
            returns something else than tensors; it is trained, and hands on what has no gradient, which PyTorch
            before 2.13 cannot.
        TypeError: a part of the model is compiled by itself, or distributed by PyTorch.
        ValueError: there are no multiple of the processes of stages, modules run in another order, the model and its
            arguments are on several devices, or ``ddp`` or ``fsdp`` was applied to the model before.

    Example:
        ``schedule = Schedule1F1B(pipeline(model, mesh["pipe"], split_at=["blocks.6"], args=(tokens,))[0], 8, loss)``
    """
    original = original_of(model, "pipeline")
    axis = axis_of(device_mesh, "pipe")
    check_plain(original, "pipeline", "pass the model as it was, and what makes each stage one, wrap=lambda stage: ...")
    count = len(split_at) + 1
    if count % axis.size:
        raise ValueError(
            f"{count} stages for {axis.size} processes: name {-(-count // axis.size) * axis.size - 1} modules in "
            "split_at, so that all have as many"
        )
    arguments_in_order(args)
    devices = [t.device for t in (*original.parameters(), *args)]
    check_devices(devices, "pipeline")
    check_backend(devices, axis, "pipeline")
    programs = cut_program(original, split_at, args)
    if original.training and not TRAINS_BESIDE_CONSTANTS:
        _refuse_constants(programs)
    if axis.group is not None and axis.size > 1:
        lines = [line for p in programs for line in str(p.trace).splitlines()]
        ranks = ",".join(map(str, torch.distributed.get_process_group_ranks(axis.process_group)))
        axis.ledger.agree(f"{axis.name}:{ranks}", lines, "the model's stages", axis.patience)
    options = compiled_function(model).options if isinstance(model, ThunderModule) else None
    return [
        _made(programs[i], i, count, original.training, axis.process_group, options, wrap)
        for i in range(axis.rank, count, axis.size)
    ]


def _refuse_constants(programs: Sequence[StageProgram]) -> None:
    for number, program in enumerate(programs[1:], 1):
        constants = [p for p in program.given if not p.requires_grad]
        if constants:
            raise NotImplementedError(
                f"stage {number} is given {', '.join(f'{p.name}: {p.type_string}' for p in constants)}, and stages of "
                f"PyTorch {torch.__version__} expect a gradient of all that they are given in training: compute it in "
                "each stage, or use PyTorch 2.13"
            )


def _made(
    program: StageProgram, number: int, count: int, training: bool, group: Any, options: Options | None,
    wrap: Callable[[torch.nn.Module], torch.nn.Module] | None,
) -> Stage:  # fmt: skip
    module = StageModule(program, training)
    transforms = (*(options.transforms if options else ()), Inlined())
    compiled = jit(module, fallback="error", transforms=transforms)
    if options is not None:
        compiled = ThunderModule(module, replace(options, fallback="error", transforms=transforms))
    run = compiled if wrap is None else wrap(compiled)
    device = next((t.device for t in program.tensors), torch.device("cpu"))
    handed_on = list(program.trace.output)
    return Stage(
        run, number, count, device, input_args=_examples(program.given),
        output_args=_examples(handed_on), group=group,
    )  # fmt: skip


def _examples(proxies: Sequence[TensorProxy]) -> tuple[torch.Tensor, ...]:
    """Return tensors without values, from which PyTorch reads what is sent."""
    made = []
    for p in proxies:
        shape, dtype = [int(n) for n in p.shape], to_torch_dtype(p.dtype)
        made.append(torch.empty(shape, dtype=dtype, device="meta", requires_grad=p.requires_grad))
    return tuple(made)


__all__ = ["Stage", "pipeline"]
