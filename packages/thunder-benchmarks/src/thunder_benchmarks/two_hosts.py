"""Training on two hosts that are none: one process each in a network namespace, with a slow link between them.

python -m thunder_benchmarks.two_hosts [--rate 1gbit] [--delay 2ms] [--modes torch-ddp,ddp] [--steps 12]

Takes Linux, its superuser and iproute2. The rate is limited by the queueing discipline ``tbf``, and with a delay by
``netem``, which not every kernel has. Nothing outside of the two namespaces is changed; they are removed at the end.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from thunder_benchmarks.tables import markdown

LINK = "veth0"
ADDRESSES = ("10.77.0.1", "10.77.0.2")
BASELINES = {"ddp": "torch-ddp", "torch-ddp-of-thunder": "torch-ddp", "fsdp": "torch-fully-shard"}
"""Beside which of PyTorch's own each way of training is put."""


class HostsError(RuntimeError):
    """The two namespaces cannot be made; the message says what is missing."""


def _run(*words: str) -> None:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise HostsError(f"{' '.join(words)} failed: {done.stderr.strip() or done.returncode}")


def discipline(rate: str, delay: str | None) -> list[str]:
    """Return the words for ``tc`` that limit what a host sends.

    Args:
        rate: such as ``"1gbit"``.
        delay: such as ``"2ms"``, of every packet; none if not given.
    """
    if delay is None:
        return ["tbf", "rate", rate, "burst", "256kb", "latency", "100ms"]
    return ["netem", "delay", delay, "rate", rate, "limit", "100000"]


@contextmanager
def hosts(rate: str, delay: str | None = None) -> Iterator[tuple[str, str]]:
    """Make two namespaces with a link between them, for a while.

    Args:
        rate, delay: see :func:`discipline`.

    Returns:
        their names.

    Raises:
        HostsError: iproute2, the rights, or the discipline are missing.
    """
    missing = [name for name in ("ip", "tc") if shutil.which(name) is None]
    if missing:
        raise HostsError(f"there is no {' and no '.join(missing)}: install iproute2")
    names = (f"thunder-{os.getpid()}-0", f"thunder-{os.getpid()}-1")
    made = []
    try:
        for name in names:
            _run("ip", "netns", "add", name)
            made.append(name)
        _run("ip", "link", "add", LINK, "netns", names[0], "type", "veth", "peer", "name", LINK, "netns", names[1])
        for name, address in zip(names, ADDRESSES, strict=True):
            _run("ip", "-n", name, "address", "add", f"{address}/24", "dev", LINK)
            for device in ("lo", LINK):
                _run("ip", "-n", name, "link", "set", device, "up")
            _run("ip", "netns", "exec", name, "tc", "qdisc", "add", "dev", LINK, "root", *discipline(rate, delay))
        yield names
    finally:
        for name in made:
            _run("ip", "netns", "delete", name)


def trained(names: Sequence[str], words: Sequence[str], limit: float) -> dict[str, dict[str, float]]:
    """Train with one process on each host, and return what was measured.

    Args:
        names: of the namespaces.
        words: the command line of ``thunder_benchmarks.parallel``.
        limit: seconds after which the processes are ended.

    Raises:
        RuntimeError: a process failed; the message has the end of what it said.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "found.json"
        shared = {"MASTER_ADDR": ADDRESSES[0], "MASTER_PORT": "29511", "WORLD_SIZE": "2", "LOCAL_RANK": "0"}
        environment = {**os.environ, **shared, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": LINK}
        command = [sys.executable, "-m", "thunder_benchmarks.parallel", *words, "--json", str(file)]
        processes, logs = [], [Path(folder) / f"log_{rank}" for rank in range(len(names))]
        try:
            for rank, (name, log) in enumerate(zip(names, logs, strict=True)):
                with open(log, "w", encoding="utf-8") as output:
                    processes.append(
                        subprocess.Popen(
                            ["ip", "netns", "exec", name, *command],
                            env={**environment, "RANK": str(rank)},
                            stdout=output,
                            stderr=subprocess.STDOUT,
                        )  # fmt: skip
                    )
            for rank, process in enumerate(processes):
                if process.wait(limit):
                    raise RuntimeError(f"rank {rank} failed: {logs[rank].read_text(encoding='utf-8')[-2000:]}")
        finally:
            for process in processes:
                process.kill()
                process.wait()
        return json.loads(file.read_text(encoding="utf-8"))  # type: ignore[no-any-return]


def table(found: dict[str, dict[str, float]]) -> str:
    """Return what was measured as a table."""
    lines = [["", "step, ms", "beside PyTorch's"]]
    for name, row in found.items():
        baseline = found.get(BASELINES.get(name, name))
        beside = "" if baseline is None else f"{row['step'] / baseline['step']:.2f}"
        lines.append([name, f"{row['step'] * 1e3:.0f}", beside])
    return markdown(lines)


def main(words: Sequence[str] | None = None) -> int:
    """Measure, and print the table; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", default="1gbit", help="of each direction, as tc has it")
    parser.add_argument("--delay", help="of every packet, as tc has it; takes a kernel with netem")
    parser.add_argument("--modes", default="torch-ddp,ddp,torch-fully-shard,fsdp")
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--limit", type=float, default=600.0, help="seconds after which the processes are ended")
    options = parser.parse_args(words)
    given = [f"--{name}={getattr(options, name)}" for name in ("modes", "steps", "layers", "width")]
    try:
        with hosts(options.rate, options.delay) as names:
            print(table(trained(names, given, options.limit)), end="")
    except HostsError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
