"""What notebooks show of a trace: its code and the pass that made it, coloured where pygments is installed."""

import html
import re
from importlib import util

import pytest

from thunder_ir import Tensor, showing, trace_of
from thunder_ir.passes import dead_code_elimination


@pytest.fixture
def trace():
    return dead_code_elimination(trace_of(lambda x, y: (y, x), Tensor((2, 3)), Tensor((4,), "int64")))


class Printer:
    """What IPython hands to objects that print themselves."""

    def __init__(self):
        self.written = ""

    def text(self, text):
        self.written += text


def test_a_cell_shows_the_program_and_who_made_it(trace):
    printer = Printer()
    trace._repr_pretty_(printer, False)
    assert printer.written == f"# made by {trace.provenance.made_by}\n{trace}"
    assert html.unescape(re.sub("<[^>]*>", "", trace._repr_html_())).strip() == printer.written


def test_without_pygments_the_text_is_plain(trace, monkeypatch):
    monkeypatch.setattr(showing, "find_spec", lambda name: None if name == "pygments" else util.find_spec(name))
    expected = html.escape(f"# made by {trace.provenance.made_by}\n{trace}")
    assert trace._repr_html_() == f"<pre>{expected}</pre>"
