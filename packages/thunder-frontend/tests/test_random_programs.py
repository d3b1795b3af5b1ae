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
        ("x, y = y, x\nx.mul_(2)\nreturn [x, y.view_as(y)]", "matrix and row"),
    ],
)
def test_what_random_programs_found_stays_found(body, kind):
    text = "def program(x, y):\n" + "\n".join("    " + line for line in body.splitlines()) + "\n"
    agrees_with_eager(Program(text, (kind,)))
