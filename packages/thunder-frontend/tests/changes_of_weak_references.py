"""Weak references to what dies between calls, however else the program gets at it as well."""

from changes import case

OBJECT = "import weakref\nclass O{0}:\n    k = 2.0\n    def m(s): return 2.0\nA{0} = O{0}()\n"
case(
    "weak: method that its class gets another of",
    OBJECT.format(1) + "W1 = weakref.WeakMethod(A1.m)",
    "f = W1()\ny = y * (5.0 if f is None else f())",
    "A1.m = lambda: 4.0",
    "O1.m = lambda s: 3.0",
    "del A1",
)
case(
    "weak: method whose function is kept",
    OBJECT.format(2) + "W2 = weakref.WeakMethod(A2.m)\nM2 = O2.m",
    "f = W2()\ny = y * (5.0 if f is None else f())",
    "O2.m = lambda s: 3.0",
    "M2 = None",
)
case(
    "weak: object that is a global, too",
    OBJECT.format(3) + "W3 = weakref.ref(A3)",
    "a = W3()\ny = y * (5.0 if a is None else a.k) * (2 if A3 is None else A3.k)",
    "A3.k = 3.0",
    "A3 = None",
)
case(
    "weak: object that is written to",
    OBJECT.format(4) + "W4 = weakref.ref(A4)",
    "a = W4()\nif a is not None and a is A4:\n    a.k += 1\n    y = y * a.k",
    "A4.k = 3.0",
    "A4 = None",
)
case(
    "weak: function",
    "import weakref\ndef f5(): return 2.0\nW5 = weakref.ref(f5)",
    "f = W5()\ny = y * (5.0 if f is None else f()) * (1 if f5 is None else f5())",
    "f5.__code__ = (lambda: 3.0).__code__",
    "f5 = None",
)
case(
    "weak: module",
    "import weakref\ntorch.manual_seed(0)\nM6 = nn.Linear(3, 3)\nW6 = weakref.ref(M6)",
    "m = W6()\ny = y * 5 if m is None else m(M6(y))",
    "M6.bias.data.fill_(1.0)",
    "M6.register_forward_hook(lambda m, a, o: o * 2)",
    "M6 = None",
)
case(
    "weak: values of a dict",
    OBJECT.format(7) + "D7 = weakref.WeakValueDictionary(a=A7, b=O7.m)",
    "a, f = D7.get('a'), D7.get('b')\ny = y * (5.0 if a is None else a.m()) * (7.0 if f is None else f(A7))",
    "O7.m = lambda s: 3.0",
    "A7 = None",
)
case(
    "weak: member of a set",
    OBJECT.format(8) + "S8 = weakref.WeakSet([A8])",
    "for a in S8:\n    y = y * a.k * (2 if a is A8 else 3)\ny = y * (1 + len(S8))",
    "A8.k = 3.0",
    "A8 = None",
)
