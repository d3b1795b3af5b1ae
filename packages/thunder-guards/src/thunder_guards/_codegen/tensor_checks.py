"""The part of a prologue that checks the metadata of all tensors, in as few calls as possible.

PyTorch's check of tensors ends the process at nested tensors of the old kind. Where tensors are few, each is asked
before whether it is one. Many are checked by PyTorch's manager of guards, where such a tensor is an exception: it takes
as long as the check alone. No sign of Python's tells of them, as ``torch.utils.swap_tensors`` changes tensors in place.

A manager for hundreds of tensors is larger than all else that a call reads. Programs whose arguments alone differ share
the one for the parameters of their module, which so stays in the processor's caches.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias
from weakref import WeakValueDictionary

import torch

from thunder_guards._guards.environment import Environment
from thunder_guards._guards.tensors import ASKS_PYTORCH, TensorMetadata, checker, distinct, python_checker
from thunder_guards.program import Input
from thunder_guards.sources import Source
from thunder_ir import Context

try:
    from torch._C._dynamo.guards import RootGuardManager, install_no_tensor_aliasing_guard
except ImportError:  # a PyTorch without it: all are checked in Python
    RootGuardManager = None  # type: ignore[assignment, misc]

COMPILERS = "torch._dynamo.guards"

FEW_TENSORS = 5
"""How many tensors are asked one by one whether they are nested."""
_PLAIN = (torch.Tensor, torch.nn.Parameter)

OFTEN = 3
"""Calls with a check after which a snapshot is made; by then a program that is called often has native code.

Where many programs share a check and each was called seldom, nobody may make one yet: it is asked for again after twice
as many calls.
"""

Snapshot: TypeAlias = "Callable[[tuple[Any, ...], int, int], Callable[[tuple[Any, ...]], bool] | None]"

_SNAPSHOTS: list[Snapshot] = []


def snapshots(maker: Snapshot) -> Snapshot:
    """Let the decorated function make what tells quickly whether tensors are as they were when all checks passed.

    Args:
        maker: takes tensors that passed, all apart from each other, and how many of them, the first ones, may be
            others at the next call, and how often they were checked without it. What it returns takes such a tuple;
            where that is false, all is checked anew. It may return ``None``.
    """
    _SNAPSHOTS.append(maker)
    return maker


def _always(tensors: tuple[Any, ...]) -> bool:
    return True


class ManyTensors:
    """Checks in one call that tensors are of the kinds that a program was compiled for.

    The manager of guards takes longer to be made than the tensors to be looked at, so that it is made when a program is
    called for the second time; and not before PyTorch's compilers are loaded, which it needs and which take a second to
    import. PyTorch's optimizers load them, so that they are there where a model is trained.

    Args:
        examples: the tensors that the program is compiled for.
        metadata: what is expected of each.
        apart: whether no two may be one.
        others: how many tensors are handed over before them, which are only to be apart from them and each other.
    """

    __slots__ = ("__weakref__", "apart", "calls", "check", "due", "functions", "metadata", "one_by_one", "others")

    def __init__(
        self, examples: Sequence[Any], metadata: Sequence[TensorMetadata], apart: bool, others: int = 0
    ) -> None:
        self.metadata = metadata
        self.apart = apart
        self.others = others
        self.one_by_one = checker(examples, metadata) if apart else python_checker(metadata)
        self.calls, self.due = 0, OFTEN
        self.check: Callable[[tuple[Any, ...]], bool] = self._first
        """Takes the tensors; may raise ``RuntimeError`` if one is nested, and then :meth:`failed` is to be called."""
        self.functions: Any = None
        """How ``__torch_function__`` is dispatched to, which the manager changes meanwhile; guarded before."""

    def failed(self) -> bool:
        """Clean up what the manager left behind when an exception left it."""
        if self.functions is not None:
            torch._C._set_torch_function_state(self.functions)  # type: ignore[attr-defined]
        self.check = self._first
        return False

    def _first(self, tensors: tuple[Any, ...]) -> bool:
        if not self._one_by_one(tensors):
            return False
        self.check = self._second
        return True

    def _second(self, tensors: tuple[Any, ...]) -> bool:
        if not self._one_by_one(tensors):
            return False
        if RootGuardManager is not None and hasattr(sys.modules.get(COMPILERS), "GuardManagerType"):
            self.functions = torch._C._get_torch_function_state()  # type: ignore[attr-defined]
            manager = _manager(tensors, [*[None] * self.others, *self.metadata], self.apart)
            self.calls, self.due, self.check = 0, OFTEN, functools.partial(self._often, manager.check)
        else:
            self._often(_always, tensors)
        return True

    def _often(self, check: Callable[[tuple[Any, ...]], bool], tensors: tuple[Any, ...]) -> bool:
        """Check once more; where that is done often, tensors that are as they are now pass at once from then on."""
        if not check(tensors):
            return False
        self.calls += 1
        if self.calls == self.due:
            again = self._second if check is _always else check
            makers = _SNAPSHOTS if self.apart else []
            made = [maker(tensors, self.others, self.calls) for maker in makers]
            same = next((snapshot for snapshot in made if snapshot is not None), None)
            if same is not None:
                self.check = lambda tensors: same(tensors) or again(tensors)
            elif makers:
                self.due *= 2
            else:
                self.check = again
        return True

    def _one_by_one(self, tensors: tuple[Any, ...]) -> bool:
        if self.apart and not distinct(*tensors) or any([tensor.is_nested for tensor in tensors]):
            return False
        return self.one_by_one(*tensors[self.others :])


_SHARED: WeakValueDictionary[Any, ManyTensors] = WeakValueDictionary()
"""By what they check, for as long as a program uses them: compiled functions of one module share them, too.

Modules of equal parameters do not: what tells that tensors are as they were knows those of one module.
"""


def _shared(held: Sequence[Input], others: int, state: Environment) -> ManyTensors:
    """Return the check that the parameters of a module are of their kinds and apart, also from so many arguments."""
    metadata, these = tuple([i.metadata for i in held]), tuple([id(i.example) for i in held])
    key = metadata, these, others, state  # as that decides what PyTorch takes for the keys of a tensor
    found = _SHARED.get(key)
    if found is None:
        found = _SHARED[key] = ManyTensors([i.example for i in held], metadata, True, others)
    return found


def _manager(tensors: Sequence[torch.Tensor], metadata: Sequence[TensorMetadata | None], apart: bool) -> Any:
    """Return a manager of guards for a tuple of tensors of these kinds, of any kind where it is ``None``."""
    root, kind = RootGuardManager(), sys.modules[COMPILERS].GuardManagerType.GUARD_MANAGER
    place, told = "tensors", ["as compiled for"]
    managers = []
    for index, (tensor, m) in enumerate(zip(tensors, metadata, strict=True)):
        manager: Any = root.tuple_getitem_manager(index, place, None, kind)
        managers.append(manager)
        if m is not None:
            sizes, strides, keys = list(m.shape), list(m.strides), torch._C._dispatch_keys(tensor)
            manager.add_tensor_match_guard(tensor, sizes, strides, place, told, *_user_stack(), m.type, keys)
    if apart and len(managers) > 1:
        install_no_tensor_aliasing_guard(managers, [place] * len(managers), told, *_user_stack())
    return root


@functools.cache
def _user_stack() -> tuple[None, ...]:
    """What guards are given before the type in versions of PyTorch in which they keep a stack for messages."""
    tensor = torch.empty(0, device="cpu")
    try:
        keys = torch._C._dispatch_keys(tensor)
        RootGuardManager().add_tensor_match_guard(tensor, [0], [1], "", [], None, torch.Tensor, keys)
    except TypeError:
        return ()
    return (None,)


def checks_keys(inputs: Sequence[Input], alone: int) -> bool:
    """Return whether PyTorch's check looks at dispatch keys at each call, those of the thread's state among them.

    Args:
        inputs: in the order in which they are passed.
        alone: see :func:`tensor_checks`.
    """
    return ASKS_PYTORCH and bool(asked_one_by_one(inputs, alone))


def asked_one_by_one(inputs: Sequence[Input], alone: int) -> int | None:
    """Return how many, the first ones, are so few that each is asked; ``None`` if all are to be checked together."""
    if not _are_apart(inputs):
        return None
    few = [n for n in (len(inputs), alone) if n <= FEW_TENSORS and all([i.metadata.type in _PLAIN for i in inputs[:n]])]
    return few[0] if few else None


def tensor_checks(
    named: Sequence[tuple[Input, str]],
    alone: int,
    passed: str,
    seen: Sequence[str],
    state: Environment,
    context: Context,
) -> list[str]:
    """Return lines that set ``holds`` to whether tensors are of the kinds that a program was compiled for.

    Args:
        named: the inputs in the order in which they are passed, each with an expression for it.
        alone: how many of them, the first ones, were not unpacked together.
        passed: the expressions as arguments of a call.
        seen: names of those whose dispatch keys were looked at before.
        state: PyTorch's, which is guarded before.
        context: takes the names that the lines use.
    """
    inputs = [given for given, _ in named]
    asked = asked_one_by_one(inputs, alone)
    if asked == len(inputs):
        return [f"holds = {_each(named, passed, seen, state, context)}"]
    few = named[: asked or 0]
    lines = [f"holds = {_each(few, ', '.join([name for _, name in few]), seen, state, context)}"] if few else []
    if asked is None:
        many = ManyTensors([i.example for i in inputs], [i.metadata for i in inputs], _are_apart(inputs))
    else:
        lines += ["if holds:"] if lines else []
        many = _shared(inputs[alone:], alone, state)
    tensors = context.object(many, "tensors")
    checked = [
        "try:",
        f"    holds = {tensors}.check({passed[1:] if passed in ('*args', '*held') else f'({passed},)'})",
        "except RuntimeError:  # one is nested",
        f"    holds = {tensors}.failed()",
    ]
    return [*lines, *[f"    {line}" if lines else line for line in checked]]


def _are_apart(inputs: Sequence[Input]) -> bool:
    """Whether no two may be one tensor, as may those that a program makes require gradients."""
    return not any([i.becomes_leaf for i in inputs])


_FEW: WeakValueDictionary[Any, Callable[..., bool]] = WeakValueDictionary()
"""By the kinds of tensors that they check, for as long as a program asks them."""


def _each(
    named: Sequence[tuple[Input, str]], passed: str, seen: Sequence[str], state: Environment, context: Context
) -> str:
    """Return a condition that these few tensors are of their kinds, and apart."""
    inputs = [given for given, _ in named]
    key = tuple([i.metadata for i in inputs]), state
    found = _FEW.get(key)
    if found is None:
        found = _FEW[key] = checker([i.example for i in inputs], key[0])
    check = context.object(found, "check_tensors")
    return " and ".join([*_looks(named, seen, context), f"{check}({passed})"])


def _looks(named: Sequence[tuple[Input, str]], seen: Sequence[str], context: Context) -> list[str]:
    """Return conditions that no input is nested; the classes of arguments are known before."""
    conditions = []
    for given, name in named:
        if name in seen:
            continue
        if not _is_argument(given.source):
            kind = given.metadata.type
            conditions.append(f"type({name}) is {context.object(kind, kind.__name__)}")
        conditions.append(f"not {name}.is_nested")
    return conditions


def _is_argument(source: Source) -> bool:
    return source.base is not None and source.base.base is None and not source.base.is_held
