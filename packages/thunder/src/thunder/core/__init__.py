"""The parts of the core under the names that extensions know them by."""

from thunder.core import devices, dtypes, options, prims, proxies, pytree, symbol, trace, transforms

__all__ = ["devices", "dtypes", "options", "prims", "proxies", "pytree", "symbol", "trace", "transforms"]
