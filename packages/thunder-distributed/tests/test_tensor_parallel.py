"""Tensor parallelism on two processes."""

SCENARIOS = "tensor_parallel_scenarios.py"


def test_on_two_processes(scenario, check):
    check(scenario)
