"""Private names of PyTorch that this package imports, written by `python tools/private_names.py --write`."""

from thunder_torch.internals import fill

MISSING = fill(
    (
        "torch._decomp.core_aten_decompositions",
        "torch._dispatch.python.enable_python_dispatcher",
        "torch._dynamo.source.ConstantSource",
        "torch._ops.HigherOrderOperator",
        "torch._subclasses.fake_tensor.FakeTensorMode",
        "torch._subclasses.functional_tensor.dispatch_functionalize",
        "torch.utils._pytree",
    )
)
