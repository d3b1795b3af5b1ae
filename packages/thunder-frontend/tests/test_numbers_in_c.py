"""Numbers and shapes that are dynamic, in the hands of code in C: it sees, writes and returns what eager does."""

import bisect
import collections
import fractions
import itertools
import json
import math
import pprint
import struct
import types

import numpy as np
import pytest
import torch

from thunder_frontend import cache_misses, jit

PROGRAMS = {
    "percent": lambda x, n: "%05d %s %r" % (n, n, n),  # noqa: UP031
    "format": lambda x, n: "{:>5} {!r} {}".format(n, n, [n]),  # noqa: UP032
    "f-string": lambda x, n: f"{n:03d} {n!r} {x.shape} {[x.shape]}",
    "text of containers": lambda x, n: str([n, (n,), {n: n}, {n}]),
    "text of a slice": lambda x, n: repr(slice(n, None, 2)),
    "text of a namespace": lambda x, n: repr(types.SimpleNamespace(n=n)),
    "text of an error": lambda x, n: str(ValueError(n, 2)),
    "pprint": lambda x, n: pprint.pformat({n: [n]}),
    "json": lambda x, n: json.dumps({"n": n, "l": [n, 1]}),
    "struct": lambda x, n: struct.pack("i", n),
    "ldexp": lambda x, n: math.ldexp(1.0, n),
    "fractions": lambda x, n: sum([fractions.Fraction(1, n)] * 3),
    "search": lambda x, n: bisect.bisect([1, 4, 6], n),
    "names": lambda x, n: (dir(n), hasattr(n, "is_integer"), hasattr(n, "shape"), n.bit_length()),
    "shape as a key": lambda x, n: {x.shape: 1, (n, x.shape): 2},
    "type of a shape": lambda x, n: [type(key) for key in {x.shape: 1}],
    "hash of a shape": lambda x, n: hash(x.shape),
}

REFUSED_BY_C = {
    "deque": lambda n: list(collections.deque(range(9), maxlen=n)),
    "permutations": lambda n: list(itertools.permutations(range(4), n)),
    "generator": lambda n: np.random.default_rng(n).random(),
    "seeds": lambda n: np.random.SeedSequence(entropy=n).generate_state(2).tolist(),
    "date": lambda n: np.datetime64(n, "D").astype(int).item(),
    "clip": lambda n: np.clip(n, 2, 3).dtype.name,
}
"""What takes a number for something else unless it is one of Python's."""


def kinds(value):
    """Return the types of a value and of what is in it."""
    inside = [*value, *value.values()] if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return type(value), [kinds(item) for item in inside]


@pytest.mark.parametrize("cache", ["auto", "symbolic values"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_code_in_c_does_with_numbers_what_it_does_in_eager(name, cache):
    program = PROGRAMS[name]
    compiled = jit(lambda x, n: (x * 2, program(x, n)), cache=cache)
    for n in (3, 4, 5, 4):
        x = torch.ones(n, 3)
        (doubled, result), expected = compiled(x, n), program(x, n)
        assert torch.equal(doubled, x * 2)
        assert result == expected and kinds(result) == kinds(expected)


@pytest.mark.filterwarnings("ignore::thunder_frontend.FallbackWarning")
@pytest.mark.parametrize("number", [lambda x: x.shape[0], lambda x: int(x.sum())], ids=["size", "value"])
@pytest.mark.parametrize("name", REFUSED_BY_C)
def test_code_in_c_that_refuses_symbolic_numbers_gets_plain_ones(name, number):
    program = REFUSED_BY_C[name]
    compiled = jit(lambda x: (x * 2, program(number(x))), fallback="split")
    for n in (2, 3, 4, 3, 2, 3):
        x = torch.ones(n)
        doubled, result = compiled(x)
        assert torch.equal(doubled, x * 2)
        assert result == program(n)


@pytest.mark.filterwarnings("ignore::thunder_frontend.FallbackWarning")
def test_what_numpy_computes_of_a_drawn_seed_is_drawn():
    def program(x):
        return x + np.random.default_rng(np.random.randint(2**30)).random()

    results = []
    for function in (program, jit(program, fallback="split")):
        np.random.seed(0)
        results.append([function(torch.zeros(2)) for _ in range(5)])
    torch.testing.assert_close(results[1], results[0])


def test_a_type_error_that_is_the_programs_own_is_raised():
    compiled = jit(lambda x, n: x * n + math.ldexp(1.0, "no"))
    for n in (3, 4, 5):
        with pytest.raises(TypeError, match="ldexp"):
            compiled(torch.ones(n), n)


def test_a_type_error_that_the_program_handles_is_handled():
    def program(x, n):
        try:
            return x * n + len(n)
        except TypeError:
            return x * n

    compiled = jit(program)
    for n in (3, 4, 5):
        assert torch.equal(compiled(torch.ones(n), n), torch.ones(n) * n)
    assert cache_misses(compiled) <= 3
