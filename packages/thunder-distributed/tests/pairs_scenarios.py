"""Ways of training in parallel together, over meshes of two dimensions, and each over four processes."""

import context_scenarios
import expert_scenarios
import pipeline_scenarios
import tensor_parallel_scenarios
import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.pipelining import Schedule1F1B

from thunder_distributed import (
    FSDPBucketingStrategy,
    FSDPType,
    context_parallel,
    ddp,
    fsdp,
    parallelize,
    sequence_part,
)

SHARDED = {"sharding_strategy": FSDPType.ZERO3, "bucketing_strategy": FSDPBucketingStrategy.LAYER}


def scenario_four_processes_share_a_sequence(rank, size):
    context_scenarios.trains_as_one(rank, size, lambda m: ddp(context_parallel(m)), steps=2)


def scenario_four_processes_share_experts(rank, size):
    expert_scenarios.trains_as_one(rank, size, lambda m: ddp(parallelize(m, None, expert_scenarios.PLAN)), steps=2)


def scenario_four_processes_run_four_stages(rank, size):
    split_at = ["blocks.1", "blocks.2", "blocks.3"]
    stages, whole = pipeline_scenarios.trains_as_one(rank, size, Schedule1F1B, split_at, steps=2)
    pipeline_scenarios.same_parameters(stages, whole)


def scenario_shards_of_layers_that_are_shared(rank, size):
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("data", "tensor"))
    mine = mesh["data"].get_local_rank()
    tensor_parallel_scenarios.trains_as_one(
        rank,
        size,
        lambda m: fsdp(
            parallelize(m, mesh["tensor"], tensor_parallel_scenarios.PLAN), device_mesh=mesh["data"], **SHARDED
        ),
        lambda t: t.chunk(2)[mine],
        clip=0.1,
    )


def scenario_shards_over_batches_and_sequences(rank, size):
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("data", "context"))
    mine = mesh["data"].get_local_rank()
    context_scenarios.trains_as_one(
        rank,
        size,
        lambda m: fsdp(context_parallel(m, mesh["context"]), **SHARDED),  # over all four
        cut=lambda t: sequence_part(t.chunk(2)[mine], mesh["context"]),
        steps=3,
    )


def scenario_stages_of_which_each_is_trained_on_several_batches(rank, size):
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("data", "pipe"))
    mine = mesh["data"].get_local_rank()

    def share(tokens):
        return tokens.chunk(2)[mine]

    for wrap in (
        lambda stage: ddp(stage, process_group=mesh["data"]),
        lambda stage: fsdp(stage, device_mesh=mesh["data"]),
    ):
        stages, whole = pipeline_scenarios.trains_as_one(
            rank, size, Schedule1F1B, ["blocks.2"], steps=3, wrap=wrap, share=share, group=mesh["pipe"]
        )
        for name, parameter in stages[0].submod.named_parameters():
            expected = whole.get_parameter(name)
            if parameter.shape != expected.shape:  # padded parts, of the first dimension
                rows = parameter.shape[0]
                expected = expected[mine * rows : (mine + 1) * rows]
                parameter = parameter[: len(expected)]
            torch.testing.assert_close(parameter, expected, rtol=1e-4, atol=1e-5)
