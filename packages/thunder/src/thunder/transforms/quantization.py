"""Weights kept in eight or four bits."""

from thunder_transforms import Quantise


class BitsAndBytesLinearQuant4bit(Quantise):
    """``Quantise("nf4")``, under the name that Lightning Thunder has for it."""

    def __init__(self) -> None:
        super().__init__("nf4")


__all__ = ["BitsAndBytesLinearQuant4bit", "Quantise"]
