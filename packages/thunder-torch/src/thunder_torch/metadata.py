"""Metadata of any PyTorch call, by PyTorch itself: run on fake tensors, and remembered."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import Any

import torch
from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException

from thunder_ir import (
    IntegerProxy,
    NumberProxy,
    TensorProxy,
    find_builder,
    flat_proxies,
    is_unknown,
    map_values,
    reached,
    value_of,
)
from thunder_torch.convert import fake_mode, fake_of, from_torch_dtype
from thunder_torch.errors import DataDependentShapeError, FixedError, UnsupportedMutationError, WithoutValuesError
from thunder_torch.fake_modes import plainly, unlogged
from thunder_torch.marked_sizes import told_by_marks
from thunder_torch.memo import Memo, Renamed, Symbolic, arguments_key
from thunder_torch.meta_tensors import OnMeta, on_meta, runs_on_meta, told_on_meta
from thunder_torch.names import name_of
from thunder_torch.places import as_from_the_first, at_first_place
from thunder_torch.plain_sizes import answered_plainly
from thunder_torch.sequences import padded, told_by_fewer_steps, with_few_steps, with_one_step, with_rows
from thunder_torch.specs import (
    NUMBERS,
    PLAIN,
    TensorSpec,
    at_values,
    map_specs,
    map_tensors,
    plain,
    spec_of_result,
    tensors_of,
    with_numbers,
)
from thunder_torch.traits import Trait, has_trait
from thunder_torch.trials import (
    asks_for_values,
    data_dependent,
    on_real_tensors,
    real_of,
    sizes_by_trial,
    succeeds,
    tried,
)
from thunder_torch.unknown_sizes import STAND_INS, fresh_number, has_unknown_sizes
from thunder_torch.watched_draws import Draws, watching

_MEMO = Memo()
Told = Callable[[tuple[Any, ...], dict[str, Any]], Any]


def metadata_of(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    quickly: Told | None = None,
) -> Any:
    """Return what ``function`` returns for these arguments, with a proxy for each tensor.

    An output that is one of the arguments comes back as that very proxy.

    Args:
        function: any callable that takes and returns PyTorch tensors.
        args, kwargs: with :class:`~thunder_ir.TensorProxy` for tensors.
        quickly: returns the specification of a result more cheaply than PyTorch does, or ``None`` if it does not know.

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
    spec, sizes = _told(function, args, kwargs, quickly)
    return _instantiate(spec, args, kwargs, sizes)


def spec_of(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return what ``function`` returns for these arguments, with a :class:`TensorSpec` for each tensor.

    The unknown sizes in it may be those of an earlier call.
    """
    return _told(function, args, kwargs)[0]


def _told(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], quickly: Told | None = None
) -> tuple[Any, dict[int, IntegerProxy]]:
    """Return the specification of a result, and of which unknown sizes those of this call take the place."""
    one_step = with_one_step(function, args)
    if one_step is not None:
        spec, made = _told(function, one_step, kwargs)
        return with_rows(spec, args[0]), made
    args = as_from_the_first(function, at_first_place(function, args))
    key = arguments_key(function, args, kwargs)
    if key is not None:
        spec = _MEMO.get(key)
        if spec is None:
            spec = _run(function, args, kwargs, quickly)
            _MEMO.keep(key, spec)
        return spec, {}
    renamed = Renamed(function, args, kwargs)
    if renamed.key is None:
        return _run(function, args, kwargs), {}
    found = _MEMO.get(renamed.key)
    if found is None:
        found = (_run(function, args, kwargs), renamed.sizes)
        _MEMO.keep(renamed.key, found)
    spec, sizes = found
    return spec, {id(old): new for old, new in zip(sizes, renamed.sizes, strict=True)}


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
    one_step = with_one_step(function, args)
    if one_step is not None:
        places, connected = connected_to(function, one_step, kwargs)
        return frozenset([place + (place > 0) for place in places]), connected  # the second one says how many there are
    if has_trait(function, Trait.READS_MEMORY) and not kwargs:
        connected = args[0].requires_grad  # which the rows are, as their lengths never are
        return frozenset([0] if connected else []), (connected, False)
    key = Renamed(connected_to, (function, *args), kwargs).key
    found = _MEMO.get(key) if key is not None else None
    if found is None:
        found = _connected(function, args, kwargs)
        if key is not None:
            _MEMO.keep(key, found)
    return found


def _connected(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[frozenset[int], tuple[bool, ...]]:
    inputs: list[torch.Tensor] = []
    args = with_few_steps(function, args)

    def fake(fakes: Any, value: Any) -> torch.Tensor:
        inputs.append(fakes.tensor(value))
        return inputs[-1]

    def real(value: Any) -> torch.Tensor:
        inputs.append(real_of(value, 1) if isinstance(value, TensorProxy) else value.detach().clone())
        return inputs[-1]

    with plainly(), torch.enable_grad(), torch.random.fork_rng(devices=[]):
        kinds = (_Known, _unknown_sizes, partial(_unknown_sizes, least=2))
        for kind in (OnMeta, *kinds) if runs_on_meta(function) else kinds:
            fakes = kind(name_of(function))
            try:
                given, named = (with_numbers(fakes.number, v) for v in (args, kwargs))
                given, named = (map_tensors(partial(fake, fakes), v) for v in (given, named))
                with fakes.mode, unlogged():
                    output = function(*given, **named)
                break
            except Exception:  # as for the metadata: values decide, or there is no kernel
                inputs.clear()
        else:
            given, named = (map_tensors(real, with_numbers(value_of, v)) for v in (args, kwargs))
            output = tried(function, given, named)
    leaves = {id(t): i for i, t in enumerate(inputs)}
    outputs = tensors_of((output,), {})
    found = {leaves[id(t)] for t in outputs if id(t) in leaves}
    nodes = [t.grad_fn for t in outputs if t.grad_fn is not None]
    for node in reached(nodes, lambda node: [n for n, _ in node.next_functions if n is not None]):
        if hasattr(node, "variable"):
            found.add(leaves.get(id(node.variable), -1))
    return frozenset(found - {-1}), tuple([t.requires_grad for t in outputs])


def _instantiate(spec: Any, args: tuple[Any, ...], kwargs: dict[str, Any], made: dict[int, Any]) -> Any:
    """Return a result of the specification; ``made`` holds what stands for its unknown numbers, by their patterns."""
    cls = spec.__class__
    if cls is TensorSpec:
        if spec[5] is not None:
            return tensors_of(args, kwargs)[spec[5]]
        if spec[7]:
            return TensorProxy(_fresh(spec[0], made), spec[1], spec[2], spec[3], _fresh(spec[4], made))
        return TensorProxy(spec[0], spec[1], spec[2], spec[3], spec[4])
    if cls in NUMBERS or cls in PLAIN or cls is torch.Size:
        return spec
    if isinstance(spec, NumberProxy):
        return fresh_number(spec, made)
    if isinstance(spec, (tuple, list)):
        items = [_instantiate(s, args, kwargs, made) for s in spec]
        if cls is tuple or cls is list:
            return cls(items)
        return spec._make(items) if hasattr(spec, "_make") else cls(items)
    if isinstance(spec, dict):
        return {k: _instantiate(v, args, kwargs, made) for k, v in spec.items()}
    return spec


def _fresh(sizes: tuple[Any, ...] | None, made: dict[int, Any]) -> Any:
    return None if sizes is None else tuple([d if d.__class__ is int else fresh_number(d, made) for d in sizes])


def _run(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], quickly: Told | None = None
) -> Any:
    """Return the specification of the result, by running the call on fake tensors."""
    for value in (*args, *kwargs.values()):
        if value.__class__ is torch.dtype:
            from_torch_dtype(value)  # of results of a dtype that programs do not know PyTorch's fakes tell another
    if has_trait(function, Trait.READS_MEMORY) and not kwargs:
        return padded(*args)
    _settle_numbers(function, args, kwargs)
    if has_unknown_sizes(tensors_of(args, kwargs)) or any(map(is_unknown, flat_proxies((args, kwargs)))):
        found = _by_marks(function, args, kwargs, Trait.SIZES_ARE_PRODUCTS)
        return _run_with_unknown(function, args, kwargs) if found is None else found
    if _has_symbolic_integers(args, kwargs):
        found = _run_with_open(function, args, kwargs)
        if found is not None:
            return found
    args, kwargs = (with_numbers(plain, v) for v in (args, kwargs))
    for proxy in tensors_of(args, kwargs):
        tuple(map(int, proxy.shape))  # PyTorch answers for these sizes, which the program is fixed to
    known = _strides_known(args, kwargs)
    if has_trait(function, Trait.MISTOLD):
        return _tried(function, args, kwargs)
    found = None if quickly is None else quickly(args, kwargs)
    if found is not None:
        return found
    if not kwargs:
        found = told_by_fewer_steps(lambda args: spec_of(function, args, {}), function, args)
    if found is None:
        found = told_on_meta(function, args, kwargs, known)
    if found is not None:
        return found
    try:
        return _faked(function, args, kwargs, known, _Known())
    except (DynamicOutputShapeException, DataDependentOutputException) as error:
        if has_trait(function, Trait.SHAPED_BY_METADATA):
            return on_real_tensors(function, args, kwargs, error, known)
        try:
            return _run_with_unknown(function, args, kwargs)
        except DataDependentShapeError as refusal:
            return sizes_by_trial(function, args, kwargs, refusal, known)
    except UnsupportedMutationError:
        raise
    except Exception as error:
        problem = error
    _refuse_lack_of_values(function, args, kwargs)
    return on_real_tensors(function, args, kwargs, problem, known)  # raises with no context of fakes


def _refuse_lack_of_values(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Say of a call that failed whether it was for tensors of the meta device among others."""
    devices = {str(t.device) for t in tensors_of(args, kwargs)}
    if "meta" in devices and len(devices) > 1:
        raise WithoutValuesError(
            f"{name_of(function)} is given tensors on {' and '.join(sorted(devices))}, and those on meta hold no "
            "values; give a module's parameters some first: module.to_empty(device=...) and load_state_dict(...), or "
            "load_state_dict(..., assign=True)"
        )


def _settle_numbers(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Fix symbolic floats as far as they decide what kind of value a call returns: that is told for all of them."""
    if find_builder() is None:
        return
    for number in {id(n): n for n in flat_proxies((args, kwargs)) if isinstance(n, NumberProxy)}.values():
        if number.python_type is not float or is_unknown(number):
            continue
        told = partial(_told_for, function, args, kwargs, number)
        few, many, *special = [values[float] for values in STAND_INS]
        usual = told(few) or told(many) or told(number.value)
        others = [value for value in special if told(value) not in (None, usual)]
        if not any([number == value for value in others]) and told(number.value) != usual:
            number.fixed()


def _told_for(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], number: NumberProxy, value: float
) -> str | None:
    """Return what a call returns, as text, where a symbolic number has a value; ``None`` if it raises for that."""
    given, named = (with_numbers(lambda n: value if n is number else n.value, v) for v in (args, kwargs))
    try:
        return repr(spec_of(function, given, named))
    except Exception:  # whatever the function raises where it refuses the value
        return None


def _run_with_open(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the specification of a result whose sizes follow from symbolic ones, or from values; ``None`` if it fails.

    What is to be said of a failure is known better where the sizes are fixed.
    """
    mistold = has_trait(function, Trait.MISTOLD)
    found = _by_marks(function, args, kwargs, Trait.SIZES_ARE_PRODUCTS, Trait.SYMBOLIC_PRODUCTS, Trait.SIZES_OF_FIRST)
    if found is not None or mistold:
        return found
    kwargs = {k: v for k, v in kwargs.items() if v.__class__ is not torch.Generator}  # beside one, PyTorch takes none
    try:
        return _with_symbols(function, args, kwargs, may_fix=False)
    except FixedError:
        pass
    try:
        at_hand = spec_of(function, *at_values((args, kwargs)))
    except Exception:  # of the call itself: the sizes are fixed, and it is raised there
        return None
    found = _with_symbols(function, args, kwargs, at_hand, in_python=True)
    return found if found is not None else _with_symbols(function, args, kwargs)


def _by_marks(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], *traits: Trait) -> Any:
    """Return the specification of a result each size of which is a product of those given; ``None`` of others.

    Args:
        function, args, kwargs: the call.
        traits: of functions whose results are such.
    """
    if not any([has_trait(function, trait) for trait in traits]):
        return None
    return told_by_marks(partial(spec_of, function), args, kwargs)


def _with_symbols(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], at_hand: Any = None, **options: bool
) -> Any:
    """Return the specification of a result by fake tensors with symbols for sizes; ``None`` if it fails.

    Args:
        function, args, kwargs: the call.
        at_hand: the specification for the sizes at hand, which the one with symbols is to be equal to.
        options: of the fake tensors.
    """
    try:
        told, numbers = _told_by_symbols(function, args, kwargs, options)
        spec, demand = told.of(numbers)
        if at_hand is not None and _plain_spec(spec) != _plain_spec(at_hand):
            return None
        demand()
    except (DynamicOutputShapeException, DataDependentOutputException):
        return None if has_trait(function, Trait.SHAPED_BY_METADATA) else _if_told(function, args, kwargs)
    except FixedError:
        raise
    except Exception as error:
        if not options.get("may_fix", True):
            raise FixedError(str(error)) from error
        return None
    return spec


def _told_by_symbols(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], options: dict[str, bool]
) -> tuple[Any, list[IntegerProxy]]:
    """Return what PyTorch tells of a call for symbols, remembered, and the numbers that these stand for."""
    symbolic = Symbolic((_told_by_symbols, function, *options.items()), args, kwargs)
    told = None if symbolic.key is None else _MEMO.get(symbolic.key)
    if told is not None:
        return told, symbolic.sizes
    fakes = importlib.import_module("thunder_torch.symbolic_sizes").OpenSizes(**options)  # here: loads compilers
    given, named = (with_numbers(fakes.number, v) for v in (args, kwargs))
    spec = _faked(function, given, named, _strides_known(args, kwargs), fakes)
    if symbolic.key is None:
        return fakes.told(spec, fakes.numbers()), fakes.numbers()
    told = fakes.told(spec, symbolic.sizes)
    _MEMO.keep(symbolic.key, told)
    return told, symbolic.sizes


def _plain_spec(spec: Any) -> Any:
    """Return a specification with the values at hand, to be compared."""
    return map_values(value_of, map_specs(lambda told: told._replace(has_unknown=False), spec))


def _if_told(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the specification of a result whose sizes depend on values; ``None`` if PyTorch does not tell."""
    try:
        return _run_with_unknown(function, args, kwargs)
    except DataDependentShapeError:
        return None


def _tried(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the specification of a result that is told by trials alone."""
    refusal = data_dependent(function, RuntimeError("no two trials agree"))
    return sizes_by_trial(function, args, kwargs, refusal, _strides_known(args, kwargs))


def _has_symbolic_integers(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    sizes = [d for p in tensors_of(args, kwargs) for d in p.shape]
    return any([isinstance(n, IntegerProxy) for n in (*sizes, *flat_proxies((args, kwargs)))])


def _strides_known(args: Any, kwargs: Any) -> bool:
    return all(p.strides is not None for p in tensors_of(args, kwargs) if isinstance(p, TensorProxy))


class _Known:
    """Fake tensors whose sizes are all known.

    Args:
        operation: what is asked for.
    """

    def __init__(self, operation: str = "") -> None:
        self.operation = operation

    number = staticmethod(value_of)
    dispatching = staticmethod(nullcontext)

    def settle(self) -> None:
        """Nothing is left open."""

    @property
    def mode(self) -> Any:
        return fake_mode()

    def tensor(self, value: Any) -> torch.Tensor:
        return fake_of(value) if isinstance(value, TensorProxy) else fake_mode().from_tensor(value)


def _faked(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], known: bool, fakes: Any) -> Any:
    """Return the specification of the result of a call on fake tensors, which ``fakes`` makes."""
    if has_trait(function, Trait.READS_MEMORY):
        raise data_dependent(function, RuntimeError("it reads memory, which fake tensors lack"))
    inputs: list[torch.Tensor] = []

    def fake(value: Any) -> torch.Tensor:
        inputs.append(fakes.tensor(value))
        return inputs[-1]

    with plainly():
        fake_args, fake_kwargs = map_tensors(fake, args), map_tensors(fake, kwargs)
        versions = _versions(inputs)
        plain = answered_plainly() if isinstance(fakes, _Known) else nullcontext()
        with plain, fakes.dispatching(), fakes.mode, unlogged(), watching(function):
            output = function(*fake_args, **fake_kwargs)
        fakes.settle()
        if _versions(inputs) != versions:
            raise UnsupportedMutationError(
                f"{name_of(function)} writes to its arguments; operations of a program return values. Use an "
                f"out-of-place form, or make it a torch.library.custom_op that declares mutates_args"
            )
        return spec_of_result(output, inputs, known, None if isinstance(fakes, _Known) else fakes)


def _run_with_unknown(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the specification of a result whose sizes may depend on values.

    What PyTorch cannot say without knowing whether a size is 0 or 1 it is asked for sizes of 2 and more; whether the
    answer holds for others is checked when the program runs.
    """
    problem: Exception | None = None
    for least in (0, 2):
        try:
            spec = _for_stand_ins(function, args, kwargs, least)
            if least and spec.__class__ in (tuple, list) and has_trait(function, Trait.SPLITS):
                raise data_dependent(function, RuntimeError("how many results there are depends on an unknown size"))
            return spec
        except _undecided() as error:
            problem = problem or error
        except (UnsupportedMutationError, DataDependentShapeError):
            raise
        except Exception as error:
            if not asks_for_values(error) and _refusal(function, args, kwargs) == str(error):  # whatever the sizes are
                raise
            problem = problem or error
    assert problem is not None
    raise data_dependent(function, problem) from None


def _unknown_sizes(operation: str, least: int = 0) -> Any:
    """Return what makes fake tensors some of whose sizes are not known."""
    return _symbols().UnknownSizes(operation, least)


def _undecided() -> tuple[type[Exception], ...]:
    """Return what PyTorch raises where an operation has to know a value, or an unknown size."""
    return DynamicOutputShapeException, DataDependentOutputException, *_symbols().UNDECIDED


def _symbols() -> ModuleType:
    return importlib.import_module("thunder_torch.unknown_symbols")  # here: loads PyTorch's compilers


def _for_stand_ins(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], least: int) -> Any:
    """Return the specification of a result.

    A number that is no integer and known only when the program runs is stood in for by several values, for which the
    specifications must be the same. One for which the operation raises does not count.
    """
    known = _strides_known(args, kwargs)
    told, refused = [], None
    for stand_ins in STAND_INS[: None if _is_estimated(args, kwargs) else 1]:
        fakes = _unknown_sizes(name_of(function), least)

        def number(value: NumberProxy, fakes: Any = fakes, stand_ins: Any = stand_ins) -> Any:
            if isinstance(value, IntegerProxy):
                return fakes.size(value)
            return stand_ins[value.python_type] if is_unknown(value) else value.value

        try:
            given, named = (with_numbers(number, v) for v in (args, kwargs))
            spec = _faked(function, given, named, known, fakes)
            fakes.demand()
            told.append(spec)
        except Exception as error:
            refused = refused or error
    if not told:
        assert refused is not None
        raise refused
    if any([repr(other) != repr(told[0]) for other in told[1:]]):
        raise data_dependent(function, ValueError("the metadata depend on a number that only the run tells"))
    return told[0]


def _refusal(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
    """Return what a call raises for estimated sizes, as text; ``None`` if it does not, or not on real tensors."""
    given, named = at_values((args, kwargs))
    try:
        _faked(function, given, named, True, _Known())
    except Exception as error:
        return None if succeeds(function, given, named) else str(error)
    return None


def _is_estimated(args: Any, kwargs: Any) -> bool:
    return any([is_unknown(p) and not isinstance(p, IntegerProxy) for p in flat_proxies((args, kwargs))])


def draws_numbers(function: Callable[..., Any], *args: Any) -> bool:
    """Whether a call of a function that may draw random numbers does so for these arguments, proxies for tensors."""
    draws = Draws()

    def watched(*fakes: Any) -> Any:
        with draws:
            return function(*fakes)

    if runs_on_meta(function) and on_meta(watched, args, {}) is not None:
        return draws.found
    try:
        _faked(watched, args, {}, False, _Known())
    except (DynamicOutputShapeException, DataDependentOutputException):
        return True
    return draws.found


def _versions(tensors: list[torch.Tensor]) -> list[int]:
    """Return how often each tensor was written to."""
    return [] if torch.is_inference_mode_enabled() else [t._version for t in tensors]


@dataclass(frozen=True)
class MetaOf:
    """The meta function of a symbol that stands for a callable. It knows which results PyTorch gives a gradient.

    Args:
        function: the callable.
    """

    function: Callable[..., Any]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return metadata_of(self.function, args, kwargs)
