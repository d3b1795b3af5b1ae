"""Tables of signatures, and the stand-ins that hold calls to them."""

import pytest

from thunder_testing import SignatureError, StandIn, Table

TABLE = Table(
    "Example",
    "1.2",
    "example/bindings.cpp",
    """
def scale(a: Tensor, by: float, /) -> Tensor: ...
def total(a: Tensor, dim: int, keepdim: bool = False) -> Tensor: ...
def total(a: Tensor, dims: list[int], keepdim: bool = False) -> Tensor: ...
def draw(shape: list[int | Tensor], *, seed: int | None = None, kind: Any = Float) -> tuple[Tensor, int]: ...
""",
    {"Tensor": bytes},
)


@pytest.mark.parametrize(
    "name, args, kwargs",
    [
        ("scale", (b"", 2), {}),
        ("total", (b"", 1), {"keepdim": True}),
        ("total", (b"", (1, 2)), {}),
        ("draw", ([1, b""],), {"seed": None, "kind": object()}),
    ],
)
def test_a_call_that_a_form_takes_is_bound(name, args, kwargs):
    assert list(TABLE.bind(name, args, kwargs).arguments.values())[0] is args[0]


@pytest.mark.parametrize(
    "name, args, kwargs, words",
    [
        ("scale", (b"",), {}, "missing a required argument: 'by'"),
        ("scale", (b"",), {"by": 2.0}, "positional only|positional-only"),
        ("scale", (b"", True), {}, "by is the bool True"),
        ("scale", (None, 2.0), {}, "a is None"),
        ("total", (b"", 1.5), {}, "dim is the float 1.5; .*dims is the float 1.5"),
        ("draw", ([1, "a"],), {}, "shape is the list of int, str"),
        ("draw", ([1], 3), {}, "too many positional arguments"),
        ("scaled", (), {}, "it has no scaled"),
    ],
)
def test_a_call_that_no_form_takes_is_refused(name, args, kwargs, words):
    with pytest.raises(SignatureError, match=f"Example 1.2: .*({words})"):
        TABLE.bind(name, args, kwargs)


def test_a_stand_in_records_and_answers():
    module = StandIn(TABLE, {"total": lambda a, dim, keepdim: a[:dim], "draw": lambda shape, seed, kind: (b"x", 1.5)})
    assert module.total(b"abc", dim=2) == b"ab"
    assert [(call.name, call.arguments) for call in module.calls] == [
        ("total", {"a": b"abc", "dim": 2, "keepdim": False})
    ]
    with pytest.raises(SignatureError, match="draw returned the tuple of bytes, float"):
        module.draw([1])
    with pytest.raises(AttributeError, match="has no missing"):
        module.missing()


def test_a_reference_for_a_function_that_is_not_declared_is_an_error():
    with pytest.raises(ValueError, match="declares no other"):
        StandIn(TABLE, {"other": print})
