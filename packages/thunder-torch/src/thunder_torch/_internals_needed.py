"""Private names of PyTorch that this package imports, written by `python tools/private_names.py --write`."""

from thunder_torch.internals import fill

MISSING = fill(
    (
        "torch._C._FunctionBase",
        "torch._C._VariableFunctions",
        "torch._C._current_graph_task_id",
        "torch._C._get_cudnn_sdp_enabled",
        "torch._C._get_flash_sdp_enabled",
        "torch._C._get_math_sdp_enabled",
        "torch._C._get_mem_efficient_sdp_enabled",
        "torch._C._nn",
        "torch._C._nn.gelu",
        "torch._C._nn.glu",
        "torch._C._nn.linear",
        "torch._C._nn.log_sigmoid",
        "torch._C._nn.mish",
        "torch._C._nn.one_hot",
        "torch._C._nn.pad",
        "torch._C._nn.silu",
        "torch._C._nn.softplus",
        "torch._C._nn.softshrink",
        "torch._C._will_engine_execute_node",
        "torch._grouped_mm",
        "torch._subclasses.fake_tensor.DataDependentOutputException",
        "torch._subclasses.fake_tensor.DynamicOutputShapeException",
        "torch._subclasses.fake_tensor.FakeTensor",
        "torch._subclasses.fake_tensor.FakeTensorMode",
        "torch._subclasses.fake_tensor.UnsupportedFakeTensorException",
        "torch._subclasses.fake_tensor.UnsupportedOperatorException",
        "torch.autograd.grad_mode._unsafe_preserve_version_counter",
        "torch.nn.functional._threshold",
        "torch.utils._device.DeviceContext",
        "torch.utils._python_dispatch.TorchDispatchMode",
    )
)
