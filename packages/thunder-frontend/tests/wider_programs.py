"""Random programs of more kinds: dtypes, blocks, containers, modules, indexing, randomness, and gradients through them.

A program takes two tensors, a container ``box`` and a module ``net``; it may read and change all of these. It is made of
statements and blocks around them, and compared with eager over several calls: results, aliasing, flags, gradients, and
what is left in the arguments.
"""

from __future__ import annotations

import random
from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

import torch
import wider_statements
from programs import Refused, close, compare_gradients, leaf, outcome, sharing, strides

from thunder_frontend import jit, mark_dynamic
from thunder_ir import ThunderError

Pair = namedtuple("Pair", "first second")


@dataclass
class State:
    """A container of the user's own."""

    hidden: Any
    items: list[Any] = field(default_factory=list)
    count: int = 0


class Net(torch.nn.Module):
    """A module with parameters, buffers and counters."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(leaf(3))
        self.register_buffer("running", torch.ones(3))
        self.norm = torch.nn.BatchNorm1d(3)
        self.drop = torch.nn.Dropout(0.4)
        self.count = 0
        self.seen: list[Any] = []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return something of ``x``, counting calls and keeping a running mean."""
        self.count += 1
        if self.training:
            with torch.no_grad():
                self.running.mul_(0.9).add_(x.float().mean(), alpha=0.1)
        return self.drop(x * self.weight.sum()) + self.running.mean()


VALUES = (
    "{a}.int()", "{a} > 0", "{a}.half()", "{a}.bfloat16()", "{a}.to(torch.complex64)", "{a}.long() // 2", "{a}.bool()",
    "{a}.double() ** 2", "{a} / 2", "{a} // 2", "{a} % 2", "{a} ** 2", "2 ** {a}", "-{a}", "~({a} > 0)",
    "({a} > 0) & ({b}.sum() > 0)", "{a}.abs()", "{a}.round()", "torch.sign({a})", "{a}.sum()", "{a}.mean()", "{a}.max()",
    "{a}.argmax()", "{a}.cumsum(0)", "{a}.prod()", "{a}.std()", "{a}.float().softmax(-1)", "{a}.sort(-1)[0]",
    "{a}.sort(-1).values", "{a}.topk(1, -1).values", "{a}.var(unbiased=False)", "{a}.norm()", "{a}.any()", "{a}.all()",
    "{a}.tril()", "{a}.flip(0)", "{a}.roll(1)", "{a}.repeat(2, 1)", "{a}.repeat_interleave(2)", "{a}.tile(2)",
    "torch.arange({a}.numel())", "torch.arange({a}.shape[0], dtype={a}.dtype)", "torch.full({a}.shape, 2)",
    "torch.full_like({a}, 2)", "torch.ones({a}.shape, dtype={b}.dtype)", "torch.tensor({a}.shape)", "torch.tensor(2)",
    "torch.tensor(2.5)", "torch.tensor([True, False])", "torch.linspace(0, 1, {a}.numel())", "torch.eye({a}.shape[-1])",
    "torch.nn.functional.layer_norm({a}, {a}.shape[-1:])", "net({a})", "net.weight * {a}.sum()", "net.running + {a}.sum()",
    "torch.where({a} > 0, {a}, 0)", "torch.where({a} > 0, 1.0, {b}.sum())", "torch.maximum({a}, {b})",
    "torch.clamp({a}, 0, 1)", "{a}.clamp(min={b}.mean())", "torch.addcmul({a}, {a}, {b}.sum())", "{a} + 1j", "{a} + 1",
    "{a} + 1.5", "True + {a}", "{a} * {b}.shape[0]", "{a}.float().lerp({b}.float().sum(), 0.5)", "{a}.add({b}, alpha=2)",
    "{a}.eq({b}.sum())", "{a} == {a}", "torch.logical_not({a})", "{a}.type_as({b})", "{a}.to({b})", "{a}.type(torch.int16)",
    "torch.atan2({a}, {b}.sum())", "{a}.exp().log1p()", "{a}.sigmoid()", "{a}.amax(-1, keepdim=True)", "{a}.min(0)[1]",
    "{a}.logsumexp(-1)", "{a}.diff()", "torch.cdist({a}, {a})", "torch.einsum('...i->i', {a})", "{a}.float() @ {a}.float().mT",
    "net.norm({a})", "net.drop({a})", "net.norm.running_mean * 2", "torch.nn.functional.one_hot({a}.long().abs(), 20)",
    "torch.nn.functional.gelu({a})", "torch.nn.functional.pad({a}, (1, 1))", "{a}.count_nonzero()", "{a}.isnan()",
    "{a}.nan_to_num()", "torch.bucketize({a}, torch.tensor([0.0, 1.0]))", "torch.stack([{a}, {a}.flip(0)], -1)",
    "torch.cat([{a}, {a}])", "torch.cat([{a}.flatten(), {b}.flatten()])", "{a}.conj()", "{a}.imag", "{a}.angle()",
    # views
    "{a}.view(-1)", "{a}[0]", "{a}[1:]", "{a}.T", "{a}.transpose(0, -1)", "{a}.unsqueeze(0)", "{a}.detach()", "{a}.data",
    "{a}.expand(2, *{a}.shape)", "{a}.reshape(-1)", "{a}.contiguous()", "{a}.clone()", "{a}.chunk(2)[0]", "{a}[..., ::2]",
    "{a}.contiguous(memory_format=torch.channels_last)", "{a}.flatten(0)", "{a}.to(dtype=torch.float32)", "{a}.float()",
    "{a}.cpu()", "torch.broadcast_to({a}, (2, *{a}.shape))", "torch.broadcast_tensors({a}, {b})[0]", "{a}.squeeze(0)",
    "torch.meshgrid({a}.flatten(), {b}.flatten(), indexing='ij')[0]", "{a}.diagonal()", "{a}.unfold(0, 1, 1)",
    "torch.as_tensor({a})", "{a}.requires_grad_({b}.requires_grad)", "torch.asarray({a})", "{a}.new_tensor([1, 2])",
    # indexing
    "{a}[{a} > 0]", "{a}[torch.arange({a}.shape[0])]", "{a}[torch.arange({a}.shape[0]).flip(0)]", "{a}[:, None]",
    "{a}[..., [0, 0]]", "{a}.index_select(0, torch.tensor([0]))", "{a}.gather(0, torch.zeros_like({a}, dtype=torch.long))",
    "{a}.take(torch.tensor([0]))", "{a}.nonzero()", "torch.masked_select({a}, {a} > 0)", "{a}.unique()", "{a}[()]",
    "{a}.take_along_dim({a}.argsort(0), 0)", "{a}[torch.tensor([[0]])]", "{a}[torch.tensor([True] * {a}.shape[0])]",
    "{a}[-1:, ..., None]", "{a}[True]", "{a}[None, 0]", "{a}[{a}.argmax(0)]", "{a}[torch.where({a} > 0)]", "{a}[{b} > 0]",
    "{a}[{b}.long()]", "{a}[-1]", "{a}[{a}.shape[0] // 2:]", "{a}[:{b}.shape[0]]", "{a}[..., -1:]", "{a}[[True] + [False] * ({a}.shape[0] - 1)]",
    # randomness
    "torch.randn({a}.shape)", "torch.randn_like({a})", "torch.randint(0, 5, {a}.shape)", "torch.randperm({a}.shape[0])",
    "torch.bernoulli({a}.sigmoid())", "torch.normal({a}, 1.0)", "torch.nn.functional.dropout({a}, 0.3, {b}.requires_grad)",
    "torch.multinomial({a}.exp(), 1)", "torch.rand(()) * {a}", "{a} * torch.empty(2, 3).uniform_()",
    # autograd
    "torch.autograd.grad(({a} * {a}).sum(), {a})[0] if {a}.requires_grad else {a}", "{a}.clone().requires_grad_()",
    "torch.utils.checkpoint.checkpoint(lambda t: t.sin() * t, {a}, use_reentrant=False)", "{a}.grad",
    "torch.func.grad(lambda t: (t * t).sum())({a})", "torch.func.vmap(lambda t: t * 2)({a})", "{a}.detach().requires_grad_()",
    "torch.no_grad()(lambda t: t * 2)({a})", "torch.zeros(3, requires_grad=True)", "torch.nn.Parameter({a}.detach().clone())",
    # containers
    "first_of(box) * 2", "Pair({a}, {b}).first", "[{a}, {b}][-1]", "{{'k': {a}}}['k']", "next(iter(({a}, {b})))",
    "sorted([{a}, {b}], key=lambda t: t.ndim)[0]", "State({a}).hidden", "sum([{a}, {a}])", "(lambda *t: t[0])({a}, {b})",
    "dict(p=net.weight).popitem()[1]", "torch.stack([t * 2 for t in {a}])", "[t for t in {a}][-1]", "tuple({a})[0]",
    "list(net.parameters())[0]", "net.state_dict()['running']", "dict(net.named_buffers())['running']", "net.seen[-1]",
    "torch.vstack([*{a}])", "functools.reduce(torch.add, [{a}, {b}, {a}])", "max({a}.shape) * {a}", "len({a}) + {a}",
    "{a} * float({b}.shape[0])", "{a} * int({b}.ndim)", "{a} + torch.Size([2, 3])[0]", "{a} * torch.get_default_dtype().itemsize",
    "{a} * (1 if torch.is_grad_enabled() else 2)", "{a} * {a}.element_size()", "{a}.view(*{a}.shape[:-1], -1)",
    "{a} + ({a}.stride()[0] if {a}.ndim else 1)", "{a} + {a}.is_contiguous()", "{a} + {a}.storage_offset()",
    "{a} * (2 if {a}.is_leaf else 3)", "{a} * (2 if {a}.is_floating_point() else 3)", "{a} + {a}.dim()",
)  # fmt: skip
WRITES = (
    "{a}.add_(1)", "{a}.mul_(2)", "{a}.zero_()", "{a}.copy_({b}.clone())", "{a}[0] = 1", "{a}[...] = {b}.sum()", "{a} += 1",
    "{a} *= {b}.mean()", "{a} -= {b}", "{a} /= 2", "{a} //= 2", "{a} **= 2", "{a} |= True", "{a} &= {a}",
    "{a}[{a} > 0] = 0", "{a}[{a} > 0] *= 2", "{a}[torch.tensor([0])] = 2", "{a}[[0, 0]] += 1", "{a}.detach_()",
    "{a}.requires_grad_()", "{a}.requires_grad_(False)", "{a}.data.mul_(2)", "{a}.data = {a}.data * 2", "{a}.grad = None",
    "{a}.grad = torch.ones_like({a})", "{a}.masked_fill_({a} > 1, 0)", "{a}.clamp_(0, 1)", "{a}.t_()", "{a}.unsqueeze_(0)",
    "{a}.squeeze_()", "torch.add({a}, 1, out={a})", "torch.mul({a}, {b}, out={a})", "torch.sum({a}, 0, out=torch.empty(0))",
    "{a}.index_add_(0, torch.tensor([0]), {a}[:1])", "{a}.scatter_(0, torch.zeros_like({a}, dtype=torch.long), 1)",
    "{a}.index_fill_(0, torch.tensor([0]), 2)", "{a}.index_copy_(0, torch.tensor([0]), {a}[-1:])", "{a}.sigmoid_()",
    "{a}.uniform_()", "{a}.normal_()", "{a}.random_(0, 5)", "{a}.exponential_()", "{a}.bernoulli_()", "{a}.fill_({b}.sum())",
    "{a}[..., 0] = {b}.mean()", "{a}[1:] = {a}[:-1].clone()", "{a}.view(-1)[0] = 5", "{a}.T.add_(1)", "{a}[0], {a}[-1] = {a}[-1], {a}[0]",
    "for row in {a}:\n    row.mul_(2)", "for i, t in enumerate({a}):\n    {b} = {b} + t.sum() * i", "del {a}[0]", "{a}[0] = {a}[-1]",
    "for i in range(len({a})):\n    {a}[i] += i", "({a} * {a}).sum().backward()", "({a}.float() * net.weight.sum()).sum().backward()",
    "{a}.sum().backward(retain_graph=True)", "{a}.retain_grad()", "{a}.zero_().add_({b}.sum())", "{a}.tag = 1",
    "net.running.add_({a}.detach().float().mean())", "net.running = {a}.detach()", "net.running.copy_({b})", "net.count += 1",
    "net.seen.append({a})", "net.seen = [{a}, *net.seen][:2]", "net.last = {a}", "net.weight.data.add_(1)", "net.weight.grad = None",
    "net.eval()", "net.train()", "net.zero_grad()", "net.requires_grad_(False)", "net.weight.requires_grad_(True)",
    "net.weight.data = {a}.data.float().flatten()[:3]", "net.weight.data.copy_({a})", "net.norm.momentum = 0.2", "net.weight = torch.nn.Parameter({a}.detach())",
    "net.register_buffer('extra', {a}.detach())", "net.norm.reset_running_stats()", "torch.manual_seed(3)",
    "put(box, {a})", "put(box, {a} * 2)", "put(box, {b}.shape)", "rotate(box)", "replace(box, {a})", "clear(box)",
    "torch.nn.utils.clip_grad_norm_([{a}], 1.0)", "torch.nn.init.zeros_({a})", "torch.nn.init.normal_(net.weight)",
    "with torch.no_grad():\n    for p in net.parameters():\n        p.sub_(0.1)", "assert {a}.ndim < 3", "assert {a}.sum() < 100",
    "if {a}.ndim > 2:\n    raise ValueError('three')", "torch._assert({a}.ndim > 0, 'no dimension')", "del {a}.grad",
    "n = 0\nwhile n < {a}.shape[0]:\n    {b} = {b} * 2\n    n += 1", "{a}, {b} = {b}, {a}", "first, *rest = {a}\nfirst.add_(1)",
    "{a} = {a}.float()", "{a}.resize_({a}.shape)", "{a}.set_({b})", "{a}.data.copy_({b}.sum())",
)  # fmt: skip
ALL_VALUES, ALL_WRITES = VALUES + wider_statements.VALUES, WRITES + wider_statements.WRITES

BLOCKS = (
    "with torch.no_grad():", "with torch.enable_grad():", "with torch.inference_mode():", "with torch.inference_mode(False):",
    "with torch.set_grad_enabled({a}.requires_grad):", "with torch.autocast('cpu', dtype=torch.bfloat16):",
    "if {a}.shape[0] > 2:", "if {a}.ndim == {b}.ndim:", "if {a}.requires_grad:", "if {a}.dtype == torch.float32:",
    "for _ in range({a}.shape[0]):", "try:", "if torch.is_grad_enabled():", "if {a} is {b}:", "if {a}.is_contiguous():",
    "if {a}.is_leaf:", "if net.training:", "if {a}.numel() > {b}.numel():", "for _ in range(2):", "if {a}.sum() > 0:",
    "if net.count % 2:", "with warnings.catch_warnings():", "for {a} in [{a}, {b}]:", "with torch.autograd.set_detect_anomaly(False):",
    "with torch.device('cpu'):", "with torch.random.fork_rng(devices=[]):", "with contextlib.nullcontext():",
)  # fmt: skip
RETURNS = (
    "return ({},)", "return [{}]", "return {{'a': [{}]}}", "return State([{}])", "return Pair(({},), box)", "return ({},), net.count",
    "return [{}], net.weight", "return iter([{}]).__next__()", "return ({},), box", "return dict(a=[{}], b=box, n=net.count)",
    "def parts():\n    yield from [{}]\nreturn list(parts())",
)  # fmt: skip


def first_of(box: Any) -> Any:
    """Return the first tensor of a container."""
    if isinstance(box, dict):
        return box["h"]
    return box[0] if isinstance(box, (list, tuple)) else box.hidden


def put(box: Any, value: Any) -> None:
    """Add something to a container."""
    if isinstance(box, dict):
        box["k"] = value
    elif isinstance(box, list):
        box.append(value)
    elif isinstance(box, State):
        box.items.append(value)
        box.count += 1
    else:
        raise TypeError("a container that does not change")


def replace(box: Any, value: Any) -> None:
    """Replace the first tensor of a container."""
    if isinstance(box, dict):
        box["h"] = value
    elif isinstance(box, State):
        box.hidden = value
    else:
        box[0] = value


def rotate(box: Any) -> None:
    """Move an item of a container to another place."""
    if isinstance(box, dict):
        key = next(iter(box))
        box[key] = box.pop(key)
    elif isinstance(box, State):
        box.items.reverse()
    else:
        box.insert(0, box.pop())


def clear(box: Any) -> None:
    """Empty a container but for its first tensor."""
    if isinstance(box, dict):
        box.pop("k", None)
    elif isinstance(box, State):
        box.items.clear()
    else:
        del box[1:]


ARGUMENTS: dict[str, Callable[[], tuple[torch.Tensor, torch.Tensor]]] = {
    "matrix and vector": lambda: (leaf(2, 3), leaf(3)),
    "matrices": lambda: (leaf(2, 3), leaf(2, 3) * 2),
    "larger matrices": lambda: (leaf(4, 3), leaf(4, 3) * 2),
    "one tensor twice": lambda: (lambda t: (t, t))(leaf(2, 3)),
    "a matrix and its row": lambda: (lambda t: (t, t[1]))(leaf(2, 3)),
    "a leaf": lambda: (leaf(2, 3).requires_grad_(), leaf(3)),
    "two leaves": lambda: (leaf(2, 3).requires_grad_(), leaf(3).requires_grad_()),
    "not a leaf": lambda: (leaf(2, 3).requires_grad_() * 1, leaf(3)),
    "a leaf that was differentiated": lambda: (differentiated(leaf(2, 3)), leaf(3)),
    "integers": lambda: (torch.arange(6).reshape(2, 3), leaf(3)),
    "integers alone": lambda: (torch.arange(6).reshape(2, 3) - 2, torch.arange(3)),
    "masks": lambda: (torch.arange(6).reshape(2, 3) % 2 == 0, leaf(2, 3)),
    "half": lambda: (leaf(2, 3).half(), leaf(3)),
    "double that requires grad": lambda: (leaf(2, 3).double().requires_grad_(), leaf(3)),
    "bfloat16 that requires grad": lambda: (leaf(2, 3).bfloat16().requires_grad_(), leaf(3).requires_grad_()),
    "complex": lambda: (torch.complex(leaf(2, 3), leaf(2, 3) + 1), leaf(3)),
    "scalars": lambda: (torch.tensor(1.5), torch.tensor(2)),
    "a scalar that requires grad": lambda: (torch.tensor(1.5, requires_grad=True), leaf(3)),
    "empty": lambda: (leaf(0, 3), leaf(3)),
    "one element": lambda: (leaf(1, 1) + 1, leaf(1) + 1),
    "transposed": lambda: (leaf(3, 2).t(), leaf(3)),
    "expanded": lambda: (leaf(3).expand(2, 3), leaf(3)),
    "strided": lambda: (leaf(2, 6)[:, ::2], leaf(6)[::2]),
    "channels last": lambda: (leaf(1, 3, 2, 2).to(memory_format=torch.channels_last), leaf(3)),
    "a parameter": lambda: (torch.nn.Parameter(leaf(2, 3)), leaf(2, 3).requires_grad_() * 2),
    "views of what requires grad": lambda: (lambda t: (t[:2], t[2]))(leaf(3, 3).requires_grad_() * 1),
    "columns": lambda: (leaf(3, 1), leaf(1, 3)),
    "uint8": lambda: (torch.arange(6, dtype=torch.uint8).reshape(2, 3), torch.arange(3, dtype=torch.int32)),
}  # fmt: skip


def differentiated(tensor: torch.Tensor) -> torch.Tensor:
    """Return a leaf that has a gradient."""
    tensor.requires_grad_()
    (tensor * 2).sum().backward()
    return tensor


BOXES: dict[str, Callable[[], Any]] = {
    "list": lambda: [leaf(3), 2],
    "dict": lambda: {"h": leaf(3), "n": 2},
    "tuple": lambda: (leaf(3), 2),
    "dataclass": lambda: State(leaf(3)),
    "dict that requires grad": lambda: {"h": leaf(2, 3).requires_grad_()},
    "named tuple": lambda: Pair(leaf(3), leaf(2)),
}


@dataclass(frozen=True)
class Program:
    """A program, the kinds of arguments that it is called with in order, and the kind of its container.

    Args:
        text: its source.
        arguments: names of :data:`ARGUMENTS`.
        box: a name of :data:`BOXES`.
        symbolic: whether sizes are dynamic.
    """

    text: str
    arguments: tuple[str, ...]
    box: str
    symbolic: bool = False

    def make(self) -> Any:
        """Return the function."""
        scope: dict[str, Any] = {"__name__": __name__}
        exec("import contextlib, copy, functools, warnings, torch, torch.utils.checkpoint", scope)
        for helper in (first_of, put, replace, rotate, clear, Pair, State):
            scope[helper.__name__] = helper
        exec(self.text, scope)
        return scope["program"]


def random_program(seed: int) -> Program:
    """Return a program, the same one for the same seed.

    Most statements that raise are left out, so that the ones after them do something.
    """
    rng = random.Random(seed)
    kinds = tuple(rng.choice(list(ARGUMENTS)) for _ in range(rng.randint(1, 3)))
    box, symbolic = rng.choice(list(BOXES)), rng.random() < 0.2
    names = ["x", "y"]
    lines: list[str] = []
    for _ in range(rng.randint(2, 7)):
        new, known = statements(rng, names)
        tried = Program(text_of([*lines, *new, "return 0"]), kinds, box, symbolic)
        if rng.random() < 0.03 or runs(tried):
            lines, names = [*lines, *new], known
    returned = ", ".join([rng.choice(names) for _ in range(rng.randint(1, 3))])
    lines += rng.choice(RETURNS).format(returned).splitlines()
    return Program(text_of(lines), kinds, box, symbolic)


def text_of(lines: list[str]) -> str:
    """Return lines as a program."""
    return "def program(x, y, box, net):\n" + "\n".join("    " + line for line in lines) + "\n"


def runs(program: Program) -> bool:
    """Whether a program runs in eager for its first arguments."""
    args = (*ARGUMENTS[program.arguments[0]](), BOXES[program.box](), Net())
    return not isinstance(outcome(program.make(), args, 0), Exception)


def statements(rng: random.Random, names: list[str]) -> tuple[list[str], list[str]]:
    """Return the lines of a statement, or of a block, and the names that are known after it."""
    known, lines = list(names), []

    def statement(indent: str, fresh: bool) -> None:
        a, b = rng.choice(known), rng.choice(known)
        if rng.random() < 0.45:
            made = rng.choice(ALL_WRITES).format(a=a, b=b)
        else:
            name = f"v{len(known)}" if fresh else a
            made = f"{name} = {rng.choice(ALL_VALUES).format(a=a, b=b)}"
            if fresh:
                known.append(name)
        lines.extend(indent + line for line in made.splitlines())

    if rng.random() > 0.25:
        statement("", fresh=True)
        return lines, known
    block = rng.choice(BLOCKS).format(a=rng.choice(known), b=rng.choice(known))
    lines.append(block)
    for _ in range(rng.randint(1, 2)):
        statement("    ", fresh=block.startswith("with"))
    if block == "try:":
        lines += ["    x.add_(1)", "    raise KeyError", "except (KeyError, TypeError):", "    y = y * 2"]
    elif block.startswith("if") and rng.random() < 0.5:
        lines += ["    return x"] if rng.random() < 0.3 else ["else:", "    x = x * 3"]
    return lines, known


def flags(tensor: torch.Tensor) -> tuple[bool, bool] | None:
    """Return what autograd says of a tensor; ``None`` if it refuses to look at its history."""
    try:
        return tensor.requires_grad, tensor.is_leaf
    except RuntimeError:
        return None


def contents(tree: Any, seen: set[int] | None = None) -> list[Any]:
    """Return what is in a tree of results or arguments, in order, with the kinds of its containers."""
    seen = set() if seen is None else seen
    if (
        isinstance(tree, torch.Tensor)
        or not isinstance(tree, (dict, list, tuple, torch.nn.Module))
        and not is_dataclass(tree)
    ):
        return [tree]
    if id(tree) in seen:
        return ["again"]
    seen.add(id(tree))
    parts: Any = tree
    if isinstance(tree, torch.nn.Module):
        own = {k: v for k, v in vars(tree).items() if isinstance(v, (int, list, torch.Tensor))}
        parts = {**own, **dict(tree.named_parameters()), **dict(tree.named_buffers()), "m": tree.norm.momentum}
    elif is_dataclass(tree):
        parts = [getattr(tree, f.name) for f in fields(tree)]
    if isinstance(parts, dict):
        return [type(tree).__name__, *[p for key, value in parts.items() for p in (key, *contents(value, seen))]]
    return [type(tree).__name__, *[p for value in parts for p in contents(value, seen)]]


ALLOWED = ("nference", "derivative for aten::floor_divide")
"""What is in messages of eager's about what compiled programs may do: tensors made in inference mode take part in
more, and derivatives are zero of what is constant."""


def agrees_with_eager(program: Program, calls: int = 2) -> None:
    """Compare a program with eager.

    Raises:
        Refused: the compiled program says that it does not support what the program does.
    """
    function = program.make()
    compiled = jit(function, cache="symbolic values" if program.symbolic else None)
    for kind in program.arguments:
        runs = []
        for callee in (function, compiled):
            args = (*ARGUMENTS[kind](), BOXES[program.box](), Net())
            if program.symbolic:
                args = (*[mark_dynamic(t, 0) if t.ndim else t for t in args[:2]], *args[2:])
            runs.append((callee, args))
        for seed in range(calls):
            expected, result = [outcome(callee, args, seed) for callee, args in runs]
            where = f"for arguments {kind!r}, {program.box}, call {seed + 1}{', symbolic' if program.symbolic else ''} of\n{program.text}"
            assert state() == OUTSIDE, f"{where}leaves behind {state()}"
            if isinstance(result, ThunderError):
                if isinstance(expected, Exception):
                    break
                raise Refused(f"{result}\n{where}")
            if isinstance(expected, Exception) and any(what in str(expected) for what in ALLOWED):
                break
            (_, eager_args), (_, our_args) = runs
            if isinstance(expected, Exception) or isinstance(result, Exception):
                same = type(expected) is type(result) or isinstance(result, type(expected))
                assert same, f"{where}eager: {expected!r}\ncompiled: {result!r}"
                break
            compare((our_args, result), (eager_args, expected), where)
        else:
            ours, eagers = (our_args, result), (eager_args, expected)
            if all(flags(t) is not None for t in contents(eagers) if isinstance(t, torch.Tensor)):
                compare_gradients(leaves_and_results(ours), leaves_and_results(eagers), where)


def state() -> tuple[Any, ...]:
    """Return the state of PyTorch that a call must leave as it was."""
    return (
        torch.is_autocast_enabled("cpu"), torch.is_grad_enabled(), torch.is_inference_mode_enabled(),
        torch.get_default_dtype(), torch._C._len_torch_function_stack(), torch._C._get_cudnn_enabled(),
    )  # fmt: skip


OUTSIDE = state()


def compare(ours: Any, eagers: Any, where: str) -> None:
    """Compare arguments and results after a call."""
    our, eager = contents(ours), contents(eagers)
    assert len(our) == len(eager), f"{where}eager {eager}\ncompiled {our}"
    for index, (a, b) in enumerate(zip(our, eager, strict=True)):
        if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
            compare_tensors(a, b, f"{where}part {index}: eager {b!r} {b.stride()}, compiled {a!r} {a.stride()}")
        else:
            assert type(a) is type(b) and (a == b or callable(a)), f"{where}part {index}: eager {b!r}, compiled {a!r}"
    our, eager = [[t for t in tree if isinstance(t, torch.Tensor)] for tree in (our, eager)]
    assert sharing(our) == sharing(eager), f"{where}memory is shared otherwise"
    ones = [[[a is b for a in tree] for b in tree] for tree in (our, eager)]
    assert ones[0] == ones[1], f"{where}tensors are one otherwise"


def compare_tensors(a: torch.Tensor, b: torch.Tensor, place: str) -> None:
    """Compare a tensor of ours with eager's."""
    assert a.shape == b.shape and a.dtype == b.dtype and strides(a) == strides(b), place
    assert type(a) is type(b), f"{place}: {type(a)}, {type(b)}"
    assert close(a, b), place
    inexact = b.is_floating_point() or b.is_complex()  # PyTorch says of masks, too, that they require grad
    told = flags(b)
    if told is None:
        return
    assert flags(a) == told or not inexact, f"requires_grad and is_leaf {told}, compiled {flags(a)}: {place}"
    assert a.is_inference() == b.is_inference() or b.requires_grad, f"is_inference: {place}"
    if b.is_leaf:
        assert (a.grad is None) == (b.grad is None), f"grad: eager {b.grad}, compiled {a.grad}: {place}"
        assert a.grad is None or close(a.grad, b.grad), f"grad: eager {b.grad}, compiled {a.grad}: {place}"


def leaves_and_results(tree: Any) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Return the leaves among arguments and results, and the others that require grad."""
    found = [t for t in contents(tree) if isinstance(t, torch.Tensor) and t.requires_grad]
    return [t for t in found if t.is_leaf], [t for t in found if not t.is_leaf]
