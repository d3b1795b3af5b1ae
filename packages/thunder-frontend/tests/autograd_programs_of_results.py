"""Programs that take gradients by results that are computed of one another, between calls and after them."""

import torch
from autograd_programs import leaf, program


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
