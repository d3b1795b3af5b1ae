"""Changes to what functions with a cache compute, which answer as before until the cache is cleared."""

# ruff: noqa: E501
from changes import case

TWICE = "k_{0} = 2.0\n@functools.lru_cache(maxsize={1})\ndef f_{0}(*t, **n):\n    return [*t, *n.values()][0] * k_{0}"


def cached(number: int, call: str, setup: str, *changes: str, maxsize: object = 8) -> None:
    """Add a case of a function with a cache that is called with tensors."""
    case(
        f"cached: {call}",
        f"{setup}\n{TWICE.format(number, maxsize)}",
        f"y = y + {call}",
        f"k_{number} = 3.0",
        f"f_{number}.cache_clear()",
        *changes,
        f"k_{number} = 4.0",
    )


cached(1, "f_1(t_1)", "t_1 = tensor(1, 2, 3)", "t_1.mul_(2)", "t_1 = tensor(3, 2, 1)")
cached(2, "f_2(n=t_2)", "t_2 = tensor(1, 2, 3)", "t_2.mul_(2)", "t_2 = tensor(3, 2, 1)")
cached(3, "f_3(t3)", "NAMED['t3'] = tensor(1, 2, 3)", "NAMED['t3'].mul_(2)", "NAMED['t3'] = tensor(3, 2, 1)")
cached(4, "f_4(t_4)", "t_4 = tensor(1, 2, 3)", "t_4.mul_(2)", maxsize=0)
cached(5, "f_5(t_5) * f_5(u_5)", "t_5, u_5 = tensor(1, 2, 3), tensor(3, 2, 1)", "t_5.mul_(2)", maxsize=1)
cached(7, "f_7(y)", "")
cached(8, "f_8(t_8).sin()", "t_8 = tensor(1, 2, 3).requires_grad_()")
case(
    "cached: once within a call",
    "L_c9 = []\n@functools.cache\ndef f_c9(t):\n    L_c9.append(1)\n    return t * 2",
    "z = y * 2\ny = f_c9(z) + f_c9(z)\ny = y * len(L_c9)",
    "L_c9.clear()",
)
case(
    "cached: method",
    "class A_c10:\n    k = 2.0\n    @functools.lru_cache\n    def f(self, t, n=1):\n        return t * self.k * n\na_c10, t_c10 = A_c10(), tensor(1, 2, 3)",
    "y = y + a_c10.f(t_c10, n=3)",
    "a_c10.k = 3.0",
    "A_c10.f.cache_clear()",
    "a_c10 = A_c10()",
)
case(
    "cached: several results",
    "k_c11, t_c11 = 2.0, tensor(1, 2, 3)\n@functools.lru_cache\ndef f_c11(t):\n    return t * k_c11, k_c11",
    "a, b = f_c11(t_c11)\ny = y + a * b",
    "k_c11 = 3.0",
    "f_c11.cache_clear()",
    "t_c11.add_(1)",
)
