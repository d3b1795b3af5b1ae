"""What a program sets PyTorch to and leaves so: every call leaves it so, and computes as eager does."""

import subprocess
import sys
import warnings

import pytest
import torch
from versions import needs_torch

from thunder_frontend import AcquisitionError, FallbackWarning, cache_misses, jit
from thunder_guards.settings import SETTINGS, settings_now


@pytest.fixture(autouse=True)
def as_before():
    before = settings_now()
    yield
    restore(before)


def restore(values):
    for setting, value in zip(SETTINGS, values, strict=True):
        if setting.now() != value:
            setting.set(value)


def outcome(program, x):
    try:
        y = program(x)
    except ValueError as error:
        return str(error)
    return (y.tolist(), y.dtype, y.requires_grad, y.is_leaf, y.is_inference())


def grad_off(x):
    y = x.sin()
    torch.set_grad_enabled(False)
    return y


def grad_on(x):
    y = x.sin()
    torch.set_grad_enabled(True)
    return y


def grad_mode_entered(x):
    torch.no_grad().__enter__()
    return x.sin()


def autocast_entered(x):
    torch.autocast("cpu", torch.bfloat16).__enter__()
    return x @ x


def autocast_set(x):
    torch.set_autocast_dtype("cpu", torch.float16)
    return x * 2


def default_dtype(x):
    torch.set_default_dtype(torch.float64)
    return x + torch.ones(2)


def default_device(x):
    torch.set_default_device("cpu" if torch.get_default_device().type == "meta" else "meta")
    return x * 2


def deterministic(x):
    torch.use_deterministic_algorithms(True, warn_only=True)
    return x * 2


def threads(x):
    torch.set_num_threads(torch.get_num_threads() + 1)
    return x * torch.get_num_threads()


def precision(x):
    torch.set_float32_matmul_precision("medium")
    return x @ x


def benchmark(x):
    torch.backends.cudnn.benchmark = not torch.backends.cudnn.benchmark
    return x * 2 if torch.backends.cudnn.benchmark else x


def derivatives_off(x):
    torch._C._set_fwd_grad_enabled(False)
    return x * 2


def attention(x):
    torch.backends.cuda.enable_flash_sdp(False)
    return x * 2


def anomalies(x):
    torch.autograd.set_detect_anomaly(True)
    return x * 2


def print_options(x):
    torch.set_printoptions(precision=2)
    return x * 2


def raises(x):
    torch.set_grad_enabled(False)
    torch.set_default_dtype(torch.float64)
    raise ValueError("after all")


PROGRAMS = (
    grad_off, grad_on, grad_mode_entered, autocast_entered, autocast_set, default_dtype,
    pytest.param(default_device, marks=needs_torch(2, 10, "cannot tell its device once none is set")), deterministic,
    threads, precision, benchmark, derivatives_off, attention, anomalies, print_options, raises,
)  # fmt: skip


@pytest.mark.parametrize("from_no_grad", [False, True], ids=["grad", "no grad"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_every_call_leaves_the_settings_as_eager_does(program, from_no_grad):
    torch.set_grad_enabled(not from_no_grad)
    before, x = settings_now(), torch.ones(2, requires_grad=True)
    results = []
    for run in (program, jit(program)):
        restore(before)
        results.append([])
        for step in ("once", "again", "put back", "again"):
            if step == "put back":
                restore(before)
            results[-1].append((outcome(run, x), settings_now()))
    assert results[0] == results[1]


def test_what_is_set_already_is_set_again_once_it_is_not():
    def program(x):
        torch.set_num_threads(1)
        torch.backends.cudnn.benchmark = False
        return x * 2

    torch.set_num_threads(1)
    compiled = jit(program)
    compiled(torch.ones(2))
    torch.set_num_threads(2)
    torch.backends.cudnn.benchmark = True
    compiled(torch.ones(2))
    assert torch.get_num_threads() == 1
    assert not torch.backends.cudnn.benchmark


def test_a_setter_that_sets_one_setting_has_that_one_guarded_alone():
    compiled = jit(derivatives_off)
    for benchmark in (False, True):
        torch.backends.cudnn.benchmark = benchmark
        for enabled in (False, True):
            torch._C._set_fwd_grad_enabled(enabled)
            compiled(torch.ones(2))
            assert not torch._C._is_fwd_grad_enabled()
    assert cache_misses(compiled) == 2


def test_derivatives_of_torch_func_guard_none_of_the_settings_that_they_leave():
    compiled = jit(lambda x: torch.func.grad(lambda v: v.sin().sum())(x))
    for benchmark in (False, True):
        torch.backends.cudnn.benchmark = benchmark
        compiled(torch.ones(2))
    assert cache_misses(compiled) == 1


def test_settings_that_a_block_restores_are_not_guarded():
    def program(x):
        with torch.no_grad(), torch.autocast("cpu"):
            return x * 2

    compiled = jit(program)
    compiled(torch.ones(2))
    torch.set_num_threads(torch.get_num_threads() + 1)
    torch.set_num_threads(torch.get_num_threads() - 1)
    compiled(torch.ones(2))
    assert cache_misses(compiled) == 1


def test_operations_run_under_the_settings_that_the_program_made_before_them():
    def program(x):
        before = torch.empty(4)
        torch.use_deterministic_algorithms(True)
        filled = torch.empty(4)
        torch.use_deterministic_algorithms(False)
        return x * 2, before, filled

    compiled = jit(program)
    for _ in range(3):
        y, _, filled = compiled(torch.ones(2))
        assert torch.equal(y, torch.full((2,), 2.0))
        assert filled.isnan().all()


def test_a_program_that_cannot_be_acquired_leaves_all_settings_as_they_were():
    def program(x):
        torch.set_grad_enabled(False)
        torch.set_num_threads(torch.get_num_threads() + 1)
        torch.set_flush_denormal(False)
        return x * 2

    before = settings_now()
    with pytest.raises(AcquisitionError):
        jit(program, outcomes=0)(torch.ones(2, requires_grad=True))
    assert settings_now() == before


def test_what_pytorch_does_not_tell_is_refused():
    with pytest.raises(AcquisitionError, match="set_flush_denormal"):
        jit(lambda x: x if torch.set_flush_denormal(False) else x * 2)(torch.ones(2))


def test_blocks_that_change_a_setting_are_not_taken_for_their_equals():
    class Switch(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = torch.nn.Linear(2, 2)

        def forward(self, x):
            torch.set_num_threads(torch.get_num_threads() + 1)
            torch.set_grad_enabled(not torch.is_grad_enabled())
            return self.inner(x)

    model = torch.nn.Sequential(Switch(), Switch(), Switch())
    before, x = settings_now(), torch.ones(1, 2)
    expected, left = model(x), settings_now()
    compiled = jit(model)
    for _ in range(2):
        restore(before)
        result = compiled(x)
        assert torch.equal(result, expected)
        assert result.requires_grad is expected.requires_grad
        assert settings_now() == left


KEPT = []


def device_entered(x):
    torch.device("meta").__enter__()
    return x * 2


def inference_mode_entered(x):
    KEPT.append(torch.inference_mode())
    KEPT[-1].__enter__()
    return x * 2


def inference_mode_left(x):
    KEPT[-1].__exit__(None, None, None)
    return x * 2


@pytest.mark.parametrize("program", [device_entered, inference_mode_entered], ids=lambda f: f.__name__)
def test_modes_that_a_program_enters_and_does_not_leave_are_refused(program):
    with pytest.raises(AcquisitionError, match="does not undo that before it returns"):
        jit(program)(torch.ones(2))
    assert torch.empty(2).device.type == "cpu"
    assert not torch.is_inference_mode_enabled()
    assert not KEPT


def test_inference_mode_that_was_entered_outside_is_not_left_inside():
    inference_mode_entered(torch.ones(2))
    with pytest.raises(AcquisitionError, match="leaves"):
        jit(inference_mode_left)(torch.ones(2))
    assert torch.is_inference_mode_enabled()
    KEPT.pop().__exit__(None, None, None)


def test_inference_mode_ends_with_what_entered_it():
    def program(x):
        mode = torch.inference_mode()
        mode.__enter__()
        return x * 2

    compiled = jit(program)
    for run in (program, compiled, compiled):
        assert run(torch.ones(2)).is_inference()
        assert not torch.is_inference_mode_enabled()


def made_under(dtype):
    torch.set_default_dtype(dtype)
    return torch.ones(3), torch.arange(3) / 2, torch.rand(2), torch.tensor(1.5), torch.arange(3).sqrt()


def made_within(x, dtype):
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    y = x.long() * 0.5 + torch.zeros(3)
    torch.set_default_dtype(before)
    return y, x.long() * 0.5, (x * torch.ones(3)).sum()


def made_on(device):
    torch.set_default_device(device)
    return torch.ones(3), torch.arange(3) / 2


@pytest.mark.parametrize("entry", [torch.float32, torch.float64])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_operations_run_under_the_default_dtype_that_the_program_set(entry, dtype):
    found = []
    for under, within in ((made_under, made_within), (jit(made_under), jit(made_within, fallback="error"))):
        for _ in range(2):
            torch.set_default_dtype(entry)
            torch.manual_seed(0)
            x = torch.ones(3, dtype=torch.float32, requires_grad=True)
            results = [*under(dtype), torch.get_default_dtype()]
            torch.set_default_dtype(entry)
            y, *others = within(x, dtype)
            others[-1].backward()
            tensors = [*results[:-1], y, *others, x.grad]
            found.append([*[(t.dtype, t.tolist()) for t in tensors], results[-1], torch.get_default_dtype()])
    assert found[1:] == found[:1] * 3


def test_operations_run_on_the_default_device_that_the_program_set():
    compiled = jit(made_on, fallback="error")
    for device in ("meta", "cpu", "meta"):
        found = compiled(device)
        torch.set_default_device(None)
        assert [t.device.type for t in found] == [device, device]


FIRST_OF_A_PROCESS = """
import torch
from thunder_frontend import jit

def seeded(x):
    drawn = x * torch.randn(3)
    torch.manual_seed(7)
    return drawn

def drawn(function):
    torch.random.manual_seed(1)
    return [function(torch.ones(3)) for _ in range(3)] + [torch.randn(2)]

found = drawn(jit(seeded, fallback="error"))  # loads PyTorch's compilers, which wrap torch.manual_seed
assert all(map(torch.equal, found, drawn(seeded))), found
assert all(map(torch.equal, drawn(jit(lambda x: seeded(x), fallback="error")), found))
"""


def test_the_first_program_of_a_process_may_seed():
    subprocess.run([sys.executable, "-c", FIRST_OF_A_PROCESS], check=True, timeout=300)


def test_a_program_that_reads_what_it_set_itself_runs_in_python():
    def program(x):
        with torch.backends.mkldnn.flags(enabled=False):
            return x * 2, torch.backends.mkldnn.enabled

    compiled = jit(program, fallback="split")
    with pytest.warns(FallbackWarning, match=r"mkldnn.enabled is True, compiled for False"):
        assert compiled(torch.ones(2))[1] is False
    assert compiled(torch.ones(2))[1] is False
    with pytest.raises(AcquisitionError, match="does not accept the call that it was compiled for"):
        jit(program, fallback="error")(torch.ones(2))


def test_warnings_of_code_in_c_are_recorded_while_a_program_is_acquired():
    def program(x):
        with torch.backends.mkldnn.flags(enabled=False):
            return x * 2

    compiled = jit(program, fallback="error")
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        for _ in range(2):
            assert torch.equal(compiled(torch.ones(2)), torch.full((2,), 2.0))
    assert {str(w.message)[:4] for w in given} <= {"TF32"}
