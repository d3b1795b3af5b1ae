"""Training between two network namespaces, where this process may make some."""

import os
import subprocess
import sys

import pytest

from thunder_benchmarks import two_hosts
from thunder_benchmarks.two_hosts import ADDRESSES, HostsError, hosts, table


def may_make_hosts():
    if not hasattr(os, "geteuid") or os.geteuid():
        return False
    try:
        with hosts("1gbit"):
            return True
    except HostsError:
        return False


def test_processes_train_over_the_link_between_two_hosts(capsys):
    if not may_make_hosts():
        pytest.skip("takes the superuser and iproute2")
    assert two_hosts.main("--rate 200mbit --modes torch-ddp,ddp --steps 3 --layers 1 --width 64".split()) == 0
    rows = capsys.readouterr().out.splitlines()[2:]
    assert [row.split("|")[1].strip() for row in rows] == ["torch-ddp", "ddp"]
    assert all(float(row.split("|")[2]) > 0 for row in rows)


ECHO = """
import socket, sys, time
if sys.argv[1] == "serve":
    with socket.create_server((sys.argv[2], 5000)) as server:
        print("ready", flush=True)
        connection = server.accept()[0]
        while data := connection.recv(1 << 16):
            connection.sendall(data)
else:
    connection = socket.create_connection((sys.argv[2], 5000))
    start = time.monotonic()
    connection.sendall(b"x")
    connection.recv(1)
    once = time.monotonic() - start
    start, count = time.monotonic(), 500_000
    connection.sendall(bytes(count))
    while count:
        count -= len(connection.recv(1 << 16))
    print(once, time.monotonic() - start)
"""


def test_packets_are_as_late_and_as_many_as_the_link_says():
    if not may_make_hosts():
        pytest.skip("takes the superuser and iproute2")
    with hosts("20mbit", "30ms") as (first, second):
        inside = ["ip", "netns", "exec"]
        server = subprocess.Popen(
            [*inside, first, sys.executable, "-c", ECHO, "serve", ADDRESSES[0]], stdout=subprocess.PIPE, text=True
        )
        try:
            assert server.stdout.readline() == "ready\n"
            client = [*inside, second, sys.executable, "-c", ECHO, "ask", ADDRESSES[0]]
            told = subprocess.run(client, capture_output=True, text=True, check=True, timeout=60).stdout
        finally:
            server.kill()
            server.communicate()
    once, whole = map(float, told.split())
    assert once >= 2 * 0.03
    assert whole >= 500_000 * 8 / 20e6 + 2 * 0.03


def test_a_link_that_is_none_is_said():
    if not may_make_hosts():
        pytest.skip("takes the superuser and iproute2")
    with (
        pytest.raises(HostsError, match="'2hours' is no number with a unit: one of us, ms, s"),
        hosts("1gbit", "2hours"),
    ):
        raise AssertionError("such a delay is none")


def test_a_link_that_ends_early_is_said(monkeypatch):
    if not may_make_hosts():
        pytest.skip("takes the superuser and iproute2")
    started, real = [], subprocess.Popen
    monkeypatch.setattr(two_hosts.subprocess, "Popen", lambda *a, **k: started.append(real(*a, **k)) or started[-1])
    with pytest.raises(HostsError, match="the link ended with status -9"), hosts("1gbit", "1ms"):
        link = next(p for p in started if "thunder_benchmarks.delayed_link" in p.args)
        link.kill()
        link.wait()


def test_what_is_missing_is_said(monkeypatch, capsys):
    monkeypatch.setattr(two_hosts.shutil, "which", lambda name: None)
    assert two_hosts.main([]) == 2
    assert "there is no ip and no tc: install iproute2" in capsys.readouterr().err


def test_hosts_are_gone_afterwards_whatever_happens():
    if not may_make_hosts():
        pytest.skip("takes the superuser and iproute2")
    with pytest.raises(HostsError, match="tc qdisc add dev link0 root tbf rate much"), hosts("much"):
        raise AssertionError("such a rate is none")
    with hosts("1gbit") as names:  # of the same names
        assert len(names) == 2


def test_each_way_is_beside_pytorchs_own():
    rows = table({"torch-ddp": {"step": 0.2}, "ddp": {"step": 0.1}, "fsdp": {"step": 0.1}}).splitlines()
    assert rows[2:] == ["| torch-ddp | 200 | 1.00 |", "| ddp | 100 | 0.50 |", "| fsdp | 100 |  |"]
