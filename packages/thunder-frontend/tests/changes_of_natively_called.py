"""Changes to what functions read that code in C calls: special methods, keys and callbacks."""

from changes import case

OPERAND = "class O{0}:\n    def {1}:\n        return {2}\nK{0} = {3}\nA{0} = O{0}()"


def operand(number: int, method: str, returned: str, start: str, body: str, change: str) -> None:
    """Add a case of an object of external state whose special method reads a global."""
    name = f"natively called: {method.partition('(')[0]} {number}"
    case(name, OPERAND.format(number, method, returned, start), body, f"K{number} = {change}")


operand(1, "__radd__(s, o)", "o + K1", "2.0", "y = y * sum([A1])", "3.0")
operand(2, "__gt__(s, o)", "K2", "True", "y = y * (2 if max([1, A2]) is A2 else 3)", "False")
operand(3, "__lt__(s, o)", "K3", "True", "y = y * (2 if sorted([A3, A3, 1])[0] == 1 else 3)", "False")
operand(4, "__eq__(s, o)", "o == K4", "1", "y = y * (2 if 1 in [A4] else 3) * (5 if [A4] == [1] else 7)", "2")
operand(5, "__int__(s)", "K5", "2", "y = y * int(A5)", "3")
operand(6, "__index__(s)", "K6", "1", "y = y * len(range(A6)) + math.gcd(A6, 6)", "2")
operand(7, "__bool__(s)", "K7", "True", "y = y * (2 if any([A7]) else 3) * (5 if all([A7]) else 7)", "False")
operand(8, "__float__(s)", "K8", "1.0", "y = y * math.sqrt(A8) + float(A8)", "2.0")
operand(9, "__getitem__(s, i)", "K9[i]", "[1.0]", "y = y * sum(A9) + len(list(A9))", "[2.0, 3.0]")
operand(10, "__str__(s)", "K10", "'2'", "y = y * float('%s' % A10)", "'3'")
case(
    "natively called: closure",
    "def made11(k):\n    class O:\n        def __radd__(s, o):\n            return o + k[0]\n    return O()\n"
    "K11 = [2.0]\nA11 = made11(K11)",
    "y = y * sum([A11])",
    "K11[0] = 3.0",
    "K11.insert(0, 4.0)",
)
case(
    "natively called: substitution",
    "import re\nK12 = '2'",
    "y = y * float(re.sub('a', lambda m: K12, 'a')) + float(re.compile('a').subn(lambda m: K12, 'a')[0])",
    "K12 = '3'",
)
case(
    "natively called: comparison and bisection",
    "import bisect\nK13 = 1.0",
    "y = y * sorted([1.0, 5.0], key=functools.cmp_to_key(lambda a, b: (a - b) * K13))[0]\n"
    "y = y + bisect.bisect([1.0, 2.0, 3.0], 2.5, key=lambda v: v * K13)",
    "K13 = -1.0",
    "K13 = 2.0",
)
case(
    "natively called: product",
    "class O14:\n    def __iter__(s):\n        yield K14\nK14 = 2.0\nA14 = O14()",
    "for a, b in itertools.product(A14, [1]):\n    y = y * a + b",
    "K14 = 3.0",
)
case(
    "natively called: factory of a dict made inside",
    "K15 = 2.0",
    "d = collections.defaultdict(lambda: K15)\ny = y * d['a'] + d['b']",
    "K15 = 3.0",
)
case(
    "natively called: factory of a dict",
    "class C16:\n    k = 2.0\nF16 = [1.0]\nD16 = collections.defaultdict(lambda: C16.k + F16[0])",
    "y = y * collections.defaultdict(D16.default_factory)['a']",
    "C16.k = 3.0",
    "F16[0] = 2.0",
    "D16.default_factory = lambda: 5.0",
)
case(
    "natively called: encoder of JSON",
    "import json\nclass O17: pass\nA17 = O17()\nA17.k = 2\nK17 = [1.0]",
    "y = y * float(json.dumps([A17], default=lambda o: o.k + K17[0])[1:-1])",
    "A17.k = 3",
    "K17[0] = 2.0",
)
case(
    "natively called: property of a format",
    "class O18:\n    @property\n    def k(s):\n        return s.p * K18\nA18 = O18()\nA18.p = 2\nK18 = 3",
    "y = y * float('{0.k}'.format(A18))",
    "A18.p = 3",
    "K18 = 4",
    "O18.k = 7",
    "O18.k = property(lambda s: 8)",
)
operand(19, "__eq__(s, o)", "K19", "True", "y = y * len({A19, 1})", "False\nO19.__hash__ = lambda s: hash(1)")
case(
    "natively called: keys of sets and dicts",
    "class O20:\n    def __hash__(s):\n        return 1\n    def __eq__(s, o):\n        return K20\nA20, B20, K20 = O20(), O20(), True",
    "y = y * len({A20, B20}) + len({A20: 1, B20: 2}) + len({k for k in (A20, B20)}) + len({k: 1 for k in (A20, B20)})",
    "K20 = False",
)
operand(21, "__index__(s)", "K21", "1", "y = y * [2.0, 3.0, 5.0][A21] + (7.0, 8.0, 9.0)[A21]", "2")
operand(22, "__floor__(s)", "K22", "1", "y = y * math.floor(A22)", "2")
operand(23, "__rmul__(s, o)", "o * K23", "2", "y = y * math.prod([A23])", "3")
operand(24, "__divmod__(s, o)", "(K24, 1)", "2", "y = y * divmod(A24, 3)[0]", "3")
operand(25, "__iter__(s)", "iter([K25])", "2.0", "y = y * sum(itertools.chain.from_iterable([A25]))", "3.0")
case(
    "natively called: functions and objects in arrays",
    "import numpy as np\nclass O26:\n    def __add__(s, o):\n        return o * K26\nA26 = O26()\nK26 = 2.0",
    "y = y * float(np.vectorize(lambda v: v * K26)(np.ones(2)).sum())\n"
    "y = y * float((np.array([A26, A26], dtype=object) + 1.0)[0])",
    "K26 = 3.0",
)
case(
    "natively called: classes that are made",
    "class B27:\n    def __init_subclass__(cls):\n        cls.k = K27\n"
    "class D27:\n    def __set_name__(s, owner, name):\n        owner.j = K27\nK27 = 2.0",
    "class M(B27):\n    d = D27()\ny = y * M.k + M.j",
    "K27 = 3.0",
)
case(
    "natively called: functions that call others",
    "class O28:\n    def __init__(s):\n        s.parts = {'k': 2.0}\n    def get(s):\n        return s.parts['k']\n"
    "A28 = O28()\ndef inner28(o, by=2.0):\n    return o.get() * by\ndef outer28():\n    return inner28(A28)",
    "y = y * collections.defaultdict(lambda: outer28())['a']",
    "A28.parts['k'] = 3.0",
    "A28.parts = {'k': 4.0}",
    "inner28.__defaults__ = (5.0,)",
    "O28.get = lambda s: 6.0",
    "def inner28(o):\n    return 7.0",
)
case(
    "natively called: what it writes",
    "class O29: n = 0\nA29, L29, N29 = O29(), [], 0\n"
    "def factory29():\n    global N29\n    N29 += 1\n    A29.n += 1\n    L29.append(1)\n    return A29.n",
    "d = collections.defaultdict(factory29)\ny = y * d['a'] + d['b'] + len(L29) + N29",
    "A29.n = 5",
    "L29.clear()",
    "N29 = 7",
)
case(
    "natively called: functions that read tensors",
    "W30 = tensor(1, 2, 3)\nclass O30:\n    def __radd__(s, o):\n        return o + W30\nA30 = O30()",
    "d = collections.defaultdict(lambda: W30 * 2)\ny = y + d['a'] + sum([A30])",
    "W30.add_(1)",
    "W30 = tensor(4, 5, 6)",
)
case(
    "natively called: special methods that come later",
    "class O31: pass\nA31, B31 = O31(), O31()",
    "y = y * (2 if A31 in [B31] else 3) * len({A31: 1, B31: 2}) * len(str([A31]))",
    "O31.__eq__ = lambda s, o: True",
    "O31.__hash__ = lambda s: 1",
    "O31.__repr__ = lambda s: 'A'",
)
case(
    "natively called: codecs and time zones",
    "import codecs, datetime\ncodecs.register_error('thunder', lambda e: (K32, e.end))\nK32 = '2'\n"
    "class Z32(datetime.tzinfo):\n    def utcoffset(s, d):\n        return datetime.timedelta(hours=int(K32))\n"
    "D32 = datetime.datetime(2020, 1, 1, tzinfo=Z32())",
    "y = y * float('\u00e9'.encode('ascii', 'thunder')) + D32.utcoffset().seconds",
    "K32 = '3'",
)
case(
    "natively called: conversions and rows",
    "import array, csv, json, struct\nclass O33:\n    def __float__(s):\n        return float(K33)\n"
    "    def __index__(s):\n        return K33\n    def __iter__(s):\n        return iter([str(K33)])\nA33, K33 = O33(), 2",
    "y = y * torch.tensor(A33, dtype=torch.float32) * struct.pack('b', A33)[0] * y.repeat(A33).sum()\n"
    "y = y + float(list(csv.reader(A33))[0][0]) + json.loads('{}', object_hook=lambda d: K33)",
    "K33 = 3",
)
case(
    "natively called: a reference that dies",
    "import weakref\nclass O34: pass\nA34 = O34()\nR34 = weakref.ref(A34)",
    "y = y * (2.0 if collections.defaultdict(lambda: R34() is None)[1] else 3.0)",
    "del A34",
)
case(
    "natively called: a method that a subclass takes back",
    "class O35:\n    def __hash__(s):\n        return 1\n"
    "class P35(O35):\n    def __eq__(s, o):\n        return K35\nK35 = True\nD35 = {'a': P35()}",
    "y = y * (2 if dict(D35)['a'] == 1 else 3)",
    "K35 = False",
)
case(
    "natively called: items of sequences that are iterated over",
    "class S36:\n    def __init__(s):\n        s.d = [1.0, 2.0]\n    def __getitem__(s, i):\n        return s.d[i] * K36\n"
    "K36, A36 = 2.0, S36()",
    "def g():\n    yield from A36\n"
    "for i, v in enumerate(A36):\n    y = y * v + i\nfor v in A36:\n    y = y + v\n"
    "y = y * sum(g()) * max(*A36) * sum([v for v in A36]) + sum([*A36])",
    "K36 = 3.0",
    "A36.d[0] = 5.0",
    "A36.d.append(1.0)",
    "A36.d = [7.0]",
)
case(
    "natively called: variables that it shares and writes",
    "def made37():\n    n = 0\n    def count():\n        nonlocal n\n        n += 1\n        return n\n    return count\n"
    "C37 = made37()",
    "y = y * collections.defaultdict(C37)['a'] + C37.__closure__[0].cell_contents",
    "C37.__closure__[0].cell_contents = 5",
    "C37 = made37()",
)
ASKING = """import contextvars, decimal, os, threading
class O38:
    def __init__(s, n):
        s.n = n
    def __lt__(s, o):
        return asked{0}()
    __gt__ = __eq__ = __lt__
    def __hash__(s):
        return 1
    def __index__(s):
        return 2 if asked{0}() else 3
A{0}, B{0} = O38(2.0), O38(3.0)
"""
ASKED = {
    40: ("", "len(os.getcwd()) > 5", "os.chdir('/')", "os.chdir(DIRECTORY)"),
    41: ("V = contextvars.ContextVar('V', default=True)", "V.get()", "V.set(False)", "V.set(True)"),
    42: ("V = contextvars.ContextVar('V')", "V.get(1)", "V.set(0)"),
    43: ("L = threading.Lock()", "L.locked()", "L.acquire(blocking=False)", "L.release()"),
    44: ("", "decimal.Decimal(1) / 3 > decimal.Decimal('0.3333')", "decimal.getcontext().prec = 3"),
    45: ("", "torch.is_grad_enabled()", "CONTEXT = torch.no_grad", "CONTEXT = contextlib.nullcontext"),
    46: ("", "torch.get_num_threads() == 1", "torch.set_num_threads(2)", "torch.set_num_threads(1)"),
    47: ("", "decimal.getcontext().prec > 10", "decimal.getcontext().prec = 4"),
    50: (
        "class C:\n    k = True\nV = contextvars.ContextVar('V', default=C())",
        "V.get().k",
        "V.get().k = False",
        "C.k = 0",
    ),
    51: ("V = contextvars.ContextVar('V', default=[1])", "V.get()[0]", "V.get()[0] = 0", "V.set([1])"),
}
for number, (setup, expression, *changes) in ASKED.items():
    case(
        f"natively called: what it asks of C code {number}",
        f"{ASKING.format(number)}{setup}\nDIRECTORY = os.getcwd()\ndef asked{number}():\n    return {expression}",
        f"y = y * min([A{number}, B{number}]).n * len({{A{number}, B{number}}}) + len([1, 2, 3, 4][: A{number}])",
        *changes,
    )
case(
    "natively called: what functions in NumPy's hands ask of C code",
    "import numpy as np, os\nF49 = np.vectorize(lambda v: v * len(os.getcwd()))",
    "y = y * float(F49(np.ones(2)).sum()) * float(np.frompyfunc(lambda v: len(os.getcwd()), 1, 1)(1))",
    "os.chdir('/')",
    "os.chdir('/usr')",
)
case(
    "natively called: builtins that read",
    "class O30:\n    v, n = [1.0], 0\nO30.d = {'k': [2.0]}\nA30, L30 = O30(), [[1.0], [2.0]]\nA30.w = [3.0]",
    "y = y * next(map(getattr, [A30], ['v']))[0] + next(itertools.starmap(getattr, [(A30, 'w')]))[0]\n"
    "y = y * next(map(A30.__getattribute__, ['w']))[0] + next(map(object.__getattribute__, [A30], ['v']))[0]\n"
    "y = y * next(map(vars, [A30]))['w'][0] + next(map(next, [iter(L30)]))[0]\n"
    "y = y * (2 if next(map(hasattr, [A30], ['z'])) else 3) + next(map(getattr, [A30], ['z'], [5]))\n"
    "y = y * list(itertools.accumulate([A30, 'v'], getattr))[1][0]",
    "O30.v[0] = 2.0",
    "A30.w[0] = 4.0",
    "L30[0][0] = 3.0",
    "A30.z = 6",
    "L30.insert(0, [7.0])",
    "O30.v = [8.0]",
)
