"""What the rules say of a problem, and what the library says."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from thunder_executors_cudnn.offline.configurations import configurations
from thunder_executors_cudnn.offline.devices import described
from thunder_executors_cudnn.offline.driver import load
from thunder_executors_cudnn.plans import Plans, Refused
from thunder_executors_cudnn.problems import Problem
from thunder_executors_cudnn.rules import reasons


@dataclass(frozen=True)
class Verdict:
    """What became of a problem on a device.

    Args:
        problem: what was asked for.
        capability: of the device, times ten.
        outcome: ``"planned"``, ``"built"``, ``"declined"`` (by the rules and by the library, in the same words),
            ``"careful"`` (by the rules alone, which say so) or ``"wrong"``.
        rule: all that the rules have against it; ``""`` if nothing.
        library: why the library refuses it; ``""`` if it does not.
        workspace: bytes, where it was built.
    """

    problem: str
    capability: int
    outcome: str
    rule: str = ""
    library: str = ""
    workspace: int | None = None


def verdict(plans: Plans, problem: Problem, capability: int) -> Verdict:
    """Ask the rules and the library, and compare."""
    declined = list(reasons(problem, capability))
    try:
        answer = plans.of(problem, described(capability))
    except (RuntimeError, ValueError) as error:  # of a malformed graph
        answer = Refused(f"{type(error).__name__}: {error}")
    text, name = "; ".join([r.text for r in declined]), repr(problem)
    if isinstance(answer, Refused):
        same = any([not r.library or r.library in answer.reason for r in declined])
        return Verdict(name, capability, "declined" if same else "wrong", text, answer.reason[:600])
    if not declined:
        built = answer.workspace is not None
        return Verdict(name, capability, "built" if built else "planned", workspace=answer.workspace)
    return Verdict(name, capability, "wrong" if any([r.library for r in declined]) else "careful", text)


def verdicts(capability: int, count: int, built: int) -> list[Verdict]:
    """Return the verdicts of ``count`` problems on a device; of every so many, ``built`` in all, kernels are built."""
    with tempfile.TemporaryDirectory() as folder:
        load(Path(folder))
    cudnn = import_module("cudnn")
    listing, building = Plans(cudnn, build=False), Plans(cudnn)
    step = max(count // built, 1) if built else 0
    asked = [(building if step and i % step == 0 else listing, p) for i, p in enumerate(configurations(count))]
    return [verdict(plans, problem, capability) for plans, problem in asked]


__all__ = ["Verdict", "verdict", "verdicts"]
