"""Changes to PyTorch's own state."""

# ruff: noqa: E501
from changes import LINEAR, case

case(
    "modes",
    LINEAR.format("Z1"),
    "y = Z1(y) + torch.ones(3) + (1 if torch.is_grad_enabled() else 2)",
    "CONTEXT = torch.no_grad",
    "CONTEXT = torch.inference_mode",
    "CONTEXT = contextlib.nullcontext",
    "CONTEXT = lambda: torch.autocast('cpu', torch.bfloat16)",
    "CONTEXT = lambda: torch.autocast('cpu', torch.float16)",
    "CONTEXT = lambda: torch.autocast('cpu', enabled=False)",
    "CONTEXT = contextlib.nullcontext",
)
case(
    "default dtype",
    "",
    "y = y + torch.ones(3) * torch.tensor(1.5).element_size()",
    "torch.set_default_dtype(torch.float64)",
    "torch.set_default_dtype(torch.float32)",
)
case(
    "default dtype read",
    "",
    "y = y * (2 if torch.get_default_dtype() is torch.float32 else 3)",
    "torch.set_default_dtype(torch.float64)",
    "torch.set_default_dtype(torch.float32)",
)
case(
    "functorch",
    "NAMED['vm'] = tensor(1, 2, 3)",
    "y = y + vm",
    "CONTEXT = torch.no_grad",
    "CONTEXT = contextlib.nullcontext",
)
case(
    "thread count",
    "",
    "y = y * (2 if torch.are_deterministic_algorithms_enabled() else 3)",
    "torch.use_deterministic_algorithms(True)",
    "torch.use_deterministic_algorithms(False)",
)
case(
    "backend flags",
    "",
    "y = y * (2 if torch.backends.cudnn.benchmark else 3)",
    "torch.backends.cudnn.benchmark = True",
    "torch.backends.cudnn.benchmark = False",
)
case(
    "precision",
    "",
    "y = y * (2 if torch.get_float32_matmul_precision() == 'highest' else 3)",
    "torch.set_float32_matmul_precision('high')",
    "torch.set_float32_matmul_precision('highest')",
)
case("torch patched", "SIN = torch.sin", "y = torch.sin(y)", "torch.sin = torch.cos", "torch.sin = SIN")
