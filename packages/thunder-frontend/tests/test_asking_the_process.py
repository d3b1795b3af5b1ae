"""What a process as a whole is set to is a sharp edge: allowed, warned of or refused, as the option says."""

import codecs
import csv
import inspect
import linecache
import locale
import resource

import numpy
import pytest
import torch

from thunder_frontend import SharpEdgeError, SharpEdgeWarning, cache_misses, jit

ARRAY = numpy.array([1.23456789])
QUESTIONS = {
    "a limit of csv": lambda: csv.field_size_limit(),
    "the locale": lambda: len(locale.setlocale(locale.LC_NUMERIC)),
    "a limit of resources": lambda: resource.getrlimit(resource.RLIMIT_NOFILE)[0],
    "a codec by its name": lambda: len(codecs.lookup("utf-8").name),
    "a codec that is used": lambda: len("a".encode("cp1252")),
    "a handler that is used": lambda: len("\u00e9".encode("ascii", "thunder_process")),
    "print options of arrays": lambda: numpy.get_printoptions()["precision"],
    "print options of tensors": lambda: torch._tensor_str.get_printoptions()["precision"],
    "text of an array": lambda: len(repr(ARRAY)) + len(f"{ARRAY}") + len(ARRAY.__repr__()),
    "text of an array in a list": lambda: len(str([ARRAY])) + len(str({"a": (ARRAY,)})),
    "text that NumPy makes of an array": lambda: len(numpy.array2string(ARRAY)),
    "text of a tensor": lambda: len(repr(torch.tensor([1.23456789]))),
    "text of a tensor in a string": lambda: len(f"{torch.tensor([1.23456789])}"),
    "text of a tensor by its method": lambda: len(torch.tensor([1.23456789]).__repr__()),
    "lines of sources": lambda: len(linecache.getline("<none>", 1)) + 1,
    "the source of a function": lambda: len(inspect.getsource(inspect.getsource)),
}
HARMLESS = {
    "text in UTF-8": lambda: len(b"a" + b"a") + len(b"a".decode("ascii", "ignore")),
    "bytes of text": lambda: len(bytes("a", "latin1")) + len(str(b"a", "utf8")),
}
codecs.register_error("thunder_process", lambda error: ("?", error.end))


def asking(question):
    return lambda x: x * question()


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_program_that_asks_the_process_is_told_as_the_option_says(name):
    function, x = asking(QUESTIONS[name]), torch.ones(2)
    assert torch.equal(jit(function)(x), function(x))
    with pytest.warns(SharpEdgeWarning, match="asks the process"):
        assert torch.equal(jit(function, sharp_edges="warn")(x), function(x))
    with pytest.raises(SharpEdgeError, match="asks the process"):
        jit(function, sharp_edges="error", fallback="error")(x)


@pytest.mark.parametrize("name", HARMLESS)
def test_codecs_that_are_part_of_python_are_no_questions(name):
    function, x = asking(HARMLESS[name]), torch.ones(2)
    assert torch.equal(jit(function, sharp_edges="error", fallback="error")(x), function(x))


def test_text_is_as_print_options_were_on_the_first_call():
    compiled, x = jit(lambda x: x * len(repr(ARRAY))), torch.ones(2)
    first = compiled(x)
    with numpy.printoptions(precision=3):
        assert torch.equal(compiled(x), first) and cache_misses(compiled) == 1


def test_an_answer_is_that_of_the_first_call():
    compiled, x = jit(lambda x: x * csv.field_size_limit()), torch.ones(2)
    before = csv.field_size_limit()
    first = compiled(x)
    try:
        csv.field_size_limit(1000)
        assert torch.equal(compiled(x), first) and cache_misses(compiled) == 1
    finally:
        csv.field_size_limit(before)
