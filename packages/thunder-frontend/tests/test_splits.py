"""What no program can be made of runs in Python, and what it calls is compiled."""

import contextlib
import gc
import warnings
import weakref
from collections import OrderedDict

import numpy as np
import pytest
import torch
from torch import nn

from thunder_frontend import AcquisitionError, FallbackWarning, compiled_function, explain, jit
from thunder_frontend._acquire import Acquisition

pytestmark = pytest.mark.filterwarnings("ignore::thunder_frontend.FallbackWarning")


class Gate(nn.Module):
    """Looks into a tensor's bytes, which no program holds."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        h = self.linear(x)
        self.last = h.detach().numpy().tobytes()
        return h * len(self.last)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 4))
        self.gate = Gate()

    def forward(self, x):
        return x + self.gate(x + self.mlp(x))


class Model(nn.Module):
    def __init__(self, depth=3):
        super().__init__()
        self.blocks = nn.ModuleList([Block() for _ in range(depth)])
        self.norm = nn.BatchNorm1d(4)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.norm(x)


def twins(make):
    torch.manual_seed(0)
    one = make()
    torch.manual_seed(0)
    return one, make()


def trained(model, run, x):
    result = run(x)
    result.square().sum().backward()
    return result, [p.grad for p in model.parameters()], dict(model.named_buffers())


@pytest.mark.parametrize("fallback", ["split", "warn"])
def test_results_gradients_and_state_are_those_of_eager(fallback):
    ours, eager = twins(Model)
    compiled = jit(ours, fallback=fallback)
    for seed in range(3):
        x = torch.randn(5, 4, generator=torch.Generator().manual_seed(seed))
        torch.testing.assert_close(trained(ours, compiled, x), trained(eager, eager, x))
    assert [b.gate.calls for b in ours.blocks] == [3, 3, 3]
    assert [b.gate.last for b in ours.blocks] == [b.gate.last for b in eager.blocks]


def test_what_is_around_the_frame_is_compiled():
    model = Model()
    compiled = jit(model, fallback="split")
    compiled(torch.randn(5, 4))
    found = explain(compiled).programs
    assert [name for name, _ in found] == ["Model", "Model after Gate"]


def _in_cells(x, scale):
    scale = scale + len([row for row in x if row.dim() < scale])
    y = _through_numpy(x * scale)
    rows = [row * scale for row in y]

    def scaled(value):
        nonlocal scale
        scale += 1
        return value * scale

    return rows, scaled(y), scaled(x), scale


def test_variables_that_closures_share_later_go_on_behind_the_frame():
    compiled = jit(_in_cells, fallback="split")
    for scale in (2, 3, 5):
        x = torch.rand(3, 2, requires_grad=True)
        torch.testing.assert_close(compiled(x, scale), _in_cells(x, scale))
    assert [name for name, _ in explain(compiled).programs][:2] == ["_in_cells", "_in_cells after _summed_by_numpy"]


def test_each_place_is_warned_of_once_with_reason_and_way_out():
    compiled = jit(Model(), fallback="split")
    with pytest.warns(FallbackWarning, match=r"(?s)Gate runs in Python: .*numpy.*\n  at .*tobytes") as seen:
        compiled(torch.randn(5, 4))
    assert len(seen) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compiled(torch.randn(5, 4))
        compiled(torch.randn(6, 4))


def test_refusals_stay_errors_where_that_is_asked_for():
    for options in ({"fallback": "error"}, {"fullgraph": True}):
        with pytest.raises(AcquisitionError, match="what no tensor holds"):
            jit(Model(), **options)(torch.randn(5, 4))
    with pytest.raises(ValueError, match="fullgraph=True means"):
        jit(Model(), fullgraph=True, fallback="warn")
    with pytest.raises(ValueError, match="fallback='never' is not one of"):
        jit(Model(), fallback="never")


def odd(x):
    return float(np.asarray(memoryview(x.numpy())).max())


def halves(x):
    return x.cos() * 0.5


def mixed(x, log):
    log.append(-1.0)
    y = halves(x)
    log.append(odd(y.detach()))
    z = [halves(part) for part in y.unbind()]
    with torch.no_grad():
        log.append(float(halves(y).requires_grad))
    x.add_(1)
    return torch.stack(z), log


def test_effects_of_a_frame_happen_where_eager_has_them():
    ours, eager = torch.arange(4.0), torch.arange(4.0)
    expected = mixed(eager, [])
    torch.testing.assert_close(jit(mixed, fallback="split")(ours, []), expected)
    torch.testing.assert_close(ours, eager)


def test_an_error_of_the_frame_is_eagers_and_nobody_is_warned():
    def wrong(x):
        return x.numpy() @ torch.ones(3).numpy()

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match="matmul"):
            jit(wrong, fallback="split")(torch.ones(2, 2))


def test_a_handler_in_the_frame_gets_the_errors_of_what_is_compiled():
    def inner(x):
        if x.shape[0] == 2:
            raise KeyError("two")
        return x * 2

    def outer(x):
        try:
            y = inner(x)
        except KeyError as error:
            return str(error), odd(x)
        return y, odd(x)

    compiled = jit(outer, fallback="split")
    assert compiled(torch.ones(2)) == ("'two'", 1.0)
    assert compiled(torch.ones(1)) == (torch.full((1,), 2.0), 1.0)


def test_kinds_of_calls_that_compile_stay_compiled():
    def sometimes(x, look):
        return x * odd(x) if look else x * 2

    compiled = jit(sometimes, fallback="split")
    for _ in range(2):
        torch.testing.assert_close(compiled(torch.full((2,), 3.0), True), torch.full((2,), 9.0))
        torch.testing.assert_close(compiled(torch.full((2,), 3.0), False), torch.full((2,), 6.0))
    assert [len(part.compiled) for part in compiled_function(compiled).parts()] == [2, 1]


def test_hooks_are_called_in_order():
    def seen(run, model):
        log = []
        handles = [
            model.register_forward_pre_hook(lambda m, args: log.append("before")),
            model.register_forward_hook(lambda m, args, result: log.append("after") or result * 2),
            model.blocks[0].mlp.register_forward_hook(lambda m, args, result: log.append("mlp")),
        ]
        result = run(torch.ones(2, 4))
        for handle in handles:
            handle.remove()
        return result, log

    ours, eager = twins(Model)
    (result, log), (expected, eager_log) = seen(jit(ours, fallback="split"), ours), seen(eager, eager)
    torch.testing.assert_close(result, expected)
    assert log == eager_log == ["before", "mlp", "after"]


def test_modules_made_for_one_call_do_not_stay_alive():
    made = []

    def temporary(x):
        layer = Block()
        made.append(weakref.ref(layer))
        return layer(x).sum() * 0, odd(x)

    compiled = jit(temporary, fallback="split")
    for _ in range(3):
        compiled(torch.ones(2, 4))
    gc.collect()
    assert [r() for r in made] == [None] * 3


def test_explanations_name_what_runs_in_python_and_what_is_compiled():
    text = str(explain(Model())(torch.randn(5, 4)))
    assert "Gate runs in Python" in text and "Model after Gate is compiled" in text
    assert "nothing runs in Python" in str(explain(halves)(torch.ones(2)))


class Guarded(OrderedDict):
    """As the outputs of models in libraries are: what changes it runs code of its own, or is forbidden."""

    def __init__(self, first):
        super().__init__(first=first)

    def update(self, *args, **kwargs):
        raise TypeError("not this way")

    pop = update

    def __setitem__(self, key, value):
        super().__setitem__(key, value)
        super().__setattr__(key, value)


def test_a_refusal_leaves_containers_with_methods_of_their_own_as_they_were():
    def fill(made, x):
        made["second"] = x
        made.third = x
        made["first"] = x * 2
        return odd(x)

    for fallback in ("error", "split"):
        made, first = Guarded(torch.zeros(1)), torch.zeros(1)
        made["first"] = first
        if fallback == "error":
            with pytest.raises(AcquisitionError):
                jit(fill, fallback=fallback)(made, torch.ones(2))
            assert list(made) == ["first"] and made["first"] is first and vars(made) == {"first": first}
        else:
            assert jit(fill, fallback=fallback)(made, torch.ones(2)) == 1.0
            assert list(made) == ["first", "second"] and torch.equal(made.third, torch.ones(2))


def test_a_call_between_programs_may_write_to_what_the_first_computed_with():
    def writes(x):
        memoryview(x.detach().numpy())
        with torch.no_grad():
            x.add_(1)
        return x * 2

    def program(x):
        y = (x * 3).relu() + x.tanh()
        return writes(x) + y

    def gradient(function):
        leaf = torch.linspace(-1, 1, 6, requires_grad=True)
        function(leaf * 1).sum().backward()
        return leaf.grad

    compiled = jit(program, fallback="split")
    torch.testing.assert_close(gradient(compiled), gradient(program))
    assert not explain(compiled).is_whole


def test_what_a_part_computed_for_nobody_may_be_written_to():
    block = Block()

    def program(x):
        unused = block(x)
        with torch.no_grad():
            x.add_(1)
        result = x.tanh() + x
        block.gate(unused)
        return result

    gradients = []
    for run in (program, jit(program, fallback="split")):
        leaf = torch.arange(12.0).view(3, 4).requires_grad_()
        run(leaf * 2).sum().backward()
        gradients.append(leaf.grad)
    torch.testing.assert_close(*gradients)


def test_what_a_part_saved_for_a_result_that_nobody_uses_may_be_written_to():
    gate = Gate()

    def program(x):
        unused, used = x * x.exp(), x.tanh()
        gate(unused)
        with torch.no_grad():
            x.add_(1)
        return used

    gradients = []
    for run in (program, jit(program, fallback="split")):
        leaf = torch.arange(12.0).view(3, 4).requires_grad_()
        run(leaf / 8).sum().backward()
        gradients.append(leaf.grad)
    torch.testing.assert_close(*gradients)


class Matcher(torch.nn.Module):
    @torch.no_grad()
    def forward(self, x):
        return torch.from_numpy(np.argsort(memoryview(x.sum(1).numpy())))


def test_a_frame_of_a_module_that_each_call_makes_is_not_lost_for_ever():
    def loss(model, x):
        h = model(x)
        if h.sum() > -100:  # of the ways to acquire it, one gets past this
            h = h.sin()
        return (h[Matcher()(h)] * torch.arange(4.0)[:, None]).sum()

    model, x = torch.nn.Linear(3, 2), torch.randn(4, 3)
    compiled = jit(loss, fallback="split")
    for _ in range(2):
        torch.testing.assert_close(compiled(model, x), loss(model, x))
    assert "Matcher" in compiled.split_off()[0].what


class Loss(nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale = scale

    def forward(self, x):
        return _through_numpy(x) * self.scale


def test_a_module_that_each_call_makes_does_not_wait_for_a_lost_frame():
    def trained(x):
        return Loss(2.0)(x.relu()) + x

    compiled = jit(trained, fallback="split")
    for _ in range(6):
        x = torch.randn(3)
        torch.testing.assert_close(compiled(x), trained(x))
    assert sum([part.stats.cache_misses for part in compiled_function(compiled).parts()]) <= 4


class Sampler:
    """Walks in steps, each of which is decorated, in a frame that no program holds."""

    def __init__(self):
        self.net = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Tanh())

    @torch.no_grad()
    def step(self, x):
        return self.net(x) * 2

    def walk(self, x):
        for order in np.argsort(memoryview(x.detach().sum(1).numpy())):
            x = self.step(x) + int(order)
        return x


def test_decorated_functions_that_a_lost_frame_calls_are_compiled():
    sampler = Sampler()
    run = jit(sampler.walk, fallback="split")
    for _ in range(3):
        x = torch.randn(4, 3, requires_grad=True)
        found, expected = run(x), sampler.walk(x)
        torch.testing.assert_close(found, expected)
        assert not found.requires_grad
    assert "Sampler.step is compiled: 3 operations" in str(explain(run))


def scaled(module, x):
    return x * module.scale


class MadeLoss(torch.nn.Module):
    scale = 2.0

    def forward(self, h):
        return scaled(self, h[Matcher()(h)]).sum() + scaled(self, h).mean()


def makes_its_loss(x):
    return MadeLoss()(x.sin())


@pytest.mark.filterwarnings("ignore::thunder_frontend.FallbackWarning")
def test_modules_that_each_call_makes_have_no_programs_of_their_own():
    compiled, x, counts = jit(makes_its_loss, fallback="split"), torch.randn(4, 3), []
    for _ in range(6):
        torch.testing.assert_close(compiled(x), makes_its_loss(x))
        counts.append(sum(len(p.compiled) for p in compiled_function(compiled).parts()))
    assert counts[2:] == [counts[2]] * 4


class Solver:
    """Holds a module that a call made."""

    def __init__(self, module):
        self.module = module


def advanced(solver, x):
    return solver.module(x) * 2


LINEAR = nn.Linear(3, 3)


def solved(x):
    return advanced(Solver(nn.Sequential(LINEAR, nn.Tanh())), x) * float(np.mean(memoryview(x.detach().numpy())))


def test_a_function_that_is_compiled_for_each_call_alone_is_left_to_python_with_a_word_on_why():
    seen = []

    def remembered(x):
        seen.append(x)
        return torch.cat(seen).sum() * len(str(len(seen)))

    compiled, misses = jit(remembered, fallback="split"), []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for call in range(40):
            assert compiled(torch.ones(2)) == 2.0 * (call + 1) * len(str(call + 1))
            misses.append(compiled_function(compiled).stats.cache_misses)
    assert misses[30] == 31 and misses[32] == misses[-1] == 32
    (told,) = [str(w.message) for w in caught]
    assert "remembered runs in Python" in told and "compiled 32 times" in told and "has 31 items" in told


def test_programs_for_other_arguments_are_made_however_many_there_are():
    compiled = jit(lambda x, name: x * len(name), fallback="split", cache="constant values")
    for _ in range(2):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for call in range(1, 41):
                assert compiled(torch.ones(2), "a" * call)[0] == call
    assert compiled_function(compiled).stats.cache_misses == 40 and not caught


@pytest.mark.filterwarnings("ignore::thunder_frontend.FallbackWarning")
def test_what_is_compiled_for_each_call_alone_is_left_to_python_in_the_end():
    compiled, misses = jit(solved, fallback="split"), []
    for _ in range(24):
        x = torch.randn(4, 3)
        torch.testing.assert_close(compiled(x), solved(x))
        misses.append(sum([part.stats.cache_misses for part in compiled_function(compiled).parts()]))
    assert misses[2] > misses[1] and misses[13] == misses[-1] < 16


def _summed_by_numpy(x):
    return torch.from_numpy(np.asarray(memoryview(x.detach().numpy()))).sum()


def _through_numpy(x):
    return x + _summed_by_numpy(x)


def test_a_call_is_acquired_again_only_in_the_way_that_came_to_the_lost_frame(monkeypatch):
    def function(x):
        x = x * 2 if x.sum() > 0 else -x  # ends what sees no values, well before
        return _through_numpy(x.relu()) + x.exp()

    paths, run = [], Acquisition.run
    monkeypatch.setattr(Acquisition, "run", lambda self, *call: paths.append(self.settings.path) or run(self, *call))
    compiled = jit(function, fallback="split", cache="constant values")
    for x in (torch.rand(3), -torch.rand(3)):
        torch.testing.assert_close(compiled(x), function(x))
    assert paths[:4] == [None, (), None, ()], "all ways, and once a frame is lost the one that came to it"


def _listed(x):
    return [*x, odd(x), x]


def _mapped(x):
    return {**{"a": x}, "b": odd(x), **{"c": 2}, "d": odd(x * 2)}


def _given(*args, **named):
    return [*args, *named.values()]


def _called_with_all(x):
    return _given(*x, odd(x), *x, **{"p": odd(x)}, q=x)


def _comprehended(x):
    return [odd(row) for row in x], {i: odd(row) for i, row in enumerate(x)}


@pytest.mark.parametrize("function", [_listed, _mapped, _called_with_all, _comprehended])
def test_a_display_that_a_call_interrupts_is_filled_in_each_run(function):
    run = jit(function, fallback="split")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FallbackWarning)
        for _ in range(3):
            x = torch.randn(2, 3)
            torch.testing.assert_close(run(x), function(x))


class Counted:
    """Counts what is open, and tells of what was closed."""

    def __init__(self):
        self.open, self.closed = 0, []

    @contextlib.contextmanager
    def entered(self, x):
        self.open += 1
        try:
            yield self.open
        finally:
            self.open -= 1
            self.closed.append("context")
            x.data.add_(1)

    def parts(self, x):
        try:
            for i in range(3):
                yield x * i
        finally:
            self.closed.append("generator")
            x.data.mul_(2)


def bytes_of(x):
    return len(x.detach().numpy().tobytes())


def within_a_context(x, counted):
    with counted.entered(x) as depth:
        return x * bytes_of(x) + depth


def within_a_loop(x, counted):
    total = 0
    for part in counted.parts(x):
        total = total + part * bytes_of(part)
    return total


def between_two_parts(x, counted):
    parts = counted.parts(x)
    first = next(parts)
    return next(parts) + bytes_of(first)


@pytest.mark.parametrize("function", [within_a_context, within_a_loop, between_two_parts])
def test_what_generators_do_at_their_end_is_not_done_by_an_acquisition_that_is_given_up(function):
    found, closed = [], []
    for run in (function, jit(function, fallback="split")):
        counted = Counted()
        found.append([])
        for _ in range(3):
            x = torch.ones(2)
            result = run(x, counted)
            gc.collect()
            found[-1].append((result, x, counted.open))
        closed.append(counted.closed)
    torch.testing.assert_close(found[1], found[0])
    assert closed[1] == closed[0]
