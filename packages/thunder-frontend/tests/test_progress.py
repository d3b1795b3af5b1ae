"""What a terminal shows while compiling takes long."""

import io
import threading

import pytest
import torch

from thunder_frontend import _progress, jit


class Terminal(io.StringIO):
    """A stream that says it is a terminal, and tells when something was written."""

    def __init__(self):
        super().__init__()
        self.written = threading.Event()

    def isatty(self):
        return True

    def write(self, text):
        count = super().write(text)
        if "s" in text:
            self.written.set()
        return count


def test_the_line_tells_the_stage_and_is_taken_away():
    terminal = Terminal()
    with _progress.progress("GPT", terminal, after=0.0) as stage:
        stage("executors")
        assert terminal.written.wait(60)
        before = threading.active_count()
    assert "thunder compiles GPT: " in terminal.getvalue()
    assert terminal.getvalue().endswith("\r\x1b[K")
    assert threading.active_count() == before


def test_short_compiling_and_streams_that_are_no_terminal_show_nothing(monkeypatch):
    terminal, file = Terminal(), io.StringIO()
    with _progress.progress("GPT", terminal, after=600.0), _progress.progress("GPT", file, after=0.0):
        pass
    assert terminal.getvalue() == file.getvalue() == ""
    monkeypatch.setenv("THUNDER_PROGRESS", "0")
    with _progress.progress("GPT", terminal, after=0.0) as stage:
        stage("executors")
    assert terminal.getvalue() == ""


def test_of_two_at_once_one_is_shown_and_a_closed_terminal_is_no_error():
    first, second = Terminal(), Terminal()
    with _progress.progress("A", first, after=0.0), _progress.progress("B", second, after=0.0):
        assert first.written.wait(60)
        first.close()
    assert second.getvalue() == ""
    with _progress.progress("B", second, after=0.0):
        assert second.written.wait(60)


def test_compiling_tells_its_stages(monkeypatch):
    terminal = Terminal()
    seen = []
    monkeypatch.setattr(_progress.Line, "stage", lambda self, name: seen.append(name))
    monkeypatch.setattr("sys.stderr", terminal)
    model = jit(torch.nn.Linear(2, 2))
    model(torch.ones(1, 2)).sum().backward()
    assert seen[0] == "acquisition" and {"autograd", "executors", "code generation"} <= set(seen)


def test_errors_take_the_line_away(monkeypatch):
    terminal = Terminal()
    with pytest.raises(ZeroDivisionError), _progress.progress("f", terminal, after=0.0):
        assert terminal.written.wait(60)
        raise ZeroDivisionError
    assert terminal.getvalue().endswith("\r\x1b[K")
