"""What a kernel refuses."""


class KernelError(ValueError):
    """The arguments of a kernel do not fit together; the message says what was expected and what came."""
