"""Training on two hosts that are none: one process each in a network namespace, with a slow link between them.

python -m thunder_benchmarks.two_hosts [--rate 1gbit] [--delay 2ms] [--modes torch-ddp,ddp] [--steps 12]

Takes Linux, its superuser and iproute2. The rate is limited by the queueing discipline ``tbf``; a link with a delay is
one of :mod:`thunder_benchmarks.delayed_link`. Nothing outside of the two namespaces is changed; they are removed at
the end.
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
from contextlib import ExitStack, contextmanager
from pathlib import Path

from thunder_benchmarks.delayed_link import MTU
from thunder_benchmarks.tables import markdown

LINK = "link0"
ADDRESSES = ("10.77.0.1", "10.77.0.2")
BASELINES = {
    **dict.fromkeys(("ddp", "ddp-on-torch", "torch-ddp-of-thunder"), "torch-ddp"),
    **dict.fromkeys(("fsdp", "fsdp-on-torch"), "torch-fully-shard"),
}
"""Beside which of PyTorch's own each way of training is put."""


class HostsError(RuntimeError):
    """The two namespaces cannot be made; the message says what is missing."""


def _run(*words: str) -> None:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise HostsError(f"{' '.join(words)} failed: {done.stderr.strip() or done.returncode}")


@contextmanager
def hosts(rate: str, delay: str | None = None) -> Iterator[tuple[str, str]]:
    """Make two namespaces with a link between them, for a while.

    Args:
        rate: of each direction, such as ``"1gbit"``.
        delay: such as ``"2ms"``, of every packet; none if not given.

    Returns:
        their names.

    Raises:
        HostsError: iproute2 or the rights are missing, or the rate is none.
    """
    missing = [name for name in ("ip", "tc") if shutil.which(name) is None]
    if missing:
        raise HostsError(f"there is no {' and no '.join(missing)}: install iproute2")
    names = (f"thunder-{os.getpid()}-0", f"thunder-{os.getpid()}-1")
    with ExitStack() as stack:
        for name in names:
            _run("ip", "netns", "add", name)
            stack.callback(_run, "ip", "netns", "delete", name)
        if delay is None:
            _run("ip", "link", "add", LINK, "netns", names[0], "type", "veth", "peer", "name", LINK, "netns", names[1])
        else:
            stack.enter_context(_delayed(names, rate, delay))
        for name, address in zip(names, ADDRESSES, strict=True):
            _run("ip", "-n", name, "address", "add", f"{address}/24", "dev", LINK)
            for device in ("lo", LINK):
                _run("ip", "-n", name, "link", "set", device, "up")
            if delay is None:
                limit = ("tbf", "rate", rate, "burst", "256kb", "latency", "100ms")
                _run("ip", "netns", "exec", name, "tc", "qdisc", "add", "dev", LINK, "root", *limit)
            else:
                _run("ip", "-n", name, "link", "set", LINK, "mtu", str(MTU))
        yield names


@contextmanager
def _delayed(names: Sequence[str], rate: str, delay: str) -> Iterator[None]:
    """Keep up a link that is a process."""
    command = [sys.executable, "-m", "thunder_benchmarks.delayed_link", *names]
    command += ["--device", LINK, "--rate", rate, "--delay", delay]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        if not process.stdout.readline():
            raise HostsError(f"the link cannot be made: {process.stderr.read().strip()}")
        try:
            yield
        finally:
            ended = process.poll()
            if ended is not None:
                raise HostsError(f"the link ended with status {ended}: {process.stderr.read().strip()}")
    finally:
        process.kill()
        process.communicate()


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
    parser.add_argument("--rate", default="1gbit", help="of each direction, such as 200mbit")
    parser.add_argument("--delay", help="of every packet, such as 2ms")
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
