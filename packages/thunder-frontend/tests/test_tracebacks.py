"""What a user sees of an error: the own code's frames, and the line that an operation came from."""

import traceback

import pytest
import torch

import thunder_prims as prims
from thunder_executors import OperatorExecutor
from thunder_executors_torch import executor as torch_executor
from thunder_frontend import jit


def raised(function, *args, compiled=None):
    """Return the error of a call, and the names of the functions in its traceback, from the call on."""
    try:
        (compiled or jit(function))(*args)
    except Exception as error:
        return error, [frame.name for frame in traceback.extract_tb(error.__traceback__)][1:]
    raise AssertionError("nothing was raised")


def helper(x):
    return x @ torch.ones(7, 2)


def test_wrong_shapes_are_reported_at_the_users_line():
    def program(x):
        return helper(x)

    error, frames = raised(program, torch.ones(2, 3))
    assert frames == ["program", "helper"]
    assert isinstance(error, RuntimeError) and "cannot be multiplied" in str(error)
    assert error.__context__ is None


def test_what_the_users_code_raises_keeps_what_led_to_it():
    def program(x):
        try:
            return {}["key"]
        except KeyError:
            raise ValueError("no such thing") from None

    error, frames = raised(program, torch.ones(2))
    assert frames == ["program"] and isinstance(error, ValueError)
    assert isinstance(error.__context__, KeyError) and error.__suppress_context__

    def chained(x):
        try:
            return {}["key"]
        except KeyError as cause:
            raise ValueError("no such thing") from cause

    error, _ = raised(chained, torch.ones(2))
    assert isinstance(error.__cause__, KeyError)
    assert [f.name for f in traceback.extract_tb(error.__cause__.__traceback__)] == ["chained"]

    def never_raised(x):
        raise ValueError("no such thing") from KeyError("key")

    error, _ = raised(never_raised, torch.ones(2))
    assert isinstance(error.__cause__, KeyError)


def test_an_error_of_a_module_is_reported_in_its_forward():
    class Model(torch.nn.Module):
        def forward(self, x):
            if x.sum() > 0:
                return x
            return -x

    error, frames = raised(None, torch.ones(2), compiled=jit(Model(), outcomes=0))
    assert frames == ["forward"]
    assert "if x.sum() > 0:" in str(error)


@pytest.mark.parametrize("requires_grad", [False, True])
def test_an_error_of_a_running_program_names_the_users_line(requires_grad):
    def look(table, index):
        doubled = table * 2
        return torch.nn.functional.embedding(index, doubled)

    compiled = jit(look)
    table = torch.randn(4, 3, requires_grad=requires_grad)
    compiled(table, torch.tensor([1, 2]))
    error, frames = raised(look, table, torch.tensor([1, 9]), compiled=compiled)
    assert isinstance(error, IndexError)
    assert "return torch.nn.functional.embedding(index, doubled)" in error.__notes__[0]
    assert __file__ in error.__notes__[0]
    compiled(table, torch.tensor([1, 2]))


def test_an_error_in_a_fused_region_names_the_users_line_of_the_call_that_failed():
    def look(table, one, other):
        first = torch.nn.functional.embedding(one, table * 2)
        return first + torch.nn.functional.embedding(other, table + 1)

    compiled = jit(lambda table, *indices: look(look(table, *indices[:2]), *indices[2:]), executors=["+llvm"])
    good, bad, table = torch.arange(4), torch.tensor([0, 1, 2, 7]), torch.ones(4, 3)
    compiled(table, *[good] * 4)
    for at, line in enumerate(["first = torch.nn", "return first + ", "first = torch.nn", "return first + "]):
        indices = [bad if i == at else good for i in range(4)]
        error, _ = raised(None, table, *indices, compiled=compiled)
        (note,) = error.__notes__
        assert isinstance(error, IndexError) and line in note and __file__ in note


def test_all_frames_are_kept_on_request(monkeypatch):
    monkeypatch.setenv("THUNDER_FULL_TRACEBACKS", "1")
    _, frames = raised(helper, torch.ones(2, 3))
    assert "acquire" in frames


class Looked(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = torch.nn.Linear(3, 3)
        self.other = torch.nn.Linear(3, 3)

    def forward(self, x, index):
        x = torch.nn.functional.relu(self.lin(x)) + torch.tanh(self.other(x)) * x.sigmoid()
        return torch.nn.functional.embedding(index, x * 2) + x


def test_an_error_in_one_of_many_blocks_is_reported_once_with_the_users_line():
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = torch.nn.ModuleList([Looked() for _ in range(8)])

        def forward(self, x, *indices):
            for block, index in zip(self.blocks, indices, strict=True):
                x = block(x, index)
            return x

    model, good, bad = Model(), torch.arange(4), torch.tensor([0, 1, 2, 7])
    compiled = jit(model)
    with torch.no_grad():
        torch.testing.assert_close(compiled(torch.ones(4, 3), *[good] * 8), model(torch.ones(4, 3), *[good] * 8))
        error, _ = raised(None, torch.ones(4, 3), *[good] * 5, bad, good, good, compiled=compiled)
    assert isinstance(error, IndexError)
    (note,) = error.__notes__
    assert "return torch.nn.functional.embedding(index, x * 2) + x" in note and __file__ in note


def test_frames_of_an_acquisition_that_failed_have_lines_and_variables():
    def program(x):
        width = x.shape[1]
        return helper(x * width)

    error, _ = raised(program, torch.ones(2, 3))
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)][1:]
    assert [frame.f_lineno for frame in frames] == [e.lineno for e in traceback.extract_tb(error.__traceback__)][1:]
    assert frames[0].f_locals["width"] == 3
    assert repr(frames[1].f_locals["x"]) == "<float32[2, 3] of a program that was being acquired>"
    assert "width = 3" in "".join(traceback.TracebackException.from_exception(error, capture_locals=True).format())
    assert "width      = 3" in str(pytest.ExceptionInfo.from_exception(error).getrepr(showlocals=True))


def test_an_error_of_the_backward_program_is_reported_with_the_users_line():
    refusing = OperatorExecutor("refusing")

    @refusing.implements(prims.cos)
    def cosine(a):
        raise RuntimeError("no cosine here")

    def program(x):
        return torch.sin(x).sum()

    result = jit(program, executors=[refusing, torch_executor])(torch.ones(3, requires_grad=True))
    with pytest.raises(RuntimeError, match="no cosine here") as caught:
        result.backward()
    (note,) = caught.value.__notes__
    assert note.startswith("raised by ") and f"from {__file__}" in note and "return torch.sin(x).sum()" in note


def test_the_users_line_is_that_of_their_own_code_where_a_module_of_pytorch_fails():
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.table = torch.nn.Embedding(4, 3)

        def forward(self, index):
            return self.table(index) * 2

    compiled = jit(Model())
    compiled(torch.tensor([1, 2]))
    error, _ = raised(None, torch.tensor([1, 9]), compiled=compiled)
    (note,) = error.__notes__
    assert f"from {__file__}" in note and "return self.table(index) * 2" in note
