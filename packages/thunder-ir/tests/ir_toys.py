"""A few operations to write programs with: this package knows none."""

from __future__ import annotations

from typing import Any

from thunder_ir import Language, Namespace, OpTags, Symbol, TensorProxy, dtypes, number_proxy, value_of

TOYS = Namespace("toys", "ir_toys")
language = Language("toys")


def _like(*operands: Any) -> TensorProxy:
    return next(o for o in operands if isinstance(o, TensorProxy)).like()


def _first(a: TensorProxy, /, *args: Any, **kwargs: Any) -> TensorProxy:
    return a.like()


def _prim(name: str, *tags: Any, meta: Any = _like, method: str = "") -> Symbol:
    symbol = Symbol(name, TOYS, meta=meta, tags=frozenset(tags), language=language)
    if method:
        language.method(method)(symbol)
    return symbol


exp = _prim("exp", OpTags.ELEMENTWISE)
tanh = _prim("tanh", OpTags.ELEMENTWISE)
add = _prim("add", OpTags.ELEMENTWISE, method="add")
mul = _prim("mul", OpTags.ELEMENTWISE, method="mul")
draw = _prim("draw", OpTags.RANDOM)
keep = _prim("keep", OpTags.DONT_DCE, meta=lambda a: None)
view = _prim("view", OpTags.VIEW)
write = _prim("write", OpTags.IN_PLACE)
free = _prim("free", OpTags.FREES, meta=lambda *a: None)
split = _prim("split", meta=lambda a: (a.like(), a.like()))
describe = _prim("describe", meta=_first)
cast = _prim("cast", meta=lambda a: a.like(dtype=dtypes.float64))
number_add = _prim("number_add", meta=lambda a, b: number_proxy(value_of(a) + value_of(b)), method="number_add")


def _square_of_exp(a: TensorProxy) -> TensorProxy:
    e = exp(a)
    return mul(e, e)


def _noise(a: TensorProxy) -> TensorProxy:
    return add(a, draw(a))


def _nested(a: TensorProxy) -> tuple[TensorProxy, TensorProxy]:
    return a, square_of_exp(tanh(a))


square_of_exp = Symbol("square_of_exp", TOYS, decomposition=_square_of_exp, language=language)
noise = Symbol("noise", TOYS, decomposition=_noise, language=language)
nested = Symbol("nested", TOYS, decomposition=_nested, language=language)
