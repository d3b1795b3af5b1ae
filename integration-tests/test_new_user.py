"""What somebody does who knows the home page alone: each step is behind a link of it, and does what the page says."""

import importlib.util
import json
import re
import sys
import types
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
sys.path.insert(0, str(ROOT / "tools"))

import notebook  # noqa: E402

LINK = re.compile(r"\[([^\]]+)\]\((?!https?:)([^)#\s]+)[^)]*\)")
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.M | re.S)


def followed(words):
    """Return the page that a link of the home page with these words leads to."""
    links = LINK.findall((DOCS / "index.md").read_text(encoding="utf-8"))
    return DOCS / {re.sub(r"\s+", " ", text).lower(): target for text, target in links}[words]


def done(page):
    """Run the blocks of a page in order, as its reader would; return the names that there are then."""
    module = types.ModuleType(f"steps_of_{page.stem.replace('-', '_')}")
    sys.modules[module.__name__] = module
    try:
        for number, block in enumerate(BLOCK.findall(page.read_text(encoding="utf-8"))):
            exec(compile(block, f"{page.name}, block {number}", "exec"), module.__dict__)
    finally:
        del sys.modules[module.__name__]
    return module.__dict__


def test_the_home_page_itself_compiles_a_function_and_prints_its_program(capsys):
    names = done(DOCS / "index.md")
    printed = capsys.readouterr().out
    shown = re.search(r"```python notest\n(.*?)```", (DOCS / "index.md").read_text(), re.S)[1]
    lines = [line.strip() for line in printed.splitlines() if " = ltorch." in line or line.startswith("def ")]
    assert lines == [line.strip() for line in shown.splitlines() if "return" not in line]
    assert names["w"].grad is not None


def test_getting_started_trains_says_why_it_compiled_anew_and_writes_a_report(capsys):
    names = done(followed("getting started"))
    assert names["losses"][-1] < names["losses"][0]
    assert "args[1] is 3.0, compiled for 2.0" in capsys.readouterr().out
    assert names["page"].read_text(encoding="utf-8").startswith("<!doctype html>")


def test_less_memory_halves_what_is_kept():
    kept = done(followed("less memory"))["kept"]
    assert 0 < kept["half"] <= kept["everything"] / 2


def test_extending_makes_an_executor_that_runs():
    names = done(followed("executors and operators"))
    names["thunder"].extend.deregister_executor(names["numpy_executor"])
    assert names["compiled"] is not None


@pytest.mark.parametrize("words", ["options", "sizes that change", "when something does not compile"])
def test_pages_that_help_run(words):
    assert "thunder" in done(followed(words))


def test_the_notebook_is_that_of_the_page():
    page = notebook.PAGE.read_text(encoding="utf-8")
    assert notebook.NOTEBOOK.read_text(encoding="utf-8") == notebook.notebook(page)
    cells = json.loads(notebook.notebook(page))["cells"]
    assert [c["cell_type"] for c in cells].count("code") == len(BLOCK.findall(page))


@pytest.mark.skipif(
    not all(importlib.util.find_spec(n) for n in ("nbclient", "ipykernel")), reason="needs nbclient and ipykernel"
)
def test_the_notebook_runs():
    nbformat = importlib.import_module("nbformat")
    client = importlib.import_module("nbclient")
    book = nbformat.read(notebook.NOTEBOOK, as_version=4)
    nbformat.validate(book)
    client.NotebookClient(book, timeout=300, kernel_name="python3").execute()
    printed = "".join(o.get("text", "") for c in book.cells for o in c.get("outputs", ()))
    assert "compiled for 2.0" in printed
