"""Texts among the arguments that each call has its own of: handed on, they cost no program; looked at, one each."""

import collections
import copy
import dataclasses
import io
import json
import os
import pickle
import re

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from thunder_frontend import cache_misses, jit

Pair = collections.namedtuple("Pair", "name x")


@dataclasses.dataclass
class Sample:
    name: str
    x: torch.Tensor


def moved(value):
    if torch.is_tensor(value):
        return value.to("cpu")
    if isinstance(value, dict):
        return {key: moved(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)([moved(item) for item in value])
    return value


def kept_in_lists(batch):
    names = []
    for name in batch["names"]:
        names.append(name)
    return batch["x"] * 2, names, [batch["name"], *batch["names"]]


def by_attributes(batch):
    sample = Sample(batch["name"], batch["x"] * 2)
    return sample, Pair(sample.name, sample.x), {"a": (sample.name, None)}


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.last = ""
        self.names = []

    def forward(self, batch):
        self.last = batch["name"]
        self.names.append(batch["name"])
        return batch["x"] * 2


HANDED_ON = {
    "comprehension": lambda b: {k: v.to("cpu") if torch.is_tensor(v) else v for k, v in b.items()}["x"] * 2,
    "returned": lambda b: {"y": b["x"] * 2, "name": b["name"], "names": b["names"]},
    "recursion": lambda b: moved(b),
    "kept in lists": kept_in_lists,
    "attributes": by_attributes,
    "classes asked for": lambda b: [type(v).__name__ for v in b.values()] + [isinstance(b["name"], str), b["x"] + 1],
    "attributes asked for": lambda b: b["x"] * sum([hasattr(v, "to") for v in b.values()]),
    "text of it": lambda b: (b["x"] * 2, f"{b['name']}.png", b["name"] + "/" + b["names"][0], "a" + b["name"]),
    "none": lambda b: b["x"] * (2 if b["name"] is not None else 3),
    "swapped": lambda b: (b["x"] * 2, b["names"][1], b["names"][0]),
    "by name": lambda b: (lambda x, name, **others: (x * 2, name, len(others)))(**b),
}

LOOKED_AT = {
    "equal": lambda b: b["x"] * (2 if b["name"] == "n1" else 3),
    "equal from the left": lambda b: b["x"] * (2 if "n1" == b["name"] else 3),  # noqa: SIM300
    "equal to each other": lambda b: b["x"] * (2 if b["names"][0] == b["name"] + "0" else 3),
    "member": lambda b: b["x"] * (2 if b["name"] in ("n1", "n2") else 3),
    "member of a set": lambda b: b["x"] * (2 if b["name"] in {"n1", "n2"} else 3),
    "part": lambda b: b["x"] * (2 if "1" in b["name"] else 3),
    "key": lambda b: b["x"] * {"n0": 1, "n1": 2}.get(b["name"], 7),
    "key of an own dict": lambda b: {b["name"]: b["x"] * 2},
    "length": lambda b: b["x"] * len(b["name"]) + sum(map(len, b["names"])),
    "truth": lambda b: b["x"] * (2 if b["name"] else 3),
    "upper": lambda b: (b["x"] * 2, b["name"].upper(), b["name"].split("n"), b["name"][1:], b["name"] * 2),
    "number": lambda b: b["x"] * int(b["name"][1:]),
    "sorted": lambda b: (b["x"] * 2, sorted([b["name"], "n3", *b["names"]])),
    "joined": lambda b: (b["x"] * 2, ",".join(b["names"]), ",".join([b["name"], "a"])),
    "formatted": lambda b: (b["x"] * 2, "{}!".format(b["name"]), "%s!".__mod__(b["name"]), f"{b['name']!r:>9}"),
    "regular expression": lambda b: (b["x"] * 2, re.sub("n", "m", b["name"])),
    "a path": lambda b: (b["x"] * 2, os.path.join("a", b["name"])),
    "json": lambda b: (b["x"] * 2, json.dumps({"a": b["name"], "b": b["names"]})),
    "copied": lambda b: (b["x"] * 2, copy.deepcopy(b["names"]), copy.copy(b["name"])),
    "iterated": lambda b: (b["x"] * 2, list(b["name"]), [c for c in b["name"]]),  # noqa: C416
    "less": lambda b: b["x"] * (2 if b["name"] < "n2" else 3),
    "attribute": lambda b: b["x"] * getattr(Sample, b["name"], 3),
    "an array": lambda b: (b["x"] * 2, np.array([b["name"], "a"]).tolist(), np.array(([b["name"]], ["b"])).shape),
    "pickled": lambda b: (b["x"] * 2, pickle.loads(pickle.dumps({"a": [b["name"]]}))),
    "name of an argument": lambda b: (lambda **named: (b["x"] * 2, list(named)))(**{b["name"]: 1}),
    "encoded": lambda b: (b["x"] * 2, b["name"].encode()),
}


def batch_of(i):
    return {"x": torch.full((3,), i + 1.0), "name": f"n{i}", "names": [f"n{i}{j}" for j in range(2)], "number": i + 5}


def assert_same(found, expected):
    if isinstance(expected, torch.Tensor):
        assert torch.equal(found, expected)
    elif isinstance(expected, dict):
        assert list(found) == list(expected)
        assert_same(list(found.values()), list(expected.values()))
    elif isinstance(expected, (list, tuple)):
        assert type(found) is type(expected) and len(found) == len(expected)
        for a, b in zip(found, expected, strict=True):
            assert_same(a, b)
    elif isinstance(expected, Sample):
        assert_same(vars(found), vars(expected))
    else:
        assert type(found) is type(expected) and found == expected


@pytest.mark.parametrize("cache", ["auto", "symbolic values"])
@pytest.mark.parametrize("name", HANDED_ON)
def test_texts_that_are_handed_on_take_no_program_each(name, cache):
    compiled = jit(HANDED_ON[name], cache=cache)
    for i in range(6):
        assert_same(compiled(batch_of(i)), HANDED_ON[name](batch_of(i)))
    assert cache_misses(compiled) <= 2


@pytest.mark.parametrize("cache", ["auto", "symbolic values", "constant values"])
@pytest.mark.parametrize("name", LOOKED_AT)
def test_texts_that_are_looked_at_give_what_eager_gives(name, cache):
    compiled = jit(LOOKED_AT[name], cache=cache)
    for i in (0, 1, 2, 3, 1, 2, 0):
        assert_same(compiled(batch_of(i)), LOOKED_AT[name](batch_of(i)))


def test_a_text_is_kept_where_the_program_puts_it():
    ours, eager = Model(), Model()
    compiled = jit(ours)
    for i in range(6):
        assert torch.equal(compiled(batch_of(i)), eager(batch_of(i)))
        assert (ours.last, ours.names) == (eager.last, eager.names)
        ours.names.clear(), eager.names.clear()
    assert cache_misses(compiled) <= 3


def test_a_text_is_the_very_object_that_was_given():
    compiled = jit(lambda x, name, names: (x * 2, name, names[0]))
    for i in range(4):
        name, names = f"name {i}", [f"other {i}"]
        _, found, other = compiled(torch.ones(2), name, names)
        assert (found is name and other is names[0]) or i == 0


def test_what_is_no_text_any_more_has_a_program_of_its_own():
    class Text(str):
        __slots__ = ()

    compiled = jit(lambda x, name: (x * 2, name))
    for name in ("a", "b", "c", None, 3, "d", Text("e"), b"f", "g"):
        assert_same(compiled(torch.ones(2), name), (torch.full((2,), 2.0), name))


@pytest.mark.parametrize("mode", ["auto", "symbolic values"])
def test_functions_of_pytorch_get_the_text(mode):
    compiled = jit(
        lambda x, how, dtype: F.interpolate(x, scale_factor=2, mode=how).to(getattr(torch, dtype)), cache=mode
    )
    x = torch.randn(1, 1, 4, 4)
    for how, dtype in (("nearest", "float32"), ("bilinear", "float64"), ("bicubic", "float32"), ("area", "bfloat16")):
        expected = F.interpolate(x, scale_factor=2, mode=how).to(getattr(torch, dtype))
        torch.testing.assert_close(compiled(x, how, dtype), expected)


def test_an_error_tells_the_text_of_its_call():
    def program(x, name):
        if x.shape[0] == 3:
            raise ValueError(f"{name} is of size 3")
        return x * 2

    compiled = jit(program)
    for i in range(4):
        compiled(torch.ones(2), f"a{i}")
        with pytest.raises(ValueError, match=f"b{i} is of size 3"):
            compiled(torch.ones(3), f"b{i}")


@torch.compiler.disable
def shouted(names, name):
    return [n.upper() for n in names], name.upper()


def test_code_that_runs_in_python_gets_the_texts():
    def program(b):
        return b["x"] * 2, shouted(b["names"], b["name"])

    compiled = jit(program)
    for i in range(5):
        assert_same(compiled(batch_of(i)), program(batch_of(i)))


def test_texts_are_printed(capsys):
    compiled = jit(lambda b: (print(b["name"], b["names"], sep=b["name"]), b["x"] * 2)[1])
    for i in range(4):
        compiled(batch_of(i))
        assert capsys.readouterr().out == f"n{i}n{i}['n{i}0', 'n{i}1']\n"


@pytest.mark.parametrize("cache", ["auto", "constant values"])
def test_numbers_in_containers_are_printed(cache, capsys):
    compiled = jit(lambda x, *values: (print(*values), x * 2)[1], cache=cache)
    for i in range(4):
        values = [i, 2, [i + 1.5]], {"a": i, "b": (i, "c")}, (f"d{i}",)
        compiled(torch.ones(2), *values)
        print(*values)
        ours, expected = capsys.readouterr().out.splitlines()
        assert ours == expected


LINES = io.StringIO()


@pytest.mark.parametrize("cache", ["auto", "constant values"])
@pytest.mark.parametrize(
    "write", [lambda lines: LINES.writelines(lines), lambda lines: LINES.writelines([lines[1], "a", *lines])]
)
def test_lines_are_written(cache, write):
    compiled = jit(lambda x, lines: (write(lines), x * 2)[1], cache=cache)
    for i in range(4):
        lines = [f"a{i}", f"b{i}"]
        LINES.seek(0), LINES.truncate()
        compiled(torch.ones(2), lines)
        ours = LINES.getvalue()
        LINES.seek(0), LINES.truncate()
        write(lines)
        assert ours == LINES.getvalue()
