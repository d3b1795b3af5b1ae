"""Changes to containers."""

# ruff: noqa: E501
from changes import case

for number, (name, body) in enumerate([
    ("items", "y = y * {0}[0] + {0}[-1]"), ("loop", "for v in {0}:\n    y = y * v"), ("sum", "y = y * sum({0})"), ("max", "y = y * max({0}) + min({0})"),
    ("sorted", "y = y * sorted({0})[0]"), ("slice", "y = y * sum({0}[::2])"), ("comprehension", "y = y * sum([v * 2 for v in {0} if v > 1])"),
    ("enumerate", "for i, v in enumerate({0}):\n    y = y * v + i"), ("zip", "for a, b in zip({0}, {0}):\n    y = y * a + b"), ("reversed", "for v in reversed({0}):\n    y = (y + 1) * v"),
    ("map", "for v in map(lambda v: v * 2, {0}):\n    y = y * v"), ("star", "y = y * (lambda *a: a[0] - len(a))(*{0})"), ("unpack", "a, *b = {0}\ny = y * a + len(b)"),
    ("equal", "y = y * 2 if {0} == [2.0, 3.0] else y"), ("in", "y = y * 2 if 3.0 in {0} else y"), ("index", "y = y * {0}.index(3.0)"), ("count", "y = y * {0}.count(3.0)"),
    ("plus", "y = y * len({0} + [1]) * ({0} * 2)[1]"), ("copy", "y = y * {0}.copy()[0] * list({0})[1] * tuple({0})[0]"), ("any", "y = y * 2 if any(v > 4 for v in {0}) else y"),
    ("truth", "y = y * 2 if {0} else y"), ("next", "y = y * next(iter({0}))"), ("chain", "for v in itertools.chain({0}, [2.0]):\n    y = y * v"), ("reduce", "y = y * functools.reduce(operator.mul, {0}, 1.0)"),
    ("match", "match {0}:\n    case [a, b]:\n        y = y * a\n    case [a, *rest]:\n        y = y - a"), ("text", "y = y * len(str({0}))"), ("join", "y = y * len(','.join(map(str, {0})))"), ("extend", "z = [1.0]\nz.extend({0})\nz += {0}\ny = y * z[1] + len(z)"),
    ("itemgetter", "y = y * operator.itemgetter(1)({0})"), ("dict from", "y = y * dict(enumerate({0}))[0]"), ("filter", "y = y * len(list(filter(lambda v: v > 2.5, {0})))"), ("deepcopy", "y = y * copy.deepcopy({0})[0]"),
    ("stack", "y = y * torch.tensor({0}).sum()"), ("print", "y = y + len(f'{{{0}}}')"), ("while", "i = 0\nwhile i < len({0}):\n    y = y * {0}[i]\n    i += 1"),
    ("pop of a copy", "z = list({0})\ny = y * z.pop()"), ("compare", "y = y + 1 if {0} < [3.0] else y"), ("set", "y = y * len(set({0}))"), ("vararg loop", "y = y * max(*{0}, 0.0)"),
    ("accumulate", "y = y * list(itertools.accumulate({0}))[-1]"), ("starmap", "y = y * sum(a * b for a, b in itertools.product({0}, {0}))"),
]):  # fmt: skip
    here = f"L{number}"
    case(f"list: {name}", f"{here} = [2.0, 3.0]", body.format(here), f"{here}[0] = 5.0", f"{here}.append(1.5)", f"{here} = [2.0, 3.0]", f"{here}[1] = 2.5",
         f"{here}.reverse()", f"{here}[0] = 2", f"del {here}[-1]", f"{here}.clear()")  # fmt: skip

for number, (name, body) in enumerate([
    ("item", "y = y * {0}['a']"), ("get", "y = y * {0}.get('b', 4.0)"), ("in", "y = y * 2 if 'b' in {0} else y"), ("loop", "for k in {0}:\n    y = y * {0}[k] + len(k)"),
    ("items", "for k, v in {0}.items():\n    y = y * v + len(k)"), ("values", "for v in {0}.values():\n    y = (y + 1) * v"), ("keys", "y = y * len(list({0}.keys())[0])"), ("len", "y = y * len({0})"),
    ("truth", "y = y * 2 if not {0} else y"), ("star", "y = y * (lambda a=1.0, c=2.0, **r: a * c + len(r))(**{0})"), ("merge", "y = y * ({{**{0}, 'z': 2.0}})['a'] * len({0} | {{}})"), ("copy", "y = y * dict({0})['a'] * {0}.copy()['a']"),
    ("first", "y = y * next(iter({0}.values()))"), ("equal", "y = y * 2 if {0} == {{'a': 2.0, 'cc': 3.0}} else y"), ("try", "try:\n    y = y * {0}['b']\nexcept KeyError:\n    y = y + 1"),
    ("match", "match {0}:\n    case {{'b': v}}:\n        y = y * v\n    case {{'a': v}}:\n        y = y + v"), ("comprehension", "y = y * sum({{k: v + 1 for k, v in {0}.items()}}.values())"), ("view sum", "y = y * sum({0}.values())"),
    ("keys set", "y = y + 1 if {0}.keys() == {{'a', 'cc'}} else y"), ("sorted", "y = y * {0}[sorted({0})[0]]"), ("list", "y = y * len(list({0})[-1])"), ("items in", "y = y * 2 if ('a', 2.0) in {0}.items() else y"),
    ("reversed", "for k in reversed({0}):\n    y = (y + len(k)) * {0}[k]"), ("text", "y = y * len(str({0}))"), ("itemgetter", "y = y * operator.itemgetter('a')({0})"), ("chain map", "y = y * collections.ChainMap({0}, {{'b': 1.5}})['b']"),
    ("pop default", "z = dict({0})\ny = y * z.pop('b', 2.5)"), ("max by", "y = y * len(max({0}, key={0}.get))"), ("update", "z = {{}}\nz.update({0})\ny = y * z['a']"), ("format", "y = y * len('{{a}}'.format(**{0}))"),
    ("enumerate values", "for i, v in enumerate({0}.values()):\n    y = y * v + i"), ("zip", "for k, v in zip({0}, {0}.values()):\n    y = y * v + len(k)"),
]):  # fmt: skip
    here = f"D{number}"
    case(f"dict: {name}", f"{here} = {{'a': 2.0, 'cc': 3.0}}", body.format(here), f"{here}['a'] = 5.0", f"{here}['b'] = 1.5", f"{here} = {{'cc': 3.0, 'a': 2.0}}",
         f"{here}['a'] = 2", f"del {here}['a']", f"{here}.clear()")  # fmt: skip

case(
    "nested",
    "N1 = {'a': [{'b': (1, [2.0])}]}",
    "y = y * N1['a'][0]['b'][1][0]",
    "N1['a'][0]['b'][1][0] = 3.0",
    "N1['a'][0]['b'] = (1, [4.0])",
    "N1['a'].insert(0, {'b': (0, [9.0])})",
)
case(
    "nested unseen",
    "N2 = [[1.0, [2.0]], {'a': [3.0]}]",
    "y = y * len(repr(N2))",
    "N2[0][1][0] = 22.25",
    "N2[1]['a'].append(4.0)",
)
case(
    "tensors in a list",
    "T1 = [tensor(1, 2, 3), tensor(4, 5, 6)]",
    "for t in T1:\n    y = y + t",
    "T1[0] = tensor(7, 7, 7)",
    "T1.append(tensor(1, 1, 1))",
    "T1.pop()",
    "T1[1] = T1[0]",
)
case(
    "stacked tensors",
    "T2 = [tensor(1, 2, 3), tensor(4, 5, 6)]",
    "y = y + torch.stack(T2).sum(0)",
    "T2[0] = tensor(7, 7, 7)",
    "T2.append(tensor(1, 1, 1))",
    "T2[1] = T2[0]",
)
case(
    "tensors in a dict",
    "T3 = {'a': tensor(1, 2, 3)}",
    "y = y + sum(T3.values())",
    "T3['a'] = tensor(7, 7, 7)",
    "T3['b'] = tensor(1, 1, 1)",
)
case(
    "tensor among others",
    "T4 = [1.0, tensor(1, 2, 3)]",
    "y = y * T4[0] + T4[1]",
    "T4[0] = tensor(7, 7, 7)",
    "T4[0] = 2",
    "T4[1] = 5",
)
case(
    "set",
    "S1 = {1, 2}",
    "y = y * (3 if 2 in S1 else 4) + len(S1)",
    "S1.add(3)",
    "S1.discard(2)",
    "S1 = {2, 3}",
    "S1.clear()",
)
case("set algebra", "S2 = {1, 2}", "y = y * len(S2 & {2, 3}) + sum(S2)", "S2.add(3)", "S2.discard(2)")
case("frozenset", "S3 = frozenset({1, 2})", "y = y * (3 if 2 in S3 else 4)", "S3 = frozenset({1})")
case(
    "deque",
    "Q1 = collections.deque([2.0, 3.0])",
    "y = y * Q1[0] + len(Q1)",
    "Q1.appendleft(4.0)",
    "Q1.pop()",
    "Q1[0] = 9.0",
)
case(
    "deque loop",
    "Q2 = collections.deque([2.0, 3.0])",
    "for v in Q2:\n    y = y * v",
    "Q2.appendleft(4.0)",
    "Q2.rotate(1)",
    "Q2[0] = 9.0",
)
case(
    "ordered dict",
    "Q3 = collections.OrderedDict(a=2.0, b=3.0)",
    "for v in Q3.values():\n    y = (y + 1) * v",
    "Q3.move_to_end('a')",
    "Q3['c'] = 4.0",
)
case(
    "default dict",
    "Q4 = collections.defaultdict(lambda: 2.0)",
    "y = y * Q4['a']",
    "Q4['a'] = 3.0",
    "Q4.clear(); Q4.default_factory = lambda: 7.0",
)
case("counter", "Q5 = collections.Counter('aab')", "y = y * Q5['a'] + Q5['z']", "Q5.update('a')", "Q5['z'] = 4")
case(
    "tuple",
    "U1 = (1.0, (2.0, [3.0]))",
    "y = y * U1[1][1][0] + U1[0]",
    "U1[1][1][0] = 4.0",
    "U1 = (1.0, (2.0, [5.0]))",
    "U1 = (1, (2.0, [5.0]))",
)
case(
    "range and slice",
    "U2, V2 = range(3), slice(0, 1)",
    "for i in U2:\n    y = y + i\ny = y + [1.0, 2.0][V2][0]",
    "U2 = range(4)",
    "V2 = slice(1, 2)",
)
case(
    "string",
    "U3 = 'ab'",
    "y = y * len(U3) + (1 if U3 == 'ab' else 2) + ord(U3[0])",
    "U3 = 'cd'",
    "U3 = 'abc'",
    "U3 = b'ab'",
)
case(
    "mapping proxy",
    "U4 = {'a': 2.0}\nP4 = types.MappingProxyType(U4)",
    "y = y * P4['a'] + len(P4)",
    "U4['a'] = 3.0",
    "U4['b'] = 3.0",
)
case(
    "aliased containers",
    "A1 = [2.0]\nA2 = A1",
    "y = y * A1[0] + A2[0] + (1 if A1 is A2 else 2)",
    "A1[0] = 3.0",
    "A2 = [3.0]",
    "A2[0] = 4.0",
)
case("bytearray", "A3 = bytearray(b'ab')", "y = y * A3[0] + len(A3)", "A3[0] = 3", "A3.append(4)")
case("array", "import array\nA4 = array.array('d', [2.0, 3.0])", "y = y * A4[0]", "A4[0] = 5.0")
case(
    "numpy array",
    "import numpy as np\nA5 = np.array([2.0, 3.0, 4.0])",
    "y = y * float(A5[0])",
    "A5[0] = 5.0",
    "A5 = np.array([7.0])",
)
case(
    "numpy to tensor",
    "import numpy as np\nA6 = np.array([2.0, 3.0, 4.0], dtype=np.float32)",
    "y = y * torch.from_numpy(A6)",
    "A6[0] = 5.0",
    "A6 = np.ones(3, dtype=np.float32)",
)
case(
    "numpy scalar",
    "import numpy as np\nA7 = np.float64(2.0)",
    "y = y * float(A7)",
    "A7 = np.float64(3.0)",
    "A7 = np.float32(3.0)",
)
case(
    "fraction", "import fractions\nA8 = fractions.Fraction(1, 2)", "y = y * float(A8)", "A8 = fractions.Fraction(3, 2)"
)
case(
    "context variable",
    "import contextvars\nA9 = contextvars.ContextVar('A9', default=2.0)",
    "y = y * A9.get()",
    "A9.set(3.0)",
    "A9.set(4.0)",
)
case("thread local", "import threading\nA10 = threading.local()\nA10.k = 2.0", "y = y * A10.k", "A10.k = 3.0")
case(
    "environment variable",
    "import os\nos.environ['THUNDER_SCENE'] = '2'",
    "y = y * float(os.environ['THUNDER_SCENE'])",
    "os.environ['THUNDER_SCENE'] = '3'",
    "os.environ.pop('THUNDER_SCENE', None)",
)
case(
    "getenv",
    "import os\nos.environ['THUNDER_SCENE2'] = '2'",
    "y = y * float(os.getenv('THUNDER_SCENE2', '5'))",
    "os.environ['THUNDER_SCENE2'] = '3'",
    "os.environ.pop('THUNDER_SCENE2', None)",
)
case(
    "weak reference",
    "import weakref\nclass W1: k = 2.0\nO_W1 = W1()\nR1 = weakref.ref(O_W1)",
    "y = y * (R1().k if R1() is not None else 7.0)",
    "O_W1.k = 3.0",
    "O_W1 = W1(); R1 = weakref.ref(O_W1)",
)
case(
    "keys that are equal and not the same",
    "D1 = {1: 2.0}",
    "for k, v in D1.items():\n    y = y * v * (2 if k is True else 3) * (5 if isinstance(k, float) else 7)",
    "D1.clear(); D1[True] = 2.0",
    "D1.clear(); D1[1.0] = 2.0",
    "D1.clear(); D1[1] = 2.0",
)
case(
    "keys of an argument that are equal and not the same",
    "NAMED['d2'] = {1: 2.0}",
    "y = y * (2 if next(iter(d2)) is True else 3) * (5 if isinstance(next(iter(d2)), float) else 7)",
    "NAMED['d2'] = {True: 2.0}",
    "NAMED['d2'] = {1.0: 2.0}",
    "NAMED['d2'] = {1: 2.0}",
)
case(
    "members that are equal and not the same",
    "S3 = {frozenset([1]), (0.0, 2)}",
    "for m in S3:\n    for v in m:\n        y = y * (2 if v is True else 3) + math.copysign(1.0, v)",
    "S3.clear(); S3 |= {frozenset([True]), (0.0, 2)}",
    "S3.clear(); S3 |= {frozenset([True]), (-0.0, 2)}",
    "S3.clear(); S3 |= {frozenset([1]), (-0.0, 2)}",
)

BRACES = "{0}"
SUBSCRIBED = [
    ("bound", "L_{0}.__getitem__(0)", "[2.0, 3.0]"), ("of the class", "list.__getitem__(L_{0}, 0)", "[2.0, 3.0]"),
    ("kept", "(lambda f: f(0))(L_{0}.__getitem__)", "(2.0, tensor(1, 2, 3))"),
    ("mapped", "sum(map(L_{0}.__getitem__, [0]))", "[2.0, 3.0]"), ("iterator", "next(L_{0}.__iter__())", "[2.0, 3.0]"),
    ("deque", "L_{0}.__getitem__(0)", "collections.deque([2.0])"), ("dict", "L_{0}.__getitem__(0)", "{0: 2.0}"),
    ("got by map", "next(map(L_{0}.get, [0]))", "{0: 2.0}"), ("tensor", "L_{0}.__getitem__(0)", "[tensor(1, 2, 3)]"),
    ("yield from", "sum((yield_{0}()))", "[2.0, 3.0]"), ("yield from tensors", "sum(yield_{0}())", "[tensor(1, 2, 3)]"),
    ("rest of an iterator", "sum(iter(L_{0}))", "[2.0, 3.0]"), ("star of an iterator", "[*iter(L_{0})][0]", "[2.0, 3.0]"),
    ("in an iterator", "(1 + (5.0 in iter(L_{0})))", "[2.0, 3.0]"), ("largest", "heapq.nlargest(1, L_{0})[0]", "[2.0]"),
    ("values one by one", "max(iter(dict(L_{0}).values()))", "{0: 2.0}"),
    ("values of the rest", "max(iter(L_{0}.values()))", "{0: 2.0}"),
    ("yield from iterator", "sum(yield_{0}())", "iter_{0}([2.0, 3.0])"),
]  # fmt: skip
for number, (name, read, made) in enumerate(SUBSCRIBED):
    place = f"su{number}"
    case(
        f"subscribed: {name}",
        f"import heapq\nclass iter_{place}(list):\n    def __iter__(s):\n        return iter(list(s))\n"
        f"L_{place} = {made.replace('{0}', place)}\ndef yield_{place}():\n    yield from L_{place}",
        f"y = y * {read.format(place)}",
        f"L_{place}[0] = 5.0",
        f"L_{place} = type(L_{place})(dict.fromkeys([0], 7.0) if isinstance(L_{place}, dict) else [7.0, 8.0])",
    )
case(
    "subscribed: missing",
    "L_sm = {'a': 2.0}",
    "try:\n    y = y * L_sm.__getitem__('b')\nexcept KeyError:\n    y = y * 3",
    "L_sm['b'] = 5.0",
)
case(
    "yield from: nested",
    "T_yf = [1.0, [2.0, [3.0]]]\ndef flat_yf(t):\n    for v in t:\n        if isinstance(v, list):\n            yield from flat_yf(v)\n"
    "        else:\n            yield v\ndef through_yf():\n    yield from T_yf[1][1]\n    yield from flat_yf(T_yf)",
    "for v in through_yf():\n    y = y * v + 1",
    "T_yf[1][1][0] = 7.0",
    "T_yf.append(9.0)",
)
case(
    "methods passed to map",
    "L_mp, D_mp = [], {}",
    "z = [list(map(L_mp.append, [1.0, 2.0])), list(map(D_mp.setdefault, 'ab'))]\ny = y * len(L_mp) * len(D_mp)",
    "L_mp.clear()",
    "D_mp['q'] = 1",
)
case(
    "attributes by reduce",
    "class A_rm: pass\na_rm = A_rm()\na_rm.b = A_rm()\na_rm.b.c = [2.0]\nm_rm = nn.Sequential(nn.Linear(3, 3))\nnn.init.ones_(m_rm[0].weight)",
    "y = y * functools.reduce(getattr, ['b', 'c'], a_rm)[0]\n"
    "y = y * functools.reduce(getattr, '0.weight'.split('.'), m_rm).sum()",
    "a_rm.b.c[0] = 3.0",
    "a_rm.b = A_rm()\na_rm.b.c = [7.0]",
    "m_rm[0].weight.data.mul_(2)",
    "m_rm[0] = nn.Linear(3, 3); nn.init.ones_(m_rm[0].weight)",
)

for number, (name, kind, held, read) in enumerate([
    ("dict", "dict", "{'a': 2.0, 'b': 3.0}", "X['a']"),
    ("ordered dict", "collections.OrderedDict", "{'a': 2.0, 'b': 3.0}", "X['a']"),
    ("default dict", "collections.defaultdict", "{'a': 2.0, 'b': 3.0}", "X['a']"),
    ("list", "list", "[2.0, 3.0]", "X[0]"),
    ("list from its end", "list", "[2.0, 3.0]", "X[-2]"),
    ("tuple", "tuple", "[2.0, 3.0]", "X[0]"),
    ("deque", "collections.deque", "[2.0, 3.0]", "X[0]"),
    ("tensor", "list", "[tensor(1, 2, 3)]", "X[0]"),
    ("loop", "dict", "{'a': 2.0, 'b': 3.0}", "sum([X[k] * len(k) for k in X])"),
    ("values", "dict", "{'a': 2.0, 'b': 3.0}", "sum(X.values()) * X['b']"),
    ("get", "dict", "{'a': 2.0, 'b': 3.0}", "X.get('a')"),
]):  # fmt: skip
    place = f"X{number}"
    given = f"float, {held}" if "default" in kind else held
    case(
        f"own subscription: {name}",
        f"class class_{place}({kind}):\n    def __getitem__(self, key):\n        return super().__getitem__(key) * 10\n"
        f"{place} = class_{place}({given})",
        "y = y * " + read.replace("X", place),
        *(() if kind == "tuple" else (f"{place}[next(iter({place})) if isinstance({place}, dict) else 0] = 7.0",)),
        f"{place} = class_{place}({given.replace('2', '5')})",
    )  # fmt: skip
case(
    "own subscription: makes objects",
    "class Makes_os(dict):\n    def __getitem__(self, key):\n        made, kept = super().__getitem__(key)\n"
    "        return made(**kept)\nO_os = Makes_os(a=(torch.nn.Softplus, {'beta': 2}))",
    "y = O_os['a'](y)",
    "O_os['a'][1]['beta'] = 3",
    "O_os['a'] = (torch.nn.SiLU, {})",
)
case(
    "own subscription: missing",
    "class Missing_os(dict):\n    def __missing__(self, key):\n        return len(key) + 1.0\n"
    "    def __getitem__(self, key):\n        return super().__getitem__(key) * 10\nM_os = Missing_os(a=2.0)",
    "y = y * M_os['a'] + M_os['bb']",
    "M_os['bb'] = 4.0",
    "del M_os['a']",
)
case(
    "own subscription: written to",
    "class Written_os(dict):\n    def __getitem__(self, key):\n        return super().__getitem__(key) * 10\n"
    "    def __setitem__(self, key, value):\n        super().__setitem__(key, value + 1)\nW_os = Written_os(a=2.0)",
    "y = y * W_os['a']\nW_os['b'] = 3.0\ny = y + W_os['b']",
    "W_os['a'] = 4.0",
)
