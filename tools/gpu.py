#!/usr/bin/env python3
"""Check everything that needs a GPU, and write what held into one folder: `report.html` and `report.json`.

    python3 tools/dev.py gpu                        on a machine with a GPU; at most 20 minutes, and no network
    python3 tools/dev.py gpu --only checks --minutes 5
    python3 tools/dev.py gpu --rehearse             the same on the CPU, with tiny sizes and a faked device

Needs the checkout and what Python packages are installed: PyTorch, the few others that Thunder needs, which it names
where one is missing, and of the libraries of GPUs any or none. Each part runs in a process of its own, with a limit of
time, and so has each of its checks: what crashes, hangs or breaks the device is a line of the report, and a new process
goes on with the next check. All that is written is in the folder.

Parts: `installed` (devices, libraries, which executors can run and why others cannot), `checks` (programs and
gradients by each executor against eager in double precision), `conformance` (every sample of every prim by the
executors that fuse, and by PyTorch's), `training` (models beside eager, CUDA graphs), `opinfo` (PyTorch's own samples
of its operations in float32, bfloat16 and float16), `tests` (those of packages that ask for a GPU), `bench` (steps of
models and generation against eager, torch.compile and Liger's kernels).
"""

# Runs on any Python 3.11, without a package installed; hence the packages' metadata are written to a folder beside.
import argparse
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from gpu_report import page

ROOT = Path(__file__).resolve().parent.parent
PARTS = {
    "installed": 0.04, "checks": 0.12, "conformance": 0.1, "training": 0.08, "opinfo": 0.16, "tests": 0.15,
    "bench": 0.35,
}  # fmt: skip
"""The parts, in order, and the share of the time that each may take; what one leaves over, the next ones have."""
SPREAD = ("checks", "conformance", "training", "opinfo", "tests")
"""Parts that several processes do beside each other, as no time of theirs is told."""
MOST_STARTS = 12
"""How often a share of a part is started, in all, where checks end its process."""
OVER = "its time was over"
GOOD = (0, 1)
"""What a part exits with that came to its end: all held, or not."""


def environment(out: Path, rehearse: bool) -> dict[str, str]:
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
    found = {**os.environ, "PYTHONPATH": os.pathsep.join([*paths, *([old] if old else [])])}
    found |= {"HF_HUB_OFFLINE": "1", "TRITON_CACHE_DIR": str(out / "caches" / "triton")}
    found["TORCHINDUCTOR_CACHE_DIR"] = str(out / "caches" / "inductor")
    if rehearse:
        found["TRITON_INTERPRET"] = "1"
    else:
        found.pop("TRITON_INTERPRET", None)
    return found


def requirements() -> list[str]:
    """Return what the packages need beside each other and PyTorch."""
    found = []
    for file in sorted(ROOT.glob("packages/*/pyproject.toml")):
        found += tomllib.loads(file.read_text(encoding="utf-8"))["project"].get("dependencies", [])
    return sorted({r for r in found if not r.startswith(("thunder", "torch"))})


def needed(variables: dict[str, str]) -> dict[str, object]:
    """Return a part of the report: whether the packages can be imported, and what they need that is not installed."""
    began, rows, absent = time.monotonic(), [], []
    for requirement in requirements():
        name = re.split(r"[<>=!~ ;\[]", requirement)[0]
        try:
            rows.append({"check": requirement, "outcome": "held", "found": version(name)})
        except PackageNotFoundError:
            rows.append({"check": requirement, "outcome": "not here", "found": "not installed"})
            absent.append(requirement)
    command = [sys.executable, "-c", "import thunder, thunder_benchmarks, thunder_testing"]
    done = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, check=False)
    lines = done.stderr.splitlines()
    told = "fine" if done.returncode == 0 else lines[-1] if lines else f"exited with {done.returncode}"
    rows.append({"check": "import thunder", "outcome": "held" if done.returncode == 0 else "error", "found": told})
    if done.returncode:
        install = " ".join(shlex.quote(r) for r in absent or ["torch"])
        lines.append(f"the packages of this checkout cannot be imported here ({told}); try: pip install {install}")
        print(lines[-1], flush=True)
    return {
        "part": "needed", "held": done.returncode == 0, "ended": "ended",
        "seconds": round(time.monotonic() - began, 1), "rows": rows, "log": lines[-40:],
    }  # fmt: skip


def attempt(command: list[str], rows: Path, log: Path, ends: float, variables: dict[str, str]) -> tuple[int, str]:
    """Run a part until it ends, or takes too long, or a check of it does; return its status and what became of it."""
    with log.open("a") as file:
        process = subprocess.Popen(
            command, cwd=ROOT, env=variables, stdout=file, stderr=subprocess.STDOUT, start_new_session=True
        )
        while True:
            try:
                status = process.wait(timeout=max(0.05, min(1.0, ends - time.monotonic())))
                return status, "ended" if status >= 0 else f"was killed by {signal.Signals(-status).name}"
            except subprocess.TimeoutExpired:
                ended = OVER if time.monotonic() >= ends else overdue(rows)
            if ended:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                return -1, f"was stopped: {ended}"


def overdue(rows: Path) -> str:
    """Return that the check which runs now takes longer than it may, or ``""``."""
    last = (rows_of(rows) or [{}])[-1]
    limit = last.get("limit")
    if isinstance(limit, (int, float)) and time.time() - rows.stat().st_mtime > limit:
        return f"a check took more than {limit:.0f} s"
    return ""


@dataclass(frozen=True)
class Share:
    """What one process does of a part: every ``of``-th check, from number ``index`` on."""

    part: str
    index: int
    of: int
    out: Path

    @property
    def rows(self) -> Path:
        """Where it writes what it found."""
        return self.out / f"{self.part}.{self.index}.jsonl"

    @property
    def log(self) -> Path:
        """Where what it prints goes."""
        return self.out / f"{self.part}.{self.index}.log"


def run(share: Share, rehearse: bool, ends: float, variables: dict[str, str]) -> tuple[bool, str]:
    """Do a share, going on after a check that ended its process; return whether all held, and what became of it."""
    rows, log = share.rows, share.log
    log.write_text("")
    first, good = 0, True
    for _ in range(MOST_STARTS):
        left = ends - time.monotonic()
        command = [sys.executable, str(ROOT / "tools" / "gpu_part.py"), share.part, "--out", str(share.out)]
        command += ["--share", f"{share.index}/{share.of}", "--seconds", str(int(max(left, 1))), "--first", str(first)]
        status, ended = attempt(command + (["--rehearse"] if rehearse else []), rows, log, ends, variables)
        good = good and status == 0
        running = (rows_of(rows) or [{}])[-1]
        if "limit" in running:
            outcome = "no time" if ended.endswith(OVER) else "crashed"
            crashed = {"number": running["number"], "check": running["check"], "outcome": outcome, "found": ended}
            with rows.open("a") as file:
                file.write(f"\n{json.dumps(crashed)}\n")
        if "number" in running:
            first = int(str(running["number"])) + 1
        if status in GOOD or not running or time.monotonic() > ends - 2:
            break
    return good, ended


def run_part(
    part: str, jobs: int, rehearse: bool, out: Path, seconds: float, variables: dict[str, str]
) -> dict[str, object]:
    """Do a part, by some processes beside each other; return what is known, whatever became of them."""
    began = time.monotonic()
    shares = [Share(part, i, jobs, out) for i in range(jobs)]
    with ThreadPoolExecutor(jobs) as pool:
        outcomes = list(pool.map(lambda s: run(s, rehearse, began + seconds, variables), shares))
    found = [row for share in shares for row in rows_of(share.rows) if "limit" not in row]
    lines = [share.log.read_text(errors="replace").splitlines() for share in shares]
    return {
        "part": part, "held": all(good for good, _ in outcomes),
        "ended": next((ended for _, ended in outcomes if ended != "ended"), "ended"),
        "seconds": round(time.monotonic() - began, 1), "rows": sorted(found, key=place),
        "log": [line for log in lines for line in log[-40 // jobs or -1 :]],
    }  # fmt: skip


def place(row: dict[str, object]) -> int:
    """Return where a row stands in its part's report: by its check's number, and what tells of many at the end."""
    number = row.get("number")
    return number if isinstance(number, int) else sys.maxsize


def rows_of(path: Path) -> list[dict[str, object]]:
    """Return what a part wrote so far, line by line; a line that was cut off is left out."""
    found = []
    for line in path.read_text().splitlines() if path.exists() else []:
        try:
            found.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return found


def write(out: Path, device: str, parts: list[dict[str, object]]) -> None:
    """Write the report, as far as it goes."""
    (out / "report.json").write_text(json.dumps({"device": device, "parts": parts}, indent=1))
    (out / "report.html").write_text(page(device, parts))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rehearse", action="store_true", help="on the CPU, with tiny sizes and a faked device")
    parser.add_argument("--minutes", type=float, default=20.0, help="the most that all parts take together")
    parser.add_argument("--jobs", type=int, default=8, help="the most processes beside each other, at most one a core")
    parser.add_argument("--only", nargs="+", choices=list(PARTS), help="these parts; all if not given")
    parser.add_argument(
        "--out", type=Path, default=ROOT / ".hatch" / "reports" / "gpu", help="the folder of the report"
    )
    words = parser.parse_args()
    out = words.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    for old in [*out.glob("*.jsonl"), *out.glob("*.log")]:
        old.unlink()
    chosen = [part for part in PARTS if not words.only or part in words.only]
    variables, ends = environment(out, words.rehearse), time.monotonic() + words.minutes * 60
    device = "the CPU, rehearsed" if words.rehearse else "a GPU"
    parts = [needed(variables)]
    write(out, device, parts)
    for i, part in enumerate(chosen if parts[0]["held"] else []):
        share = PARTS[part] / sum(PARTS[p] for p in chosen[i:])
        jobs = min(words.jobs, os.cpu_count() or 1) if part in SPREAD and not words.rehearse else 1
        seconds = max(1.0, (ends - time.monotonic()) * share)
        parts.append(run_part(part, jobs, words.rehearse, out, seconds, variables))
        print(f"{part}: {parts[-1]['ended']}, {parts[-1]['seconds']} s, {len(parts[-1]['rows'])} rows", flush=True)
        write(out, device, parts)
    print(f"report: {out / 'report.html'}")
    return int(not all(part["held"] for part in parts))


if __name__ == "__main__":
    sys.exit(main())
