"""The measurements run, and measure what they say."""

import sys

from thunder_benchmarks import passes


def test_the_measured_program_has_the_size_asked_for_and_no_dead_part():
    assert len(passes.record(120).bound_symbols) == 120
    assert len(passes.dead_code_elimination(passes.record(120)).bound_symbols) == 120


def test_the_table_of_the_passes(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["passes", "--sizes", "10", "20", "--repetitions", "1"])
    passes.main()
    assert "claim and schedule" in capsys.readouterr().out
