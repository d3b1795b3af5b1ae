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
case(
    "ids: object",
    "class O17: pass\nq_k17 = O17()\nd_k17 = {id(q_k17): 2.0}",
    "y = y * d_k17.get(id(q_k17), 5.0)",
    "q_k17 = O17()",
    "d_k17[id(q_k17)] = 7.0",
)
case(
    "ids: object that is an argument",
    "class O18: pass\nNAMED['q18'] = O18()\nNAMED['l18'] = [1]\nd_k18 = {id(NAMED['q18']): 2.0, id(NAMED['l18']): 3.0}",
    "y = y * d_k18.get(id(q18), 5.0) * d_k18.get(id(l18), 7.0)",
    "d_k18[id(NAMED['q18'])] = 7.0",
    "NAMED['kept'] = NAMED.pop('l18')\nNAMED['l18'] = [1]\ndel NAMED['kept']",
    "d_k18 = {}",
)
case(
    "ids: tensors",
    "q_k19 = tensor(1, 2, 3)\nd_k19 = {id(q_k19): 2.0}\nold_k19 = q_k19",
    "y = y * d_k19.get(id(q_k19), 5.0)",
    "q_k19 = tensor(1, 2, 3)",
    "d_k19[id(q_k19)] = 7.0",
)
case(
    "ids: parameters",
    "m_k20 = nn.Linear(3, 3)\nd_k20 = {id(p): n for n, p in m_k20.named_parameters()}\nold_k20 = m_k20.bias",
    "for p in m_k20.parameters():\n    y = y * len(d_k20.get(id(p), 'other'))",
    "m_k20.bias = nn.Parameter(torch.ones(3))",
    "d_k20 = {id(p): n * 2 for n, p in m_k20.named_parameters()}",
)
case(
    "length of a deque that is left behind",
    "NAMED['q21'] = collections.deque([1.0], maxlen=2)",
    "q21.append(2.0)\nt = q21.copy()\nt.append(4.0)\ny = y * q21[0] * len(q21) * t[0] * len(t)",
    "NAMED['q21'] = collections.deque([1.0], maxlen=1)",
    "NAMED['q21'] = collections.deque([1.0])",
    "NAMED['q21'] = collections.deque([1.0], maxlen=1)",
)
case(
    "zero: quotient",
    "n22 = 1",
    "try:\n    y = y * (2.0 / n22)\nexcept ZeroDivisionError:\n    y = y * 7",
    "n22 = 2",
    "n22 = 0",
    "n22 = 3",
    "n22 = 0",
)
case(
    "zero: whole quotient",
    "n23 = 1",
    "try:\n    y = y * (20 // n23)\nexcept ZeroDivisionError:\n    y = y * 7",
    "n23 = 2",
    "n23 = 0",
    "n23 = 3",
    "n23 = 0",
)
case(
    "zero: remainder",
    "n24 = 1",
    "try:\n    y = y * (20 % n24)\nexcept ZeroDivisionError:\n    y = y * 7",
    "n24 = 2",
    "n24 = 0",
    "n24 = 3",
    "n24 = 0",
)
case(
    "zero: power",
    "n25 = 1",
    "try:\n    y = y * (n25 ** -1)\nexcept ZeroDivisionError:\n    y = y * 7",
    "n25 = 2",
    "n25 = 0",
    "n25 = 3",
    "n25 = 0",
)
case(
    "zero: both",
    "n26 = 1",
    "try:\n    y = y * (divmod(20, n26)[1])\nexcept ZeroDivisionError:\n    y = y * 7",
    "n26 = 2",
    "n26 = 0",
    "n26 = 3",
    "n26 = 0",
)
case(
    "width of a format",
    "n_k27 = 2",
    "y = y * len('%*d' % (n_k27, 5))",
    "n_k27 = 3",
    "n_k27 = 6",
)
case(
    "dict whose items are attributes",
    "class D28(dict):\n    __getattr__ = dict.__getitem__\nd_k28 = D28(a=2.0)",
    "y = y * d_k28.a * d_k28['a']",
    "d_k28['a'] = 3.0",
    "D28.a = 9.0",
    "D28.__getitem__ = lambda s, k: 1.5",
)
