"""What a terminal shows while compiling takes long."""

import io
import re
import sys
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


@pytest.fixture(autouse=True)
def terminal_that_moves_its_cursor(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")


def shown(text):
    """Return what is left on a terminal after it was written to: its lines, without colours."""
    lines, row = [""], 0
    for part in re.findall(r"\x1b\[[0-9;?]*[A-Za-z]|[^\x1b]", text):
        if part == "\n":
            row += 1
            lines += [""] * (row == len(lines))
        elif re.fullmatch(r"\x1b\[[0-9]*A", part):
            row -= int(part[2:-1] or 1)
        elif part == "\x1b[2K":
            lines[row] = ""
        elif part[0] != "\x1b" and part != "\r":
            lines[row] += part
    return [line.strip() for line in lines if line.strip()]


def test_it_shows_the_stages_and_is_taken_away():
    terminal, streams = Terminal(), (sys.stdout, sys.stderr)
    with _progress.progress("GPT[2]", terminal, after=0.0) as stage:
        stage("acquisition")
        stage("executors")
        terminal.written.clear()
        assert terminal.written.wait(60)
        before, seen = threading.active_count(), shown(terminal.getvalue())
        assert streams == (sys.stdout, sys.stderr)
    assert [re.sub(r"[\d.]+ s$|^\W+", "", line).strip() for line in seen] == [
        "thunder compiles GPT[2]", "acquisition", "executors"
    ]  # fmt: skip
    assert shown(terminal.getvalue()) == []
    assert threading.active_count() == before


def test_a_stage_that_comes_again_goes_on():
    stages = _progress.Stages()
    for name in ("executors", "code generation", "executors"):
        stages.begin(name)
    ((over, _),) = stages.over()
    assert (over, stages.now()[0]) == ("code generation", "executors") and stages.now()[1] > 0


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
    assert shown(terminal.getvalue()) == []
