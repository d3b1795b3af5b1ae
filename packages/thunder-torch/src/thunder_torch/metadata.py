"""Metadata of any PyTorch call, by PyTorch itself: run on tensors without data, and remembered."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    UnsupportedFakeTensorException,
    UnsupportedOperatorException,
)
from torch.utils._python_dispatch import TorchDispatchMode

from thunder_ir import IntegerProxy, NumberProxy, Proxy, TensorProxy
from thunder_torch.convert import (
    fake_mode,
    fake_of,
    from_torch_device,
    from_torch_dtype,
    to_torch_device,
)
from thunder_torch.errors import DataDependentShapeError, UnknownMetadataError, UnsupportedMutationError
from thunder_torch.names import name_of, path_of
from thunder_torch.places import at_first_place

LARGEST_TRIAL = 1 << 22  # elements in all arguments together up to which a call is tried on real memory
CAPACITY = 1 << 16  # calls remembered


class TensorSpec(NamedTuple):
    """What is remembered of an output tensor.

    Args:
        shape, dtype, device, requires_grad, strides: as of a :class:`~thunder_ir.TensorProxy`.
        argument: the tensor argument, counted in order, that the output is itself; ``None`` if it is a new one.
        viewed: the tensor argument whose memory it shares, or ``None``.
    """

    shape: tuple[int, ...]
    dtype: Any
    device: Any
    requires_grad: bool
    strides: tuple[int, ...] | None
    argument: int | None
    viewed: int | None


class _NotCacheableError(Exception):
    """The metadata of the result may depend on more than the metadata of the arguments."""


class _Memo(dict[Any, Any]):
    """What earlier calls returned. It forgets everything rather than grow without bound."""

    def keep(self, key: Any, value: Any) -> None:
        if len(self) >= CAPACITY:
            self.clear()
        self[key] = value


_MEMO = _Memo()
_PLAIN = frozenset({str, bytes, type(None), type(...), torch.dtype, torch.device, torch.memory_format, torch.layout})
_NUMBERS = frozenset({int, float, bool, complex})


def _key(value: Any) -> Any:
    """Return a hashable stand-in for an argument: equal only where the metadata of results are."""
    cls = value.__class__
    if cls is TensorProxy:
        shape = value.shape
        for dimension in shape:
            if dimension.__class__ is not int:
                raise _NotCacheableError
        return (shape, value.dtype, value.device, value.requires_grad, value.strides)
    if cls in _NUMBERS:
        return (cls, value)
    if cls in _PLAIN:
        return value
    if isinstance(value, (tuple, list)):
        return (cls, *map(_key, value))
    if isinstance(value, dict):
        return (cls, *[(k, _key(v)) for k, v in value.items()])
    if cls is slice:
        return (slice, _key(value.start), _key(value.stop), _key(value.step))
    if isinstance(value, (torch.Tensor, torch.Generator, NumberProxy, Proxy)):
        raise _NotCacheableError
    try:
        hash(value)
    except TypeError:
        raise _NotCacheableError from None
    return value


def _arguments_key(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the key under which a call is remembered, or ``None`` if it cannot be."""
    try:
        state = (torch.is_grad_enabled(), torch.get_default_dtype(), default_device_name())
        if kwargs:
            return (function, state, *map(_key, args), *[(name, _key(v)) for name, v in kwargs.items()])
        return (function, state, *map(_key, args))
    except _NotCacheableError:
        return None


def default_device_name() -> str | None:
    """Return the device on which factory functions create tensors where that is not the CPU."""
    if torch._C._len_torch_function_stack() == 0:
        return None
    name = str(torch.get_default_device())
    return None if name == "cpu" else name


def metadata_of(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return what ``function`` returns for these arguments, with a proxy for each tensor.

    An output that is one of the arguments comes back as that very proxy.

    Args:
        function: any callable that takes and returns PyTorch tensors.
        args, kwargs: with :class:`~thunder_ir.TensorProxy` for tensors.

    Raises:
        DataDependentShapeError: the shapes depend on values.
        UnknownMetadataError: PyTorch has no fake kernel for the operation.
        Exception: what PyTorch raises for such arguments.

    Example:
        >>> import torch
        >>> from thunder_ir import Tensor
        >>> from thunder_torch.metadata import metadata_of
        >>> metadata_of(torch.sum, (Tensor((2, 3)),), {"dim": 1})
        <TensorProxy ?: float32[2]>
    """
    return _instantiate(spec_of(function, args, kwargs), args, kwargs)


def spec_of(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return what ``function`` returns for these arguments, with a :class:`TensorSpec` for each tensor."""
    args = at_first_place(function, args)
    key = _arguments_key(function, args, kwargs)
    spec = _MEMO.get(key) if key is not None else None
    if spec is None:
        spec = _run(function, args, kwargs)
        if key is not None:
            _MEMO.keep(key, spec)
    return spec


def connected_to(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[frozenset[int], tuple[bool, ...]]:
    """Return which of the tensors among the arguments have a gradient in PyTorch, by its graph of a call.

    Args:
        function: any callable that takes and returns PyTorch tensors.
        args, kwargs: with :class:`~thunder_ir.TensorProxy` for tensors, in a call whose metadata can be told.

    Returns:
        Their places among the tensors, in order; and for each tensor in the output whether it depends on any.
    """
    key = _arguments_key(connected_to, (function, *args), kwargs)
    found = _MEMO.get(key) if key is not None else None
    if found is None:
        found = _connected(function, args, kwargs)
        if key is not None:
            _MEMO.keep(key, found)
    return found  # type: ignore[no-any-return]


def _connected(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[frozenset[int], tuple[bool, ...]]:
    inputs: list[torch.Tensor] = []

    def fake(value: Any) -> torch.Tensor:
        inputs.append(fake_of(value) if isinstance(value, TensorProxy) else fake_mode().from_tensor(value))
        return inputs[-1]

    def real(value: Any) -> torch.Tensor:
        inputs.append(_real_of(value, 1) if isinstance(value, TensorProxy) else value.detach().clone())
        return inputs[-1]

    args, kwargs = _plain_numbers(args), _plain_numbers(kwargs)
    with _without_autocast(), torch.enable_grad(), torch.random.fork_rng(devices=[]):
        try:
            with fake_mode(), _unlogged():
                output = function(*map_tensors(fake, args), **map_tensors(fake, kwargs))
        except Exception:  # as for the metadata: values decide, or there is no kernel
            inputs.clear()
            output = function(*map_tensors(real, args), **map_tensors(real, kwargs))
    leaves = {id(t): i for i, t in enumerate(inputs)}
    outputs = tensors_of((output,), {})
    found = {leaves[id(t)] for t in outputs if id(t) in leaves}
    nodes = [t.grad_fn for t in outputs if t.grad_fn is not None]
    seen = set(nodes)
    while nodes:
        node = nodes.pop()
        if hasattr(node, "variable"):
            found.add(leaves.get(id(node.variable), -1))
        following = {n for n, _ in node.next_functions if n is not None} - seen
        seen |= following
        nodes += following
    return frozenset(found - {-1}), tuple([t.requires_grad for t in outputs])


def tensors_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """Return the tensor proxies and real tensors among the arguments, in order."""
    found: list[Any] = []

    def collect(value: Any) -> Any:
        found.append(value)
        return value

    map_tensors(collect, args)
    map_tensors(collect, kwargs)
    return found


def map_tensors(function: Callable[[Any], Any], value: Any) -> Any:
    """Return ``value`` with ``function`` applied to the tensor proxies and real tensors in it."""
    cls = value.__class__
    if cls in _NUMBERS or cls in _PLAIN:
        return value
    if isinstance(value, (TensorProxy, torch.Tensor)):
        return function(value)
    if isinstance(value, (tuple, list)):
        items = [map_tensors(function, v) for v in value]
        if cls is tuple or cls is list or cls is torch.Size:
            return items if cls is list else tuple(items)
        return value._make(items) if hasattr(value, "_make") else cls(items)
    if isinstance(value, dict):
        return {k: map_tensors(function, v) for k, v in value.items()}
    if cls is slice:
        return slice(*[map_tensors(function, v) for v in (value.start, value.stop, value.step)])
    return value


def _instantiate(spec: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    cls = spec.__class__
    if cls is TensorSpec:
        if spec[5] is not None:
            return tensors_of(args, kwargs)[spec[5]]
        return TensorProxy(spec[0], spec[1], spec[2], spec[3], spec[4])
    if cls in _NUMBERS or cls in _PLAIN or cls is torch.Size:
        return spec
    if isinstance(spec, (tuple, list)):
        items = [_instantiate(s, args, kwargs) for s in spec]
        if cls is tuple or cls is list:
            return cls(items)
        return spec._make(items) if hasattr(spec, "_make") else cls(items)
    if isinstance(spec, dict):
        return {k: _instantiate(v, args, kwargs) for k, v in spec.items()}
    return spec


def _plain_numbers(value: Any) -> Any:
    """Return ``value`` with plain numbers for number proxies: integers are fixed, others stand in by their value."""
    if isinstance(value, NumberProxy):
        return int(value) if isinstance(value, IntegerProxy) else value.value
    if isinstance(value, (tuple, list)) and value.__class__ in (tuple, list):
        return value.__class__([_plain_numbers(v) for v in value])
    if value.__class__ is slice:
        return slice(*[_plain_numbers(v) for v in (value.start, value.stop, value.step)])
    if value.__class__ is dict:
        return {k: _plain_numbers(v) for k, v in value.items()}
    return value


_FAKE_LOG = logging.getLogger("torch._subclasses.fake_tensor")
_NO_KERNEL = (UnsupportedFakeTensorException, UnsupportedOperatorException)
SHAPED_BY_METADATA = frozenset({
    "combinations", "corrcoef", "cov", "ctc_loss", "functional_ctc_loss", "gaussian_nll_loss", "istft", "linalg_lstsq",
})  # fmt: skip
"""Names of operations that look at values, to check them or to choose a way, but shape their results by metadata."""


def _run(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the specification of the result, by running the call on fake tensors."""
    args, kwargs = _plain_numbers(args), _plain_numbers(kwargs)
    known = all(p.strides is not None for p in tensors_of(args, kwargs) if isinstance(p, TensorProxy))
    fakes: list[torch.Tensor] = []

    def fake(value: Any) -> torch.Tensor:
        tensor = fake_of(value) if isinstance(value, TensorProxy) else fake_mode().from_tensor(value)
        fakes.append(tensor)
        return tensor

    with _without_autocast():
        fake_args, fake_kwargs = map_tensors(fake, args), map_tensors(fake, kwargs)
        versions = _versions(fakes)
        try:
            with fake_mode(), _unlogged(), _watching(function):
                output = function(*fake_args, **fake_kwargs)
        except (DynamicOutputShapeException, DataDependentOutputException) as error:
            if name_of(function) not in SHAPED_BY_METADATA:
                raise data_dependent(function, error) from None
            return _on_real_tensors(function, args, kwargs, error, known)
        except Exception as error:
            return _on_real_tensors(function, args, kwargs, error, known)
        if _versions(fakes) != versions:
            raise UnsupportedMutationError(
                f"{name_of(function)} writes to its arguments; operations of a program return values. Use an "
                f"out-of-place form, or make it a torch.library.custom_op that declares mutates_args"
            )
        return _spec(output, fakes, known)


@contextmanager
def _without_autocast() -> Iterator[None]:
    """Switch autocast off: what it casts is recorded before a call. The call itself may switch it on again."""
    kinds = [k for k in ("cpu", "cuda") if torch.is_autocast_enabled(k)]
    for kind in kinds:
        torch.set_autocast_enabled(kind, False)
    try:
        yield
    finally:
        for kind in kinds:
            torch.set_autocast_enabled(kind, True)


class _Draws(TorchDispatchMode):
    """Notes whether an operation that runs draws random numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.found = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.found = self.found or torch.Tag.nondeterministic_seeded in func.tags
        return func(*args, **(kwargs or {}))


_DREW = _Memo()


@contextmanager
def _watching(function: Any) -> Iterator[None]:
    """Find out whether a callable that is not PyTorch's own draws random numbers."""
    if path_of(function):
        yield
        return
    with _Draws() as draws:
        yield
    if draws.found:
        _DREW.keep(function, True)


def drew(function: Any) -> bool:
    """Whether a callable that is not PyTorch's own was seen to draw random numbers, when its metadata were asked."""
    try:
        return function in _DREW
    except TypeError:
        return False


@contextmanager
def _unlogged() -> Iterator[None]:
    """Keep what fake kernels refuse out of the log: the error is raised, in PyTorch's own words."""
    before = _FAKE_LOG.disabled
    _FAKE_LOG.disabled = True
    try:
        yield
    finally:
        _FAKE_LOG.disabled = before


def _versions(tensors: list[torch.Tensor]) -> list[int]:
    """Return how often each tensor was written to."""
    return [] if torch.is_inference_mode_enabled() else [t._version for t in tensors]


def data_dependent(function: Callable[..., Any], error: Exception) -> DataDependentShapeError:
    """Return the error to raise for an operation whose result's metadata depend on values."""
    return DataDependentShapeError(
        f"what {name_of(function)} returns depends on the values in its tensors, which are not known while a program "
        f"is traced; compute it outside, pass it in, or use a form with a static shape "
        f"(torch.where for masked selection, torch.nonzero_static for nonzero). PyTorch says: {error}"
    )


def _on_real_tensors(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], error: Exception, known: bool
) -> Any:
    """Try a call that failed on fake tensors on real ones, which have PyTorch's own checks and every kernel.

    Fake kernels check in other words, and some operations have none. What the eager call raises is what the user
    shall see; if it returns the same metadata for different values, they are the answer.
    """
    proxies = [p for p in tensors_of(args, kwargs) if isinstance(p, TensorProxy)]
    on_cpu = all(to_torch_device(p.device).type == "cpu" for p in proxies)
    if not on_cpu or sum(torch.Size(p.shape).numel() for p in proxies) > LARGEST_TRIAL:
        if _lacks_kernel(error):
            raise UnknownMetadataError(
                f"PyTorch cannot tell the metadata of {name_of(function)} without running it ({error}); register a "
                f"fake kernel with torch.library.register_fake"
            ) from error
        raise error
    told = []
    refused: Exception | None = None
    with torch.random.fork_rng(devices=[]):
        for low in (0, 1):
            try:
                told.append(_trial(function, args, kwargs, low, known))
            except Exception as raised:
                refused = refused or raised
    if not told:
        raise refused or error
    trusted = _lacks_kernel(error) or name_of(function) in SHAPED_BY_METADATA
    if told[0] != told[-1] or not (len(told) == 2 or trusted):
        raise data_dependent(function, error)
    return told[0]


def _lacks_kernel(error: Exception) -> bool:
    """Whether PyTorch says that it has no fake kernel, rather than that the arguments are wrong."""
    return isinstance(error, _NO_KERNEL) or "no fake impl registered" in str(error)


def _trial(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], low: int, known: bool) -> Any:
    """Return the specification of what a call returns for real tensors of some values."""
    reals: list[torch.Tensor] = []

    def real(value: Any) -> torch.Tensor:
        tensor = _real_of(value, low) if isinstance(value, TensorProxy) else value.detach().clone()
        reals.append(tensor)
        return tensor

    torch.manual_seed(low)
    return _spec(function(*map_tensors(real, args), **map_tensors(real, kwargs)), reals, known)


def _real_of(proxy: TensorProxy, low: int) -> torch.Tensor:
    """Return a tensor of that metadata: integers are all ``low``, others random between 0 and 1."""
    fake = fake_of(proxy)
    length = fake.untyped_storage().nbytes() // max(fake.element_size(), 1)
    if fake.dtype.is_floating_point and fake.element_size() > 1:
        memory = torch.rand(length, dtype=fake.dtype)
    else:
        memory = torch.full((length,), low, dtype=torch.uint8).to(fake.dtype)
    tensor = memory.as_strided(fake.shape, fake.stride())
    return tensor.requires_grad_() if proxy.requires_grad else tensor


def _spec(output: Any, inputs: list[torch.Tensor], known: bool) -> Any:
    """Return ``output`` with specifications for its tensors.

    Args:
        inputs: the tensors that were given, in order.
        known: whether the strides of all of them were.
    """
    storages = {_storage(t): i for i, t in reversed(list(enumerate(inputs)))}

    def spec(tensor: torch.Tensor) -> TensorSpec:
        if tensor.layout is not torch.strided:
            raise UnknownMetadataError(f"the result is a tensor of layout {tensor.layout}; programs hold strided ones")
        argument = next((i for i, t in enumerate(inputs) if t is tensor), None)
        return TensorSpec(
            tuple([int(d) for d in tensor.shape]),
            from_torch_dtype(tensor.dtype),
            from_torch_device(tensor.device),
            tensor.requires_grad,
            tuple([int(s) for s in tensor.stride()]) if known else None,
            argument,
            storages.get(_storage(tensor)),
        )

    return map_tensors(spec, output)


def _storage(tensor: torch.Tensor) -> Any:
    """Return the identity of a tensor's memory."""
    return tensor.untyped_storage()._cdata if tensor.layout is torch.strided else id(tensor)


@dataclass(frozen=True)
class MetaOf:
    """The meta function of a symbol that stands for a callable. It knows which results PyTorch gives a gradient.

    Args:
        function: the callable.
    """

    function: Callable[..., Any]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return metadata_of(self.function, args, kwargs)


__all__ = [
    "MetaOf", "TensorSpec", "connected_to", "data_dependent", "drew", "map_tensors", "metadata_of", "spec_of",
    "tensors_of",
]  # fmt: skip
