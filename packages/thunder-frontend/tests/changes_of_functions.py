"""Changes to globals, builtins, closures and functions."""

# ruff: noqa: E501
from changes import case

case("global number", "G1 = 2.0", "y = y * G1", "G1 = 3.0", "G1 = 2", "G1 = True", "G1 = -0.0", "G1 = 0.0", "del G1")
case(
    "global tensor",
    "G2 = tensor(1, 2, 3)",
    "y = y + G2",
    "G2 = tensor(4, 5, 6)",
    "G2.add_(1)",
    "G2 = G2.double()",
    "G2 = nn.Parameter(tensor(1, 2, 3))",
    "G2.requires_grad_(False)",
    "G2.data = tensor(7, 8, 9)",
    "G2 = 4.0",
)
case(
    "shadowed builtin", "", "y = y * len([1, 2])", "len = lambda v: 5", "del len", "import builtins; abs = builtins.abs"
)
case(
    "closure",
    "def _(k):\n    def inner(v):\n        return v * k\n    def change(new):\n        nonlocal k\n        k = new\n    return inner, change\nF1, SET_F1 = _(2.0)",
    "y = F1(y)",
    "SET_F1(3.0)",
    "SET_F1(tensor(1, 2, 3))",
    "SET_F1(2)",
)
case(
    "closure of an inner function",
    "def _(k):\n    def inner(v):\n        def innermost():\n            return v * k\n        return innermost()\n    def change(new):\n        nonlocal k\n        k = new\n    return inner, change\nF1B, SET_F1B = _(2.0)",
    "y = F1B(y)",
    "SET_F1B(3.0)",
    "SET_F1B(tensor(1, 2, 3))",
)
case(
    "closures with one name for two things",
    "def _(kept):\n    def inner(v):\n        return v * kept * getattr(kept, 'scale', 1.0) + (1.0 if kept.is_leaf else 2.0)\n    def change(new):\n        nonlocal kept\n        kept = new\n    return inner, change\nF1C, SET_F1C = _(nn.Parameter(tensor(1, 2, 3)))\nT1C = nn.Parameter(tensor(4, 5, 6))\nF1D, SET_F1D = _(T1C)",
    "y = F1C(y) + F1D(y)",
    "T1C.scale = 3.0",
    "SET_F1C(T1C)",
    "SET_F1D(nn.Parameter(tensor(4, 5, 6)) * 1.0)",
    "SET_F1C(nn.Parameter(tensor(4, 5, 6)) * 1.0)",
)
case(
    "closure container",
    "def _(k):\n    return (lambda v: v * k['a'][1]), k\nF2, K2 = _({'a': [1, 2.0]})",
    "y = F2(y)",
    "K2['a'][1] = 3.0",
    "K2['a'] = [0, 5.0]",
    "K2['b'] = 1",
)
case(
    "defaults",
    "def F3(v, k=2.0, *, m=1.0):\n    return v * k + m",
    "y = F3(y)",
    "F3.__defaults__ = (3.0,)",
    "F3.__kwdefaults__ = {'m': 4.0}",
    "F3.__kwdefaults__['m'] = 5.0",
    "F3.__defaults__ = (tensor(1, 2, 3),)",
)
case("default container", "def F4(v, k=[2.0]):\n    return v * k[0]", "y = F4(y)", "F4.__defaults__[0][0] = 4.0")
case("code", "def F5(v):\n    return v + 1\ndef F5b(v):\n    return v - 1", "y = F5(y)", "F5.__code__ = F5b.__code__")
case(
    "function attribute",
    "def F6(v):\n    return v * F6.k\nF6.k = 2.0",
    "y = F6(y)",
    "F6.k = 3.0",
    "F6.k = tensor(1, 2, 3)",
)
case(
    "partial",
    "F7 = functools.partial(torch.add, other=2.0)",
    "y = F7(y)",
    "F7 = functools.partial(torch.add, other=3.0)",
    "F7.keywords['other'] = 5.0",
    "F7.keywords['alpha'] = 2",
)
case(
    "partial argument",
    "def mul8(a, b):\n    return a * b[0]\nL8 = [2.0]\nF8 = functools.partial(mul8, b=L8)",
    "y = F8(y)",
    "L8[0] = 4.0",
)
case(
    "module function",
    "M9 = types.ModuleType('m9')\nM9.f = torch.sin\nM9.k = 2.0",
    "y = M9.f(y) * M9.k",
    "M9.f = torch.cos",
    "M9.k = 3.0",
    "M9 = types.SimpleNamespace(f=torch.exp, k=1.0)",
)
case("library constant", "", "y = y * math.pi", "math.pi = 3.0", "math.pi = 3.141592653589793")
case(
    "decorated",
    "def deco(f):\n    @functools.wraps(f)\n    def w(*a):\n        return f(*a) * deco.k\n    return w\ndeco.k = 1.0\n@deco\ndef F10(v):\n    return v + 1",
    "y = F10(y)",
    "deco.k = 2.0",
    "F10 = F10.__wrapped__",
)
case(
    "cached",
    "@functools.lru_cache\ndef F11(n):\n    return n * K11\nK11 = 2.0",
    "y = y * F11(1)",
    "K11 = 3.0",
    "F11.cache_clear()",
)
case(
    "name that nothing defines",
    "",
    "try:\n    y = y * thunder_scene\nexcept NameError:\n    y = y * 7",
    "import builtins; builtins.thunder_scene = 2.0",
    "thunder_scene = 3.0",
    "del thunder_scene",
    "del builtins.thunder_scene",
)
case(
    "variable of a closure without a value",
    "def make_vc():\n    def f():\n        return v\n    def s(k):\n        nonlocal v\n        v = k\n    def d():\n        nonlocal v\n        del v\n    v = 1\n    d()\n    return f, s, d\nf_vc, s_vc, d_vc = make_vc()",
    "try:\n    y = y * f_vc()\nexcept NameError:\n    y = y * 7",
    "s_vc(3.0)",
    "d_vc()",
    "s_vc(5.0)",
)
case(
    "defaults that come",
    "def f_dc(a):\n    return a\ndef g_dc(*, a):\n    return a",
    "for f in (f_dc, g_dc):\n    try:\n        y = y * f()\n    except TypeError:\n        y = y * 9",
    "f_dc.__defaults__ = (3.0,)",
    "g_dc.__kwdefaults__ = {'a': 5.0}",
    "f_dc.__defaults__ = None",
)
case(
    "global that is deleted",
    "K_gd = 2.0",
    "global K_gd\nv = K_gd\ndel K_gd\nK_gd = v + 1\ny = y * v",
    "K_gd = 7.0",
)
case(
    "attribute that comes and goes",
    "class A_cg: pass\na_cg = A_cg()",
    "y = y * (2 if hasattr(a_cg, 'z') else 3)\na_cg.z = 1.0\ndel a_cg.z",
    "a_cg.z = 3.0",
    "pass",
)
case(
    "attribute that is left behind or not",
    "class A_lb: pass\na_lb = A_lb()\ndef f_lb():\n    a_lb.z = 1.0\n    del a_lb.z",
    "f_lb()\ny = y * (2 if 'z' in vars(a_lb) else 3)",
    "a_lb.z = 3.0",
)
