"""Changes to what a process has one of, and to what the operating system answers."""

# ruff: noqa: E501
from changes import LINEAR, case

FILE = "import os, pathlib, tempfile\nD{0} = tempfile.TemporaryDirectory()\nF{0} = pathlib.Path(D{0}.name, 'f')\nF{0}.write_text('a')"

case("directory of the process", "import os", "y = y * len(os.getcwd())", "os.chdir('/')", "os.chdir('/usr')")
case("size of a file", FILE.format(2), "y = y * os.stat(F2).st_size", "F2.write_text('abc')", "F2.unlink()")
case("path that exists", FILE.format(3), "y = y * (2 if os.path.exists(str(F3)) else 3)", "F3.unlink()", "F3.mkdir()")
case("file by its path", FILE.format(4), "y = y * (2 if F4.is_file() else 3)", "F4.unlink()", "F4.mkdir()")
case("files of a directory", FILE.format(5), "y = y * len(os.listdir(D5.name))", "F5.unlink()")
case(
    "decimal precision",
    "import decimal\nD6 = decimal.Decimal(1)",
    "y = y * float(D6 / 3)",
    "decimal.getcontext().prec = 4",
    "decimal.getcontext().rounding = 'ROUND_UP'",
    "decimal.setcontext(decimal.Context(prec=2))",
)
case(
    "decimal context",
    "import decimal",
    "y = y * decimal.getcontext().prec",
    "decimal.getcontext().prec = 4",
    "decimal.setcontext(decimal.Context(prec=2))",
)
case(
    "module that is not there",
    "import sys",
    "try:\n    import thunder_scene\n    y = y * thunder_scene.k\nexcept ImportError:\n    y = y * 3",
    "M8 = types.ModuleType('thunder_scene'); M8.k = 5.0; sys.modules['thunder_scene'] = M8",
    "M8.k = 6.0",
    "sys.modules['thunder_scene'] = None",
    "del sys.modules['thunder_scene']",
)
case(
    "limit of recursion",
    "import sys",
    "y = y * sys.getrecursionlimit()",
    "sys.setrecursionlimit(sys.getrecursionlimit() + 10)",
)
case(
    "errors of NumPy",
    "import numpy as np",
    "y = y * (2 if np.geterr()['divide'] == 'warn' else 3)",
    "np.seterr(divide='ignore')",
    "np.seterr(divide='warn')",
)
case(
    "warning that is caught",
    "import warnings",
    "try:\n    warnings.warn('thunder scene')\n    y = y * 2\nexcept UserWarning:\n    y = y * 3",
    "warnings.filterwarnings('error', 'thunder scene')",
    "warnings.filterwarnings('ignore', 'thunder scene')",
)
case(
    "warning that is raised",
    "import warnings",
    "warnings.warn('thunder scene')\ny = y * 2",
    "warnings.filterwarnings('error', 'thunder scene')",
    "warnings.filterwarnings('ignore', 'thunder scene')",
)
case(
    "time zone",
    "import datetime, os, time\nD27 = datetime.datetime(2020, 1, 1)",
    "y = y * (1 + time.localtime(0).tm_hour) + datetime.datetime.fromtimestamp(0).hour + D27.timestamp()",
    "os.environ['TZ'] = 'EST+5'; time.tzset()",
    "os.environ['TZ'] = 'UTC'; time.tzset()",
)
case(
    "settings of the collector",
    "import gc",
    "y = y * gc.get_threshold()[0] * (1 + gc.get_debug())",
    "gc.set_threshold(500)",
    "gc.set_threshold(700)",
)
case(
    "settings of modules in C",
    "import faulthandler, socket, sys",
    "y = y * (2 if faulthandler.is_enabled() else 3) * (socket.getdefaulttimeout() or 5)",
    "socket.setdefaulttimeout(3)",
    "socket.setdefaulttimeout(None)",
)
case(
    "class that super begins after",
    "class A10:\n    f = lambda s: 2.0\nclass B10(A10):\n    def f(s):\n        return super().f() * 3\nclass C10:\n    f = lambda s: 5.0\nclass E10(C10, A10):\n    pass\nclass F10(B10, E10):\n    pass\nO10 = F10()",
    "y = y * O10.f()",
    "B10.f.__closure__[0].cell_contents = E10",
    "B10.f.__closure__[0].cell_contents = B10",
)
case(
    "weak method",
    "import weakref\nclass O11:\n    k = 2.0\n    def f(s):\n        return s.k\no11 = O11()\nW11 = weakref.WeakMethod(o11.f)",
    "y = y * (W11()() if W11() else 9)",
    "o11.k = 3.0",
    "del o11; import gc; gc.collect()",
)
case(
    "memory that is shared",
    LINEAR.format("M12"),
    "y = M12(y) * (2 if M12.weight.is_shared() else 3)",
    "M12.share_memory()",
)
case(
    "view or not",
    "B13 = tensor(1, 2, 3, 4)\nT13 = B13[:3]",
    "y = y + T13 * (2 if T13._is_view() else 3) + T13.output_nr",
    "T13 = T13.clone()",
    "T13 = B13[1:]",
    "T13 = tensor(1, 2, 3, 4, 5, 6).requires_grad_().split(3)[1]",
)
