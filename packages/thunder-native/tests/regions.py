"""Regions made of real calls: what is recorded is what PyTorch returned."""

import pkgutil

import torch

from thunder_executors import Region
from thunder_ir import BoundSymbol, Symbol, TensorProxy
from thunder_native.program import program_of
from thunder_native.runner import Runner
from thunder_native.runtime import runtime
from thunder_torch.convert import proxy_of


def function_at(path):
    """Return the function at a dotted path."""
    return pkgutil.resolve_name(path)


def many(x, w):
    """Call more functions in a row than Python makes by itself."""
    y = x
    for _ in range(8):
        y = torch.tanh(y) @ w + x
    return y


class Recorder:
    """Calls functions, and records the calls.

    Args:
        inputs: tensors that the region reads from outside.
    """

    def __init__(self, *inputs):
        self.inputs = inputs
        self.proxies = {}
        self.bounds = []
        self.names = 0
        self.made = [self.name(t) for t in inputs]

    def name(self, tensor):
        """Return the proxy of a tensor."""
        self.names += 1
        self.proxies[id(tensor)] = (proxy_of(tensor, f"t{self.names}"), tensor)
        return self.proxies[id(tensor)][0]

    def proxied(self, value):
        """Return a value with proxies for its tensors."""
        if isinstance(value, torch.Tensor):
            return self.proxies[id(value)][0]
        return type(value)([self.proxied(v) for v in value]) if isinstance(value, (tuple, list)) else value

    def call(self, path, *args, **kwargs):
        """Call a function, and record that."""
        function = function_at(path)
        symbol = Symbol(path.split(".")[-1], "torch", implementation=function, path=path)
        made = function(*args, **kwargs)
        given = self.proxied(args), {k: self.proxied(v) for k, v in kwargs.items()}
        output = self.name(made) if isinstance(made, torch.Tensor) else tuple([self.name(t) for t in made])
        self.bounds.append(BoundSymbol(symbol, *given, output))
        return made

    def region(self, *outputs):
        """Return what was recorded, with these outputs."""
        proxies = tuple([self.proxied(t) for t in outputs])
        assert all(isinstance(p, TensorProxy) for p in proxies)
        return Region(tuple(self.bounds), tuple(self.made), proxies)

    def runner(self, *outputs):
        """Return it in native code."""
        region = self.region(*outputs)
        return Runner(region, "native_0", program_of(region, runtime()))


def same(a, b):
    """Whether two tensors are alike in all that can be seen of them, their elements to the bit."""
    metadata = [(t.dtype, t.shape, t.stride(), t.storage_offset(), t.requires_grad, t._is_view()) for t in (a, b)]
    bytes_of = [t.detach().contiguous().view(-1).view(torch.uint8) if t.ndim else t.detach().clone() for t in (a, b)]
    return metadata[0] == metadata[1] and torch.equal(*bytes_of)
