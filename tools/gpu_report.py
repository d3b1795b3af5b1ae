"""The report of `tools/gpu.py` as a page of HTML."""

import html
from collections import Counter

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
