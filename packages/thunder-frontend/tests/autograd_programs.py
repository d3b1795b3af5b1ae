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


def linked(wrap, function, *looks, shapes=((2, 3), (3, 3)), calls=2):
    """Return what looks at the results of a function, which are computed of one another, find."""
    run, found = wrap(function), []
    for look in looks:
        for _ in range(calls):
            torch.manual_seed(1)
            inputs = [leaf(*shape) for shape in shapes]
            found.append(look(inputs, run(*inputs)))
    return found


def layers(a, w):
    first = (a @ w).tanh()
    second = first.sin() * first + a
    return (second * first).square().sum() + a.sum(), first, second, first * 2


def noisy_layers(a, w):
    print("layers")
    first = torch.nn.functional.dropout(a @ w, 0.4)
    second = torch.nn.functional.dropout(first.sin() * first, 0.4)
    second[0] = first[1]
    second.mul_(2)
    return (second * first).square().sum() + a.sum(), first, second


@program
def gradients_of_results_by_results(wrap):
    return linked(
        wrap,
        layers,
        lambda i, r: torch.autograd.grad(r[0], r[1]),
        lambda i, r: torch.autograd.grad(r[0], [r[2], r[1]]),
        lambda i, r: torch.autograd.grad(r[0] + r[3].sum(), [r[2], i[0], r[1], i[1]]),
        lambda i, r: torch.autograd.grad(r[0] * r[3].sum() + r[1].sum(), [i[1], r[1]]),
        lambda i, r: torch.autograd.grad((r[0], r[3]), i[0], (torch.tensor(2.0), torch.ones(2, 3))),
        lambda i, r: torch.autograd.grad(r[2].sum(), [r[1], r[3]], allow_unused=True),
        lambda i, r: torch.autograd.grad(r[1].sum(), [r[2], r[0]], allow_unused=True, materialize_grads=True),
        lambda i, r: (r[0].backward(inputs=[r[1], i[0]]), r[1].grad, r[2].grad, i[0].grad, i[1].grad),
    )


@program
def gradients_of_results_that_are_random_by_results(wrap):
    return linked(
        wrap,
        noisy_layers,
        lambda i, r: torch.autograd.grad(r[0], r[1]),
        lambda i, r: torch.autograd.grad(r[0], [r[2], r[1], *i]),
        lambda i, r: (r[1].retain_grad(), r[2].retain_grad(), r[0].backward(), r[1].grad, r[2].grad, i[0].grad),
    )


@program
def gradients_by_results_that_have_gradients(wrap):
    def again(gradients, of):
        total = sum([g.square().sum() for g in gradients])
        return *gradients, *torch.autograd.grad(total, of, allow_unused=True)

    return linked(
        wrap,
        layers,
        lambda i, r: again(torch.autograd.grad(r[0] + r[3].sum(), r[1], create_graph=True), [*r[1:], *i]),
        lambda i, r: again(torch.autograd.grad(r[0], [*r[1:3], *i], create_graph=True), [*r[1:3], *i]),
        lambda i, r: again(torch.autograd.grad(r[0], i, create_graph=True), [r[2], r[1], *i]),
        lambda i, r: (r[1].retain_grad(), r[0].backward(create_graph=True), again([r[1].grad, i[0].grad], [r[1], *i])),
    )


@program
def a_result_is_used_outside_and_inside(wrap):
    return linked(
        wrap,
        layers,
        lambda i, r: torch.autograd.grad(r[0] + (r[1] * r[2]).sum(), [*r[1:3], *i]),
        lambda i, r: torch.autograd.grad(
            torch.autograd.grad(r[0], r[1], retain_graph=True)[0].sum() + r[2].sum(), i[0]
        ),
    )


@program
def graphs_of_results_that_were_freed(wrap):
    def second_time(inputs, results):
        torch.autograd.grad(results[0], inputs)
        torch.autograd.grad(results[0], results[1])

    return linked(wrap, layers, second_time)


@program
def a_result_that_is_not_used_for_another(wrap):
    return linked(wrap, layers, lambda i, r: torch.autograd.grad(r[2].sum(), r[3]))


@program
def results_of_many_steps(wrap):
    def steps(a, w):
        found = []
        for _ in range(4):
            key, value = a @ w, (a * 2) @ w
            found += [key, value]
            a = a + torch.tanh(key * value)
        return *found, a.sum()

    return linked(
        wrap,
        steps,
        lambda i, r: torch.autograd.grad(r[-1], [r[0], r[3], r[6], i[1]]),
        lambda i, r: torch.autograd.grad(r[-1] + r[4].sum(), i),
        lambda i, r: torch.autograd.grad(r[6].sum(), r[:6]),
        lambda i, r: ([t.retain_grad() for t in r], r[-1].backward(), [t.grad for t in (*r, *i)]),
    )


@program
def hooks_on_results_that_get_no_gradient(wrap):
    def look(inputs, results):
        called = []
        handles = [r.register_hook(lambda g, i=i: called.append((i, g)) or g * 2) for i, r in enumerate(results)]
        for parts in (results[:1], results[1:2], results[::2], results):
            sum([r.sum() for r in parts]).backward(retain_graph=True)
            handles.pop().remove()
        return sorted(called, key=lambda call: call[0]), [t.grad for t in inputs]

    unlinked = linked(wrap, lambda a, w: (a.sin(), (w @ w).tanh(), a.cos(), a * 2), look)
    return (
        unlinked,
        linked(wrap, lambda a, w: ((a @ w).sum(), a.sin(), w.exp(), a * 2), look),
        linked(wrap, layers, look),
    )


@program
def a_hook_on_a_result_that_was_written_outside(wrap):
    def look(inputs, results):
        called = []
        for i, r in enumerate(results[1:3]):
            r.register_hook(lambda g, i=i: called.append((i, g)))
            r.mul_(3)
        results[1].retain_grad()
        (results[0] + results[2].sum() + results[1].sum()).backward()
        return sorted(called, key=lambda call: call[0]), results[1].grad, [t.grad for t in inputs]

    return linked(wrap, lambda a, w: ((f := a @ w).sum(), f, f + 1), look)


@program
def gradients_by_results_that_others_view(wrap):
    def viewed(a, w):
        first = a @ w
        second = first.t().sin()
        return first.view(-1), second.sum(), first, second[0], second, torch.nn.functional.dropout(first[0] * 2, 0.5)

    return linked(
        wrap,
        viewed,
        lambda i, r: torch.autograd.grad(r[0].sum() + r[3].sum(), [r[2], r[4], *i]),
        lambda i, r: torch.autograd.grad(r[5].sum() + r[1] + r[3].sin().sum(), [r[2], r[4], *i]),
        lambda i, r: ([t.retain_grad() for t in r], sum([t.sum() for t in r]).backward(), [t.grad for t in (*r, *i)]),
        lambda i, r: (
            r[2].register_hook(lambda g: g * 3).id & 0,
            (r[0].sum() + r[5].sum()).backward(),
            [t.grad for t in i],
        ),
        lambda i, r: torch.autograd.grad(torch.autograd.grad(r[3].sum(), r[2], create_graph=True)[0].sum(), i[0]),
    )


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
