"""Changes to what modules are made of, and to their tensors."""

# ruff: noqa: E501
import torch
from changes import case

case(
    "of modules: ParameterList",
    "torch.manual_seed(0)\nm6 = nn.ParameterList([nn.Parameter(tensor(1,2,3))])",
    "for p in m6:\n    y = y * p",
    "m6.append(nn.Parameter(tensor(1,2,3)))",
    "m6[0] = nn.Parameter(tensor(5,2,3))",
    "m6.append(3.0)",
    "m6[2] = 4.0",
)
case(
    "of modules: ParameterDict",
    "torch.manual_seed(0)\nm7 = nn.ParameterDict({'a': nn.Parameter(tensor(1,2,3))})",
    "for k, p in m7.items():\n    y = y * p",
    "m7['b'] = nn.Parameter(tensor(1,2,3))",
    "m7['a'] = nn.Parameter(tensor(5,2,3))",
    "m7.pop('b')",
)
case(
    "of modules: children hooks",
    "torch.manual_seed(0)\nm11 = nn.Sequential(nn.Linear(3,3), nn.Tanh())",
    "y = m11(y)",
    "H11 = m11[0].register_forward_hook(lambda m, a, o: o * 2)",
    "H12 = m11.register_forward_pre_hook(lambda m, a: (a[0] * 3,))",
    "H11.remove()",
    "H13 = m11[1].register_forward_hook(lambda m, a, kw, o: o + 1, with_kwargs=True)",
    "H14 = m11[1].register_forward_hook(lambda m, a, o: o * 9, prepend=True)",
    "H12.remove()",
    "H15 = m11.register_forward_hook(lambda m,a,o: o*4, always_call=True)",
    "H15.remove(); H13.remove()",
)
case(
    "of modules: hook dict replaced",
    "torch.manual_seed(0)\nm12 = nn.Linear(3,3)",
    "y = m12(y)",
    "m12._forward_hooks = collections.OrderedDict()",
    "m12.register_forward_hook(lambda m, a, o: o * 2)",
    "m12._forward_hooks = collections.OrderedDict()",
    "m12.register_forward_pre_hook(lambda m, a: (a[0]*5,))",
)
case(
    "of modules: global hooks",
    "torch.manual_seed(0)\nm13 = nn.Linear(3,3)",
    "y = m13(y)",
    "H13g = nn.modules.module.register_module_forward_hook(lambda m, a, o: o * 2)",
    "H13g.remove()",
    "H13h = nn.modules.module.register_module_forward_pre_hook(lambda m, a: (a[0] * 2,))",
    "H13h.remove()",
)
case(
    "of modules: parametrize",
    "torch.manual_seed(0)\nm14 = nn.Linear(3,3)\nclass Par14(nn.Module):\n    k = 2.0\n    def forward(s, w):\n        return w * s.k",
    "y = m14(y)",
    "nn.utils.parametrize.register_parametrization(m14, 'weight', Par14())",
    "Par14.k = 3.0",
    "m14.parametrizations.weight[0].k = 4.0",
    "m14.parametrizations.weight.original.data.mul_(2)",
    "nn.utils.parametrize.remove_parametrizations(m14, 'weight')",
)
case(
    "of modules: weight_norm",
    "torch.manual_seed(0)\nm15 = nn.Linear(3,3)",
    "y = m15(y)",
    "m15 = nn.utils.parametrizations.weight_norm(m15)",
    "m15.parametrizations.weight.original0.data.mul_(2)",
    "nn.utils.parametrize.remove_parametrizations(m15, 'weight')",
)
case(
    "of modules: to dtype",
    "torch.manual_seed(0)\nm18 = nn.Linear(3,3)",
    "y = m18(y.to(m18.weight.dtype))",
    "m18.double()",
    "m18.to(torch.bfloat16)",
    "m18.float()",
)
case(
    "of modules: param data swap",
    "torch.manual_seed(0)\nm19 = nn.Linear(3,3)",
    "y = m19(y)",
    "m19.weight.data = torch.ones(3,3)",
    "m19.weight.data = torch.ones(3,3).t()*2",
    "m19.bias.data = torch.ones(3)",
)
case(
    "of modules: tied untied",
    "torch.manual_seed(0)\nm20 = nn.Sequential(nn.Linear(3,3), nn.Linear(3,3))\nm20[1].weight = m20[0].weight",
    "y = m20(y)",
    "m20[1].weight = nn.Parameter(torch.ones(3,3))",
    "m20[0].weight = m20[1].weight",
    "m20[0] = m20[1]",
)
case(
    "of modules: train eval",
    "torch.manual_seed(0)\nm21 = nn.Sequential(nn.BatchNorm1d(3), nn.Dropout(0.0))",
    "y = m21(torch.stack([y, y * 2]))[0]",
    "m21.eval()",
    "m21[0].train()",
    "m21[0].momentum = 0.9",
    "m21[0].track_running_stats = False",
    "m21[0].running_mean.fill_(3); m21.eval()",
    "m21[0].eps = 1.0",
)
case(
    "of modules: Parameter subclass",
    "torch.manual_seed(0)\nclass P23(nn.Parameter):\n    k = 2.0\np23 = P23(tensor(1,2,3))\nm23 = nn.Module()\nm23.w = p23",
    "y = y * m23.w * m23.w.k",
    "P23.k = 3.0",
    "p23.k = 4.0",
    "m23.w = nn.Parameter(tensor(1,2,3)); m23.w.k = 1.0",
)
case(
    "of modules: tensor attribute",
    "t24 = tensor(1,2,3)\nt24.k = 2.0",
    "y = y * t24.k + getattr(t24, 'j', 1.0)",
    "t24.k = 3.0",
    "t24.j = 2.0",
    "del t24.j",
    "t24 = tensor(1,2,3); t24.k = 9.0",
)
case(
    "of modules: input tensor attribute",
    "NAMED['t25'] = tensor(1,2,3)\nNAMED['t25'].k = 2.0",
    "y = y * t25.k",
    "NAMED['t25'].k = 3.0",
    "NAMED['t25'] = tensor(1,2,3); NAMED['t25'].k = 4.0",
)
case(
    "of modules: same tensor twice",
    "NAMED['p30'] = tensor(1,2,3)\nNAMED['q30'] = tensor(1,2,3)",
    "y = y * (2 if p30 is q30 else 3)",
    "NAMED['q30'] = NAMED['p30']",
    "NAMED['q30'] = tensor(1,2,3)",
)
case(
    "of modules: alias write",
    "NAMED['p31'] = tensor(1,2,3)\nNAMED['q31'] = tensor(1,2,3)",
    "p31.add_(1)\ny = y + q31",
    "NAMED['q31'] = NAMED['p31']",
    "NAMED['q31'] = NAMED['p31'].view(3)",
    "NAMED['q31'] = tensor(1,2,3)",
)
case(
    "of modules: strides",
    "NAMED['t33'] = torch.ones(3,3)",
    "y = y * (2 if t33.is_contiguous() else 3) + t33.stride(0)",
    "NAMED['t33'] = torch.ones(3,3).t()",
    "NAMED['t33'] = torch.ones(3,6)[:, ::2]",
)
case(
    "of modules: storage offset",
    "NAMED['t34'] = torch.ones(5)[:3]",
    "y = y * (1 + t34.storage_offset())",
    "NAMED['t34'] = torch.ones(5)[1:4]",
    "NAMED['t34'] = torch.ones(5)[2:]",
)
if not hasattr(torch.Tensor, "has_names"):  # a tensor that has names, as before PyTorch 2.13, enters no program
    case(
        "of modules: names",
        "t38 = torch.ones(3)",
        "y = y * (2 if t38.names[0] is None else 3)",
        "t38 = torch.ones(3, names=('a',))",
    )
case(
    "of modules: tensor subclass",
    "class T39(torch.Tensor):\n    pass\nt39 = tensor(1,2,3)",
    "y = y * (2 if type(t39) is torch.Tensor else 3)",
    "t39 = tensor(1,2,3).as_subclass(T39)",
    "t39 = nn.Parameter(tensor(1,2,3))",
)
case(
    "of modules: forward replaced on instance of sub",
    "torch.manual_seed(0)\nm41 = nn.Sequential(nn.Linear(3,3), nn.Tanh())",
    "y = m41(y)",
    "m41[0].forward = lambda v: v * 5",
    "del m41[0].forward",
    "m41.forward = lambda v: v",
    "del m41.__dict__['forward']",
)
case(
    "of modules: module __class__",
    "torch.manual_seed(0)\nm42 = nn.Tanh()",
    "y = m42(y)",
    "m42.__class__ = nn.ReLU",
    "m42.__class__ = nn.Tanh",
)
case(
    "of modules: functional_call",
    "torch.manual_seed(0)\nm44 = nn.Linear(3,3)\nd44 = {'weight': torch.ones(3,3)}",
    "y = torch.func.functional_call(m44, d44, (y,))",
    "d44['weight'] = torch.ones(3,3)*2",
    "d44['bias'] = tensor(1,2,3)",
    "m44.bias = None; d44.pop('bias')",
)
case(
    "of modules: state dict load",
    "torch.manual_seed(0)\nm46 = nn.Linear(3,3)\nS46 = {k: v * 2 for k, v in m46.state_dict().items()}",
    "y = m46(y)",
    "m46.load_state_dict(S46)",
    "m46.load_state_dict(S46, assign=True)",
)
case(
    "of modules: module getattr override",
    "torch.manual_seed(0)\nclass M48(nn.Module):\n    def __getattr__(s, n):\n        if n == 'zz':\n            return 2.0\n        return super().__getattr__(n)\n    def forward(s, v):\n        return v * s.zz\nm48 = M48()",
    "y = m48(y)",
    "m48.zz = 3.0",
    "del m48.zz",
    "M48.zz = 4.0",
    "del M48.zz",
    "m48.register_buffer('zz', tensor(1,2,3))",
)
case(
    "of modules: custom container module",
    "torch.manual_seed(0)\nclass L51(nn.Module):\n    def __init__(s):\n        super().__init__()\n        s.n = 2\n    def __len__(s):\n        return s.n\n    def forward(s, v):\n        return v * len(s)\nm51 = L51()",
    "y = m51(y) if m51 else y",
    "m51.n = 3",
    "m51.n = 0",
    "L51.__len__ = lambda s: 7",
    "L51.__bool__ = lambda s: False",
)
case(
    "of modules: conv padding mode",
    "torch.manual_seed(0)\nm53 = nn.Conv1d(1,1,3,padding=1)",
    "y = m53(y[None, None])[0,0]",
    "m53.padding_mode = 'circular'",
    "m53.stride = (2,)",
    "m53.padding = (2,)",
    "m53._reversed_padding_repeated_twice = [2,2]",
)
case(
    "of modules: mha",
    "torch.manual_seed(0)\nm55 = nn.MultiheadAttention(3, 1)\nm55.eval()",
    "y = m55(y[None], y[None], y[None])[0][0]",
    "m55.in_proj_weight.data.mul_(2)",
    "m55.add_zero_attn = True",
    "m55.train()",
    "m55.in_proj_bias = None",
)
