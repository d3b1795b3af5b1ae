"""Private names of PyTorch that this package imports, written by `python tools/private_names.py --write`."""

from thunder_torch.internals import fill

MISSING = fill(
    (
        "torch._C._nn.adaptive_avg_pool2d",
        "torch._C._nn.adaptive_avg_pool3d",
        "torch._C._nn.avg_pool2d",
        "torch._C._nn.avg_pool3d",
        "torch._C._nn.max_pool2d_with_indices",
        "torch._C._nn.max_pool3d_with_indices",
        "torch._fused_sdp_choice",
        "torch._grouped_mm",
        "torch._log_softmax_backward_data",
        "torch._prims_common.suggest_memory_format",
        "torch.autograd.Variable._execution_engine.run_backward",
    )
)
