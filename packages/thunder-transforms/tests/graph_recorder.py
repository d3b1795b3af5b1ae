"""A stand-in for capture and replay of CUDA graphs, on the CPU: it fails where CUDA's would.

While recording, what waits for the device, and what reads memory that is neither the graph's nor an input's, is an
error. A replay makes the recorded calls again, from and into the memory that they read and wrote then: whoever passes
an input at another address gets what the old one holds. Graphs of a queue share their memory: a replay leaves NaNs in
that of later ones, and of earlier ones but in their outputs, which were there when the later ones were recorded.
"""

import ctypes
import threading

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from thunder_transforms.cudagraphs import CaptureError, Recording

aten = torch.ops.aten
WAITS = {aten._local_scalar_dense, aten.nonzero, aten.equal, aten.is_nonzero, aten.masked_select}
FROM_OUTSIDE = {aten.lift_fresh, aten.lift_fresh_copy}


def tensors_in(*values):
    return [v for v in tree_leaves(values) if isinstance(v, torch.Tensor)]


def address(tensor):
    return tensor.untyped_storage().data_ptr()


def apart(tensor):
    """Return a tensor of the same memory that does not count among its users, as little as a graph of CUDA does."""
    storage = tensor.untyped_storage()
    if not storage.nbytes():
        return tensor
    memory = torch.frombuffer((ctypes.c_byte * storage.nbytes()).from_address(storage.data_ptr()), dtype=torch.uint8)
    whole = memory[: storage.nbytes() // tensor.element_size() * tensor.element_size()].view(tensor.dtype)
    return whole.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())


class Capture(TorchDispatchMode):
    def __init__(self, inputs):
        super().__init__()
        self.calls = []
        self.owned = {address(t) for t in tensors_in(inputs)}

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if function.overloadpacket in WAITS:
            raise RuntimeError(f"{function} waits for the device: operation not permitted when stream is capturing")
        if function.overloadpacket in FROM_OUTSIDE:
            raise RuntimeError(f"{function} copies from the host: operation not permitted when stream is capturing")
        for tensor in tensors_in(args, kwargs):
            if tensor.numel() and address(tensor) not in self.owned:
                raise RuntimeError(f"{function} reads memory that was allocated outside of the graph's pool")
        out = function(*args, **kwargs)
        self.owned |= {address(t) for t in tensors_in(out)}
        self.calls.append((function, args, kwargs, out))
        return out


def spoil(tensors):
    for tensor in tensors:
        if tensor.is_floating_point():
            tensor.detach().fill_(float("nan"))


class StandInRecorder:
    device_type = "cpu"

    def __init__(self):
        self.warmed = 0
        self.lock = threading.Lock()
        self.on = "a queue"
        self.between = lambda: None  # what other threads do before results are copied out
        self.memory = {}

    def queue(self):
        return self.on

    def warm_up(self, function, inputs):
        self.warmed += 1
        return function(*inputs)

    def record(self, function, inputs):
        inputs = [apart(t) if isinstance(t, torch.Tensor) else t for t in inputs]
        capture = Capture(inputs)
        try:
            with capture:
                outputs = tuple(function(*inputs))
        except RuntimeError as error:
            raise CaptureError(str(error)) from error
        given = {address(t) for t in tensors_in(inputs)}
        mine = [t for t in tensors_in([out for *_, out in capture.calls]) if address(t) not in given]
        pool = self.memory.setdefault(self.queue(), [])
        number = len(pool)
        kept = {address(t) for t in outputs}
        pool.append((mine, [t for t in mine if address(t) not in kept]))
        spoil(mine)  # a capture computes nothing
        return Recording(lambda: self.replay(capture.calls, pool, number), outputs)

    def replay(self, calls, pool, number):
        for i, (everything, inner) in enumerate(pool):
            if i != number:
                spoil(everything if i > number else inner)
        for function, args, kwargs, out in calls:
            again = function(*args, **kwargs)
            mine = {address(t) for t in tensors_in(args, kwargs)}
            for old, new in zip(tensors_in(out), tensors_in(again), strict=True):
                if address(old) not in mine:
                    old.detach().copy_(new)
        self.between()
