"""``print`` in a program: each call prints, when it has computed what is printed."""

from __future__ import annotations

from typing import Any

import torch

from thunder_frontend.outputs import Built, Outside
from thunder_frontend.program import Effect
from thunder_ir import Proxy

T = torch.Tensor


class Text(str):
    """What an object was printed as, also inside of a container."""

    def __repr__(self) -> str:
        return self


class Prints:
    """What a program prints, in order.

    Args:
        calls: the acquisition.
    """

    def __init__(self, calls: Any) -> None:
        self._calls = calls
        self.effects: list[Effect] = []

    def __call__(
        self, *values: Any, sep: str | None = " ", end: str | None = "\n", file: Any = None, flush: bool = False
    ) -> None:
        """Do what ``print`` does, later. A tensor is printed as it is now, without what autograd knows of it."""
        source = None if file is None else self._calls.world.source_of(file)
        if file is not None and source is None:  # made by the program, which may read what it prints there
            print(*values, sep=sep, end=end, file=file, flush=flush)
            return
        self._calls.sharp("it calls print(), which prints when all of a call is computed")
        target = None if source is None else Outside(source)
        self.effects.append(Effect("print", target, (sep, end, flush), [self._part(v) for v in values]))

    def _part(self, value: Any) -> Any:
        if isinstance(value, T):
            with torch._C.DisableTorchFunction():
                return self._contents(self._calls.value(self._calls.traced(value)))
        if isinstance(value, (str, int, float, complex, type(None), Proxy)):
            return value
        if value.__class__ in (tuple, list):
            return value.__class__([self._part(v) for v in value])
        if value.__class__ is dict:
            return {k: self._part(v) for k, v in value.items()}
        source = self._calls.world.source_of(value)
        return Outside(source) if source is not None else Built(Text, (str(value),))

    def _contents(self, proxy: Any) -> Any:
        """A tensor's values, which nothing is written to later."""
        if any(i.proxy is proxy for i in self._calls.inputs):
            proxy = self._calls.on_values(torch.clone, (proxy,), {})
        return self._calls.on_values(T.detach, (proxy,), {}) if proxy.requires_grad else proxy
