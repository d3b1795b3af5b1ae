"""Collectives in users' programs, on two processes."""

SCENARIOS = "user_scenarios.py"


def test_on_two_processes(scenario, check):
    check(scenario)
