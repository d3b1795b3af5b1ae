"""Who runs the operations of a program: executors, their discovery, and the passes that prepare a program to run."""

from thunder_executors._version import __version__
from thunder_executors.ad_hoc import TemporaryExecutor, single_op_executor
from thunder_executors.claim import Refusal, claim
from thunder_executors.errors import ExecutorError, UnavailableError, UnclaimedError
from thunder_executors.executor import Executor, OperatorExecutor
from thunder_executors.finish import runnable
from thunder_executors.free import free_after_last_use
from thunder_executors.fuse import fuse
from thunder_executors.fusion import FusionExecutor, Region, cost_in_regions, for_all_of, partition, who_gains
from thunder_executors.gradients import grad_rule, provide_gradient_adapter
from thunder_executors.implementation import Arguments, Declined, Finish, Implementation, arguments
from thunder_executors.into import compute_into_inputs
from thunder_executors.library import Library
from thunder_executors.memory import MemoryChange, memory_changes, peak_bytes
from thunder_executors.operators import provide_language_of_operators
from thunder_executors.order import order_for_memory
from thunder_executors.paths import find_path
from thunder_executors.registry import (
    Registry,
    add_always_executor,
    add_default_executor,
    add_executor_lists,
    configure_executors,
    deregister_executor,
    get_all_executors,
    get_always_executors,
    get_default_executors,
    get_executor,
    is_installed,
    register_executor,
    remove_always_executor,
    remove_default_executor,
    replacements,
    resolve_executors,
    set_always_executors,
    set_default_executors,
)
from thunder_executors.runs import calls_of, join_runs
from thunder_executors.taking import takes_dtypes, takes_tensors
from thunder_executors.transform import execution_traces, to_callable, transform_for_execution

__all__ = [
    "Arguments", "Declined", "Executor", "ExecutorError", "Finish", "FusionExecutor", "Implementation", "Library",
    "MemoryChange", "OperatorExecutor", "Refusal", "Region", "Registry", "TemporaryExecutor", "UnavailableError",
    "UnclaimedError", "__version__", "add_always_executor", "add_default_executor", "add_executor_lists", "arguments",
    "calls_of", "claim", "compute_into_inputs", "configure_executors", "cost_in_regions", "deregister_executor",
    "execution_traces", "find_path", "for_all_of", "free_after_last_use", "fuse", "get_all_executors",
    "get_always_executors", "get_default_executors", "get_executor", "grad_rule", "is_installed", "join_runs",
    "memory_changes", "order_for_memory", "partition", "peak_bytes", "provide_gradient_adapter",
    "provide_language_of_operators", "register_executor", "remove_always_executor", "remove_default_executor",
    "replacements", "resolve_executors", "runnable", "set_always_executors", "set_default_executors",
    "single_op_executor", "takes_dtypes", "takes_tensors", "to_callable", "transform_for_execution", "who_gains",
]  # fmt: skip
