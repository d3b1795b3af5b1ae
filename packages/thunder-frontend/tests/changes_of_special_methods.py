"""Changes to special methods, descriptors, metaclasses and what else decides what an operation does."""

# ruff: noqa: E501
from changes import case

case(
    "class gains __radd__ order",
    "class A1:\n    pass\nclass B1:\n    def __radd__(self, o):\n        return 2\na1, b1 = A1(), B1()",
    "y = y * (a1 + b1)",
    "A1.__add__ = lambda s, o: 3",
    "del A1.__add__",
    "B1.__radd__ = lambda s, o: 5",
)
case(
    "bool gained",
    "class A2:\n    pass\na2 = A2()",
    "y = y * (2 if a2 else 3)",
    "A2.__bool__ = lambda s: False",
    "del A2.__bool__",
    "A2.__len__ = lambda s: 0",
    "A2.__bool__ = lambda s: True",
)
case(
    "not gained",
    "class A2b:\n    pass\na2b = A2b()",
    "y = y * (2 if not a2b else 3)",
    "A2b.__bool__ = lambda s: False",
    "del A2b.__bool__",
    "A2b.__len__ = lambda s: 0",
)
case(
    "eq gained",
    "class A3:\n    pass\na3, b3 = A3(), A3()",
    "y = y * (2 if a3 == b3 else 3)",
    "A3.__eq__ = lambda s, o: True",
    "del A3.__eq__",
)
case(
    "ne gained",
    "class A3b:\n    pass\na3b, b3b = A3b(), A3b()",
    "y = y * (2 if a3b != b3b else 3)",
    "A3b.__eq__ = lambda s, o: True",
    "A3b.__ne__ = lambda s, o: True",
    "del A3b.__ne__",
)
case(
    "lt reflected",
    "class A4:\n    pass\nclass B4:\n    def __gt__(self, o):\n        return True\na4, b4 = A4(), B4()",
    "y = y * (2 if a4 < b4 else 3)",
    "A4.__lt__ = lambda s, o: False",
    "del A4.__lt__",
    "B4.__gt__ = lambda s, o: False",
)
case(
    "contains gained",
    "class A5:\n    def __iter__(self):\n        return iter([1, 2])\na5 = A5()",
    "y = y * (2 if 1 in a5 else 3)",
    "A5.__contains__ = lambda s, o: False",
    "del A5.__contains__",
    "A5.__iter__ = lambda s: iter([7])",
)
case(
    "getitem iteration",
    "class A6:\n    def __getitem__(self, i):\n        if i > 1:\n            raise IndexError\n        return i + 1.0\na6 = A6()",
    "for v in a6:\n    y = y * v",
    "A6.__iter__ = lambda s: iter([7.0])",
    "del A6.__iter__",
    "A6.__getitem__ = lambda s, i: [5.0][i]",
)
case(
    "init gained",
    "class A7:\n    k = 2.0",
    "y = y * A7().k",
    "A7.__init__ = lambda s: setattr(s, 'k', 3.0)",
    "del A7.__init__",
    "A7.__new__ = lambda c: types.SimpleNamespace(k=7.0)",
    "del A7.__new__",
)
case(
    "setattr gained",
    "class A8:\n    pass",
    "o = A8()\no.k = 2.0\ny = y * o.k",
    "A8.__setattr__ = lambda s, n, v: object.__setattr__(s, n, v * 2)",
    "del A8.__setattr__",
)
case(
    "getattr gained",
    "class A9:\n    pass\na9 = A9()",
    "y = y * getattr(a9, 'k', 2.0)",
    "A9.__getattr__ = lambda s, n: 5.0",
    "del A9.__getattr__",
)
case(
    "getattribute gained",
    "class A10:\n    pass\na10 = A10()\na10.k = 2.0",
    "y = y * a10.k",
    "A10.__getattribute__ = lambda s, n: 5.0 if n == 'k' else object.__getattribute__(s, n)",
    "del A10.__getattribute__",
)
case(
    "call changed",
    "class A11:\n    def __call__(self, v):\n        return v * 2\na11 = A11()",
    "y = a11(y)",
    "A11.__call__ = lambda s, v: v * 3",
    "class B11(A11):\n    pass\na11 = B11()",
    "B11.__call__ = lambda s, v: v * 4",
)
case(
    "module class gains call",
    "class A12(nn.Module):\n    def forward(self, v):\n        return v * 2\na12 = A12()",
    "y = a12(y)",
    "A12.__call__ = lambda s, v: v * 3",
    "del A12.__call__",
    "A12.forward = lambda s, v: v * 4",
    "a12.forward = lambda v: v * 5",
    "del a12.forward",
)
case(
    "hash gained",
    "class A13:\n    pass\na13 = A13()\nd13 = {a13: 2.0}",
    "y = y * d13.get(a13, 3.0)",
    "d13[a13] = 4.0",
    "d13.clear()",
)
case(
    "enter exit",
    "class A14:\n    def __enter__(self):\n        return 2.0\n    def __exit__(self, *a):\n        return False\na14 = A14()",
    "with a14 as k:\n    y = y * k",
    "A14.__enter__ = lambda s: 3.0",
    "A14.__exit__ = lambda s, *a: True",
)
case(
    "instancecheck gained",
    "class M15(type):\n    pass\nclass A15(metaclass=M15):\n    pass\na15 = 3",
    "y = y * (2 if isinstance(a15, A15) else 3)",
    "M15.__instancecheck__ = lambda c, o: True",
    "del M15.__instancecheck__",
)
case(
    "subclasscheck",
    "import abc\nclass A16(abc.ABC):\n    pass\nclass B16:\n    pass\nb16 = B16()",
    "y = y * (2 if isinstance(b16, A16) else 3)",
    "A16.register(B16)",
)
case(
    "subclasshook",
    "import abc\nclass A17(abc.ABC):\n    @classmethod\n    def __subclasshook__(cls, c):\n        return hasattr(c, 'foo') or NotImplemented\nclass B17:\n    pass\nb17 = B17()",
    "y = y * (2 if isinstance(b17, A17) else 3)",
    "A17.register(B17)",
)
case(
    "issubclass",
    "class A18:\n    pass\nclass B18:\n    pass",
    "y = y * (2 if issubclass(B18, A18) else 3)",
    "B18 = type('B18', (A18,), {})",
    "B18 = type('B18', (), {})",
)
case(
    "bases changed",
    "class A19:\n    k = 2.0\nclass X19:\n    k = 3.0\nclass B19(A19):\n    pass\nb19 = B19()",
    "y = y * b19.k * (2 if isinstance(b19, A19) else 3)",
    "B19.__bases__ = (X19,)",
    "B19.__bases__ = (A19,)",
)
case(
    "isinstance after class change",
    "class A20:\n    pass\nclass B20(A20):\n    pass\nclass C20:\n    pass\na20 = B20()",
    "y = y * (2 if isinstance(a20, A20) else 3)",
    "a20.__class__ = C20",
    "a20.__class__ = B20",
)
case(
    "missing gained",
    "class A21(dict):\n    pass\na21 = A21()",
    "y = y * (a21['q'] if 'q' in a21 else 2.0)",
    "a21['q'] = 3.0",
    "del a21['q']",
)
case(
    "missing method",
    "class A22(dict):\n    def __missing__(self, k):\n        return 2.0\na22 = A22()",
    "y = y * a22['q']",
    "A22.__missing__ = lambda s, k: 3.0",
    "a22['q'] = 4.0",
)
case(
    "index",
    "class A23:\n    def __index__(self):\n        return 1\na23 = A23()\nl23 = [1.0, 2.0, 3.0]",
    "y = y * l23[a23]",
    "A23.__index__ = lambda s: 2",
    "l23[2] = 7.0",
)
case(
    "slots",
    "class A24:\n    __slots__ = ('k',)\na24 = A24()\na24.k = 2.0",
    "y = y * a24.k",
    "a24.k = 3.0",
    "a24.k = tensor(1, 2, 3)",
    "del a24.k",
    "a24.k = 2.0",
)
case(
    "slots hasattr",
    "class A25:\n    __slots__ = ('k',)\na25 = A25()",
    "y = y * (a25.k if hasattr(a25, 'k') else 5.0)",
    "a25.k = 3.0",
    "del a25.k",
)
case(
    "descriptor state",
    "class D26:\n    k = 2.0\n    def __get__(self, o, c):\n        return self.k\nclass A26:\n    d = D26()\na26 = A26()",
    "y = y * a26.d",
    "A26.__dict__['d'].k = 3.0",
    "D26.k = 4.0",
    "D26.__get__ = lambda s, o, c: 9.0",
    "a26.__dict__['d'] = 7.0",
    "D26.__set__ = lambda *a: None",
)
case(
    "cached_property",
    "class A27:\n    n = 2.0\n    @functools.cached_property\n    def k(self):\n        return self.n * 2\na27 = A27()",
    "y = y * a27.k",
    "a27.n = 5.0",
    "a27.__dict__.pop('k', None)",
    "a27.__dict__['k'] = 3.0",
)
case(
    "property fget code",
    "def get28(s):\n    return 2.0\nclass A28:\n    k = property(get28)\na28 = A28()",
    "y = y * a28.k",
    "get28.__code__ = (lambda s: 3.0).__code__",
)
case(
    "staticmethod code",
    "class A29:\n    @staticmethod\n    def f(v):\n        return v * 2\na29 = A29()",
    "y = a29.f(y)",
    "A29.f.__code__ = (lambda v: v * 3).__code__",
    "A29.f = staticmethod(lambda v: v * 4)",
)
case(
    "classmethod code",
    "class A30:\n    k = 2.0\n    @classmethod\n    def f(cls, v):\n        return v * cls.k\na30 = A30()",
    "y = a30.f(y)",
    "A30.k = 3.0",
    "A30.f.__func__.__code__ = (lambda cls, v: v * 7).__code__",
    "A30.f = classmethod(lambda c, v: v * 4)",
)
case(
    "dict replaced",
    "class A31:\n    pass\na31 = A31()\na31.k = 2.0",
    "y = y * a31.k",
    "a31.__dict__ = {'k': 3.0}",
    "a31.__dict__['k'] = 4.0",
    "a31.k = 5.0",
)
case(
    "module dict replaced",
    "torch.manual_seed(0)\nm32 = nn.Linear(3, 3)\nm32.k = 2.0",
    "y = m32(y) * m32.k",
    "m32.__dict__ = {**m32.__dict__, 'k': 3.0}",
    "m32.k = 5.0",
    "m32.register_forward_hook(lambda m, a, o: o * 7)",
    "m32._forward_hooks = collections.OrderedDict()",
)
case(
    "module parameters dict replaced",
    "m33 = nn.Linear(3, 3)\nnn.init.ones_(m33.weight)\nnn.init.ones_(m33.bias)",
    "y = m33(y)",
    "m33._parameters = dict(m33._parameters); m33._parameters['bias'] = nn.Parameter(tensor(5, 6, 7))",
    "m33.bias = nn.Parameter(tensor(7, 7, 7))",
    "m33.__dict__['_parameters'] = {'weight': m33.weight, 'bias': None}",
)
case(
    "dataclass replace",
    "@dataclasses.dataclass(frozen=True)\nclass A34:\n    k: float = 2.0\na34 = A34()",
    "y = y * a34.k",
    "a34 = dataclasses.replace(a34, k=3.0)",
    "object.__setattr__(a34, 'k', 4.0)",
)
case(
    "dataclass eq",
    "@dataclasses.dataclass\nclass A35:\n    k: float = 2.0\na35, b35 = A35(), A35()",
    "y = y * (2 if a35 == b35 else 3)",
    "a35.k = 3.0",
    "b35.k = 3.0",
)
case(
    "dataclass in program replace",
    "@dataclasses.dataclass\nclass A36:\n    k: float = 2.0\n    l: float = 1.0\na36 = A36()",
    "y = y * dataclasses.replace(a36, l=2.0).k",
    "a36.k = 3.0",
)
case(
    "asdict",
    "@dataclasses.dataclass\nclass A37:\n    k: float = 2.0\na37 = A37()",
    "y = y * dataclasses.asdict(a37)['k']",
    "a37.k = 3.0",
)
case(
    "namedtuple",
    "N38 = collections.namedtuple('N38', 'a b')\nn38 = N38(1.0, 2.0)",
    "y = y * n38.b + n38._asdict()['a']",
    "n38 = n38._replace(a=3.0)",
    "n38 = N38(2.0, 2.0)",
    "N38.b = property(lambda s: 9.0)",
)
case(
    "enum iteration",
    "class E39(enum.Enum):\n    A = 1\n    B = 2",
    "for e in E39:\n    y = y * e.value",
    "E39.B._value_ = 7",
    "E39._member_names_.pop()",
)
case(
    "enum by value",
    "class E40(enum.IntFlag):\n    A = 1\n    B = 2\nf40 = E40.A",
    "y = y * (2 if f40 & E40.A else 3) * f40",
    "f40 = E40.A | E40.B",
    "f40 = E40.B",
)
case(
    "metaclass attribute",
    "class M41(type):\n    k = 2.0\nclass A41(metaclass=M41):\n    pass",
    "y = y * A41.k",
    "M41.k = 3.0",
    "A41.k = 4.0",
    "del A41.k",
    "M41.k = property(lambda c: 5.0)",
)
case(
    "metaclass getattr",
    "class M42(type):\n    def __getattr__(c, n):\n        return 2.0\nclass A42(metaclass=M42):\n    pass",
    "y = y * A42.k",
    "M42.__getattr__ = lambda c, n: 3.0",
    "A42.k = 4.0",
)
case(
    "metaclass call",
    "class M43(type):\n    def __call__(c):\n        return 2.0\nclass A43(metaclass=M43):\n    pass",
    "y = y * A43()",
    "M43.__call__ = lambda c: 3.0",
)
case(
    "class getitem",
    "class A44:\n    def __class_getitem__(c, i):\n        return 2.0 + i",
    "y = y * A44[1]",
    "A44.__class_getitem__ = classmethod(lambda c, i: 7.0)",
)
case(
    "bound method self",
    "class A45:\n    def __init__(s, k):\n        s.k = k\n    def f(s, v):\n        return v * s.k\na45 = A45(2.0)\nf45 = a45.f",
    "y = f45(y)",
    "a45.k = 3.0",
    "f45 = A45(4.0).f",
    "A45.f = lambda s, v: v",
    "f45 = types.MethodType(lambda s, v: v * s, 5.0)",
)
case(
    "callable arg bound",
    "class A46:\n    def __init__(s, k):\n        s.k = k\n    def f(s, v):\n        return v * s.k\na46 = A46(2.0)\nNAMED['f46'] = a46.f",
    "y = f46(y)",
    "a46.k = 3.0",
    "NAMED['f46'] = A46(4.0).f",
)
case(
    "operator user class tensor",
    "class A47:\n    def __radd__(s, o):\n        return o * 2\na47 = A47()",
    "y = y + a47",
    "A47.__radd__ = lambda s, o: o * 3",
    "A47.__torch_function__ = classmethod(lambda c, f, t, a=(), k=None: torch.ones(3) * 9)",
    "del A47.__torch_function__",
)
case(
    "str format",
    "class A48:\n    def __str__(s):\n        return 'ab'\na48 = A48()",
    "y = y * len(f'{a48}')",
    "A48.__str__ = lambda s: 'abcd'",
    "A48.__format__ = lambda s, spec: 'abcde'",
    "A48.__repr__ = lambda s: 'a'",
)
case(
    "repr object",
    "class A49:\n    def __init__(s):\n        s.k = 1\n    def __repr__(s):\n        return 'x' * s.k\na49 = A49()",
    "y = y * len(repr([a49]))",
    "a49.k = 3",
    "A49.__repr__ = lambda s: 'qqqqqqq'",
)
case(
    "sorted key",
    "l50 = [3.0, 1.0, 2.0]\nk50 = lambda v: v",
    "y = y * sorted(l50, key=k50)[0]",
    "k50 = lambda v: -v",
    "l50.append(9.0)",
)
case(
    "objects lt sort",
    "class A51:\n    def __init__(s, k):\n        s.k = k\n    def __lt__(s, o):\n        return s.k < o.k\nl51 = [A51(3.0), A51(2.0)]",
    "y = y * min(l51).k",
    "l51[0].k = 1.0",
    "A51.__lt__ = lambda s, o: s.k > o.k",
    "l51.append(A51(77.0))",
)
case(
    "max of dict",
    "d52 = {1.0: 0, 2.0: 0}",
    "y = y * max(d52)",
    "d52[5.0] = 1",
    "del d52[5.0]",
)

case(
    "reversed gained",
    "class A53:\n    def __len__(s):\n        return 2\n    def __getitem__(s, i):\n        return 2.0 + i\na53 = A53()",
    "y = y * next(reversed(a53))",
    "A53.__reversed__ = lambda s: iter([9.0])",
    "del A53.__reversed__",
    "A53.__reversed__ = None",
    "A53.__len__ = lambda s: 1\ndel A53.__reversed__",
)
case(
    "length hint",
    "class A54:\n    def __length_hint__(s):\n        return 3\na54 = A54()",
    "y = y * operator.length_hint(a54)",
    "A54.__length_hint__ = lambda s: 5",
    "A54.__len__ = lambda s: 7",
)
case(
    "hash of a number",
    "class A55:\n    def __init__(s):\n        s.k = 1\n    def __hash__(s):\n        return s.k\na55 = A55()",
    "y = y * (1 + hash(a55))",
    "a55.k = 3",
    "a55.k = 4",
    "a55.k = 'no hash'",
)
case(
    "metaclass gains getattribute",
    "class M56(type):\n    pass\nclass A56(metaclass=M56):\n    k = 2.0",
    "y = y * A56.k",
    "M56.__getattribute__ = lambda c, n: 5.0 if n == 'k' else type.__getattribute__(c, n)",
    "del M56.__getattribute__",
)
