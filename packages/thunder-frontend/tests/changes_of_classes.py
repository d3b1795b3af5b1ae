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
