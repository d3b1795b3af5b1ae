"""What ahead-of-time compilation has to keep as it is in eager: writes, aliases, views, histories, sizes.

The kinds of cases are those that PyTorch's own tests of AOTAutograd have; the programs are ours. A case is a function
with arguments, and what becomes of it is compared with eager: values, strides, which tensors are one object or share
memory, what a write to a result changes, and gradients.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree as pytree

T = torch.Tensor
Made = tuple[list[T], tuple[Any, ...]]


@dataclass(frozen=True)
class Case:
    """A function and its arguments.

    Args:
        group: what it is about.
        name: what it does.
        function: takes the arguments.
        make: takes whether gradients are wanted; returns leaves of autograd, and the arguments made of them.
        gradients: with and without which it is run.
        sizes: how many calls of other sizes follow the first, where sizes are dynamic; ``make`` gets the number, too.
    """

    group: str
    name: str
    function: Callable[..., Any]
    make: Callable[..., Made]
    gradients: tuple[bool, ...] = (False, True)
    sizes: int = 0


CASES: list[Case] = []


def leaf(grad: bool, *shape: int) -> T:
    """Return a leaf of random numbers."""
    return torch.randn(shape, dtype=torch.float64, requires_grad=grad)


def two(grad: bool) -> Made:
    """Two square arguments that are computed of leaves, so that they may be written to."""
    leaves = [leaf(grad, 3, 3), leaf(grad, 3, 3)]
    return leaves, (leaves[0] * 1, leaves[1] * 1)


def leaves_of(*shapes: tuple[int, ...]) -> Callable[[bool], Made]:
    """Return what makes arguments that are leaves themselves."""

    def make(grad: bool) -> Made:
        leaves = [leaf(grad, *shape) for shape in shapes]
        return leaves, tuple(leaves)

    return make


def parts(*views: Callable[[T], T]) -> Callable[[bool], Made]:
    """Return what makes arguments that are views of one tensor."""

    def make(grad: bool) -> Made:
        base = leaf(grad, 4, 4)
        whole = base * 1
        return [base], tuple([view(whole) for view in views])

    return make


def mixed(grad: bool) -> Made:
    """An argument that requires grad if wanted, and one that never does."""
    leaves = [leaf(grad, 3, 3)]
    return leaves, (leaves[0] * 1, torch.randn(3, 3, dtype=torch.float64))


def case(group: str, name: str, make: Callable[..., Made] = two, **options: Any) -> Callable[[Any], Any]:
    """Make a function a case."""

    def keep(function: Callable[..., Any]) -> Callable[..., Any]:
        CASES.append(Case(group, name, function, make, **options))
        return function

    return keep


def cases(group: str, make: Callable[..., Made], named: dict[str, Callable[..., Any]], **options: Any) -> None:
    """Make functions that take the same arguments cases."""
    for name, function in named.items():
        case(group, name, make, **options)(function)


def quietly(function: Callable[[], Any]) -> Any:
    """Call a function where autograd records nothing."""
    with torch.no_grad():
        return function()


# --- writes to arguments -------------------------------------------------------------------------------------------

cases("writes", two, {
    "to an argument that is read later": lambda a, b: (a.mul_(2), a * 3)[1],
    "to an argument that is returned": lambda a, b: a.mul_(2),
    "to one argument of another": lambda a, b: (a.mul_(b), b * 2)[1],
    "twice, read in between": lambda a, b: (a.add_(1), a * b, a.mul_(3))[1],
    "to what is read for the derivative": lambda a, b: (a * a * b, a.mul_(2))[0],
    "to both arguments": lambda a, b: (a.mul_(2), b.add_(a), a + b)[2],
    "through a view": lambda a, b: (a.view(-1).add_(1), a * b)[1],
    "through a view of a view": lambda a, b: (a.view(-1)[2:5].mul_(3), a * b)[1],
    "through a row, and the whole": lambda a, b: (a[0].mul_(2), a.add_(1), a * b)[2],
    "through a transposed view": lambda a, b: (a.t()[1].copy_(b[0]), a * b)[1],
    "through a diagonal": lambda a, b: (a.diagonal().fill_(2), a * b)[1],
    "by an index": lambda a, b: (a.__setitem__((0, slice(None)), b[1]), a * b)[1],
    "by a list of indices": lambda a, b: (a.index_add_(0, torch.tensor([0, 2]), b[:2]), a * b)[1],
    "of zeros": lambda a, b: (a.zero_(), a + b)[1],
    "of the other argument": lambda a, b: (a.copy_(b), a * b)[1],
    "and the view from before is read": lambda a, b: (lambda v: (a.mul_(2), v * b)[1])(a[1:]),
    "and a view of it is returned": lambda a, b: (a.mul_(2), a[0])[1],
    "and nothing is returned": lambda a, b: (a.add_(1), ())[1],
    "to a detached one": lambda a, b: (a.detach().mul_(2), a + 3)[1],
    "without autograd": lambda a, b: (quietly(lambda: a.mul_(2)), a + 3)[1],
    "seen, detached and without autograd": lambda a, b: (
        a.detach().mul_(2), a.mul_(3), quietly(lambda: a.mul_(4)), a + 5)[3],
    "after it was detached": lambda a, b: (lambda d: (a.mul_(2), d, a)[1:])(a.detach()),
    "to its own result": lambda a, b: (a * b).add_(1).mul_(b),
    "to a view of its own result": lambda a, b: (lambda c: (c[0].mul_(2), c)[1])(a * b),
    "that undo each other": lambda a, b: (a.add_(1), a.sub_(1), a * b)[2],
    "by out=": lambda a, b: (quietly(lambda: torch.mul(b.detach(), 2, out=a.detach())), a + b)[1],
})  # fmt: skip

cases("writes", mixed, {
    "of what requires grad to what does not": lambda a, b: (b.add_(a), b * 2)[1],
    "to what does not require grad": lambda a, b: (b.mul_(2), a * b)[1],
    "of a number to what does not": lambda a, b: (b.fill_(1), a + b)[1],
})  # fmt: skip

case("writes", "to an argument with gaps", parts(lambda w: w[:, 1]))(lambda a: (a.mul_(2), a + 1)[1])
case("writes", "to an argument with gaps, nothing returned", parts(lambda w: w[::2]))(lambda a: (a.add_(1), ())[1])
case("writes", "to a transposed argument", parts(lambda w: w.t()))(lambda a: (a.mul_(2), a[0])[1])
case("writes", "to a leaf without autograd", leaves_of((3,)))(lambda a: (quietly(lambda: a.mul_(2)), a + 1)[1])
case("writes", "to a leaf, detached", leaves_of((3,)))(lambda a: (a.detach().mul_(2), a * 3)[1])
case("writes", "of a batch norm to its statistics", lambda grad: (
    lambda leaves: (leaves, (*leaves, torch.zeros(4, dtype=torch.float64), torch.ones(4, dtype=torch.float64)))
)([leaf(grad, 2, 4, 3), leaf(grad, 4), leaf(grad, 4)]))(
    lambda x, w, b, mean, var: nn.functional.batch_norm(x, mean, var, w, b, training=True))  # fmt: skip

# --- metadata of arguments -----------------------------------------------------------------------------------------

cases("metadata", two, {
    "transposed in place": lambda a, b: (a.t_(), a + b)[1],
    "transposed in place and written": lambda a, b: (a.transpose_(0, 1), a.mul_(2), a + 1)[2],
    "a dimension more": lambda a, b: (a.unsqueeze_(0), a + b)[1],
    "a dimension more of one, a write to the other": lambda a, b: (a.unsqueeze_(0), b.mul_(2), a * b)[2],
    "transposed, and a view returned": lambda a, b: (a.t_(), b.view(b.shape), a[0])[1:],
    "transposed, written by a row, viewed": lambda a, b: (a.t_(), a[0].mul_(2), a.view(a.shape))[2],
    "all kinds at once": lambda a, b: (lambda t: (t.squeeze(), t.t(), a.unsqueeze(0)))((a.t_(), a.mul(2))[1]),
    "twice, which is nothing": lambda a, b: (a.t_(), a.t_(), a * b)[2],
    "of a result": lambda a, b: (a * b).t_(),
    "of a result, detached": lambda a, b: (a * b).t_().detach_(),
    "of a result, viewed before and after": lambda a, b: (
        lambda c: (lambda v: (v, c.t_(), c.unsqueeze(0)))(c.unsqueeze(0)))(a * b),
})  # fmt: skip

# --- results that are arguments, or views of them ------------------------------------------------------------------

cases("views", two, {
    "the argument": lambda a, b: (a, a * b),
    "the argument twice": lambda a, b: (a, a, b),
    "a transposed view": lambda a, b: (a.t(), a * b),
    "a view that is the same": lambda a, b: a.view(a.shape),
    "a view of a view": lambda a, b: (a.view(9)[3:].unsqueeze(0), b),
    "two views": lambda a, b: (a[0], a[1:]),
    "parts of a split": lambda a, b: (*a.split(2), b.sum()),
    "chunks, one of them": lambda a, b: a.chunk(3)[1],
    "unbound": lambda a, b: torch.unbind(a, 1),
    "an expanded view": lambda a, b: a[0].expand(4, 3),
    "a detached argument": lambda a, b: (a.detach(), b),
    "a detached view": lambda a, b: (a[0].detach(), a * b),
    "a view made without autograd": lambda a, b: (quietly(lambda: a.view(-1)), a * b),
    "an alias": lambda a, b: (torch.ops.aten.alias(a), b * 2),
    "strided by hand": lambda a, b: a.as_strided((2, 2), (3, 1), 1) * 2,
    "a real view of complex numbers": lambda a, b: torch.view_as_real(torch.complex(a, b)),
    "a reshape that copies": lambda a, b: a.t().reshape(-1),
    "a contiguous one of what is": lambda a, b: a.contiguous(),
    "a clone": lambda a, b: a.clone(),
    "a cast that casts nothing": lambda a, b: a.to(torch.float64),
    "in a dict": lambda a, b: {"first": a, "second": a, "third": a * b},
})  # fmt: skip

# --- results that are views of each other --------------------------------------------------------------------------

cases("intermediates", two, {
    "a value and a view of it": lambda a, b: (lambda c: (c, c.view(-1)))(a * b),
    "a view and the value": lambda a, b: (lambda c: (c.view(-1), c))(a * b),
    "a view alone": lambda a, b: (a * b).view(-1),
    "two views": lambda a, b: (lambda c: (c.view(-1), c.t()))(a * b),
    "two views that are the same": lambda a, b: (lambda c: (c.view(-1), c.view(-1)))(a * b),
    "views of two values": lambda a, b: (lambda c, d: (c.view(-1), d.t(), c.t()))(a * 3, a * 4),
    "one value three times, once as a view": lambda a, b: (lambda c: (c, c.view(-1), c))(a * b),
    "a detached view beside": lambda a, b: (lambda c: (c.view(-1), c, c[0].detach()))(a * b),
    "a view of what has no gradient": lambda a, b: (a.detach() * 3).view(-1),
    "a view of a constant": lambda a, b: (torch.ones(4, dtype=a.dtype).view(2, 2), a),
    "written through a view of it": lambda a, b: (lambda c: (c.view(-1).mul_(2), c, c[0])[1:])(a * b),
    "parts of a split": lambda a, b: (a * b).split(1),
    "an expanded one": lambda a, b: (lambda c: (c.expand(2, 3, 3), c))(a * b),
    "a transposed one, no views else": lambda a, b: (a @ b).t(),
    "one value twice": lambda a, b: (lambda c: (c, c))(a * b),
    "a view with gaps": lambda a, b: (a * b)[:, ::2],
})  # fmt: skip

# --- one argument twice, arguments that share memory ---------------------------------------------------------------


def one_twice(grad: bool) -> Made:
    """One tensor as two arguments."""
    base = leaf(grad, 3, 3)
    same = base * 1
    return [base], (same, same)


def leaf_twice(grad: bool) -> Made:
    """One leaf as two arguments."""
    base = leaf(grad, 3, 3)
    return [base], (base, base)


cases("duplicates", one_twice, {
    "read": lambda a, b: a * b + a,
    "written by one name": lambda a, b: (a.add_(1), b * 2)[1],
    "written by both names": lambda a, b: (a.add_(1), b.mul_(2), a * b)[2],
    "one name returned": lambda a, b: (a[0].add_(1), b)[1],
    "both names returned": lambda a, b: (a, b),
    "transposed by both names": lambda a, b: (a.t_(), b.unsqueeze_(0), a + b)[2],
    "a view of each": lambda a, b: (a[0], b[1]),
})  # fmt: skip
cases("duplicates", leaf_twice, {"a leaf, read": lambda a, b: a * b, "a leaf, returned": lambda a, b: (a, b * 2)})

SAME = parts(lambda w: w[0], lambda w: w[0])
OVERLAPPING = parts(lambda w: w[:3], lambda w: w[1:])
APART = parts(lambda w: w[0], lambda w: w[1])
DETACHED = parts(lambda w: w[0].detach(), lambda w: w[1].detach(), lambda w: w.sum(0))
BY_DTYPE = parts(lambda w: w.detach(), lambda w: w.detach().view(torch.int64))

cases("shared memory", SAME, {
    "read": lambda a, b: a * b,
    "one written": lambda a, b: (a.add_(1), a * b)[1],
    "one written, the other returned": lambda a, b: (a.mul_(2), b)[1],
    "one written, a view of the other returned": lambda a, b: (a.mul_(2), b.view(-1)[1:])[1],
    "both written": lambda a, b: (a.mul_(2), b.add_(1), a * b)[2],
    "one written, one of another shape": lambda a, b: (a.mul_(2), b.unsqueeze_(0), a * b)[2],
    "one of another shape": lambda a, b: (a.unsqueeze_(0), a + b)[1],
    "one written, read before": lambda a, b: (lambda c: (a.mul_(2), c * b)[1])(b * b),
})  # fmt: skip
cases("shared memory", OVERLAPPING, {
    "overlapping, read": lambda a, b: a * b,
    "overlapping, one written": lambda a, b: (a.mul_(2), a * b)[1],
    "overlapping, one written and returned": lambda a, b: (b.add_(1), b, a[0])[1:],
})  # fmt: skip
cases("shared memory", APART, {
    "no element in common, one written": lambda a, b: (a.mul_(2), a * b)[1],
    "no element in common, both written": lambda a, b: (a.mul_(2), b.mul_(3), a * b)[2],
})  # fmt: skip
case("shared memory", "detached parts, one written", DETACHED)(lambda a, b, c: (a.add_(1), a * b + c)[1])
case("shared memory", "other dtypes, one written", BY_DTYPE, gradients=(False,))(lambda a, b: (a.mul_(2), b + 1)[1])


def base_and_view(grad: bool) -> Made:
    """A tensor, a view of it, and one apart."""
    leaves = [leaf(grad, 4), leaf(grad, 4)]
    whole = leaves[0] * 1
    return leaves, (whole, whole[:2], leaves[1] * 1)


cases("shared memory", base_and_view, {
    "the base written": lambda a, b, c: (a.mul_(2), b * c[:2])[1],
    "the view written": lambda a, b, c: (b.mul_(2), a * c)[1],
    "the view written, the base returned": lambda a, b, c: (b.add_(c[:2]), a, c + 1)[1:],
    "the third one written": lambda a, b, c: (c.mul_(2), a * c, b)[1:],
    "everything at once": lambda a, b, c: (b.mul_(2), c.unsqueeze_(0), (a + c).view(-1), c[0], a[1:])[2:],
})  # fmt: skip


def four(grad: bool) -> Made:
    """Two pairs that share memory, in turns."""
    leaves = [leaf(grad, 2, 2), leaf(grad, 2, 2)]
    first, second = leaves[0] * 1, leaves[1] * 1
    return leaves, (first.view(-1), second.view(-1), first.view(-1), second.view(-1))


case("shared memory", "two pairs in turns", four)(lambda a, b, c, d: (b.add_(1), d.unsqueeze_(0), a + c + d, b)[2:])

# --- what requires grad --------------------------------------------------------------------------------------------


class Halved(torch.autograd.Function):
    """A function whose derivative is not what it seems to be."""

    @staticmethod
    def forward(ctx: Any, x: T) -> T:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> Any:
        return cotangents[0] * 0.5


class Passed(torch.autograd.Function):
    """A function that returns what it takes."""

    @staticmethod
    def forward(ctx: Any, x: T) -> T:
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> Any:
        return cotangents[0] * 3


class Doubled(torch.autograd.Function):
    """A function that writes to what it takes."""

    @staticmethod
    def forward(ctx: Any, x: T) -> T:
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> Any:
        return cotangents[0] * 2


def inner(a: T) -> T:
    """Return a gradient that is part of what is computed."""
    with torch.enable_grad():
        x = a if a.requires_grad else a.detach().requires_grad_()
        (found,) = torch.autograd.grad(x.exp().sum(), x, create_graph=True)
    return found if a.requires_grad else found.detach()


cases("gradients", mixed, {
    "of one argument alone": lambda a, b: a * b,
    "of some results alone": lambda a, b: (a.cos(), b.cos(), a * b),
    "none of a detached result": lambda a, b: ((a + 1).detach(), a * b),
    "none of integers": lambda a, b: (a.argmax(), (a > b).sum(), a * b),
    "none of a part without autograd": lambda a, b: quietly(lambda: a.exp()) * a,
    "all without autograd": lambda a, b: quietly(lambda: (a * b, a[0])),
    "of a result that nobody uses": lambda a, b: (a * b, (a * a).detach()),
    "none where the argument is not read": lambda a, b: (b * 2, b.sum()),
    "of a custom function": lambda a, b: Halved.apply(a) * b,
    "of a custom function that returns its argument": lambda a, b: Passed.apply(a),
    "of a custom function that writes": lambda a, b: Doubled.apply(a * 1) * b,
    "inside of the function": lambda a, b: inner(a) * b,
    "of numbers that round": lambda a, b: (a.round(), a.sign() * b, a.relu()),
    "of values saved twice": lambda a, b: (a.exp() * a.exp().detach(), a.tanh() * b),
})  # fmt: skip
case("gradients", "switched on for an argument", leaves_of((3,)), gradients=(False,))(
    lambda a: (a.requires_grad_(True), a * 3)[1]
)
case("gradients", "switched on for a view", leaves_of((3,)), gradients=(False,))(
    lambda a: a.view(1, 3).requires_grad_(True)
)
case("gradients", "of a scalar", leaves_of(()))(lambda a: (a.exp(), a * 2))
case("gradients", "of nothing in it", leaves_of((0, 3)))(lambda a: (a * 2, a.sum()))
case("gradients", "of many dtypes", lambda grad: (
    lambda x: ([x], (x, x.float(), x.bfloat16()))
)(leaf(grad, 4)))(lambda a, b, c: (a * b, b + c, c.float().sum() * a))  # fmt: skip

# --- how tangents lie in memory ------------------------------------------------------------------------------------

cases("tangents", two, {
    "of a transposed result": lambda a, b: (a @ b).t(),
    "of a transposed and a plain one": lambda a, b: ((a * b).t(), a + b),
    "of a result with gaps": lambda a, b: (a * b)[:, 1],
    "of an expanded result": lambda a, b: (a * b).sum().expand(2, 3),
    "of one that is summed": lambda a, b: (a * b).sum(0),
    "of none": lambda a, b: ((a * b).detach(), a.argmax()),
})  # fmt: skip
case("tangents", "of images with channels last", lambda grad: (
    lambda x: ([x], (x * 1).chunk(1)) if x.dim() == 4 else ([x], (x,))
)(leaf(grad, 2, 3, 4, 4)))(lambda x: (x * 2).contiguous(memory_format=torch.channels_last))  # fmt: skip

# --- results and arguments of other kinds --------------------------------------------------------------------------


def nested(grad: bool) -> Made:
    """Arguments in lists, tuples and dicts, and others than tensors."""
    leaves = [leaf(grad, 3), leaf(grad, 3)]
    return leaves, ({"x": leaves[0], "rest": [leaves[1], None, 3]}, (2.5, "sum", True))


cases("kinds", nested, {
    "nested arguments": lambda given, more: given["x"] * given["rest"][0] * given["rest"][2] * more[0],
    "nested results": lambda given, more: {"a": [given["x"] * 2, None], "b": (more[1], given["rest"][0])},
    "results that are no tensors": lambda given, more: (given["x"].sum(), given["rest"][2], more),
    "nothing": lambda given, more: None,
})  # fmt: skip
case("kinds", "a number as a result", leaves_of((3, 2)))(lambda a: [a + 1, a.shape[0]])
case("kinds", "constants", leaves_of((3,)))(lambda a: (torch.ones(2), torch.arange(3), a * torch.tensor([1.0, 2, 3])))
case("kinds", "an empty list", leaves_of((3,)))(lambda a: [])
case("kinds", "random numbers", leaves_of((5,)))(lambda a: (torch.rand(3), nn.functional.dropout(a, 0.5, True)))
case("kinds", "autocast", lambda grad: (lambda x, y: ([x, y], (x, y)))(
    torch.randn(4, 4, requires_grad=grad), torch.randn(4, 4, requires_grad=grad)))(
    lambda a, b: _autocast(a, b))  # fmt: skip
case("kinds", "a sorted value and its order", leaves_of((5,)))(lambda a: torch.sort(a))
case("kinds", "named results", leaves_of((4, 3)))(lambda a: torch.max(a, 1))


def _autocast(a: T, b: T) -> T:
    with torch.autocast("cpu", torch.bfloat16):
        return a @ b


# --- sizes that are dynamic --------------------------------------------------------------------------------------


def growing(grad: bool, step: int = 0) -> Made:
    """A matrix and a row; of other sizes at each call."""
    leaves = [leaf(grad, 3 + step, 4 + 2 * step), leaf(grad, 4 + 2 * step)]
    return leaves, (leaves[0] * 1, leaves[1] * 1)


cases("symbolic sizes", growing, {
    "read": lambda a, b: a * b + a.shape[0],
    "written": lambda a, b: (a.mul_(b), a.sum(0))[1],
    "viewed": lambda a, b: (a.view(-1), a * b),
    "multiplied": lambda a, b: a @ b,
    "expanded to themselves": lambda a, b: b.expand(a.shape) * a,
    "a size as a result": lambda a, b: (a + 1, a.shape[0], a.numel()),
    "flattened": lambda a, b: (a * b).reshape(a.shape[0] * a.shape[1]),
    "joined": lambda a, b: torch.cat([a, b[None]]),
    "averaged": lambda a, b: a.mean(0) * b + a.sum() / a.shape[1],
    "normalised": lambda a, b: torch.softmax(a, -1) * b,
    "made of a size": lambda a, b: torch.arange(a.shape[1], dtype=a.dtype) * b,
    "a branch on one": lambda a, b: a * 2 if a.shape[0] > 3 else a * b,
    "split": lambda a, b: a[: a.shape[0] // 2] * b,
    "a written view": lambda a, b: (a[0].copy_(b), a * 2)[1],
}, sizes=2)  # fmt: skip

# --- subclasses of tensors -----------------------------------------------------------------------------------------


class Pair(torch.Tensor):
    """A tensor that is two; operations are done to each."""

    @staticmethod
    def __new__(cls, a: T, b: T) -> Pair:
        made: Any = torch.Tensor._make_wrapper_subclass(cls, a.shape, dtype=a.dtype, requires_grad=a.requires_grad)  # type: ignore[attr-defined]
        made.a, made.b = a, b
        return made  # type: ignore[no-any-return]

    def __tensor_flatten__(self) -> tuple[list[str], None]:
        return ["a", "b"], None

    @staticmethod
    def __tensor_unflatten__(inner: Any, context: Any, size: Any, stride: Any) -> Pair:
        return Pair(inner["a"], inner["b"])

    @classmethod
    def __torch_dispatch__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        def of(name: str) -> Any:
            return pytree.tree_map_only(Pair, lambda p: getattr(p, name), (args, kwargs or {}))

        (one, named), (other, others) = of("a"), of("b")
        pairs = zip(
            *[pytree.tree_leaves(x) for x in (function(*one, **named), function(*other, **others))], strict=True
        )
        made = [Pair(*pair) if isinstance(pair[0], torch.Tensor) else pair[0] for pair in pairs]
        return made[0] if len(made) == 1 else made


def pair(grad: bool) -> Made:
    """A tensor of a subclass."""
    plain = [torch.randn(3, 3, dtype=torch.float64) for _ in range(2)]
    return [], (Pair(*plain),)


cases("subclasses", pair, {
    "an argument": lambda a: a * 2,
    "written": lambda a: (a.mul_(2), a + 1)[1],
    "a view as a result": lambda a: a.t(),
}, gradients=(False,))  # fmt: skip
case("subclasses", "a parameter as an argument", lambda grad: (lambda p: ([p], (p,)))(
    nn.Parameter(torch.randn(3, dtype=torch.float64), requires_grad=grad)))(lambda a: a * 2)  # fmt: skip

# --- modules -------------------------------------------------------------------------------------------------------


class Counting(nn.Module):
    """A module that writes to its buffer.

    Args:
        tied: whether two of its parameters are one.
    """

    def __init__(self, tied: bool = False) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(1, dtype=torch.float64))
        self.first = nn.Linear(3, 3, dtype=torch.float64)
        self.second = nn.Linear(3, 3, dtype=torch.float64)
        if tied:
            self.second.weight = self.first.weight

    def forward(self, x: T) -> Any:
        self.count.add_(1)
        return self.second(self.first(x).tanh()) * self.count


class Attention(nn.Module):
    """Attention of a sequence to itself."""

    def __init__(self) -> None:
        super().__init__()
        self.mixed = nn.Linear(4, 12, dtype=torch.float64)

    def forward(self, x: T) -> T:
        return nn.functional.scaled_dot_product_attention(*self.mixed(x).chunk(3, -1), is_causal=True)


def module_case(name: str, module: Callable[[], nn.Module], *shape: int) -> None:
    """Make a module a case: its state is among the arguments, as ``aot_module`` passes it on."""

    def make(grad: bool) -> Made:
        torch.manual_seed(0)
        made = module()
        made.requires_grad_(grad)
        x = leaf(grad, *shape)
        return [x, *made.parameters()], (dict(made.named_parameters()), dict(made.named_buffers()), x)

    def run(parameters: dict[str, T], buffers: dict[str, T], x: T) -> Any:
        return torch.func.functional_call(made_once, {**parameters, **buffers}, (x,))

    made_once = module()
    CASES.append(Case("modules", name, run, make))


module_case("linear", lambda: nn.Sequential(nn.Linear(3, 4), nn.ReLU()).double(), 2, 3)
module_case("batch norm in training", lambda: nn.BatchNorm1d(3).double(), 4, 3)
module_case("batch norm in evaluation", lambda: nn.BatchNorm1d(3).double().eval(), 4, 3)
module_case("a buffer that is written", Counting, 2, 3)
module_case("two parameters that are one", lambda: Counting(tied=True), 2, 3)
module_case("a recurrent one", lambda: nn.GRU(3, 2, batch_first=True).double(), 2, 4, 3)
module_case("attention", Attention, 2, 3, 4)
module_case("a norm and a dropout of nothing", lambda: nn.Sequential(nn.LayerNorm(3), nn.Dropout(0.0)).double(), 2, 3)


__all__ = ["CASES", "Case", "Pair", "Passed"]
