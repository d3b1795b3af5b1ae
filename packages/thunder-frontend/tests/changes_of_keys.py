"""Changes to the keys of dicts and the members of sets, and to objects among them."""

# ruff: noqa: E501
from changes import LINEAR, case

KEY = "class K_{0}:\n    def __init__(s, v):\n        s.v = v"
case(
    "keys: objects",
    KEY.format(1) + "\nd_k1 = {K_1(2.0): 2.0}",
    "for k in d_k1:\n    y = y * k.v * d_k1[k]",
    "next(iter(d_k1)).v = 5.0",
    "d_k1 = {K_1(7.0): 2.0}",
)
case(
    "keys: items",
    KEY.format(2) + "\nNAMED['d2k'] = {K_2(2.0): 2.0}",
    "for k, v in d2k.items():\n    y = y * k.v * v",
    "next(iter(NAMED['d2k'])).v = 5.0",
    "NAMED['d2k'] = {K_2(7.0): 3.0}",
)
case(
    "keys: list",
    KEY.format(3) + "\nd_k3 = {K_3(2.0): 2.0}",
    "y = y * list(d_k3)[0].v * next(iter(d_k3)).v",
    "next(iter(d_k3)).v = 5.0",
)
case(
    "keys: max",
    KEY.format(4) + "\nd_k4 = {K_4(2.0): 2.0, K_4(3.0): 2.0}",
    "y = y * max(d_k4, key=lambda k: k.v).v",
    "next(iter(d_k4)).v = 5.0",
)
case(
    "keys: in tuples",
    KEY.format(5) + "\nd_k5 = {(K_5(2.0), 1): 2.0}",
    "for a, b in d_k5:\n    y = y * a.v + b",
    "next(iter(d_k5))[0].v = 5.0",
)
case(
    "keys: members",
    KEY.format(6) + "\nNAMED['s6k'] = {K_6(2.0)}",
    "for k in s6k:\n    y = y * k.v",
    "next(iter(NAMED['s6k'])).v = 5.0",
    "NAMED['s6k'] = {K_6(7.0)}",
)
case(
    "keys: modules",
    LINEAR.format("m_k7") + "\nd_k7 = {m_k7: 2.0}",
    "for k in d_k7:\n    y = k(y) * d_k7[k]",
    "m_k7.bias = None",
    "d_k7 = {nn.ReLU(): 3.0}",
)
case(
    "keys: functions",
    "n_k8 = 2.0\ndef f_k8(t):\n    return t * n_k8\nd_k8 = {f_k8: 2.0}",
    "for k in d_k8:\n    y = k(y) * d_k8[k]",
    "n_k8 = 3.0",
    "def f_k8(t):\n    return t + n_k8\nd_k8 = {f_k8: 2.0}",
)
case(
    "keys: strings with attributes",
    "class S_k9(str):\n    z = 2.0\nd_k9 = {S_k9('a'): 1.0}",
    "for k in d_k9:\n    y = y * k.z",
    "next(iter(d_k9)).z = 3.0",
    "S_k9.z = 5.0",
    "d_k9 = {S_k9('a'): 1.0}",
)
case(
    "keys: of a class derived from str",
    "class S_k10(str): pass\nd_k10 = {'a': 2.0}",
    "for k in d_k10:\n    y = y * (2 if type(k) is S_k10 else 3)",
    "d_k10 = {S_k10('a'): 2.0}",
    "d_k10 = {'a': 2.0}",
    "d_k10.clear(); d_k10[S_k10('a')] = 2.0",
)
case(
    "keys: that are equal to all",
    "class S_k11(str):\n    def __eq__(s, o):\n        return True\n    def __hash__(s):\n        return 1\nd_k11 = {S_k11('a'): 2.0}",
    "for k in d_k11:\n    y = y * len(k)",
    "d_k11 = {S_k11('bb'): 2.0}",
)
case(
    "keys: order of a set",
    "s_k12 = {0, 8}",
    "for v in s_k12:\n    y = y * 2 + v",
    "s_k12 = set([8, 0])",
    "s_k12 = {0, 8}",
)
case(
    "slots: numbers",
    "import fractions, numbers\nq_k13 = fractions.Fraction(1, 2)",
    "y = y * float(q_k13) * q_k13.denominator",
    "q_k13._numerator = 3",
    "q_k13._denominator = 5",
)
case(
    "slots: own numbers",
    "import numbers\nclass N_k14(numbers.Number):\n    __slots__ = ('v',)\n    def __init__(s, v):\n        s.v = v\n    def __hash__(s):\n        return 1\nNAMED['q14k'] = N_k14(2.0)",
    "y = y * q14k.v",
    "NAMED['q14k'].v = 3.0",
    "NAMED['q14k'] = N_k14(4.0)",
)
case(
    "hooks of a tensor",
    "q_k15 = tensor(1, 2, 3).requires_grad_()",
    "y = y * (2 if q_k15._backward_hooks else 3) * len(q_k15._post_accumulate_grad_hooks or 'a')",
    "q_k15._backward_hooks = collections.OrderedDict({0: lambda g: g})",
    "q_k15._backward_hooks = None",
    "q_k15.register_hook(lambda g: g)",
    "for _ in 'ab': q_k15.register_post_accumulate_grad_hook(lambda p: None)",
)
case(
    "autograd of a tensor",
    "q_k16 = tensor(1, 2, 3).requires_grad_() * 1",
    "y = y * (2 if q_k16.retains_grad else 3)",
    "q_k16.retain_grad()",
    "q_k16 = tensor(1, 2, 3).requires_grad_()",
)
