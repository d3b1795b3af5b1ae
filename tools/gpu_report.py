"""The report of `tools/gpu.py` as a page of HTML, and what it says in short as one of Markdown.

python tools/gpu_report.py .hatch/reports/gpu/report.json > docs/gpu.md
"""

import argparse
import html
import json
import sys
from collections import Counter
from pathlib import Path

STYLE = (
    "body{font:14px sans-serif;margin:2em}table{border-collapse:collapse}td,th{border:1px solid #ccc;padding:2px 8px}"
    ".wrong,.error,.crashed{background:#fdd}.held{background:#dfd}"
)
OPEN = 60
"""Rows that are shown at once; of more, those that held are folded."""


def page(device: str, parts: list[dict[str, object]]) -> str:
    """Return the report."""
    body = [f"<h1>Thunder on {html.escape(device)}</h1>"]
    for part in parts:
        rows, log = part["rows"], part["log"]
        assert isinstance(rows, list) and isinstance(log, list)
        counts = Counter(row.get("outcome", "") for row in rows)
        told = ", ".join(f"{n} {name}" for name, n in counts.items() if name)
        good = "held" if part["held"] else "did not hold"
        body.append(f"<h2>{part['part']}: {good}</h2><p>{part['ended']}, {part['seconds']} s: {told or 'no rows'}</p>")
        held = [row for row in rows if row.get("outcome") == "held"]
        if len(rows) > OPEN and held:
            body.append(table([row for row in rows if row.get("outcome") != "held"]))
            body.append(f"<details><summary>{len(held)} held</summary>{table(held)}</details>")
        else:
            body.append(table(rows))
        text = html.escape("\n".join(log))
        body.append(f"<details><summary>end of its log</summary><pre>{text}</pre></details>")
    return f"<!doctype html><meta charset=utf-8><title>Thunder</title><style>{STYLE}</style>{''.join(body)}"


def table(rows: list[dict[str, object]]) -> str:
    """Return rows as a table; a column for each name."""
    if not rows:
        return ""
    names = [name for name in dict.fromkeys(name for row in rows for name in row) if name != "number"]
    lines = ["<table><tr>" + "".join(f"<th>{html.escape(n)}</th>" for n in names) + "</tr>"]
    for row in rows:
        cells = "".join(f"<td>{html.escape(str(row.get(n, '')))}</td>" for n in names)
        lines.append(f'<tr class="{html.escape(str(row.get("outcome", "")))}">{cells}</tr>')
    return "".join([*lines, "</table>"])


INTRODUCTION = """# On a GPU

What held on a machine with a GPU, written by `python tools/gpu_report.py` from the report that
`python3 tools/dev.py gpu` leaves in `.hatch/reports/gpu`; `python3 tools/dev.py gpu --help` tells what the parts are.
Times are of one run, beside nothing else; checks of the other parts ran beside each other.
"""


def summary(parts: list[dict[str, object]], note: str) -> str:
    """Return a page of Markdown: what was installed, how many checks held, which did not, and the times."""
    rows_of = {str(part["part"]): part["rows"] for part in parts}
    lines = [INTRODUCTION, *([note, ""] if note else []), "## The machine", "", "| | |", "|---|---|"]
    lines += [f"| {row['check']} | {row['found']} |" for row in _rows(rows_of.get("installed"))]
    lines += ["", "## What held", "", "| part | checks | held | not installed | did not hold | not reached |"]
    lines.append("|---|---|---|---|---|---|")
    others: list[str] = []
    for name, found in rows_of.items():
        if name in ("needed", "installed"):
            continue
        rows = _rows(found)
        counts = Counter(str(row.get("outcome")) for row in rows)
        bad = [row for row in rows if row.get("outcome") in ("wrong", "error", "crashed")]
        cells = (len(rows), counts["held"], counts["not here"], len(bad), counts["no time"])
        lines.append(f"| {name} | " + " | ".join(map(str, cells)) + " |")
        others += [f"| {name} | {row['check']} | {_short(row['found'])} |" for row in bad]
    if others:
        lines += ["", "What did not:", "", "| part | check | found |", "|---|---|---|", *others]
    return "\n".join([*lines, *_times(_rows(rows_of.get("bench")))]) + "\n"


def _times(rows: list[dict[str, object]]) -> list[str]:
    """Return the table of times: a row for each model, a column for each way of running it."""
    found: dict[str, dict[str, str]] = {}
    for row in rows:
        model, _, way = str(row["check"]).partition(": ")
        if row.get("outcome") == "held":
            time, *more = str(row["found"]).split(", ")
            told = [m for m in more if m.startswith(("kernels", "first")) or m.endswith("MiB")]
            found.setdefault(way, {})[model] = f"{time} ({', '.join(told)})" if told else time
    models = list(dict.fromkeys(model for each in found.values() for model in each))
    if not models:
        return []
    told = (
        "Forward and backward in bfloat16: the median step, how long its kernels run, the first step, the most memory; "
        "and the time of a token."
    )
    lines = ["", "## Times", "", told, ""]
    lines += ["| | " + " | ".join(models) + " |", "|---" * (len(models) + 1) + "|"]
    return lines + [f"| {way} | " + " | ".join(each.get(m, "") for m in models) + " |" for way, each in found.items()]


def _rows(found: object) -> list[dict[str, object]]:
    return found if isinstance(found, list) else []


def _short(text: object) -> str:
    """Return the first line of a text, as a cell of a table."""
    return str(text).strip().partition("\n")[0][:160].replace("|", "\\|").replace("<", "&lt;")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reports", nargs="+", type=Path, help="of parts that several tell of, the last one counts")
    parser.add_argument("--note", default="", help="what a reader should know of this run")
    words = parser.parse_args()
    parts = {part["part"]: part for path in words.reports for part in json.loads(path.read_text())["parts"]}
    sys.stdout.write(summary(list(parts.values()), words.note))


if __name__ == "__main__":
    main()
