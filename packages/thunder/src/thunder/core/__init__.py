"""The parts of the core under the names that extensions know them by."""

from thunder.core import devices, dtypes, prims, proxies, pytree, symbol, trace, transforms

__all__ = ["devices", "dtypes", "prims", "proxies", "pytree", "symbol", "trace", "transforms"]
