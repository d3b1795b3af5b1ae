"""Changes to arguments."""

# ruff: noqa: E501
from changes import case

case(
    "number argument",
    "NAMED['n'] = 2",
    "y = y * n",
    "NAMED['n'] = 3",
    "NAMED['n'] = 2.0",
    "NAMED['n'] = True",
    "NAMED['n'] = 1",
    "NAMED['n'] = -0.0",
    "NAMED['n'] = 0.0",
    "NAMED['n'] = float('nan')",
    "NAMED['n'] = 2+1j",
)
case(
    "optional argument",
    "NAMED['o'] = None",
    "y = y if o is None else y * o",
    "NAMED['o'] = 3",
    "NAMED['o'] = tensor(1, 2, 3)",
    "NAMED['o'] = None",
)
case("string argument", "NAMED['s'] = 'sin'", "y = getattr(torch, s)(y)", "NAMED['s'] = 'cos'", "NAMED['s'] = 'sin'")
case(
    "tensor argument",
    "NAMED['t'] = tensor(1, 2, 3)",
    "y = y + t * t.stride()[0] if t.ndim == 1 else y + t.sum()",
    "NAMED['t'] = tensor(1, 2, 3).double()",
    "NAMED['t'] = tensor(1, 2, 3).requires_grad_()",
    "NAMED['t'] = tensor(1, 9, 2, 9, 3, 9)[::2]",
    "NAMED['t'] = nn.Parameter(tensor(1, 2, 3))",
    "NAMED['t'] = tensor(5)",
    "NAMED['t'] = tensor(1, 2, 3)[None]",
    "NAMED['t'] = torch.tensor([1, 2, 3])",
    "NAMED['t'] = torch.tensor(4.0)",
    "NAMED['t'] = tensor(0, 1, 2, 3)[1:]",
)
case(
    "layout",
    "NAMED['w'] = torch.arange(6.0).reshape(2, 3)",
    "y = y + w.reshape(-1).view(3, 2).sum() * (2 if w.is_contiguous() else 3) + w.stride(0) + w.storage_offset()",
    "NAMED['w'] = torch.arange(6.0).reshape(3, 2).t()",
    "NAMED['w'] = torch.arange(9.0)[3:].reshape(2, 3)",
)
case(
    "aliases",
    "NAMED['p'], NAMED['q'] = tensor(1, 2, 3), tensor(1, 2, 3)",
    "y = y + (1 if p is q else 2) + p * q",
    "NAMED['q'] = NAMED['p']",
    "NAMED['q'] = tensor(1, 2, 3)",
    "NAMED['q'] = NAMED['p'].view(-1)",
)
case(
    "aliases and writes",
    "NAMED['p2'], NAMED['q2'] = tensor(1, 2, 3), tensor(1, 2, 3)",
    "p2.add_(1)\ny = y + q2 * 2",
    "NAMED['q2'] = NAMED['p2']",
    "NAMED['q2'] = tensor(1, 2, 3)",
    "NAMED['q2'] = NAMED['p2'].view(-1)",
    "NAMED['q2'] = NAMED['p2'].flip(0)",
    "z = tensor(1, 2, 3, 4); NAMED['p2'], NAMED['q2'] = z[:3], z[1:]",
)
case(
    "list argument",
    "NAMED['l'] = [tensor(1, 2, 3), 2.0]",
    "y = y * len(l) + l[0] * l[1]",
    "NAMED['l'][1] = 3.0",
    "NAMED['l'].append(1)",
    "NAMED['l'] = (tensor(1, 2, 3), 2.0)",
    "NAMED['l'] = [tensor(1, 2, 3), 2]",
    "NAMED['l'] = [2.0, tensor(1, 2, 3)]",
)
case(
    "loop over an argument",
    "NAMED['l2'] = [1.0, 2.0]",
    "for v in l2:\n    y = y * v",
    "NAMED['l2'][1] = 3.0",
    "NAMED['l2'].append(1.5)",
    "NAMED['l2'] = (1.0, 2.0)",
    "NAMED['l2'] = [tensor(1, 2, 3)]",
    "NAMED['l2'] = {3.0: 1}",
    "NAMED['l2'] = range(1, 3)",
)
case(
    "dict argument",
    "NAMED['d'] = {'a': tensor(1, 2, 3), 'b': 2.0}",
    "for k, v in d.items():\n    y = y * v + len(k)",
    "NAMED['d']['b'] = 3.0",
    "NAMED['d'] = {'b': 3.0, 'a': tensor(1, 2, 3)}",
    "NAMED['d']['cc'] = 1",
    "del NAMED['d']['a']",
    "NAMED['d'] = {}",
)
case(
    "key of an argument",
    "NAMED['d2'] = {'a': tensor(1, 2, 3)}",
    "y = y + (d2['b'] if 'b' in d2 else d2['a'])",
    "NAMED['d2']['b'] = tensor(3, 3, 3)",
    "NAMED['d2']['c'] = 1",
    "NAMED['d2']['b'] = 4.0",
)
case(
    "getters",
    "s_ge = types.SimpleNamespace(a=2.0, b=3.0, c=lambda k: k)\nNAMED['i_ge'] = operator.itemgetter(0)\nNAMED['a_ge'] = operator.attrgetter('a')\nNAMED['m_ge'] = operator.methodcaller('c', 5.0)",
    "y = y * i_ge([2.0, 3.0]) * a_ge(s_ge) * m_ge(s_ge)",
    "NAMED['i_ge'] = operator.itemgetter(1)",
    "NAMED['a_ge'] = operator.attrgetter('b')",
    "NAMED['m_ge'] = operator.methodcaller('c', k=7.0)",
    "NAMED['i_ge'] = operator.itemgetter(0)",
)
case(
    "pattern",
    "import re\nNAMED['p_pa'] = re.compile('a')",
    "y = y * len(p_pa.findall('aabA'))",
    "NAMED['p_pa'] = re.compile('b')",
    "NAMED['p_pa'] = re.compile('a', re.I)",
)
case(
    "nested argument",
    "NAMED['e'] = [{'a': (tensor(1, 2, 3), [2.0])}]",
    "y = y * e[0]['a'][0] + e[0]['a'][1][0]",
    "NAMED['e'][0]['a'][1][0] = 3.0",
    "NAMED['e'][0]['a'] = (tensor(3, 2, 1), [4])",
    "NAMED['e'][0] = {'a': (1, [2.0])}",
)
case(
    "aliases in a list",
    "_t = tensor(1, 2, 3)\nNAMED['al'] = [_t, _t]",
    "al[0].mul_(2)\ny = y + al[1]",
    "NAMED['al'] = [tensor(1, 2, 3), tensor(1, 2, 3)]",
    "NAMED['al'][1] = NAMED['al'][0]",
    "NAMED['al'][1] = NAMED['al'][0][:]",
)
case(
    "object argument",
    "class V1:\n    z = 1.0\n    def __init__(self, k, t):\n        self.k, self.t = k, t\nNAMED['obj'] = V1(2.0, tensor(1, 2, 3))",
    "y = y * obj.k + obj.t + obj.z",
    "NAMED['obj'].k = 3.0",
    "NAMED['obj'] = V1(5.0, tensor(4, 4, 4))",
    "NAMED['obj'].z = 2.0",
    "V1.z = 3.0",
    "del NAMED['obj'].z",
    "NAMED['obj'].t = 5",
    "NAMED['obj'] = types.SimpleNamespace(k=1.0, t=1.0, z=1.0)",
)
case(
    "method of an argument",
    "class V2:\n    def m(self, v):\n        return v + 1\nclass V2b(V2):\n    def m(self, v):\n        return v + 5\nNAMED['obj2'] = V2()",
    "y = obj2.m(y)",
    "NAMED['obj2'].m = lambda v: v * 2",
    "NAMED['obj2'] = V2()",
    "V2.m = lambda self, v: v - 1",
    "NAMED['obj2'] = V2b()",
)
case(
    "function argument",
    "NAMED['f'] = torch.sin",
    "y = f(y)",
    "NAMED['f'] = torch.cos",
    "NAMED['f'] = lambda v: v + 1",
    "NAMED['f'] = functools.partial(torch.add, other=1)",
    "NAMED['f'] = functools.partial(torch.add, other=2)",
    "NAMED['f'].keywords['other'] = 3",
    "NAMED['f'] = nn.ReLU()",
)
case(
    "closures as arguments",
    "def make3(k):\n    return lambda v: v * k\nNAMED['f3'] = make3(2.0)",
    "y = f3(y)",
    "NAMED['f3'] = make3(3.0)",
    "NAMED['f3'] = make3(tensor(1, 2, 3))",
)
case(
    "module argument",
    "torch.manual_seed(0)\nNAMED['mod'] = nn.Linear(3, 3)",
    "y = mod(y)",
    "torch.manual_seed(1); NAMED['mod'] = nn.Linear(3, 3)",
    "NAMED['mod'].bias = None",
    "NAMED['mod'] = nn.ReLU()",
    "NAMED['mod'].register_forward_hook(lambda m, a, o: o + 1)",
)
case(
    "dataclass argument",
    "@dataclasses.dataclass\nclass V4:\n    a: object\n    b: object = 1.0\nNAMED['dc'] = V4(tensor(1, 2, 3))",
    "y = y * dc.b + dc.a\nfor fld in dataclasses.fields(dc):\n    y = y + len(fld.name)",
    "NAMED['dc'].b = 2.0",
    "NAMED['dc'] = V4(2.0, tensor(1, 2, 3))",
    "NAMED['dc'] = dataclasses.replace(NAMED['dc'], b=4)",
)
case(
    "dtype argument",
    "NAMED['dt'] = torch.float64",
    "y = y.to(dt).float() + torch.ones(3, dtype=dt).element_size()",
    "NAMED['dt'] = torch.bfloat16",
    "NAMED['dt'] = torch.int64",
)
case(
    "size argument",
    "NAMED['sz'] = torch.Size([3])",
    "y = y + torch.ones(sz) * len(sz)",
    "NAMED['sz'] = (3,)",
    "NAMED['sz'] = [1, 3]",
    "NAMED['sz'] = 3" if False else "NAMED['sz'] = torch.Size([2, 3])",
)
case(
    "type of an argument",
    "class Sub(torch.Tensor):\n    pass\nNAMED['ty'] = tensor(1, 2, 3)",
    "y = y + (1 if type(ty) is torch.Tensor else 2) + (3 if isinstance(ty, nn.Parameter) else 4)",
    "NAMED['ty'] = nn.Parameter(tensor(1, 2, 3))",
    "NAMED['ty'] = 3",
)
case(
    "attribute of a tensor",
    "NAMED['at'] = tensor(1, 2, 3)\nNAMED['at'].scale = 2.0",
    "y = y * at.scale",
    "NAMED['at'].scale = 3.0",
    "NAMED['at'] = tensor(1, 2, 3); NAMED['at'].scale = 4.0",
)
case(
    "enum argument",
    "class E5(enum.IntEnum):\n    A = 1\n    B = 2\nNAMED['en'] = E5.A",
    "y = y * en + (1 if en is E5.A else 2)",
    "NAMED['en'] = E5.B",
    "NAMED['en'] = 2",
    "NAMED['en'] = 1",
)
case(
    "set argument",
    "NAMED['st'] = {1, 2}",
    "y = y * (2 if 1 in st else 3) + len(st)",
    "NAMED['st'].discard(1)",
    "NAMED['st'] = {1, 5, 6}",
    "NAMED['st'] = frozenset({1})",
)
case(
    "type argument",
    "class A6t:\n    k = 1.0\nclass B6t:\n    k = 2.0\nNAMED['cl'] = A6t",
    "y = y * cl.k + (1 if issubclass(cl, A6t) else 0)",
    "NAMED['cl'] = B6t",
    "B6t.k = 3.0",
)
case(
    "same list twice",
    "_l = [2.0]\nNAMED['la'], NAMED['lb'] = _l, _l",
    "la.append(3.0)\ny = y * len(lb) * lb[-1]\nla.pop()",
    "NAMED['lb'] = [2.0]",
    "NAMED['lb'] = NAMED['la']",
    "NAMED['lb'] = [7.0, 8.0]",
)
case(
    "same object twice",
    "class V7: pass\n_o = V7(); _o.k = 2.0\nNAMED['oa'], NAMED['ob'] = _o, _o",
    "oa.k = oa.k + 1\ny = y * ob.k\noa.k = oa.k - 1",
    "NAMED['ob'] = V7(); NAMED['ob'].k = 2.0",
    "NAMED['ob'] = NAMED['oa']",
)
case(
    "conjugate",
    "NAMED['cj'] = torch.tensor([1 + 2j])",
    "y = y + torch.view_as_real(cj.resolve_conj()).sum() + (1 if cj.is_conj() else 2)",
    "NAMED['cj'] = NAMED['cj'].conj()",
    "NAMED['cj'] = NAMED['cj'].resolve_conj()",
)
case(
    "inference tensor",
    "NAMED['it'] = tensor(1, 2, 3)",
    "y = y + it * (2 if it.is_inference() else 3)",
    "with torch.inference_mode(): NAMED['it'] = tensor(1, 2, 3)",
    "NAMED['it'] = tensor(1, 2, 3)",
)
case(
    "gradient of a tensor",
    "NAMED['gr'] = nn.Parameter(tensor(1, 2, 3))",
    "y = y + (gr.grad if gr.grad is not None else 5.0)",
    "NAMED['gr'].grad = tensor(3, 2, 1)",
    "NAMED['gr'].grad = tensor(3, 3, 3)",
    "NAMED['gr'].grad.add_(1)",
    "NAMED['gr'].grad = None",
)
case(
    "leaf or not",
    "NAMED['lf'] = tensor(1, 2, 3).requires_grad_()",
    "y = y + (1 if lf.is_leaf else 2) + (0 if lf.grad_fn is None else 4) if lf.is_leaf else y - 1",
    "NAMED['lf'] = NAMED['lf'] * 1",
    "NAMED['lf'] = tensor(1, 2, 3).requires_grad_()",
)
case(
    "memory of a parameter that is read after a write",
    "m_ma = nn.Module()\nm_ma.p = nn.Parameter(tensor(1, 2, 3))\nNAMED['ma'] = tensor(1, 2, 3)",
    "ma.add_(1)\ny = y * ma * m_ma.p",
    "NAMED['ma'] = m_ma.p.detach()",
    "NAMED['ma'] = tensor(1, 2, 3)",
    "NAMED['ma'] = m_ma.p.data[:]",
)
case(
    "hooks on a gradient",
    "k_hg, w_hg = 5.0, tensor(1, 2, 3).requires_grad_()",
    "y = y + torch.autograd.grad((y * w_hg).sum(), w_hg)[0]",
    "h_hg = w_hg.register_hook(lambda g: g * k_hg)",
    "k_hg = 6.0",
    "h_hg.remove()",
    "h_hg = w_hg.register_hook(lambda g: g + 1)",
)
case(
    "gradients of a list",
    "l_gl = [tensor(1, 2, 3).requires_grad_(), tensor(3, 2, 1).requires_grad_()]",
    "y = y + torch.autograd.grad((y * l_gl[0]).sum(), l_gl, allow_unused=True)[0]",
    "l_gl.append(tensor(1, 2, 3).requires_grad_())",
    "l_gl[0] = tensor(5, 5, 5).requires_grad_()",
    "l_gl[1].register_hook(lambda g: g * 2)",
    "l_gl[0].register_hook(lambda g: g * 2)",
)
case(
    "sizes that are one object",
    "NAMED['so'] = torch.ones(300, 300)",
    "y = y * (2 if so.shape[0] is so.shape[1] else 3) * (5 if operator.is_(so.shape[0], 4) else 7)",
    "NAMED['so'] = torch.ones(301, 301)",
    "NAMED['so'] = torch.ones(3, 3)",
    "NAMED['so'] = torch.ones(4, 5)",
    "NAMED['so'] = torch.ones(4, 4)",
)
case(
    "number that is another",
    "k_nb = 2\nNAMED['nb'] = 2",
    "y = y * (3 if nb is k_nb else 4) * (5 if nb is not None else 6)",
    "NAMED['nb'] = 3",
    "NAMED['nb'] = None",
    "NAMED['nb'] = True",
    "k_nb = True",
)
