"""Changes to functions that functions of PyTorch call by name."""

# ruff: noqa: E501
from changes import case

case(
    "beneath: layer_norm",
    "import torch.nn.functional as F\nL_b1, O_b1 = nn.LayerNorm(3), torch.layer_norm",
    "y = L_b1(y)",
    "torch.layer_norm = lambda *a: O_b1(*a) * 2",
    "torch.layer_norm = lambda *a: a[0] * 3",
    "torch.layer_norm = O_b1",
)
case(
    "beneath: relu",
    "import torch.nn.functional as F\nW_b2, O_b2 = tensor(1, 2, 3).requires_grad_(), torch.relu",
    "y = F.relu(y * W_b2)",
    "torch.relu = torch.sigmoid",
    "torch.relu = lambda v: v + 1",
    "torch.relu = O_b2",
)
case(
    "beneath: dropout",
    "import torch.nn.functional as F",
    "y = F.dropout(y, 0.5, False)",
    "torch._VF.dropout = lambda *a: a[0] * 2",
    "vars(torch._VF).pop('dropout', None)",
)
case(
    "beneath: gelu",
    "import torch.nn.functional as F\nO_b4 = torch._C._nn.gelu",
    "y = F.gelu(y)",
    "torch._C._nn.gelu = lambda *a, **k: a[0] * 2",
    "torch._C._nn.gelu = O_b4",
)
case(
    "beneath: attention",
    "import torch.nn.functional as F\ntorch.manual_seed(0)\nM_b5, O_b5 = nn.MultiheadAttention(4, 2, batch_first=True), F.scaled_dot_product_attention\n"
    "def twice_b5(*a, **k):\n    return O_b5(*a, **k) * 2",
    "z = torch.ones(1, 3, 4) * y[None, :, None]\ny = M_b5(z, z, z, need_weights=False)[0][0, :, 0]",
    "F.scaled_dot_product_attention = twice_b5",
    "F.scaled_dot_product_attention = O_b5",
)
case(
    "beneath: method",
    "W_b6, O_b6 = tensor(1, 2, 3).requires_grad_(), torch.norm",
    "y = y * (y * W_b6).norm()",
    "torch.norm = lambda *a, **k: a[0].sum()",
    "torch.norm = O_b6",
)
case(
    "beneath: embedding",
    "torch.manual_seed(0)\nE_b7, O_b7 = nn.Embedding(3, 3), torch.embedding",
    "y = y * E_b7(torch.tensor(1))",
    "torch.embedding = lambda *a: a[0][2] * 2",
    "torch.embedding = O_b7",
)
case(
    "beneath: kept before it was replaced",
    "O_b8, S_b8 = torch._C._nn.gelu, torch.Tensor.sin",
    "y = O_b8(y) + S_b8(y)",
    "torch._C._nn.gelu = lambda *a, **k: a[0] * 2",
    "torch.Tensor.sin = lambda v: S_b8(v) * 2",
)
