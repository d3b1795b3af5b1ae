"""DTensors in compiled programs, on two processes."""

SCENARIOS = "dtensor_scenarios.py"


def test_on_two_processes(scenario, check):
    check(scenario)
