"""Parallelism for compiled programs. Re-exports :mod:`thunder_distributed`."""

try:
    from thunder_distributed import *  # noqa: F403
except ImportError as error:
    raise ImportError(
        "thunder.distributed needs thunder-distributed: pip install 'thunder-jit[distributed]'"
    ) from error
