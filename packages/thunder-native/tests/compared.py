"""A plugin of pytest: as :mod:`always`, and each run of native code is compared, bit for bit, with the Python text.

PYTHONPATH=packages/thunder-native/tests pytest -p compared packages/thunder-executors-llvm/tests
"""

import always  # noqa: F401
import torch

from thunder_native.runner import Runner, watched

_direct = Runner.called_directly.fget
runs = 0
"""How many have been compared."""


def bits(tensor):
    """Return what tells a tensor from others: its dtype, how it lies, and its bytes."""
    held = torch.empty(tensor.shape, dtype=tensor.dtype).copy_(tensor.detach())
    return tensor.dtype, tensor.shape, tensor.stride(), held.reshape(-1).view(torch.uint8)


def compare(runner, kind, found, wanted):
    """Raise where tensors differ from those that the Python text makes."""
    for number, (a, b) in enumerate(zip(found, wanted, strict=True)):
        *found_facts, found_bytes = bits(a)
        *wanted_facts, wanted_bytes = bits(b)
        if found_facts != wanted_facts or not torch.equal(found_bytes, wanted_bytes):
            how = f"{found_facts}, {a}, not {wanted_facts}, {b}"
            raise AssertionError(f"{kind} {number} of native code differs from the text's: {how}\n{runner.replays}")


def compared(self, *inputs):
    """Run a region twice, where native code runs it."""
    global runs
    tensors = [t for t in inputs if isinstance(t, torch.Tensor)]
    if watched() or (torch.is_grad_enabled() and any([t.requires_grad for t in tensors])):
        return _direct(self)(*inputs)
    outputs = _direct(self)(*inputs)
    written = [t.clone() for t in tensors]
    kept = [t.clone() for t in outputs]  # what shares memory with an input may be written to once more
    compare(self, "output", kept, [t.clone() for t in self.python(*inputs)])
    compare(self, "input", written, [t.clone() for t in tensors])
    runs += 1
    return outputs


Runner.__call__ = compared
Runner.called_directly = property(lambda self: self)


def pytest_terminal_summary(terminalreporter):
    """Say how many runs were compared."""
    terminalreporter.write_line(f"{runs} runs of native code compared with the Python text")
