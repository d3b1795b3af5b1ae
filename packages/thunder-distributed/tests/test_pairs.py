"""Ways of training in parallel together, on four processes."""

SCENARIOS = "pairs_scenarios.py"


def test_on_four_processes(scenario, check):
    check(scenario, size=4)
