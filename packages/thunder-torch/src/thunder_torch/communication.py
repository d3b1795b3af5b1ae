"""Communication: which operations of PyTorch exchange tensors with other processes.

Every process takes part in each collective of the others, in the same order: a program neither drops one whose result
it does not read, nor merges equal ones, nor makes one again.
"""

from __future__ import annotations

from typing import Any

from thunder_ir import OpTags
from thunder_torch.torch_versions import OpOverload, OpOverloadPacket

NAMESPACES = frozenset({"_c10d_functional", "_c10d_functional_autograd", "c10d_functional", "symm_mem"})
"""Where PyTorch has its functional collectives."""

EFFECTS = frozenset({OpTags.COLLECTIVE, OpTags.DONT_DCE, OpTags.DONT_RECOMPUTE, OpTags.DONT_FUSE})
"""The traits of what communicates."""


def communication_tags(function: Any) -> frozenset[OpTags]:
    """Return the traits that a callable has because it communicates; none if it does not.

    Example:
        >>> import torch
        >>> from thunder_torch.communication import communication_tags
        >>> communication_tags(torch.ops.aten.add)
        frozenset()
    """
    if isinstance(function, OpOverload):
        return EFFECTS if function.namespace in NAMESPACES else frozenset()
    if isinstance(function, OpOverloadPacket):
        return EFFECTS if function._qualified_op_name.partition("::")[0] in NAMESPACES else frozenset()
    return frozenset()
