"""Results that the computation makes of others of its results, as lines of Python."""

from __future__ import annotations

from thunder_guards._codegen.generated import INDENT, Generated, Lines
from thunder_guards.program import Program
from thunder_guards.templates import proxies_of
from thunder_ir import Trace, literal
from thunder_torch.links import ResultView


def result_views(program: Program, computation: Trace) -> dict[int, ResultView]:
    """Return how results of a computation view others, by their places.

    Args:
        program: whose computation. Its views that are not among the results are left out.
        computation: as it is given to autograd, with its inputs in the order in which they are passed.
    """
    inputs = {p.name: i for i, p in enumerate(computation.inputs)}
    results = {p.name: i for i, p in enumerate(program.computation.output)}
    made = {}
    for name, template in program.views.items():
        parts = list({p.name: p for p in proxies_of(template)})
        given = [n for n in parts if n in inputs]
        others = [n for n in parts if n not in inputs]
        context = Lines(program).context
        text = f"def view({', '.join([*given, *others])}):\n{INDENT}return {literal(template, context)}\n"
        make = Generated(text, context, "view").compile({})
        made[results[name]] = ResultView(make, tuple([inputs[n] for n in given]), tuple([results[n] for n in others]))
    return made
