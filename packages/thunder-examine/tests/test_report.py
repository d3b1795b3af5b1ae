"""Reports: the facts, the page, and what a browser makes of it."""

import json
import re
import shutil
import subprocess
import time

import pytest
import torch

from thunder_examine import (
    Cost,
    Facts,
    Memory,
    Report,
    Roof,
    costs,
    get_alloc_memory,
    memory,
    report,
    roof_of,
    saved_for_backward,
)
from thunder_examine.facts import Line, Part, Stage
from thunder_frontend import jit, last_traces


def model():
    return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.GELU(), torch.nn.Linear(8, 2))


def test_it_tells_of_forward_and_backward_with_users_lines_executors_and_costs():
    found = report(model(), torch.randn(3, 4))
    forward, backward = found.facts.parts
    assert (forward.name, backward.name) == ("forward", "backward")
    last = forward.stages[-1].lines
    assert last[0].text.startswith("t0 = torch.nn.functional.linear")
    assert last[0].executor == "torch" and "linear.py:" in last[0].place and "F.linear" in last[0].source
    assert forward.not_measured is None and all(c.seconds is not None for c in forward.costs)
    assert forward.costs[0].operations == 2 * 3 * 8 * 4
    assert found.result.shape == (3, 2)
    assert found.facts.misses == 1 and found.facts.saved


def test_what_stages_have_in_common_is_printed_once_and_as_each_trace_prints_it():
    compiled = jit(lambda x: (x * 2).sin().cos() + 1, executors=["torch"])
    compiled(torch.ones(3))
    stages = report(compiled, measure=False).facts.parts[0].stages
    assert stages[0].lines[0] is stages[1].lines[0]
    for trace, stage in zip(last_traces(compiled), stages, strict=True):
        assert [line.text for line in stage.lines] == [line.strip() for line in str(trace).splitlines()[1:-1]]


def test_json_holds_the_same_facts():
    found = report(model(), torch.randn(3, 4), measure=False)
    read = json.loads(found.json())
    assert read["name"] == "Sequential"
    assert read["parts"][0]["stages"][0]["lines"][0]["symbol"] == "ltorch.linear"
    assert read["parts"][0]["not_measured"] == "not asked for"


def test_it_says_why_a_call_compiled_anew():
    compiled = jit(lambda x, n: x * n)
    compiled(torch.ones(2), 2), compiled(torch.ones(2), 3)
    assert report(compiled, measure=False).facts.reasons == (("args[1] is 3, compiled for 2",),)


def test_a_chrome_trace_has_a_span_for_each_line():
    events = json.loads(report(model(), torch.randn(3, 4)).chrome_trace())["traceEvents"]
    assert any("F.linear" in event["name"] for event in events)
    assert all(event["ph"] == "X" and event["dur"] >= 0 for event in events)
    with pytest.raises(RuntimeError, match="the forward program was not measured: not asked for"):
        report(model(), torch.randn(3, 4), measure=False).chrome_trace()


def test_the_roof_is_what_a_product_and_a_copy_reach():
    roof = Roof(operations=200.0, bytes=50.0)
    assert roof.share(Cost(2.0, 25, 300)) == 0.75 and not roof.bound_by_memory(Cost(2.0, 25, 300))
    assert roof.share(Cost(4.0, 100, 300)) == 0.5 and roof.bound_by_memory(Cost(4.0, 100, 300))
    assert roof.share(Cost(None, 25, 300)) is None and roof.share(Cost(0.0, 0, 0)) is None
    here = roof_of(torch.device("cpu"), size=256, elements=1 << 20)
    assert 1e8 < here.operations < 1e14 and 1e8 < here.bytes < 1e13


def test_measured_programs_have_a_roof_and_it_is_shown_everywhere(capsys):
    found = report(model(), torch.randn(3, 4))
    forward, backward = found.facts.parts
    assert forward.roof is backward.roof and forward.roof.operations > 0
    assert json.loads(found.json())["parts"][0]["roof"]["bytes"] == forward.roof.bytes
    found.print()
    shown = capsys.readouterr().out
    for words in (
        "of roof",
        "saved for the backward program",
        "specialisation 0 took: acquisition ",
        "1 calls, 1 compiled",
    ):
        assert words in shown
    assert report(model(), torch.randn(3, 4), measure=False).facts.parts[0].roof is None


def test_brackets_are_shown_in_the_terminal(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    compiled = jit(lambda x, idx: x.tanh()[idx] * 2)
    for rows in (3, 4):
        compiled(torch.randn(rows, 5, requires_grad=True), torch.tensor([1])).sum().backward()
    report(compiled, measure=False).print()
    shown = capsys.readouterr().out
    assert "x.tanh()[idx] * 2" in shown
    assert str(saved_for_backward(compiled)).count("float32[i0, 5]") == shown.count("│ float32[i0, 5]") > 0


def test_memory_counts_what_is_alive():
    compiled = jit(lambda x: (x * 2).sin().sum())
    compiled(torch.ones(1000))
    trace = last_traces(compiled)[-1]
    assert memory(trace).peak == 8000  # one tensor and the next, not three


def test_views_take_no_memory_and_keep_what_they_view():
    def fn(a, b):
        c = a.unsqueeze(0).expand(3, 4) + b.reshape(4)
        return c.t() * 2, torch.split(c, 2)[0]

    compiled = jit(fn, executors=["torch"])
    result = compiled(torch.ones(4), torch.ones(2, 2))
    trace = last_traces(compiled)[-1]
    peak, changes = get_alloc_memory(trace)
    assert peak == memory(trace).peak == 96  # the sum, which a result views, and its double
    assert sum(changes.values()) == sum(r.untyped_storage().nbytes() for r in result)
    assert [size for name, size in changes.items() if name.startswith("argument")] == [16, 16]


def test_a_write_in_place_takes_no_memory():
    compiled = jit(lambda x: x.add_(1).sin(), executors=["torch"])
    compiled(torch.ones(1000))
    assert get_alloc_memory(last_traces(compiled)[-1])[0] <= 12_000


def test_programs_whose_inputs_cannot_be_made_up_say_so():
    compiled = jit(lambda x, i: x[i])
    compiled(torch.ones(3), torch.tensor([2]))
    assert costs(last_traces(compiled)[-1])[1] is None
    compiled = jit(lambda x, i: torch.where(i > 0, x, x * 2))
    compiled(torch.ones(3), torch.tensor([True, False, True]))
    assert costs(last_traces(compiled)[-1])[1] is None


def test_it_writes_html_and_json_and_nothing_else(tmp_path):
    page = tmp_path / "report.html"
    report(model(), torch.randn(3, 4), path=page, measure=False)
    text = page.read_text()
    assert "http" not in re.sub(r"<script id=\"data\".*?</script>", "", text, flags=re.S), "nothing is fetched"
    with pytest.raises(ValueError, match="ends in .html or .json"):
        report(model(), torch.randn(3, 4), path=tmp_path / "report.pdf")


def test_what_was_never_called_has_no_report():
    with pytest.raises(RuntimeError, match="call the function first"):
        report(jit(model()))


def large(count):
    lines = tuple(
        Line(f"t{i} = torch.add(t{i - 1}, 1)  # float32[4]", f"model.py:{i % 90}", "x = x + 1", "torch", "add")
        for i in range(count)
    )
    stages = tuple(Stage(f"pass_{k}", 1.0, "def computation(t):", lines, "return t") for k in range(8))
    part = Part("forward", stages, Memory((16,) * count, 16), (), "not asked for")
    return Report(Facts("large", (part,), "", "", ({"acquisition": 1.0},), (), 1, 1, (), ()))


def test_twenty_thousand_operations_fit_in_a_page():
    start = time.process_time()
    page = large(20_000).html()
    assert time.process_time() - start < 3
    assert len(page) < 20_000_000


def test_nothing_in_a_program_ends_the_script():
    found = large(1)
    stage = found.facts.parts[0].stages[0]
    assert (
        "</script><b>"
        not in Report(
            Facts(
                "</script><b>",
                (Part("forward", (stage,), Memory((), 0), (), ""),),
                "</script><b>",
                "",
                (),
                (),
                0,
                0,
                (),
                (),
            )
        ).html()
    )


BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.mark.skipif(BROWSER is None, reason="needs Chromium")
@pytest.mark.parametrize(
    "make", [lambda: report(model(), torch.randn(3, 4)), lambda: large(20_000)], ids=["small", "large"]
)
def test_a_browser_shows_it_without_an_error(make, tmp_path):
    page = tmp_path / "report.html"
    page.write_text(make().html())
    options = [
        "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
        "--disable-background-networking", "--disable-component-update", "--enable-logging=stderr",
        f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom",
    ]  # fmt: skip
    done = subprocess.run([BROWSER, *options, page.as_uri()], capture_output=True, text=True, timeout=120, check=True)
    assert "CONSOLE" not in done.stderr, done.stderr
    assert 'class="row new"' in done.stdout or 'class="row"' in done.stdout
    assert "forward peak" in done.stdout and "<svg" in done.stdout
    assert ("<circle" in done.stdout) == ("Not measured: not asked for" not in done.stdout)
