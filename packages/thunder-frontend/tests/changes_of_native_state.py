"""Changes to objects whose state only code in C knows: locks, queues, memory of ctypes and of NumPy, files in memory."""

# ruff: noqa: E501
from changes import case

case(
    "lock",
    "import threading\nL1 = threading.Lock()",
    "y = y * (2 if L1.locked() else 3)",
    "L1.acquire(blocking=False)",
    "L1.release()",
)
case(
    "lock that is an argument",
    "import threading\nNAMED['l2'] = threading.Lock()",
    "y = y * (2 if l2.locked() else 3)",
    "NAMED['l2'].acquire(blocking=False)",
    "NAMED['l2'] = threading.Lock()",
)
case(
    "lock that is tried",
    "import threading\nL3 = threading.Lock()",
    "if L3.acquire(blocking=False):\n    L3.release()\n    y = y * 2",
    "L3.acquire(blocking=False)",
    "L3.release()",
)
case(
    "lock that the program holds",
    "import threading\nL4 = threading.Lock()",
    "with L4:\n    y = y * (2 if L4.locked() else 3)",
)
case(
    "owned lock",
    "import threading\nL5 = threading.RLock()",
    "y = y * (2 if L5._is_owned() else 3)",
    "L5.acquire(blocking=False)",
    "L5.release()",
)
case(
    "queue written in C",
    "import queue\nQ6 = queue.SimpleQueue()",
    "y = y * (2 + Q6.qsize()) * (2 if Q6.empty() else 3)",
    "Q6.put(1)",
    "Q6.put(1)",
    "Q6.get_nowait()",
)
case("queue", "import queue\nQ7 = queue.Queue()", "y = y * (2 + Q7.qsize())", "Q7.put(1)", "Q7.get_nowait()")
case(
    "array of ctypes",
    "import ctypes\nA8 = (ctypes.c_float * 3)(1, 2, 3)",
    "y = y * A8[0] * len(A8)\nfor v in A8:\n    y = y + v",
    "A8[0] = 5",
    "A8[2] = 7",
)
case(
    "array of ctypes that is summed",
    "import ctypes\nA9 = (ctypes.c_float * 3)(1, 2, 3)",
    "y = y * sum(A9) + torch.tensor(list(A9)) + torch.tensor(A9[:])",
    "A9[0] = 5",
    "A9[2] = 7",
)
case(
    "structure of ctypes",
    "import ctypes\nclass S10(ctypes.Structure):\n    _fields_ = [('a', ctypes.c_float), ('b', ctypes.c_int * 2)]\nA10 = S10(2.0)",
    "y = y * A10.a * (1 + A10.b[1]) * (1 + sum(bytes(A10)))",
    "A10.a = 5",
    "A10.b[1] = 7",
    "A10.b[0] = 7",
)
case(
    "pointer of ctypes",
    "import ctypes\nA11 = ctypes.c_float(3)\nP11 = ctypes.pointer(A11)",
    "y = y * P11[0] * P11.contents.value",
    "A11.value = 5",
    "P11[0] = 7",
)
case(
    "memory that NumPy shares",
    "import ctypes, numpy as np\nA12 = (ctypes.c_float * 3)(1, 2, 3)",
    "y = y * float(np.frombuffer(A12, dtype=np.float32)[0])",
    "A12[0] = 5",
)
case(
    "mapped memory",
    "import mmap\nM13 = mmap.mmap(-1, 16)\nM13[0] = 3",
    "y = y * M13[0] * (3 + M13.find(b'x'))",
    "M13[0] = 5",
    "M13[5] = ord('x')",
)
case(
    "bytes that are asked",
    "B14 = bytearray(b'abc')",
    "y = y * len(B14) * (2 if 99 in B14 else 3) * (2 if B14 else 3)\nfor v in B14:\n    y = y + v",
    "B14[0] = 3",
    "B14[2] = 1",
    "B14.append(3)",
    "B14.clear()",
)
case(
    "array that is asked",
    "import numpy as np\nA15 = np.ones(1)",
    "y = y * (2 if A15 else 3) * (2 if 1.0 in A15 else 3)\nfor v in A15:\n    y = y + float(v)\na, = A15\ny = y * float(a)",
    "A15[0] = 5",
    "A15[0] = 0",
)
case(
    "masked array",
    "import numpy as np\nA16 = np.ma.array([1.0, 2.0], mask=[0, 1])",
    "y = y * float(A16.sum())",
    "A16.mask = [0, 0]",
    "A16[0] = 5",
)
case(
    "kinds of arrays",
    "import numpy as np\nclass A17(np.ndarray):\n    k = 2.0\nB17 = np.ones(2).view(A17)\nC17 = np.matrix([[1.0, 2.0]])\nD17 = np.rec.array([(1.0, 2.0)], dtype=[('a', 'f4'), ('b', 'f4')])",
    "y = y * float(B17[0]) * B17.k * float(C17[0, 0]) * float(D17.a[0]) * float(D17[0].b)",
    "B17[0] = 5",
    "A17.k = 3.0",
    "B17.k = 9.0",
    "C17[0, 0] = 5",
    "D17.a[0] = 5",
    "D17.b[0] = 5",
)
case(
    "array of dates",
    "import numpy as np\nA18 = np.array(['2020-01-01'], dtype='M8[D]')",
    "y = y * int(A18[0].astype(int))",
    "A18[0] = np.datetime64('2021-01-01')",
)
case(
    "array of strings",
    "import numpy as np\nA19 = np.array(['a', 'bc'], dtype=object)",
    "y = y * len(A19[0])",
    "A19[0] = 'defg'",
)
case(
    "arrays in a list",
    "import numpy as np\nA20 = [np.ones(2), np.ones(2)]",
    "y = y * float(np.stack(A20).sum())",
    "A20[1][0] = 5",
    "A20.append(np.ones(2))",
)
case(
    "array that a tensor is made of",
    "import numpy as np\nA24 = np.array([1, 2, 3], dtype=np.float32)",
    "y = y * torch.tensor(A24) + torch.as_tensor(A24) + torch.tensor(np.array(2, dtype=np.int32)).element_size()",
    "A24[0] = 5",
    "A24 *= 2",
    "A24 = np.array([1, 2, 3], dtype=np.int32)",
)
case("polynomial", "import numpy as np\nP21 = np.poly1d([1, 2])", "y = y * float(P21(3))", "P21.coeffs[0] = 5")
case(
    "method of an object in C",
    "L22 = [1.0]\nadd22 = L22.append\nlen22 = L22.__len__",
    "y = y * len22()",
    "L22.append(2.0)",
    "L22.clear()",
)
case(
    "hash",
    "import hashlib\nH23 = hashlib.md5(b'a')",
    "y = y * H23.digest()[0] * len(H23.hexdigest())",
    "H23.update(b'b')",
)
