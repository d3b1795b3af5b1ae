"""Programs that differentiate the results of one call one after the other: ``wrap`` compiles, or not."""

import torch
from autograd_programs import leaf, program


def refused(function):
    """Whether going backward is refused, and whether because of what was freed or of what was written to."""
    try:
        function()
    except RuntimeError as error:
        return ["a second time" in str(error), "modified by an inplace operation" in str(error)]
    return None


class ActorCritic(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.actor, self.critic = torch.nn.Linear(4, 2), torch.nn.Linear(4, 1)

    def forward(self, observed, returns):
        value = self.critic(observed).squeeze(-1)
        advantage = returns - value
        chosen = self.actor(observed).log_softmax(-1)[:, 0]
        return -(chosen * advantage.detach()).mean(), advantage.square().mean(), value


@program
def losses_of_an_actor_and_a_critic(wrap):
    model = ActorCritic()
    step = wrap(model)
    gradients = []
    for i in range(10):
        model.zero_grad()
        of_actor, of_critic, _ = step(torch.randn(3, 4), torch.randn(3))
        for loss in (of_actor, of_critic) if i % 2 else (of_critic, of_actor):
            loss.backward()
        gradients += [p.grad.clone() for p in model.parameters()]
    return gradients


@program
def three_results_in_any_order(wrap):
    step = wrap(lambda a, b, c: (a.exp().sum(), (a * b).tanh().sum(), c.sin().sum()))
    gradients = []
    for order in ((0, 1, 2), (2, 1, 0), (1, 2, 0), (2, 0, 1), (0, 2, 1), (1, 0, 2)):
        leaves = leaf(3), leaf(3), leaf(3)
        results = step(*leaves)
        for i in order:
            results[i].backward(retain_graph=i == 1)
        gradients += [x.grad for x in leaves]
    return gradients


@program
def independent_results_some_together(wrap):
    step = wrap(lambda a, b: (a.exp(), b.sin(), a.tanh(), b.exp() * b))
    x, y = leaf(3), leaf(3)
    results = step(x, y)
    (results[0] * results[1]).sum().backward()
    first = torch.autograd.grad(results[2].sum(), x)
    results[3].sum().backward()
    return first, x.grad, y.grad


@program
def an_independent_result_twice(wrap):
    step = wrap(lambda a, b: (a.exp().sum(), b.sin().sum(), (a * a).sum()))
    first, second, third = step(leaf(3), leaf(3))
    first.backward()
    refusals = [refused(first.backward), refused(second.backward)]
    return refusals, refused(second.backward), refused((first + third).backward)


@program
def an_independent_result_after_all_together(wrap):
    first, second = wrap(lambda a, b: (a.exp().sum(), b.sin().sum()))(leaf(3), leaf(3))
    first.backward(retain_graph=True)
    (first + second).backward()
    return refused(second.backward), refused(first.backward)


@program
def results_that_share_a_value(wrap):
    def both(a):
        shared = a.exp()
        return shared.sin().sum(), shared.cos().sum()

    first, second = wrap(both)(leaf(3))
    first.backward()
    return refused(second.backward)


@program
def independent_results_and_a_write_between(wrap):
    refusals = []
    for written in (0, 1):
        inputs = leaf(3), leaf(3)
        first, second = wrap(lambda a, b: (a.sin().sum(), b.sin().sum()))(*inputs)
        first.backward()
        with torch.no_grad():
            inputs[written].add_(1)
        refusals.append(refused(second.backward))
    return refusals


@program
def independent_results_that_view_an_input_or_not(wrap):
    x, y = leaf(4), leaf(4)
    step = wrap(lambda a, b: (a.exp().view(2, 2), b.tanh(), b.detach() * a))
    for _ in range(5):
        first, second, _ = step(x, y)
        second.sum().backward()
        first[0].sum().backward()
    return x.grad, y.grad
