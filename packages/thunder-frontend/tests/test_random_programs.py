"""Random small programs do what eager does, or are refused."""

import pytest
from hypothesis import HealthCheck, given, settings
from programs import Program, Refused, agrees_with_eager, programs


@pytest.mark.filterwarnings("ignore")
@settings(max_examples=120, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(programs())
def test_views_writes_and_aliases_agree_with_eager(program):
    try:
        agrees_with_eager(program)
    except Refused:
        pass  # said so, which is not wrong; the sweep in tools counts these


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("for row in x:\n    row.add_(1)\nreturn [x, y]", "apart"),
        ("v = x.unbind(0)[-1]\nv.mul_(2)\nreturn [x, v]", "apart, transposed"),
        ("v = y[None]\nreturn [v, v, {'a': v}]", "apart"),
        ("v = [x[0]]\nreturn [v, v]", "apart"),
        ("v = x * 2\nw = v[:, 0]\nw.add_(1)\nreturn [v, w]", "apart"),
        ("with torch.no_grad():\n    x.sub_(1)\nreturn [x * 2]", "a leaf that requires grad"),
        ("x.data.mul_(3)\nreturn [x * x]", "a leaf that requires grad"),
        ("v = x * 2\nv.zero_()\nreturn [v, v + 1]", "both require grad"),
        ("v = x[0]\nwith torch.no_grad():\n    x.add_(1)\n    w = v + 1\nreturn [v * 2, w]", "both require grad"),
        ("v = y[::2]\nv.add_(1)\nreturn [v.contiguous(), v.view_as(v)]", "one tensor twice"),
        ("v = x.view(torch.int32).view(torch.float32)\nv.neg_()\nreturn [v, x]", "apart"),
        ("v = x.detach()\nx.add_(1)\nreturn [v, x]", "both require grad"),
        ("v = torch.as_strided(x[..., ::2], (2,), (1,))\nv[...] = 1\nreturn [v, x]", "apart"),
        ("v = x.t()\nv.mul_(2)\nw = torch.nn.functional.dropout(v, 0.5)\nreturn [w, x.clone()]", "apart"),
        ("x.requires_grad_()\nv = torch.nn.Parameter(x.detach())\nreturn [x, y, y, v]", "matrix and transpose"),
        ("v = y[None]\nv.requires_grad_()\nv.detach_()\nreturn [v]", "larger"),
        (
            "v = torch.where(y > 0, y, -y)\nw = v.view(torch.int32)[:1].view(torch.float32)\n"
            "w.copy_(v.sum())\nreturn [v, v, w]",
            "both require grad",
        ),
        (
            "v = torch.nn.Parameter(x.detach())\nw = x.permute(1, 0)\ny[0] = v.sum()\nw.normal_()\nreturn [x, v]",
            "one tensor twice",
        ),
        ("v = x.unbind(0)[-1]\nw = copy.deepcopy(v)\nw.view(-1)[:2].neg_()\nreturn [v, w]", "apart, transposed"),
        ("v = x.split(1)[-1]\nw = v.detach().requires_grad_()\nreturn [x, v, w]", "both require grad"),
        ("v = x * 2\nw = v[..., torch.tensor(-1)]\nv.requires_grad_()\nreturn [v, w]", "apart"),
        ("v = x.clone()\nw = v[[0]]\nreturn [v]", "empty"),
        ("v = y.to(x.dtype)\nv.requires_grad_()\nx[1:].mul_(3)\nx += v.mean()\nreturn [x, y]", "matrix and transpose"),
        ("y.data, x.data = x.data, y.data\ny.masked_fill_(y > 1, 0)\nreturn [x, y]", "matrix and row"),
        (
            "v = list(x[None].split(2, -1))[0]\nv.data[0] = 2\nreturn [v.flatten()]",
            "a base and its transpose, requiring grad",
        ),
        ("v = x.as_strided(x.shape, x.stride())\nv.squeeze_()\nreturn [v]", "both views of a parameter"),
        ("y.mul_(x.sum())\ny.add_(1)\nx.detach().mul_(2)\nreturn [x, y]", "a parameter and a view of it"),
        (
            "v = y[torch.tensor(0)]\nv.requires_grad_()\ny.zero_()\ny.index_put_((torch.tensor([0]),), v.sum())\n"
            "return [v, y]",
            "a parameter and a view of it",
        ),
        (
            "y.index_put_((torch.tensor([0, 0]),), x.sum(), accumulate=True)\ny.unsqueeze_(0)\nreturn [y]",
            "a parameter and a view of it",
        ),
        ("y[0] = x.sum()\ny[[0, -1]] = 2\nreturn [x, y]", "a tensor and what is detached of it"),
        (
            "v = x.transpose(0, -1)[..., None].chunk(2)[-1]\nv.as_strided((1,), (1,)).add_(1)\nreturn [x]",
            "both require grad",
        ),
        (
            "x.zero_()\nv = x.chunk(2)[-1]\nx.data = x.data * 2\nreturn [v, v.T]",
            "a base and its transpose, requiring grad",
        ),
        ("v = x.unbind(0)[-1]\ny.transpose_(0, -1)\nreturn [v * 2]", "a parameter and a view of it"),
        ("x.t_()\ny.expand(2, *y.shape)[0].add_(1)\nreturn [x]", "matrix and transpose"),
        ("v = y.expand(2, *y.shape)\nv.copy_(v)\nreturn [v, y]", "overlapping"),
        ("x, y = y, x\nx.mul_(2)\nreturn [x, y.view_as(y)]", "matrix and row"),
        ("v = list(x.split(2, -1))[0]\ny.mul_(0.5)\nv.is_leaf\nreturn [x]", "a parameter over a part"),
        ("x.requires_grad = not x.requires_grad\nreturn [y + x, x, y]", "matrix and transpose"),
        (
            "v = y.as_strided(y.shape, y.stride())\ny.requires_grad = not y.requires_grad\nreturn [v.unfold(-1, 2, 1)]",
            "both views of a parameter",
        ),
        ("v = torch.nn.Parameter(x.data)\nw = v.diagonal()\nv.detach_()\nreturn [v, w]", "larger"),
        ("v = x.unbind(-1)[0]\nx.mul_(2)\nreturn [torch.stack([v, v])]", "both require grad"),
        ("v = x.t()\nw = v[None]\nv.requires_grad_()\nreturn [w, v, x]", "apart, transposed"),
        ("torch.as_strided(y[..., torch.tensor(-1)], (2,), (1,))\nreturn [y]", "larger"),
        ("x.grad = torch.ones_like(x)\nx.mul_(2)\nx.transpose_(0, -1)\nreturn [x]", "one tensor twice"),
        (
            "v, w = x[:, 0], x * 1\nx.mul_(2)\nx.detach_()\nx[0] += v.sum()\nreturn [w + x.sum()]",
            "one tensor twice that requires grad",
        ),
        ("v = y[None]\nv.mul_(x.sum())\nw = y.to(v.dtype)\nw.fill_(4)\nreturn [v]", "a parameter and a view of it"),
        ("v = y[None]\nv.mul_(x.sum())\nw = y * 2\ny.fill_(4)\nreturn [v, w]", "a parameter and a view of it"),
        ("v = y[None]\nv.mul_(x.sum())\ny.requires_grad_()\ny.unsqueeze_(0)\nreturn [v]", "a leaf that requires grad"),
        (
            "v = copy.copy(y)\nw = v.chunk(2)[-1]\ny.uniform_()\nw.reshape(-1)\nreturn [y]",
            "a base and its transpose, requiring grad",
        ),
        ("x.requires_grad_()\nv = x[None]\ntorch.nn.init.uniform_(v)\nreturn [v]", "of three dimensions"),
        ("x.requires_grad_()\nv = x[None]\nx.data.mul_(2)\nreturn [v]", "of three dimensions"),
        ("v = x[0]\nv.unsqueeze_(0)\nx.requires_grad_()\nreturn [v]", "of three dimensions"),
        ("v = x[()]\nw = v[..., ::2]\nv.clamp_(0, 1)\nv.requires_grad_()\nreturn [v, w, v[0]]", "apart"),
        (
            "v = x[()]\nw = v[0]\nv.requires_grad_()\nu = v[0]\nwith torch.no_grad():\n    v.add_(1)\n"
            "return [u * 1, w, x]",
            "apart",
        ),
        ("v = x.split(2, -1)[0]\nw = v[None]\nx.unsqueeze_(0)\nreturn [v, w]", "two views that require grad"),
        ("v = y[:]\nv.data = v.data * 2\nv.detach_()\nreturn [v]", "larger"),
        ("v = x.view(torch.int32)\nv[0] = v[-1]\nreturn [x * 2, v]", "both require grad"),
        ("v = x.view(torch.int32)\nv[0] = 5\nreturn [x * x]", "a leaf that requires grad"),
        ("w = x * 2\nv = w[0].view(torch.int32)\nv += 1\nreturn [w * x, v]", "a leaf that requires grad"),
        (
            "with torch.no_grad():\n    v = x.view(-1)\ny.set_(y * 2)\nw = v.chunk(2)[0]\nreturn [w, y]",
            "a parameter and a view of it",
        ),
    ],
)
def test_what_random_programs_found_stays_found(body, kind):
    text = "def program(x, y):\n" + "\n".join("    " + line for line in body.splitlines()) + "\n"
    agrees_with_eager(Program(text, (kind,)))
