"""Private names of PyTorch that this package imports, written by `python tools/private_names.py --write`."""

from thunder_torch.internals import fill

MISSING = fill(("torch._C._set_grad_enabled",))
