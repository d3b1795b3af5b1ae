"""Changes to what PyTorch and the standard library define."""

# ruff: noqa: E501
from changes import LINEAR, case

case(
    "method of tensors",
    "",
    "y = y.sin() + y.reshape(3)",
    "torch.Tensor.sin = lambda t: t * 100",
    "torch.Tensor.sin = lambda t: t * 200",
    "del torch.Tensor.sin",
    "torch.Tensor.reshape = lambda t, n: t * 3",
    "del torch.Tensor.reshape",
)
case(
    "function of the class of tensors",
    "",
    "y = torch.Tensor.cos(y)",
    "torch.Tensor.cos = lambda t: t * 100",
    "del torch.Tensor.cos",
)
case(
    "operator of tensors",
    "",
    "y = (y + 1) * (2 - y)",
    "torch.Tensor.__add__ = lambda t, other: t * 100",
    "del torch.Tensor.__add__",
    "RSUB = torch.Tensor.__rsub__; torch.Tensor.__rsub__ = lambda t, other: t * 3",
    "torch.Tensor.__rsub__ = RSUB",
)
case(
    "operator of tensors in place",
    "",
    "y = y + 0; y @= torch.eye(3)",
    "torch.Tensor.__imatmul__ = lambda t, other: t * 100",
    "del torch.Tensor.__imatmul__",
)
case(
    "property of tensors",
    "",
    "y = y * y.T",
    "torch.Tensor.T = property(lambda t: t * 100)",
    "torch.Tensor.T = property(lambda t: t * 200)",
    "del torch.Tensor.T",
)
case(
    "length of tensors",
    "",
    "y = y * len(y)",
    "LEN = torch.Tensor.__len__; torch.Tensor.__len__ = lambda t: 7",
    "torch.Tensor.__len__ = LEN",
)
case(
    "number of a tensor",
    "",
    "y = y * float(torch.ones(1)) * int(torch.ones(1))",
    "FLOAT = torch.Tensor.__float__; torch.Tensor.__float__ = lambda t: 7.0",
    "torch.Tensor.__float__ = FLOAT",
    "INT = torch.Tensor.__int__; torch.Tensor.__int__ = lambda t: 7",
    "torch.Tensor.__int__ = INT",
)
case(
    "attribute that tensors come to have",
    "",
    "y = y * (y.l1 if hasattr(y, 'l1') else 2)",
    "torch.Tensor.l1 = 3",
    "torch.Tensor.l1 = property(lambda t: t + 4)",
    "del torch.Tensor.l1",
)
case(
    "attribute of parameters",
    "P2 = nn.Parameter(tensor(1, 2, 3))",
    "y = y + P2.tanh()",
    "nn.Parameter.tanh = lambda t: t * 100",
    "del nn.Parameter.tanh",
)
case(
    "call of modules",
    LINEAR.format("L3"),
    "y = L3(y)",
    "CALL = nn.Module.__call__; nn.Module.__call__ = lambda self, v: v * 100",
    "nn.Module.__call__ = CALL",
    "nn.Linear.__call__ = lambda self, v: v * 200",
    "del nn.Linear.__call__",
    "IMPL = nn.Module._call_impl; nn.Module._call_impl = lambda self, v: v * 300",
    "nn.Module._call_impl = IMPL",
)
case(
    "attributes of modules",
    LINEAR.format("L4"),
    "y = L4.weight[0] * y",
    "GETATTR = nn.Module.__getattr__; nn.Module.__getattr__ = lambda self, name: torch.ones(3, 3) * 7",
    "nn.Module.__getattr__ = GETATTR",
    "nn.Linear.__getattr__ = lambda self, name: torch.ones(3, 3) * 8",
    "del nn.Linear.__getattr__",
    "nn.Linear.weight = tensor(1, 2, 3)",
    "del nn.Linear.weight",
    "nn.Linear.__getattribute__ = lambda self, name: torch.ones(3, 3) * 9 if name == 'weight' else object.__getattribute__(self, name)",
    "del nn.Linear.__getattribute__",
)
case(
    "method of modules",
    LINEAR.format("L5"),
    "y = L5.requires_grad_()(y)",
    "REQUIRES = nn.Module.requires_grad_; nn.Module.requires_grad_ = lambda self: lambda v: v * 100",
    "nn.Module.requires_grad_ = REQUIRES",
)
case(
    "what functions of modules are made of",
    LINEAR.format("L6"),
    "y = L6(y)",
    "CODE6 = nn.Linear.forward.__code__; nn.Linear.forward.__code__ = (lambda self, input: input * 100).__code__",
    "nn.Linear.forward.__code__ = CODE6",
)
case(
    "what functions of PyTorch are made of",
    "",
    "y = nn.functional.leaky_relu(y - 1) + nn.functional.softsign(y)",
    "nn.functional.leaky_relu.__defaults__ = (0.5, False)",
    "nn.functional.leaky_relu.__defaults__ = (0.01, False)",
    "CODE7 = nn.functional.softsign.__code__; nn.functional.softsign.__code__ = (lambda input: input * 100).__code__",
    "nn.functional.softsign.__code__ = CODE7",
)
case(
    "function of a container of the library",
    "L8 = collections.Counter('aab')",
    "y = y * L8.most_common(1)[0][1]",
    "MOST = collections.Counter.most_common; collections.Counter.most_common = lambda self, n: [(0, 7)]",
    "collections.Counter.most_common = MOST",
)
case(
    "member of an enum",
    "class E9(enum.Enum):\n    A = 2\n    @property\n    def twice(self):\n        return self.value * 2\nE9.A.k = 1",
    "y = y * E9.A.value + E9.A.twice * E9.A.k",
    "E9.A._value_ = 3",
    "E9.A.k = 5",
    "E9.twice = 7",
)
case(
    "number with attributes",
    "class N10(int):\n    pass\nN10A = N10(2)\nN10A.k = 3",
    "y = y * N10A.k + N10A",
    "N10A.k = 4",
    "N10B = N10A; N10A = N10(2); N10A.k = 5",
    "N10A = N10(3); N10A.k = 5",
)
case(
    "class of a library",
    "D11 = torch.distributions.Normal(tensor(0, 0, 0), tensor(1, 1, 1), validate_args=False)",
    "y = y + D11.log_prob(y) * D11.mean",
    "torch.distributions.Normal.mean = property(lambda self: 3)",
    "torch.distributions.Normal.log_prob = lambda self, v: v * 2",
)
