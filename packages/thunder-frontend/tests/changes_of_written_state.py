"""State that the program writes itself, and that somebody else changes between its calls."""

from changes import LINEAR, case

case(
    "counting closure",
    "def counter():\n    n = 0\n    def step(v):\n        nonlocal n\n        n += 1\n        return v * n\n    return step\nW1 = counter()",
    "y = W1(y)",
    "W1 = counter()",
    "W1.__closure__[0].cell_contents = 5",
)  # fmt: skip
case(
    "counting object",
    "class C2:\n    def __init__(self):\n        self.n, self.log = 0, {}\nW2 = C2()",
    "W2.n += 1\nW2.log[W2.n] = y\ny = y * W2.n + len(W2.log)",
    "W2.n = 7",
    "W2.log.clear()",
    "W2 = C2()",
    "W2.log['a'] = 1",
)
case(
    "attributes through the dict",
    "W3 = types.SimpleNamespace(k=2.0)",
    "vars(W3)['j'] = W3.k + 1\ny = y * W3.j + len(vars(W3))",
    "W3.k = 3.0",
    "W3.extra = 1",
    "W3 = types.SimpleNamespace(k=4.0)",
)
case(
    "items as attributes",
    "class D4(dict):\n    __getattr__ = dict.__getitem__\n    __setattr__ = dict.__setitem__\nW4 = D4(k=2.0)",
    "W4.n = W4.k + 1\ny = y * W4.n",
    "W4.k = 3.0",
    "W4['k'] = 4.0",
    "W4 = D4(k=tensor(1, 2, 3))",
    "del W4['k']",
)
case(
    "heap",
    "import heapq\nW5 = [3.0, 5.0]",
    "heapq.heappush(W5, 4.0)\ny = y * heapq.heappop(W5) + len(W5)",
    "W5[0] = 1.0",
    "W5.append(0.5)",
    "W5 = [2.0]",
)
case(
    "running tensor",
    "W6 = tensor(1, 1, 1)",
    "W6.mul_(2)\ny = y + W6",
    "W6.zero_()",
    "W6 = tensor(1, 2, 3).double()",
    "W6 = tensor(1, 2, 3).requires_grad_().mul(1)",
    "W6 = tensor(1, 2, 3, 4)[::2]",
)
case(
    "transposed buffer",
    "W7 = torch.arange(9.0).reshape(3, 3)",
    "W7.t_()\ny = y + W7[0]",
    "W7 = torch.arange(9.0).reshape(3, 3)",
    "W7[0, 1] = 7",
    "W7.t_()",
)
case(
    "place in a cache",
    "W8, P8 = torch.zeros(4, 3), torch.tensor(0)",
    "W8[P8] = y\nP8.add_(1)\ny = W8[P8 - 1] + W8.sum()",
    "P8.zero_()",
    "P8 = torch.tensor(1, dtype=torch.int32)",
    "W8.zero_()",
)
case(
    "frozen and replaced parameter",
    LINEAR.format("M9"),
    "y = M9(y)\nwith torch.no_grad():\n    M9.bias.add_(1)",
    "M9.bias.requires_grad_(False)",
    "M9.weight.requires_grad_(False)",
    "M9.bias = nn.Parameter(torch.ones(3))",
    "M9.load_state_dict({k: torch.ones_like(v) for k, v in M9.state_dict().items()}, assign=True)",
)
case(
    "method of a library's module",
    LINEAR.format("M10"),
    "y = M10(y)",
    "F10 = nn.Linear.forward\nnn.Linear.forward = lambda self, v: v * 7",
    "nn.Linear.forward = F10",
)
case(
    "function compiled by torch",
    "K11 = 2.0\nF11 = torch.compile(lambda v: v * K11, backend='eager')",
    "y = F11(y)",
    "K11 = 3.0",
    "F11 = torch.compile(lambda v: v + K11, backend='eager')",
)
