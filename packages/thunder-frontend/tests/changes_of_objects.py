"""Changes to objects and classes."""

# ruff: noqa: E501
from changes import case

case(
    "attribute",
    "class C1:\n    pass\nO1 = C1()\nO1.k = 2.0",
    "y = y * O1.k",
    "O1.k = 3.0",
    "O1.k = 2",
    "O1 = C1(); O1.k = 5.0",
    "C1.k = 7.0",
    "del O1.k",
    "O1.__dict__['k'] = 9.0",
)
case(
    "class attribute",
    "class B2:\n    k = 2.0\nclass C2(B2):\n    pass\nO2 = C2()",
    "y = y * O2.k",
    "B2.k = 3.0",
    "C2.k = 4.0",
    "O2.k = 5.0",
    "del O2.k",
    "del C2.k",
)
case(
    "of the class itself",
    "class B3:\n    k = 2.0\nclass C3(B3):\n    pass",
    "y = y * C3.k",
    "B3.k = 3.0",
    "C3.k = 4.0",
    "del C3.k",
)
case(
    "method",
    "class C4:\n    def m(self, v):\n        return v + 1\nO4 = C4()",
    "y = O4.m(y)",
    "C4.m = lambda self, v: v + 2",
    "O4.m = lambda v: v + 3",
    "del O4.m",
    "O4 = type('D4', (C4,), {'m': lambda self, v: v - 1})()",
)
case(
    "inherited method",
    "class B5:\n    def m(self, v):\n        return v + 1\nclass C5(B5):\n    pass\nO5 = C5()",
    "y = O5.m(y)",
    "B5.m = lambda self, v: v + 2",
    "C5.m = lambda self, v: v + 3",
    "del C5.m",
)
case(
    "super",
    "class B6:\n    def m(self, v):\n        return v + 1\nclass C6(B6):\n    def m(self, v):\n        return super().m(v) * 2\nO6 = C6()",
    "y = O6.m(y)",
    "B6.m = lambda self, v: v + 2",
)
case(
    "property",
    "class C7:\n    def __init__(self):\n        self._k = 2.0\n    @property\n    def k(self):\n        return self._k\nO7 = C7()",
    "y = y * O7.k",
    "O7._k = 3.0",
    "C7.k = property(lambda self: self._k + 1)",
    "C7.k = 9.0",
)
case(
    "slots",
    "class C8:\n    __slots__ = ('k',)\nO8 = C8()\nO8.k = 2.0",
    "y = y * O8.k",
    "O8.k = 3.0",
    "O8.k = tensor(1, 2, 3)",
)
case(
    "getattr",
    "class C9:\n    def __getattr__(self, name):\n        return self.__dict__['table'][name]\nO9 = C9()\nO9.table = {'k': 2.0}",
    "y = y * O9.k",
    "O9.table['k'] = 3.0",
    "O9.k = 4.0",
    "del O9.k",
    "C9.k = 5.0",
)
case(
    "hasattr",
    "class C10:\n    pass\nO10 = C10()",
    "y = y * 2 if hasattr(O10, 'flag') else y",
    "O10.flag = 1",
    "del O10.flag",
    "C10.flag = 1",
)
case(
    "getattr with default",
    "class C11:\n    pass\nO11 = C11()",
    "y = y * getattr(O11, 'k', 2.0)",
    "O11.k = 3.0",
    "del O11.k",
    "C11.k = 4.0",
)
case(
    "type",
    "class C12:\n    k = 2.0\nclass D12:\n    k = 3.0\nO12 = C12()",
    "y = y + (1 if type(O12) is C12 else 2)",
    "O12 = D12()",
    "O12.__class__ = C12",
)
case(
    "isinstance",
    "class C13:\n    pass\nclass D13:\n    pass\nO13 = C13()",
    "y = y + (1 if isinstance(O13, C13) else 2)",
    "O13.__class__ = D13",
    "O13 = C13()",
)
case(
    "callable object",
    "class C14:\n    k = 1.0\n    def __call__(self, v):\n        return v * self.k\nO14 = C14()",
    "y = O14(y)",
    "O14.k = 2.0",
    "C14.__call__ = lambda self, v: v - 1",
    "O14 = torch.abs",
)
case(
    "operators",
    "class C15:\n    n = 2\n    def __len__(self):\n        return self.n\n    def __getitem__(self, i):\n        return self.n + i\nO15 = C15()",
    "y = y * len(O15) + O15[1] if O15 else y",
    "O15.n = 3",
    "O15.n = 0",
    "C15.__len__ = lambda self: 7",
)
case(
    "equality",
    "class C16:\n    k = 1\n    def __eq__(self, other):\n        return self.k == other.k\nO16, P16 = C16(), C16()",
    "y = y * 2 if O16 == P16 else y",
    "P16.k = 2",
    "O16.k = 2",
)
case(
    "identity",
    "O17, P17 = object(), object()",
    "y = y * 2 if O17 is P17 else y",
    "P17 = O17",
    "P17 = None",
    "O17 = None",
)
case(
    "tensor identity",
    "O18, P18 = tensor(1), tensor(1)",
    "y = y * 2 if O18 is P18 else y",
    "P18 = O18",
    "P18 = tensor(1)",
)
case(
    "dataclass",
    "@dataclasses.dataclass\nclass C19:\n    k: float\n    t: object\nO19 = C19(2.0, tensor(1, 2, 3))",
    "y = y * O19.k + O19.t",
    "O19.k = 3.0",
    "O19.t = tensor(2, 2, 2)",
    "O19 = dataclasses.replace(O19, k=9.0)",
)
case(
    "enum",
    "class E20(enum.Enum):\n    A = 1\n    B = 2\nO20 = E20.A",
    "y = y + 1 if O20 is E20.A else y - 1",
    "O20 = E20.B",
    "O20 = E20.A",
)
case(
    "vars",
    "class C21:\n    pass\nO21 = C21()\nO21.a = 1.0",
    "for v in vars(O21).values():\n    y = y + v",
    "O21.b = 2.0",
    "O21.a = 5.0",
    "del O21.a",
)
case(
    "static and class methods",
    "class C22:\n    k = 2.0\n    @staticmethod\n    def s(v):\n        return v + 1\n    @classmethod\n    def c(cls, v):\n        return v * cls.k",
    "y = C22.c(C22.s(y))",
    "C22.k = 3.0",
    "C22.s = staticmethod(lambda v: v + 2)",
    "C22.c = classmethod(lambda cls, v: v - cls.k)",
)
case(
    "bound method kept",
    "class C23:\n    k = 2.0\n    def m(self, v):\n        return v * self.k\nO23 = C23()\nM23 = O23.m",
    "y = M23(y)",
    "O23.k = 3.0",
    "C23.k = 4.0",
    "M23 = C23().m",
    "del O23.k",
    "C23.m = lambda self, v: v + 100",
)
case(
    "namedtuple",
    "N24 = collections.namedtuple('N24', 'a b')\nO24 = N24(2.0, tensor(1, 2, 3))",
    "y = y * O24.a + O24.b",
    "O24 = N24(3.0, O24.b)",
    "O24 = N24(3.0, tensor(3, 2, 1))",
)
case(
    "custom descriptor",
    "class D25:\n    k = 2.0\n    def __get__(self, obj, cls):\n        return self.k\nclass C25:\n    d = D25()\nO25 = C25()",
    "y = y * O25.d",
    "C25.__dict__['d'].k = 3.0",
    "D25.k = 5.0",
    "O25.d = 7.0",
)
case(
    "cached property",
    "class C26:\n    n = 2.0\n    @functools.cached_property\n    def d(self):\n        return self.n * 2\nO26 = C26()",
    "y = y * O26.d",
    "O26.__dict__.pop('d', None); O26.n = 5.0",
    "O26.d = 7.0",
)
case(
    "dict subclass",
    "class C27(dict):\n    pass\nO27 = C27(a=2.0)",
    "y = y * O27['a'] + len(O27)",
    "O27['a'] = 3.0",
    "O27['b'] = 3.0",
    "O27.clear()",
)
case(
    "list subclass",
    "class C28(list):\n    pass\nO28 = C28([2.0, 3.0])",
    "for v in O28:\n    y = y * v",
    "O28[0] = 5.0",
    "O28.append(1.5)",
)
case(
    "user mapping",
    "O29 = collections.UserDict(a=2.0)",
    "y = y * O29['a'] * len(O29)",
    "O29['a'] = 3.0",
    "O29['b'] = 3.0",
)
case(
    "simple namespace",
    "O30 = types.SimpleNamespace(k=2.0)",
    "y = y * O30.k",
    "O30.k = 3.0",
    "O30 = types.SimpleNamespace(k=4.0)",
)
case(
    "base class swapped",
    "class A31:\n    k = 2.0\nclass B31:\n    k = 3.0\nclass Z31: pass\nclass C31(A31, Z31):\n    pass\nO31 = C31()",
    "y = y * O31.k",
    "C31.__bases__ = (B31, Z31)",
)
