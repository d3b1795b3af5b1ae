"""Changes to settings of libraries: what NumPy does about errors, how arrays are shown, and contexts."""

from changes import case

case(
    "settings: errors of arithmetic with arrays",
    "import numpy as np, warnings",
    "y = y * float(np.isinf(np.ones(2) / np.zeros(2))[0])",
    "np.seterr(divide='raise')",
    "np.seterr(divide='ignore')",
    "CONTEXT = lambda: np.errstate(divide='raise')",
    "CONTEXT = contextlib.nullcontext",
    "np.seterr(divide='call'); np.seterrcall(lambda *a: None)",
    "def bad(*a):\n    raise ZeroDivisionError\nnp.seterrcall(bad)",
    "np.seterr(divide='warn')",
    "warnings.filterwarnings('error', 'divide by zero')",
    "warnings.filterwarnings('ignore', 'divide by zero')",
)
for number, (setup, computed, kind) in enumerate([
    ("A, B = np.float64(1.0), np.float64(0.0)", "A / B", "divide"),
    ("", "np.log(0.0)", "divide"),
    ("A = np.array([1e308, 1e308])", "A.sum()", "over"),
    ("A = np.array([1e308, 1e308])", "np.sum(A)", "over"),
    ("A = np.array([1e308, 1e308])", "sum(A)", "over"),
    ("A = np.array([1e308, 1e308])", "functools.reduce(operator.add, A)", "over"),
    ("A = np.array([1e308])\nA.setflags(write=False)", "sorted([1, 2], key=lambda v: A[0] * 1e308)[0] * A[0] * 10", "over"),
]):  # fmt: skip
    case(
        f"settings: errors of arithmetic {number}",
        f"import numpy as np\n{setup}",
        f"y = y * (2 if np.isinf({computed}) else 3)",
        f"np.seterr({kind}='raise')",
        f"np.seterr({kind}='warn')",
    )
case(
    "settings: errors within another state",
    "import numpy as np",
    "with np.errstate(divide='ignore'):\n    y = y * (2 if np.isinf(np.divide(1.0, 0.0)) else 3)\n"
    "y = y * (2 if np.isinf(np.multiply(1e308, 10)) else 3)",
    "np.seterr(over='raise')",
    "np.seterr(over='ignore', divide='raise')",
)
case(
    "settings: flags and traps of decimal numbers",
    "import decimal",
    "c = decimal.getcontext()\ny = y * (2 if c.flags[decimal.Inexact] else 3) * (5 if c.traps[decimal.Inexact] else 7)",
    "decimal.getcontext().flags[decimal.Inexact] = True",
    "decimal.getcontext().traps[decimal.Inexact] = True",
    "decimal.getcontext().clear_flags(); decimal.getcontext().traps[decimal.Inexact] = False",
)
case(
    "settings: contexts of decimal numbers",
    "import decimal\nC = decimal.Context(prec=5)\nA = decimal.Decimal(2)",
    "y = y * float(C.divide(A, 3)) + float(A.sqrt(C)) + float(C.create_decimal('1.23456'))",
    "C.prec = 2",
    "C.rounding = 'ROUND_UP'",
    "C = decimal.Context(prec=3)",
)
case(
    "settings: state of a partial",
    "P = functools.partial(lambda v, k: v * k, k=2.0)\nQ = [functools.partial(lambda k, v: v * k, 2.0)]",
    "y = P(y) * sorted([1.0, 2.0], key=Q[0])[0]",
    "P.__setstate__((P.func, (), {'k': 3.0}, None))",
    "P.__setstate__((lambda v, k: v + k, (), {'k': 3.0}, None))",
    "Q[0].__setstate__((Q[0].func, (-3.0,), {}, None))",
)
case(
    "settings: abstract methods that come later",
    "import abc\nclass A(abc.ABC):\n    @abc.abstractmethod\n    def f(s): ...\nclass B(A):\n    def f(s):\n        return 2.0",
    "try:\n    y = y * B().f()\nexcept TypeError:\n    y = y * 3",
    "B.__abstractmethods__ = frozenset({'f'})",
    "B.__abstractmethods__ = frozenset()",
)
case(
    "settings: order of attention kernels",
    "from torch.nn.attention import SDPBackend, sdpa_kernel",
    "y = y * (1 + torch._C._get_sdp_priority_order()[0])",
    "CONTEXT = lambda: sdpa_kernel([SDPBackend.MATH, SDPBackend.FLASH_ATTENTION], set_priority=True)",
    "CONTEXT = contextlib.nullcontext",
)
