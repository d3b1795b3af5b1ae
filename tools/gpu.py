#!/usr/bin/env python3
"""Check everything that needs a GPU, and write what held into one folder: `report.html` and `report.json`.

    python3 tools/dev.py gpu                        on a machine with a GPU; at most 20 minutes, and no network
    python3 tools/dev.py gpu --device cpu           what of it a machine without one can do
    python3 tools/dev.py gpu --only checks --minutes 5

Needs the checkout and what Python packages are installed: PyTorch, and of the libraries of GPUs any or none. Each part
runs in a process of its own, with a limit of time: what crashes or hangs is a line of the report, and the rest goes on.

Parts: `installed` (devices, libraries, which executors can run and why others cannot), `tests` (those of the packages
of executors for GPUs), `checks` (programs, gradients, training and CUDA graphs by each
executor against eager, on the device), `bench` (milliseconds against eager and torch.compile).
"""

# Runs on any Python 3.11, without a package installed; hence the packages' metadata are written to a folder beside.
import argparse
import html
import json
import os
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("triton", "cudnn", "nvfuser", "apex", "transformer-engine")
PARTS = {"installed": 0.05, "checks": 0.3, "tests": 0.4, "bench": 0.25}
"""The parts, in order, and the share of the time that each may take; what one leaves over, the next ones have."""


def environment(out: Path) -> dict[str, str]:
    """Return the variables with which a process finds the checkout's packages, and their executors."""
    metadata = out / "metadata"
    paths = [str(metadata)]
    for file in sorted(ROOT.glob("packages/*/pyproject.toml")):
        project = tomllib.loads(file.read_text(encoding="utf-8"))["project"]
        paths.append(str(file.parent / "src"))
        folder = metadata / f"{project['name'].replace('-', '_')}-0.1.0.dist-info"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "METADATA").write_text(f"Metadata-Version: 2.3\nName: {project['name']}\nVersion: 0.1.0\n")
        groups = project.get("entry-points", {}).items()
        text = [f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in points.items()) for group, points in groups]
        (folder / "entry_points.txt").write_text("\n".join(text))
    old = os.environ.get("PYTHONPATH", "")
    return {**os.environ, "PYTHONPATH": os.pathsep.join([*paths, *([old] if old else [])])}


def command(part: str, device: str, out: Path, seconds: float) -> list[str]:
    """Return the command line of a part."""
    if part != "tests":
        tool = str(ROOT / "tools" / "gpu_part.py")
        return [sys.executable, tool, part, "--device", device, "--seconds", str(int(seconds)), "--out", str(out)]
    folders = [str(ROOT / "packages" / f"thunder-executors-{name}" / "tests") for name in PACKAGES]
    words = ["-q", "-p", "no:cacheprovider", "--continue-on-collection-errors", f"--junitxml={out / 'tests.xml'}"]
    return [sys.executable, "-m", "pytest", *words, *[f for f in folders if Path(f).is_dir()]]


def run(part: str, device: str, out: Path, seconds: float, variables: dict[str, str]) -> dict[str, object]:
    """Run a part; return what is known of it, whatever became of it."""
    log = out / f"{part}.log"
    began = time.monotonic()
    with log.open("w") as file:
        process = subprocess.Popen(
            command(part, device, out, seconds), cwd=ROOT, env=variables, stdout=file, stderr=subprocess.STDOUT,
            start_new_session=True,
        )  # fmt: skip
        try:
            status = process.wait(timeout=seconds)
            ended = "ended" if status >= 0 else f"was killed by {signal.Signals(-status).name}"
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            status, ended = -1, f"was stopped after {seconds:.0f} s"
    lines = log.read_text(errors="replace").splitlines()
    return {
        "part": part, "status": status, "ended": ended, "seconds": round(time.monotonic() - began, 1),
        "rows": rows_of(out / f"{part}.jsonl"), "log": lines[-40:],
    }  # fmt: skip


def rows_of(path: Path) -> list[dict[str, object]]:
    """Return what a part wrote so far, line by line; a line that was cut off is left out."""
    found = []
    for line in path.read_text().splitlines() if path.exists() else []:
        try:
            found.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return found


def page(device: str, parts: list[dict[str, object]]) -> str:
    """Return the report as HTML."""
    body = [f"<h1>Thunder on {html.escape(device)}</h1>"]
    for part in parts:
        good = "held" if part["status"] == 0 else "did not hold"
        body.append(f"<h2>{part['part']}: {good}</h2><p>{part['ended']}, {part['seconds']} s</p>")
        rows = part["rows"]
        assert isinstance(rows, list)
        if rows:
            names = list(dict.fromkeys(name for row in rows for name in row))
            body.append("<table><tr>" + "".join(f"<th>{html.escape(n)}</th>" for n in names) + "</tr>")
            for row in rows:
                cells = "".join(f"<td>{html.escape(str(row.get(n, '')))}</td>" for n in names)
                body.append(f'<tr class="{html.escape(str(row.get("outcome", "")))}">{cells}</tr>')
            body.append("</table>")
        log = part["log"]
        assert isinstance(log, list)
        body.append(f"<details><summary>end of its log</summary><pre>{html.escape(chr(10).join(log))}</pre></details>")
    style = "body{font:14px sans-serif;margin:2em}table{border-collapse:collapse}"
    style += "td,th{border:1px solid #ccc;padding:2px 8px}"
    style += ".wrong,.error{background:#fdd}.held{background:#dfd}"
    return f"<!doctype html><meta charset=utf-8><title>Thunder</title><style>{style}</style>{''.join(body)}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda", help="cuda if not given; cpu does what can be done there")
    parser.add_argument("--minutes", type=float, default=20.0, help="the most that all parts take together")
    parser.add_argument("--only", nargs="+", choices=list(PARTS), help="these parts; all if not given")
    parser.add_argument(
        "--out", type=Path, default=ROOT / ".hatch" / "reports" / "gpu", help="the folder of the report"
    )
    words = parser.parse_args()
    out = words.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    for old in out.glob("*.jsonl"):
        old.unlink()
    chosen = [part for part in PARTS if not words.only or part in words.only]
    variables, ends = environment(out), time.monotonic() + words.minutes * 60
    if words.device == "cuda":
        variables.pop("TRITON_INTERPRET", None)
    parts: list[dict[str, object]] = []
    for i, part in enumerate(chosen):
        share = PARTS[part] / sum(PARTS[p] for p in chosen[i:])
        parts.append(run(part, words.device, out, max(1.0, (ends - time.monotonic()) * share), variables))
        print(f"{part}: {parts[-1]['ended']}, {parts[-1]['seconds']} s, {len(parts[-1]['rows'])} rows", flush=True)
        (out / "report.json").write_text(json.dumps({"device": words.device, "parts": parts}, indent=1))
        (out / "report.html").write_text(page(words.device, parts))
    print(f"report: {out / 'report.html'}")
    return int(any(part["status"] != 0 for part in parts))


if __name__ == "__main__":
    sys.exit(main())
