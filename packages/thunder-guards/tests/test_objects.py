"""Guards of which objects a call is given."""

import pytest

from thunder_guards import NotHeldGuard, Source
from thunder_ir import Context

ARGS = Source(None, "root", "args")


class Thing:
    """An object that is equal to itself alone."""


@pytest.mark.parametrize("count", [1, 2])
def test_objects_of_the_call_are_none_of_those_that_are_held(count):
    held = [Thing(), Thing()]
    guard, context = NotHeldGuard(tuple([Source(ARGS, "item", i) for i in range(count)]), held), Context()
    holds = eval(f"lambda args: {guard.condition(context)}", context.globals)
    others = tuple([Thing() for _ in range(count)])
    assert holds(others) and guard.failure({"args": others}) is None
    for one in held:
        given = (*others[1:], one)
        assert not holds(given)
        assert guard.failure({"args": given}).startswith(
            f"args[{count - 1}] is an object that the program reads elsewhere"
        )
    assert guard.failure({"args": ()}).startswith("args[0] is gone")
