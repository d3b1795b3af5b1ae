"""Threads, recursion, programs inside of programs, exceptions, and errors that say where."""

import collections
import contextlib
import copy
import datetime
import gc
import importlib
import io
import logging
import math
import pickle
import subprocess
import sys
import threading
import traceback
import types
from pathlib import Path

import pytest
import torch

from thunder_frontend import AcquisitionError, DataDependentError, SharpEdgeError, SharpEdgeWarning, cache_misses, jit
from thunder_guards.own_code import PACKAGES
from thunder_interpreter import UnsupportedPython


class Holder:
    pass


@pytest.mark.parametrize("fallback", ["split", "warn", "error"])
def test_a_free_threaded_python_is_refused_in_one_sentence(monkeypatch, fallback):
    monkeypatch.setattr("thunder_interpreter._interpretation.FREE_THREADED", True)
    compiled = jit(lambda x: x + 1, fallback=fallback)
    for _ in range(2):
        with pytest.raises(UnsupportedPython, match="^this Python .* is a free-threaded build, .*: use the ordinary"):
            compiled(torch.ones(2))
    monkeypatch.undo()
    assert compiled(torch.ones(2)).tolist() == [2.0, 2.0]


def test_eight_threads_call_one_function():
    module = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
    compiled, wrong = jit(module), []

    def work(seed):
        generator = torch.Generator().manual_seed(seed)
        for _ in range(6):
            for rows in (1 + seed % 3, 2):
                x = torch.randn(rows, 4, generator=generator)
                with torch.set_grad_enabled(bool(seed % 2)):
                    if not torch.allclose(compiled(x), module(x)):
                        wrong.append((seed, rows))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert cache_misses(compiled) <= 6


def test_a_compiled_function_calls_itself_and_others():
    double = jit(lambda x: x * 2)

    @jit
    def power(x, n):
        return x if n == 0 else double(power(x, n - 1))

    x = torch.randn(3)
    assert torch.equal(power(x, 3), x * 8)
    assert torch.equal(power(x, 2), x * 4)
    factor = 3.0
    inner = jit(lambda x: x * factor)
    outer = jit(lambda x: inner(x) + 1)
    assert torch.equal(outer(x), x * 3 + 1)
    factor = 4.0
    assert torch.equal(outer(x), x * 4 + 1)


def test_what_changes_while_a_program_is_compiled_is_compiled_for_anew():
    world = types.SimpleNamespace(factor=2.0)
    compiled = jit(lambda x: x * world.factor)
    compile_ = compiled._compile

    def slowly(*call):
        made = compile_(*call)
        world.factor = 3.0  # as another thread would
        return made

    compiled._compile = slowly
    assert compiled(torch.ones(2)).tolist() == [3.0, 3.0]
    assert len(compiled.compiled) == 2


def test_what_changes_to_and_fro_while_programs_are_compiled_is_served_by_the_one_that_is_there():
    world = types.SimpleNamespace(factor=2.0)
    compiled = jit(lambda x: x * world.factor)
    compile_ = compiled._compile

    def slowly(*call):
        made = compile_(*call)
        world.factor = 5.0 - world.factor
        return made

    compiled._compile = slowly
    assert compiled(torch.ones(2)).tolist() == [2.0, 2.0]
    assert len(compiled.compiled) == 2


@pytest.mark.parametrize("before", [False, True])
def test_what_a_program_sets_itself_is_what_it_reads(before):
    def program(x):
        with torch.autograd.set_detect_anomaly(True, check_nan=False):
            inside = 2 if torch.is_anomaly_enabled() else 3
        return x * inside + (10 if torch.is_anomaly_enabled() else 0)

    compiled = jit(program)
    with torch.autograd.set_detect_anomaly(before):
        expected = program(torch.ones(2))
        for _ in range(3):
            assert torch.equal(compiled(torch.ones(2)), expected)
            assert torch.is_anomaly_enabled() is before
    with torch.autograd.set_detect_anomaly(not before):
        assert torch.equal(compiled(torch.ones(2)), program(torch.ones(2)))


def test_a_compiled_function_is_called_while_another_is_compiled_by_the_same_thread():
    inner = jit(torch.sin)

    class Meddling:
        def __init__(self):
            self.itself = self

        def __del__(self):
            inner(torch.ones(2))

    Meddling()

    def program(x):
        gc.collect()  # as may happen at any time
        return x + 1

    assert torch.equal(jit(program)(torch.ones(3)), torch.full((3,), 2.0))


def test_what_cannot_be_compiled_leaves_everything_as_it_was():
    holder, table, items, module = Holder(), {"a": 1}, [1, 2], torch.nn.BatchNorm1d(3)
    holder.count = 0

    def program(x, fail):
        holder.count += 1
        holder.new = x
        table["b"] = x
        del table["a"]
        items.append(x)
        items[0] = 5
        x.add_(1)
        y = module(x)
        module.extra = 3
        return (x if y.sum() > 0 else -x) if fail else y

    compiled = jit(program, outcomes=0)
    x = torch.zeros(2, 3)
    with pytest.raises(DataDependentError):
        compiled(x, True)
    assert holder.__dict__ == {"count": 0}
    assert table == {"a": 1} and items == [1, 2]
    assert not hasattr(module, "extra") and int(module.num_batches_tracked) == 0
    assert torch.equal(x, torch.zeros(2, 3))
    result = compiled(x, False)
    assert torch.equal(result, torch.zeros(2, 3)) and torch.equal(x, torch.ones(2, 3))
    assert holder.count == 1 and list(table) == ["b"] and items[0] == 5 and len(items) == 3
    assert module.extra == 3 and int(module.num_batches_tracked) == 1


class Refusal(Exception):
    def __init__(self, message, tensor):
        super().__init__(message, tensor)
        self.tensor = tensor


def test_an_exception_leaves_behind_what_the_program_did_before():
    def program(x, holder, items):
        x.add_(1)
        items.append(x * 2)
        holder.count += 1
        x.t_()
        raise Refusal("enough", x * 3)

    compiled = jit(program)
    for function in (program, compiled, compiled):
        x, holder, items = torch.zeros(2, 3), Holder(), []
        holder.count = 0
        with pytest.raises(Refusal, match="enough") as caught:
            function(x, holder, items)
        assert torch.equal(x, torch.ones(3, 2)) and holder.count == 1
        assert len(items) == 1 and torch.equal(items[0], torch.full((2, 3), 2.0))
        assert torch.equal(caught.value.tensor, torch.full((3, 2), 3.0)) and caught.value.args[1] is caught.value.tensor
    assert cache_misses(compiled) == 0


def test_an_exception_that_the_program_catches_keeps_its_writes():
    holder = Holder()
    holder.log = []

    def program(x):
        try:
            holder.log.append("before")
            raise KeyError("inside")
        except KeyError:
            holder.log.append("after")
        return x + len(holder.log)

    compiled = jit(program)
    for count in (2, 4):
        assert torch.equal(compiled(torch.zeros(1)), torch.tensor([float(count)]))
    assert holder.log == ["before", "after"] * 2


def test_an_exception_when_the_program_runs_is_not_cached():
    compiled = jit(lambda x, index: x[index])
    x = torch.arange(3.0)
    with pytest.raises(IndexError):
        compiled(x, torch.tensor([7]))
    assert torch.equal(compiled(x, torch.tensor([1])), x[1:2])


def helper(y):
    if y.sum() > 0:
        return y
    return -y


def test_an_error_names_the_operation_and_the_users_line_and_shows_the_users_frames():
    def program(x):
        return helper(x * 2)

    with pytest.raises(DataDependentError) as caught:
        jit(program, outcomes=0)(torch.ones(3))
    text = str(caught.value)
    assert "torch.where" in text and "__bool__" in text
    assert "test_robustness.py" in text and "if y.sum() > 0:" in text
    names = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert names[-2:] == ["program", "helper"]


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (lambda x: x * float(str(x.sum().item())), "known only when the program runs"),
        (lambda x: [x for _ in range(int(x.sum()))], "known only when the program runs"),
        (lambda x: x.resize_(5), "make a new tensor"),
        (lambda x: x + torch.rand(3, generator=torch.Generator()), "make it outside"),
        (lambda x: torch.add(x, x, out=x[:1]), "right shape"),
        (lambda x: torch.no_grad()(torch.Tensor.t_)(x.requires_grad_()), "use t"),
        (lambda x: memoryview(x.numpy()), "number that is symbolic"),
        (lambda x: pickle.dumps(x), "save it outside"),
        (lambda x: torch.save(x, io.BytesIO()), "save it outside"),
        (lambda x: torch.profiler.profile().__enter__(), "start it around the call"),
        (lambda x: torch.autograd.profiler.profile().__enter__(), "start it around the call"),
    ],
)
def test_what_cannot_be_traced_is_refused_with_the_way_out(program, message):
    with pytest.raises(AcquisitionError, match=message):
        jit(program, outcomes=0)(torch.ones(3, 1))


WRITTEN = 0


def prints(x):
    print("traced")
    return x + 1


def writes_a_global(x):
    global WRITTEN
    WRITTEN += 1
    return x + 1


def asks_the_time(x):
    return x + datetime.datetime.now().microsecond


@pytest.mark.parametrize("program", [asks_the_time])
def test_values_that_vary_from_call_to_call_are_not_kept_unless_that_is_allowed(program):
    with pytest.raises(AcquisitionError, match="another value on each call"):
        jit(program)(torch.ones(1))


def test_modules_that_a_program_imports_may_ask_for_what_varies(tmp_path, monkeypatch):
    name = "imported_late"
    (tmp_path / f"{name}.py").write_text("import os\nSEED = os.urandom(4)\nscale = 2.0\n")
    monkeypatch.syspath_prepend(tmp_path)

    def program(x):
        late = collections.defaultdict(lambda: importlib.import_module(name))
        return x * late["module"].scale  # code in C runs what imports

    compiled, x = jit(program), torch.ones(2)
    for _ in range(2):
        assert torch.equal(compiled(x), x * 2)


@pytest.mark.parametrize("program", [prints, asks_the_time, writes_a_global])
def test_sharp_edges_are_allowed_or_told_or_refused(program, capsys):
    jit(program, sharp_edges="allow")(torch.ones(1))
    with pytest.warns(SharpEdgeWarning):
        jit(program, sharp_edges="warn")(torch.ones(1))
    with pytest.raises(SharpEdgeError):
        jit(program, sharp_edges="error")(torch.ones(1))


def test_a_global_is_written_by_each_call():
    before = WRITTEN
    compiled = jit(writes_a_global)
    for _ in range(3):
        compiled(torch.ones(1))
    assert before + 3 == WRITTEN


def topmost(x):
    return x * 2


def test_compiled_functions_are_copied_and_pickled():
    compiled = jit(topmost)
    x = torch.ones(2)
    compiled(x)
    for copied in (copy.copy(compiled), copy.deepcopy(compiled), pickle.loads(pickle.dumps(compiled))):
        assert torch.equal(copied(x), x * 2) and cache_misses(copied) == 1


@pytest.mark.parametrize(
    ("place", "name"), [(torch, "sin"), (torch.nn.functional, "relu"), (torch.nn.Linear, "forward"), (math, "sqrt")]
)
def test_functions_that_are_exchanged_between_calls_are_noticed(monkeypatch, place, name):
    layer = torch.nn.Linear(3, 3)

    def program(x):
        return torch.nn.functional.relu(layer(torch.sin(x))) * math.sqrt(4)

    compiled, x = jit(program), torch.randn(2, 3)
    torch.testing.assert_close(compiled(x), program(x))
    with monkeypatch.context() as patched:
        patched.setattr(place, name, lambda *args, **kwargs: 7 * args[-1])
        torch.testing.assert_close(compiled(x), program(x))
    torch.testing.assert_close(compiled(x), program(x))


def catches_all(x):
    try:
        return x + 1 if x.sum() > 0 else x - 1
    except Exception:
        return x * 100


def catches_by_name(x):
    try:
        return x * float(str(x.sum().item()))
    except (RuntimeError, ValueError) as error:
        raise KeyError("of its own") from error


def catches_whatever(x):
    try:
        return x + float(bool(x.any()))
    except:  # noqa: E722
        return x


def suppresses(x):
    with contextlib.suppress(Exception):
        x = x + (2 if x.max() > 0 else 3)
    return x


def reads_a_file(x):
    try:
        return x + len(open(__file__).read())
    except Exception:
        return x


@pytest.mark.parametrize("program", [catches_all, catches_by_name, catches_whatever, suppresses, reads_a_file])
def test_no_handler_of_the_users_takes_a_refusal_for_an_error_of_the_program(program):
    with pytest.raises(AcquisitionError, match=f"in {program.__name__}"):
        jit(program, outcomes=0)(torch.ones(2))


def test_handlers_of_errors_that_eager_raises_too_run():
    def program(x):
        try:
            return x + torch.ones(3)
        except RuntimeError:
            pass
        try:
            return x.sum(5)
        except IndexError:
            return x + 1

    assert torch.equal(jit(program)(torch.ones(2)), torch.full((2,), 2.0))


def test_errors_are_logged_and_formatted_inside(caplog):
    def program(x):
        try:
            raise ValueError("a reason")
        except ValueError:
            logging.getLogger("program").exception("it failed")
            return x + ("a reason" in traceback.format_exc())

    assert torch.equal(jit(program)(torch.ones(2)), torch.full((2,), 2.0))
    assert "it failed" in caplog.text and "a reason" in caplog.text


@pytest.mark.parametrize(
    ("program", "operation"),
    [
        (lambda x: x.to_sparse().sum(), "Tensor_to_sparse"),
        (lambda x: torch.nested.nested_tensor([x, x]).sum(), None),
        (lambda x: x + len(x.untyped_storage()), "Tensor_untyped_storage"),
        (lambda x: x.storage(), "Tensor_storage"),
    ],
)
def test_what_has_no_place_in_a_program_is_named_with_the_line_and_the_way_out(program, operation):
    with pytest.raises(AcquisitionError, match="compile the parts before and after it on their own") as error:
        jit(program)(torch.ones(2))
    assert error.value.operation == operation and "test_robustness.py" in error.value.where


BY_BACKEND = """
import torch
from thunder_frontend import cache_misses, jit
x = torch.eye(3)
compiled = jit(lambda x: x @ x)
for precision in ("ieee", "tf32", "tf32", "ieee"):
    torch.backends.cuda.matmul.fp32_precision = precision
    assert torch.equal(compiled(x), x)
assert cache_misses(compiled) == 2, cache_misses(compiled)
"""


def test_the_precision_of_products_may_be_set_by_backend():
    run = subprocess.run([sys.executable, "-c", BY_BACKEND], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize(
    "name", ["thunder_models", "thunder_executors_of_mine", "numpyro", "tokenizers", "torch_models"]
)
def test_modules_whose_names_begin_like_those_of_libraries_are_the_users(name, monkeypatch):
    module = types.ModuleType(name)
    monkeypatch.setitem(sys.modules, name, module)
    exec("scale = 2.0\ndef scaled(x):\n    return x * scale\ndef function(x):\n    return scaled(x) + 1", vars(module))
    compiled, x = jit(module.function), torch.ones(2)
    for module.scale in (2.0, 5.0):
        assert torch.equal(compiled(x), module.function(x))
    assert cache_misses(compiled) == 2


def test_every_package_is_known_to_be_our_own():
    root = Path(__file__).parents[2]
    assert {p.name for p in root.glob("*/src/*")} <= PACKAGES | {"thunder", "thunder_benchmarks", "thunder_transforms"}


def test_programs_start_no_threads():
    def program(x):
        thread = threading.Thread(target=lambda: None)
        thread.start()
        thread.join()
        return x

    with pytest.raises(AcquisitionError, match=r"calls start_(new|joinable)_thread\(\).*do it before the call"):
        jit(program)(torch.ones(2))
