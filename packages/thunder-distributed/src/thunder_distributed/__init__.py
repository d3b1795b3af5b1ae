"""Parallelism for compiled programs: collectives with their rules, and passes that place them."""

from thunder_distributed import (
    dtensors,  # noqa: F401  (which programs hold from then on)
    prims,
)
from thunder_distributed._version import __version__
from thunder_distributed.axes import Axis, AxisError, axis_of
from thunder_distributed.checkpoint import (
    get_model_state_dict,
    get_optimizer_state_dict,
    load_model_state_dict,
    load_optimizer_state_dict,
)
from thunder_distributed.clipping import clip_grad_norm_
from thunder_distributed.context import context_parallel, sequence_part, whole_sequence
from thunder_distributed.data_parallel import ddp
from thunder_distributed.executor import executor
from thunder_distributed.in_flight import CollectiveError
from thunder_distributed.joins import join
from thunder_distributed.ledger import DisagreementError, Ledger
from thunder_distributed.losses import VocabularyCrossEntropy
from thunder_distributed.pipelines import Stage, pipeline
from thunder_distributed.saving import CheckpointError, latest_checkpoint, save_checkpoint
from thunder_distributed.sharded import FSDPBucketingStrategy, FSDPType, fsdp
from thunder_distributed.styles import Colwise, ExpertParallel, Rowwise, SequenceParallel, WholeSequence
from thunder_distributed.tensor_parallel import column_parallel, parallelize, row_parallel
from thunder_distributed.unsharding import unshard_params

__all__ = [
    "Axis", "AxisError", "CheckpointError", "CollectiveError", "Colwise", "DisagreementError", "ExpertParallel",
    "FSDPBucketingStrategy", "FSDPType", "Ledger", "Rowwise", "SequenceParallel", "Stage", "VocabularyCrossEntropy",
    "WholeSequence", "__version__", "axis_of", "clip_grad_norm_", "column_parallel", "context_parallel", "ddp",
    "executor", "fsdp", "get_model_state_dict", "get_optimizer_state_dict", "join", "latest_checkpoint",
    "load_model_state_dict", "load_optimizer_state_dict", "parallelize", "pipeline", "prims", "row_parallel",
    "save_checkpoint", "sequence_part", "unshard_params", "whole_sequence",
]  # fmt: skip
