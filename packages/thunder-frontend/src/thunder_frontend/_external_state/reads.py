"""What guards reads of external state, by what is read."""

from __future__ import annotations

from dataclasses import dataclass

from thunder_frontend._external_state.answers import Answers
from thunder_frontend._external_state.attribute_reads import AttributeReads
from thunder_frontend._external_state.class_reads import ClassReads
from thunder_frontend._external_state.container_reads import ContainerReads


@dataclass(frozen=True, slots=True, eq=False)
class Reads:
    """What is read of values, for those who guard what reads several of them."""

    answers: Answers
    classes: ClassReads
    containers: ContainerReads
    attributes: AttributeReads
