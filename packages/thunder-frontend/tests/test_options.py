"""The options of jit: caches, transforms, checks."""

import inspect
import warnings

import pytest
import torch
from torch.testing import assert_close

from thunder_executors import OperatorExecutor
from thunder_frontend import (
    CACHE_OPTIONS,
    SHARP_EDGES_OPTIONS,
    DebugOptions,
    DifferenceError,
    ThunderModule,
    Transform,
    cache_misses,
    cache_option,
    compile_data,
    compile_stats,
    get_auto_registered_torch_op_names,
    jit,
    last_interpreted_instructions,
    last_interpreter_log,
    last_traces,
    print_last_interpreter_log,
)
from thunder_frontend.options import NAMED
from thunder_ir import Trace
from thunder_torch import symbol_of


def test_no_caching_compiles_each_call():
    compiled = jit(lambda x: x + 1, cache="no caching")
    compiled(torch.ones(2)), compiled(torch.ones(2))
    assert cache_misses(compiled) == 2


def test_same_input_compiles_once_and_checks_nothing():
    compiled = jit(lambda x: x * x.shape[0], cache="same input")
    assert compiled(torch.ones(2)).tolist() == [2, 2]
    assert compiled(torch.ones(3)).tolist() == [2, 2, 2]
    assert cache_misses(compiled) == 1


@pytest.mark.parametrize("options", [{"cache": "sometimes"}, {"sharp_edges": "maybe"}, {"check": "always"}])
def test_an_unknown_choice_is_refused_with_the_choices(options):
    with pytest.raises(ValueError, match="is not one of"):
        jit(lambda x: x, **options)


class Tuned(OperatorExecutor):
    options = ("tuning",)
    tuning = 0

    def configured(self, **options):
        made = Tuned(self.name)
        made.implements(symbol_of(torch.exp))(lambda x: x.exp() + options["tuning"])
        return made


def test_an_option_of_an_executor_that_is_named_goes_to_it():
    compiled = jit(lambda x: torch.exp(x), executors=[Tuned("tuned")], tuning=2)
    assert_close(compiled(torch.zeros(2)), torch.full((2,), 3.0))
    with pytest.raises(TypeError, match="knows no option 'tuning'"):
        jit(lambda x: torch.exp(x), executors=["torch"], tuning=2)


def test_an_unknown_option_is_refused_by_name():
    with pytest.raises(TypeError, match="no option 'speed'"):
        jit(lambda x: x, speed="high")


@pytest.mark.parametrize(
    ("name", "way_out"),
    [
        ("executers", "did you mean 'executors'"),
        ("memory_buget", "did you mean 'memory_budget'"),
        ("mode", "thunder.compile takes it"),
        ("zzz", "it knows langctx, executors, .*outcomes"),
    ],
)
def test_the_refusal_of_an_option_says_what_to_write(name, way_out):
    with pytest.raises(TypeError, match=way_out):
        jit(lambda x: x, **{name: "high"})


def test_the_options_that_a_refusal_names_are_those_of_jit():
    parameters = inspect.signature(jit).parameters.values()
    assert tuple(p.name for p in parameters if p.kind is p.KEYWORD_ONLY) == NAMED


def test_transforms_see_the_program_before_and_after_executors():
    seen = []

    class Looks(Transform):
        def transform_module(self, model):
            seen.append(isinstance(model, ThunderModule))

        def transform_traces_pre_prologue(self, prologue_trace, computation_trace, epilogue_trace, **kwargs):
            seen.append(computation_trace.name)
            return prologue_trace, computation_trace, epilogue_trace

        def transform_trace_post_optimization(self, computation_trace: Trace, **kwargs):
            seen.append(computation_trace.name)
            return computation_trace

    module = torch.nn.Linear(2, 2)
    jit(module, transforms=[Looks()])(torch.ones(1, 2)).sum().backward()
    assert seen == [True, "computation", "computation_forward", "computation_backward"]


def test_a_transform_that_drops_an_input_is_refused():
    class Drops(Transform):
        def transform_traces_pre_prologue(self, prologue_trace, computation_trace, epilogue_trace, **kwargs):
            return prologue_trace, computation_trace.replace(inputs=computation_trace.inputs[1:]), epilogue_trace

    with pytest.raises(ValueError, match="Drops changed the inputs"):
        jit(lambda x, y: x + y, transforms=[Drops()])(torch.ones(2), torch.ones(2))


def test_the_first_call_can_be_checked_against_eager():
    def program(x):
        x.add_(1)
        return x * 2

    compiled = jit(program, check="first-call")
    x = torch.zeros(2)
    assert compiled(x).tolist() == [2, 2]
    assert x.tolist() == [1, 1]


def test_a_difference_from_eager_is_reported():
    class Breaks(Transform):
        def transform_traces_pre_prologue(self, prologue_trace, computation_trace, epilogue_trace, **kwargs):
            first, second = computation_trace.bound_symbols
            swapped = second.replace(args=(first.output, 3))
            return prologue_trace, computation_trace.replace(bound_symbols=(first, swapped)), epilogue_trace

    compiled = jit(lambda x: (x + 1) * 2, check="first-call", transforms=[Breaks()])
    with pytest.raises(DifferenceError, match="the result"):
        compiled(torch.ones(2))
    assert len(last_traces(compiled)) > 1


def test_modules_are_checked_with_their_state():
    compiled = jit(torch.nn.Sequential(torch.nn.BatchNorm1d(3), torch.nn.Dropout(0.5)), check="first-call")
    compiled(torch.randn(4, 3)).sum().backward()


def scaled(x, by):
    return torch.special.bessel_j0(helper(x)) * by


def helper(x):
    return x.abs()


def test_the_log_tells_what_was_interpreted_and_what_was_called():
    compiled = jit(scaled, log=True)
    compiled(torch.ones(2), 2.0)
    printed = []
    print_last_interpreter_log(compiled, printed.append)
    lines = "".join(printed).splitlines()
    assert lines[0].startswith(f"interpreted {__name__}.scaled")
    inner = next(line for line in lines if f"interpreted {__name__}.helper" in line)
    assert inner.startswith("  interpreted") and "torch.special.bessel_j0(helper(x)) * by" in inner
    assert any("opaque" in line and "bessel_j0" in line for line in lines)


def test_without_a_log_the_error_says_how_to_get_one():
    compiled = jit(scaled)
    compiled(torch.ones(2), 2.0)
    for read in (last_interpreter_log, last_interpreted_instructions):
        with pytest.raises(RuntimeError, match="log=True"):
            read(compiled)


@pytest.mark.parametrize(
    "options", [{"log": True}, {"debug_options": DebugOptions(record_interpreter_history=True)}], ids=["log", "debug"]
)
def test_the_instructions_are_those_that_were_run(options):
    compiled = jit(scaled, **options)
    compiled(torch.ones(2), 2.0)
    names = [i.opname for i in last_interpreted_instructions(compiled)]
    assert names.count("BINARY_OP") == 1 and names[-1] == "RETURN_VALUE" and names.count("RETURN_VALUE") == 2
    assert {i.argval for i in last_interpreted_instructions(compiled)} >= {"helper", "abs", "bessel_j0"}


def test_a_compiled_function_tells_its_cache_and_its_opaque_operations():
    compiled = jit(scaled, cache="symbolic values")
    compiled(torch.ones(2), 2.0)
    assert cache_option(compiled) == "symbolic values"
    assert get_auto_registered_torch_op_names(compiled) == {"torch.special.bessel_j0"}


def test_options_may_be_given_as_objects():
    compiled = jit(scaled, cache=CACHE_OPTIONS.SYMBOLIC_VALUES, sharp_edges=SHARP_EDGES_OPTIONS.ERROR)
    assert cache_option(compiled) == CACHE_OPTIONS.SYMBOLIC_VALUES == "symbolic values"
    data = compile_data(compiled)
    assert data.fn is scaled and not data.is_module and data.sharp_edges == "error"
    assert "torch" in [e.name for e in data.executors_list]


def test_debug_options_keep_the_log_verify_and_show(capsys):
    options = DebugOptions(check_traces=True, record_interpreter_history=True, show_interpreter_progress=True)
    compiled = jit(scaled, debug_options=options)
    assert compile_stats(compiled).last_traces == [] and compile_data(compiled).debug_options is options
    compiled(torch.ones(2), 2.0)
    assert "scaled" in str(last_interpreter_log(compiled)) and "scaled: " in capsys.readouterr().err
    assert compile_stats(compiled).last_traces is last_traces(compiled)
    assert "check_traces = False" in DebugOptions.list_options()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"langctx": "numpy"}, "speak the torch language"),
        ({"debug_options": 3}, "takes a thunder.DebugOptions"),
        ({"transforms": [3]}, "takes instances of thunder.Transform"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else None,
)
def test_what_is_no_option_is_refused(options, words):
    with pytest.raises((TypeError, ValueError), match=words):
        jit(scaled, **options)


@pytest.mark.parametrize("cache", ["auto", "constant values"])
def test_a_function_that_is_compiled_on_most_calls_says_so_once(cache):
    class Counts(torch.nn.Module):
        calls = 0

        def forward(self, x):
            self.calls += 1
            return x + len(range(self.calls))

    compiled = jit(Counts(), cache=cache)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for call in range(40):
            assert torch.equal(compiled(torch.zeros(2)), torch.full((2,), call + 1.0))
    (warning,) = [w for w in caught if "compiled 32 times" in str(w.message)]
    assert ".calls = 31" in str(warning.message) and ("cache='auto'" in str(warning.message)) == (cache != "auto")
    assert warning.filename == __file__


@pytest.mark.parametrize("outcomes", [-1, None, 2.5, "8"])
def test_outcomes_are_counted(outcomes):
    with pytest.raises(ValueError, match="is no number of programs"):
        jit(torch.sin, outcomes=outcomes)
