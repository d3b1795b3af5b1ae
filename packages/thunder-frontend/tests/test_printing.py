"""What a program prints, and what it may not make a text of."""

import contextlib
import cProfile
import io
import logging
import sys
import threading
import time
import warnings

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

from thunder_frontend import AcquisitionError, DataDependentError, FallbackWarning, cache_misses, jit
from thunder_frontend._library_code.torch_warnings import Warned, unless_it_warns


class Talker(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.count = 0
        self.register_buffer("total", torch.zeros(2))

    def forward(self, x):
        self.count += 1
        print("before", x, self.total, self.count, sep=" | ")
        self.total.add_(x)
        x.mul_(2)
        print([x, {"total": self.total}], (x.shape, x.dtype, None), end="!\n")
        print(x.sum().item(), file=sys.stderr)
        return x + self.total


@pytest.mark.parametrize("grad", [False, True])
def test_every_call_prints_what_eager_prints(capsys, grad):
    eager, module = Talker(), Talker()
    compiled = jit(module)
    with torch.set_grad_enabled(grad):
        for value in (1.0, 2.0, 3.0):
            expected = eager(torch.full((2,), value))
            printed = capsys.readouterr()
            assert torch.equal(compiled(torch.full((2,), value)), expected)
            assert capsys.readouterr() == printed


def test_what_is_printed_may_require_grad(capsys):
    weight = torch.ones(2, requires_grad=True)

    def program(x):
        y = x * weight
        print(y)
        return y

    compiled = jit(program)
    for _ in range(2):
        compiled(torch.ones(2)).sum().backward()
    assert capsys.readouterr().out == "tensor([1., 1.])\n" * 2
    assert torch.equal(weight.grad, torch.full((2,), 2.0))


@pytest.mark.parametrize(
    "program",
    [
        lambda x: f"{x}",
        lambda x: str(x),
        lambda x: "%s" % x,  # noqa: UP031
        lambda x: repr([x]),
        lambda x: f"{x.sum():.3f}",
        lambda x: print(Wrapped(x)),
    ],
)
def test_texts_of_values_are_refused(program):
    with pytest.raises(DataDependentError, match="known only when the program runs"):
        jit(program)(torch.ones(2))


class Wrapped:
    def __init__(self, x):
        self.x = x

    def __str__(self):
        return f"<{self.x}>"


class Told:
    """What text ends up in, besides what is printed."""

    def __init__(self):
        self.name, self.names = "", []


def printed_only(x, n, told):
    loss = (x * n).mean()
    print(f"step {n:>3}: {n / 3:.2f}", f"loss {loss.item():.4f}", str(n), [f"{n}"])
    return x * n


def computed(x, n, told):
    told.names = [format((x * n).sum().item(), ".2f")]
    return f"{x.sum().item() / n:.3f}"


TEMPLATES = ("{:>6}, {n!r}", "{0:x}{1:.2f}{0}", "{{}} {} of {}")
PERCENTS = ("%d of %5.1f%%", "%s%-8r|", "%x and %i %%")


def by_methods(x, n, told):
    told.names = [template.format(n, n / 2, n=n) for template in TEMPLATES]
    told.names += [TEMPLATES[-1].format(f"{n}", n), "{n:x}".format_map({"n": n})]
    print(TEMPLATES[1].format(n, (x * n).mean().item()), f"{n=}", repr(n / 2))
    return x * n


def by_percents(x, n, told):
    name, decimals = "%s!", "loss %.6f"
    name %= f"{n}"
    told.name, told.names = name, [template % (n, n + 1) for template in PERCENTS]
    print(decimals % (x * n).mean().item(), PERCENTS[1] % ("text", n))
    return x * n


def kept(x, n, told):
    told.name = f"{n}" + "!"
    told.names = [f"{name}{n}" for name in "ab"]
    return {"text": f"n = {n}", "x": x}


def shapes(x, n, told):
    told.name = f"{x.expand(n, *x.shape).shape} of {x.new_ones(n).shape!s}, {(n, (n / 2, 1, True))!r}, {(n,)}"
    told.names = [str(x.new_ones(n, 2).shape), "of " + repr((x.new_ones(n).shape, n))]
    return x * n


def looked_at(x, n, told):
    text = f"{n}"
    told.names.append(text.zfill(3))
    return x * len(text), text == "3", text in ("3", "4"), text.upper(), isinstance(text, str), type(text), f"{text:>4}"


def keys(x, n, told):
    told.name = max(f"{n}", "4")
    return {f"layer{n}": x, **{f"{k}{n}": k for k in "ab"}}, {f"{n}"}, dict.fromkeys([f"{n}"])


def raised(x, n, told):
    raise ValueError(f"bad {n}", [f"{n}"])


@pytest.mark.parametrize(
    ("program", "programs"),
    [
        (printed_only, 2),
        (computed, 2),
        (by_methods, 2),
        (by_percents, 2),
        (kept, 2),
        (shapes, 2),
        (looked_at, 6),
        (keys, 6),
        (raised, 0),
    ],
    ids=lambda p: str(p),
)
def test_text_of_numbers_that_change_is_that_of_each_call(program, programs, capsys):
    compiled, ours, eagers = jit(program, fallback="error"), Told(), Told()
    for n in (3, 4, 5, 11, 7, 3):
        results, output = [], []
        for run, told in ((compiled, ours), (program, eagers)):
            try:
                results.append(run(torch.ones(2), n, told))
            except ValueError as error:
                results.append(error.args)
            output.append(capsys.readouterr().out)
        assert repr(results[0]) == repr(results[1]) and output[0] == output[1]
        assert vars(ours) == vars(eagers) and [type(v) for v in (ours.name, *ours.names)] == [str] * (
            1 + len(ours.names)
        )
        if isinstance(results[0], dict):
            assert {type(key) for key in results[0]} == {str} and type(results[0]["text"]) is str
    assert cache_misses(compiled) <= programs


def test_what_is_printed_where_standard_output_is_redirected_goes_there(capsys):
    def program(x, n):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            print("inside", n)
        print("outside", n)
        return x, out.getvalue()

    compiled = jit(program, fallback="error")
    for n in (2, 3, 4):
        assert compiled(torch.ones(2), n)[1] == f"inside {n}\n"
        assert capsys.readouterr().out == f"outside {n}\n"


def test_what_is_printed_to_a_file_of_the_programs_own_can_be_read_there():
    def program(x):
        text = io.StringIO()
        print("shape", tuple(x.shape), file=text)
        return x + len(text.getvalue())

    assert torch.equal(jit(program)(torch.ones(2)), program(torch.ones(2)))


def test_what_is_printed_to_a_file_of_the_callers_is_there_after_each_call():
    file = io.StringIO()

    def program(x):
        print("x", x, file=file)
        return x + 1

    compiled = jit(program)
    compiled(torch.ones(1))
    compiled(torch.zeros(1))
    assert file.getvalue() == "x tensor([1.])\nx tensor([0.])\n"


def warns(x):
    warnings.warn("the scale is odd", FutureWarning, stacklevel=1)
    return x * 2


def warns_of_its_caller(x):
    warnings.warn("use another", DeprecationWarning, stacklevel=2)
    return x * 2


def listens(x):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        warnings.warn("heard", stacklevel=1)
    return x * len(found)


def answers(x):
    try:
        warnings.warn("an error here", stacklevel=1)
    except UserWarning:
        return x * 3
    return x * 2


ACTIONS = pytest.mark.parametrize("action", ["always", "default", "ignore", "error"])


def outcome(run, action, *args):
    """Return what three calls warn of and return."""
    for scope in (globals(), vars(F), vars(nn._reduction), vars(nn.modules.activation)):
        scope.pop("__warningregistry__", None)
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter(action)
        try:
            results = [run(*args) for _ in range(3)]
        except Warning as error:
            results = repr(error)
    return [(str(w.message), w.category, w.filename, w.lineno) for w in given], str(results)


@ACTIONS
@pytest.mark.parametrize("program", [warns, warns_of_its_caller, listens, answers], ids=lambda f: f.__name__)
def test_each_call_warns_as_eager_does(program, action):
    assert outcome(jit(program), action, torch.ones(2)) == outcome(program, action, torch.ones(2))


ATTENTION = nn.MultiheadAttention(4, 2, dtype=torch.float64).requires_grad_(False)  # whose rounding shows in no digit
MASK, PADDING = torch.zeros(1, 1, dtype=torch.float64), torch.zeros(4, 4, dtype=torch.bool)


@ACTIONS
@pytest.mark.parametrize(
    "program",
    [
        lambda x: F.softmax(x),
        lambda x: F.mse_loss(x, x[:, :1]) + F.l1_loss(x, x[:, :1]),
        lambda x: F.smooth_l1_loss(x, x, size_average=False),
        lambda x: F.kl_div(x, x.abs()),
        lambda x: F.dropout2d(x, 0.5, False),
        lambda x: F.upsample(x[None], scale_factor=2.0),
        lambda x: F.grid_sample(x[None, None], x[None, :, :2, None].expand(1, 4, 2, 2)),
        lambda x: ATTENTION(*[x[None].double()] * 3, attn_mask=MASK, key_padding_mask=PADDING[:, :1])[0],
    ],
    ids=["softmax", "losses", "reduction", "kl_div", "dropout2d", "upsample", "grid_sample", "attention"],
)
@pytest.mark.parametrize("compiled_before", [False, True])
def test_functions_of_torch_warn_as_in_eager(program, action, compiled_before):
    x = torch.arange(16.0).view(4, 4) / 16
    if compiled_before:
        outcome(jit(program), "always", x)
    assert outcome(jit(program), action, x) == outcome(program, action, x)


def test_what_other_threads_warn_of_while_a_function_that_may_warn_is_recorded_is_heard():
    def record(function, args, kwargs):
        other = threading.Thread(target=warnings.warn, args=("of another thread",))
        other.start()
        other.join()
        return warnings.filters

    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        filters = warnings.filters
        assert unless_it_warns(record, F.softmax, (), {}) is filters
        with pytest.raises(Warned):
            unless_it_warns(lambda function, args, kwargs: function(*args), F.softmax, (torch.ones(2),), {})
    assert [str(w.message) for w in given] == ["of another thread"]


@pytest.mark.parametrize("profiler", [cProfile.Profile, None])
def test_a_profiler_goes_on_after_functions_that_may_warn_are_recorded(profiler):
    seen = []
    if profiler is None:
        sys.setprofile(hears := lambda *event: seen.append(event))
    else:
        (hears := profiler()).enable()
    try:
        before = sys.getprofile()
        jit(lambda x: F.mse_loss(x, x))(torch.ones(2))
        assert sys.getprofile() is before and (
            before is hears or sys.version_info >= (3, 12)
        )  # where it is no function
    finally:
        sys.setprofile(None)


class Streams:
    def __init__(self):
        self.text, self.binary = io.StringIO(), io.BytesIO()

    def contents(self):
        return self.text.getvalue(), self.binary.getvalue()


def writes(streams, x):
    count = streams.text.write(f"{x.shape[0]} ")
    streams.text.writelines(line for line in ("a", "b"))
    streams.binary.write(b"c")
    streams.text.flush()
    return x * count


def reads_what_it_wrote(streams, x):
    streams.text.write("a")
    return x * len(streams.text.getvalue())


def logs(streams, x):
    LOGGER.info("of %d elements", x.shape[0])
    return x * 2


LOGGER = logging.getLogger(__name__)


@pytest.mark.filterwarnings("ignore::thunder_frontend.FallbackWarning")
@pytest.mark.parametrize("program", [writes, reads_what_it_wrote, logs], ids=lambda f: f.__name__)
def test_each_call_writes_to_streams_from_outside(program, monkeypatch):
    monkeypatch.setattr(LOGGER, "propagate", False)
    LOGGER.setLevel("INFO")
    left = []
    for function in (program, jit(program, fallback="split")):
        streams = Streams()
        handler = logging.StreamHandler(streams.text)
        LOGGER.addHandler(handler)
        try:
            results = [function(streams, torch.ones(size)).tolist() for size in (2, 2, 3, 3, 2)]
        finally:
            LOGGER.removeHandler(handler)
        left.append((results, streams.contents()))
    assert left[0] == left[1]


@pytest.mark.parametrize("shown", ["%(asctime)s.%(msecs)03d", "%(created)f", "%(relativeCreated)f"])
def test_logged_times_are_those_of_each_call(shown, monkeypatch):
    monkeypatch.setattr(LOGGER, "propagate", False)
    LOGGER.setLevel("INFO")
    handler = logging.StreamHandler(stream := io.StringIO())
    handler.setFormatter(logging.Formatter(shown))
    LOGGER.addHandler(handler)
    compiled = jit(logs, fallback="split")
    try:
        with pytest.raises(AcquisitionError, match="known only when the program runs|number that is symbolic"):
            jit(logs, fallback="error")(None, torch.ones(2))
        assert not stream.getvalue()
        with pytest.warns(FallbackWarning, match="Handler.handle runs in Python"):
            compiled(None, torch.ones(2))
        for _ in range(3):
            time.sleep(0.005)
            compiled(None, torch.ones(2))
    finally:
        LOGGER.removeHandler(handler)
    times = stream.getvalue().splitlines()
    assert len(times) == len(set(times)) == 4
