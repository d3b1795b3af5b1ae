"""Agreement between processes, clipping, and checkpoints, on two processes."""

SCENARIOS = "state_scenarios.py"


def test_on_two_processes(scenario, check):
    check(scenario)
