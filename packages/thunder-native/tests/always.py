"""A plugin of pytest: native code makes every call that it can, of every program, whichever executors it names.

PYTHONPATH=packages/thunder-native/tests pytest -p always packages/thunder-executors-llvm/tests
"""

from thunder_executors import add_always_executor, remove_default_executor
from thunder_native import NativeExecutor, executor

remove_default_executor(executor)
add_always_executor(NativeExecutor(smallest_region=1, always=True))
