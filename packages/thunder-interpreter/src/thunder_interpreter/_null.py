"""Values that stand for the absence of a value."""

from typing import Final


class Null:
    """The absence of a value: an unbound local, or the empty slot below a callable."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "<NULL>"


NULL: Final = Null()
NOTHING: Final = Null()  # what a protocol returns that has put its effect in place itself, and pushes nothing
