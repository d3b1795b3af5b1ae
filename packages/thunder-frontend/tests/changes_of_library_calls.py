"""Changes to what imports, helpers of the standard library and classes made inside of programs depend on."""

# ruff: noqa: E501
import types

from changes import case

case(
    "calls: global value float('nan') -float('nan')",
    "v3 = float('nan')",
    "y = y * (len(repr(v3)) + (1 if v3 is None else 0) + (3 if v3 == v3 else 4)) + (1.0 / math.copysign(1, v3) if isinstance(v3, float) else 0)",
    "v3 = -float('nan')",
    "v3 = float('nan')",
)
case(
    "calls: argument value frozenset([1]) frozenset([True])",
    "NAMED['v20'] = frozenset([1])",
    "y = y * (len(repr(v20)) + (1 if v20 is None else 0) + (3 if v20 == v20 else 4)) + (1.0 / math.copysign(1, v20) if isinstance(v20, float) else 0)",
    "NAMED['v20'] = frozenset([True])",
    "NAMED['v20'] = frozenset([1])",
)
case(
    "calls: reload",
    "import sys\nm1 = types.ModuleType('m1x')\nexec('def f(v):\\n    return v * 2', m1.__dict__)\nsys.modules['m1x'] = m1",
    "import m1x\ny = m1x.f(y)",
    "exec('def f(v):\\n    return v * 3', m1.__dict__)",
    "m2_ = types.ModuleType('m1x'); m2_.f = lambda v: v * 4; sys.modules['m1x'] = m2_",
)
case(
    "calls: from import",
    "import sys\nm3_ = types.ModuleType('m3x')\nm3_.k = 2.0\nsys.modules['m3x'] = m3_",
    "from m3x import k\ny = y * k",
    "m3_.k = 3.0",
    "sys.modules['m3x'] = types.SimpleNamespace(k=4.0)",
)
case(
    "calls: importlib",
    "import sys, importlib\nm4_ = types.ModuleType('m4x')\nm4_.k = 2.0\nsys.modules['m4x'] = m4_",
    "y = y * importlib.import_module('m4x').k",
    "m4_.k = 3.0",
    "sys.modules['m4x'] = types.SimpleNamespace(k=4.0)",
)
case(
    "calls: nonlocal counter",
    "def _():\n    n = 0\n    def inc():\n        nonlocal n\n        n += 1\n        return n\n    return inc\ninc6 = _()",
    "y = y * inc6()",
    "pass",
    "inc6 = _()",
)
case(
    "calls: lru_cache global",
    "k10 = 2.0\n@functools.lru_cache\ndef f10(n):\n    return n * k10",
    "y = y * f10(3)",
    "k10 = 3.0",
    "f10.cache_clear()",
)
case(
    "calls: cache by names",
    "k10b = 2.0\n@functools.cache\ndef f10b(a, b=1):\n    return a * b * k10b",
    "y = y * f10b(3, b=2) * f10b(2)",
    "k10b = 3.0",
    "f10b.cache_clear()",
)
case(
    "calls: cache method",
    "class A11:\n    k = 2.0\n    @functools.lru_cache(None)\n    def f(s):\n        return s.k\na11_ = A11()",
    "y = y * a11_.f()",
    "A11.k = 3.0",
    "A11.f.cache_clear()",
)
case(
    "calls: singledispatch",
    "@functools.singledispatch\ndef f12(a):\n    return 2.0\na12_ = 3",
    "y = y * f12(a12_)",
    "f12.register(int, lambda a: 3.0)",
    "a12_ = 'x'",
    "f12.register(str, lambda a: 5.0)",
)
case(
    "calls: decorator closure list",
    "hooks14 = []\ndef deco14(f):\n    def w(v):\n        v = f(v)\n        for h in hooks14:\n            v = h(v)\n        return v\n    return w\n@deco14\ndef f14(v):\n    return v * 2",
    "y = f14(y)",
    "hooks14.append(lambda v: v + 1)",
    "hooks14.append(lambda v: v * 3)",
    "hooks14.reverse()",
    "hooks14.clear()",
)
case(
    "calls: partialmethod",
    "class A15:\n    k = 2.0\n    def f(s, n):\n        return s.k * n\n    g = functools.partialmethod(f, 3)\na15_ = A15()",
    "y = y * a15_.g()",
    "A15.k = 3.0",
    "A15.f = lambda s, n: n",
    "A15.g = functools.partialmethod(A15.f, 5)",
)
case(
    "calls: operator.attrgetter",
    "a16_ = types.SimpleNamespace(k=2.0)",
    "y = y * operator.attrgetter('k')(a16_)",
    "a16_.k = 3.0",
)
case(
    "calls: methodcaller",
    "class A18:\n    k = 2.0\n    def f(s):\n        return s.k\na18_ = A18()",
    "y = y * operator.methodcaller('f')(a18_)",
    "A18.k = 3.0",
    "A18.f = lambda s: 9.0",
)
case(
    "calls: zip enumerate",
    "l21 = [1.0, 2.0]\nk21 = [3.0, 4.0]",
    "for i, (a, b) in enumerate(zip(l21, k21)):\n    y = y * a + b * i",
    "l21[0] = 5.0",
    "k21.pop()",
    "k21.append(7.0)",
)
case(
    "calls: dir",
    "a27_ = types.SimpleNamespace(a=2.0)",
    "y = y * (2 if 'b' in dir(a27_) else 3)",
    "a27_.b = 9.0",
    "del a27_.b",
)
case(
    "calls: globals()",
    "k28 = 2.0",
    "y = y * globals()['k28']",
    "k28 = 3.0",
    "globals()['k28'] = 4.0",
)
case(
    "calls: globals in",
    "",
    "y = y * (2 if 'k29' in globals() else 3)",
    "k29 = 3.0",
    "del k29",
)
case(
    "calls: match class",
    "class P33:\n    __match_args__ = ('a', 'b')\n    def __init__(s, a, b):\n        s.a, s.b = a, b\np33 = P33(1.0, 2.0)",
    "match p33:\n    case P33(a, b):\n        y = y * a + b",
    "p33.b = 3.0",
    "P33.__match_args__ = ('b', 'a')",
    "p33 = P33(5.0, 1.0)",
)
case(
    "calls: typing protocol",
    "import typing\n@typing.runtime_checkable\nclass P50(typing.Protocol):\n    k: float\nclass A50:\n    pass\na50_ = A50()",
    "y = y * (2 if isinstance(a50_, P50) else 3)",
    "a50_.k = 1.0",
    "del a50_.k",
    "A50.k = 3",
)
case(
    "calls: contextmanager",
    "k54 = 2.0\n@contextlib.contextmanager\ndef c54():\n    yield k54",
    "with c54() as k:\n    y = y * k",
    "k54 = 3.0",
)
case(
    "calls: class in program inherits",
    "class A56:\n    k = 2.0",
    "class L(A56):\n    pass\ny = y * L().k",
    "A56.k = 3.0",
    "A56.__init_subclass__ = classmethod(lambda c: setattr(c, 'k', 9.0))",
)
case(
    "calls: seed",
    "",
    "y = y * torch.initial_seed()",
    "torch.manual_seed(1)",
    "torch.manual_seed(2)",
)
case(
    "calls: property setter",
    "class C65:\n    def __init__(s):\n        s._k = 2.0\n    @property\n    def k(s):\n        return s._k\n    @k.setter\n    def k(s, v):\n        s._k = v * 2\nc65 = C65()",
    "c65.k = c65.k + 1 if c65.k < 3 else 1.0\ny = y * c65.k",
    "c65._k = 0.5",
    "C65.k = property(lambda s: 7.0, lambda s, v: None)",
)
case(
    "calls: slots class inheritance",
    "class A66:\n    __slots__ = ('a',)\nclass B66(A66):\n    pass\nb66 = B66()\nb66.a = 2.0\nb66.c = 3.0",
    "y = y * b66.a * b66.c",
    "b66.a = 5.0",
    "b66.c = 5.0",
    "B66.a = 7.0",
)
case(
    "calls: type name",
    "class A68:\n    pass\na68 = A68()",
    "y = y * len(type(a68).__name__) + len(A68.__module__)",
    "A68.__name__ = 'Qwerty'",
    "A68.__module__ = 'x'",
    "A68.__qualname__ = 'x'",
)
case(
    "calls: dataclass fields",
    "@dataclasses.dataclass\nclass A71:\n    a: float = 1.0\na71 = A71()",
    "for f in dataclasses.fields(a71):\n    y = y * 2 + getattr(a71, f.name)",
    "a71.a = 3.0",
    "A71 = dataclasses.make_dataclass('A71', [('a', float, 1.0), ('b', float, 2.0)]); a71 = A71()",
)
MODULE = "m{0} = types.ModuleType('m{0}')\nm{0}.k = 2.0\nm{0}.f = lambda v: v * 2\nclass A{0}(types.ModuleType):\n    k = property(lambda s: 5.0)\n    f = property(lambda s: lambda v: v * 3)\n    z = property(lambda s: 7.0)\nclass B{0}(types.ModuleType):\n    def __getattribute__(s, n):\n        return 9.0 if n in 'kz' else object.__getattribute__(s, n)\nclass C{0}(types.ModuleType):\n    def __getattr__(s, n):\n        return 4.0"


def cpython_forgets_classes_of_modules():
    """Whether code that has read an attribute of a module reads it so when the module has another class: CPython 3.14's does."""
    module, derived = types.ModuleType("m"), type("M", (types.ModuleType,), {"k": property(lambda module: 5.0)})
    module.k = 2.0
    read = [module.k for _ in range(100)]
    for module.__class__ in [types.ModuleType] * 100 + [derived]:
        read.append(module.k)
    return read[-1] != 5.0


READ = ((74, "y = y * m74.k"), (75, "y = m75.f(y)"))
for number, body in (
    *(() if cpython_forgets_classes_of_modules() else READ),
    (76, "y = y * getattr(m76, 'z', 2.0)"),
):
    case(
        f"calls: class of a module {number}",
        MODULE.format(number),
        body,
        *(f"m{number}.__class__ = {name}{number}" for name in "ABC"),
        f"m{number}.__class__ = types.ModuleType",
    )
case(
    "calls: module of PyTorch that computes attributes",
    "",
    "y = y * (2 if torch.backends.opt_einsum.enabled else 3)",
    "torch.backends.opt_einsum.enabled = False",
    "torch.backends.opt_einsum.enabled = True",
)
