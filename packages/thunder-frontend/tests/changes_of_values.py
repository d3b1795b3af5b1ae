"""Changes to values that are equal, and yet can be told apart."""

from changes import case

case(
    "range",
    "NAMED['r1'] = range(0, 4, 2)",
    "y = y * r1.stop",
    "NAMED['r1'] = range(0, 3, 2)",
    "NAMED['r1'] = range(0)",
    "NAMED['r1'] = range(5, 1)",
)
case(
    "slice",
    "NAMED['s2'] = slice(0.0, 2)",
    "y = y * math.copysign(1, s2.start) * (2 if s2.stop is True else 3)",
    "NAMED['s2'] = slice(-0.0, 2)",
    "NAMED['s2'] = slice(0.0, True)",
)
case(
    "time of day",
    "import datetime\nNAMED['d3'] = datetime.datetime(2020, 1, 1, tzinfo=datetime.timezone.utc)",
    "y = y * (d3.hour + 1) + d3.fold",
    "NAMED['d3'] = datetime.datetime(2020, 1, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=1)))",
    "NAMED['d3'] = datetime.datetime(2020, 1, 1)",
    "NAMED['d3'] = datetime.datetime(2020, 1, 1, fold=1)",
)
case(
    "decimal number",
    "from decimal import Decimal\nNAMED['d4'] = Decimal('1.0')",
    "y = y * len(str(d4))",
    "NAMED['d4'] = Decimal('1.00')",
    "NAMED['d4'] = Decimal('0')",
    "NAMED['d4'] = Decimal('-0')",
    "NAMED['d4'] = Decimal('nan')",
)
case(
    "int that is equal to all",
    "class I5(int):\n    __eq__ = lambda s, o: True\n    __hash__ = int.__hash__\nNAMED['i5'] = I5(2)",
    "y = y * int(i5)",
    "NAMED['i5'] = I5(3)",
)
case(
    "str that is equal to all",
    "class S6(str):\n    __eq__ = lambda s, o: True\n    __hash__ = str.__hash__\nNAMED['s6'] = S6('a')",
    "y = y * len(s6)",
    "NAMED['s6'] = S6('bb')",
)
case(
    "enum that is equal to all",
    "class E7(enum.Enum):\n    A = 2\n    B = 3\n    __eq__ = lambda s, o: True\n    __hash__ = object.__hash__\nNAMED['e7'] = E7.A",
    "y = y * e7.value",
    "NAMED['e7'] = E7.B",
)  # fmt: skip
case(
    "bool of NumPy",
    "import numpy as np\nNAMED['b8'] = np.bool_(True)",
    "y = y * (2 if b8 else 3)",
    "NAMED['b8'] = np.bool_(False)",
    "NAMED['b8'] = True",
)
case(
    "zero of NumPy",
    "import numpy as np\nNAMED['z9'] = np.float32(0.0)",
    "y = y * math.copysign(1, float(z9)) + float(z9)",
    "NAMED['z9'] = np.float32(-0.0)",
    "NAMED['z9'] = np.float32('nan')",
    "NAMED['z9'] = np.float16(0.0)",
    "NAMED['z9'] = np.float64(0.0)",
)
case(
    "date of NumPy",
    "import numpy as np\nD10 = np.datetime64('2020-01-01')",
    "y = y * int(D10.astype('int64'))",
    "D10 = np.datetime64('2020-01-02')",
    "D10 = np.datetime64('2020-01-02T00')",
)
case(
    "number of NumPy before an error",
    "import numpy as np\nNAMED['n11'] = np.float32(3)\nD11 = {'a': 1.0}",
    "y = y * n11\ny = y * D11['a']",
    "D11.clear()",
    "D11['a'] = 2.0",
)
case(
    "name that is a tensor",
    "class N12:\n    __name__ = tensor(1, 2, 3)\n    k = 2.0\n    def __call__(s, v):\n        return v * s.k\nN12A = N12()",
    "y = N12A(y)",
    "N12.k = 3.0",
)  # fmt: skip
