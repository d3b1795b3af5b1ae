"""Random small programs: views, writes, containers and control flow on sizes, on inputs that may share memory.

A program is text, made of statements that work for tensors of any shape (or raise what eager raises). Its arguments are
made by one of :data:`ARGUMENTS`, so that the eager and the compiled run get equal arguments, aliased alike.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from traceback import walk_tb
from typing import Any

import torch
from hypothesis import strategies as st
from torch.utils import _pytree as pytree

from thunder_frontend import compile_data, jit
from thunder_ir import ThunderError

VIEWS = (
    "{a}.view(-1)", "{a}.reshape(-1)", "{a}.reshape(-1, 1)", "({a}.t() if {a}.ndim == 2 else {a})", "{a}[0]",
    "{a}[1:]", "{a}[..., ::2]",
    "{a}[None]", "{a}.unsqueeze(-1)", "{a}.squeeze()", "{a}.transpose(0, -1)",
    "{a}.permute(*reversed(range({a}.ndim)))",
    "{a}.expand(2, *{a}.shape)", "{a}.chunk(2)[0]", "{a}.chunk(2, dim=-1)[-1]", "{a}.split(1)[-1]",
    "{a}.unbind(0)[-1]",
    "({a}.diagonal() if {a}.ndim > 1 else {a})", "{a}.narrow(0, 0, 1)", "{a}.select(-1, 0)", "{a}.detach()",
    "{a}.data", "{a}.flatten()",
    "{a}.contiguous()", "{a}.to(torch.float32)", "{a}.mT if {a}.ndim > 1 else {a}[:]", "{a}.movedim(0, -1)",
    "{a}.view_as({a})",
    "{a}.unfold(0, 1, 1)", "{a}[:, 0] if {a}.ndim > 1 else {a}", "{a}[-1, ...]",
    "torch.as_strided({a}, (2,), (1,))", "{a}.clone()",
    "torch.atleast_2d({a})", "{a}.swapaxes(0, -1)", "{a}.view(torch.int32).view(torch.float32)",
    "torch.tensor_split({a}, 2)[1]", "{a}[torch.tensor(0)]", "{a}[..., torch.tensor(-1)]", "{a}.real", "{a}[[0]]",
    "{a}.hsplit(1)[0]", "{a}.unflatten(0, (1, -1))", "{a}.view(torch.int32)[:1].view(torch.float32)", "{a}.mH",
    "{a}.chunk(2)[-1]", "{a}.unbind(-1)[0]", "list({a}.split(2, -1))[0]", "{a}.unfold(-1, 2, 1)", "{a}[..., None]",
    "{a}.as_strided({a}.shape, {a}.stride())", "{a}[::2]", "{a}.view({a}.shape[::-1])", "{a}.expand_as({b})",
    "torch.no_grad()(torch.Tensor.view)({a}, -1)", "{a}.to({b}.dtype)", "{a}.T", "{a}.data[0]",
    "torch.view_as_real(torch.complex({a}, {a}))", "torch.view_as_real(torch.complex({a}, {a}))[..., 0]",
    "torch.real(torch.complex({a}, {a}))", "torch.nn.Parameter({a}.data)", "torch.nn.Parameter({a}.detach()[0])",
    "copy.copy({a})", "{a}.rot90() if {a}.ndim > 1 else {a}", "{a}.squeeze(0).unsqueeze(-1)[..., 0]",
)  # fmt: skip
VALUES = (
    "{a} * 2", "{a} + {b}.sum()", "{a}.sin()", "torch.where({a} > 0, {a}, -{a})", "{a}.sum(0)",
    "torch.cat([{a}.reshape(-1), {b}.reshape(-1)])",
    "{a} * {a}.shape[0]", "({a} * 2 if {a}.shape[0] > 2 else {a} + 1)",
    "({a} - 1 if {a}.requires_grad else {a} + 1)", "{a} + {b}",
    "torch.stack([{a}, {a}])", "sum(list({a}))", "{a}.mean() * {b}", "({a} > 0).float() * {b}.sum()",
    "[{a}, {b}][{a}.ndim % 2]",
    "{{'a': {a}, 'b': {b}}}['b' if {a}.numel() > 3 else 'a']", "({a}, {b})[{b}.numel() > 2]",
    "{a}.double().float()", "{a}.masked_fill({a} < 0, 0)",
    "torch.nn.functional.dropout({a}, 0.5)", "torch.rand_like({a})", "{a} if {a} is {b} else {a} + {b}.mean()",
    "torch.tensor([1.0, 2.0]) + {b}.sum()", "torch.zeros(2, requires_grad=True)", "torch.nn.Parameter({a}.detach())",
    "{a}.detach().requires_grad_()", "copy.deepcopy({a})",
    "(lambda t: (t.add_(1), t)[1])({a} * 1)", "Twice.apply({a})", "Doubled.apply({a} * 1)",
    "[t for t in ({a}, {b}) if t.requires_grad or t is {a}][-1]", "max([{a}, {b}], key=lambda t: t.numel())",
    "{a} * torch.ones(1, requires_grad=True)", "torch.zeros({a}.shape).copy_({b}.sum())", "{a}.exp() * {a}",
    "{a}.double()", "{a}.to(memory_format=torch.contiguous_format)", "{a}.new_zeros(2, 2)", "{a} @ {a}.mT",
    "torch.autograd.grad(({a} * {a}).sum(), {a}, create_graph=True)[0].clone(memory_format=torch.contiguous_format) if {a}.requires_grad else {a}",
    "torch.empty_like({a}).fill_(1)", "{a}.sum(0, keepdim=True).expand({a}.shape)",
    "torch.func.functional_call(torch.nn.Flatten(0), {{}}, ({a},))", "next(iter({{'k': {a}}}.values()))",
)  # fmt: skip
WRITES = (
    "{a}.add_(1)", "{a}.mul_({b}.sum())", "{a}.zero_()", "{a}.copy_({b}.sum())", "{a}[0] = {b}.sum()",
    "{a}[...] = 1", "{a}[{a} > 0] = 0.5",
    "{a}.fill_(2)", "{a}.clamp_(min=0)", "torch.nn.functional.relu({a}, inplace=True)", "{a} += {b}.mean()",
    "{a} *= 2",
    "{a}.masked_fill_({a} > 1, 0)", "{a}.data.mul_(2)", "{a}.detach()[...] = 3",
    "torch.mul({a}.detach(), 2, out={a}.detach())",
    "with torch.no_grad():\n    {a}.sub_(1)", "with torch.no_grad():\n    {a}.copy_({b}.sum() * 2)",
    "{a}[..., 0] += 1", "{a}[1:].mul_(3)",
    "{a}.t_() if {a}.ndim == 2 else None", "{a}.unsqueeze_(0)", "{a}.squeeze_()", "{a}.transpose_(0, -1)",
    "{a}.index_fill_(0, torch.tensor([0]), 4.0)",
    "{a}.uniform_()", "{a}.normal_()", "{a}.bernoulli_(0.5)",
    "torch.nn.functional.dropout({a}, 0.5, inplace=True)", "{a}.detach_()",
    "for row in {a}:\n    row.add_(1)", "for i in range({a}.shape[0]):\n    {a}[i] = i",
    "{a}.reshape(-1)[0] = 7", "{a}.view(-1)[:2].neg_()",
    "{a}[[0, -1]] = {b}.sum()", "{a}.index_add_(0, torch.tensor([0]), torch.ones_like({a}[:1]))",
    "{a}.swapaxes_(0, -1)",
    "({b}[:1] if {b}.ndim else {b}).copy_({a}.sum())", "{a}.sqrt_()",
    "{a}.diagonal().zero_() if {a}.ndim > 1 else None", "{a}[torch.tensor(0)] = 2", "{a}[torch.tensor(-1)].mul_(2)",
    "torch.nn.init.uniform_({a})", "torch.rand(2)", "{a}.requires_grad_()",
    "with torch.no_grad():\n    {a}[0] = 1", "torch.add({a}, 1, out={a})", "{a}[:1], {b}[:1] = {b}[:1].sum(), {a}[:1].sum()",
    "try:\n    {a}.add_(1)\n    raise KeyError\nexcept KeyError:\n    {b}.mul_(2)",
    "if {a}.ndim > 2:\n    raise ValueError('three')", "for t in ({a}, {b}):\n    t.mul_(0.5)", "{a} -= {a}", "{a}.index_put_((torch.tensor([0]),), {b}.sum())",
    "{a}.data = {b}.data", "{a}.data = {a}.data * 2", "{a}.data = {b}.detach().clone()", "{a}.data = {a}.data.clamp(-1, 1)",
    "{a}.data, {b}.data = {b}.data, {a}.data", "{a}.data.copy_({b}.sum())", "{a}.data[0] = 2", "{a}.data.zero_()",
    "{a}.requires_grad_(False)", "{a}.requires_grad = not {a}.requires_grad", "{a}.requires_grad_({b}.requires_grad)",
    "{a}.detach().requires_grad_().mul_(2)", "{a}.set_({b})", "{a}.set_({a} * 2)",
    "with torch.no_grad():\n    {a}.mul_(0.9).add_({b}.mean(), alpha=0.1)",
    "with torch.no_grad():\n    {a}.lerp_({a} * 2, 0.5)",
    "with torch.no_grad():\n    torch._foreach_mul_([{a}, {b}], 0.5)",
    "torch.sum({b}, out={a}[..., 0].detach()[:1].view(()))" , "torch.mul({b}, 2, out={b}.data)",
    "{a}.index_put_((torch.tensor([0, 0]),), {b}.sum(), accumulate=True)",
    "{a}.masked_scatter_({a} > 0, torch.arange(20.0))", "{a}.masked_fill_({a} > 0, {b}.sum())",
    "{a}.view(-1).scatter_(0, torch.tensor([0]), 3.0)", "{a}.mT.scatter_add_(-1, torch.zeros(1, 1, dtype=torch.int64), {b}.sum().reshape(1, 1)) if {a}.ndim == 2 else None",
    "{a}.t().copy_({b}.mean()) if {a}.ndim < 3 else None", "{a}.unfold(0, 1, 1)[0] = 1", "{a}.copy_({b}.clone())", "{a}.copy_({b}.double())",
    "for part in {a}.chunk(2):\n    part.mul_(2)", "a0, *_ = {a}.split(1)\na0.add_(1)", "{a}.unbind()[0].zero_()",
    "torch.view_as_real({a}.to(torch.complex64)).zero_()", "{a}.as_strided((1,), (1,)).add_(1)", "{a}.diagonal(0, -1, 0).add_({b}.sum()) if {a}.ndim > 1 else None",
    "{a}.mT[0] = 1", "{a}[...] = {a} * 2", "{a}[None].squeeze().neg_()", "{a}.expand(2, *{a}.shape)[0].add_(1)",
    "{a}.grad = None", "{a}.grad = torch.ones_like({a})", "({a} * {a}).sum().backward() if {a}.requires_grad and {a}.is_leaf else None",
    "torch._foreach_add_([{a}], 1)", "{a}[{a}.argmax(0).flatten()[0]] = 0" ,
)  # fmt: skip


def leaf(*shape: int) -> torch.Tensor:
    """Return a tensor of that shape, with small values both negative and positive."""
    count = int(torch.Size(shape).numel())
    return (torch.arange(count, dtype=torch.float32).reshape(shape) - count / 3) / 2


def overlapping(n: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return two tensors of ``n`` elements that share all elements but one each."""
    base = leaf(n + 1)
    return base[:n], base[1:]


def with_gradient(*tensors: torch.Tensor) -> list[torch.Tensor]:
    """Return tensors that require grad and are no leaves, then the leaves that they were made of."""
    leaves = [t.requires_grad_() for t in tensors]
    return [*(t * 1 for t in leaves), *leaves]


def row_of(tensor: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return a matrix and one of its rows."""
    return tensor, tensor[1]


ARGUMENTS: dict[str, Any] = {
    "apart": lambda: (leaf(2, 3), leaf(3)),
    "apart, transposed": lambda: (leaf(3, 2).t(), leaf(4)[1:]),
    "one tensor twice": lambda: (lambda t: (t, t))(leaf(2, 3)),
    "matrix and row": lambda: row_of(leaf(2, 3)),
    "matrix and transpose": lambda: (lambda t: (t, t.t()))(leaf(3, 3)),
    "overlapping": lambda: overlapping(4),
    "a leaf that requires grad": lambda: (leaf(2, 3).requires_grad_(), leaf(3)),
    "both require grad": lambda: with_gradient(leaf(2, 3), leaf(3)),
    "a result of another": lambda: (lambda t, base: (t, t * 2, base))(*with_gradient(leaf(3))),
    "larger": lambda: (leaf(4, 3), leaf(2)),
    "empty": lambda: (leaf(0, 3), leaf(1)),
    "of three dimensions": lambda: (leaf(2, 2, 3).permute(2, 0, 1), leaf(2, 3)[:, 1]),
    "two views that require grad": lambda: (lambda t, base: (t[0], t[1:], base))(*with_gradient(leaf(3, 2))),
    "a parameter and a view of it": lambda: (lambda p: (p, p.detach()[0]))(torch.nn.Parameter(leaf(2, 3))),
    "both views of a parameter": lambda: (lambda p: (p[0], p, p))(torch.nn.Parameter(leaf(2, 3))),
    "one tensor twice that requires grad": lambda: (lambda t, base: (t, t, base))(*with_gradient(leaf(2, 3))),
    "overlapping, requiring grad": lambda: (lambda t, base: (t[:4], t[2:], base))(*with_gradient(leaf(6))),
    "a base and its transpose, requiring grad": lambda: (lambda t, base: (t, t.t(), base))(*with_gradient(leaf(3, 3))),
    "a tensor and what is detached of it": lambda: (lambda t, base: (t, t.detach()[0], base))(
        *with_gradient(leaf(2, 3))
    ),
    "a leaf and its own": lambda: (lambda p: (p, p))(leaf(2, 3).requires_grad_()),
    "channels last": lambda: (leaf(1, 2, 2, 2).to(memory_format=torch.channels_last), leaf(2)),
    "a parameter over a part": lambda: (lambda t: (torch.nn.Parameter(t[0]), t))(leaf(2, 3)),
    "of one element": lambda: (leaf(1).requires_grad_(), torch.tensor(2.0)),
    "of no dimension": lambda: (torch.tensor(0.5), leaf(2)),
}
"""By name: what makes the two arguments, and after them the leaves that they were computed from."""


class Twice(torch.autograd.Function):
    """Doubles, with a derivative of its own."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        """Return twice the argument."""
        return x * 2

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        """Return three times the gradient."""
        return gradient * 3


class Doubled(torch.autograd.Function):
    """Doubles in place."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        """Write to the argument and return it."""
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        """Return twice the gradient."""
        return gradient * 2


@dataclass(frozen=True)
class Program:
    """A program and the kinds of arguments that it is called with, in order."""

    text: str
    arguments: tuple[str, ...]

    def make(self) -> Any:
        """Return the function."""
        scope: dict[str, Any] = {
            "torch": torch, "copy": copy, "Twice": Twice, "Doubled": Doubled, "__name__": __name__,
        }  # fmt: skip
        exec(self.text, scope)
        return scope["program"]


@st.composite
def programs(draw: Any) -> Program:
    """Some statements on ``x``, ``y`` and what they made, and some of it returned."""
    names = ["x", "y"]
    lines = []
    for _ in range(draw(st.integers(2, 7))):
        a, b = draw(st.sampled_from(names)), draw(st.sampled_from(names))
        kind = draw(st.sampled_from(["view", "view", "value", "write", "write"]))
        if kind == "write":
            lines += draw(st.sampled_from(WRITES)).format(a=a, b=b).splitlines()
        else:
            new = f"v{len(names)}"
            lines.append(f"{new} = {draw(st.sampled_from(VIEWS if kind == 'view' else VALUES)).format(a=a, b=b)}")
            names.append(new)
    returned = draw(st.lists(st.sampled_from(names), min_size=1, max_size=4))
    form = draw(st.sampled_from(["({},)", "[{}]", "{{'a': [{}]}}"]))
    lines.append(f"return {form.format(', '.join(returned))}")
    text = "def program(x, y):\n" + "\n".join("    " + line for line in lines) + "\n"
    kinds = draw(st.lists(st.sampled_from(list(ARGUMENTS)), min_size=1, max_size=3))
    return Program(text, tuple(kinds))


class Refused(Exception):
    """A compiled program says that it cannot do what eager does."""


def outcome(function: Any, args: Any, seed: int) -> Any:
    """Return what a call returns, or the exception that it raises."""
    torch.manual_seed(seed)
    try:
        return function(*args)
    except Exception as error:  # compared by the caller
        return error


def agrees_with_eager(program: Program, calls: int = 2) -> None:
    """Compare a program with eager: results, strides, gradients, aliasing and writes.

    Raises:
        Refused: the compiled program says that it does not support what the program does.
    """
    function = program.make()
    compiled = jit(function)
    for kind in program.arguments:
        eager_args, our_args = ARGUMENTS[kind](), ARGUMENTS[kind]()
        for seed in range(calls):
            expected, result = outcome(function, eager_args[:2], seed), outcome(compiled, our_args[:2], seed)
            if isinstance(result, ThunderError):
                if isinstance(expected, Exception):
                    break
                raise Refused(str(result))
            where = f"for arguments {kind!r}, call {seed + 1} of\n{program.text}"
            if isinstance(expected, Exception) or isinstance(result, Exception):
                both = isinstance(expected, Exception) and isinstance(result, Exception)
                assert both, f"{where}eager: {expected!r}\ncompiled: {result!r}"
                if not (compile_data(compiled).compiled or raised_when_run(result)):  # else nothing was written
                    compare(our_args, eager_args, where)
                break
            compare((our_args, result), (eager_args, expected), where)
        else:
            where = f"for arguments {kind!r} of\n{program.text}"
            compare_ways_between(computed(our_args, result), computed(eager_args, expected), where)
            compare_gradients(leaves_and_results(our_args, result), leaves_and_results(eager_args, expected), where)


def raised_when_run(error: Exception) -> bool:
    """Whether an operation of a compiled program raised an exception, and not the user's code."""
    return any(frame.f_code.co_filename.startswith("<thunder computation") for frame, _ in walk_tb(error.__traceback__))


def tensors(tree: Any) -> list[torch.Tensor]:
    """Return the tensors in a tree, in order."""
    return [t for t in pytree.tree_leaves(tree) if isinstance(t, torch.Tensor)]


def sharing(found: list[torch.Tensor]) -> list[list[bool]]:
    """Return for each pair of tensors whether they share memory."""
    held = [t for t in found if t.numel()]
    return [[a.untyped_storage()._cdata == b.untyped_storage()._cdata for a in held] for b in held]


def compare(ours: Any, eagers: Any, where: str) -> None:
    """Compare arguments and results after a call."""
    our, eager = tensors(ours), tensors(eagers)
    assert len(our) == len(eager), where
    for index, (a, b) in enumerate(zip(our, eager, strict=True)):
        place = f"{where}tensor {index}: eager {b!r} {b.stride()}, compiled {a!r} {a.stride()}"
        assert a.shape == b.shape and a.dtype == b.dtype and strides(a) == strides(b), place
        assert torch.allclose(a, b, equal_nan=True, rtol=1e-5, atol=1e-6), place
        assert a.requires_grad == b.requires_grad, place
    assert sharing(our) == sharing(eager), f"{where}memory is shared otherwise"
    assert [[a is b for a in our] for b in our] == [[a is b for a in eager] for b in eager], (
        f"{where}tensors are one otherwise"
    )


def strides(tensor: torch.Tensor) -> list[int]:
    """Return the strides of a tensor's dimensions that are longer than 1; those of others address nothing."""
    return [step for step, length in zip(tensor.stride(), tensor.shape, strict=True) if length > 1]


def close(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether two tensors hold the same, up to rounding."""
    if not b.is_floating_point() and not b.is_complex():
        return bool(torch.equal(a, b))
    few = b.dtype in (torch.half, torch.bfloat16)
    return torch.allclose(a, b, equal_nan=True, rtol=2e-2 if few else 1e-4, atol=1e-2 if few else 1e-5)


Differentiated = tuple[list[torch.Tensor], list[torch.Tensor]]
"""What is differentiated by, and what is."""


def leaves_and_results(args: Any, result: Any) -> Differentiated:
    """Return the leaves among the arguments of a call, and what it returned that requires grad."""
    return [t for t in args if t.requires_grad and t.is_leaf], [t for t in tensors(result) if t.requires_grad]


def computed(args: Any, result: Any) -> list[torch.Tensor]:
    """Return the results that require grad, each once, but for those that share memory with arguments."""
    memories = {t.untyped_storage()._cdata for t in tensors(args)}
    found = [t for t in tensors(result) if t.requires_grad and t.untyped_storage()._cdata not in memories]
    return list({id(t): t for t in found}.values())


def compare_ways_between(ours: list[torch.Tensor], eagers: list[torch.Tensor], where: str) -> None:
    """Compare the gradients of results by other results that they were computed from."""
    for ours_of, eagers_of in zip(ours, eagers, strict=True):
        around = [i for i, t in enumerate(eagers) if t is not eagers_of and not shares(t, eagers_of)]
        eager = gradients([eagers[i] for i in around], [eagers_of], retain_graph=True)
        if eager is None or isinstance(eager, Exception):
            continue
        our = gradients([ours[i] for i in around], [ours_of], retain_graph=True)
        assert not isinstance(our, Exception), f"{where}a gradient by a result raises {our!r}, eager's does not"
        for a, b in zip(our, eager, strict=True):
            same = a is b if a is None or b is None else close(a, b)
            assert same, f"{where}gradients by results: eager {eager!r}, compiled {our!r}"


def shares(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether two tensors share memory."""
    return a.untyped_storage()._cdata == b.untyped_storage()._cdata


def compare_gradients(ours: Differentiated, eagers: Differentiated, where: str) -> None:
    """Compare the gradients of results, or that there are none."""
    our, eager = gradients(*ours), gradients(*eagers)
    if eager is None or isinstance(eager, Exception):
        return
    assert not isinstance(our, Exception), f"{where}backward raises {our!r}, eager's does not"
    for a, b in zip(our, eager, strict=True):
        same = a is b if a is None or b is None else close(a, b)
        assert same, f"{where}gradients: eager {eager!r}, compiled {our!r}"


def gradients(wanted: list[torch.Tensor], given: list[torch.Tensor], retain_graph: bool = False) -> Any:
    """Return the gradients of what is ``given`` by what is ``wanted``, or what asking for them raises."""
    if not wanted or not given:
        return None
    try:
        parts = [(t * (i + 1)).sum() for i, t in enumerate(given)]
        total = sum([p.abs() if p.is_complex() else p for p in parts])
        return torch.autograd.grad(total, wanted, allow_unused=True, retain_graph=retain_graph)
    except RuntimeError as error:
        return error
