"""What takes in reads of the outside world, by what is read."""

from __future__ import annotations

from dataclasses import dataclass

from thunder_frontend._outside.answers import Answers
from thunder_frontend._outside.attribute_reads import AttributeReads
from thunder_frontend._outside.class_reads import ClassReads
from thunder_frontend._outside.container_reads import ContainerReads


@dataclass(frozen=True, slots=True, eq=False)
class Reads:
    """What is read of values, for those who take in what reads several of them."""

    answers: Answers
    classes: ClassReads
    containers: ContainerReads
    attributes: AttributeReads
