"""Reports: which operations a program is made of, what is saved for the backward program, and why."""

try:
    from thunder_examine import *  # noqa: F403
except ImportError as error:
    raise ImportError("thunder.examine needs thunder-examine: pip install 'thunder-jit[examine]'") from error
