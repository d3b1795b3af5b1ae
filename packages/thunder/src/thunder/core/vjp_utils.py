"""What a forward program keeps for its backward program."""

try:
    from thunder_examine import get_saved_for_backward_tensors
except ImportError as error:
    raise ImportError("thunder.core.vjp_utils needs thunder-examine: pip install 'thunder-jit[examine]'") from error

__all__ = ["get_saved_for_backward_tensors"]
