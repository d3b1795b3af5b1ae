"""A sample of CPython's own regression tests, and the tool that runs them."""

import sys

import pytest

from thunder_interpreter import conformance

SAMPLE = ["test_scope", "test_class", "test_generators", "test_with", "test_raise", "test_super", "test_keywordonlyarg"]


@pytest.mark.parametrize("module", SAMPLE)
def test_methods_that_pass_plainly_pass_interpreted(module):
    pytest.importorskip(f"test.{module}", reason="this Python was packaged without CPython's own tests")
    passing, failing, _ = conformance.compare(module, 30.0, "")
    assert passing > 0
    assert failing == {}


def test_frames_that_the_garbage_collector_or_c_code_asks_for_are_all_that_frames_of_users_differ_in():
    module = "test_frame"
    pytest.importorskip(f"test.{module}", reason="this Python was packaged without CPython's own tests")
    passing, failing, _ = conformance.compare(module, 30.0, "")
    assert passing > len(failing)
    known = [part for part, _ in conformance.REASONS]
    assert [name for name in failing if not any([part in name for part in known])] == []


def test_the_report_is_a_page_with_every_failure():
    report = {"3.11.7": {"test_x": {"passing": 3, "failing": {"test.test_x.T.m": "Error: words"}}}}
    text = conformance.page(report)
    assert "2 of 3 (66.67 %)" in text and "`test.test_x.T.m`: `Error: words`" in text


def test_another_python_is_named_from_where_the_tool_is_called(tmp_path, monkeypatch, capsys):
    module = SAMPLE[-1]
    pytest.importorskip(f"test.{module}", reason="this Python was packaged without CPython's own tests")
    (tmp_path / "python.sh").write_text(f'exec "{sys.executable}" "$@"\n')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["conformance", "--python", "sh python.sh", module])
    assert conformance.main() == 0
    assert "11 of 11 methods that pass plainly pass" in capsys.readouterr().out
