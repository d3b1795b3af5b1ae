"""Changes of the world between calls: no result is ever stale."""

import changes_beneath_torch  # noqa: F401
import changes_of_arguments  # noqa: F401
import changes_of_cached_functions  # noqa: F401
import changes_of_classes  # noqa: F401
import changes_of_containers  # noqa: F401
import changes_of_functions  # noqa: F401
import changes_of_hidden_state  # noqa: F401
import changes_of_keys  # noqa: F401
import changes_of_libraries  # noqa: F401
import changes_of_library_calls  # noqa: F401
import changes_of_modules  # noqa: F401
import changes_of_native_callables  # noqa: F401
import changes_of_native_state  # noqa: F401
import changes_of_natively_called  # noqa: F401
import changes_of_objects  # noqa: F401
import changes_of_parts_of_modules  # noqa: F401
import changes_of_settings  # noqa: F401
import changes_of_special_methods  # noqa: F401
import changes_of_state  # noqa: F401
import changes_of_surroundings  # noqa: F401
import changes_of_the_process  # noqa: F401
import changes_of_values  # noqa: F401
import changes_of_weak_references  # noqa: F401
import changes_of_written_state  # noqa: F401
import pytest
from changes import CASES, Case, Scene, never_stale, restore
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from thunder_frontend import AcquisitionError, jit


@pytest.fixture(autouse=True)
def _restored():
    yield
    restore()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("cache", ["constant values", "symbolic values"])
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_each_change_is_seen(case, cache):
    never_stale([case], case.changes, cache=cache)


@st.composite
def scenes(draw):
    """Some cases, and changes to them in any order."""
    cases = draw(st.lists(st.sampled_from(CASES), min_size=2, max_size=4, unique_by=lambda c: c.name))
    steps = draw(st.lists(st.sampled_from([step for c in cases for step in c.changes]), min_size=2, max_size=8))
    return cases, steps


@pytest.mark.filterwarnings("ignore")
@settings(max_examples=15, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(scenes())
def test_changes_to_programs_that_read_several_things_are_seen(scene):
    try:
        never_stale(*scene, calls=1)
    finally:
        restore()


@pytest.mark.parametrize(
    ("setup", "body"),
    [
        ("B1 = iter([2.0, 3.0])", "y = y * next(B1)"),
        ("B2 = (v for v in [2.0, 3.0])", "for v in B2:\n    y = y * v"),
        ("B3 = itertools.count(2)", "y = y * next(B3)"),
        ("NAMED['b4'] = iter([2.0])", "y = y * sum(b4)"),
        ("import csv\nB5 = csv.reader(['1', '2'])", "y = y * float(next(B5)[0])"),
    ],
)
def test_iterators_begun_outside_are_refused_before_they_are_advanced(setup, body):
    scene = Scene([Case("iterator", setup, body, ())])
    with pytest.raises(AcquisitionError, match="begun outside"):
        scene.call(jit(scene.program))
    assert scene.call(scene.program) is not None


COMPARED = "import os\nclass O1:\n    n = 2.0\n    def __hash__(s):\n        return {0}\n    def __lt__(s, o):\n        return {0}"
COUNTING = "L1 = []\nclass O1:\n    def __del__(s):\n        L1.append(1)"


@pytest.mark.parametrize(
    ("setup", "body"),
    [
        (COUNTING, "O1()\ny = y * (1 + len(L1))"),
        (COUNTING, "d = {'a': O1()}\nd.pop('a')\ny = y * (1 + len(L1))"),
        (COUNTING + "\nclass P1(O1):\n    pass\ndef f1():\n    o = P1()", "f1()\ny = y * (1 + len(L1))"),
        (COUNTING, "o = object.__new__(O1)\ndel o\ny = y * (1 + len(L1))"),
        (COUNTING + "\nA1 = O1()", "o = copy.copy(A1)\ndel o\ny = y * (1 + len(L1))"),
        ("L1 = []\nclass O1:\n    __del__ = functools.partial(L1.append, 1)", "O1()\ny = y * (1 + len(L1))"),
        (COUNTING, "class P(O1):\n    pass\nP()\ny = y * (1 + len(L1))"),
        ("class O2: pass\nL2 = []", "o = O2()\nimport weakref\nr = weakref.ref(o, L2.append)\ndel o\ny = y * len(L2)"),
    ],
)  # fmt: skip
def test_what_happens_when_objects_of_the_program_die_is_refused(setup, body):
    scene = Scene([Case("finaliser", setup, body, ())])
    with pytest.raises(AcquisitionError, match="not on later calls"):
        scene.call(jit(scene.program))


@pytest.mark.parametrize("owner", ["O3", "P3"])
def test_finalisers_that_come_later_are_refused(owner):
    scene = Scene([Case("finaliser", "class P3: pass\nclass O3(P3): k = 2.0", "y = y * O3().k", ())])
    compiled = jit(scene.program)
    assert scene.call(compiled) is not None
    scene.execute(f"{owner}.__del__ = lambda s: print(s)")
    with pytest.raises(AcquisitionError, match="not on later calls"):
        scene.call(compiled)


def test_finalisers_that_do_nothing_are_no_obstacle():
    never_stale(
        [Case("finaliser", "class O1:\n    k = 2.0\n    def __del__(s):\n        pass", "y = y * O1().k", ())], []
    )


@pytest.mark.parametrize(
    ("setup", "body"),
    [
        ("import os", "y = y * len(list(os.scandir('/')))"),
        ("import os", "os.mkdir('/tmp/thunder-scene')"),
        ("import contextvars", "y = y * len(contextvars.copy_context())"),
        ("import contextvars\nC6 = contextvars.Context()", "y = y * len(C6)"),
        ("import contextvars\nC7 = contextvars.Context()", "y = C7.run(torch.sin, y)"),
        ("import decimal", "with decimal.localcontext():\n    pass"),
        ("import sys", "y = y * sys.getrefcount(x)"),
        ("import weakref\nclass O9:\n    k = 2.0\nO9A = O9()\nP9 = weakref.proxy(O9A)", "y = y * P9.k"),
        ("import io\nB10 = io.StringIO()", "y = y * len(B10.getvalue())"),
        ("import time", "y = y * time.localtime().tm_sec"),
        ("import gc", "y = y * gc.get_freeze_count()"),
        ("import sys", "y = y * sys.getallocatedblocks()"),
        ("import threading", "y = y * (2 if threading.stack_size() else 3)"),
        ("import resource", "y = y * resource.getrusage(0).ru_maxrss"),
        ("import sqlite3\nC13 = sqlite3.connect(':memory:')", "y = y * C13.execute('select 3').fetchone()[0]"),
        ("import zlib\nC14 = zlib.compressobj()", "y = y * len(C14.flush())"),
        ("import mmap\nM15 = mmap.mmap(-1, 16)", "y = y * M15.tell()"),
        (COMPARED.format("1 if os.path.exists('/') else 0"), "y = y * len({O1(), O1()})"),
        (COMPARED.format("len(open('/dev/null').read())"), "y = y * sorted([O1(), O1()])[0].n"),
        ("import threading\nL16 = threading.RLock()", "y = y * (2 if L16.acquire(False) else 3)"),
        ("import multiprocessing as mp\nE17 = mp.Event()", "y = y * (2 if E17.is_set() else 3)"),
        ("import queue\nQ18 = queue.SimpleQueue()\nQ18.put(2.0)", "y = y * Q18.get()"),
        ("@functools.lru_cache\ndef f19(n):\n    return n", "y = y * (1 + f19.cache_info().hits)"),
    ],
)
def test_what_cannot_be_watched_is_refused(setup, body):
    scene = Scene([Case("unwatchable", setup, body, ())])
    with pytest.raises(AcquisitionError, match="outside of what a compiled program can watch|weakref.proxy|each call"):
        scene.call(jit(scene.program))


def test_callables_that_code_in_c_only_holds_are_no_obstacle():
    setup = "import random\nC1 = {'a': random.random, 'b': functools.partial(random.random), 'c': len}"
    body = "y = y * len(list(C1.values())) * len(dict(C1)) * len([*C1.items()]) * len(repr(sorted(C1)))"
    never_stale([Case("held", setup, body, ())], ["C1['d'] = 1"])
