"""Changes to what objects keep where programs seldom look: slots of paths, arguments of exceptions, names of modules."""

# ruff: noqa: E501
from changes import case

PATH = "import pathlib\nP1 = pathlib.Path('/tmp/abc')\nP1.name, P1.parts, str(P1)"
for attribute, values in {
    "_str": ("'x'", "'/tmp'"),
    "_parts": ("['a', 'bcdef']", "['a', 'b', 'c']"),
    "_tail_cached": ("['a', 'bcdef']", "['a', 'b', 'c']"),
    "_drv": ("'cc'", "''"),
    "_root": ("'//'", "''"),
    "_hash": ("3", "4"),
}.items():
    case(
        f"hidden: path {attribute}",
        PATH,
        "y = y * len(str(P1)) * len(P1.name) * len(P1.parts) * (1 + len(P1.drive)) * (1 + len(P1.root)) + hash(P1) % 7",
        *[f"object.__setattr__(P1, '{attribute}', {value})" for value in values],
    )
case(
    "hidden: path that C code asks",
    "import os, pathlib\nP2 = pathlib.PurePosixPath('/a/b.txt')",
    "y = y * len(os.fspath(P2)) * len(os.path.join(P2, 'c')) * len(os.path.basename(P2))",
    "P2._str = 'zz'",
    "P2._str = 'zzz/kk'",
    "P2 = pathlib.PurePosixPath('c.t')",
)
case(
    "hidden: path that is an argument",
    "import pathlib\nNAMED['p3'] = pathlib.Path('/tmp/abc')",
    "y = y * len(str(p3)) * len(p3.parent.name)",
    "NAMED['p3']._str = 'x'",
    "NAMED['p3'] = pathlib.Path('/tmp/abc')",
    "NAMED['p3'] = pathlib.Path('/tmp')",
)
for index, (made, *changes) in enumerate((
    ("ValueError('ab')", "E{0}.args = ('abcdef',)", "E{0}.args = ()"),
    ("KeyError('ab')", "E{0}.args = ('abcdef',)"),
    ("OSError(2, 'no', 'file')", "E{0}.filename = 'abcdef'", "E{0}.strerror = 'zz'", "E{0}.errno = 55"),
    ("UnicodeDecodeError('utf8', b'ab', 0, 1, 'r')", "E{0}.reason = 'abc'", "E{0}.start = 1", "E{0}.end = 2"),
    ("ImportError('a', name='b')", "E{0}.msg = 'abc'"),
    ("SyntaxError('a', ('f', 1, 2, 't'))", "E{0}.msg = 'abc'", "E{0}.lineno = 12345"),
)):  # fmt: skip
    name = made.partition("(")[0]
    case(
        f"hidden: text of {name}",
        f"E{index} = {made}",
        f"y = y * len(str(E{index})) * len(repr(E{index})) * len(f'{{E{index}}}') * len(str([E{index}]))",
        *[change.format(index) for change in changes],
    )
case(
    "hidden: slot beside an attribute of that name",
    "class O4: __slots__ = ('k',)\nclass P4(O4): pass\nA4 = P4()\nA4.k = 2.0",
    "y = y * A4.k",
    "A4.__dict__['k'] = 5.0",
    "A4.k = 3.0",
    "P4.k = 7.0",
    "del P4.k",
)
case(
    "hidden: attributes in a dict of a class of its own",
    "class D5(dict):\n    def __getitem__(s, k): return 9.0\nclass O5: pass\nA5 = O5()\nA5.k = 2.0",
    "y = y * A5.k",
    "A5.__dict__ = D5(k=3.0)",
    "A5.__dict__ = D5(k=4.0)",
    "A5.k = 5.0",
)
case(
    "hidden: dtype that gets other names",
    "import numpy as np\nA6 = np.zeros(2, dtype=[('a', 'f4'), ('b', 'f4')])",
    "y = y * (1 + float(A6['a'][0]))",
    "A6['a'][0] = 3",
    "A6.dtype.names = ('b', 'a')",
    "A6['a'][0] = 8",
)
MODULE = "M{0} = types.ModuleType('m')\nexec('k = 2.0\\ndef f(): return k', vars(M{0}))"
case(
    "hidden: module that is cleared",
    MODULE.format(7),
    "y = y * M7.k * M7.f()",
    "vars(M7).clear()",
    "M7.k, M7.f = 3.0, lambda: 4.0",
    "vars(M7).clear()",
)
case(
    "hidden: module whose name is no name",
    MODULE.format(8),
    "y = y * M8.k * M8.f()",
    "M8.__name__ = 5",
    "M8.k = 3.0",
    "del M8.__name__",
    "M8.k = 4.0",
)
case(
    "hidden: class whose module has no name",
    "class O9:\n    k = 2.0\n    def f(s): return s.k",
    "y = y * O9().f()",
    "O9.__module__ = 5",
    "O9.k = 3.0",
    "O9.f = lambda s: 4.0",
)
case(
    "hidden: module of the user's that is cleared",
    "torch.manual_seed(0)\nM10 = nn.Sequential(nn.Linear(3, 3))",
    "y = M10(y)",
    "vars(M10[0]).clear()",
    "M10[0] = nn.Identity()",
)
NAMED_BY = "def f11(): pass\nclass O11: pass\nA11, M11 = O11(), types.ModuleType('m')"
case(
    "hidden: names in the text of functions, classes and modules",
    NAMED_BY,
    "for o in (f11, O11, A11, M11, [O11]):\n    y = y * len(str(o).split('at')[0])",
    "f11.__qualname__ = 'abcdefg'",
    "O11.__qualname__ = 'abcdefgh'",
    "O11.__module__ = 'm'",
    "M11.__name__ = 'abcdefg'",
    "O11.__repr__ = lambda s: 'q at'",
)
case(
    "hidden: text of a dtype and of a partial",
    "import numpy as np\nD12, P12 = np.dtype([('a', 'f4')]), functools.partial(max, 1)",
    "y = y * len(str(D12)) * len(repr(P12))",
    "D12.names = ('bbbbbb',)",
    "P12.__setstate__((max, (1, 2222), {}, None))",
)
case(
    "hidden: text of exceptions within another",
    "E13 = ExceptionGroup('a', [ValueError(1)])",
    "y = y * len(repr(E13)) * len(str(E13))",
    "E13.exceptions[0].args = (22222,)",
)
