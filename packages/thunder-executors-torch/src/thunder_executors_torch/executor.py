"""The executor of PyTorch: what it runs without being told."""

from __future__ import annotations

from typing import Any

import torch

from thunder_executors import Implementation, OperatorExecutor
from thunder_ir import Symbol

MODULES = ("torch", "torch.nn.functional", "torch.special", "torch.linalg", "torch.fft", "torch.Tensor", "torch._C._nn")


class TorchExecutor(OperatorExecutor):
    """Runs prims as its modules say, and any symbol that stands for a function of PyTorch by that very function."""

    def implementations(self, symbol: Symbol) -> list[Implementation]:
        found = super().implementations(symbol)
        if not found and callable(symbol.origin):
            found = [Implementation(self, self.operator(symbol.origin))]
            self._implementations[symbol] = found
        return found

    def call(self, path: str, meta: Any) -> Symbol:
        """Return an operator for use in execution transforms: the function at ``path``.

        Args:
            path: dotted, below ``torch``.
            meta: proxies in, proxies out.
        """
        function: Any = torch
        for name in path.split(".")[1:]:
            function = getattr(function, name)
        return self.register_operator(path.rpartition(".")[2], meta=meta, fn=function, path=path)


executor = TorchExecutor("torch", version=torch.__version__, always=True, priority=-100, checks=False, modules=MODULES)
