"""Changes to modules."""

# ruff: noqa: E501
from changes import LINEAR, case

case(
    "parameters",
    LINEAR.format("M1"),
    "y = M1(y)",
    "M1.weight = nn.Parameter(torch.eye(3))",
    "M1.bias = None",
    "M1.weight.data = torch.ones(3, 3)",
    "M1.weight.requires_grad_(False)",
    "with torch.no_grad(): M1.weight.add_(1)",
    "M1.weight = nn.Parameter(torch.eye(3).t())",
    "M1 = nn.Linear(3, 3, bias=False); nn.init.ones_(M1.weight)",
    "M1.load_state_dict({'weight': torch.eye(3)})",
)
case(
    "forward hooks",
    LINEAR.format("M2") + "\nH2 = None",
    "y = M2(y)",
    "H2 = M2.register_forward_hook(lambda m, a, o: o * 2)",
    "H3 = M2.register_forward_hook(lambda m, a, k, o: o + 1, with_kwargs=True)",
    "H2.remove()",
    "H3.remove()",
)
case(
    "forward pre-hooks",
    LINEAR.format("M3") + "\nH3 = None",
    "y = M3(y)",
    "H3 = M3.register_forward_pre_hook(lambda m, a: a[0] * 2)",
    "H3.remove()",
    "H3 = M3.register_forward_pre_hook(lambda m, a, k: ((a[0] + 1,), k), with_kwargs=True)",
    "H3.remove()",
)
case(
    "what a hook reads",
    LINEAR.format("M4") + "\nK4 = 2.0\nM4.register_forward_hook(lambda m, a, o: o * K4)",
    "y = M4(y)",
    "K4 = 3.0",
)
case(
    "global hooks",
    LINEAR.format("M5"),
    "y = M5(y)",
    "G5 = nn.modules.module\nif not G5._global_forward_hooks:\n    H5 = G5.register_module_forward_hook(lambda m, a, o: o * 2)",
    "'H5' in globals() and H5.remove()",
)
case(
    "training flag",
    "M6 = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)).double().float()\nfor p in M6.parameters(): nn.init.ones_(p)",
    "y = M6(y[None].expand(4, 3))[0]",
    "M6.eval()",
    "M6.train()",
    "M6[1].eval()",
    "M6[1].momentum = 0.5",
)
case(
    "submodules",
    "M7 = nn.Sequential(nn.ReLU(), nn.Sigmoid())",
    "y = M7(y - 1)",
    "M7[0] = nn.Tanh()",
    "M7.append(nn.Hardtanh())",
    "del M7[1]",
    "M7.insert(0, nn.Softplus())",
)
case(
    "module list",
    "M8 = nn.ModuleList([nn.ReLU(), nn.Sigmoid()])",
    "for m in M8:\n    y = m(y)",
    "M8[0] = nn.Tanh()",
    "M8.append(nn.Hardtanh())",
)
case(
    "module dict",
    "M9d = nn.ModuleDict({'a': nn.ReLU(), 'b': nn.Sigmoid()})",
    "for n, m in M9d.items():\n    y = m(y) + len(n)",
    "M9d['a'] = nn.Tanh()",
    "M9d['cc'] = nn.Hardtanh()",
    "del M9d['b']",
)
case(
    "parameter list",
    "M10 = nn.ParameterList([nn.Parameter(tensor(1, 2, 3))])",
    "for p in M10:\n    y = y * p",
    "M10.append(nn.Parameter(tensor(3, 2, 1)))",
    "M10[0] = nn.Parameter(tensor(5, 5, 5))",
)
case(
    "module attribute",
    "class X11(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.k = 2.0\n        self.register_buffer('b', tensor(1, 2, 3))\n    def forward(self, v):\n        return v * self.k + self.b\nM11 = X11()",
    "y = M11(y)",
    "M11.k = 3.0",
    "M11.b = tensor(4, 5, 6)",
    "M11.b = None",
    "M11.b = tensor(1, 1, 1)",
    "M11.forward = lambda v: v + 1",
    "del M11.forward",
    "X11.forward = lambda self, v: v - self.k",
    "M11.k = tensor(1, 2, 3)",
)
case(
    "module converted",
    LINEAR.format("M12"),
    "y = M12(y.to(M12.weight.dtype)).float()",
    "M12.double()",
    "M12.bfloat16()",
    "M12.float()",
)
case(
    "parametrized",
    LINEAR.format("M13")
    + "\nclass P13(nn.Module):\n    def forward(self, w):\n        return w * 2\nPZ = nn.utils.parametrize",
    "y = M13(y)",
    "PZ.register_parametrization(M13, 'weight', P13())",
    "PZ.register_parametrization(M13, 'weight', P13())",
    "PZ.remove_parametrizations(M13, 'weight')",
)
case(
    "cached parametrization",
    LINEAR.format("M14")
    + "\nclass P14(nn.Module):\n    def forward(self, w):\n        return w * 2\nPZ = nn.utils.parametrize\nPZ.register_parametrization(M14, 'weight', P14())",
    "with PZ.cached():\n    y = M14(y) + M14(y)",
    "M14.parametrizations.weight.original = nn.Parameter(torch.eye(3))",
)
case(
    "tied",
    LINEAR.format("M15") + "\nN15 = nn.Linear(3, 3)\nN15.weight = M15.weight\nN15.bias = M15.bias",
    "y = N15(M15(y))",
    "N15.weight = nn.Parameter(torch.eye(3))",
    "M15.weight = N15.weight",
)
case(
    "named parameters",
    LINEAR.format("M16"),
    "for n, p in M16.named_parameters():\n    y = y + p.sum() * len(n)",
    "M16.bias = None",
    "M16.register_parameter('extra', nn.Parameter(tensor(1, 2)))",
)
case(
    "children",
    "M17 = nn.Sequential(nn.ReLU(), nn.Sigmoid())",
    "for m in M17.modules():\n    y = y + len(m._modules)\nfor m in M17.children():\n    y = m(y)",
    "M17[0] = nn.Tanh()",
    "M17.append(nn.Hardtanh())",
    "M17[0] = nn.Sequential(nn.ReLU())",
)
case("training read", LINEAR.format("M18"), "y = y * 2 if M18.training else y", "M18.eval()", "M18.train()")
case(
    "class of modules",
    "class X19(nn.Module):\n    k = 2.0\n    def forward(self, v):\n        return v * self.k\nM19 = X19()",
    "y = M19(y)",
    "X19.k = 3.0",
    "M19.k = 4.0",
    "M19.register_buffer('k2', tensor(1))",
    "del M19.k",
)
case(
    "state dict",
    LINEAR.format("M20"),
    "y = y + M20.state_dict()['bias']",
    "M20.bias = nn.Parameter(tensor(1, 2, 3))",
    "M20.register_buffer('z', tensor(1))",
)
case(
    "what a call of a module runs",
    "torch.manual_seed(0)\nM21 = nn.Sequential(nn.Linear(3, 3), nn.Tanh())",
    "y = M21(y)",
    "M21._call_impl = lambda v: v * 100",
    "del M21._call_impl",
    "M21[0]._call_impl = lambda v: v * 100",
    "M21[0]._call_impl = lambda v: v * 200",
    "M21[0]._compiled_call_impl = lambda v: v * 300",
    "M21[0]._compiled_call_impl = None",
    "del M21[0]._call_impl",
    "nn.Linear._compiled_call_impl = lambda s, v: v * 100",
    "del nn.Linear._compiled_call_impl",
    "M21.compile(backend='eager')",
    "H21 = M21.register_forward_hook(lambda m, a, o: o * 2)",
    "H21.remove()",
)
case(
    "backward hooks without gradients",
    LINEAR.format("M22") + "\nCONTEXT = torch.no_grad",
    "y = M22(y)",
    "H22 = M22.register_full_backward_hook(lambda m, i, o: None)",
    "CONTEXT = contextlib.nullcontext",
    "H22.remove()",
)
