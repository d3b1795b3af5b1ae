"""A call that no program can hold is made between two programs of its caller."""

import copy
import threading

import numpy as np
import pytest
import torch
import torch.distributed as dist
from torch import nn

from thunder_frontend import compiled_function, jit

pytestmark = pytest.mark.filterwarnings("ignore::thunder_frontend.FallbackWarning")


def same(ours, eager):
    """Compare trees of tensors and of what is compared by ``==``."""
    (found, shape), (expected, like) = map(torch.utils._pytree.tree_flatten, (ours, eager))
    assert shape == like
    for a, b in zip(found, expected, strict=True):
        if isinstance(a, torch.Tensor):
            torch.testing.assert_close(a, b)
        else:
            assert a == b


def odd(x):
    return x * float(np.sum(memoryview(x.detach().float().numpy())))


def parts(x):
    size = len(x.detach().numpy().tobytes())
    return {"a": x + 1, "b": [x * 2, size]}


def touch(x, state):
    memoryview(x.detach().numpy())
    state["seen"] += 10
    return x * 2


def refuses(x):
    memoryview(x.detach().numpy())
    raise ValueError(f"no {tuple(x.shape)}")


def around(x):
    y = x.sin()
    return odd(y).cos() + y


def containers(x, log):
    log.append("a")
    y = x * 2
    found = parts(y)
    log.append(len(log))
    y.add_(1)
    return found["a"] + y, found["b"][1], found


def under_no_grad(x):
    with torch.no_grad():
        y = odd(x * 2) + 1
    return y * x, torch.is_grad_enabled()


def under_autocast(x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return odd(x @ x.T) + (x @ x.T).float()


def loops(x):
    out = []
    for i, v in enumerate(x.unbind()):
        out.append(odd(v) + i)
    return torch.stack(out)


def over_dict(x):
    for key, value in {"p": x, "q": x * 2}.items():
        if key == "q":
            x = odd(value) + x
    return x


def over_pairs(x):
    for a, b in zip(x, x + 1, strict=False):
        x = x + odd(a) * b
    return x


def handles(x):
    try:
        return refuses(x * 2)
    except ValueError as error:
        return x.sum(), str(error)
    finally:
        x.add_(1)


def passes_on(x):
    x.add_(1)
    return refuses(x)


def writes(x):
    x.add_(1)
    view = x[0]
    y = odd(view)
    view.mul_(2)
    return x * y.sum(), view


def overlapping(x):
    a, b = x[1:], x[:2]
    a.add_(odd(b).sum().detach())
    return a, b


def draws(x):
    torch.manual_seed(3)
    a, b = torch.rand(3), odd(torch.rand(3))
    return a + b + torch.rand(3) + x.sum()


def touched(x, state):
    state["seen"] = state.get("seen", 0) + 1
    y = touch(x, state)
    state["n"] = state["seen"]
    return y + state["seen"]


def in_the_middle(x):
    h = (x * x.cos()).relu()
    return (odd(h) @ x.T).softmax(-1).sum() + h.sum()


def nested(x):
    return odd(around(x) + 1) + containers(x, [])[0]


def branches(x):
    y = odd(x)
    if y.sum() > 20:
        y = y * 2
    return odd(y)


ONLY_X = [
    around, under_no_grad, under_autocast, loops, over_dict, over_pairs, handles, passes_on, writes, overlapping, draws,
    in_the_middle, nested, branches,
]  # fmt: skip
CASES = [*[(f, ()) for f in ONLY_X], (containers, ([],)), (touched, ({},))]


def ran(function, x, others, requires_grad):
    """Return all that a call and its backward leave."""
    torch.manual_seed(0)
    leaf, others = x.clone().requires_grad_(requires_grad), copy.deepcopy(others)
    given = leaf * 1
    try:
        result = function(given, *others)
    except (ValueError, TypeError) as error:
        return type(error), str(error), given, others
    tensors = [t for t in torch.utils._pytree.tree_leaves(result) if isinstance(t, torch.Tensor)]
    flows = [t.float().sum() for t in tensors if t.requires_grad]
    if flows:
        sum(flows).backward()
    return result, others, given, leaf.grad, [t.requires_grad for t in tensors], torch.rand(1)


@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize(("function", "others"), CASES, ids=lambda value: getattr(value, "__name__", ""))
def test_calls_are_what_they_are_in_eager(function, others, requires_grad):
    compiled = jit(function, fallback="split")
    for i in range(3):
        x = torch.arange(12.0).reshape(3, 4) / 7 + 0.1 + i
        same(ran(compiled, x, others, requires_grad), ran(function, x, others, requires_grad))


@pytest.mark.parametrize("function", [around, under_no_grad, writes, overlapping, draws, in_the_middle])
def test_the_caller_is_two_programs_however_often_it_is_called(function):
    compiled = jit(function, fallback="split")
    for i in range(3):
        compiled(torch.ones(3, 4) + i)
    assert [len(part.compiled) for part in compiled_function(compiled).parts()] == [1, 1]


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls, self.linear = 0, nn.Linear(4, 4)

    def forward(self, x):
        self.calls += 1
        memoryview(x.detach().numpy())
        return self.linear(x) + self.calls


class Stack(nn.Module):
    def __init__(self):
        super().__init__()
        self.counter, self.calls = Counter(), 0
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])

    def forward(self, x):
        self.calls += 1
        for layer in self.layers:
            x = layer(self.counter(x)) * self.calls + self.counter.calls
        return x.tanh()


def test_what_the_call_writes_is_what_comes_after_reads():
    ours = Stack()
    eager = copy.deepcopy(ours)
    compiled = jit(ours, fallback="split")
    for i in range(4):
        x = torch.ones(3, 4) + i
        result, expected = compiled(x), eager(x)
        result.sum().backward()
        expected.sum().backward()
        same(result, expected)
        same([p.grad for p in ours.parameters()], [p.grad for p in eager.parameters()])
        assert (ours.calls, ours.counter.calls) == (eager.calls, eager.counter.calls)


@pytest.mark.parametrize(
    "options", [{"check": "first-call"}, {"cache": "no caching"}, {"cache": "same input"}, {"cache": "symbolic values"}]
)
def test_other_options_are_heeded(options):
    compiled = jit(around, fallback="split", **options)
    for _ in range(3):
        same(compiled(torch.ones(3)), around(torch.ones(3)))


def test_many_calls_in_a_row_need_no_deeper_stack():
    def repeated(x):
        for _ in range(400):
            x = odd(x) * 0 + x
        return x

    same(jit(repeated, fallback="split")(torch.ones(2)), repeated(torch.ones(2)))


def test_threads_do_not_meet():
    compiled, found = jit(loops, fallback="split"), {}

    def work(at):
        x = torch.full((3, 4), float(at))
        found[at] = compiled(x), loops(x)

    threads = [threading.Thread(target=work, args=(at,)) for at in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 6
    for ours, eager in found.values():
        same(ours, eager)


class Scaled(torch.Tensor):
    """Integers with a scale, as quantised weights are."""

    @staticmethod
    def __new__(cls, integers, scale):
        return torch.Tensor._make_wrapper_subclass(cls, integers.shape, dtype=scale.dtype)

    def __init__(self, integers, scale):
        self.integers, self.scale = integers, scale

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        if function is torch.ops.aten.detach.default:
            return cls(args[0].integers, args[0].scale)
        given = [a.integers * a.scale if isinstance(a, cls) else a for a in args]
        return function(*given, **(kwargs or {}))


def test_of_modules_that_share_their_code_only_the_one_is_lost():
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4), nn.GELU(), nn.Linear(4, 4))
    weight = model[1].weight.detach()
    scale = weight.abs().amax(1, keepdim=True) / 127
    model[1].weight = nn.Parameter(Scaled((weight / scale).round().to(torch.int8), scale), requires_grad=False)
    compiled = jit(model, fallback="split")
    for _ in range(2):
        x = torch.randn(3, 4)
        same(compiled(x), model(x))
    found = compiled_function(compiled)
    assert [part.name for part in found.parts() if part.compiled] == ["Sequential", "Sequential after Linear"]
    assert [split.what for split in found.split_off()] == ["Linear"]


@torch.compiler.disable
def disabled(x):
    return x * 2 if torch.compiler.is_compiling() else x * 3


class PartlyDisabled(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    @torch.compiler.disable
    def own(self, x):
        return self.linear(x).relu()

    def forward(self, x):
        return disabled(self.own(x.cos()) + 1).sin()


def test_what_is_not_to_be_compiled_is_called_between_programs():
    model = PartlyDisabled()
    compiled = jit(model, fallback="split")
    for i in range(3):
        x = torch.ones(2, 4) + i
        same(compiled(x), model(x))
    found = compiled_function(compiled)
    assert [split.what for split in found.split_off()] == ["PartlyDisabled.own", "disabled"]
    assert [len(part.compiled) for part in found.parts()] == [1, 1, 1]


def test_within_code_in_c_it_is_part_of_the_program():
    compiled = jit(lambda xs: [*map(disabled, xs)], fallback="split")
    same(compiled([torch.ones(2)]), [torch.ones(2) * 3])


def jagged():
    parts = [torch.arange(8.0).reshape(2, 4), torch.ones(3, 4)]
    return torch.nested.nested_tensor(parts, layout=torch.jagged)


@pytest.mark.parametrize(
    ("function", "make"),
    [
        (lambda a, x: (a @ x).relu(), lambda: torch.eye(4).to_sparse()),
        (lambda a, x: (a @ x).relu(), lambda: torch.eye(4).to_sparse_csr()),
        (lambda a, x: torch.sparse.mm(a * 2, x).sum(), lambda: torch.eye(4).to_sparse()),
        (lambda a, x: (a @ x).sin().values().sum(), jagged),
        (lambda a, x: a.dequantize() + x, lambda: torch.quantize_per_tensor(torch.ones(4, 4), 0.1, 0, torch.qint8)),
        (lambda a, x: (x.relu().to_sparse() @ x).to_dense() + a, lambda: torch.ones(4)),
        (
            lambda a, x: torch.quantize_per_tensor(x.detach(), 0.1, 0, torch.qint8).dequantize() * x,
            lambda: torch.ones(4),
        ),
    ],
    ids=["coo", "csr", "coo product", "jagged", "quantised", "made inside", "quantised inside"],
)
def test_tensors_that_no_program_takes(function, make):
    compiled = jit(function, fallback="split")
    for i in range(2):
        ours, eager = [(torch.ones(4, 4) + i).requires_grad_() for _ in range(2)]
        result, expected = compiled(make(), ours), function(make(), eager)
        same(result, expected)
        result.sum().backward()
        expected.sum().backward()
        same(ours.grad, eager.grad)


@pytest.fixture
def one_process():
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


class Wrapping(nn.Module):
    """Calls a module that several processes train together."""

    def __init__(self):
        super().__init__()
        inner = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 4))
        self.inner, self.last = nn.parallel.DistributedDataParallel(inner), nn.Linear(4, 4)

    def forward(self, x):
        return self.last(self.inner(x.cos())).tanh()


def test_what_wraps_a_module_for_several_processes_runs_in_python_and_the_module_is_compiled(one_process):
    torch.manual_seed(0)
    ours = Wrapping()
    torch.manual_seed(0)
    eager = Wrapping()
    compiled = jit(ours, fallback="split")
    for i in range(3):
        x = torch.ones(2, 4) + i
        result, expected = compiled(x), eager(x)
        result.sum().backward()
        expected.sum().backward()
        same(result, expected)
        same([p.grad for p in ours.parameters()], [p.grad for p in eager.parameters()])
    found = compiled_function(compiled)
    names = [part.name for part in found.parts() if part.compiled]
    assert sorted(names) == ["Sequential", "Wrapping", "Wrapping after DistributedDataParallel"]


def held_around(x, lock):
    with lock:
        y = odd(x)
    return y + 1


@pytest.mark.parametrize("make", [threading.Lock, threading.RLock])
def test_a_program_does_not_end_before_a_call_while_it_holds_a_lock(make):
    compiled, lock = jit(held_around, fallback="split"), make()
    for rows in (2, 3, 4, 3):
        same(compiled(torch.ones(rows), lock), held_around(torch.ones(rows), lock))
        assert lock.acquire(blocking=False)
        lock.release()


def takes(x, lock):
    lock.acquire()
    return x * 2


def gives(x, lock):
    lock.release()
    return x * 3


def test_a_lock_is_held_from_one_call_to_another():
    taking, giving, lock = jit(takes, fallback="split"), jit(gives, fallback="split"), threading.Lock()
    for rows in (2, 3, 4):
        same(taking(torch.ones(rows), lock), torch.full((rows,), 2.0))
        assert lock.locked()
        same(giving(torch.ones(rows), lock), torch.full((rows,), 3.0))
        assert not lock.locked()
