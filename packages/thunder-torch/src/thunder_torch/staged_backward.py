"""Backward programs that run in stages, where user code looks at the gradients of results on the way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from thunder_autograd import Split, Stages
from thunder_ir import Trace
from thunder_prims import tidy
from thunder_torch.gradient_memory import gradients_apart
from thunder_torch.linked_results import Pass
from thunder_torch.links import Links


def filled(cotangents: Sequence[Any], metadata: Sequence[Any]) -> list[Any]:
    """Return cotangents of results of some shapes, dtypes and devices, with zeros where there is none."""
    pairs = zip(cotangents, metadata, strict=True)
    return [torch.zeros(m.shape, dtype=m.dtype, device=m.device) if c is None else c for c, m in pairs]


class StagedBackward:
    """The backward program of a split in stages, which are made at the first occasion.

    Args:
        split: whose backward program.
        links: between the results.
        positions: the places of the results that have cotangents.
        made_ready: returns what runs a program.
    """

    def __init__(
        self, split: Split, links: Links, positions: Sequence[int], made_ready: Callable[[Trace], Callable[..., Any]]
    ) -> None:
        self.split, self.links, self.positions, self.made_ready = split, links, positions, made_ready
        self.stages: dict[tuple[int, ...], Stages] = {}
        self.programs: dict[Any, Any] = {}

    def send(self, current: Pass, saved: Sequence[Any], metadata: Sequence[Any]) -> dict[int, Any]:
        """Run a stage; return what comes to the results that are seen next, by their places.

        Args:
            current: the pass, with the cotangents that arrived.
            saved: by the forward program.
            metadata: of the results.
        """
        sent: dict[int, Any]
        _, sent, handed = self._run(current, saved, metadata, ())
        current.handed = handed
        return sent

    def last(self, current: Pass, saved: Sequence[Any], metadata: Sequence[Any], needed: Sequence[bool]) -> Any:
        """Run the last stage; return the gradients that are needed."""
        return self._run(current, saved, metadata, needed)[0]

    def _run(self, current: Pass, saved: Sequence[Any], metadata: Sequence[Any], needed: Sequence[bool]) -> Any:
        stages = self.stages.get(current.asked)
        if stages is None:
            stages = self.stages[current.asked] = self._cut(current.asked)
        index = len(current.missing)
        arriving = [i for i, at in zip(self.positions, self._arrivals(current.asked), strict=True) if at == index]
        cotangents = [current.cotangents.pop(i, None) for i in arriving]
        missing = tuple([c is None for c in cotangents])
        stage = self._stage(stages, current, missing, tuple(needed))
        if stage is None:
            cotangents = filled(cotangents, [metadata[i] for i in arriving])
            missing = (False,) * len(missing)
            stage = self._stage(stages, current, missing, tuple(needed))
        current.missing = (*current.missing, missing)
        current.stage, run = stage
        made = run(*saved, *current.handed, *[c for c in cotangents if c is not None])
        if index == stages.last:
            return made, {}, ()
        found, seen = iter(made[0]), [i for i in current.asked if self._stage_of(current.asked, i) == index + 1]
        sent = {i: next(found) if comes else None for i, comes in zip(seen, current.stage.sent, strict=True)}
        return None, sent, made[1]

    def _stage(self, stages: Stages, current: Pass, missing: tuple[bool, ...], needed: tuple[bool, ...]) -> Any:
        key = (current.asked, current.missing, missing, needed)
        known = self.programs.get(key)
        if known is None:
            stage = stages.stage(len(current.missing), missing, current.stage, needed)
            if stage is None:
                return None
            is_last = len(current.missing) == stages.last
            program = gradients_apart(tidy(stage.program), len(self.split.saved)) if is_last else stage.program
            known = self.programs[key] = stage, self.made_ready(program)
        return known

    def _cut(self, asked: tuple[int, ...]) -> Stages:
        return Stages(self.split, self._arrivals(asked), [self.positions.index(i) for i in asked])

    def _arrivals(self, asked: tuple[int, ...]) -> list[int]:
        return [self._stage_of(asked, i) for i in self.positions]

    def _stage_of(self, asked: tuple[int, ...], place: int) -> int:
        """Return the stage with which the cotangent of a result arrives: one more for each level that is looked at."""
        levels = self.links.levels
        return sum([level >= levels[place] for level in {levels[i] for i in asked}])
