"""Sweeps go on where they were cut off, and their tables hold whatever an error says."""

from dataclasses import dataclass

from thunder_testing.sweeps import Rows, cell, command, table


@dataclass
class Row:
    name: str
    outcome: str = ""


def test_a_sweep_goes_on_where_it_was_cut_off(tmp_path):
    path = tmp_path / "rows.jsonl"
    first = Rows(Row, lambda row: row.name, path)
    assert first.found == {}
    first.add(Row("tanh", "wrong"))
    first.add(Row("exp", "right"))
    first.add(Row("tanh", "right"))
    assert Rows(Row, lambda row: row.name, path).found == {"tanh": Row("tanh", "right"), "exp": Row("exp", "right")}
    assert len(path.read_text().splitlines()) == 3


def test_a_table_holds_whatever_an_error_says():
    told = cell("TypeError: int | None\n  <module> " + "x" * 200)
    lines = table(["case", "outcome"], [("tanh", told)])
    assert told.startswith("TypeError: int \\| None &lt;module> x") and len(told) < 130
    assert [line.replace("\\|", "").count("|") for line in lines] == [3, 3, 3]


def test_a_page_names_its_command_without_the_files_that_it_writes():
    words = ["tanh", "--samples", "2", "--table", "docs/page.md"]
    assert command("tools/sweep.py", words, ("--table", "docs/page.md")) == "python tools/sweep.py tanh --samples 2"
