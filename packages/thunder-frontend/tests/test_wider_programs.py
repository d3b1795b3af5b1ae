"""Random programs of many kinds do what eager does, or are refused; and what such programs found stays found."""

import pytest
import torch
from wider_programs import OUTSIDE, Program, Refused, agrees_with_eager, random_program, state, text_of

from thunder_frontend import AcquisitionError, cache_misses, jit, mark_dynamic


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(40))
def test_random_programs_agree_with_eager(seed):
    try:
        agrees_with_eager(random_program(seed))
    except Refused:
        pass  # said so, which is not wrong; the sweep in tools counts these


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (
            "v = torch.meshgrid(y.flatten(), x.flatten(), indexing='ij')[0]\ny.add_(v.sum())\nreturn [v, y]",
            "a scalar that requires grad",
        ),
        ("v = torch.meshgrid(x.flatten(), y.flatten(), indexing='xy')\ny.add_(1)\nreturn [*v, y]", "a parameter"),
        ("y.grad = torch.ones_like(y)\ny.unsqueeze_(0)\nreturn [y]", "scalars"),
        ("v = y[y.long()]\nx.t_()\nreturn [v]", "a parameter"),
        ("x[..., 0] = y.mean()\nreturn [x]", "a scalar that requires grad"),
        ("x[torch.tensor([0])] = 2\nreturn [x]", "a scalar that requires grad"),
        ("v = torch.nn.Parameter(y.nonzero().detach())\nreturn [v]", "half"),
        ("torch.nn.functional.gelu(x)\nreturn [x]", "integers alone"),
        ("x.index_add_(0, torch.tensor([0]), x[:1])\nreturn [x]", "one element"),
        ("v = y[y > 0]\nw = v.nan_to_num()\nw.add_(1)\nreturn [v, w]", "integers alone"),
        ("v = torch.nn.functional.one_hot(x.long().abs(), 20)[()]\nv.view(-1)[0] = 5\nreturn [v]", "channels last"),
        ("v = x > 0\nreturn [v, v[: v.shape[0]], v[: v.shape[0]]]", "a parameter"),
        ("v = torch.asarray(x)\nv.add_(1)\nreturn [v, torch.positive(v), torch.nan_to_num(v), v.round()]", "uint8"),
        ("v = x.unique()\nreturn [v, v.detach()]", "integers alone"),
        ("x[[0]] = x[:1]\nreturn [x]", "one element"),
        ("with torch.inference_mode():\n    v = x * 2\nreturn [v, v[0], v.clone(), x[:1]]", "a parameter"),
    ],
)
def test_what_random_programs_found_stays_found(body, kind, symbolic):
    agrees_with_eager(Program(text_of(body.splitlines()), (kind,), "list", symbolic))


def matrix():
    return torch.arange(6.0).reshape(2, 3)


def writes_to_the_second_of_several(x, y):
    a, b = torch.broadcast_tensors(x, y)
    c, d = torch.atleast_2d(x, y)
    b.add_(1)
    d.mul_(2)
    return a, b, c, d


def broadcasts_a_view_after_a_write(x, y):
    part = (x * 1)[..., -1:]
    part.add_(1)
    return torch.broadcast_tensors(part, part)[0], y


def fills_with_a_tensor(x, y):
    x, y = x.clone(), y.clone().requires_grad_()
    x.fill_(y.sum())
    return x * 2, torch.autograd.grad((x * 2).sum(), y)[0]


def makes_tensors_of_unknown_sizes(x, y):
    shape = x[x > 2].shape
    return torch.zeros(shape), torch.full(shape, 2), torch.tensor(shape), torch.tensor([shape[0], 2.5])


def converts_to_the_dtype_of_what_requires_grad(x, y):
    y = y.double().requires_grad_()
    return x.type_as(y), x.to(y), y


@pytest.mark.parametrize(
    "program",
    [
        writes_to_the_second_of_several,
        broadcasts_a_view_after_a_write,
        fills_with_a_tensor,
        makes_tensors_of_unknown_sizes,
        converts_to_the_dtype_of_what_requires_grad,
    ],
)
def test_a_program_agrees_with_eager(program):
    compiled = jit(program)
    for _ in range(2):
        given, expected_given = (matrix(), matrix() + 1), (matrix(), matrix() + 1)
        results, expected = compiled(*given), program(*expected_given)
        torch.testing.assert_close((results, given), (expected, expected_given))
        assert [t.requires_grad for t in results] == [t.requires_grad for t in expected]


GENERATOR = torch.Generator()


def seeds(x):
    torch.manual_seed(3)
    return torch.rand(2) * x, torch.rand(2)


def forks(x):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        first = torch.rand(2)
    return first * x, torch.rand(2)


def restores(x):
    before = torch.get_rng_state()
    first = torch.rand(2) * x
    torch.set_rng_state(before)
    return first, torch.rand(2)


def seeds_a_generator(x):
    GENERATOR.manual_seed(5)
    before = GENERATOR.get_state()
    first = torch.rand(2, generator=GENERATOR) * x
    GENERATOR.set_state(before)
    return first, torch.rand(2, generator=GENERATOR)


@pytest.mark.parametrize("program", [seeds, forks, restores, seeds_a_generator])
def test_each_call_sets_the_seeds_that_the_program_sets(program):
    compiled, x = jit(program), torch.ones(2, requires_grad=True)
    for seed in range(3):
        runs = []
        for run in (program, compiled):
            torch.manual_seed(seed)
            runs.append((*run(x), torch.rand(2)))
        torch.testing.assert_close(*runs)
    assert cache_misses(compiled) == 1


def test_autocast_inside_of_a_program_is_not_left_on_when_a_later_guard_fails():
    def program(w):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            (w * 2).sum().backward()
        return w * 3

    compiled, w = jit(program), torch.ones(3, requires_grad=True)
    for _ in range(3):  # the second call finds a gradient
        compiled(w)
        assert state() == OUTSIDE


def test_a_write_to_an_expanded_argument_is_refused():
    def program(x):
        x[0] = x[-1]
        return x

    for cache in (None, "symbolic values"):
        with pytest.raises(AcquisitionError, match="expanded tensor"):
            jit(program, cache=cache)(mark_dynamic(torch.arange(3.0).expand(2, 3), 1))


def test_what_passes_compare_of_open_sizes_is_guarded():
    def program(x):
        x = x.diagonal()
        (x * x).sum().backward()
        return torch.tensor(x.shape)

    compiled = jit(program, cache="symbolic values")
    for n in (2, 3, 4):
        x = mark_dynamic(torch.ones(n, 3, requires_grad=True), 0)
        assert compiled(x).tolist() == [min(n, 3)]
        assert x.grad.tolist() == (2 * torch.eye(n, 3)).tolist()


def test_a_mark_of_a_dimension_that_is_gone_says_nothing():
    compiled = jit(lambda x: x * 2, cache="symbolic values")
    x = mark_dynamic(torch.ones(1, 2), 1)
    x.squeeze_()
    assert compiled(x).tolist() == [2.0, 2.0]


def test_the_gradient_of_a_complex_number_is_not_created_implicitly():
    def program(x):
        (x * 1j).sum().backward()

    with pytest.raises(RuntimeError, match="only for real scalar outputs"):
        jit(program)(torch.ones(2, requires_grad=True))


def test_leaves_and_what_is_computed_retain_their_gradients_and_what_requires_none_does_not():
    def program(x, y):
        x.retain_grad()
        if y.ndim > 1:
            (x * 2).retain_grad()
        return (x * y).sum()

    compiled, x = jit(program), torch.ones(2, requires_grad=True)
    compiled(x, torch.ones(2)).backward()
    assert x.grad.tolist() == [1.0, 1.0]
    with pytest.raises(RuntimeError, match="can't retain_grad"):
        compiled(torch.ones(2), torch.ones(2))
    with pytest.raises(AcquisitionError, match="call it outside"):
        compiled(x * 2, torch.ones(2))
    compiled(x, torch.ones(1, 2))


def test_a_view_made_without_gradients_of_what_requires_grad_is_a_leaf():
    def program(x):
        y = x * 2
        with torch.no_grad():
            return y, y[:1], x[:1]

    x = torch.ones(2, 3, requires_grad=True)
    results, expected = jit(program)(x), program(x)
    assert [(t.requires_grad, t.is_leaf) for t in results] == [(t.requires_grad, t.is_leaf) for t in expected]
    assert results[1].data_ptr() == results[0].data_ptr()


def test_broadcasting_returns_what_has_the_shape_already():
    def program(x, y):
        return (*torch.broadcast_tensors(x, y), x, y)

    results, expected = [run(torch.ones(2, 3), torch.ones(3)) for run in (jit(program), program)]
    assert [[a is b for a in results] for b in results] == [[a is b for a in expected] for b in expected]


@pytest.mark.parametrize("part", [lambda w: w[0], lambda w: w.expand(2, *w.shape)[0], lambda w: w])
def test_a_write_to_a_part_of_overlapping_windows_is_refused(part):
    def program(x):
        part(x.unfold(-1, 2, 1)).add_(1)
        return x

    with pytest.raises(AcquisitionError, match="several elements lie in one place"):
        jit(program)(torch.zeros(2, 3))
