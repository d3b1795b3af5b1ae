"""Changes to modes, context variables, the process' environment and containers of all kinds."""

# ruff: noqa: E501
from changes import case

case(
    "around: autocast nested",
    "torch.manual_seed(0)\nm1 = nn.Linear(3,3)",
    "with torch.autocast('cpu', torch.bfloat16):\n    y = m1(y).float()",
    "CONTEXT = lambda: torch.autocast('cpu', torch.float16)",
    "CONTEXT = lambda: torch.autocast('cpu', torch.bfloat16, cache_enabled=False)",
    "CONTEXT = lambda: torch.autocast('cpu', enabled=False)",
)
case(
    "around: autocast disabled inside",
    "torch.manual_seed(0)\nm2 = nn.Linear(3,3)",
    "with torch.autocast('cpu', enabled=False):\n    y = m2(y)",
    "CONTEXT = lambda: torch.autocast('cpu', torch.bfloat16)",
    "CONTEXT = contextlib.nullcontext",
)
case(
    "around: autocast inside dtype default",
    "torch.manual_seed(0)\nm3b = nn.Linear(3,3)",
    "with torch.autocast('cpu'):\n    y = m3b(y).float()",
    "torch.set_autocast_dtype('cpu', torch.float16)",
    "torch.set_autocast_dtype('cpu', torch.bfloat16)",
)
case(
    "around: multithreading",
    "",
    "y = y * (2 if torch._C._is_multithreading_enabled() else 3)",
    "CONTEXT = lambda: torch.autograd.set_multithreading_enabled(False)",
    "CONTEXT = contextlib.nullcontext",
)
case(
    "around: sdpa flags",
    "",
    "y = y * (2 if torch.backends.cuda.math_sdp_enabled() else 3)",
    "torch.backends.cuda.enable_math_sdp(False)",
    "torch.backends.cuda.enable_math_sdp(True)",
)
case(
    "around: environ get",
    "import os",
    "y = y * float(os.environ.get('THUNDER_SCENE', 2))",
    "os.environ['THUNDER_SCENE'] = '3'",
    "os.environ['THUNDER_SCENE'] = '4'",
    "del os.environ['THUNDER_SCENE']",
)
case(
    "around: environ in",
    "import os",
    "y = y * (2 if 'THUNDER_SCENE' in os.environ else 3)",
    "os.environ['THUNDER_SCENE'] = '3'",
    "del os.environ['THUNDER_SCENE']",
)
case(
    "around: environ dict",
    "import os",
    "y = y * (2 if dict(os.environ).get('THUNDER_SCENE') else 3)",
    "os.environ['THUNDER_SCENE'] = '3'",
    "del os.environ['THUNDER_SCENE']",
)
case(
    "around: contextvar",
    "import contextvars\nc10 = contextvars.ContextVar('c10', default=2.0)",
    "y = y * c10.get()",
    "c10.set(3.0)",
    "c10.set(tensor(1,2,3))",
    "c10 = contextvars.ContextVar('c10b', default=7.0)",
)
case(
    "around: contextvar default arg",
    "import contextvars\nc11 = contextvars.ContextVar('c11')",
    "y = y * c11.get(2.0)",
    "c11.set(3.0)",
)
case(
    "around: contextvar lookup",
    "import contextvars\nc12 = contextvars.ContextVar('c12')",
    "try:\n    k = c12.get()\nexcept LookupError:\n    k = 2.0\ny = y * k",
    "T12 = c12.set(3.0)",
    "c12.reset(T12)",
)
case(
    "around: contextvar put back",
    "import contextvars\nc13 = contextvars.ContextVar('c13', default=2.0)",
    "t = c13.set(5.0)\ny = y * c13.get()\nc13.reset(t)\ny = y * c13.get()",
    "c13.set(3.0)",
)
case(
    "around: thread local",
    "import threading\nl14 = threading.local()\nl14.k = 2.0",
    "y = y * l14.k",
    "l14.k = 3.0",
    "del l14.k; l14.k = 5.0",
)
case(
    "around: thread local missing",
    "import threading\nl15 = threading.local()",
    "y = y * getattr(l15, 'k', 2.0)",
    "l15.k = 3.0",
    "del l15.k",
)
case(
    "around: weakref",
    "import weakref\nclass O16:\n    k = 2.0\no16 = O16()\nw16 = weakref.ref(o16)",
    "y = y * (w16().k if w16() is not None else 7.0)",
    "O16.k = 3.0",
    "del o16; import gc; gc.collect()",
)
case(
    "around: weakvaluedict",
    "import weakref\nclass O17:\n    k = 2.0\no17 = O17()\nw17 = weakref.WeakValueDictionary(a=o17)",
    "y = y * (w17['a'].k if 'a' in w17 else 7.0)",
    "o17.k = 3.0",
    "del o17; import gc; gc.collect()",
)
case(
    "around: deque rotate",
    "q18 = collections.deque([1.0, 2.0, 3.0])",
    "y = y * q18[0] + q18[-1]",
    "q18.rotate(1)",
    "q18.append(5.0)",
    "q18.popleft()",
)
case(
    "around: ordereddict move",
    "d20 = collections.OrderedDict(a=1.0, b=2.0)",
    "for k in d20:\n    y = y * 2 + d20[k]",
    "d20.move_to_end('a')",
    "d20['a'] = 5.0",
)
case(
    "around: set",
    "s24 = {1.0, 2.0}",
    "y = y * sum(s24) * (2 if 3.0 in s24 else 1)",
    "s24.add(3.0)",
    "s24.discard(1.0)",
    "s24 |= {4.0}",
    "s24.remove(2.0); s24.add(2)",
)
case(
    "around: nested",
    "n26 = {'a': [{'b': (1.0, [2.0])}]}",
    "y = y * n26['a'][0]['b'][1][0]",
    "n26['a'][0]['b'][1][0] = 3.0",
    "n26['a'][0]['b'] = (1.0, [4.0])",
    "n26['a'].insert(0, {'b': (0, [5.0])})",
)
case(
    "around: list eq",
    "l29 = [1.0, 2.0]\nk29 = [1.0, 2.0]",
    "y = y * (2 if l29 == k29 else 3)",
    "k29[1] = 3.0",
    "l29[1] = 3.0",
    "l29.append(3.0)",
)
case(
    "around: tuple subclass",
    "class T31(tuple):\n    k = 2.0\nt31 = T31((1.0, 2.0))",
    "y = y * t31[0] * t31.k * len(t31)",
    "T31.k = 3.0",
    "t31.k = 5.0",
    "t31 = T31((4.0,))",
    "T31.__len__ = lambda s: 9",
    "T31.__getitem__ = lambda s, i: 4.0",
)
case(
    "around: list subclass",
    "class L32(list):\n    pass\nl32 = L32([1.0, 2.0])",
    "for v in l32:\n    y = y * 2 + v",
    "l32.append(3.0)",
    "l32[0] = 7.0",
    "L32.__iter__ = lambda s: iter([9.0])",
    "del L32.__iter__",
    "l32.k = 3",
)
case(
    "around: dict subclass",
    "class D33(dict):\n    pass\nd33 = D33(a=1.0)",
    "y = y * d33['a'] * d33.get('b', 3.0)",
    "d33['a'] = 2.0",
    "d33['b'] = 5.0",
    "D33.__getitem__ = lambda s, k: 8.0",
    "D33.get = lambda s, k, d: 4.0",
)
case(
    "around: userdict",
    "d34 = collections.UserDict(a=1.0)",
    "y = y * d34['a'] * len(d34)",
    "d34['a'] = 2.0",
    "d34['b'] = 2.0",
    "d34.data = {'a': 7.0}",
)
case(
    "around: chainmap",
    "d35 = {'a': 1.0}\nc35 = collections.ChainMap({}, d35)",
    "y = y * c35['a']",
    "d35['a'] = 2.0",
    "c35['a'] = 3.0",
    "c35.maps.insert(0, {'a': 4.0})",
)
case(
    "around: mappingproxy",
    "m38 = {'a': 1.0}\np38 = types.MappingProxyType(m38)",
    "y = y * p38['a'] * len(p38)",
    "m38['a'] = 2.0",
    "m38['b'] = 2.0",
    "p38 = types.MappingProxyType({'a': 5.0})",
)
case(
    "around: array",
    "import array\na41 = array.array('d', [1.0, 2.0])",
    "y = y * a41[0] + len(a41)",
    "a41[0] = 5.0",
    "a41.append(3.0)",
)
case(
    "around: memoryview",
    "b42 = bytearray(b'abc')\nm42 = memoryview(b42)",
    "y = y * m42[0]",
    "b42[0] = 5",
    "m42[0] = 7",
)
case(
    "around: numpy array",
    "import numpy as np\na44 = np.array([1.0, 2.0])",
    "y = y * float(a44[0]) + a44.shape[0]",
    "a44[0] = 5.0",
    "a44 = np.array([5.0, 2.0, 3.0])",
    "a44 = a44.astype('float32')",
)
case(
    "around: numpy scalar",
    "import numpy as np\nNAMED['s46'] = np.float64(2.0)",
    "y = y * s46",
    "NAMED['s46'] = np.float64(3.0)",
    "NAMED['s46'] = np.float32(3.0)",
    "NAMED['s46'] = 3.0",
    "NAMED['s46'] = np.int64(3)",
)
