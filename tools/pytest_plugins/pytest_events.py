"""Writes one line of JSON per test to the file descriptor named in THUNDER_TEST_EVENTS, for tools/run_tests.py."""

import json
import os

import pytest


class Events:
    """Sends the outcome of each test, and of each file that could not be collected."""

    def __init__(self, descriptor: int) -> None:
        self.file = os.fdopen(descriptor, "w", buffering=1)
        self.seconds: dict[str, float] = {}
        self.outcome: dict[str, str] = {}

    def send(self, file: str, outcome: str, seconds: float) -> None:
        self.file.write(json.dumps({"file": file, "outcome": outcome, "seconds": seconds}) + "\n")

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.seconds[nodeid] = 0.0
        self.outcome[nodeid] = "passed"
        self.send(nodeid.split("::")[0], "started", 0.0)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid] += report.duration
        if report.failed:
            self.outcome[report.nodeid] = "failed"
        elif report.skipped:
            self.outcome[report.nodeid] = "xfailed" if hasattr(report, "wasxfail") else "skipped"

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self.send(nodeid.split("::")[0], self.outcome.pop(nodeid), self.seconds.pop(nodeid))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.send(report.nodeid.split("::")[0], "failed", 0.0)
        elif report.skipped:
            self.send(report.nodeid.split("::")[0], "skipped", 0.0)


def pytest_configure(config: pytest.Config) -> None:
    descriptor = os.environ.pop("THUNDER_TEST_EVENTS", None)
    if descriptor is not None:
        config.pluginmanager.register(Events(int(descriptor)), "thunder-events")
