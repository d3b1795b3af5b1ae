"""The extension API: executors, and what they run."""

from thunder_executors import (
    Executor,
    FusionExecutor,
    OperatorExecutor,
    TemporaryExecutor,
    add_always_executor,
    add_default_executor,
    add_executor_lists,
    deregister_executor,
    get_all_executors,
    get_always_executors,
    get_default_executors,
    get_executor,
    register_executor,
    remove_always_executor,
    remove_default_executor,
    resolve_executors,
    set_always_executors,
    set_default_executors,
    single_op_executor,
)

__all__ = [
    "Executor", "FusionExecutor", "OperatorExecutor", "TemporaryExecutor", "add_always_executor",
    "add_default_executor", "add_executor_lists", "deregister_executor", "get_all_executors", "get_always_executors",
    "get_default_executors", "get_executor", "register_executor", "remove_always_executor", "remove_default_executor",
    "resolve_executors", "set_always_executors", "set_default_executors", "single_op_executor",
]  # fmt: skip
