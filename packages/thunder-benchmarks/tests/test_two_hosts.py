"""Training between two network namespaces, where this process may make some."""

import os

import pytest

from thunder_benchmarks import two_hosts
from thunder_benchmarks.two_hosts import HostsError, hosts, table


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


def test_what_is_missing_is_said(monkeypatch, capsys):
    monkeypatch.setattr(two_hosts.shutil, "which", lambda name: None)
    assert two_hosts.main([]) == 2
    assert "there is no ip and no tc: install iproute2" in capsys.readouterr().err


def test_hosts_are_gone_afterwards_whatever_happens():
    if not may_make_hosts():
        pytest.skip("takes the superuser and iproute2")
    with pytest.raises(HostsError, match="tc qdisc add dev veth0 root tbf rate much"), hosts("much"):
        raise AssertionError("such a rate is none")
    with hosts("1gbit") as names:  # of the same names
        assert len(names) == 2


def test_each_way_is_beside_pytorchs_own():
    rows = table({"torch-ddp": {"step": 0.2}, "ddp": {"step": 0.1}, "fsdp": {"step": 0.1}}).splitlines()
    assert rows[2:] == ["| torch-ddp | 200 | 1.00 |", "| ddp | 100 | 0.50 |", "| fsdp | 100 |  |"]
