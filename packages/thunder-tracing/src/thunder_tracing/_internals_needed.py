"""Private names of PyTorch that this package imports, written by `python tools/private_names.py --write`."""

from thunder_torch.internals import fill

MISSING = fill(
    (
        "torch.Tensor._make_subclass",
        "torch.Tensor._make_wrapper_subclass",
        "torch._C.DisableTorchFunction",
        "torch._C.DisableTorchFunctionSubclass",
        "torch._C.ScriptObject",
        "torch._C._EnableTorchFunction",
        "torch._C._FunctionBase",
        "torch._C._are_functorch_transforms_active",
        "torch._C._autograd",
        "torch._C._autograd.CreationMeta.DEFAULT",
        "torch._C._autograd._get_creation_meta",
        "torch._C._autograd._top_saved_tensors_default_hooks",
        "torch._C._disabled_torch_function_impl",
        "torch._C._is_torch_function_mode_enabled",
        "torch._C._len_torch_function_stack",
        "torch._C._set_grad_enabled",
        "torch._neg_view",
        "torch._subclasses.fake_tensor.DataDependentOutputException",
        "torch._subclasses.fake_tensor.DynamicOutputShapeException",
        "torch._subclasses.fake_tensor.FakeTensor",
        "torch.overrides._pop_mode",
        "torch.overrides._push_mode",
        "torch.utils._device.DeviceContext",
        "torch.utils._pytree",
        "torch.utils._pytree.TreeSpec",
        "torch.utils._pytree.tree_flatten",
        "torch.utils._pytree.tree_leaves",
        "torch.utils._pytree.tree_unflatten",
    )
)
