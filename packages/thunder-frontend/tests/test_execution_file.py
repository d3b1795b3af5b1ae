"""Programs that their user edits in a file before they run."""

import re
import sys

import pytest
import torch

from thunder_frontend import jit, last_traces
from thunder_ir import set_execution_callback_file


def gated(x, w):
    return torch.tanh(x @ w)


class Terminal:
    """A terminal at which somebody edits the file, then presses Enter."""

    def __init__(self, edit):
        self.edit, self.asked = edit, []

    def isatty(self):
        return True

    def readline(self):
        self.asked.append(self.edit())
        return "\n"


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "program.py"
    set_execution_callback_file(path)
    yield path
    set_execution_callback_file(None)


def at_terminal(monkeypatch, path, change):
    """Let somebody change what the file holds; return the texts that they were shown."""

    def edit():
        text = path.read_text()
        path.write_text(change(text))
        return text

    terminal = Terminal(edit)
    monkeypatch.setattr(sys, "stdin", terminal)
    return terminal.asked


def test_the_program_that_runs_is_the_one_in_the_file(path, monkeypatch):
    shown = at_terminal(monkeypatch, path, lambda text: text.replace("torch.tanh(", "torch.sin("))
    x, w = torch.randn(3, 3), torch.randn(3, 3)
    compiled = jit(gated, executors=["torch"])
    torch.testing.assert_close(compiled(x, w), torch.sin(x @ w))
    assert len(shown) == 1 and "torch.tanh(" in shown[0]
    assert "torch.tanh(" in last_traces(compiled)[-1].python()
    compiled(x, w)
    assert len(shown) == 1


def test_a_line_that_prints_can_be_added_to_the_backward_program(path, monkeypatch, capsys):
    def printing(text):
        head = next(line for line in text.splitlines() if line.startswith("def "))
        return text.replace(head, f"{head}\n    print('runs', {head.split('(')[0][4:]!r})")

    shown = at_terminal(monkeypatch, path, printing)
    x, w = torch.randn(3, 3), torch.randn(3, 3, requires_grad=True)
    compiled = jit(gated, executors=["torch"])
    compiled(x, w).sum().backward()
    expected = w.detach().clone().requires_grad_()
    gated(x, expected).sum().backward()
    torch.testing.assert_close(w.grad, expected.grad)
    assert len(shown) == 2
    assert re.findall(r"runs \w+", capsys.readouterr().out) == ["runs computation_forward", "runs computation_backward"]


def test_without_a_terminal_nobody_is_waited_for(path, monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    x, w = torch.randn(3, 3), torch.randn(3, 3)
    torch.testing.assert_close(jit(gated)(x, w), gated(x, w))
    assert "def computation(" in path.read_text()


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("def computation(", SyntaxError, "never closed"),
        ("x = 1\n", NameError, "must define the function 'computation'"),
    ],
    ids=["no Python", "no function"],
)
def test_what_cannot_be_compiled_is_an_error_that_names_the_file(path, monkeypatch, text, error, message):
    at_terminal(monkeypatch, path, lambda _: text)
    compiled = jit(gated)
    with pytest.raises(error, match=message) as caught:
        compiled(torch.ones(2, 2), torch.ones(2, 2))
    assert str(path) in f"{caught.value} {getattr(caught.value, 'filename', '')}"
    set_execution_callback_file(None)
    torch.testing.assert_close(compiled(torch.ones(2, 2), torch.ones(2, 2)), gated(torch.ones(2, 2), torch.ones(2, 2)))


def test_once_it_is_ended_programs_are_compiled_as_they_are(path, monkeypatch):
    shown = at_terminal(monkeypatch, path, lambda text: text)
    set_execution_callback_file(None)
    jit(gated)(torch.ones(2, 2), torch.ones(2, 2))
    assert not shown and not path.exists()
