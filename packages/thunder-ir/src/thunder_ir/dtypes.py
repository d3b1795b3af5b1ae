"""Element types of tensors and the lattice by which they promote."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from types import MappingProxyType

from thunder_ir.errors import DTypeError


class Kind(IntEnum):
    """What a dtype counts as in promotion; a higher kind wins over a lower one."""

    BOOL = 0
    INTEGER = 1
    FLOAT = 2
    COMPLEX = 3


@dataclass(frozen=True, slots=True, eq=False)
class DType:
    """An element type. There is one object per type, so ``is`` and ``==`` agree.

    Args:
        name: as printed, ``"float32"``.
        kind: its place in promotion.
        bits: size of an element in bits.
        signed: whether negative values exist.
        weak: the dtype of a Python number, which yields to any tensor's dtype of the same kind.
        variant: of an eight-bit float, its format (``"e4m3fn"``).

    Example:
        >>> from thunder_ir import dtypes
        >>> dtypes.float32, dtypes.float32.bytes, dtypes.float32.is_floating
        (float32, 4, True)
    """

    name: str
    kind: Kind
    bits: int
    signed: bool = True
    weak: bool = False
    variant: str = ""
    short: str = field(default="", repr=False)

    @property
    def bytes(self) -> int:
        """Size of an element in bytes."""
        return max(1, self.bits // 8)

    @property
    def is_bool(self) -> bool:
        """Whether this is ``bool8``."""
        return self.kind is Kind.BOOL

    @property
    def is_integer(self) -> bool:
        """Whether this is an integer type; ``bool8`` is not."""
        return self.kind is Kind.INTEGER

    @property
    def is_exact(self) -> bool:
        """Whether this is an integer type or ``bool8``."""
        return self.kind <= Kind.INTEGER

    @property
    def is_floating(self) -> bool:
        """Whether this is a real floating-point type."""
        return self.kind is Kind.FLOAT

    @property
    def is_complex(self) -> bool:
        """Whether this is a complex type."""
        return self.kind is Kind.COMPLEX

    @property
    def is_inexact(self) -> bool:
        """Whether this is a floating-point or complex type: those that have derivatives."""
        return self.kind >= Kind.FLOAT

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return dtype, (self.name,)


def _of(name: str, kind: Kind, bits: int, short: str, signed: bool = True, variant: str = "") -> DType:
    return DType(name, kind, bits, signed, False, variant, short)


bool8 = _of("bool8", Kind.BOOL, 8, "b8", signed=False)
uint8 = _of("uint8", Kind.INTEGER, 8, "u8", signed=False)
uint16 = _of("uint16", Kind.INTEGER, 16, "u16", signed=False)
uint32 = _of("uint32", Kind.INTEGER, 32, "u32", signed=False)
uint64 = _of("uint64", Kind.INTEGER, 64, "u64", signed=False)
int8 = _of("int8", Kind.INTEGER, 8, "i8")
int16 = _of("int16", Kind.INTEGER, 16, "i16")
int32 = _of("int32", Kind.INTEGER, 32, "i32")
int64 = _of("int64", Kind.INTEGER, 64, "i64")
float8_e4m3fn = _of("float8_e4m3fn", Kind.FLOAT, 8, "f8_e4m3fn", variant="e4m3fn")
float8_e4m3fnuz = _of("float8_e4m3fnuz", Kind.FLOAT, 8, "f8_e4m3fnuz", variant="e4m3fnuz")
float8_e5m2 = _of("float8_e5m2", Kind.FLOAT, 8, "f8_e5m2", variant="e5m2")
float8_e5m2fnuz = _of("float8_e5m2fnuz", Kind.FLOAT, 8, "f8_e5m2fnuz", variant="e5m2fnuz")
bfloat16 = _of("bfloat16", Kind.FLOAT, 16, "bf16")
float16 = _of("float16", Kind.FLOAT, 16, "f16")
float32 = _of("float32", Kind.FLOAT, 32, "f32")
float64 = _of("float64", Kind.FLOAT, 64, "f64")
complex32 = _of("complex32", Kind.COMPLEX, 32, "c32")
complex64 = _of("complex64", Kind.COMPLEX, 64, "c64")
complex128 = _of("complex128", Kind.COMPLEX, 128, "c128")

STRONG = (
    bool8, uint8, uint16, uint32, uint64, int8, int16, int32, int64,
    float8_e4m3fn, float8_e4m3fnuz, float8_e5m2, float8_e5m2fnuz,
    bfloat16, float16, float32, float64, complex32, complex64, complex128,
)  # fmt: skip

weak_bool = DType("weak_bool", Kind.BOOL, 8, False, True)
weak_int = DType("weak_int", Kind.INTEGER, 64, True, True)
weak_float = DType("weak_float", Kind.FLOAT, 64, True, True)
weak_complex = DType("weak_complex", Kind.COMPLEX, 128, True, True)
WEAK = (weak_bool, weak_int, weak_float, weak_complex)

BY_NAME = MappingProxyType({d.name: d for d in STRONG + WEAK} | {"bool": bool8})
_FLOAT_OF_COMPLEX = {complex32: float16, complex64: float32, complex128: float64}
_COMPLEX_OF_FLOAT = {float16: complex32, bfloat16: complex64, float32: complex64, float64: complex128}


def dtype(what: str | DType) -> DType:
    """Return the dtype of that name.

    Args:
        what: a name such as ``"float32"``, or a dtype, which is returned as it is.

    Raises:
        DTypeError: no dtype has that name.
    """
    if isinstance(what, DType):
        return what
    found = BY_NAME.get(what)
    if found is None:
        raise DTypeError(f"no dtype is named {what!r}; the names are {', '.join(BY_NAME)}")
    return found


def float_of(complex_dtype: DType) -> DType:
    """Return the dtype of the real and imaginary parts of a complex dtype; others are returned as they are."""
    return _FLOAT_OF_COMPLEX.get(complex_dtype, complex_dtype)


def complex_of(float_dtype: DType) -> DType:
    """Return the complex dtype whose parts have ``float_dtype``; complex dtypes are returned as they are.

    Raises:
        DTypeError: there is none, as for eight-bit floats.
    """
    found = float_dtype if float_dtype.is_complex else _COMPLEX_OF_FLOAT.get(float_dtype)
    if found is None:
        raise DTypeError(f"no complex dtype has parts of {float_dtype}")
    return found


def python_type(of: DType) -> type:
    """Return the Python number type of the dtype's kind."""
    return (bool, int, float, complex)[of.kind]


_FLOAT_LIMITS = {
    float8_e4m3fn: 448.0,
    float8_e4m3fnuz: 240.0,
    float8_e5m2: 57344.0,
    float8_e5m2fnuz: 57344.0,
    float16: 65504.0,
    bfloat16: float.fromhex("0x1.fep127"),
    float32: float.fromhex("0x1.fffffep127"),
    float64: float.fromhex("0x1.fffffffffffffp1023"),
}


def largest(of: DType) -> int | float:
    """Return the greatest finite value of an integer or floating-point dtype.

    Example:
        >>> from thunder_ir import dtypes
        >>> dtypes.largest(dtypes.int8), dtypes.largest(dtypes.float16)
        (127, 65504.0)
    """
    if of.is_bool or of.is_complex:
        raise DTypeError(f"{of} has no greatest value")
    return _FLOAT_LIMITS[of] if of.is_floating else int(2 ** (of.bits - of.signed) - 1)


def smallest(of: DType) -> int | float:
    """Return the least finite value of an integer or floating-point dtype."""
    if of.is_integer:
        return -largest(of) - 1 if of.signed else 0
    return -largest(of)


_UNSIGNED_WITH_SIGNED = {8: 16, 16: 32, 32: 64}


def _join_integers(a: DType, b: DType) -> DType:
    if a.signed == b.signed:
        return a if a.bits >= b.bits else b
    signed, unsigned = (a, b) if a.signed else (b, a)
    if signed.bits > unsigned.bits:
        return signed
    if unsigned.bits > 8:
        raise DTypeError(f"{a} and {b} have no common dtype; convert one of them")
    return BY_NAME[f"int{_UNSIGNED_WITH_SIGNED[unsigned.bits]}"]


def _join_floats(a: DType, b: DType) -> DType:
    if a.bits != b.bits:
        return a if a.bits > b.bits else b
    if a.bits == 8:
        raise DTypeError(f"{a} and {b} have no common dtype; convert one of them")
    return float32


def join(a: DType, b: DType) -> DType:
    """Return the least dtype to which both promote, as ``torch.promote_types`` does.

    Args:
        a, b: strong or weak dtypes. A weak one yields to a strong one of its kind or above.

    Raises:
        DTypeError: the lattice has no such dtype (``uint32`` with ``int32``, two eight-bit floats).

    Example:
        >>> from thunder_ir import dtypes
        >>> dtypes.join(dtypes.uint8, dtypes.int8), dtypes.join(dtypes.float16, dtypes.bfloat16)
        (int16, float32)

    Source:
        ``torch.promote_types``.
    """
    if a is b:
        return a
    if a.kind != b.kind:
        low, high = (a, b) if a.kind < b.kind else (b, a)
        if low.kind is Kind.FLOAT and not low.weak:
            if high.weak:
                return complex_of(low)
            return _join_complex(complex_of(low), high)
        return high
    if a.weak or b.weak:
        return b if a.weak else a
    if a.is_integer:
        return _join_integers(a, b)
    if a.is_floating:
        return _join_floats(a, b)
    return _join_complex(a, b)


def _join_complex(a: DType, b: DType) -> DType:
    return a if a.bits >= b.bits else b
