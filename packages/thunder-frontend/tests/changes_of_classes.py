"""Changes to classes and what they are made of, and to objects of which copies are made."""

# ruff: noqa: E501
from changes import case

case(
    "attribute of a class that its metaclass comes to have",
    "class M1(type):\n    pass\nclass A1(metaclass=M1):\n    k = 2.0",
    "y = y * A1.k",
    "M1.k = 3.0",
    "M1.k = property(lambda c: 4.0)",
    "del M1.k",
)
case(
    "bases that isinstance asks for",
    "class A2:\n    pass\nclass B2:\n    pass\nclass C2_(A2):\n    pass\nO2_ = C2_()",
    "y = y * (2 if isinstance(O2_, A2) else 3) * (5 if issubclass(C2_, B2) else 7)",
    "C2_.__bases__ = (B2,)",
    "C2_.__bases__ = (A2, B2)",
)
case(
    "slot that is deleted",
    "class A3:\n    __slots__ = ('k', '__dict__')\nO3 = A3()\nO3.k = 2.0",
    "y = y * getattr(O3, 'k', 5.0)",
    "del O3.k",
    "O3.k = 3.0",
)
case(
    "callable or not",
    "class A4:\n    pass\nO4_ = A4()",
    "y = y * (2 if callable(O4_) else 3)",
    "A4.__call__ = lambda s: 1",
    "del A4.__call__",
)
case(
    "attribute that a module computes",
    "M5 = types.ModuleType('m5')\nM5.__getattr__ = lambda n: K5\nK5 = 2.0",
    "y = y * M5.k",
    "K5 = 3.0",
    "M5.k = 4.0",
    "del M5.k",
    "M5.__getattr__ = lambda n: 9.0",
)
case(
    "methods of a custom function",
    "class F6_(torch.autograd.Function):\n    @staticmethod\n    def forward(c, v):\n        return v * 2\n    @staticmethod\n    def backward(c, g):\n        return g * 2",
    "y = F6_.apply(y)",
    "F6_.forward = staticmethod(lambda c, v: v * 9)",
)
case(
    "graph of a module",
    "import torch.fx\nM7_ = torch.fx.symbolic_trace(nn.Sequential(nn.Linear(3, 3), nn.ReLU()))\nnn.init.ones_(M7_.get_submodule('0').weight)\nnn.init.ones_(M7_.get_submodule('0').bias)",
    "y = M7_(y)",
    "M7_.get_submodule('0').weight.data.mul_(2)",
    "for n in M7_.graph.nodes:\n    n.target = '0' if n.target == '1' else n.target\nM7_.recompile()",
)
case(
    "namespace that is shown and compared",
    "A8 = types.SimpleNamespace(k=1)\nB8 = types.SimpleNamespace(k=1)",
    "y = y * len(repr(A8)) * (2 if A8 == B8 else 3)",
    "A8.k = 22",
    "B8.k = 22",
    "B8.z = 1",
)
case(
    "copy",
    "class A9_:\n    pass\nO9_ = A9_()\nO9_.k = [2.0]",
    "y = y * copy.copy(O9_).k[0] * copy.deepcopy(O9_).k[-1]",
    "O9_.k[0] = 3.0",
    "O9_.k.append(4.0)",
    "O9_.k = (5.0,)",
    "A9_.__copy__ = lambda s: types.SimpleNamespace(k=[7.0])",
    "del O9_.k",
)
case(
    "copy of slots",
    "class A10_:\n    __slots__ = ('k', 'z')\nO10_ = A10_()\nO10_.k = 2.0",
    "c = copy.copy(O10_)\ny = y * c.k + (c.z if hasattr(c, 'z') else 5.0)",
    "O10_.k = 3.0",
    "O10_.z = 4.0",
    "del O10_.k",
)
case(
    "copy by what a class says",
    "class A11:\n    def __init__(s, k):\n        s.k = k\n    def __reduce__(s):\n        return A11, (K11_,)\nclass B11:\n    def __getstate__(s):\n        return {'k': K11_}\nK11_ = 2.0\nO11_, P11 = A11(1.0), B11()",
    "y = y * copy.copy(O11_).k + copy.deepcopy(P11).k",
    "K11_ = 3.0",
    "A11.__reduce__ = lambda s: (A11, (7.0,))",
    "B11.__getstate__ = lambda s: {'k': 8.0}",
)
case(
    "function that is profiled",
    "@torch.autograd.profiler.record_function('scene')\ndef f12_(v):\n    return v * K12\nK12 = 2.0",
    "y = f12_(y)",
    "K12 = 3.0",
)
case(
    "union of classes",
    "U_un = int | str\nv_un = 3",
    "y = y * (2 if isinstance(v_un, U_un) else 3) * (5 if isinstance(v_un, list | dict) else 7)",
    "v_un = 2.5",
    "U_un = float | str",
)
case(
    "subclasses",
    "class A_sub:\n    pass\nKEPT_sub = []",
    "y = y * (1 + len(A_sub.__subclasses__()))",
    "KEPT_sub.append(type('B_sub', (A_sub,), {}))",
    "KEPT_sub.append(type('C_sub', (A_sub,), {}))",
)
METACLASSES = """
class M_a(type):
    k = 2.0
    def __call__(c):
        return super().__call__()
    def __instancecheck__(c, o):
        return False
    def __len__(c):
        return 2
class M_b(type):
    k = 3.0
    def __call__(c):
        return 5.0
    def __instancecheck__(c, o):
        return True
    def __len__(c):
        return 0
class M_c(type):
    def __getattribute__(c, n):
        return 5.0 if n == "k" else type.__getattribute__(c, n)
class A_m(metaclass=M_a):
    h = 7.0
"""
for name, body in (
    ("read", "y = y * A_m.k"),
    ("called", "v = A_m()\ny = y * (v if isinstance(v, float) else v.h)"),
    ("asked for instances", "y = y * (2 if isinstance(3, A_m) else 3)"),
    ("asked for", "y = y * (2 if type(A_m) is M_a else 3)"),
    ("an instance", "y = y * (2 if isinstance(A_m, M_a) else 3)"),
    ("true or not", "y = y * (2 if A_m else 3)"),
):
    case(f"metaclass: {name}", METACLASSES, body, "A_m.__class__ = M_b", "A_m.__class__ = M_c", "A_m.__class__ = M_a")
case(
    "class that an object claims to have",
    "class A_cl:\n    c = int\n    __class__ = property(lambda s: s.c)\na_cl = A_cl()",
    "y = y * (2 if isinstance(a_cl, int) else 3) * (5 if isinstance(a_cl, (str, A_cl)) else 7)",
    "a_cl.c = str",
    "del a_cl.c",
    "A_cl.c = float",
    "A_cl.__class__ = property(lambda s: s.none)",
)
case(
    "class that stops being abstract",
    "import abc\nclass A_ab(abc.ABC):\n    @abc.abstractmethod\n    def f(s): pass\nclass B_ab(A_ab): pass",
    "try:\n    B_ab()\n    y = y * 2\nexcept TypeError:\n    y = y * 3",
    "B_ab.f = lambda s: 1; abc.update_abstractmethods(B_ab)",
)
case(
    "dict of a class",
    "class A_di:\n    k = 2.0",
    "y = y * A_di.__dict__['k'] * (2 if 'z' in vars(A_di) else 3)",
    "A_di.k = 3.0",
    "A_di.z = 1",
    "del A_di.z",
)
case(
    "names of a class",
    "class A_na:\n    k = 2.0\na_na = A_na()",
    "y = y * len([n for n in vars(A_na) if n[0] != '_']) * len(dir(A_na)) * len(dir(a_na))",
    "A_na.z = 3.0",
    "a_na.z = 3.0",
    "del A_na.z",
)
case(
    "static attribute",
    "import inspect\nclass A_st:\n    k = 2.0\na_st = A_st()",
    "y = y * inspect.getattr_static(a_st, 'k') * len(inspect.getmembers(a_st))",
    "A_st.k = 3.0",
    "a_st.k = 4.0",
)
case(
    "hints of types",
    "import typing\nclass A_th:\n    k: float",
    "y = y * len(typing.get_type_hints(A_th))",
    "A_th.__annotations__['b'] = int",
)
case(
    "dispatch by abstract classes",
    "import abc\n@functools.singledispatch\ndef f_da(a): return 2.0\nclass I_da(abc.ABC): pass\nclass A_da: pass\nf_da.register(I_da, lambda a: 3.0)\na_da = A_da()",
    "y = y * f_da(a_da)",
    "I_da.register(A_da)",
)
case(
    "what the dict of a class holds",
    "class DC1:\n    a: int\n    b = [1.0]",
    "y = y * len(DC1.__dict__['__annotations__']) * len(DC1.__dict__.get('b'))\n"
    "for name, value in vars(DC1).items():\n    y = y * (len(value) if name == 'b' else 1)\n"
    "DC1.c = 3.0\ny = y * DC1.__dict__['c']",
    "DC1.__annotations__['q'] = int",
    "DC1.b.append(2.0)",
    "DC1.b = []",
    "DC1.c = 5.0",
)
