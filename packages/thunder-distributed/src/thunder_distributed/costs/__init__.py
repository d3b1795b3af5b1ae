"""What programs cost: machines, networks, timelines of programs on them, and estimates of whole training steps."""

from thunder_distributed.costs.machine import Link, Machine, Network, known_machines, machine
from thunder_distributed.costs.measuring import (
    Measured,
    MeasuredNetwork,
    measure_network,
    measure_operations,
    sizes_in,
)
from thunder_distributed.costs.planning import Planned, plan
from thunder_distributed.costs.simulate import Communicates, Event, Timeline, operations_of, seconds_of, simulate
from thunder_distributed.costs.transformers import Estimate, Layout, Transformer, estimate
from thunder_distributed.costs.validation import Report, published, validate

__all__ = [
    "Communicates", "Estimate", "Event", "Layout", "Link", "Machine", "Measured", "MeasuredNetwork", "Network",
    "Planned", "Report", "Timeline", "Transformer", "estimate", "known_machines", "machine",
    "measure_network", "measure_operations", "operations_of", "plan", "published", "seconds_of", "simulate",
    "sizes_in", "validate",
]  # fmt: skip
