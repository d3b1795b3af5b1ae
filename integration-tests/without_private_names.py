"""Run a program where PyTorch lacks names; given are, as JSON, the names, modules to import before, the program."""

import contextlib
import importlib
import json
import sys

names, modules, program = json.loads(sys.argv[1])
for module in modules:  # PyTorch's own, which may need the names, too
    with contextlib.suppress(ImportError):
        importlib.import_module(module)
for name in sorted(names, reverse=True):
    parts = name.split(".")
    count = max(c for c in range(1, len(parts)) if ".".join(parts[:c]) in sys.modules)
    place = sys.modules[".".join(parts[:count])]
    for part in parts[count:-1]:
        place = getattr(place, part)
    with contextlib.suppress(AttributeError, TypeError):  # of C, which stays
        delattr(place, parts[-1])
    sys.modules.pop(name, None)
exec(program)
