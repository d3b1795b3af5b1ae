"""A backend of torch.compile. Re-exports :mod:`thunder_fx`."""

try:
    from thunder_fx import *  # noqa: F403
except ImportError as error:
    raise ImportError("thunder.dynamo needs thunder-fx: pip install 'thunder-jit[fx]'") from error
