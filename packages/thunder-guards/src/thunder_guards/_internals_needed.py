"""Private names of PyTorch that this package imports, written by `python tools/private_names.py --write`."""

from thunder_torch.internals import fill

MISSING = fill(
    (
        "torch._C.DisableTorchFunction",
        "torch._C._are_functorch_transforms_active",
        "torch._C._dispatch_keys",
        "torch._C._get_cudnn_sdp_enabled",
        "torch._C._get_deterministic_algorithms",
        "torch._C._get_deterministic_algorithms_warn_only",
        "torch._C._get_flash_sdp_enabled",
        "torch._C._get_fp32_precision_getter",
        "torch._C._get_math_sdp_enabled",
        "torch._C._get_mem_efficient_sdp_enabled",
        "torch._C._get_torch_function_state",
        "torch._C._get_tracing_state",
        "torch._C._len_torch_dispatch_stack",
        "torch._C._len_torch_function_stack",
        "torch._C._set_deterministic_algorithms",
        "torch._C._set_fp32_precision_setter",
        "torch._C._set_grad_enabled",
        "torch._C._set_torch_function_state",
        "torch._GLOBAL_DEVICE_CONTEXT",
        "torch._tensor_str.PRINT_OPTS",
        "torch.utils._device.DeviceContext",
    )
)
