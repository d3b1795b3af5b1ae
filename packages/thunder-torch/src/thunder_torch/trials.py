"""Metadata of calls that PyTorch can only tell by running them: on small tensors of made-up values.

They are run on the CPU, whichever device the arguments are on: there a value that does not fit is an error of the call.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    UnsupportedFakeTensorException,
    UnsupportedOperatorException,
)

from thunder_ir import IntegerProxy, TensorProxy, Unknown, number_proxy
from thunder_ir.unknown import terms_of
from thunder_torch.convert import fake_of, from_torch_device, to_torch_device
from thunder_torch.errors import DataDependentShapeError, UnknownMetadataError
from thunder_torch.names import name_of
from thunder_torch.randomness import Generators
from thunder_torch.specs import NUMBERS, TensorSpec, map_specs, map_tensors, spec_of_result, tensors_of
from thunder_torch.traits import Trait, has_trait
from thunder_torch.unknown_sizes import TYPICAL, sum_of

ASCENDING = 5  # how many different integers there are in the trial in which they are not all the same
LARGEST_TRIAL = 1 << 22  # elements in all arguments together up to which a call is tried on real memory
LOWS = (0, 1, 2)  # which kinds of values are tried
NO_DATA = "its data is not allocated yet"
"""What PyTorch says where a call reads values of a fake tensor."""
_NO_KERNEL = (UnsupportedFakeTensorException, UnsupportedOperatorException)
_NO_VALUES = (DataDependentOutputException, DynamicOutputShapeException)


def data_dependent(function: Callable[..., Any], error: Exception) -> DataDependentShapeError:
    """Return the error to raise for an operation whose result's metadata depend on values."""
    first = str(error).strip().partition("\n")[0]
    return DataDependentShapeError(
        f"what {name_of(function)} returns depends on values in a way that only the run of the program tells; "
        f"compute it outside, pass it in, or use a form with a static shape "
        f"(torch.where for masked selection, torch.nonzero_static for nonzero). PyTorch says: {first}"
    )


def on_real_tensors(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], error: Exception, known: bool
) -> Any:
    """Try a call that failed on fake tensors on real ones, which have PyTorch's own checks and every kernel.

    Fake kernels check in other words, and some operations have none. What the eager call raises is what the user
    shall see; if it returns the same metadata for different values, they are the answer.
    """
    device = _device_of_results(args, kwargs)
    if device is None or device.type != "cpu" and not asks_for_values(error):
        if _lacks_kernel(error):
            raise UnknownMetadataError(
                f"PyTorch cannot tell the metadata of {name_of(function)} without running it ({error}); register a "
                f"fake kernel with torch.library.register_fake"
            ) from error
        raise error
    told, refused = _trials(function, args, kwargs, known)
    if not told:
        raise refused or error
    trusted = _lacks_kernel(error) or has_trait(function, Trait.SHAPED_BY_METADATA)
    if any([other != told[0] for other in told]):
        return _merged(told, name_of(function), data_dependent(function, error))
    if len(told) == 1 and not trusted:
        raise data_dependent(function, error)
    return told[0]


def sizes_by_trial(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], refusal: Exception, known: bool
) -> Any:
    """Return the specification of a result whose sizes depend on values in a way that PyTorch does not tell.

    Sizes that come out different for different values are unknown; those that do not are checked when the program
    runs, as nothing says that they never do.

    Raises:
        Exception: ``refusal``, if no two trials succeed, or they agree in too little.
    """
    if _device_of_results(args, kwargs) is None:
        raise refusal
    told, _ = _trials(function, args, kwargs, known)
    if len(told) < 2:
        raise refusal
    return _merged(told, name_of(function), refusal)


def _merged(told: list[Any], operation: str, refusal: Exception) -> Any:
    one: Any = told[0]
    if any([other.__class__ is not one.__class__ for other in told]):
        raise refusal
    if isinstance(one, TensorSpec):
        if any([t[1:4] != one[1:4] or t[5:] != one[5:] or len(t.shape) != len(one.shape) for t in told]):
            raise refusal
        sizes = [_size(places, i, operation) for i, places in enumerate(zip(*[t.shape for t in told], strict=True))]
        return one._replace(shape=tuple(sizes), strides=None, has_unknown=bool(sizes))
    if one.__class__ in NUMBERS:  # it may be the answer to a question about values, whether or not they differ here
        return number_proxy(told[0], unknown=Unknown(f"what {operation} returns"))
    if isinstance(one, (tuple, list)):
        if any([len(other) != len(one) for other in told]):
            raise refusal
        items = [_merged(list(parts), operation, refusal) for parts in zip(*told, strict=True)]
        return one._make(items) if hasattr(one, "_make") else one.__class__(items)
    if any([other != one for other in told]):
        raise refusal
    return one


def _size(found: tuple[int, ...], place: int, operation: str) -> IntegerProxy:
    """Return a size that came out so in several trials: unknown, or the one that it always was."""
    if len(set(found)) == 1:
        return sum_of(terms_of(found[0]), f"a size of what {operation} returns", found[0])
    return IntegerProxy(TYPICAL, "", Unknown(f"dimension {place} of what {operation} returns", 0))


def _trials(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], known: bool
) -> tuple[list[Any], Exception | None]:
    """Return the specifications of what a call returns for several kinds of values, and the first error there was."""
    told = []
    refused: Exception | None = None
    with torch.random.fork_rng(devices=[]):
        for low in LOWS:
            try:
                told.append(_trial(function, args, kwargs, low, known))
            except Exception as raised:
                refused = refused or raised
    return told, refused


def succeeds(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether a call returns for real tensors, if these are small."""
    if not _can_be_tried(args, kwargs):
        return False
    with torch.random.fork_rng(devices=[]):
        for low in LOWS:
            try:
                _trial(function, args, kwargs, low, known=False)
            except Exception:  # of these values; of all of them, if none is left
                continue
            return True
    return False


def _can_be_tried(args: Any, kwargs: Any) -> bool:
    device = _device_of_results(args, kwargs)
    return device is not None and device.type == "cpu"


def _device_of_results(args: Any, kwargs: Any) -> torch.device | None:
    """Return where a call returns what a trial of it, on the CPU, returns there; ``None`` if it cannot be tried."""
    tensors = tensors_of(args, kwargs)
    if sum(math.prod(map(int, p.shape)) for p in tensors if isinstance(p, TensorProxy)) > LARGEST_TRIAL:
        return None
    others = {device for t in tensors if (device := to_torch_device(t.device)).type != "cpu"}
    if not others:
        return torch.device("cpu")
    named = any([isinstance(value, torch.device) for value in (*args, *kwargs.values())])
    return None if named or len(others) > 1 else others.pop()


def _moved(spec: Any, device: torch.device) -> Any:
    """Return what is told of a result as it is on another device, whose kernels may lay out new memory otherwise."""
    there = from_torch_device(device)
    return map_specs(lambda t: t._replace(device=there, strides=None if t.viewed is None else t.strides), spec)


def asks_for_values(error: Exception) -> bool:
    """Whether a call failed for want of values. Other errors of other devices, such as of two at once, are its own."""
    return isinstance(error, _NO_VALUES) or NO_DATA in str(error)


def _lacks_kernel(error: Exception) -> bool:
    """Whether PyTorch says that it has no fake kernel, rather than that the arguments are wrong."""
    return isinstance(error, _NO_KERNEL) or "no fake impl registered" in str(error)


def _trial(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], low: int, known: bool) -> Any:
    """Return the specification of what a call returns for real tensors of some values."""
    reals: list[torch.Tensor] = []

    def real(value: Any) -> torch.Tensor:
        tensor = real_of(value, low) if isinstance(value, TensorProxy) else value.detach().cpu().clone()
        reals.append(tensor)
        return tensor

    torch.manual_seed(low)
    spec = spec_of_result(tried(function, map_tensors(real, args), map_tensors(real, kwargs)), reals, known)
    device = _device_of_results(args, kwargs)
    return spec if device is None or device.type == "cpu" else _moved(spec, device)


def tried(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return what a call returns for real tensors of made-up values, changed where they contradict each other.

    The generators that the call is given are left as they were.
    """
    name = name_of(function)
    if name.endswith("ctc_loss"):
        _fit_lengths(*args, **kwargs)
    if has_trait(function, Trait.MISTOLD):
        _fit_batches(*args, **kwargs)
    if name.endswith("_pad_packed_sequence"):
        _fit_rows(*args, **kwargs)
    with Generators.given_to(args, kwargs).unchanged():
        return function(*args, **kwargs)


def _fit_batches(data: Any, lengths: Any, batch_first: bool) -> None:
    """Give a trial of packing sequences lengths that there are: all of them, or one."""
    lengths.fill_(data.shape[1 if batch_first else 0] if lengths.numel() and not int(lengths[0]) else 1)


def _fit_rows(data: Any, batch_sizes: Any, *_: Any, **__: Any) -> None:
    """Give a trial of padding packed sequences the rows that there are: as many steps as can be, or even ones.

    PyTorch does not check them: others make it write to memory that is not its own.
    """
    steps, rows = len(batch_sizes), len(data)
    if not 0 < steps <= rows:
        raise ValueError(f"{rows} rows are none of {steps} steps")
    at_once = [rows - steps + 1] + [1] * (steps - 1)
    evenly = [rows // steps + (i < rows % steps) for i in range(steps)]
    batch_sizes.copy_(torch.tensor(evenly if int(batch_sizes[-1]) else at_once))


def _fit_lengths(log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, *_: Any, **__: Any) -> None:
    """Give a trial of ``ctc_loss`` lengths that agree with its targets, which stand one after another."""
    if isinstance(input_lengths, torch.Tensor):
        input_lengths.fill_(log_probs.shape[0])
    if isinstance(target_lengths, torch.Tensor):
        each, more = divmod(targets.shape[-1], max(target_lengths.numel() if targets.dim() == 1 else 1, 1))
        target_lengths.fill_(each)
        target_lengths.view(-1)[: more if targets.dim() == 1 else 0] += 1


def real_of(proxy: TensorProxy, low: int) -> torch.Tensor:
    """Return a tensor of that metadata: integers are all ``low``, or ascending for 2, others random between 0 and 1."""
    fake = fake_of(proxy)
    length = fake.untyped_storage().nbytes() // max(fake.element_size(), 1)
    if fake.dtype.is_floating_point and fake.element_size() > 1:
        memory = torch.rand(length, dtype=fake.dtype)
    elif low == 2 and fake.dtype is not torch.bool:
        memory = torch.arange(length).remainder(ASCENDING).to(fake.dtype)
    else:
        memory = torch.full((length,), min(low, 1), dtype=torch.uint8).to(fake.dtype)
    tensor = memory.as_strided(fake.shape, fake.stride())
    return tensor.requires_grad_() if proxy.requires_grad else tensor
