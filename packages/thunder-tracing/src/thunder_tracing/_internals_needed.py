"""Private names of PyTorch that this package imports, written by `python tools/private_names.py --write`."""

from thunder_torch.internals import fill

MISSING = fill(
    (
        "torch._C._FunctionBase",
        "torch._C._disabled_torch_function_impl",
        "torch._C._set_grad_enabled",
        "torch._subclasses.fake_tensor.DataDependentOutputException",
        "torch._subclasses.fake_tensor.DynamicOutputShapeException",
        "torch._subclasses.fake_tensor.FakeTensor",
        "torch.overrides._pop_mode",
        "torch.overrides._push_mode",
        "torch.utils._device.DeviceContext",
        "torch.utils._pytree",
    )
)
