"""Programs that take gradients, of all kinds of inputs and outputs, rightly and wrongly: ``wrap`` compiles, or not."""

import copy

import torch

PROGRAMS = []


def program(function):
    """File a program: it takes what compiles, or does not, and returns what its user sees."""
    PROGRAMS.append(function)
    return function


def leaf(*shape, **options):
    """Return a random tensor that requires grad."""
    return torch.randn(*shape, requires_grad=True, **options)


@program
def non_leaf(wrap):
    x = leaf(3)
    y = wrap(lambda a: a.sin() * a)(x * 2)
    y.sum().backward()
    return x.grad, y


@program
def views(wrap):
    x = leaf(4, 4)
    y = wrap(lambda a, b: (a * b).sum(0))(x[1:3].t()[:2], x[:2, :2])
    y.sum().backward()
    return x.grad


@program
def several(wrap):
    x = leaf(3)
    a, b, c = wrap(lambda a: (a.sin(), a.exp(), a.detach()))(x)
    (a * c).sum().backward(retain_graph=True)
    g = x.grad.clone()
    b.sum().backward()
    return g, x.grad, c


@program
def integer_out(wrap):
    x = leaf(3)
    a, b, c = wrap(lambda a: (a.sin(), a.argmax(), a > 0))(x)
    a.sum().backward()
    return x.grad, a, b, c


@program
def unused_in(wrap):
    x, y = leaf(3), leaf(3)
    z = wrap(lambda a, b: a.sin())(x, y)
    z.sum().backward()
    return x.grad, y.grad


@program
def unused_in_grad(wrap):
    x, y = leaf(3), leaf(3)
    z = wrap(lambda a, b: a.sin())(x, y)
    return torch.autograd.grad(z.sum(), (x, y))


@program
def only_output_is_input(wrap):
    x = leaf(3)
    z = wrap(lambda a: a)(x)
    return z is x


@program
def out_no_grad(wrap):
    x = leaf(3)
    z = wrap(lambda a: (a.detach() * 2, a * 2))(x)
    return z[0].requires_grad, z[0].grad_fn is None, z[1].requires_grad


@program
def backward_nograd_out(wrap):
    x = leaf(3)
    z = wrap(lambda a: a.detach() * 2)(x)
    z.sum().backward()


@program
def twice(wrap):
    x = leaf(3)
    z = wrap(lambda a: a.sin())(x).sum()
    z.backward()
    z.backward()


@program
def retain(wrap):
    x = leaf(3)
    z = wrap(lambda a: a.sin())(x).sum()
    z.backward(retain_graph=True)
    z.backward()
    return x.grad


@program
def create(wrap):
    x = leaf(3)
    z = wrap(lambda a: a.sin() * a)(x).sum()
    (g,) = torch.autograd.grad(z, x, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), x, create_graph=True)
    h.sum().backward()
    return g, h, x.grad


@program
def create_twice(wrap):
    x = leaf(3)
    z = wrap(lambda a: a.sin() * a)(x).sum()
    z.backward(create_graph=True)
    x.grad.sum().backward()
    return x.grad


@program
def no_grad_inside(wrap):
    def f(a):
        with torch.no_grad():
            b = a * 2
        return b * a, b

    x = leaf(3)
    y, b = wrap(f)(x)
    y.sum().backward()
    return x.grad, b


@program
def enable_grad_inside_no_grad(wrap):
    def f(a):
        with torch.enable_grad():
            b = a * 2
        return b

    x = leaf(3)
    with torch.no_grad():
        y = wrap(f)(x)
    y.sum().backward()
    return x.grad


@program
def set_grad_enabled(wrap):
    def f(a):
        torch.set_grad_enabled(False)
        b = a * 2
        torch.set_grad_enabled(True)
        return b + a

    x = leaf(3)
    wrap(f)(x).sum().backward()
    return x.grad


@program
def complex_leaf(wrap):
    x = leaf(3, dtype=torch.complex64)
    y = wrap(lambda a: (a * a).abs())(x)
    y.sum().backward()
    return x.grad


@program
def complex_implicit(wrap):
    x = leaf(3, dtype=torch.complex64)
    y = wrap(lambda a: (a * a).sum())(x)
    y.backward()
    return x.grad


@program
def complex_real_mix(wrap):
    x = leaf(3, dtype=torch.complex64)
    r = leaf(3)
    y = wrap(lambda a, b: (a * b).sum().abs())(x, r)
    y.backward()
    return x.grad, r.grad


@program
def integer_leaf(wrap):
    x = torch.arange(3)
    y = leaf(3)
    z = wrap(lambda a, b: a * b)(x, y)
    z.sum().backward()
    return x.grad, y.grad


@program
def integer_only(wrap):
    z = wrap(lambda a: a * 2)(torch.arange(3))
    z.sum().backward()


@program
def inplace_leaf(wrap):
    def f(a):
        a.add_(1)
        return a * 2

    return wrap(f)(leaf(3))


@program
def inplace_leaf_view(wrap):
    def f(a):
        a[0].add_(1)
        return a * 2

    return wrap(f)(leaf(3))


@program
def inplace_leaf_nograd(wrap):
    def f(a):
        with torch.no_grad():
            a.add_(1)
        return a * 2

    x = leaf(3)
    y = wrap(f)(x)
    y.sum().backward()
    return x.grad, y, x


@program
def inplace_nonleaf(wrap):
    def f(a):
        a.mul_(2)
        return a.sin()

    x = leaf(3)
    b = x * 1
    y = wrap(f)(b)
    y.sum().backward()
    return x.grad, y, b


@program
def modified_saved(wrap):
    x = leaf(3)
    b = x * 1
    y = wrap(lambda a: a.sin())(b)
    b.add_(1)
    y.sum().backward()


@program
def modified_saved_out(wrap):
    x = leaf(3)
    y = wrap(lambda a: a.exp())(x)
    with torch.no_grad():
        y.add_(1)
    y.sum().backward()


@program
def wrong_shape(wrap):
    x = leaf(3)
    wrap(lambda a: a.sin())(x).backward(torch.ones(4))


@program
def broadcastable_shape(wrap):
    x = leaf(3)
    wrap(lambda a: a.sin())(x).backward(torch.ones(1))


@program
def wrong_device(wrap):
    x = leaf(3)
    wrap(lambda a: a.sin())(x).backward(torch.ones(3, device="meta"))


@program
def wrong_dtype(wrap):
    x = leaf(3)
    wrap(lambda a: a.sin())(x).backward(torch.ones(3, dtype=torch.float64))
    return x.grad


@program
def int_cotangent(wrap):
    x = leaf(3)
    wrap(lambda a: a.sin())(x).backward(torch.ones(3, dtype=torch.int64))
    return x.grad


@program
def complex_cotangent(wrap):
    x = leaf(3)
    wrap(lambda a: a.sin())(x).backward(torch.ones(3, dtype=torch.complex64))
    return x.grad


@program
def nonscalar(wrap):
    x = leaf(3)
    wrap(lambda a: a.sin())(x).backward()


@program
def expanded_cotangent(wrap):
    x = leaf(3, 4)
    wrap(lambda a: a.sin())(x).backward(torch.ones(1).expand(3, 4))
    return x.grad


@program
def strided_cotangent(wrap):
    x = leaf(3, 4)
    wrap(lambda a: a.sin().reshape(12))(x).backward(torch.ones(24)[::2])
    return x.grad


@program
def backward_inputs(wrap):
    x, y = leaf(3), leaf(3)
    z = wrap(lambda a, b: a * b)(x, y)
    z.sum().backward(inputs=[x])
    return x.grad, y.grad


@program
def allow_unused(wrap):
    x, y = leaf(3), leaf(3)
    z = wrap(lambda a, b: (a.sin(), b.sin()))(x, y)
    return torch.autograd.grad(z[0].sum(), (x, y), allow_unused=True)


@program
def materialize(wrap):
    x, y = leaf(3), leaf(3)
    z = wrap(lambda a, b: (a.sin(), b.sin()))(x, y)
    return torch.autograd.grad(z[0].sum(), (x, y), allow_unused=True, materialize_grads=True)


@program
def same_input_twice(wrap):
    x = leaf(3)
    wrap(lambda a, b: a * b.sin())(x, x).sum().backward()
    return x.grad


@program
def same_out_twice(wrap):
    x = leaf(3)
    a, b = wrap(lambda a: (lambda s: (s, s))(a.sin()))(x)
    (a * 2 + b * 3).sum().backward()
    return x.grad, a is b


@program
def out_views(wrap):
    x = leaf(4)
    a, b = wrap(lambda a: (lambda s: (s, s[1:]))(a.sin()))(x)
    (a.sum() + (b * 2).sum()).backward()
    return x.grad


@program
def detach_inplace(wrap):
    def f(a):
        b = a * 2
        b.detach_()
        return b * a

    x = leaf(3)
    wrap(f)(x).sum().backward()
    return x.grad


@program
def requires_grad_inside(wrap):
    def f(a):
        b = a.detach().clone().requires_grad_()
        c = (b * b).sum()
        (g,) = torch.autograd.grad(c, b)
        return g

    return wrap(f)(leaf(3))


@program
def next_functions(wrap):
    x = leaf(3)
    y = wrap(lambda a: a.sin())(x)
    return y.grad_fn.next_functions[0][0].variable is x


@program
def is_leaf(wrap):
    x = leaf(3)
    y = wrap(lambda a: a.sin())(x)
    return y.is_leaf, y.requires_grad


@program
def deepcopy_out(wrap):
    x = leaf(3)
    y = wrap(lambda a: a.sin())(x)
    copy.deepcopy(y)


@program
def retained_result_of_which_another_is_computed(wrap):
    def layers(a, w):
        first = (a @ w).tanh()
        second = first.sin() * first.detach()
        return second.square().sum(), first, second, first * 2

    run, found = wrap(layers), []
    for looks in (lambda r: r[0], lambda r: r[0] + r[3].sum(), lambda r: r[1].sum(), lambda r: r[0] + r[1].sum()):
        a, w = leaf(2, 3), leaf(3, 3)
        results = run(a, w)
        results[1].retain_grad()
        results[2].retain_grad()
        total = looks(results)
        total.backward(retain_graph=True)
        total.backward()
        found += [a.grad, w.grad, results[1].grad, results[2].grad]
    return found


def has_no_derivative(function):
    """Return a program that differentiates something of which PyTorch has no derivative, and something beside it."""

    def run(wrap):
        x, y = leaf(3), leaf(3)
        steps, beside = wrap(lambda x, y: (function(x, y), function(x, y).detach() * x))(x, y)
        found = torch.autograd.grad(beside.sum(), x, retain_graph=True)
        torch.autograd.grad((steps + beside).sum(), x)
        return found

    return run


for _name, _function in {
    "heaviside": torch.heaviside,
    "floor_divide": torch.floor_divide,
    "the_operator": lambda x, y: x // 2 + 2 // y,
    "unique": lambda x, y: x.unique(),
}.items():
    _program = has_no_derivative(_function)
    _program.__name__ = f"{_name}_has_no_derivative"
    program(_program)
