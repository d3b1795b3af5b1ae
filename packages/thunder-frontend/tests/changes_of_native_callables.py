"""Changes to what callables in C read that code in C calls: partials, getters, and methods of containers."""

from changes import case

HELD = "class O{0}: pass\nA{0}, B{0} = O{0}(), O{0}()\nA{0}.v, B{0}.v = 2.0, 7.0\nL{0} = {{'v': 2.0, 0.0: 2.0}}\n"


def native(number: int, name: str, setup: str, body: str, *changes: str) -> None:
    """Add a case that has objects ``A`` and ``B`` with an attribute ``v``, and a dict ``L``, each with its number."""
    case(f"native callables: {name}", HELD.format(number) + setup, body, *changes)


FACTORIES = {
    "partial of getattr": ("functools.partial(getattr, A{0}, 'v')", "A{0}.v = 3.0"),
    "partial of a partial": ("functools.partial(functools.partial(getattr, A{0}), 'v')", "A{0}.v = 3.0"),
    "partial of a getter": ("functools.partial(operator.attrgetter('v'), A{0})", "A{0}.v = 3.0"),
    "partial of an item getter": ("functools.partial(operator.itemgetter('v'), L{0})", "L{0}['v'] = 3.0"),
    "partial of a caller": ("functools.partial(operator.methodcaller('get', 'v'), L{0})", "L{0}['v'] = 3.0"),
    "partial of a method": ("functools.partial(L{0}.get, 'v')", "L{0}['v'] = 3.0"),
    "method": ("L{0}.__len__", "L{0}['w'] = 3.0"),
    "method made of a getter": ("types.MethodType(operator.attrgetter('v'), A{0})", "A{0}.v = 3.0"),
    "slot": ("functools.partial(A{0}.__getattribute__, 'v')", "A{0}.v = 3.0"),
    "attributes": ("functools.partial(operator.getitem, vars(A{0}), 'v')", "A{0}.v = 3.0"),
}
for number, (name, (made, change)) in enumerate(FACTORIES.items(), 100):
    native(
        number,
        f"factory, {name}",
        f"G{number} = {made.format(number)}\nD{number} = collections.defaultdict(G{number})",
        f"d = collections.defaultdict(G{number})\ny = y * d['a'] * d.__getitem__('b') * D{number}['c']\n"
        f"del D{number}['c']",
        change.format(number),
        f"D{number}.default_factory = float",
    )

PARTIAL = "G{0} = functools.partial(getattr, A{0}, 'v')\n"
SPECIAL = {
    "__call__": ("functools.partial(getattr, A{0}, 'v')", "P{0}()", "A{0}.v = 3.0"),
    "__len__": ("L{0}.__len__", "len(P{0})", "L{0}['w'] = 1"),
    "__bool__": ("functools.partial(bool, L{0})", "(2 if P{0} else 3)", "L{0}.clear()"),
    "__eq__": ("L{0}.__eq__", "(2 if P{0} == {{}} else 3) * (2 if {{}} in [P{0}] else 3)", "L{0}.clear()"),
    "__add__": ("L{0}.get", "(P{0} + 'v')", "L{0}['v'] = 3.0"),
    "__radd__": ("L{0}.get", "sum([P{0}])", "L{0}[0] = 3.0"),
    "__lt__": ("L{0}.get", "(2 if P{0} < 'v' else 3) * (2 if (P{0},) < ('v',) else 3)", "L{0}['v'] = 0.0"),
    "__iter__": ("L{0}.__iter__", "len(list(P{0})) * len([v for v in P{0}])", "L{0}['w'] = 3.0"),
    "__contains__": ("L{0}.__contains__", "(2 if 'w' in P{0} else 3)", "L{0}['w'] = 1"),
    "__getitem__": ("L{0}.__getitem__", "P{0}['v'] * operator.itemgetter('v')(P{0})", "L{0}['v'] = 3.0"),
    "__class_getitem__": ("L{0}.get", "type(P{0})['v']", "L{0}['v'] = 3.0"),
    "__getattr__": ("L{0}.get", "P{0}.v", "L{0}['v'] = 3.0"),
    "__float__": ("functools.partial(getattr, A{0}, 'v')", "float(P{0}) * math.sqrt(P{0})", "A{0}.v = 3.0"),
    "__index__": ("functools.partial(L{0}.get, 'i', 1)", "[1.0, 5.0, 7.0][P{0}] * len(range(P{0}))", "L{0}['i'] = 2"),
    "__round__": ("functools.partial(getattr, A{0}, 'v')", "round(P{0})", "A{0}.v = 3.0"),
    "__ceil__": ("functools.partial(getattr, A{0}, 'v')", "math.ceil(P{0})", "A{0}.v = 3.0"),
    "__str__": ("functools.partial(L{0}.get, 's', '2')", "float(f'{{P{0}}}') * float('%s' % P{0})", "L{0}['s'] = '3'"),
    "__repr__": ("functools.partial(L{0}.get, 's', '2')", "len(repr([P{0}]))", "L{0}['s'] = '333'"),
    "__hash__": ("functools.partial(L{0}.get, 'i', 1)", "hash(P{0}) * len({{P{0}, 1}})", "L{0}['i'] = 2"),
    "__dir__": ("functools.partial(list, L{0})", "(2 if 'w' in map(str, dir(P{0})) else 3)", "L{0}['w'] = 1"),
    "__length_hint__": ("L{0}.__len__", "operator.length_hint(P{0})", "L{0}['w'] = 1"),
    "__copy__": ("functools.partial(getattr, A{0}, 'v')", "copy.copy(P{0})", "A{0}.v = 3.0"),
    "__enter__": (
        "functools.partial(getattr, A{0}, 'v')\n    def __exit__(s, *a): pass",
        "contextlib.ExitStack().enter_context(P{0})",
        "A{0}.v = 3.0",
    ),
    "__next__": (
        "functools.partial(getattr, A{0}, 'v')\n    def __iter__(s): return s",
        "next(P{0}) * list(itertools.islice(P{0}, 1))[0] * next(v for v in P{0})",
        "A{0}.v = 3.0",
    ),
}
for number, (name, (method, used, change)) in enumerate(SPECIAL.items(), 120):
    held = f"class P(object):\n    {name} = {method.format(number)}\nP{number} = P()"
    native(number, name, held, f"y = y * {used.format(number)}", change.format(number))

native(
    150, "manager", PARTIAL.format(150) + "class P150:\n    __enter__ = G150\n    __exit__ = L150.get\n"
    "    __exit__ = lambda s, *a: None\nP150 = P150()",
    "with P150 as v:\n    y = y * v", "A150.v = 3.0",
)  # fmt: skip
native(
    151, "__new__", "class P151:\n    __new__ = L151.get\nL151[P151] = A151",
    "y = y * P151().v", "A151.v = 3.0", "L151[P151] = B151",
)  # fmt: skip
native(
    152, "__instancecheck__",
    "class M152(type):\n    __instancecheck__ = L152.get\nclass P152(metaclass=M152): pass\nL152[5] = True",
    "y = y * (2 if isinstance(5, P152) else 3)", "L152[5] = False",
)  # fmt: skip
native(
    153, "__init_subclass__",
    PARTIAL.format(153) + "class P153:\n    def __init_subclass__(cls):\n        cls.q = G153()",
    "class Q(P153):\n    pass\ny = y * Q.q", "A153.v = 3.0",
)  # fmt: skip
native(
    154, "__missing__", PARTIAL.format(154) + "class P154(dict):\n    __missing__ = staticmethod(L154.get)\nP154 = P154()",
    "y = y * P154['v']", "L154['v'] = 3.0", "P154['v'] = 4.0",
)  # fmt: skip
native(
    155, "JSON", "import json",
    "y = y * float(json.dumps([A155], default=operator.attrgetter('v'))[1:-1])\n"
    "y = y * json.loads('[1.5]', parse_float=L155.get)[0]", "A155.v = 3.0", "L155['1.5'] = 3.0",
)  # fmt: skip
native(
    156, "JSON by a function", PARTIAL.format(156) + "import json",
    "y = y * json.loads('{\"a\": 1}', object_hook=lambda d: G156())", "A156.v = 3.0",
)  # fmt: skip
native(157, "context variable", "import contextvars\nV157 = contextvars.ContextVar('v', default=2.0)",
    "y = y * collections.defaultdict(V157.get)[0]", "V157.set(3.0)",
)  # fmt: skip
native(158, "cache", PARTIAL.format(158), "y = y * functools.lru_cache(G158)()", "A158.v = 3.0")
native(159, "path of the system", "import os\nclass P159:\n    __fspath__ = functools.partial(L159.get, 'p', 'aa')",
    "y = y * len(os.fspath(P159())) * len(os.path.join(P159(), 'x'))", "L159['p'] = 'bbb'",
)  # fmt: skip
native(160, "namespaces", "S160 = types.SimpleNamespace(t=types.SimpleNamespace(v=2.0))",
    "y = y * len(repr(S160)) * (2 if S160 == types.SimpleNamespace(t=types.SimpleNamespace(v=2.0)) else 3)",
    "S160.t.v = 3.0", "S160.t.w = 3.0",
)  # fmt: skip
native(161, "namespace of a class", "", "T = type('T', (O161,), L161)\ny = y * T.v * T().v", "L161['v'] = 3.0")
native(162, "keys", "L162.update({1: 2, 2: 3})",
    "y = y * sorted([1, 2], key=L162.get)[0] * max([1, 2], key=L162.get) * len(list(itertools.groupby([1, 2], L162.get)))",
    "L162[1] = 9", "L162[1] = 3",
)  # fmt: skip
native(163, "functions of iterables", "", "y = y * sum(map(L163.get, ['v'])) * sum(itertools.starmap(getattr, [(A163, 'v')]))\n"
    "y = y * len(list(filter(L163.get, ['v', 0.0]))) * sum(itertools.accumulate([0.0, 0.0], L163.get))\n"
    "y = y * next(iter(functools.partial(getattr, A163, 'v'), 0.0))", "A163.v = 3.0", "L163['v'] = 0.0", "L163[0.0] = 5.0",
)  # fmt: skip

GETTERS = "class P{0}({1}):\n    w = property(operator.attrgetter('v'))\n    u = property(lambda s: K{0} * N{0}[0])\nP{0} = P{0}({2})"
DERIVED = {
    "object": "", "list": "[2.0]", "dict": "{0: 2.0}", "tuple": "(2.0,)", "float": "2.0", "int": "2", "str": "'a'", "set": "{1}",
    "collections.OrderedDict": "{0: 2.0}", "collections.deque": "[1.0]", "Exception": "2.0", "types.SimpleNamespace": "",
    "collections.namedtuple('T', 'q')": "2.0", "functools.partial": "len",
}  # fmt: skip
for number, (base, made) in enumerate(DERIVED.items(), 170):
    native(
        number,
        f"properties of what is derived from {base}",
        f"K{number}, N{number} = 2.0, [torch.tensor(2.0)]\n"
        + GETTERS.format(number, base, made)
        + f"\nP{number}.v = 2.0",
        f"y = y * P{number}.w * P{number}.u",
        f"P{number}.v = 3.0",
        f"K{number} = 3.0",
        f"N{number}[0].add_(1)",
        f"type(P{number}).w = property(lambda s: 7.0)",
        f"type(P{number}).u = 5.0",
    )
native(
    190, "attributes that are items",
    "class P190(dict):\n    def __getattr__(s, n): return s[n]\n    w = property(lambda s: s['a'] * 2)\nP190 = P190(a=1.0)",
    "y = y * P190.a + P190.w * len(P190) * P190.get('b', 5.0)", "P190['a'] = 3.0", "P190['b'] = 2.0",
)  # fmt: skip
