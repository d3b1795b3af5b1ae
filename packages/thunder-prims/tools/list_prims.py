"""Write the table of prims into README.md, between its two marks.

python packages/thunder-prims/tools/list_prims.py           # writes
python packages/thunder-prims/tools/list_prims.py --check   # fails where the table is old
"""

from __future__ import annotations

import inspect
import sys
from pathlib import Path

import thunder_prims
from thunder_autograd import jvp_rule, vjp_rule
from thunder_ir import OpTags, Symbol
from thunder_vmap import batching_rule

README = Path(__file__).parents[1] / "README.md"
BEGIN, END = "<!-- prims: written by tools/list_prims.py -->\n", "<!-- end of prims -->\n"


def families() -> dict[str, list[Symbol]]:
    """The symbols of the package by the module that they stand in."""
    found: dict[str, list[Symbol]] = {}
    for name, symbol in sorted(vars(thunder_prims).items()):
        if isinstance(symbol, Symbol) and symbol.name == name:
            body = symbol.meta or symbol.decomposition
            found.setdefault(body.__module__.rpartition(".")[2], []).append(symbol)
    return dict(sorted(found.items()))


def row(symbol: Symbol) -> str:
    """One line of the table."""
    body = symbol.meta or symbol.decomposition
    call = f"{symbol.name}({', '.join(inspect.signature(body).parameters)})"
    missing = "–" if symbol.is_prim else "its prims'"
    constant = OpTags.CONSTANT_FOR_DERIVATIVE in symbol.tags
    marks = ["constant" if constant else "yes" if symbol in table else missing for table in (vjp_rule, jvp_rule)]
    marks.append("yes" if symbol in batching_rule else missing)
    sentence = symbol.doc.strip().partition("\n\n")[0].replace("\n", " ").replace("|", "\\|")
    sentence = " ".join(sentence.split()).replace(":data:", "").replace(":func:", "").replace("``", "`")
    return f"| `{call}` | {sentence} | {' | '.join(marks)} |"


def table() -> str:
    """The whole table, a section per family."""
    parts = []
    for family, symbols in families().items():
        summary = sys.modules[f"thunder_prims.{family}"].__doc__.strip().partition("\n")[0]
        parts += [f"### {family}\n", f"{summary}\n".replace("``", "`"), "| prim | what it is | vjp | jvp | batching |"]
        parts += ["|---|---|---|---|---|", *map(row, symbols), ""]
    return "\n".join(parts)


def main(arguments: list[str]) -> int:
    """Write the table, or compare it."""
    text = README.read_text()
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    wanted = f"{head}{BEGIN}\n{table()}\n{END}{tail}"
    if "--check" in arguments:
        if wanted != text:
            sys.stderr.write("the table of prims in README.md is old: run tools/list_prims.py\n")
        return int(wanted != text)
    README.write_text(wanted)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
