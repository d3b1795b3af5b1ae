"""Re-exports :mod:`thunder_ir.proxies` and the modules of proxies of numbers and tensors."""

from thunder_ir.number_proxies import *  # noqa: F403
from thunder_ir.proxies import *  # noqa: F403
from thunder_ir.tensor_proxies import *  # noqa: F403
