"""Handlers, a module per family of opcodes. Importing this package registers all of them."""

from thunder_interpreter.opcodes import (  # noqa: F401
    access,
    calls,
    containers,
    exceptions,
    flow,
    functions,
    generators,
    matching,
    operators,
    python312,
    python313,
    python314,
    stack,
    variables,
)
