"""Errors inside of acquisitions where people work: the user's line is shown, and its variables can be looked at."""

import importlib
import importlib.util
import io
import re
import subprocess
import sys

import pytest
import torch

import thunder

COLOURS = re.compile(r"\x1b\[[0-9;]*m")
HAS_NOTEBOOKS = all(importlib.util.find_spec(name) for name in ("nbclient", "ipykernel"))

SETUP = """
import torch, thunder

class Scale(torch.nn.Module):
    def forward(self, x):
        factor = torch.ones(5)
        return x * factor

def halve(x):
    counted = len(x)
    return x / (counted - 3)["none"]

def wrapped(x):
    try:
        return halve(x)
    except TypeError as error:
        raise RuntimeError("while halving") from error
"""
CELLS = {
    "an operation": ("thunder.jit(torch.nn.Sequential(Scale()))(torch.ones(3))", ["return x * factor", "RuntimeError"]),
    "Python": ("thunder.jit(halve)(torch.ones(3))", ["return x / (counted - 3)", "TypeError"]),
    "a chain": ("thunder.jit(wrapped)(torch.ones(3))", ["return x / (counted - 3)", "while halving", "RuntimeError"]),
    "a refusal": (
        "thunder.jit(lambda x: x.numpy().tobytes(), fallback='error')(torch.ones(3))",
        ["x.numpy().tobytes()", "DataDependentError"],
    ),
}
LATER = "print('goes on')"
LOOKING = """
import io, pdb, sys
out = io.StringIO()
debugger = pdb.Pdb(stdin=io.StringIO("p counted\\nquit\\n"), stdout=out)
debugger.reset()
debugger.interaction(None, sys.last_traceback)
print(out.getvalue())
"""


@pytest.mark.skipif(not HAS_NOTEBOOKS, reason="needs nbclient and ipykernel")
def test_notebooks_show_the_users_line_of_an_error():
    nbformat, client = importlib.import_module("nbformat"), importlib.import_module("nbclient")
    sources = [SETUP, *[part for code, _ in CELLS.values() for part in (code, LATER)], CELLS["Python"][0], LOOKING]
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    client.NotebookClient(book, timeout=300, kernel_name="python3", allow_errors=True).execute()
    for place, (name, (_, expected)) in enumerate(CELLS.items()):
        cell, after = book.cells[1 + 2 * place : 3 + 2 * place]
        (error,) = [output for output in cell.outputs if output.output_type == "error"]
        shown = COLOURS.sub("", "\n".join(error.traceback))
        written = "".join(output.get("text", "") for output in cell.outputs)
        assert "Unexpected exception formatting" not in shown + written, name
        for text in expected:
            assert text in shown, (name, text, shown)
        assert "goes on" in "".join(output.get("text", "") for output in after.outputs), name
    assert "db> 3\n" in "".join(output.get("text", "") for output in book.cells[-1].outputs)


def failing(x):
    counted = len(x)
    return x / (counted - 3)["none"]


@pytest.mark.skipif(not HAS_NOTEBOOKS, reason="needs nbclient and ipykernel")
def test_ipython_shows_variables_where_it_is_asked_to():
    tracebacks = importlib.import_module("IPython.core.ultratb")
    with pytest.raises(TypeError) as caught:
        thunder.jit(failing)(torch.ones(3))
    shown = tracebacks.VerboseTB(include_vars=True).text(caught.type, caught.value, caught.tb)
    assert "counted = 3" in COLOURS.sub("", shown)


def test_rich_shows_the_users_line_and_variables():
    console, tracebacks = importlib.import_module("rich.console"), importlib.import_module("rich.traceback")
    with pytest.raises(TypeError) as caught:
        thunder.jit(failing)(torch.ones(3))
    shown = io.StringIO()
    error = tracebacks.Traceback.from_exception(caught.type, caught.value, caught.tb, show_locals=True)
    console.Console(file=shown, width=160).print(error)
    assert '(counted - 3)["none"]' in shown.getvalue() and "counted = 3" in shown.getvalue()


def test_pytest_shows_the_users_line_and_variables(tmp_path):
    lines = ["import thunder, torch", "def failing(x):", "    counted = len(x)", '    return x / (counted - 3)["none"]']
    lines += ["def test_it():", "    thunder.jit(failing)(torch.ones(3))"]
    (tmp_path / "test_it.py").write_text("\n".join(lines))
    command = [sys.executable, "-m", "pytest", "-l", "-p", "no:cacheprovider", str(tmp_path)]
    shown = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True).stdout
    assert '>       return x / (counted - 3)["none"]' in shown and "counted    = 3" in shown
