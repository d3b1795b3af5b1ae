"""Write docs/distributed.md: the tutorial in tools/distributed_page.md, with measurements on this machine put in.

    python tools/distributed_page.py [--steps N] [--parts measured,simulated]

About twenty-five minutes on two cores for all; parts that are not named stay as they are on the page. Losses and times
come from one launch in which the ways of training take turns; memory from one launch for each of them.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

import torch

from thunder_benchmarks.two_hosts import BASELINES, trained
from thunder_benchmarks.two_hosts import hosts as two_hosts
from thunder_distributed.costs import validate

ROOT = Path(__file__).resolve().parent.parent
NAMES = {
    "torch-ddp": "`DistributedDataParallel`, eager",
    "torch-ddp-of-thunder": "`DistributedDataParallel(thunder.jit(model))`",
    "ddp-on-torch": "`thunder_distributed.ddp`, eager's kernels",
    "ddp": "`thunder_distributed.ddp`",
    "torch-fully-shard": "`fully_shard` of each block, eager",
    "fsdp-on-torch": "`thunder_distributed.fsdp`, ZERO3, BLOCK, eager's kernels",
    "fsdp": "`thunder_distributed.fsdp`, ZERO3, BLOCK",
}


def launched(modes: str, steps: int, *words: str) -> dict:
    """Return what one launch of two processes measured."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "found.json"
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
        command += ["-m", "thunder_benchmarks.parallel", "--modes", modes, "--steps", str(steps), "--json", str(file)]
        subprocess.run([*command, *words], check=True, timeout=1200, capture_output=True)
        return json.loads(file.read_text())


def measured(steps: int) -> str:
    """Return the table of measurements."""
    together = launched(",".join(NAMES), steps)
    lines = [
        "| | first loss | last loss | step, ms | beside PyTorch's | peak of a process, MB |",
        "|---|---|---|---|---|---|",
    ]
    for name, title in NAMES.items():
        row = together[name]
        for _ in range(2):  # the first has to compile what the second finds on disk
            alone = launched(name, 3, "--layers", "6", "--width", "512", "--batch", "4")[name]
        theirs = together[BASELINES.get(name, name)]["step"]
        lines.append(
            f"| {title} | {row['losses'][0]:.5f} | {row['losses'][-1]:.5f} | {row['step'] * 1e3:.0f} | "
            f"{row['step'] / theirs:.2f} | {alone['peak'] / 1e6:.0f} |"
        )
    size, larger = together["ddp"]["parameters"] / 1e6, alone["parameters"] / 1e6
    lines.append("")
    lines.append(
        f"A GPT of 4 layers, {size:.1f} MB of parameters, {steps} steps of AdamW on 2 gloo processes of one thread "
        f"each, PyTorch {torch.__version__}, {platform.machine()}; medians of steps that took turns, on a machine that "
        "may have had other work; memory that is freed stays with the processes. The peaks are those of a larger one, "
        f"of 6 layers and {larger:.0f} MB, in a launch of its own: all that the process has resident, Python and its "
        "libraries included, PyTorch's and Thunder's in all of them. Kernels are on disk, as in any run but the first, "
        "in which Thunder's processes have LLVM in memory, too."
    )
    return "\n".join(lines)


LITGPT = ("config=pythia-14m", "layers=8", "batch=2", "length=64")


def litgpt(steps: int) -> str:
    """Return the table of a model of litgpt on two and on four processes; litgpt has to be installed."""
    lines = [
        "| processes | | forward and backward, ms | beside PyTorch's | most that tensors of a process take, MB |",
        "|---|---|---|---|---|",
    ]
    for processes in (2, 4):
        for baseline in ("torch-ddp", "torch-fully-shard"):
            rows = _on_processes(processes, [name for name in NAMES if BASELINES.get(name, name) == baseline])
            for row in rows:
                lines.append(
                    f"| {processes} | {NAMES[row['compiler']]} | {row['microseconds'] / 1e3:.0f} | "
                    f"{row['microseconds'] / rows[0]['microseconds']:.2f} | {row['peak_bytes'] / 1e6:.0f} |"
                )
    return "\n".join(lines)


def _on_processes(processes: int, modes: list[str]) -> list[dict]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "found.json"
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
        command += ["-m", "thunder_benchmarks.targets", "litgpt", "--mode", "training", "--json", str(file)]
        command += ["--rounds", "15", "--block", "1"]  # seconds: several steps in a row, as in training
        command += ["--compilers", *modes, "--set", *LITGPT]
        subprocess.run(command, check=True, timeout=1200, capture_output=True)
        rows = json.loads(file.read_text(encoding="utf-8"))["measured"]
    for row in rows:
        if row["why_not"]:
            raise RuntimeError(f"{row['compiler']}: {row['why_not']}")
    return rows


LINKS = (("1gbit", None), ("1gbit", "1ms"), ("200mbit", "2ms"))
"""Rates and delays of links between two hosts."""


def hosts(steps: int) -> str:
    """Return the table of training on two hosts with a link between them; takes the superuser and iproute2."""
    modes = ["torch-ddp", "ddp", "torch-fully-shard", "fsdp"]
    titles = [f"{NAMES[name]}, ms | beside PyTorch's" if name in BASELINES else f"{NAMES[name]}, ms" for name in modes]
    rows = ["| link | " + " | ".join(titles) + " |"]
    rows.append("|---" * rows[0].count(" | ") + "|---|")
    for rate, delay in LINKS:
        with two_hosts(rate, delay) as names:
            found = trained(names, [f"--modes={','.join(modes)}", f"--steps={steps}"], 600)
        cells = [f"{rate}, {delay} of delay" if delay else rate]
        for name in modes:
            cells.append(f"{found[name]['step'] * 1e3:.0f}")
            if name in BASELINES:
                cells.append(f"{found[name]['step'] / found[BASELINES[name]]['step']:.2f}")
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def configurations(steps: int) -> str:
    """Return the table of ways of training that are compared with one process."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "table.md"
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
        command += ["-m", "thunder_benchmarks.configurations", "--steps", str(steps), "--write", str(file)]
        subprocess.run(command, check=True, timeout=3600)
        return file.read_text(encoding="utf-8").rstrip("\n")


def faults(steps: int) -> str:
    """Return the table of what came of faults."""
    command = [sys.executable, "-W", "ignore", "-m", "thunder_benchmarks.faults", "--runs", "50"]
    done = subprocess.run(command, check=True, timeout=3600, stdout=subprocess.PIPE, text=True)
    return done.stdout.rstrip("\n").replace(f"{ROOT}{os.sep}", "")


def timelines(steps: int) -> str:
    """Return the table of steps of large models."""
    command = [sys.executable, "-m", "thunder_distributed.timelines"]
    return subprocess.run(command, check=True, timeout=1200, capture_output=True, text=True).stdout.rstrip("\n")


def simulated(steps: int) -> str:
    """Return the table of steps beside what the simulator says of them."""
    lines: list[str] = []
    for count, ways in ((2, "ddp fsdp-zero2 fsdp-zero3"), (4, "ddp fsdp-zero2"), (4, "fsdp-zero3")):
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(count)]
        command += ["-m", "thunder_benchmarks.simulated", "--rounds", "9", "--ways", *ways.split()]
        done = subprocess.run(command, check=True, timeout=1200, capture_output=True, text=True)
        rows = [line for line in done.stdout.splitlines() if line.startswith("|")]
        lines += rows[2:] if lines else rows
    return "\n".join([*lines, "", f"{os.cpu_count()} cores, {platform.machine()}, PyTorch {torch.__version__}."])


def products(steps: int) -> str:
    """Return the table of layers of which each process has a part."""
    command = [sys.executable, "-m", "thunder_distributed.timelines", "--tensor", "8"]
    return subprocess.run(command, check=True, timeout=1200, capture_output=True, text=True).stdout.rstrip("\n")


def validated(steps: int) -> str:
    """Return how far estimates are from published steps."""
    return "```text\n" + validate().table() + "\n```"


PARTS = {
    "measured": measured, "litgpt": litgpt, "hosts": hosts, "configurations": configurations, "faults": faults,
    "validated": validated, "simulated": simulated, "timelines": timelines, "products": products,
}  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--parts", default=",".join(PARTS))
    options = parser.parse_args()
    page = ROOT / "docs" / "distributed.md"
    before = page.read_text(encoding="utf-8")
    text = (ROOT / "tools" / "distributed_page.md").read_text(encoding="utf-8")
    for name, make in PARTS.items():
        begin, end = f"<!-- {name} -->\n\n", f"\n\n<!-- end of {name} -->"
        kept = before.partition(begin)[2].partition(end)[0]
        made = make(options.steps) if name in options.parts.split(",") else kept
        text = text.replace(begin.strip(), begin + made + end)
    page.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
