"""Statements of random programs that users write more rarely: views of parts, ``out=``, hooks, nested derivatives, ties."""

VALUES = (
    # views
    "torch.view_as_real({a}.to(torch.complex64))", "torch.view_as_real({a})[..., 0]", "{a}.real", "{a}.unbind(0)[0]",
    "{a}.split(1)[-1]", "{a}.tensor_split(2)[0]", "{a}.hsplit(1)[0]", "{a}.narrow(0, 0, 1)", "{a}.mT", "{a}.swapaxes(0, -1)",
    "{a}.unflatten(0, (1, -1))", "{a}.movedim(0, -1)", "{a}.as_strided({a}.shape, {a}.stride())", "{a}.view_as({a})",
    "torch.atleast_2d({a})", "torch.conj({a})", "copy.copy({a})", "copy.deepcopy({a})", "{a}.view(torch.int32)", "{a}.select(0, 0)",
    # what has nothing to compute
    "{a}.repeat(*[1] * {a}.ndim)", "torch.cat([{a}])", "{a}.roll(0)", "{a}.flip(())", "torch.nn.functional.pad({a}, (0, 0))",
    "{a}.sum(())", "torch.nn.functional.dropout({a}, 0.0)", "{a}.tile(1)", "{a}.clone(memory_format=torch.contiguous_format)",
    # autograd
    "torch.autograd.grad(({a} ** 3).sum(), {a}, create_graph=True)[0] if {a}.requires_grad else {a}",
    "torch.autograd.grad(torch.autograd.grad(({a} ** 3).sum(), {a}, create_graph=True)[0].sum(), {a})[0] if {a}.requires_grad else {a}",
    "torch.autograd.grad({a}.mean(), [{a}, {b}], allow_unused=True)[0] if {a}.requires_grad and {b}.requires_grad else {a}",
    "torch.utils.checkpoint.checkpoint(lambda t: (t * net.weight.sum()).exp(), {a}, use_reentrant=False)",
    "torch.inference_mode()(lambda t: t * 2)({a})", "torch.enable_grad()(lambda t: t * 2)({a})", "({a} * 2).detach().requires_grad_()",
    "({a} * 2).requires_grad_(False)", "torch.func.jvp(torch.sin, ({a},), ({a},))[1]", "torch.func.vjp(torch.sin, {a})[1]({a})[0]",
    # indices
    "{a}.index_put((torch.tensor([0]),), {b}.sum(), accumulate=True)", "{a}.scatter(0, torch.zeros_like({a}, dtype=torch.long), 2)",
    "{a}.index_add(0, torch.tensor([0]), {a}[:1])", "{a}.masked_scatter({a} > 0, {a})", "{a}.slice_scatter({a}[:1], 0, 0, 1)",
    "{a}.diagonal_scatter({a}.diagonal())", "{a}.where({a} > {b}, {b})", "torch.index_fill({a}, 0, torch.tensor([0]), 1)",
    "torch.nn.functional.embedding({a}.long().abs() % 3, net.weight[:, None])", "net(net({a}))", "net.norm.weight * {a}",
)  # fmt: skip

WRITES = (
    # parts
    "{a}.chunk(2)[0].add_(1)", "{a}.unbind(0)[-1].mul_(2)", "{a}.split(1)[0].zero_()", "for part in {a}.split(1):\n    part.add_(1)",
    "{a}.expand(2, *{a}.shape).add_(1)", "{a}.expand(2, *{a}.shape)[0].mul_(2)", "{a}.mT[0] = 1", "{a}.diagonal().zero_()",
    "{a}.real.add_(1)", "torch.view_as_real({a}).mul_(2)", "{a}.imag[0] = 1", "{a}.narrow(0, 0, 1).copy_({b}.sum())", "{a}.flatten()[0] = 3",
    "{a}.view(-1)[::2] *= 2", "{a}.t()[0].add_({b}.sum())", "{a}.detach().add_(1)", "{a}.select(0, -1).copy_({a}.select(0, 0).clone())",
    # out=
    "torch.mul({a}, 2, out={a})", "torch.add({a}[0], 1, out={a}[-1])", "torch.cumsum({a}, 0, out={a})", "torch.sum({a}, 0, out={b})",
    "torch.matmul({a}.float(), {a}.float().mT, out=torch.empty(2, 2))", "torch.stack([{a}, {a}], out=torch.empty(2, *{a}.shape, dtype={a}.dtype))",
    # indices and masks
    "{a}.index_put_((torch.tensor([0, 0]),), {b}.sum().to({a}.dtype), accumulate=True)", "{a}.masked_scatter_({a} > 0, {a}.clone())",
    "{a}[{a} > {b}] = 1", "{a}[{b} > 0] = {b}.sum().to({a}.dtype)", "{a}[..., None][0] = 2", "{a}[[0], ...] -= 1", "{a}.put_(torch.tensor([0]), {a}.flatten()[-1:])",
    "{a}.fill_diagonal_(1)", "{a}.scatter_add_(0, torch.zeros_like({a}, dtype=torch.long), {a}.clone())", "{a}[True] = 2", "{a}[()] = 3",
    # of other dtypes and shapes
    "{a}.copy_({b}.double())", "{a}.copy_({b} > 0)", "{a}.add_(True)", "{a}.mul_({b}.long().sum())", "{a}.addcmul_({a}, {b})", "{a}.lerp_({b}, 0.5)",
    "{a}.cumsum_(0)", "{a}.float_power_(2)", "{a}.clamp_min_({b}.mean())", "{a}.where({a} > 0, 0).zero_()", "{a}.div_(2, rounding_mode='floor')",
    # autograd
    "{a}.register_hook(lambda g: g * 2)", "({a} * 1).register_hook(lambda g: g * 2)", "{a}.detach().requires_grad_().add(1)",
    "with torch.no_grad():\n    {a}.copy_({b})", "with torch.no_grad():\n    {a}.chunk(2)[0].add_(1)", "with torch.enable_grad():\n    {a}.add_({b}.sum())",
    "with torch.inference_mode():\n    {a}.add_(1)", "{a}.sum().backward(retain_graph=True)\n{a}.sum().backward()", "({a} ** 2).sum().backward(inputs=[{a}])",
    "({a}.float() * net.weight.sum()).sum().backward(retain_graph=True)\nwith torch.no_grad():\n    net.weight.sub_(net.weight.grad)",
    # modules that share
    "net.tied = net.weight", "net.norm.weight = net.weight", "net.norm.running_mean = net.running", "net.register_buffer('again', net.running)",
    "net.norm.bias = net.norm.weight", "net.weight.requires_grad_(False)", "net.running.copy_(net.norm.running_var)", "net.weight.detach().add_(1)",
    "torch.nn.utils.vector_to_parameters(torch.nn.utils.parameters_to_vector(net.parameters()) * 2, net.parameters())",
    "net.norm.load_state_dict(net.norm.state_dict())", "net.weight.data.clamp_(-1, 1)", "net.drop.p = 0.1",
)  # fmt: skip

__all__ = ["VALUES", "WRITES"]
