"""What differs between versions of PyTorch, found by feature."""

from __future__ import annotations

from torch.distributed.pipelining import PipelineStage

TRAINS_BESIDE_CONSTANTS = hasattr(PipelineStage, "_get_grad_send_meta")
"""Whether PyTorch asks if what a stage hands on has a gradient; before 2.13 it expects one of all."""
