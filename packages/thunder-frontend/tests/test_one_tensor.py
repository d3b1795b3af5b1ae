"""A tensor that a program finds by several ways is one object to it, whatever hands it over."""

import collections
import copy
import functools
import itertools
import operator

import pytest
import torch

from thunder_frontend import jit, last_prologue_traces

WAYS = """
d['w']
d.get('w')
d.setdefault('w')
list(d.values())[0]
[*d.values()][0]
tuple(d.values())[0]
next(iter(d.values()))
[v for v in d.values()][0]
[v for k, v in d.items()][0]
list(d.items())[0][1]
dict(d)['w']
{**d}['w']
d.copy()['w']
copy.copy(d)['w']
(d | {'x': 1})['w']
(lambda **k: k)(**d)['w']
(lambda w, n: w)(**d)
(lambda *a: a)(*d.values())[0]
list(map(lambda v: v, d.values()))[0]
list(map(operator.itemgetter('w'), [d]))[0]
list(zip(d.values(), d))[0][0]
[a for a, b in zip(d.values(), d)][0]
list(enumerate(d.values()))[0][1]
[v for i, v in enumerate(d.values())][0]
list(itertools.chain(d.values(), l))[0]
[v for v in itertools.chain(d.values(), l)][0]
[v for v in itertools.islice(l, 1)][0]
list(itertools.islice(l, 1))[0]
[v for v in reversed(l)][1]
list(reversed(l))[1]
next(reversed(l[:1]))
list(filter(lambda v: isinstance(v, torch.Tensor), d.values()))[0]
max([v for v in l if isinstance(v, torch.Tensor)], key=lambda v: v.ndim)
max(l[:1], key=lambda v: 1)
min(filter(torch.is_tensor, d.values()), key=lambda v: 1)
sorted(l, key=lambda v: isinstance(v, int))[0]
sorted(d.items())[1][1]
list(l)[0]
l[:][0]
l.copy()[0]
(l + [1])[0]
([1] + l)[1]
(l * 2)[2]
[*l][0]
l[-2]
l[0:1][0]
copy.copy(l)[0]
t[0]
(t + (1,))[0]
t[:1][0]
list(t)[0]
operator.itemgetter(0)(l)
operator.getitem(l, 0)
operator.attrgetter('w')(o)
functools.reduce(lambda a, b: a, l)
next(iter(l))
next(iter(s))
list(s)[0]
[v for v in s][0]
(s | set())  .copy().pop()
set(s).pop()
next(iter(fs))
list(bk)[0]
next(iter(bk))
[k for k in bk][0]
list(bk.items())[0][0]
dict(bk).popitem()[0]
list(dict(bk))[0]
dq[0]
list(dq)[0]
dq.copy()[0]
[v for v in dq][0]
od['w']
list(od.values())[0]
od.copy()['w']
next(iter(od.items()))[1]
dd['w']
dd.copy()['w']
list(dd.values())[0]
dict(dd)['w']
nt.w
nt[0]
nt._asdict()['w']
nt._replace(x=2).w
list(nt)[0]
[v for v in nt][0]
sl.w
net.weight
net._parameters['weight']
list(net.parameters())[0]
next(net.parameters())
dict(net.named_parameters())['weight']
[p for n, p in net.named_parameters()][0]
net.get_parameter('weight')
net.state_dict(keep_vars=True)['weight']
net.kept[0]
vars(net)['_parameters']['weight']
net.__dict__['kept'][0]
getattr(net, 'weight')
net.__getattr__('weight')
torch.nn.Module.__getattr__(net, 'weight')
o.w
vars(o)['w']
o.__dict__['w']
list(vars(o).values())[0]
getattr(o, 'w')
object.__getattribute__(o, 'w')
o.d['in'][0]
[v for vs in o.d.values() for v in vs][0]
sum(o.d.values(), [])[0]
list(itertools.chain.from_iterable(o.d.values()))[0]
o.c.W
o.C.W
type(o.c).W
vars(o.C)['W']
o.C.__dict__['W']
GLOBAL
globals()['GLOBAL']
CLOSURE
(lambda a=DEFAULT: a)()
functools.partial(lambda a: a, w)()
functools.partial(lambda a: a, l[0])()
torch.nn.ParameterList([w])[0]
torch.nn.ParameterDict({'a': w})['a']
list(torch.nn.ParameterDict({'a': w}).values())[0]
copy.copy(o).w
torch.utils._pytree.tree_leaves(d)[0]
torch.utils._pytree.tree_map(lambda x: x, d)['w']
next(v for v in d.values())
(yield_from(d.values()))[0]
collections.ChainMap(d)['w']
collections.UserDict(d)['w']
collections.UserList(l)[0]
list(dict.fromkeys(l))[0]
dict(zip('ab', l))['a']
dict(enumerate(l))[0]
dict([(1, l[0])])[1]
dict(d.items())['w']
set(l[:1]).pop()
set(filter(torch.is_tensor, d.values())).pop()
frozenset(filter(torch.is_tensor, l)).__iter__().__next__()
collections.deque(d.values())[0]
collections.OrderedDict(d)['w']
collections.OrderedDict(d.items())['w']
collections.defaultdict(int, d)['w']
[a for a, *b in [l]][0]
(lambda *a: a[0])(*l)
d.values().__iter__().__next__()
l.__iter__().__next__()
l.__getitem__(0)
d.__getitem__('w')
list.__getitem__(l, 0)
dict.get(d, 'w')
copy.copy(t)[0]
copy.copy(s).pop()
match(d)
star(l)
"""
"""Expressions for the one tensor, in terms of what :func:`arguments` makes."""

PROGRAM = """
def outer(CLOSURE, DEFAULT):
    def yield_from(values):
        def generator():
            yield from values
        return list(generator())

    def match(mapping):
        match mapping:
            case {"w": found}:
                return found

    def star(values):
        first, *rest = values
        return first

    def program(w, d, l, t, net, o, s, dq, od, dd, bk, nt, sl, fs):
        v = %s
        assert v is w and v is l[0] and v is net.weight and v is d["w"] and id(v) == id(w)
        assert v in [w] and [w].index(v) == 0 and v in {w} and {w: 1}.get(v) == 1
        assert v in s and bk.get(v) == 5 and isinstance(v, torch.nn.Parameter)
        return v * 2

    return program
"""


class Box:
    pass


class Slots:
    __slots__ = ("w",)


class Net(torch.nn.Module):
    def __init__(self, w):
        super().__init__()
        self.weight = w
        self.kept = [w]


Pair = collections.namedtuple("Pair", "w x")


def arguments(w):
    class HasIt:
        W = w

    box, slots = Box(), Slots()
    box.w, box.d, box.c, box.C, slots.w = w, {"in": [w]}, HasIt(), HasIt, w
    return {
        "w": w, "d": {"w": w, "n": 1}, "l": [w, 2], "t": (w, 3), "net": Net(w), "o": box, "s": {w},
        "dq": collections.deque([w]), "od": collections.OrderedDict(w=w), "dd": collections.defaultdict(list, w=w),
        "bk": {w: 5}, "nt": Pair(w, 1), "sl": slots, "fs": frozenset([w]),
    }  # fmt: skip


@pytest.mark.parametrize("way", WAYS.strip().splitlines())
def test_a_tensor_is_one_object_by_whatever_way(way):
    w = torch.nn.Parameter(torch.ones(3))
    scope = {
        "torch": torch, "collections": collections, "copy": copy, "functools": functools, "itertools": itertools,
        "operator": operator, "GLOBAL": w,
    }  # fmt: skip
    exec(PROGRAM % way, scope)
    program, given = scope["outer"](w, w), arguments(w)
    compiled = jit(program)
    for _ in range(2):
        assert torch.equal(compiled(**given), program(**given))


def test_parameters_that_a_program_ties_are_met_once():
    def program(x, net, norm):
        norm.weight = net.weight
        both = torch.nn.ModuleList([net, norm])
        with torch.no_grad():
            for parameter in both.parameters():
                parameter.sub_(0.1)
        return x * len(list(both.parameters()))

    ours, eagers = [(Net(torch.nn.Parameter(torch.ones(3))), torch.nn.LayerNorm(3)) for _ in range(2)]
    compiled, x = jit(program), torch.ones(3)
    for _ in range(3):
        assert torch.equal(compiled(x, *ours), program(x, *eagers))
        assert torch.equal(ours[0].weight, eagers[0].weight) and torch.equal(ours[1].bias, eagers[1].bias)
        assert ours[1].weight is ours[0].weight


def test_parameters_of_a_module_that_is_met_twice_are_not_compared_with_themselves():
    class Twice(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first = self.second = torch.nn.Linear(3, 3)

        def forward(self, x):
            return self.first(x) + self.second(x)

    compiled = jit(Twice())
    compiled(torch.ones(2, 3))
    assert ".weight is " not in str(last_prologue_traces(compiled)[0])
