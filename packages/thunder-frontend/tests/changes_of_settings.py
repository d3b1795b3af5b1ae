"""Changes to settings of libraries: what NumPy does about errors, how arrays are shown, contexts and codecs."""

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
    "settings: text of arrays",
    "import numpy as np\nA = np.array([1.23456789])",
    "y = y * len(repr(A)) + len(str([A])) + len(f'{A}') * len('%s' % A) + len(np.array2string(A)) + len(A.__repr__())",
    "np.set_printoptions(precision=3)",
    "CONTEXT = lambda: np.printoptions(suppress=True, floatmode='fixed')",
    "CONTEXT = contextlib.nullcontext",
    "np.set_printoptions(precision=8)",
)
case(
    "settings: text of arrays within another state",
    "import numpy as np\nA = np.array([1.23456789, 1e-9])",
    "with np.printoptions(precision=4):\n    y = y * len(repr(A))",
    "np.set_printoptions(suppress=True)",
    "np.set_printoptions(suppress=False)",
)
case(
    "settings: text of tensors",
    "",
    "y = y * len(repr(torch.tensor([1.23456789]))) + len(f'{torch.tensor([1.23456789])}')",
    "torch.set_printoptions(precision=2)",
    "torch.set_printoptions(profile='default')",
)
