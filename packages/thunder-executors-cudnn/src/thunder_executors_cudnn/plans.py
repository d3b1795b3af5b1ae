"""Plans of cuDNN: how a graph is run on one kind of device, kept by what is computed."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, TypeAlias

from thunder_executors_cudnn.graphs import Drawing, Tensors
from thunder_executors_cudnn.problems import Problem

MOST = 512
"""Plans that are kept; the one that was used longest ago goes first."""


@dataclass(frozen=True, slots=True)
class Target:
    """For which device plans are made; part of their key, as the library's own key of a graph leaves it out.

    Args:
        capability: the compute capability, times ten, such as 90.
        processors: the number of multiprocessors.
        ordinal: which device of this machine; ``None`` for one that is only described.
        properties: what describes it, as cuDNN writes it (JSON); ``""`` for one of this machine.
    """

    capability: int
    processors: int
    ordinal: int | None = None
    properties: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """A graph that can run.

    Args:
        graph: of the frontend, planned and built.
        tensors: its inputs and outputs, by name.
        workspace: bytes that a run needs beside them; ``None`` where it was not built.
    """

    graph: Any
    tensors: Tensors
    workspace: int | None


@dataclass(frozen=True, slots=True)
class Refused:
    """A problem that the library makes no plan for.

    Args:
        reason: in its own words.
    """

    reason: str


Answer: TypeAlias = Plan | Refused


class Plans:
    """Makes plans and keeps them.

    Args:
        cudnn: the frontend.
        most: number of plans to keep.
        build: whether kernels are compiled; else the library only says which plans there are.
    """

    def __init__(self, cudnn: Any, most: int = MOST, build: bool = True) -> None:
        self.cudnn = cudnn
        self._build = build
        self.made = 0
        self._most = most
        self._plans: OrderedDict[tuple[Problem, Target], Answer] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, problem: Problem, target: Target, handle: Any = None) -> Answer:
        """Return the plan of a problem, made now or before; or that there is none.

        Args:
            problem: what to compute.
            target: on which device.
            handle: of the library, for a device of this machine.
        """
        key = (problem, target)
        with self._lock:
            found = self._plans.get(key)
            if found is None:
                found = self._plans[key] = self._answer(problem, target, handle)
                if len(self._plans) > self._most:
                    self._plans.popitem(last=False)
            else:
                self._plans.move_to_end(key)
        return found

    def _answer(self, problem: Problem, target: Target, handle: Any) -> Answer:
        self.made += 1
        try:
            return self._plan(problem, target, handle)
        except self.cudnn.cudnnGraphNotSupportedError as error:
            return Refused(str(error))

    def _plan(self, problem: Problem, target: Target, handle: Any) -> Plan:
        types = self.cudnn.data_type
        options: dict[str, Any] = {"handle": handle}
        if target.ordinal is None:
            properties = self.cudnn.create_device_properties(target.properties)
            options = {"device_property": properties, "sm_version": target.capability}
        graph = self.cudnn.pygraph(
            io_data_type=types.FLOAT, intermediate_data_type=types.FLOAT, compute_data_type=types.FLOAT, **options
        )
        tensors = Drawing(self.cudnn, graph).draw(problem)
        graph.validate()
        graph.build_operation_graph()
        graph.create_execution_plans([self.cudnn.heur_mode.A, self.cudnn.heur_mode.FALLBACK])
        graph.check_support()
        if not self._build:
            return Plan(graph, tensors, None)
        graph.build_plans(self.cudnn.build_plan_policy.HEURISTICS_CHOICE)
        return Plan(graph, tensors, graph.get_workspace_size())


__all__ = ["MOST", "Answer", "Plan", "Plans", "Refused", "Target"]
