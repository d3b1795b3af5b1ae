"""Changes to what functions read that code in C calls: special methods, keys and callbacks."""

from changes import case

OPERAND = "class O{0}:\n    def {1}:\n        return {2}\nK{0} = {3}\nA{0} = O{0}()"


def operand(number: int, method: str, returned: str, start: str, body: str, change: str) -> None:
    """Add a case of an object of the outside world whose special method reads a global."""
    name = f"natively called: {method.partition('(')[0]} {number}"
    case(name, OPERAND.format(number, method, returned, start), body, f"K{number} = {change}")


operand(1, "__radd__(s, o)", "o + K1", "2.0", "y = y * sum([A1])", "3.0")
operand(2, "__gt__(s, o)", "K2", "True", "y = y * (2 if max([1, A2]) is A2 else 3)", "False")
operand(3, "__lt__(s, o)", "K3", "True", "y = y * (2 if sorted([A3, A3, 1])[0] == 1 else 3)", "False")
operand(4, "__eq__(s, o)", "o == K4", "1", "y = y * (2 if 1 in [A4] else 3) * (5 if [A4] == [1] else 7)", "2")
operand(5, "__int__(s)", "K5", "2", "y = y * int(A5)", "3")
operand(6, "__index__(s)", "K6", "1", "y = y * len(range(A6)) + math.gcd(A6, 6)", "2")
operand(7, "__bool__(s)", "K7", "True", "y = y * (2 if any([A7]) else 3) * (5 if all([A7]) else 7)", "False")
operand(8, "__float__(s)", "K8", "1.0", "y = y * math.sqrt(A8) + float(A8)", "2.0")
operand(9, "__getitem__(s, i)", "K9[i]", "[1.0]", "y = y * sum(A9) + len(list(A9))", "[2.0, 3.0]")
operand(10, "__str__(s)", "K10", "'2'", "y = y * float('%s' % A10)", "'3'")
case(
    "natively called: closure",
    "def made11(k):\n    class O:\n        def __radd__(s, o):\n            return o + k[0]\n    return O()\n"
    "K11 = [2.0]\nA11 = made11(K11)",
    "y = y * sum([A11])",
    "K11[0] = 3.0",
    "K11.insert(0, 4.0)",
)
case(
    "natively called: substitution",
    "import re\nK12 = '2'",
    "y = y * float(re.sub('a', lambda m: K12, 'a')) + float(re.compile('a').subn(lambda m: K12, 'a')[0])",
    "K12 = '3'",
)
case(
    "natively called: comparison and bisection",
    "import bisect\nK13 = 1.0",
    "y = y * sorted([1.0, 5.0], key=functools.cmp_to_key(lambda a, b: (a - b) * K13))[0]\n"
    "y = y + bisect.bisect([1.0, 2.0, 3.0], 2.5, key=lambda v: v * K13)",
    "K13 = -1.0",
    "K13 = 2.0",
)
case(
    "natively called: product",
    "class O14:\n    def __iter__(s):\n        yield K14\nK14 = 2.0\nA14 = O14()",
    "for a, b in itertools.product(A14, [1]):\n    y = y * a + b",
    "K14 = 3.0",
)
case(
    "natively called: a method that a subclass takes back",
    "class O15:\n    def __hash__(s):\n        return 1\n"
    "class P15(O15):\n    def __eq__(s, o):\n        return K15\nK15 = True\nD15 = {'a': P15()}",
    "y = y * (2 if dict(D15)['a'] == 1 else 3)",
    "K15 = False",
)
